//! The gate of the device: an event loop in which a call is parked as a [`Step`] while the valve turns.

use core::cell::{Cell, OnceCell, RefCell};
use core::fmt::{self, Write};

use callgate_core::audit::{AuditFault, Record};
use callgate_core::call::{
    Announced, Asking, Attempts, Authorized, Call, Cleared, Closed, Confirmed, Ended, Executing, Finished, IssueFault,
    Issued, Loaded, Loading, Lookup, Ran, Redeeming, Requested, StoreFault, Validated,
};
use callgate_core::confirm::{By, Refusal};
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::digest::{Digest, DigestBuilder, DigestKey};
use callgate_core::entropy::{Entropy, EntropyError};
use callgate_core::fixed::{AuditRing, CallBudget, Confirmations, Limiter, Question, Tools};
use callgate_core::intercept::Interception;
use callgate_core::json::{KeySlot, Limits, Object, Value, scan};
use callgate_core::limit::{Allowance, Quota};
use callgate_core::outcome::Outcome;
use callgate_core::policy::{ChannelPolicy, ChannelTable, PolicyGate};
use callgate_core::redact::Redaction;
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
type At<'a, T, S> = Call<Carried<'a>, T, S>;

/// What the gate keeps: `PLACES` questions with `TEXT` bytes of texts each, `KEYS` budgets, `RING` bytes of log.
///
/// The log lies elsewhere: it begins as zeros, which need no flash, and the rest does not.
pub struct Gate<'r, const PLACES: usize, const TEXT: usize, const KEYS: usize, const RING: usize> {
    tools: &'static [Tool],
    key: OnceCell<DigestKey>,
    entropy: Seeded,
    pub(crate) confirmations: RefCell<Confirmations<PLACES, TEXT>>,
    limiter: RefCell<Limiter<KEYS>>,
    budget: RefCell<CallBudget<1>>,
    ring: OnceCell<&'r RefCell<AuditRing<RING>>>,
}

/// The gate of the device.
pub type Whole<'r> = Gate<'r, 4, 320, 6, RING>;
/// How many bytes of log the device keeps.
pub const RING: usize = 6_144;

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

