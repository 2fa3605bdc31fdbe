//! The host of a small device: stores in arrays, a log in a buffer, and both doors to the gate.

use core::fmt::Write as _;

use callgate_core::audit::chain::Head;
use callgate_core::audit::{AuditFault, Record};
use callgate_core::call::{
    Call, Charge, ChargeMode, Closed, Confirm, Ended, Finished, Load, Lookup, Permit, Ran, StoreFault,
};
use callgate_core::context::CallContext;
use callgate_core::digest::DigestKey;
use callgate_core::intercept::Interception;
use callgate_core::json::KeySlot;
use callgate_core::limit::{Allowance, Bucket, Quota};
use callgate_core::outcome::Outcome;
use callgate_core::policy::{ChannelTable, PolicyGate, RuleDef, RuleSet, Subject};
use callgate_core::request::{Envelope, Request, Settings};
use callgate_core::step::Step;
use callgate_core::time::{Instant, Now, Timestamp};
use callgate_core::tool::Tool;

use crate::buffer::Buffer;
use crate::store::{SNAPSHOT, Store};
use crate::unknown;
use crate::valve::{self, Failure, Valve};

const TOOLS: [Valve; 3] = [valve::READ, valve::MOVE, valve::ASKED];

const RULES: RuleSet<'static> = RuleSet::new(&[
    RuleDef::allow(1),
    RuleDef::deny(2).for_tools("valve.*").by_principal("mallory").described("not for Mallory"),
]);

/// What may be spent: enough for all calls of the checks but the last.
const QUOTA: u32 = 15;

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
    store: Store,
    bucket: Bucket,
    head: Head,
    pub(crate) door: Door,
    pub(crate) mood: Mood,
    pub(crate) log_is_full: bool,
    /// How often a tool's body ran.
    pub(crate) runs: u32,
    /// The lines of the log, each with its line break.
    pub(crate) log: Buffer<16_384>,
    /// The last outcome.
    pub(crate) outcome: Buffer<2_048>,
}

impl Host {
    pub(crate) fn new(door: Door) -> Self {
        Self {
            key: DigestKey::new(unknown([7; 32])),
            store: Store::new(),
            bucket: Bucket::FRESH,
            head: Head::EMPTY,
            door,
            mood: Mood::Easy,
            log_is_full: false,
            runs: 0,
            log: Buffer::new(),
            outcome: Buffer::new(),
        }
    }

    /// Takes one call through the gate and keeps what came out as text. False when the outcome has no room.
    pub(crate) fn call(&mut self, sent: &Sent<'_>) -> bool {
        let mut keys = [KeySlot::default(); 16];
        let mut snapshot = [0; SNAPSHOT];
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
        self.outcome.clear();
        outcome.write_json(&mut self.outcome).is_ok()
    }

    fn through_stages<'a>(
        &mut self,
        envelope: Envelope<'a>,
        snapshot: &'a mut [u8; SNAPSHOT],
    ) -> Outcome<Envelope<'a>, &'static Valve> {
        let (Ok(ended) | Err(ended)) = self.stages(envelope, snapshot);
        let mut closed = ended.close(now());
        self.settle(&mut closed);
        let answer = self.record(&closed.record());
        closed.audited(answer)
    }

    #[expect(clippy::result_large_err, reason = "an ended call is a value of the pipeline, moved once")]
    fn stages<'a>(&mut self, envelope: Envelope<'a>, snapshot: &'a mut [u8; SNAPSHOT]) -> Result<Ends<'a>, Ends<'a>> {
        let call = Call::request(envelope, now());
        let found = find(call.asked().tool);
        let call = match call.resolve(found)? {
            Load::Fresh(call) => call,
            Load::Stored(loading) => {
                let found = self.store.load(loading.ticket(), now().wall, snapshot);
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
                let issued = self.store.issue(&asking, now().wall);
                return Err(asking.asked(issued));
            }
            Confirm::Redeem(redeeming) => {
                let claimed = self.store.claim(&redeeming, now().wall);
                redeeming.redeemed(claimed)?
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
        snapshot: &'a mut [u8; SNAPSHOT],
    ) -> Outcome<Envelope<'a>, &'static Valve> {
        let mut room = Some(snapshot);
        let mut step = Step::start(envelope, now());
        loop {
            step = match step {
                Step::Find(call) => {
                    let found = find(call.asked().tool);
                    call.found(found)
                }
                Step::Load(loading) => {
                    let found = match room.take() {
                        Some(room) => self.store.load(loading.ticket(), now().wall, room),
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
                Step::Issue(asking) => {
                    let issued = self.store.issue(&asking, now().wall);
                    asking.answer(issued)
                }
                Step::Redeem(redeeming) => {
                    let claimed = self.store.claim(&redeeming, now().wall);
                    redeeming.answer(claimed)
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

    fn charge(&mut self, charge: Option<Charge<'_>>) -> Result<Allowance, StoreFault> {
        let Some(charge) = charge else { return Ok(Allowance::Unlimited) };
        let quota = Quota::per_window(unknown(QUOTA), 60_000).map_err(|_| StoreFault)?;
        let answer = match charge.mode {
            ChargeMode::Take => quota.charge(self.bucket, charge.cost, now().monotonic),
            ChargeMode::Probe => quota.peek(self.bucket, charge.cost, now().monotonic),
        };
        if let Allowance::Granted { bucket, .. } = answer {
            self.bucket = bucket;
        }
        Ok(answer)
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
        if let (Some(refund), Ok(quota)) = (settlement.refund, Quota::per_window(unknown(QUOTA), 60_000)) {
            self.bucket = quota.refund(self.bucket, refund.receipt, refund.units, now().monotonic);
        }
        if let Some(ticket) = settlement.withdraw {
            self.store.withdraw(ticket);
        }
        if settlement.attempt.is_some() {
            closed.settle(Ok(Allowance::Unlimited));
        }
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), AuditFault> {
        if self.log_is_full {
            return Err(AuditFault);
        }
        let mut line = Buffer::<1_536>::new();
        let head = self.head.append(record, &mut line).map_err(|_| AuditFault)?;
        writeln!(self.log, "{}", line.as_str()).map_err(|_| AuditFault)?;
        self.head = head;
        Ok(())
    }
}

fn gate() -> PolicyGate<'static> {
    PolicyGate::new(ChannelTable::DEFAULTS)
}

fn find(name: &str) -> Lookup<&'static Valve> {
    match TOOLS.iter().find(|tool| tool.spec().name == name) {
        Some(tool) => Lookup::Found(tool),
        None => Lookup::Unknown,
    }
}

fn now() -> Now {
    Now {
        monotonic: Instant::from_nanos(unknown(1_000_000_000)),
        wall: Timestamp::from_unix_millis(unknown(1_796_000_329_007)),
    }
}
