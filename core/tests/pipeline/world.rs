//! A scripted host: every answer that the gate can get, and a transcript of what it asked.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use callgate_core::args::Args;
use callgate_core::audit::{AuditFault, Record, chain::Head};
use callgate_core::call::{
    Asking, Call, Cleared, Closed, Confirm, Confirmed, End, Ended, Finished, IssueFault, Issued, Load, Loaded, Loading,
    Lookup, Operate, Permit, Ran, Redeeming, StoreFault,
};
use callgate_core::clamp::Clamp;
use callgate_core::code::Code;
use callgate_core::confirm::{Asked, By, DecideError, Decided, Refusal, Ticket, Token, Verdict};
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::intercept::Interception;
use callgate_core::journal::{Operation, OperationRefusal, OperationState, PresentedOperation, Recalled};
use callgate_core::json::KeySlot;
use callgate_core::limit::{Allowance, Bucket, Quota, Receipt};
use callgate_core::outcome::Outcome;
use callgate_core::policy::{ChannelTable, Decision, Denial, PolicyGate, Reason, RuleFault, Subject};
use callgate_core::request::{Envelope, Request, Settings};
use callgate_core::schema::{Property, Schema};
use callgate_core::step::Step;
use callgate_core::time::{Instant, Now, Timestamp};
use callgate_core::tool::{ConfirmBy, FieldRule, Tool, ToolSpec, Violation};

pub(crate) const CLAMPED: &[FieldRule<'static>] =
    &[FieldRule::clamp("/max", Clamp::range(1, 100)), FieldRule::secret("/password")];

/// How a store answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Good,
    Refuses,
    Fails,
}

/// What interceptors say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Says {
    Continue,
    Answer,
    BadAnswer,
    Veto,
    Fails,
}

/// How the tool's body behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    Returns,
    ReturnsBadOutput,
    Fails,
    Panics,
    TimesOut,
    IsCancelled,
}

/// One world: a tool, and what every part of the host answers.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) tool_known: bool,
    pub(crate) hidden: bool,
    pub(crate) mutating: bool,
    pub(crate) confirm: ConfirmBy<'static>,
    pub(crate) scopes: &'static str,
    pub(crate) policy: Option<Answer>,
    pub(crate) limiter: Answer,
    pub(crate) issue: Answer,
    pub(crate) load: Answer,
    pub(crate) claim: Answer,
    pub(crate) says: Says,
    pub(crate) intent: Answer,
    pub(crate) body: Body,
    pub(crate) terminal: Answer,
    pub(crate) attempts: Answer,
    /// The id of the operation that calls are of, where nothing else is said.
    pub(crate) operation: Option<&'static str>,
    /// What the journal says before a yes is asked for, to a claim, and to what became of it.
    pub(crate) recalls: Answer,
    pub(crate) takes: Answer,
    pub(crate) keeps: Answer,
}

impl World {
    /// A world in which everything goes well.
    pub(crate) const fn good() -> Self {
        Self {
            tool_known: true,
            hidden: false,
            mutating: false,
            confirm: ConfirmBy::Nobody,
            scopes: "",
            policy: None,
            limiter: Answer::Good,
            issue: Answer::Good,
            load: Answer::Good,
            claim: Answer::Good,
            says: Says::Continue,
            intent: Answer::Good,
            body: Body::Returns,
            terminal: Answer::Good,
            attempts: Answer::Good,
            operation: None,
            recalls: Answer::Good,
            takes: Answer::Good,
            keeps: Answer::Good,
        }
    }
}

/// The tool of a world.
pub(crate) struct Probe {
    spec: ToolSpec<'static>,
    schema: Schema<'static>,
}

impl Tool for Probe {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.spec
    }

    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        self.schema.validate(args, report);
    }

    fn validate_output(&self, output: &&'static str, report: &mut dyn FnMut(Violation<'_>)) {
        if *output == "bad" {
            report(Violation { field: &"", reason: &"must not be bad" });
        }
    }
}

