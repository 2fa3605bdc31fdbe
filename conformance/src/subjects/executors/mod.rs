//! The async gate of `callgate-async` on two executors, which ask in two ways: on tokio everything waits, on smol everything
//! blocks and is run off the executor. Both go by the time of the world.

mod seams;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use callgate_async::gate::{CallOptions, Gate};
use callgate_async::interceptors::Interceptors;
use callgate_async::runtime::{self, BoxFuture, Runtime};
use callgate_async::seam::{Blocking, Waiting};
use callgate_core::request::Request;
use callgate_core::time::Now;
use smol::stream::StreamExt as _;

use super::judges::LIMIT_MS;
use super::listening::observers;
use super::surroundings::{DIGEST_KEY, Surroundings, batched, context, gave_up, no_world, scopes};
use super::time::Time;
use crate::event::{Event, Kill, Seen};
use crate::feature::Feature;
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::World;
use seams::Waits;

/// An executor by the time of a world: its own timers are not used.
struct Timed {
    time: Time,
    executor: Arc<dyn Runtime>,
}

impl Runtime for Timed {
    fn now(&self) -> Now {
        self.time.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(self.time.sleep(duration))
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) {
        self.executor.spawn(future);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.executor.spawn_blocking(work);
    }
}

/// How everything that a gate asks is given to it.
#[derive(Clone, Copy, Debug)]
enum Seams {
    Waiting,
    Blocking,
}

/// A gate in its world, on an executor.
#[derive(Debug)]
struct Place {
    around: Surroundings,
    gate: Gate,
}

