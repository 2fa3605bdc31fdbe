//! The host of a small device: what core keeps in memory of a fixed size, and both doors to the gate.

use core::cell::Cell;

use callgate_core::audit::{AuditFault, Record};
use callgate_core::call::{
    Asking, Call, Charge, Closed, Confirm, Ended, Finished, IssueFault, Issued, Load, Loaded, Loading, Lookup, Permit,
    Ran, StoreFault,
};
use callgate_core::confirm::{Decided, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::DigestKey;
use callgate_core::entropy::{Entropy, EntropyError};
use callgate_core::fixed::{
    AuditRing, Buffer, CallBudget, Confirmations, DecideFault, Limiter, Question, Tools, write_outcome,
};
use callgate_core::intercept::Interception;
use callgate_core::json::KeySlot;
use callgate_core::limit::{Allowance, Quota};
use callgate_core::outcome::Outcome;
use callgate_core::policy::{ChannelTable, PolicyGate, RuleDef, RuleSet, Subject};
use callgate_core::request::{Envelope, Request, Settings};
use callgate_core::step::Step;
use callgate_core::time::{Instant, Now, Timestamp};

use crate::unknown;
use crate::valve::{self, Failure, Valve};

static TOOLS: [Valve; 4] = [valve::READ, valve::MOVE, valve::ASKED, valve::APPROVED];

const RULES: RuleSet<'static> = RuleSet::new(&[
    RuleDef::allow(1),
    RuleDef::deny(2).for_tools("valve.*").by_principal("mallory").described("not for Mallory"),
]);

/// What may be spent on each tool: enough for all reads of the checks, and for one move.
const QUOTA: u32 = 5;

/// How many refused calls a caller may make.
const ATTEMPTS: u32 = 50;

/// How many calls a session may make: as many as the local shell makes in the checks.
const CALLS: u32 = 17;

/// How long a question waits, in milliseconds.
const TTL_MS: u64 = 60_000;

/// The most bytes of text that a ticket keeps.
const TEXT: usize = 512;

type Ends<'a> = Ended<Envelope<'a>, &'static Valve>;

/// Which way a call goes through the gate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Stages,
    Steps,
}

/// What the interceptors of this device say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Easy,
    Veto,
    Cached,
}

/// What a caller sends.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a str,
    pub(crate) token: Option<&'a str>,
    pub(crate) caller: CallContext<'a>,
}

pub(crate) struct Host {
    key: DigestKey,
    store: Confirmations<2, TEXT>,
    limiter: Limiter<8>,
    budget: CallBudget<6>,
    dice: Dice,
    pub(crate) door: Door,
    pub(crate) mood: Mood,
    pub(crate) log_is_full: bool,
    /// How often a tool's body ran.
    pub(crate) runs: u32,
    /// The whole log.
    pub(crate) log: AuditRing<40_960>,
    /// The same log, of which only the latest lines are kept.
    pub(crate) tail: AuditRing<2_048>,
    /// The last outcome.
    pub(crate) outcome: Buffer<2_048>,
}

impl Host {
    pub(crate) fn new(door: Door) -> Self {
        let quota = |limit| Quota::per_window(unknown(limit), 60_000).ok();
        let mut store = Confirmations::new().with_at_most_per_principal(unknown(2));
        store.attach_approvers(true);
        Self {
            key: DigestKey::new(unknown([7; 32])),
            store,
            limiter: Limiter::new(quota(QUOTA), quota(ATTEMPTS)),
            budget: CallBudget::new(unknown(CALLS)),
            dice: Dice(Cell::new(0)),
            door,
            mood: Mood::Easy,
            log_is_full: false,
            runs: 0,
            log: AuditRing::new(),
            tail: AuditRing::new(),
            outcome: Buffer::new(),
        }
    }

