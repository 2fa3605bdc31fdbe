//! The servers of one gate, and the registry that their tools make.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use callgate_core::time::Timestamp;
use callgate_std::registry::{Registry, SharedRegistry};
use callgate_std::tool::Tool;
use rmcp::model::Tool as Definition;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::offer::{Adjust, Event, Offer};
use crate::pins::{PinFile, Stamp, Verdict};
use crate::upstream::{Health, Settings, Upstream, define, mutates};

/// How often the pins are looked at: another process may have accepted something.
const LOOK: Duration = Duration::from_secs(1);

/// A server of a fleet.
pub struct Member {
    /// The server.
    pub settings: Settings,
    /// How the names of its tools start in the gate. Different from member to member, or only one has none.
    pub prefix: String,
    /// What the host adds to its tools.
    pub adjust: Arc<dyn Adjust>,
}

impl Member {
    /// A server whose tools are called `NAME.TOOL`.
    pub fn new(settings: Settings, adjust: impl Adjust + 'static) -> Self {
        Self { prefix: format!("{}.", settings.name), settings, adjust: Arc::new(adjust) }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("settings", &self.settings).field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// Takes what happens in a fleet. Must not block.
pub type Watch = Arc<dyn Fn(Event) + Send + Sync>;

/// Servers that are kept connected, and the registry of a gate over them: the host's own tools, and of each server's those that are
/// as they were pinned. Ends its servers when it is dropped.
pub struct Fleet {
    registry: SharedRegistry,
    upstreams: Vec<Upstream>,
    changes: watch::Receiver<u64>,
    first: watch::Receiver<bool>,
    stop: CancellationToken,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl Fleet {
    /// Starts the servers. `own` are the host's tools; `now` tells the time that pins are marked with. Has to be called on a runtime
    /// of tokio, with timers.
    #[must_use]
    pub fn start(
        own: Registry,
        members: Vec<Member>,
        pins: PinFile,
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
        watch: Watch,
    ) -> Self {
        let registry = SharedRegistry::new(own.clone());
        let stop = CancellationToken::new();
        let (changed, changes) = watch::channel(0);
        let (tried, first) = watch::channel(members.is_empty());
        let members: Vec<_> = members
            .into_iter()
            .map(|member| {
                let upstream = Upstream::start(member.settings.clone());
                Seat { member, upstream, offered: None, health: None }
            })
            .collect();
        let upstreams = members.iter().map(|seat| seat.upstream.clone()).collect();
        let keeper = Keeper {
            own,
            seats: members,
            pins,
            now: Box::new(now),
            watch,
            registry: registry.clone(),
            changed,
            tried,
            told: BTreeSet::new(),
            stamp: Stamp::default(),
        };
        let keeper = tokio::spawn(keeper.keep(stop.clone()));
        Self { registry, upstreams, changes, first, stop, keeper: Mutex::new(Some(keeper)) }
    }

    /// The registry, for a gate. It changes as the servers do; calls keep the tool that they found (invariant G2).
    #[must_use]
    pub fn registry(&self) -> SharedRegistry {
        self.registry.clone()
    }

    /// The servers.
    #[must_use]
    pub fn upstreams(&self) -> &[Upstream] {
        &self.upstreams
    }

    /// Counts how often the tools have changed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Waits until each server answers, or did not at the first attempt.
    pub async fn tried(&self) {
        let mut first = self.first.clone();
        drop(first.wait_for(|tried| *tried).await);
    }

    /// Ends the servers, and waits until they are gone.
    pub async fn end(&self) {
        self.stop.cancel();
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeper) = keeper {
            drop(keeper.await);
        }
        for upstream in &self.upstreams {
            upstream.end().await;
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop.cancel();
        self.upstreams.iter().for_each(Upstream::stop);
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("upstreams", &self.upstreams).finish_non_exhaustive()
    }
}

/// A server, and what is known of it.
struct Seat {
    member: Member,
    upstream: Upstream,
    /// What it offered last. While it is down its tools stay: a call of one is told that it is down, not that there is no such tool.
    offered: Option<Arc<Vec<Definition>>>,
    health: Option<Health>,
}

struct Keeper {
    own: Registry,
    seats: Vec<Seat>,
    pins: PinFile,
    now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    watch: Watch,
    registry: SharedRegistry,
    changed: watch::Sender<u64>,
    tried: watch::Sender<bool>,
    /// What was told already: nobody wants to read it with every look at the list.
    told: BTreeSet<String>,
    stamp: Stamp,
}

impl Keeper {
    async fn keep(mut self, stop: CancellationToken) {
        let mut watches: Vec<_> = self.seats.iter().map(|seat| seat.upstream.watch()).collect();
        loop {
            self.look().await;
            let changes = futures_any(watches.iter_mut().map(|watch| Box::pin(watch.changed())));
            tokio::select! {
                () = changes => {}
                () = tokio::time::sleep(LOOK) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Looks at everything, and makes the registry anew if something has changed.
    async fn look(&mut self) {
        let mut news = false;
        for seat in &mut self.seats {
            let health = seat.upstream.health();
            if seat.health.as_ref() != Some(&health) {
                (self.watch)(Event::Server { server: seat.upstream.name().to_owned(), health: health.clone() });
                seat.health = Some(health);
            }
            if let Some(offered) = seat.upstream.definitions()
                && seat.offered.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &offered))
            {
                seat.offered = Some(offered);
                news = true;
            }
        }
        let (pins, stamp) = (self.pins.clone(), self.stamp);
        let now = tokio::task::spawn_blocking(move || pins.stamp()).await.unwrap_or_default();
        if news || now != stamp {
            self.build().await;
        }
        let tried = self.seats.iter().all(|seat| !matches!(seat.health, None | Some(Health::Starting)));
        if tried && !*self.tried.borrow() {
            let _ = self.tried.send_replace(true);
        }
    }

    /// Has the pins judge what is offered.
    async fn judge(&self) -> Result<(Vec<Vec<Verdict>>, Stamp), String> {
        let offers: Vec<_> =
            self.seats.iter().map(|seat| (seat.upstream.name().to_owned(), seat.offered.clone())).collect();
        let (pins, now) = (self.pins.clone(), (self.now)());
        let judged = tokio::task::spawn_blocking(move || {
            let verdicts = pins.update(|book| {
                let see = |(server, offered): &(String, Option<Arc<Vec<Definition>>>)| {
                    offered.as_ref().map_or_else(Vec::new, |offered| book.see(server, offered, now))
                };
                offers.iter().map(see).collect::<Vec<_>>()
            });
            verdicts.map(|verdicts| (verdicts, pins.stamp())).map_err(|error| error.to_string())
        });
        judged.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    async fn build(&mut self) {
        let judged = self.judge().await;
        let mut events = Vec::new();
        let mut tools: Vec<Arc<Tool>> = Vec::new();
        match judged {
            Ok((verdicts, stamp)) => {
                self.stamp = stamp;
                for (seat, verdicts) in self.seats.iter().zip(&verdicts) {
                    seat.tools(verdicts, &mut tools, &mut events);
                }
            }
            // Whether a tool is what it was is not known, so none is called (invariant F1).
            Err(reason) => events.push(Event::Pins { reason }),
        }
        self.put(tools, &mut events);
        let told: BTreeSet<String> = events.iter().map(ToString::to_string).collect();
        for event in events {
            if !self.told.contains(&event.to_string()) {
                (self.watch)(event);
            }
        }
        self.told = told;
    }

    /// Puts the tools into the registry, without those that can't stand beside each other: the host's own come first, and then
    /// those of the servers in their order (invariant G3).
    fn put(&self, tools: Vec<Arc<Tool>>, events: &mut Vec<Event>) {
        let whole = Registry::builder().add_all(&self.own).add_all(&tools).build();
        let registry = whole.unwrap_or_else(|_| {
            let mut kept: Vec<Arc<Tool>> = Vec::new();
            for tool in tools {
                match Registry::builder().add_all(&self.own).add_all(&kept).add(&tool).build() {
                    Ok(_) => kept.push(tool),
                    Err(error) => events.push(self.unusable(&tool, error.to_string())),
                }
            }
            Registry::builder().add_all(&self.own).add_all(&kept).build().unwrap_or_else(|_| self.own.clone())
        });
        let digests =
            |registry: &Registry| registry.iter().map(|tool| (tool.name().to_owned(), tool.digest())).collect();
        let now: BTreeMap<_, _> = digests(&registry);
        let before: BTreeMap<_, _> = digests(&self.registry.load());
        if now != before {
            drop(self.registry.swap(registry));
            self.changed.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    fn unusable(&self, tool: &Tool, reason: String) -> Event {
        let of =
            self.seats.iter().find_map(|seat| Some((seat, tool.name().strip_prefix(seat.member.prefix.as_str())?)));
        let (server, tool) = of.map_or(("", tool.name()), |(seat, name)| (seat.upstream.name(), name));
        Event::Unusable { server: server.to_owned(), tool: tool.to_owned(), reason }
    }
}

impl Seat {
    /// Its tools, as far as they may be called.
    fn tools(&self, verdicts: &[Verdict], tools: &mut Vec<Arc<Tool>>, events: &mut Vec<Event>) {
        let offered = self.offered.iter().flat_map(|offered| offered.iter());
        let mut names = BTreeMap::new();
        for definition in offered.clone() {
            *names.entry(&*definition.name).or_insert(0_usize) += 1;
        }
        for (definition, verdict) in offered.zip(verdicts) {
            let (server, tool) = (self.upstream.name().to_owned(), definition.name.to_string());
            match self.tool(definition, verdict, names.get(&*definition.name) == Some(&1)) {
                Ok(Some(made)) => tools.push(Arc::new(made)),
                Ok(None) => {}
                Err(Withheld::Pinned(reason)) => events.push(Event::Withheld { server, tool, reason }),
                Err(Withheld::Unusable(reason)) => events.push(Event::Unusable { server, tool, reason }),
            }
        }
    }

    fn tool(&self, definition: &Definition, verdict: &Verdict, alone: bool) -> Result<Option<Tool>, Withheld> {
        // Which of the two would be called is the server's to say.
        if !alone {
            return Err(Withheld::Unusable("the server has two tools of this name".to_owned()));
        }
        if let Verdict::Withheld(reason) = verdict {
            return Err(Withheld::Pinned(reason.clone()));
        }
        let name = format!("{}{}", self.member.prefix, definition.name);
        let offer = Offer { server: self.upstream.name(), name: &name, definition, mutating: true };
        let promise = self.member.adjust.promise(offer);
        let offer = Offer { mutating: mutates(definition, promise), ..offer };
        let builder = define(&self.upstream, definition, &name, promise)
            .map_err(|fault| Withheld::Unusable(fault.to_string()))?;
        let Some(builder) = self.member.adjust.adjust(offer, builder).map_err(Withheld::Unusable)? else {
            return Ok(None);
        };
        let fault = |error: callgate_std::tool::ToolError| {
            Withheld::Unusable(error.problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        };
        builder.build().map(Some).map_err(fault)
    }
}

/// Why a tool is not offered.
enum Withheld {
    Pinned(crate::pins::Reason),
    Unusable(String),
}

/// Waits for the first of these; for ever when there is none.
async fn futures_any<F: Future<Output = ()> + Unpin>(futures: impl Iterator<Item = F>) {
    let mut futures: Vec<F> = futures.collect();
    std::future::poll_fn(move |cx| {
        let ready = futures.iter_mut().any(|future| std::pin::Pin::new(future).poll(cx).is_ready());
        if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