/// A host with stores of its own, and a memory of all that it was asked.
pub(crate) struct Host {
    pub(crate) world: World,
    pub(crate) tool: Probe,
    pub(crate) channels: ChannelTable<'static>,
    pub(crate) key: DigestKey,
    tickets: RefCell<BTreeMap<[u8; 32], (Ticket, Vec<u8>)>>,
    /// Operations, each with its result.
    journal: RefCell<BTreeMap<[u8; 32], (Operation, Option<&'static str>)>>,
    /// The id of the operation that the next calls are of.
    pub(crate) operation: Cell<Option<&'static str>>,
    bucket: Cell<Bucket>,
    head: Cell<Head>,
    next_token: Cell<u8>,
    pub(crate) now: Cell<u64>,
    /// How long the tool's body says that it took, in nanoseconds.
    pub(crate) spent_ns: Cell<u64>,
    /// How far the clock goes on while it runs, in milliseconds.
    pub(crate) runs_ms: Cell<u64>,
    pub(crate) transcript: RefCell<Vec<String>>,
    pub(crate) lines: RefCell<Vec<String>>,
    pub(crate) effects: Cell<u32>,
    pub(crate) executed_args: RefCell<Vec<String>>,
}

pub(crate) struct Sent<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a [u8],
    pub(crate) token: Option<&'a str>,
    pub(crate) caller: CallContext<'a>,
}

type Ends<'a> = Ended<Envelope<'a>, &'a Probe>;

impl Host {
    pub(crate) fn new(world: World) -> Self {
        const PROPERTIES: &[Property<'static>] = &[
            Property::required("path", Schema::string()),
            Property::optional("max", Schema::integer()),
            Property::optional("password", Schema::string()),
        ];
        let mut spec = ToolSpec::new("probe", "A tool under test").with_fields(CLAMPED).with_confirm(world.confirm);
        spec.mutating = world.mutating;
        spec.scopes = Scopes::new(world.scopes);
        let operation = Cell::new(world.operation);
        Self {
            world,
            tool: Probe { spec, schema: Schema::object(PROPERTIES) },
            channels: ChannelTable::DEFAULTS,
            key: DigestKey::new([9; 32]),
            tickets: RefCell::default(),
            journal: RefCell::default(),
            operation,
            bucket: Cell::new(Bucket::FRESH),
            head: Cell::new(Head::EMPTY),
            next_token: Cell::new(1),
            now: Cell::new(1_000_000),
            spent_ns: Cell::new(5_000_000),
            runs_ms: Cell::new(0),
            transcript: RefCell::default(),
            lines: RefCell::default(),
            effects: Cell::new(0),
            executed_args: RefCell::default(),
        }
    }

    fn note(&self, what: impl Into<String>) {
        self.transcript.borrow_mut().push(what.into());
    }

    pub(crate) fn clock(&self) -> Now {
        Now {
            monotonic: Instant::from_nanos(self.now.get() * 1_000_000),
            wall: Timestamp::from_unix_millis(self.now.get()),
        }
    }

    fn find(&self, name: &str) -> Lookup<&Probe> {
        self.note("find");
        match (name == "probe" && self.world.tool_known, self.world.hidden) {
            (true, false) => Lookup::Found(&self.tool),
            (true, true) => Lookup::Hidden,
            (false, _) => Lookup::Unknown,
        }
    }