/// An executor with a way to ask, and the gate that runs on it.
struct Host {
    declaration: Declaration,
    executor: Arc<dyn Runtime>,
    seams: Seams,
    place: Option<Place>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("declaration", &self.declaration)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Host {
    fn new(name: &str, executor: Arc<dyn Runtime>, seams: Seams) -> Self {
        let mut declaration = Declaration::full(name);
        // A gate explains itself by a policy that it can look into, which one that is watched is not.
        declaration.supports.remove(&Feature::Inspect);
        Self { declaration, executor, seams, place: None }
    }

    fn gate(&self, around: &Surroundings) -> Result<Gate, SubjectFault> {
        let timed = Timed { time: around.time.clone(), executor: Arc::clone(&self.executor) };
        let none = Interceptors::with_limit(Duration::from_millis(LIMIT_MS));
        let interceptors = around.judges().fold(none, |all, judge| {
            let name = judge.script.name.clone();
            match self.seams {
                Seams::Waiting => all.and(&name, Waiting(Waits(judge))),
                Seams::Blocking => all.and(&name, Blocking(judge)),
            }
        });
        let (policy, limiter) = (Arc::clone(&around.policy), Arc::clone(&around.limiter));
        let (store, sink) = (Arc::clone(&around.store), Arc::clone(&around.sink));
        let builder = Gate::builder(Arc::clone(&around.tools), timed);
        let builder = match self.seams {
            Seams::Waiting => builder
                .policy(Waiting(Waits(policy)))
                .limiter(Waiting(Waits(limiter)))
                .confirmations(Waiting(Waits(store)))
                .audit(Waiting(Waits(sink))),
            Seams::Blocking => builder
                .policy(Blocking(policy))
                .limiter(Blocking(limiter))
                .confirmations(Blocking(store))
                .audit(Blocking(sink)),
        };
        let builder = match (&around.journal, self.seams) {
            (Some(journal), Seams::Waiting) => builder.journal(Waiting(Waits(Arc::clone(journal)))),
            (Some(journal), Seams::Blocking) => builder.journal(Blocking(Arc::clone(journal))),
            (None, _) => builder,
        };
        let mut builder = builder
            .interceptors(interceptors)
            .entropy(around.entropy.0.clone())
            .digest_key(DIGEST_KEY)
            .confirmation_ttl_ms(around.world.ttl_ms());
        if let Some(observers) = observers(around) {
            builder = builder.observers(observers);
        }
        builder.build().map_err(gave_up)
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        let around = match self.seams {
            Seams::Waiting => Surroundings::with_bodies(world, seed, seams::waits),
            Seams::Blocking => Surroundings::new(world, seed),
        };
        let around = match around {
            Ok(around) => around,
            Err(why) => return Ok(Begun::Refused(why)),
        };
        let gate = self.gate(&around)?;
        self.place = Some(Place { around, gate });
        Ok(Begun::Ready)
    }

    async fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        let Place { mut around, gate } = self.place.take().ok_or_else(no_world)?;
        let mut killed = false;
        let seen = match event {
            Event::Call(call) => {
                let scopes = call.caller.scopes.join(" ");
                let caller = context(&call.caller, &scopes, &call.id, call.mode);
                let request =
                    Request { tool: &call.tool, arguments: call.arguments.as_bytes(), token: call.token.as_deref() };
                let mut options = CallOptions::new();
                if let Some(operation) = &call.operation {
                    options = options.of_operation(operation.as_str());
                }
                let outcome = gate.call_with(&caller, request, options).await.to_json();
                let seen = around.seen(Some(outcome.map_err(gave_up)?))?;
                killed = seen.killed;
                Ok(seen)
            }
            Event::Batch(batch) => {
                let scopes = scopes(batch);
                let (calls, options) = batched(batch, &scopes);
                let outcomes = gate.batch(&calls, options).map_err(gave_up)?;
                let outcomes: Vec<_> = outcomes.map(|(_, outcome)| outcome.to_json()).collect().await;
                around.seen_of_batch(&outcomes.into_iter().collect::<Result<Vec<_>, _>>().map_err(gave_up)?)
            }
            Event::Show(show) => around.shown(show),
            Event::Decide(decide) => {
                let taken = match Surroundings::decision(decide) {
                    Some((ticket, verdict)) => {
                        let scopes = decide.approver.scopes.join(" ");
                        let approver = Surroundings::approver(decide, &scopes);
                        gate.decide(ticket, verdict, &approver).await.is_ok()
                    }
                    None => false,
                };
                around.seen(None).map(|seen| Seen { decided: Some(taken), ..seen })
            }
            other => {
                around.happen(other)?;
                killed = matches!(other, Event::Kill(Kill { at: None, .. }));
                around.seen(None)
            }
        };
        let gate = if killed { self.gate(&around)? } else { gate };
        self.place = Some(Place { around, gate });
        seen
    }
}

/// The async gate on tokio, everything of which waits.
#[derive(Debug)]
pub struct Tokio {
    host: Host,
    runtime: tokio::runtime::Runtime,
}

impl Tokio {
    /// The gate on a runtime of its own, in no world yet.
    ///
    /// # Errors
    /// There are no threads to be had.
    pub fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
        let executor = Arc::new(runtime::Tokio::new(runtime.handle().clone()));
        Ok(Self { host: Host::new("callgate-async, on tokio", executor, Seams::Waiting), runtime })
    }
}

/// The async gate on smol, everything of which blocks.
#[derive(Debug)]
pub struct Smol {
    host: Host,
}

impl Smol {
    /// The gate, in no world yet.
    #[must_use]
    pub fn new() -> Self {
        Self { host: Host::new("callgate-async, on smol", Arc::new(runtime::Smol::new()), Seams::Blocking) }
    }
}

impl Default for Smol {
    fn default() -> Self {
        Self::new()
    }
}

impl Subject for Tokio {
    fn declaration(&self) -> &Declaration {
        &self.host.declaration
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        let _entered = self.runtime.enter();
        self.host.begin(world, seed)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        self.runtime.block_on(self.host.event(event))
    }
}

impl Subject for Smol {
    fn declaration(&self) -> &Declaration {
        &self.host.declaration
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        self.host.begin(world, seed)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        smol::block_on(self.host.event(event))
    }
}