impl<'r, const PLACES: usize, const TEXT: usize, const KEYS: usize, const RING: usize>
    Gate<'r, PLACES, TEXT, KEYS, RING>
{
    /// A gate in front of these tools. It runs nothing before it [has a log](Self::log_to).
    #[must_use]
    pub const fn new(tools: &'static [Tool]) -> Self {
        Self {
            tools,
            key: OnceCell::new(),
            entropy: Seeded { seed: Cell::new(None), drawn: Cell::new(0) },
            confirmations: RefCell::new(Confirmations::new()),
            limiter: RefCell::new(Limiter::new(Some(QUOTA), Some(QUOTA))),
            budget: RefCell::new(CallBudget::new(CALLS)),
            ring: OnceCell::new(),
        }
    }

    /// Records go to this log from now on; only the first that is given counts.
    pub fn log_to(&self, ring: &'r RefCell<AuditRing<RING>>) {
        let _ = self.ring.set(ring);
    }

    /// The log, if there is one.
    pub(crate) fn log(&self) -> Option<&'r RefCell<AuditRing<RING>>> {
        self.ring.get().copied()
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
        let Some(asked) = Asked::read(line) else {
            return out.write_str(r#"{"error":"a call is {\"id\",\"tool\",\"arguments\",\"token\",\"plan\"}"}"#);
        };
        self.run(&asked, &now, &mut idle, out)
    }

    #[inline(never)]
    fn run(
        &self,
        asked: &Asked<'_>,
        now: &dyn Fn() -> Now,
        idle: &mut dyn FnMut(&Self),
        out: &mut dyn Write,
    ) -> fmt::Result {
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
        // A text that may hold a secret is left out as a whole: telling which part of it is one takes 18 KB of code.
        let settings = Settings { redaction: Redaction::COARSE, ..Settings::new(key) };
        let mut envelope = Envelope::new(caller, request, settings, &mut keys);
        let mut room = Some(room.as_mut_slice());
        let mut parked = Parked::Ready(Step::start(&mut envelope, now()));
        loop {
            parked = match parked {
                Parked::Ready(Step::Done(outcome)) => return written(outcome, out),
                Parked::Ready(Step::Execute(call)) => begun(call, now()),
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

    /// Gives a step what it asks for. What each answer needs of the stack is its own, and not that of all of them together: that is
    /// why each is a function that is not inlined.
    #[inline(never)]
    fn answer<'a>(&self, step: Stepped<'a>, room: &mut Option<&'a mut [u8]>, now: Now) -> Stepped<'a> {
        match step {
            Step::Find(call) => self.found(call),
            Step::Load(loading) => self.loaded(loading, room.take(), now),
            Step::Authorize(call) => decide(call),
            Step::Charge(call) => self.charged(call, now),
            Step::Recall(operating) => Step::Close(operating.unsupported()),
            Step::Claim(operating) => Step::Close(operating.unsupported()),
            Step::Issue(asking) => self.issued(asking, now),
            Step::Redeem(redeeming) => self.redeemed(redeeming, now),
            Step::Intercept(call) => cleared(call),
            Step::Intent(call) => self.announced(call),
            Step::Close(ended) => closed(ended, now),
            Step::Settle(closed) => self.settled(closed, now),
            Step::Record(closed) => self.recorded(closed),
            // Answered by the loop.
            other @ (Step::Execute(_) | Step::Done(_)) => other,
        }
    }

    #[inline(never)]
    fn found<'a>(&self, call: At<'a, (), Requested>) -> Stepped<'a> {
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

    #[inline(never)]
    fn loaded<'a>(
        &self,
        loading: Loading<Carried<'a>, &'static Tool>,
        room: Option<&'a mut [u8]>,
        now: Now,
    ) -> Stepped<'a> {
        let found = self.load(loading.ticket(), room, now);
        loading.answer(found)
    }

    #[inline(never)]
    fn charged<'a>(&self, call: At<'a, &'static Tool, Authorized>, now: Now) -> Stepped<'a> {
        let charged = call.charge().map_or(Ok(Allowance::Unlimited), |charge| {
            let mut limiter = self.limiter.try_borrow_mut().map_err(|_| StoreFault)?;
            Ok(limiter.charge(&charge, now.monotonic))
        });
        call.answer(charged)
    }

    #[inline(never)]
    fn issued<'a>(&self, asking: Asking<Carried<'a>, &'static Tool>, now: Now) -> Stepped<'a> {
        let issued = self.issue(&asking, now);
        asking.answer(issued)
    }

    #[inline(never)]
    fn redeemed<'a>(&self, redeeming: Redeeming<Carried<'a>, &'static Tool>, now: Now) -> Stepped<'a> {
        let claimed = self.claim(&redeeming, now);
        redeeming.answer(claimed)
    }

    #[inline(never)]
    fn announced<'a>(&self, mut call: At<'a, &'static Tool, Cleared>) -> Stepped<'a> {
        let recorded = self.record_intent(&mut call);
        call.answer(recorded)
    }

    #[inline(never)]
    fn record_intent(&self, call: &mut At<'_, &'static Tool, Cleared>) -> Result<(), AuditFault> {
        match &call.intent() {
            Some(intent) => self.record(intent),
            None => Ok(()),
        }
    }

    #[inline(never)]
    fn settled<'a>(&self, closed: Closed<Carried<'a>, &'static Tool>, now: Now) -> Stepped<'a> {
        let attempts = self.settle(&closed, now);
        closed.settled(attempts)
    }

    #[inline(never)]
    fn recorded<'a>(&self, closed: Closed<Carried<'a>, &'static Tool>) -> Stepped<'a> {
        let recorded = self.record_end(&closed);
        closed.recorded(recorded)
    }

    #[inline(never)]
    fn record_end(&self, closed: &Closed<Carried<'_>, &'static Tool>) -> Result<(), AuditFault> {
        self.record(&closed.record())
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
        self.log().ok_or(AuditFault)?.try_borrow_mut().map_err(|_| AuditFault)?.record(record)
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
fn decide<'a>(call: At<'a, &'static Tool, Validated>) -> Stepped<'a> {
    let decision = PolicyGate::new(ChannelTable::new(CHANNELS)).decide(&call.subject());
    call.answer(decision)
}

#[inline(never)]
fn cleared<'a>(call: At<'a, &'static Tool, Confirmed>) -> Stepped<'a> {
    call.answer(Interception::Continue)
}

#[inline(never)]
fn closed<'a>(ended: Ended<Carried<'a>, &'static Tool>, now: Now) -> Stepped<'a> {
    ended.answer(now)
}

/// The tool runs.
#[inline(never)]
fn begun<'a>(call: At<'a, &'static Tool, Announced>, began: Now) -> Parked<'a> {
    let mut executing = call.begin();
    let ran = match executing.permit().map(|permit| Tool::run(permit, &mut [0; 64])) {
        Some(Ok(reading)) => Ran::Done(reading),
        Some(Err(failure)) => Ran::Failed(failure),
        None => Ran::Cancelled,
    };
    Parked::Turning(Turning { executing, ran, began })
}

#[inline(never)]
fn written(outcome: Outcome<Carried<'_>, &'static Tool>, out: &mut dyn Write) -> fmt::Result {
    outcome.write_json(out)
}

/// The valve is where it is to be.
#[inline(never)]
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
    fn read(line: &'l [u8]) -> Option<Self> {
        let line = scan(line, &mut [KeySlot::default(); 24], &Limits::DEFAULT).ok()?.value();
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