    fn load<'a>(
        &'a self,
        ticket: Option<Digest>,
        slot: &'a mut Vec<u8>,
    ) -> Result<Option<Loaded<&'a [u8]>>, StoreFault> {
        self.note("load");
        match self.world.load {
            Answer::Fails => Err(StoreFault),
            Answer::Refuses => Ok(None),
            Answer::Good => {
                let tickets = self.tickets.borrow();
                let Some((ticket, arguments)) = ticket.and_then(|ticket| tickets.get(ticket.as_bytes())) else {
                    return Ok(None);
                };
                slot.clone_from(arguments);
                let usable = ticket.usable(self.clock().wall);
                Ok(Some(Loaded { binding: ticket.binding, usable, arguments: slot }))
            }
        }
    }

    fn decide(&self, subject: &Subject<'_>) -> Decision<&'static str> {
        self.note("decide");
        match self.world.policy {
            None | Some(Answer::Good) => PolicyGate::new(self.channels).decide(subject),
            Some(Answer::Refuses) => Decision::Deny(Denial {
                reason: Reason::DeniedByRule { rule: 7, description: None },
                unknown_channel: false,
            }),
            Some(Answer::Fails) => {
                Decision::Deny(Denial { reason: Reason::Fault(RuleFault::Unavailable), unknown_channel: false })
            }
        }
    }

    fn charge(&self, charge: Option<callgate_core::call::Charge<'_>>) -> Result<Allowance, StoreFault> {
        let Some(charge) = charge else { return Ok(Allowance::Unlimited) };
        self.note(format!("charge {} {:?}", charge.cost, charge.mode));
        match self.world.limiter {
            Answer::Fails => Err(StoreFault),
            Answer::Refuses => Ok(Allowance::Refused { retry_after_ns: Some(1_500_000_000) }),
            Answer::Good => {
                let now = self.clock().monotonic;
                let answer = match charge.mode {
                    callgate_core::call::ChargeMode::Take => Quota::DEFAULT.charge(self.bucket.get(), charge.cost, now),
                    callgate_core::call::ChargeMode::Probe => Quota::DEFAULT.peek(self.bucket.get(), charge.cost, now),
                };
                if let Allowance::Granted { bucket, .. } = answer {
                    self.bucket.set(bucket);
                }
                Ok(answer)
            }
        }
    }

    /// How many units are left.
    pub(crate) fn remaining(&self) -> u32 {
        Quota::DEFAULT.remaining(self.bucket.get(), self.clock().monotonic)
    }

    fn issue<'a>(&self, asking: &Asking<Envelope<'a>, &'a Probe>) -> Result<Issued, IssueFault> {
        self.note("issue");
        match self.world.issue {
            Answer::Fails => Err(IssueFault::Store),
            Answer::Refuses => Err(IssueFault::Full),
            Answer::Good => {
                let token = Token::from_random([self.next_token.replace(self.next_token.get() + 1); 16]);
                let ticket = Ticket::issue(asking.binding(), asking.by(), self.clock().wall, 60_000);
                self.tickets.borrow_mut().insert(*token.hash().as_bytes(), (ticket, asking.snapshot().to_vec()));
                Ok(Issued { token, expires_at: ticket.expires_at })
            }
        }
    }

    fn claim<'a>(&self, redeeming: &Redeeming<Envelope<'a>, &'a Probe>) -> Result<Result<By, Refusal>, StoreFault> {
        self.note("claim");
        match self.world.claim {
            Answer::Fails => Err(StoreFault),
            Answer::Refuses => Ok(Err(Refusal::Used)),
            Answer::Good => {
                let mut tickets = self.tickets.borrow_mut();
                let Some((ticket, _)) = tickets.get_mut(redeeming.ticket().as_bytes()) else {
                    return Ok(Err(Refusal::Unknown));
                };
                Ok(ticket.claim(&redeeming.presented(), self.clock().wall).map(|()| ticket.by))
            }
        }
    }

    /// What the journal answers, claiming if it is asked to.
    fn operate(
        &self,
        presented: &PresentedOperation,
        answer: Answer,
        claims: bool,
    ) -> Result<Result<Recalled<&'static str>, OperationRefusal>, StoreFault> {
        self.note(if claims { "take" } else { "recall" });
        match answer {
            Answer::Fails => Err(StoreFault),
            Answer::Refuses => Ok(Err(OperationRefusal::Full)),
            Answer::Good => {
                let (mut journal, now) = (self.journal.borrow_mut(), self.clock().wall);
                let kept = journal.get(presented.key.as_bytes()).copied();
                let operation = kept.map(|(operation, _)| operation);
                let free = if claims {
                    Operation::claim(operation.as_ref(), presented, now).map(|claimed| {
                        claimed.map(|claimed| {
                            let _ = journal.insert(*presented.key.as_bytes(), (claimed, None));
                            claimed.attempt
                        })
                    })
                } else {
                    Operation::look(operation.as_ref(), presented, now).map(|found| match found {
                        Recalled::Free(attempt) => Some(attempt),
                        Recalled::Completed(()) => None,
                    })
                };
                Ok(match free {
                    Err(refusal) => Err(refusal),
                    Ok(Some(attempt)) => Ok(Recalled::Free(attempt)),
                    Ok(None) => {
                        kept.and_then(|(_, result)| result).map(Recalled::Completed).ok_or(OperationRefusal::NotKept)
                    }
                })
            }
        }
    }

    /// Where the operations stand, and their attempts.
    pub(crate) fn operations(&self) -> Vec<(OperationState, u32)> {
        self.journal.borrow().values().map(|(operation, _)| (operation.state, operation.attempt.get())).collect()
    }

    /// Puts another result in the place of those that are kept.
    pub(crate) fn forge_results(&self, result: &'static str) {
        self.journal.borrow_mut().values_mut().for_each(|(_, kept)| *kept = Some(result));
    }

    fn judge(&self, _: &Subject<'_>) -> Interception<&'static str, &'static str> {
        self.note("judge");
        match self.world.says {
            Says::Continue => Interception::Continue,
            Says::Answer => Interception::Answer("cached"),
            Says::BadAnswer => Interception::Answer("bad"),
            Says::Veto => Interception::Veto("not today"),
            Says::Fails => Interception::Failed("broke"),
        }
    }

    fn record(&self, record: &Record<'_>, answer: Answer) -> Result<(), AuditFault> {
        self.note(format!("record {}", record.kind.as_str()));
        if answer != Answer::Good {
            return Err(AuditFault);
        }
        let mut line = String::new();
        let head = self.head.get().append(record, &mut line).map_err(|_| AuditFault)?;
        assert_eq!(self.head.get().verify(&line), Ok(head), "{line}");
        self.head.set(head);
        self.lines.borrow_mut().push(line);
        Ok(())
    }

    fn run<'a>(
        &self,
        permit: Permit<'_, Envelope<'a>, &'a Probe>,
    ) -> Finished<&'static str, &'static str, &'static str> {
        self.note("run");
        self.effects.set(self.effects.get() + 1);
        self.now.set(self.now.get() + self.runs_ms.get());
        let mut text = String::new();
        permit.args().write_json(&mut text).expect("a string takes all");
        self.executed_args.borrow_mut().push(text);
        match self.world.body {
            Body::Returns => Ran::Done("done"),
            Body::ReturnsBadOutput => Ran::Done("bad"),
            Body::Fails => Ran::Failed("it broke"),
            Body::Panics => Ran::Panicked("a panic's text"),
            Body::TimesOut => Ran::TimedOut,
            Body::IsCancelled => Ran::Cancelled,
        }
        .after(self.spent_ns.get())
    }

    fn settle<'a>(&self, closed: &mut Closed<Envelope<'a>, &'a Probe>) {
        let settlement = closed.settlement();
        if settlement.is_empty() {
            return;
        }
        if let Some(refund) = settlement.refund {
            self.note(format!("refund {}", refund.units));
            assert_ne!(refund.receipt, Receipt::NONE);
            self.bucket.set(Quota::DEFAULT.refund(
                self.bucket.get(),
                refund.receipt,
                refund.units,
                self.clock().monotonic,
            ));
        }
        if let Some(ticket) = settlement.withdraw {
            self.note("withdraw");
            if let Some((ticket, _)) = self.tickets.borrow_mut().get_mut(ticket.as_bytes()) {
                ticket.cancel();
            }
        }
        if let Some(finish) = settlement.finish {
            self.note(format!("finish {}", finish.effect.as_str()));
            if let Some((ticket, _)) = self.tickets.borrow_mut().get_mut(finish.ticket.as_bytes()) {
                let _ = ticket.finish(finish.call, finish.effect);
            }
        }
        let operation = settlement.operation;
        if let Some(finish) = operation {
            self.note(format!("keep {}", finish.effect.as_str()));
            if self.world.keeps == Answer::Fails {
                closed.kept(Err(StoreFault));
            } else if let Some((operation, result)) = self.journal.borrow_mut().get_mut(finish.key.as_bytes()) {
                let told = operation.settle(finish.attempt, finish.effect, self.clock().wall);
                if let (Ok(()), End::Done(output)) = (told, closed.end()) {
                    *result = Some(*output);
                }
            }
        }
        if closed.settlement().attempt.is_some() {
            self.note("attempt");
            closed.settle(match self.world.attempts {
                Answer::Good => Ok(Allowance::Unlimited),
                Answer::Refuses => Ok(Allowance::Refused { retry_after_ns: Some(2_000_000_000) }),
                Answer::Fails => Err(StoreFault),
            });
        }
    }

    fn envelope<'a>(&'a self, sent: &Sent<'a>, keys: &'a mut [KeySlot]) -> Envelope<'a> {
        let request = Request { tool: sent.tool, arguments: sent.arguments, token: sent.token };
        let envelope = Envelope::new(sent.caller, request, Settings::new(&self.key), keys);
        match self.operation.get() {
            Some(operation) => envelope.of_operation(operation),
            None => envelope,
        }
    }

    /// Drives the call through the typed stages.
    pub(crate) fn linear<R>(&self, sent: &Sent<'_>, look: impl FnOnce(&Outcome<Envelope<'_>, &Probe>) -> R) -> R {
        let mut keys = [KeySlot::default(); 64];
        let mut slot = Vec::new();
        let (Ok(ended) | Err(ended)) = self.stages(self.envelope(sent, &mut keys), &mut slot);
        let mut closed = ended.close(self.clock());
        self.settle(&mut closed);
        let answer = self.record(&closed.record(), self.world.terminal);
        look(&closed.audited(answer))
    }

    fn stages<'a>(&'a self, envelope: Envelope<'a>, slot: &'a mut Vec<u8>) -> Result<Ends<'a>, Ends<'a>> {
        let call = Call::request(envelope, self.clock());
        let found = self.find(call.asked().tool);
        let call = match call.resolve(found)? {
            Load::Fresh(call) => call,
            Load::Stored(loading) => {
                let found = self.load(loading.ticket(), slot);
                loading.loaded(found)?
            }
        };
        let call = call.validate()?;
        let decision = self.decide(&call.subject());
        let call = call.authorize(decision)?;
        let allowance = self.charge(call.charge());
        let call = match call.admit(allowance)?.unless_planning()?.recall()? {
            Operate::NotNeeded(call) => call,
            Operate::Ask(operating) => {
                let recalled = self.operate(&operating.presented(), self.world.recalls, false);
                operating.recalled(recalled)?
            }
        };
        let call = match call.confirm()? {
            Confirm::NotNeeded(call) => call,
            Confirm::Ask(asking) => {
                let issued = self.issue(&asking);
                return Err(asking.asked(issued));
            }
            Confirm::Redeem(redeeming) => {
                let claimed = self.claim(&redeeming);
                redeeming.redeemed(claimed)?
            }
        };
        let verdict = self.judge(&call.subject());
        let mut call = match call.intercept(verdict)?.claim()? {
            Operate::NotNeeded(call) => call,
            Operate::Ask(operating) => {
                let claimed = self.operate(&operating.presented(), self.world.takes, true);
                operating.claimed(claimed)?
            }
        };
        let recorded = match call.intent() {
            Some(intent) => self.record(&intent, self.world.intent),
            None => Ok(()),
        };
        let call = call.announce(recorded)?;
        Ok(call.execute(|permit| self.run(permit)))
    }

    /// Drives the call through `Step`, parking it in a field before every reply.
    pub(crate) fn stepped<R>(&self, sent: &Sent<'_>, look: impl FnOnce(&Outcome<Envelope<'_>, &Probe>) -> R) -> R {
        let mut keys = [KeySlot::default(); 64];
        let mut slot = Vec::new();
        let mut slot = Some(&mut slot);
        let mut parked = Some(Step::start(self.envelope(sent, &mut keys), self.clock()));
        loop {
            let step = parked.take().expect("a call is parked");
            parked = Some(match step {
                Step::Find(call) => {
                    let found = self.find(call.asked().tool);
                    call.found(found)
                }
                Step::Load(loading) => self.reply_load(loading, slot.take().expect("loaded once")),
                Step::Authorize(call) => {
                    let decision = self.decide(&call.subject());
                    call.answer(decision)
                }
                Step::Charge(call) => {
                    let allowance = self.charge(call.charge());
                    call.answer(allowance)
                }
                Step::Recall(operating) => {
                    let recalled = self.operate(&operating.presented(), self.world.recalls, false);
                    operating.answer(recalled)
                }
                Step::Claim(operating) => {
                    let claimed = self.operate(&operating.presented(), self.world.takes, true);
                    operating.answer(claimed)
                }
                Step::Issue(asking) => {
                    let issued = self.issue(&asking);
                    asking.answer(issued)
                }
                Step::Redeem(redeeming) => {
                    let claimed = self.claim(&redeeming);
                    redeeming.answer(claimed)
                }
                Step::Intercept(call) => self.reply_judge(call),
                Step::Intent(call) => self.reply_intent(call),
                Step::Execute(call) => {
                    let mut executing = call.begin();
                    let permit = executing.permit().expect("the first permit");
                    let finished = self.run(permit);
                    assert!(executing.permit().is_none(), "G1: a permit is minted once");
                    Step::Close(executing.finished(finished))
                }
                Step::Close(ended) => ended.answer(self.clock()),
                Step::Settle(mut closed) => {
                    self.settle(&mut closed);
                    closed.settled(None)
                }
                Step::Record(closed) => {
                    let answer = self.record(&closed.record(), self.world.terminal);
                    closed.recorded(answer)
                }
                Step::Done(outcome) => return look(&outcome),
            });
        }
    }

    fn reply_load<'a>(
        &'a self,
        loading: Loading<Envelope<'a>, &'a Probe>,
        slot: &'a mut Vec<u8>,
    ) -> Step<Envelope<'a>, &'a Probe> {
        let found = self.load(loading.ticket(), slot);
        loading.answer(found)
    }

    fn reply_judge<'a>(&self, call: Call<Envelope<'a>, &'a Probe, Confirmed>) -> Step<Envelope<'a>, &'a Probe> {
        let verdict = self.judge(&call.subject());
        call.answer(verdict)
    }

    fn reply_intent<'a>(&self, mut call: Call<Envelope<'a>, &'a Probe, Cleared>) -> Step<Envelope<'a>, &'a Probe> {
        let recorded = call.intent().map_or(Ok(()), |intent| self.record(&intent, self.world.intent));
        call.answer(recorded)
    }
}

