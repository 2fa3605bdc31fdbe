//! What a gate asks, as parts that write down what they are asked. Each question is one function, which both kinds of traits share:
//! the blocking ones here, those that wait in `waiting`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use callgate_core::audit::{Audit, AuditFault, Kind, Record};
use callgate_core::call::{Charge, Finish, IssueFault, Issued, Refund, StoreFault};
use callgate_core::code::Effect;
use callgate_core::confirm::{By, CancelError, Decided, FinishError, Presented, ReconcileError, Refusal, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::limit::{Allowance, LimitKey};
use callgate_core::policy::{self, Decision, PolicyGate, Rule, RuleFault, RuleProvider, Subject};
use callgate_std::confirmations::{
    ConfirmationStore, DecideFault, GrantError, Loaded, MemoryConfirmations, NewGrant, PendingApproval, PendingRequest,
    Resolution, Revoked, StandingGrant, TicketView,
};
use callgate_std::journal::{
    FinishOperation, Journal, JournalAnswer, KeptReply, MemoryJournal, OperationRequest, OperationView,
    PresentedOperation, SettleError,
};
use callgate_std::limiter::{MemoryLimiter, RateLimiter};
use callgate_std::output::Reply;
use callgate_std::policy::{Policy, fault};

use super::log::{Kept, Log};
use super::time::Time;

/// How long a stage may take.
pub(crate) const STAGE_LIMIT: Duration = Duration::from_secs(10);
/// The first moment at which an interceptor has taken too long.
pub(crate) const JUDGED_TOO_LATE: Duration = Duration::from_nanos(1_000_000_001);

/// A part that is watched.
pub(crate) struct Spy<T> {
    pub(crate) part: T,
    pub(crate) log: Log,
    pub(crate) time: Time,
}

impl<T> Spy<T> {
    /// What a part that blocks and hangs comes to: it comes back too late.
    fn late<R>(&self, answer: R) -> R {
        self.time.advance(STAGE_LIMIT);
        answer
    }
}

fn told(subject: &Subject<'_>) -> String {
    let mut text = format!("{} {} ", subject.caller.request_id, subject.spec.name);
    subject.args.write_json(&mut text).unwrap();
    write!(text, " {:?} {:?} {}", subject.definition, subject.arguments, subject.now).unwrap();
    text
}

impl<P> Spy<P> {
    /// Asked when the rules have been: both count as questions, in this order.
    pub(crate) fn decided(&self, subject: &Subject<'_>, decision: Decision<Arc<str>>) -> Option<Decision<Arc<str>>> {
        self.log.ask(&format!("policy {}", told(subject)), || decision, fault)
    }
}

impl<P: Policy> Policy for Spy<P> {
    fn decide(&self, subject: &Subject<'_>) -> Decision<Arc<str>> {
        self.decided(subject, self.part.decide(subject)).unwrap_or_else(|| self.late(fault()))
    }

    fn gate(&self) -> Option<PolicyGate<'_>> {
        self.part.gate()
    }

    fn has_rules(&self) -> bool {
        self.part.has_rules()
    }
}

/// Rules by the name of the tool.
pub(crate) struct Rules;

type Found = Result<Option<Rule<Arc<str>>>, RuleFault>;

impl Spy<Rules> {
    pub(crate) fn found(&self, subject: &Subject<'_>) -> Option<Found> {
        let find = || {
            Ok(match subject.spec.name {
                "ruled.out" => {
                    Some(Rule { description: Some("not on Sundays".into()), ..Rule::new(7, policy::Effect::Deny) })
                }
                "ruled.in" => Some(Rule { scopes: Some("notes:read".into()), ..Rule::new(8, policy::Effect::Allow) }),
                _ => None,
            })
        };
        self.log.ask(&format!("rules {} {}", subject.caller.request_id, subject.spec.name), find, || {
            Err(RuleFault::Unavailable)
        })
    }
}

impl RuleProvider for Spy<Rules> {
    type Text = Arc<str>;

    fn find(&self, subject: &Subject<'_>) -> Found {
        self.found(subject).unwrap_or_else(|| self.late(Err(RuleFault::TimedOut)))
    }
}

impl Spy<MemoryLimiter> {
    pub(crate) fn charged(&self, charge: &Charge<'_>) -> Option<Result<Allowance, StoreFault>> {
        self.log.ask(&format!("charge {charge:?}"), || self.part.charge(charge), || Err(StoreFault))
    }