    /// Takes one call through the gate and keeps what came out as text. False when the outcome has no room.
    pub(crate) fn call(&mut self, sent: &Sent<'_>) -> bool {
        let mut keys = [KeySlot::default(); 16];
        let mut snapshot = [0; TEXT];
        let key = self.key.clone();
        let request = Request {
            tool: unknown(sent.tool),
            arguments: unknown(sent.arguments.as_bytes()),
            token: unknown(sent.token),
        };
        let envelope = Envelope::new(unknown(sent.caller), request, Settings::new(&key), &mut keys);
        let outcome = match unknown(self.door) {
            Door::Stages => self.through_stages(envelope, &mut snapshot),
            Door::Steps => self.through_steps(envelope, &mut snapshot),
        };
        matches!(write_outcome(&outcome, &mut self.outcome), Ok(true))
    }

    fn through_stages<'a>(
        &mut self,
        envelope: Envelope<'a>,
        snapshot: &'a mut [u8; TEXT],
    ) -> Outcome<Envelope<'a>, &'static Valve> {
        let (Ok(ended) | Err(ended)) = self.stages(envelope, snapshot);
        let mut closed = ended.close(now());
        self.settle(&mut closed);
        let answer = self.record(&closed.record());
        closed.audited(answer)
    }

    #[expect(clippy::result_large_err, reason = "an ended call is a value of the pipeline, moved once")]
    fn stages<'a>(&mut self, envelope: Envelope<'a>, snapshot: &'a mut [u8; TEXT]) -> Result<Ends<'a>, Ends<'a>> {
        let call = Call::request(envelope, now());
        if let Err(why) = self.budget.take(&call.caller()) {
            return Err(call.turn_away(why));
        }
        let found = find(call.asked().tool);
        let call = match call.resolve(found)? {
            Load::Fresh(call) => call,
            Load::Stored(loading) => {
                let found = self.load(&loading, snapshot);
                loading.loaded(found)?
            }
        };
        let call = call.validate()?;
        let decision = gate().decide_with(&call.subject(), &RULES);
        let call = call.authorize(decision)?;
        let allowance = self.charge(call.charge());
        let call = call.admit(allowance)?.unless_planning()?;
        let call = match call.confirm()? {
            Confirm::NotNeeded(call) => call,
            Confirm::Ask(asking) => {
                let issued = self.issue(&asking);
                return Err(asking.asked(issued));
            }
            Confirm::Redeem(redeeming) => {
                let claimed = self.store.claim(redeeming.ticket(), &redeeming.presented(), now());
                redeeming.redeemed(Ok(claimed))?
            }
        };
        let verdict = self.judge(&call.subject());
        let mut call = call.intercept(verdict)?;
        let recorded = call.intent().map_or(Ok(()), |intent| self.record(&intent));
        let call = call.announce(recorded)?;
        Ok(call.execute(|permit| self.run(permit)))
    }

    /// The same calls with the stage kept in a variable between two replies, as a device with interrupts would.
    fn through_steps<'a>(
        &mut self,
        envelope: Envelope<'a>,
        snapshot: &'a mut [u8; TEXT],
    ) -> Outcome<Envelope<'a>, &'static Valve> {
        let mut room = Some(snapshot);
        let mut step = Step::start(envelope, now());
        loop {
            step = match step {
                Step::Find(call) => match self.budget.take(&call.caller()) {
                    Ok(()) => {
                        let found = find(call.asked().tool);
                        call.found(found)
                    }
                    Err(why) => call.turned_away(why),
                },
                Step::Load(loading) => {
                    let found = match room.take() {
                        Some(room) => self.load(&loading, room),
                        None => Err(StoreFault),
                    };
                    loading.answer(found)
                }
                Step::Authorize(call) => {
                    let decision = gate().decide_with(&call.subject(), &RULES);
                    call.answer(decision)
                }
                Step::Charge(call) => {
                    let allowance = self.charge(call.charge());
                    call.answer(allowance)
                }
                Step::Recall(operating) => Step::Close(operating.unsupported()),
                Step::Claim(operating) => Step::Close(operating.unsupported()),
                Step::Issue(asking) => {
                    let issued = self.issue(&asking);
                    asking.answer(issued)
                }
                Step::Redeem(redeeming) => {
                    let claimed = self.store.claim(redeeming.ticket(), &redeeming.presented(), now());
                    redeeming.answer(Ok(claimed))
                }
                Step::Intercept(call) => {
                    let verdict = self.judge(&call.subject());
                    call.answer(verdict)
                }
                Step::Intent(mut call) => {
                    let recorded = call.intent().map_or(Ok(()), |intent| self.record(&intent));
                    call.answer(recorded)
                }
                Step::Execute(call) => call.answer(|permit| self.run(permit)),
                Step::Close(ended) => ended.answer(now()),
                Step::Settle(mut closed) => {
                    self.settle(&mut closed);
                    closed.settled(None)
                }
                Step::Record(closed) => {
                    let answer = self.record(&closed.record());
                    closed.recorded(answer)
                }
                Step::Done(outcome) => return outcome,
            };
        }
    }

    fn load<'a>(
        &mut self,
        loading: &Loading<Envelope<'_>, &Valve>,
        room: &'a mut [u8; TEXT],
    ) -> Result<Option<Loaded<&'a [u8]>>, StoreFault> {
        loading.ticket().map_or(Ok(None), |ticket| self.store.load(ticket, room, now()))
    }

    fn issue(&mut self, asking: &Asking<Envelope<'_>, &Valve>) -> Result<Issued, IssueFault> {
        let summary = asking.summary();
        self.store.issue(&Question::of(asking, &summary), TTL_MS, &self.dice, now())
    }

    /// Lets `approver` decide the first question that it can.
    pub(crate) fn decide(&mut self, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        let first = self.store.pending(approver, now()).next().map(|pending| pending.ticket);
        self.store.decide(first.ok_or(DecideFault::Unknown)?, verdict, approver, now())
    }

    /// Whether the summary of the question that `approver` could decide holds `text`.
    pub(crate) fn shows(&mut self, text: &str, approver: &CallContext<'_>) -> bool {
        self.store.pending(approver, now()).any(|pending| crate::buffer::has(pending.summary, text))
    }

    fn charge(&mut self, charge: Option<Charge<'_>>) -> Result<Allowance, StoreFault> {
        Ok(charge.map_or(Allowance::Unlimited, |charge| self.limiter.charge(&charge, now().monotonic)))
    }

    fn judge(&self, subject: &Subject<'_>) -> Interception<&'static str, &'static str> {
        match self.mood {
            Mood::Veto => Interception::Veto("no water today"),
            Mood::Cached if !subject.spec.mutating => Interception::Answer("as before"),
            _ => Interception::Continue,
        }
    }

    fn run(&mut self, permit: Permit<'_, Envelope<'_>, &Valve>) -> Finished<&'static str, Failure, &'static str> {
        self.runs = self.runs.saturating_add(1);
        match Valve::run(permit, &mut [0; 64]) {
            Ok(output) => Ran::Done(output),
            Err(failure) => Ran::Failed(failure),
        }
        .after(unknown(3_000))
    }

    fn settle(&mut self, closed: &mut Closed<Envelope<'_>, &'static Valve>) {
        let settlement = closed.settlement();
        if let Some(refund) = settlement.refund {
            self.limiter.refund(&refund, now().monotonic);
        }
        if let Some(ticket) = settlement.withdraw {
            self.store.withdraw(ticket);
        }
        if let Some(finish) = settlement.finish {
            // A ticket that is not this call's any more stays as it is.
            let _ = self.store.finish(&finish);
        }
        if let Some(key) = settlement.attempt {
            let attempts = self.limiter.attempt(&key, now().monotonic);
            closed.settle(Ok(attempts));
        }
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), AuditFault> {
        if self.log_is_full {
            return Err(AuditFault);
        }
        self.tail.record(record)?;
        self.log.record(record)
    }
}

fn gate() -> PolicyGate<'static> {
    PolicyGate::new(ChannelTable::DEFAULTS)
}

fn find(name: &str) -> Lookup<&'static Valve> {
    Tools::new(&TOOLS).map_or(Lookup::Unknown, |tools| tools.find(name))
}

/// Both doors draw the same; a device draws from its source of randomness.
struct Dice(Cell<u8>);

impl Entropy for Dice {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        self.0.set(self.0.get().wrapping_add(1));
        bytes.fill(self.0.get());
        Ok(())
    }
}

fn now() -> Now {
    Now {
        monotonic: Instant::from_nanos(unknown(1_000_000_000)),
        wall: Timestamp::from_unix_millis(unknown(1_796_000_329_007)),
    }
}