/// What an outcome says, as text.
pub(crate) fn json(outcome: &Outcome<Envelope<'_>, &Probe>) -> String {
    let mut text = String::new();
    outcome.write_json(&mut text).expect("a string takes all");
    text
}

/// Why an outcome is none.
pub(crate) fn code(outcome: &Outcome<Envelope<'_>, &Probe>) -> Option<Code> {
    outcome.code()
}

/// A caller on the command line.
pub(crate) fn shell(mode: Mode) -> CallContext<'static> {
    CallContext::cli("r-1").with_mode(mode)
}

impl Host {
    /// The same host, stores and all, with another definition of its tool.
    pub(crate) fn with_tool(mut self, change: impl FnOnce(ToolSpec<'static>) -> ToolSpec<'static>) -> Self {
        self.tool.spec = change(self.tool.spec);
        self
    }

    /// An approver's yes.
    pub(crate) fn decide_ticket(&self, token: &str, approver: CallContext<'_>) -> Result<Decided, DecideError> {
        let ticket = Token::parse(token).expect("a token").hash();
        let mut tickets = self.tickets.borrow_mut();
        let (ticket, _) = tickets.get_mut(ticket.as_bytes()).expect("issued before");
        let asked = Asked { tenant: None, scope: "approve", approved_by: std::iter::empty() };
        ticket.decide(Verdict::Approve, &approver, &asked, self.clock().wall)
    }
}