    pub(crate) fn refunded(&self, refund: &Refund<'_>) -> Option<Result<(), StoreFault>> {
        self.log.ask(&format!("refund {refund:?}"), || self.part.refund(refund), || Err(StoreFault))
    }

    pub(crate) fn attempted(&self, key: &LimitKey<'_>) -> Option<Result<Allowance, StoreFault>> {
        self.log.ask(&format!("attempt {key:?}"), || self.part.attempt(key), || Err(StoreFault))
    }
}

impl RateLimiter for Spy<MemoryLimiter> {
    fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        self.charged(charge).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault> {
        self.refunded(refund).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        self.attempted(key).unwrap_or_else(|| self.late(Err(StoreFault)))
    }
}

impl Spy<MemoryConfirmations> {
    pub(crate) fn issued(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Option<Result<Issued, IssueFault>> {
        let PendingRequest { tool, caller, by, approver_scope, approvals, binding, arguments, summary } = request;
        let arguments = String::from_utf8_lossy(arguments);
        let question = format!(
            "issue {} {tool} {by:?} {approver_scope:?} {approvals} {binding:?} {arguments} {summary:?} for {ttl_ms} ms",
            caller.request_id
        );
        let issue = || {
            // A store that keeps what everybody but this tool's approvers answer.
            if *tool == "nobody.approves" {
                return Err(IssueFault::NoApprover);
            }
            let issued = self.part.issue(request, ttl_ms)?;
            // What is issued is drawn at random, and the same on every front-end.
            self.log.line(format!("issued {}", issued.token));
            Ok(issued)
        };
        self.log.ask(&question, issue, || Err(IssueFault::Store))
    }

    pub(crate) fn loaded(&self, ticket: Digest) -> Option<Result<Option<Loaded>, StoreFault>> {
        self.log.ask(&format!("load {ticket}"), || self.part.load(ticket), || Err(StoreFault))
    }

    pub(crate) fn claimed(
        &self,
        ticket: Digest,
        presented: &Presented,
    ) -> Option<Result<Result<By, Refusal>, StoreFault>> {
        self.log.ask(
            &format!("claim {ticket} {presented:?}"),
            || self.part.claim(ticket, presented),
            || Err(StoreFault),
        )
    }

    pub(crate) fn finished(&self, finish: &Finish) -> Option<Result<Result<(), FinishError>, StoreFault>> {
        let question = format!("finish {} {}", finish.ticket, finish.effect.as_str());
        self.log.ask(&question, || self.part.finish(finish), || Err(StoreFault))
    }

    pub(crate) fn withdrawn(&self, ticket: Digest) -> Option<Result<(), StoreFault>> {
        self.log.ask(&format!("withdraw {ticket}"), || self.part.withdraw(ticket), || Err(StoreFault))
    }

    pub(crate) fn settled(
        &self,
        ticket: Digest,
        verdict: Verdict,
        approver: &CallContext<'_>,
    ) -> Option<Result<Decided, DecideFault>> {
        let question = format!("decide {ticket} {verdict:?} {}", approver.request_id);
        self.log.ask(&question, || self.part.decide(ticket, verdict, approver), || Err(DecideFault::Store))
    }
}

impl Spy<MemoryConfirmations> {
    pub(crate) fn waiting(&self, by: &CallContext<'_>, max: usize) -> Option<Result<Vec<PendingApproval>, StoreFault>> {
        let question = format!("pending {} {max}", by.request_id);
        self.log.ask(&question, || self.part.pending(by, max), || Err(StoreFault))
    }

    pub(crate) fn told_of(&self, by: &CallContext<'_>, max: usize) -> Option<Result<Vec<TicketView>, StoreFault>> {
        let question = format!("tickets {} {max}", by.request_id);
        self.log.ask(&question, || self.part.tickets(by, max), || Err(StoreFault))
    }

    pub(crate) fn cancelled(
        &self,
        ticket: Digest,
        by: &CallContext<'_>,
    ) -> Option<Result<Result<(), CancelError>, StoreFault>> {
        let question = format!("cancel {ticket} {}", by.request_id);
        self.log.ask(&question, || self.part.cancel(ticket, by), || Err(StoreFault))
    }

