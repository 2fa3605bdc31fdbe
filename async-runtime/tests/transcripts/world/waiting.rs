//! The same parts behind the traits that wait: each pauses before it does what it is asked, or before it answers, or both.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use callgate_async::audit::{Audit, AuditFault, Entry};
use callgate_async::confirmations::ConfirmationStore;
use callgate_async::interceptors::{Interception, Interceptor};
use callgate_async::journal::{
    FinishOperation, Journal, JournalAnswer, KeptReply, OperationRequest, OperationView, PresentedOperation,
    SettleError,
};
use callgate_async::limiter::RateLimiter;
use callgate_async::policy::{Policy, RuleProvider};
use callgate_core::call::{Charge, Finish, IssueFault, Issued, Refund, StoreFault};
use callgate_core::confirm::{By, CancelError, Decided, FinishError, Presented, ReconcileError, Refusal, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::limit::{Allowance, LimitKey};
use callgate_core::policy::{Decision, PolicyGate, Rule, RuleFault, Subject};
use callgate_std::confirmations::{
    DecideFault, GrantError, Loaded, MemoryConfirmations, NewGrant, PendingApproval, PendingRequest, Resolution,
    Revoked, StandingGrant, TicketView,
};
use callgate_std::journal::MemoryJournal;
use callgate_std::limiter::MemoryLimiter;
use callgate_std::output::Reply;

use super::seams::{JUDGED_TOO_LATE, Judge, Line, Rules, STAGE_LIMIT, Sink, Spy};
use super::time::{Pause, Time};

/// When a part that waits pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pauses {
    pub(crate) before: bool,
    pub(crate) after: bool,
}

pub(crate) const NEVER: Pauses = Pauses { before: false, after: false };
pub(crate) const BEFORE: Pauses = Pauses { before: true, after: false };
pub(crate) const AFTER: Pauses = Pauses { before: false, after: true };

pub(crate) struct Patient<T> {
    pub(crate) spy: Arc<Spy<T>>,
    pub(crate) pauses: Pauses,
}

impl<T> Patient<T> {
    async fn reply<R>(&self, hangs_for: Duration, done: impl FnOnce(&Spy<T>) -> Option<R> + Send) -> R {
        if self.pauses.before {
            Pause::default().await;
        }
        let answer = done(&self.spy);
        match answer {
            Some(answer) => {
                if self.pauses.after {
                    Pause::default().await;
                }
                answer
            }
            None => hang(&self.spy.time, hangs_for).await,
        }
    }
}

/// So much time passes, and there is no answer.
async fn hang<R>(time: &Time, for_: Duration) -> R {
    time.advance(for_);
    pending().await
}

/// A policy that waits, watched.
pub(crate) struct Decides<P> {
    pub(crate) inner: P,
    pub(crate) spy: Spy<()>,
    pub(crate) pauses: Pauses,
}

#[async_trait]
impl<P: Policy> Policy for Decides<P> {
    async fn decide(&self, subject: &Subject<'_>) -> Decision<Arc<str>> {
        if self.pauses.before {
            Pause::default().await;
        }
        let decision = self.inner.decide(subject).await;
        let decision = self.spy.decided(subject, decision);
        match decision {
            Some(decision) => {
                if self.pauses.after {
                    Pause::default().await;
                }
                decision
            }
            None => hang(&self.spy.time, STAGE_LIMIT).await,
        }
    }

    fn gate(&self) -> Option<PolicyGate<'_>> {
        self.inner.gate()
    }

    fn has_rules(&self) -> bool {
        self.inner.has_rules()
    }
}

#[async_trait]
impl RuleProvider for Patient<Rules> {
    async fn find(&self, subject: &Subject<'_>) -> Result<Option<Rule<Arc<str>>>, RuleFault> {
        self.reply(STAGE_LIMIT, |spy| spy.found(subject)).await
    }
}

#[async_trait]
impl RateLimiter for Patient<MemoryLimiter> {
    async fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.charged(charge)).await
    }

    async fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.refunded(refund)).await
    }

    async fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.attempted(key)).await
    }
}

#[async_trait]
impl ConfirmationStore for Patient<MemoryConfirmations> {
    async fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        self.reply(STAGE_LIMIT, |spy| spy.issued(request, ttl_ms)).await
    }

    async fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.loaded(ticket)).await
    }

    async fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.claimed(ticket, presented)).await
    }

    async fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.finished(finish)).await
    }

    async fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.withdrawn(ticket)).await
    }

    async fn decide(
        &self,
        ticket: Digest,
        verdict: Verdict,
        approver: &CallContext<'_>,
    ) -> Result<Decided, DecideFault> {
        self.reply(STAGE_LIMIT, |spy| spy.settled(ticket, verdict, approver)).await
    }

    async fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.waiting(approver, max)).await
    }

    async fn tickets(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.told_of(viewer, max)).await
    }

    async fn cancel(&self, ticket: Digest, requester: &CallContext<'_>) -> Result<Result<(), CancelError>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.cancelled(ticket, requester)).await
    }

    async fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.reaped(max)).await
    }

    async fn reconcile(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.reconciled(ticket, resolution)).await
    }

    async fn grant(&self, grant: NewGrant, by: &CallContext<'_>) -> Result<StandingGrant, GrantError> {
        self.reply(STAGE_LIMIT, |spy| spy.granted(grant, by)).await
    }

    async fn grants_for(&self, caller: &CallContext<'_>, definition: Digest) -> Result<Vec<StandingGrant>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.grants_of(caller, definition)).await
    }

    async fn claim_grant(
        &self,
        grant: Digest,
        request: &PendingRequest<'_>,
        presented: &Presented,
    ) -> Result<Digest, GrantError> {
        self.reply(STAGE_LIMIT, |spy| spy.used(grant, request, presented)).await
    }

    async fn grants(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.all_grants(viewer, max)).await
    }

    async fn revoke(&self, grant: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantError> {
        self.reply(STAGE_LIMIT, |spy| spy.revoked(grant, by)).await
    }
}

#[async_trait]
impl Journal for Patient<MemoryJournal> {
    async fn recall(&self, presented: &PresentedOperation) -> JournalAnswer {
        self.reply(STAGE_LIMIT, |spy| spy.recalled(presented)).await
    }

    async fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer {
        self.reply(STAGE_LIMIT, |spy| spy.taken(request)).await
    }

    async fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.kept(finish, result)).await
    }

    async fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.lost(max)).await
    }

    async fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.settled(key, resolution)).await
    }

    async fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.reply(STAGE_LIMIT, |spy| spy.all(viewer, max)).await
    }
}

#[async_trait]
impl Interceptor for Patient<Judge> {
    async fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        self.reply(JUDGED_TOO_LATE, |spy| spy.judged(subject)).await
    }
}

/// What it is given it writes at once, as a sink has to; only its answer may take its time.
#[async_trait]
impl Audit for Patient<Sink> {
    async fn record(&self, entry: Entry) -> Result<(), AuditFault> {
        let recorded = self.spy.recorded(&line(&entry));
        match recorded {
            Some(recorded) => {
                if self.pauses.before || self.pauses.after {
                    Pause::default().await;
                }
                recorded
            }
            None => hang(&self.spy.time, STAGE_LIMIT).await,
        }
    }

    fn record_now(&self, entry: Entry) -> Result<(), AuditFault> {
        self.spy.recorded(&line(&entry)).unwrap_or(Err(AuditFault))
    }
}

fn line(entry: &Entry) -> Line<'_> {
    let Entry { kind, request_id, tool, end, effect, json, .. } = entry;
    Line { kind: *kind, request_id, tool, end, effect: *effect, json }
}
