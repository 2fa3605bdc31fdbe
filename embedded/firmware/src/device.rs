//! The gate of the device: an event loop in which a call is parked as a [`Step`] while the valve turns.

use core::cell::{Cell, OnceCell, RefCell};
use core::fmt::{self, Write};

use callgate_core::audit::{AuditFault, Record};
use callgate_core::call::{
    Asking, Attempts, Closed, Executing, Finished, IssueFault, Issued, Loaded, Lookup, Ran, Redeeming, StoreFault,
};
use callgate_core::confirm::{By, Refusal};
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::digest::{Digest, DigestBuilder, DigestKey};
use callgate_core::entropy::{Entropy, EntropyError};
use callgate_core::fixed::{AuditRing, CallBudget, Confirmations, Limiter, Question, Tools};
use callgate_core::intercept::Interception;
use callgate_core::json::{KeySlot, Limits, Object, Value, scan};
use callgate_core::limit::{Allowance, Quota};
use callgate_core::policy::{ChannelPolicy, ChannelTable, Decision, PolicyGate, Subject};
use callgate_core::request::{Envelope, Request, Settings};
use callgate_core::step::Step;
use callgate_core::time::Now;
use callgate_core::tool::Tool as _;

use crate::tools::{self, Device as Tool, Failure, Reading};

/// The longest line, in bytes.
pub const LINE: usize = 512;
/// How long a question can be answered, in milliseconds.
pub const TTL_MS: u64 = 10_000;
/// How many calls a session may make.
pub const CALLS: u32 = 60;

/// 20 units in 20 seconds, and as many refused calls.
const QUOTA: Quota = match Quota::per_window(20, 20_000) {
    Ok(quota) => quota,
    Err(_) => Quota::DEFAULT,
};

/// The line of the agent asks for a principal, and goes by scopes; what is not listed blocks everything that changes anything.
const CHANNELS: &[ChannelPolicy<'static>] = &[ChannelPolicy::new("serial")];

/// A call stays in its place, and what goes from stage to stage is its address: a call that is moved costs a load and a store for each of
/// its words, at each stage.
type Carried<'a> = &'a mut Envelope<'a>;
type Stepped<'a> = Step<Carried<'a>, &'static Tool>;

/// What the gate keeps: `PLACES` questions with `TEXT` bytes of texts each, `KEYS` budgets, `RING` bytes of log.
pub struct Gate<const PLACES: usize, const TEXT: usize, const KEYS: usize, const RING: usize> {
    tools: &'static [Tool],
    key: OnceCell<DigestKey>,
    entropy: Seeded,
    pub(crate) confirmations: RefCell<Confirmations<PLACES, TEXT>>,
    limiter: RefCell<Limiter<KEYS>>,
    budget: RefCell<CallBudget<1>>,
    pub(crate) ring: RefCell<AuditRing<RING>>,
}

/// The gate of the device.
pub type Whole = Gate<4, 320, 6, 6_144>;

/// Tokens from a seed that the operator gives: the emulated chip has no generator. On the real one use `RNG` of the HAL.
struct Seeded {
    seed: Cell<Option<Digest>>,
    drawn: Cell<u64>,
}

impl Entropy for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let seed = self.seed.get().ok_or(EntropyError)?;
        for chunk in bytes.chunks_mut(32) {
            self.drawn.set(self.drawn.get().checked_add(1).ok_or(EntropyError)?);
            let mut draw = DigestBuilder::new("firmware/entropy/v1");
            draw.digest(&seed).u64(self.drawn.get());
            chunk.iter_mut().zip(draw.finish().as_bytes()).for_each(|(to, from)| *to = *from);
        }
        Ok(())
    }
}

/// A call that is parked while the valve turns: nothing but what core needs to go on with it.
struct Turning<'a> {
    executing: Executing<Carried<'a>, &'static Tool>,
    ran: Ran<Reading, Failure, &'static str>,
    began: Now,
}