    pub(crate) fn reaped(&self, max: usize) -> Option<Result<Vec<TicketView>, StoreFault>> {
        self.log.ask(&format!("reap {max}"), || self.part.reap(max), || Err(StoreFault))
    }

    pub(crate) fn reconciled(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Option<Result<Result<TicketView, ReconcileError>, StoreFault>> {
        let question = format!("reconcile {ticket} {:?} {}", resolution.effect, resolution.proof);
        self.log.ask(&question, || self.part.reconcile(ticket, resolution), || Err(StoreFault))
    }

    pub(crate) fn granted(&self, grant: NewGrant, by: &CallContext<'_>) -> Option<Result<StandingGrant, GrantError>> {
        let question = format!("grant {grant:?} {}", by.request_id);
        self.log.ask(&question, || self.part.grant(grant, by), || Err(GrantError::Store))
    }

    pub(crate) fn grants_of(
        &self,
        caller: &CallContext<'_>,
        definition: Digest,
    ) -> Option<Result<Vec<StandingGrant>, StoreFault>> {
        let question = format!("covering {} {definition}", caller.request_id);
        self.log.ask(&question, || self.part.grants_for(caller, definition), || Err(StoreFault))
    }

    pub(crate) fn used(
        &self,
        grant: Digest,
        request: &PendingRequest<'_>,
        presented: &Presented,
    ) -> Option<Result<Digest, GrantError>> {
        let question = format!("use {grant} {request:?} {presented:?}");
        self.log.ask(&question, || self.part.claim_grant(grant, request, presented), || Err(GrantError::Store))
    }

    pub(crate) fn all_grants(
        &self,
        by: &CallContext<'_>,
        max: usize,
    ) -> Option<Result<Vec<StandingGrant>, StoreFault>> {
        let question = format!("grants {} {max}", by.request_id);
        self.log.ask(&question, || self.part.grants(by, max), || Err(StoreFault))
    }

    pub(crate) fn revoked(&self, grant: Digest, by: &CallContext<'_>) -> Option<Result<Revoked, GrantError>> {
        let question = format!("revoke {grant} {}", by.request_id);
        self.log.ask(&question, || self.part.revoke(grant, by), || Err(GrantError::Store))
    }
}

impl ConfirmationStore for Spy<MemoryConfirmations> {
    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        self.issued(request, ttl_ms).unwrap_or_else(|| self.late(Err(IssueFault::Store)))
    }

    fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        self.loaded(ticket).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        self.claimed(ticket, presented).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        self.finished(finish).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        self.withdrawn(ticket).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        self.settled(ticket, verdict, approver).unwrap_or_else(|| self.late(Err(DecideFault::Store)))
    }

    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        self.waiting(approver, max).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn tickets(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        self.told_of(viewer, max).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn cancel(&self, ticket: Digest, requester: &CallContext<'_>) -> Result<Result<(), CancelError>, StoreFault> {
        self.cancelled(ticket, requester).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        self.reaped(max).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn reconcile(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        self.reconciled(ticket, resolution).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn grant(&self, grant: NewGrant, by: &CallContext<'_>) -> Result<StandingGrant, GrantError> {
        self.granted(grant, by).unwrap_or_else(|| self.late(Err(GrantError::Store)))
    }

    fn grants_for(&self, caller: &CallContext<'_>, definition: Digest) -> Result<Vec<StandingGrant>, StoreFault> {
        self.grants_of(caller, definition).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn claim_grant(
        &self,
        grant: Digest,
        request: &PendingRequest<'_>,
        presented: &Presented,
    ) -> Result<Digest, GrantError> {
        self.used(grant, request, presented).unwrap_or_else(|| self.late(Err(GrantError::Store)))
    }

    fn grants(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        self.all_grants(viewer, max).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn revoke(&self, grant: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantError> {
        self.revoked(grant, by).unwrap_or_else(|| self.late(Err(GrantError::Store)))
    }
}

impl Spy<MemoryJournal> {
    pub(crate) fn recalled(&self, presented: &PresentedOperation) -> Option<JournalAnswer> {
        self.log.ask(&format!("recall {presented:?}"), || self.part.recall(presented), || Err(StoreFault))
    }

    pub(crate) fn taken(&self, request: &OperationRequest<'_>) -> Option<JournalAnswer> {
        let OperationRequest { presented, operation, tool, caller } = request;
        let question = format!("take {} {operation} {tool} {presented:?}", caller.request_id);
        self.log.ask(&question, || self.part.claim(request), || Err(StoreFault))
    }

    pub(crate) fn kept(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Option<Result<Result<(), SettleError>, StoreFault>> {
        let data = result.map(|result| (&result.data, &result.message, &result.meta));
        self.log.ask(&format!("keep {finish:?} {data:?}"), || self.part.finish(finish, result), || Err(StoreFault))
    }

    pub(crate) fn lost(&self, max: usize) -> Option<Result<Vec<OperationView>, StoreFault>> {
        self.log.ask(&format!("lost {max}"), || self.part.reap(max), || Err(StoreFault))
    }

    pub(crate) fn settled(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Option<Result<Result<OperationView, ReconcileError>, StoreFault>> {
        let question = format!("settle {key} {:?} {}", resolution.effect, resolution.proof);
        self.log.ask(&question, || self.part.reconcile(key, resolution), || Err(StoreFault))
    }

    pub(crate) fn all(&self, by: &CallContext<'_>, max: usize) -> Option<Result<Vec<OperationView>, StoreFault>> {
        let question = format!("operations {} {max}", by.request_id);
        self.log.ask(&question, || self.part.operations(by, max), || Err(StoreFault))
    }
}

impl Journal for Spy<MemoryJournal> {
    fn recall(&self, presented: &PresentedOperation) -> JournalAnswer {
        self.recalled(presented).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer {
        self.taken(request).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault> {
        self.kept(finish, result).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.lost(max).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        self.settled(key, resolution).unwrap_or_else(|| self.late(Err(StoreFault)))
    }

    fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.all(viewer, max).unwrap_or_else(|| self.late(Err(StoreFault)))
    }
}

/// An interceptor that judges by the name of the tool.
pub(crate) struct Judge(pub(crate) &'static str);

impl Spy<Judge> {
    pub(crate) fn judged(&self, subject: &Subject<'_>) -> Option<Interception<Reply, Arc<str>>> {
        let judge = || match (self.part.0, subject.spec.name) {
            ("second", "veto.me") => Interception::Veto("not today".into()),
            ("first", "answer.me") => Interception::Answer(Reply::new("known already")),
            ("second", "answer.broken") => Interception::Answer(Reply::new("not a number")),
            ("first", "judge.fails") => Interception::Failed("no opinion".into()),
            ("second", "judge.late") => {
                self.time.advance(JUDGED_TOO_LATE);
                Interception::Continue
            }
            ("second", "judge.panics") => panic!("the judge of judge.panics"),
            _ => Interception::Continue,
        };
        let question = format!("judge {} {}", self.part.0, told(subject));
        self.log.ask(&question, judge, || Interception::Failed("planted".into()))
    }
}

impl Interceptor<Reply, Arc<str>> for Spy<Judge> {
    fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        self.judged(subject).unwrap_or_else(|| {
            self.time.advance(JUDGED_TOO_LATE);
            Interception::Continue
        })
    }
}

/// A sink in memory.
pub(crate) struct Sink;

/// What a sink needs of a record.
pub(crate) struct Line<'a> {
    pub(crate) kind: Kind,
    pub(crate) request_id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) end: &'a str,
    pub(crate) effect: Effect,
    pub(crate) json: &'a str,
}

impl Spy<Sink> {
    pub(crate) fn recorded(&self, line: &Line<'_>) -> Option<Result<(), AuditFault>> {
        if line.end == "accepted" {
            self.log.accepted();
        }
        let write = || {
            self.log.keep(Kept {
                kind: line.kind.as_str(),
                request_id: line.request_id.to_owned(),
                tool: line.tool.to_owned(),
                end: line.end.to_owned(),
                effect: line.effect.as_str(),
            });
            Ok(())
        };
        self.log.ask(&format!("record {}", line.json), write, || Err(AuditFault))
    }
}

impl Audit for Spy<Sink> {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let mut json = String::new();
        record.write_json(&mut json).map_err(|_| AuditFault)?;
        let (request_id, Record { kind, tool, end, effect, .. }) = (record.caller.request_id, *record);
        let line = Line { kind, request_id, tool, end, effect, json: &json };
        self.recorded(&line).unwrap_or_else(|| self.late(Err(AuditFault)))
    }
}
