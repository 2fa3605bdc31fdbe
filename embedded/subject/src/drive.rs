//! Giving the gate what it asks for, step by step.

use core::cell::{Cell, RefCell};
use core::fmt::Write;

use callgate_core::audit::{AuditFault, Record};
use callgate_core::call::{Charge, ChargeMode, Closed, Finished, IssueFault, Issued, Lookup, Permit, Ran, StoreFault};
use callgate_core::confirm::{By, Refusal, Verdict};
use callgate_core::context::Mode;
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::entropy::{Entropy, EntropyError};
use callgate_core::fixed::{Buffer, Confirmations, Limiter, Question};
use callgate_core::intercept::Interception;
use callgate_core::json::{KeySlot, Kind, Number, Object, Value};
use callgate_core::limit::{Allowance, Quota};
use callgate_core::policy::Subject as Judged;
use callgate_core::request::{Envelope, Request, Settings};
use callgate_core::step::Step;
use callgate_core::time::{Instant, Now, Timestamp};
use callgate_core::tool::Tool as _;

use crate::Trouble::{self, Error, Unsupported};
use crate::book::{Book, Point, ask, recorded, shows, with};
use crate::event::{self, ScopeText};
use crate::policy::{self, Judge};
use crate::tool::{Body, Echo, Reply, Script, Scripted};
use crate::words::Words;
use crate::world::World;
use crate::{MOST, PLACES};

/// The most bytes of texts that a question keeps.
const TEXT: usize = 768;
/// How long an interceptor may take, in milliseconds.
const LIMIT_MS: u64 = 1_000;
/// When the clock starts, in milliseconds since the Unix epoch.
const START_MS: u64 = 1_796_000_000_000;

/// In its place: what goes from stage to stage is the address.
type Carried<'x> = &'x mut Envelope<'x, &'x str>;
type Stepped<'x> = Step<Carried<'x>, &'x Scripted<'x>>;

/// What surrounds the gate of a world.
pub(crate) struct Host {
    book: RefCell<Book>,
    store: RefCell<Confirmations<PLACES, TEXT>>,
    limiter: RefCell<Limiter<16>>,
    limits: bool,
    limits_attempts: bool,
    ttl_ms: u64,
    echo: Echo,
    dice: Dice,
    /// Milliseconds since the clock was started.
    clock: Cell<u64>,
}

/// The generator `SplitMix64`: scripts are to be repeated.
struct Dice(Cell<u64>);

impl Entropy for Dice {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for chunk in bytes.chunks_mut(8) {
            let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
            self.0.set(state);
            let mut word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let word = (word ^ (word >> 31)).to_le_bytes();
            chunk.iter_mut().zip(word).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }
}