/// Where the event loop has a call.
enum Parked<'a> {
    /// Something to do now.
    Ready(Stepped<'a>),
    /// Waits for the motor.
    Turning(Turning<'a>),
}

impl<const PLACES: usize, const TEXT: usize, const KEYS: usize, const RING: usize> Gate<PLACES, TEXT, KEYS, RING> {
    /// A gate in front of these tools.
    #[must_use]
    pub const fn new(tools: &'static [Tool]) -> Self {
        Self {
            tools,
            key: OnceCell::new(),
            entropy: Seeded { seed: Cell::new(None), drawn: Cell::new(0) },
            confirmations: RefCell::new(Confirmations::new()),
            limiter: RefCell::new(Limiter::new(Some(QUOTA), Some(QUOTA))),
            budget: RefCell::new(CallBudget::new(CALLS)),
            ring: RefCell::new(AuditRing::new()),
        }
    }

    /// Looks at the tools once. A device whose tools can't be used does not start (invariant F7).
    #[must_use]
    pub fn is_sound(&self) -> bool {
        Tools::new(self.tools).is_ok()
    }

    /// Takes the operator's seed. From then on there is somebody to ask.
    pub fn seed(&self, seed: &[u8]) {
        self.entropy.seed.set(Some(Digest::of_bytes(seed)));
        if let Ok(mut store) = self.confirmations.try_borrow_mut() {
            store.attach_approvers(true);
        }
    }

    /// Takes a line of the agent through the gate and writes the answer. `idle` is called again and again while the call is
    /// parked: it serves the operator, and sleeps.
    ///
    /// # Errors
    /// Those of `out`.
    #[inline(never)]
    pub fn line(
        &self,
        line: &[u8],
        now: impl Fn() -> Now,
        mut idle: impl FnMut(&Self),
        out: &mut dyn Write,
    ) -> fmt::Result {
        let mut keys = [KeySlot::default(); 24];
        let Some(asked) = Asked::read(line, &mut keys) else {
            return out.write_str(r#"{"error":"a call is {\"id\",\"tool\",\"arguments\",\"token\",\"plan\"}"}"#);
        };
        let mut keys = [KeySlot::default(); 16];
        let mut room = [0; TEXT];
        // Of a device of its own each: provisioned, and not a constant. It keeps digests of secrets from being guessed.
        let key = self.key.get_or_init(|| DigestKey::new([7; 32]));
        let request = Request { tool: asked.tool, arguments: asked.arguments.as_bytes(), token: asked.token };
        // Whoever holds the line is the agent: that is what this transport authenticates.
        let caller = CallContext::new("serial", asked.id)
            .with_principal("agent")
            .with_scopes(Scopes::new("valves"))
            .with_mode(if asked.plan { Mode::Plan } else { Mode::Execute });
        let mut envelope = Envelope::new(caller, request, Settings::new(key), &mut keys);
        let mut room = Some(room.as_mut_slice());
        let mut parked = Parked::Ready(Step::start(&mut envelope, now()));
        loop {
            parked = match parked {
                Parked::Ready(Step::Done(outcome)) => return outcome.write_json(out),
                Parked::Ready(Step::Execute(call)) => {
                    let began = now();
                    let mut executing = call.begin();
                    let ran = match executing.permit().map(|permit| Tool::run(permit, &mut [0; 64])) {
                        Some(Ok(reading)) => Ran::Done(reading),
                        Some(Err(failure)) => Ran::Failed(failure),
                        None => Ran::Cancelled,
                    };
                    Parked::Turning(Turning { executing, ran, began })
                }
                Parked::Ready(step) => Parked::Ready(self.answer(step, &mut room, now())),
                Parked::Turning(turning) => {
                    // Between two turns of the motor the device is free for whatever comes.
                    idle(self);
                    let spent = now().monotonic.nanos_since(turning.began.monotonic);
                    if tools::turn() { Parked::Turning(turning) } else { Parked::Ready(over(turning, spent)) }
                }
            };
        }
    }

    /// Gives a step what it asks for. What each answer needs of the stack is its own, and not that of all of them together.
    #[inline(never)]
    fn answer<'a>(&self, step: Stepped<'a>, room: &mut Option<&'a mut [u8]>, now: Now) -> Stepped<'a> {
        match step {
            Step::Find(call) => {
                let taken = self.budget.try_borrow_mut().map(|mut budget| budget.take(&call.caller()));
                match taken {
                    Ok(Ok(())) => {
                        let found = self.find(call.asked().tool);
                        call.found(found)
                    }
                    Ok(Err(why)) => call.turned_away(why),
                    Err(_) => call.found(Lookup::Unknown),
                }
            }
            Step::Load(loading) => {
                let found = self.load(loading.ticket(), room.take(), now);
                loading.answer(found)
            }
            Step::Authorize(call) => {
                let decision = decide(&call.subject());
                call.answer(decision)
            }
            Step::Charge(call) => {
                let charged = call.charge().map_or(Ok(Allowance::Unlimited), |charge| {
                    let mut limiter = self.limiter.try_borrow_mut().map_err(|_| StoreFault)?;
                    Ok(limiter.charge(&charge, now.monotonic))
                });
                call.answer(charged)
            }
            Step::Issue(asking) => {
                let issued = self.issue(&asking, now);
                asking.answer(issued)
            }
            Step::Redeem(redeeming) => {
                let claimed = self.claim(&redeeming, now);
                redeeming.answer(claimed)
            }
            Step::Intercept(call) => call.answer(Interception::Continue),
            Step::Intent(mut call) => {
                let recorded = call.intent().map_or(Ok(()), |intent| self.record(&intent));
                call.answer(recorded)
            }
            Step::Close(ended) => ended.answer(now),
            Step::Settle(closed) => {
                let attempts = self.settle(&closed, now);
                closed.settled(attempts)
            }
            Step::Record(closed) => {
                let recorded = self.record(&closed.record());
                closed.recorded(recorded)
            }
            // Answered by the loop.
            other @ (Step::Execute(_) | Step::Done(_)) => other,
        }
    }

    /// The table was looked at when the device started.
    fn find(&self, name: &str) -> Lookup<&'static Tool> {
        self.tools.iter().find(|tool| tool.spec().name == name).map_or(Lookup::Unknown, Lookup::Found)
    }

    #[inline(never)]
    fn load<'a>(
        &self,
        ticket: Option<Digest>,
        room: Option<&'a mut [u8]>,
        now: Now,
    ) -> Result<Option<Loaded<&'a [u8]>>, StoreFault> {
        let (Some(ticket), Some(room)) = (ticket, room) else { return Ok(None) };
        self.confirmations.try_borrow_mut().map_err(|_| StoreFault)?.load(ticket, room, now)
    }

    #[inline(never)]
    fn issue(&self, asking: &Asking<Carried<'_>, &'static Tool>, now: Now) -> Result<Issued, IssueFault> {
        let mut store = self.confirmations.try_borrow_mut().map_err(|_| IssueFault::Store)?;
        let summary = asking.summary();
        store.issue(&Question::of(asking, &summary), TTL_MS, &self.entropy, now)
    }

    #[inline(never)]
    fn claim(
        &self,
        redeeming: &Redeeming<Carried<'_>, &'static Tool>,
        now: Now,
    ) -> Result<Result<By, Refusal>, StoreFault> {
        let mut store = self.confirmations.try_borrow_mut().map_err(|_| StoreFault)?;
        Ok(store.claim(redeeming.ticket(), &redeeming.presented(), now))
    }

    #[inline(never)]
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        self.ring.try_borrow_mut().map_err(|_| AuditFault)?.record(record)
    }

    #[inline(never)]
    fn settle(&self, closed: &Closed<Carried<'_>, &'static Tool>, now: Now) -> Option<Attempts> {
        let settlement = closed.settlement();
        if let (Some(refund), Ok(mut limiter)) = (settlement.refund, self.limiter.try_borrow_mut()) {
            limiter.refund(&refund, now.monotonic);
        }
        if let (Some(ticket), Ok(mut store)) = (settlement.withdraw, self.confirmations.try_borrow_mut()) {
            store.withdraw(ticket);
        }
        if let (Some(finish), Ok(mut store)) = (settlement.finish, self.confirmations.try_borrow_mut()) {
            let _ = store.finish(&finish);
        }
        settlement.attempt.map(|key| match self.limiter.try_borrow_mut() {
            Ok(mut limiter) => Ok(limiter.attempt(&key, now.monotonic)),
            Err(_) => Err(StoreFault),
        })
    }
}