impl Host {
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            book: RefCell::new(Book::new()),
            store: RefCell::new(Confirmations::new()),
            limiter: RefCell::new(Limiter::new(None, None)),
            limits: false,
            limits_attempts: false,
            ttl_ms: 60_000,
            echo: RefCell::new(Buffer::new()),
            dice: Dice(Cell::new(seed)),
            clock: Cell::new(0),
        }
    }

    /// Takes from a world what holds for all of its calls.
    pub(crate) fn settle(&mut self, world: &World<'_>) -> Result<(), Trouble> {
        let words = world.words();
        if words.get("listener").is_some() {
            return Err(Unsupported("nobody listens here"));
        }
        let quota = |name| -> Result<Option<Quota>, Trouble> {
            let Some(quota) = words.get(name) else { return Ok(None) };
            let quota = Words::of(quota, &["limit", "window_ms"])?;
            let limit = quota.count("limit")?.and_then(|limit| u32::try_from(limit).ok());
            let (Some(limit), Some(window)) = (limit, quota.count("window_ms")?) else {
                return Err(Error("a quota is none"));
            };
            Quota::per_window(limit, window).map(Some).map_err(|_| Unsupported("a quota can't be used"))
        };
        let (calls, attempts) = (quota("quota")?, quota("attempts")?);
        (self.limits, self.limits_attempts) = (calls.is_some(), attempts.is_some());
        self.limiter = RefCell::new(Limiter::new(calls, attempts));
        self.ttl_ms = words.count("ttl_ms")?.unwrap_or(60_000);
        self.store.get_mut().attach_approvers(words.yes("approvers", false));
        Ok(())
    }

    fn now(&self) -> Now {
        let passed = self.clock.get();
        Now {
            monotonic: Instant::from_nanos(passed.saturating_mul(1_000_000)),
            wall: Timestamp::from_unix_millis(START_MS.saturating_add(passed)),
        }
    }

    fn pass(&self, ms: u64) {
        self.clock.set(self.clock.get().saturating_add(ms));
    }

    /// Has something happen, and writes what was seen.
    pub(crate) fn happen(
        &mut self,
        world: &World<'_>,
        name: &str,
        event: Value<'_>,
        out: &mut dyn Write,
    ) -> Result<Result<(), Trouble>, core::fmt::Error> {
        self.book.get_mut().next();
        let decided = match name {
            "call" => return self.call(world, event, out),
            "decide" => self.decide(event).map(Some),
            "advance" => {
                let passes = event.as_number().and_then(Number::as_u64).ok_or(Error("time is no number"));
                passes.map(|ms| {
                    self.pass(ms);
                    None
                })
            }
            "fault" => self.fault(event).map(|()| None),
            "rule" | "define" => Ok(None),
            _ => Err(Unsupported("such an event can't happen here")),
        };
        match decided {
            Err(trouble) => Ok(Err(trouble)),
            Ok(decided) => self.seen(out, |seen| decided.map_or(Ok(()), |decided| seen.boolean("decided", decided))),
        }
    }

    fn seen(
        &self,
        out: &mut dyn Write,
        first: impl FnOnce(&mut Object<'_>) -> core::fmt::Result,
    ) -> Result<Result<(), Trouble>, core::fmt::Error> {
        let Ok(book) = self.book.try_borrow() else { return Ok(Err(Error("the book is lost"))) };
        if let Err(trouble) = book.fits() {
            return Ok(Err(trouble));
        }
        let mut object = Object::begin(out)?;
        object.raw("seen", |out| {
            let mut seen = Object::begin(out)?;
            first(&mut seen)?;
            book.show(&mut seen)?;
            seen.end()
        })?;
        object.end().map(Ok)
    }

    fn fault(&mut self, event: Value<'_>) -> Result<(), Trouble> {
        let fault: event::Fault = event.deserialize(&mut []).map_err(|_| Error("a fault can't be read"))?;
        self.book.get_mut().plant(fault.at, fault.how()?)
    }

    fn decide(&self, event: Value<'_>) -> Result<bool, Trouble> {
        let mut room = [0; 512];
        let decide: event::Decide<'_> = event.deserialize(&mut room).map_err(|_| Error("a decision can't be read"))?;
        let Ok(ticket) = decide.approval.parse::<Digest>() else { return Ok(false) };
        let verdict = match decide.verdict {
            event::Verdict::Approve => Verdict::Approve,
            event::Verdict::Deny => Verdict::Deny,
        };
        let scopes = decide.approver.scopes()?;
        let approver = decide.approver.context(&scopes, "a-decision", Mode::Execute);
        let mut store = self.store.try_borrow_mut().map_err(|_| Error("the store is lost"))?;
        Ok(store.decide(ticket, verdict, &approver, self.now()).is_ok())
    }

    fn call(
        &self,
        world: &World<'_>,
        event: Value<'_>,
        out: &mut dyn Write,
    ) -> Result<Result<(), Trouble>, core::fmt::Error> {
        let mut room = [0; 2_048];
        let Ok(call) = event.deserialize::<event::Call<'_>>(&mut room) else {
            return Ok(Err(Error("a call can't be read")));
        };
        let scopes = match call.caller.scopes() {
            Ok(scopes) => scopes,
            Err(trouble) => return Ok(Err(trouble)),
        };
        let script = match world.tool(call.tool).map(Script::read).transpose() {
            Ok(script) => script,
            Err(trouble) => return Ok(Err(trouble)),
        };
        let run = |judge: &Judge<'_>| match &script {
            Some(script) => script.with(&self.echo, |tool| self.run(world, judge, Some(tool), &call, &scopes, out)),
            None => Ok(self.run(world, judge, None, &call, &scopes, out)),
        };
        match policy::with(world, run) {
            Ok(Ok(written)) => written,
            Ok(Err(trouble)) | Err(trouble) => Ok(Err(trouble)),
        }
    }

    /// Takes one call through the gate.
    fn run<'x>(
        &'x self,
        world: &'x World<'_>,
        judge: &'x Judge<'x>,
        tool: Option<&'x Scripted<'x>>,
        call: &'x event::Call<'_>,
        scopes: &'x ScopeText,
        out: &mut dyn Write,
    ) -> Result<Result<(), Trouble>, core::fmt::Error> {
        let mut keys = [KeySlot::default(); 128];
        let mut room = [0; TEXT];
        let key = DigestKey::new([7; 32]);
        let request = Request { tool: call.tool, arguments: call.arguments.as_bytes(), token: call.token };
        let caller = call.caller.context(scopes, call.id, call.mode());
        let mut envelope = Envelope::new(caller, request, Settings::new(&key), &mut keys).with_texts();
        self.steps(world, judge, tool, &mut envelope, &mut room, out)
    }

    fn steps<'x>(
        &'x self,
        world: &'x World<'_>,
        judge: &Judge<'x>,
        tool: Option<&'x Scripted<'x>>,
        envelope: Carried<'x>,
        room: &'x mut [u8],
        out: &mut dyn Write,
    ) -> Result<Result<(), Trouble>, core::fmt::Error> {
        let mut room = Some(room);
        let mut step = Step::start(envelope, self.now());
        loop {
            step = match step {
                Step::Find(call) => call.found(tool.map_or(Lookup::Unknown, Lookup::Found)),
                Step::Load(loading) => {
                    let found = match (loading.ticket(), room.take()) {
                        (Some(ticket), Some(room)) => self
                            .store
                            .try_borrow_mut()
                            .map_err(|_| StoreFault)
                            .and_then(|mut store| store.load(ticket, room, self.now())),
                        _ => Ok(None),
                    };
                    loading.answer(found)
                }
                Step::Authorize(call) => {
                    let subject = call.subject();
                    let asked = shows(subject.args);
                    let decision = ask(&self.book, Point::Authorize, asked, || judge.decide(&subject), policy::fault);
                    call.answer(decision)
                }
                Step::Charge(call) => {
                    let charged = call.charge().map_or(Ok(Allowance::Unlimited), |charge| self.charge(&charge));
                    call.answer(charged)
                }
                Step::Recall(operating) => Step::Close(operating.unsupported()),
                Step::Claim(operating) => Step::Close(operating.unsupported()),
                Step::Issue(asking) => {
                    let issued = {
                        let summary = asking.summary();
                        let question = Question::of(&asking, &summary);
                        let issue = || self.issue(&question);
                        ask(&self.book, Point::Issue, |_| Ok(()), issue, || Err(IssueFault::Store))
                    };
                    asking.answer(issued)
                }
                Step::Redeem(redeeming) => {
                    let claim = || -> Result<Result<By, Refusal>, StoreFault> {
                        let mut store = self.store.try_borrow_mut().map_err(|_| StoreFault)?;
                        Ok(store.claim(redeeming.ticket(), &redeeming.presented(), self.now()))
                    };
                    let claimed = ask(&self.book, Point::Redeem, |_| Ok(()), claim, || Err(StoreFault));
                    redeeming.answer(claimed)
                }
                Step::Intercept(call) => {
                    let verdict = self.judge(world, &call.subject());
                    call.answer(verdict)
                }
                Step::Intent(mut call) => {
                    let recorded = call.intent().map_or(Ok(()), |intent| self.write(Point::Intent, &intent));
                    call.answer(recorded)
                }
                Step::Execute(call) => call.answer(|permit| self.perform(&permit)),
                Step::Close(ended) => ended.answer(self.now()),
                Step::Settle(closed) => self.settled(closed),
                Step::Record(closed) => {
                    let recorded = self.write(Point::Record, &closed.record());
                    closed.recorded(recorded)
                }
                Step::Done(outcome) => {
                    return self.seen(out, |seen| seen.raw("outcome", |out| outcome.write_json(out)));
                }
            };
        }
    }

    fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        let take = || {
            let mut limiter = self.limiter.try_borrow_mut().map_err(|_| StoreFault)?;
            Ok(limiter.charge(charge, self.now().monotonic))
        };
        match charge.mode {
            _ if !self.limits => Ok(Allowance::Unlimited),
            // Nothing is taken for a plan: that is no charge.
            ChargeMode::Probe => take(),
            ChargeMode::Take => {
                let cost = |mark: &mut Object<'_>| mark.number("cost", u64::from(charge.cost));
                ask(&self.book, Point::Charge, cost, take, || Err(StoreFault))
            }
        }
    }

    fn issue(&self, question: &Question<'_>) -> Result<Issued, IssueFault> {
        let mut store = self.store.try_borrow_mut().map_err(|_| IssueFault::Store)?;
        store.issue(question, self.ttl_ms, &self.dice, self.now())
    }

    fn write(&self, point: Point, record: &Record<'_>) -> Result<(), AuditFault> {
        let write = || {
            recorded(&self.book, record);
            Ok(())
        };
        ask(&self.book, point, |_| Ok(()), write, || Err(AuditFault))
    }

    /// Asks the interceptors, one after the other, until one says something.
    fn judge<'x>(&'x self, world: &'x World<'_>, subject: &Judged<'_>) -> Interception<Reply<'x>, &'x str> {
        for value in world.words().list("interceptors") {
            let Ok((name, tool, says)) = interceptor(value) else { return Interception::Failed("it can't be read") };
            let mark = |mark: &mut Object<'_>| {
                mark.text("by", name)?;
                shows(subject.args)(mark)
            };
            with(&self.book, |book| book.mark(Point::Intercept, mark));
            if tool.is_some_and(|tool| tool != subject.spec.name) {
                continue;
            }
            match says {
                Says::Continue => {}
                Says::Veto => return Interception::Veto("vetoed"),
                Says::Answer(value) => return Interception::Answer(Reply::Value(value)),
                Says::Fail => return Interception::Failed("failed"),
                Says::Hang => {
                    self.pass(LIMIT_MS.saturating_add(1));
                    return Interception::Failed("too late");
                }
            }
        }
        Interception::Continue
    }

    fn perform<'x>(
        &'x self,
        permit: &Permit<'_, Carried<'x>, &'x Scripted<'x>>,
    ) -> Finished<Reply<'x>, &'x str, &'x str> {
        let (tool, args) = (permit.tool(), permit.args());
        with(&self.book, |book| book.started(args));
        let limit = tool.spec().timeout_ms;
        let took = match tool.body {
            Body::Hang(ms) => ms.min(limit),
            _ => 0,
        };
        self.pass(took);
        let ran = match tool.body {
            Body::Return(value) => Ran::Done(Reply::Value(value)),
            Body::Fail(text) => Ran::Failed(text),
            Body::Hang(ms) if ms >= limit => Ran::TimedOut,
            Body::Echo | Body::Hang(_) => match tool.echo.try_borrow_mut() {
                Ok(mut echo) => {
                    echo.clear();
                    match args.write_json(&mut *echo) {
                        Ok(()) => Ran::Done(Reply::Echo(tool.echo)),
                        Err(core::fmt::Error) => Ran::Failed("the arguments have no room"),
                    }
                }
                Err(_) => Ran::Failed("the arguments have no place"),
            },
        };
        ran.after(took.saturating_mul(1_000_000))
    }

    fn settled<'x>(&self, closed: Closed<Carried<'x>, &'x Scripted<'x>>) -> Stepped<'x> {
        let settlement = closed.settlement();
        let now = self.now().monotonic;
        if let (Some(refund), Ok(mut limiter)) = (settlement.refund, self.limiter.try_borrow_mut()) {
            limiter.refund(&refund, now);
        }
        if let (Some(ticket), Ok(mut store)) = (settlement.withdraw, self.store.try_borrow_mut()) {
            store.withdraw(ticket);
        }
        if let (Some(finish), Ok(mut store)) = (settlement.finish, self.store.try_borrow_mut()) {
            let _ = store.finish(&finish);
        }
        let attempts = settlement.attempt.map(|key| match self.limiter.try_borrow_mut() {
            _ if !self.limits_attempts => Ok(Allowance::Unlimited),
            Ok(mut limiter) => Ok(limiter.attempt(&key, now)),
            Err(_) => Err(StoreFault),
        });
        closed.settled(attempts)
    }
}

/// What an interceptor says.
enum Says<'w> {
    Continue,
    Veto,
    Answer(Value<'w>),
    Fail,
    Hang,
}

fn interceptor(value: Value<'_>) -> Result<(&str, Option<&str>, Says<'_>), Trouble> {
    let words = Words::of(value, &["name", "tool", "says"])?;
    let says = words.get("says").ok_or(Error("an interceptor says nothing"))?;
    let says = if says.kind() == Kind::String {
        match crate::plain(says)? {
            "continue" => Says::Continue,
            "veto" => Says::Veto,
            "fail" => Says::Fail,
            "hang" => Says::Hang,
            "panic" => return Err(Unsupported("nothing here can panic")),
            _ => return Err(Error("what an interceptor says is not known")),
        }
    } else {
        Says::Answer(says.get("answer").ok_or(Error("what an interceptor says is not known"))?)
    };
    Ok((words.name("name")?, words.text("tool")?, says))
}

pub(crate) fn check_interceptors(world: &World<'_>) -> Result<(), Trouble> {
    let mut interceptors = world.words().list("interceptors");
    let readable = interceptors.by_ref().take(MOST).try_for_each(|value| interceptor(value).map(|_| ()));
    if interceptors.next().is_some() { Err(Unsupported("more interceptors than there is room for")) } else { readable }
}