#[inline(never)]
fn decide(subject: &Subject<'_>) -> Decision<&'static str> {
    PolicyGate::new(ChannelTable::new(CHANNELS)).decide(subject)
}

/// The valve is where it is to be.
fn over(turning: Turning<'_>, spent: u64) -> Stepped<'_> {
    let Turning { executing, ran, .. } = turning;
    let finished: Finished<_, _, _> = ran.after(spent);
    Step::Close(executing.finished(finished))
}

/// A call as a line says it.
struct Asked<'l> {
    id: &'l str,
    tool: &'l str,
    arguments: &'l str,
    token: Option<&'l str>,
    plan: bool,
}

impl<'l> Asked<'l> {
    /// Reads a line; nothing when it is none. What is wrong with the arguments is the gate's to tell, so they are taken as they stand.
    #[inline(never)]
    fn read(line: &'l [u8], keys: &mut [KeySlot]) -> Option<Self> {
        let line = scan(line, keys, &Limits::DEFAULT).ok()?.value();
        let known = ["id", "tool", "arguments", "token", "plan"];
        let sound = line.members().all(|(name, _)| known.iter().any(|known| name.eq_str(known)));
        let text = |name| line.get(name).and_then(Value::as_text).and_then(|text| text.as_plain());
        let asked = Self {
            id: text("id")?,
            tool: text("tool")?,
            arguments: line.get("arguments").map_or("{}", Value::source),
            token: text("token"),
            plan: line.get("plan").and_then(Value::as_bool).unwrap_or_default(),
        };
        sound.then_some(asked)
    }
}

/// Writes `{"error":text}`.
///
/// # Errors
/// Those of `out`.
pub fn error(text: &str, out: &mut dyn Write) -> fmt::Result {
    let mut object = Object::begin(out)?;
    object.text("error", text)?;
    object.end()
}
