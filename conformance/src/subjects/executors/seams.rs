//! What surrounds a gate, as parts that wait: each question is asked of the part that blocks, and the executor has a turn before and
//! after.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use callgate_async::audit::{Audit, Entry};
use callgate_async::confirmations::ConfirmationStore;
use callgate_async::interceptors::Interceptor;
use callgate_async::journal::Journal;
use callgate_async::limiter::RateLimiter;
use callgate_async::policy::Policy;
use callgate_core::audit::{AuditFault, Kind};
use callgate_core::call::{Charge, Finish, IssueFault, Issued, Refund, StoreFault};
use callgate_core::confirm::{By, Decided, FinishError, Presented, Refusal, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::intercept::{Interception, Interceptor as _};
use callgate_core::limit::{Allowance, LimitKey};
use callgate_core::policy::{Decision, Subject};
use callgate_std::confirmations::{ConfirmationStore as _, DecideFault, Loaded, PendingApproval, PendingRequest};
use callgate_std::failure::Failure;
use callgate_std::journal::{
    FinishOperation, Journal as _, JournalAnswer, KeptReply, OperationRequest, PresentedOperation, SettleError,
};
use callgate_std::limiter::RateLimiter as _;
use callgate_std::output::Reply;
use callgate_std::policy::Policy as _;
use callgate_std::tool::ToolBuilder;

use super::super::judges::{Judge, LIMIT_MS, WatchedPolicy};
use super::super::surroundings::{Performed, Sink, WatchedJournal, WatchedLimiter, WatchedStore, perform};
use super::super::time::Time;
use super::super::watched::Watch;
use crate::world::{self, Body, Saying};

/// A part that waits.
#[derive(Debug)]
pub(super) struct Waits<T>(pub(super) T);

/// Waits for one poll more.
#[derive(Default)]
struct Pause(bool);

impl Future for Pause {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

async fn between_turns<R>(question: impl FnOnce() -> R) -> R {
    Pause::default().await;
    let answer = question();
    Pause::default().await;
    answer
}

/// Bodies that wait.
pub(super) fn waits(builder: ToolBuilder, script: world::Tool, watch: Watch, time: Time) -> ToolBuilder {
    builder.async_handler(move |call| {
        let (script, watch, time) = (script.clone(), watch.clone(), time.clone());
        async move {
            if let Body::Hang(ms) = script.body {
                let echo = world::Tool { body: Body::Echo, ..script };
                let done = perform(&echo, &watch, &time, call.args());
                if !watch.is_dead() {
                    // The gate stops it at its deadline.
                    time.hang(Duration::from_millis(ms)).await;
                }
                return result(done);
            }
            between_turns(|| result(perform(&script, &watch, &time, call.args()))).await
        }
    })
}

fn result(performed: Performed) -> Result<Reply, Failure> {
    match performed {
        Performed::Done(reply) => Ok(reply),
        Performed::Failed(failure) => Err(failure),
        Performed::Late => Err(Failure::timed_out()),
    }
}

#[async_trait]
impl Policy for Waits<Arc<WatchedPolicy>> {
    async fn decide(&self, subject: &Subject<'_>) -> Decision<Arc<str>> {
        between_turns(|| self.0.decide(subject)).await
    }

    fn has_rules(&self) -> bool {
        true
    }
}

#[async_trait]
impl RateLimiter for Waits<Arc<WatchedLimiter>> {
    async fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        between_turns(|| self.0.charge(charge)).await
    }

    async fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault> {
        between_turns(|| self.0.refund(refund)).await
    }

    async fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        between_turns(|| self.0.attempt(key)).await
    }
}

#[async_trait]
impl ConfirmationStore for Waits<Arc<WatchedStore>> {
    async fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        between_turns(|| self.0.issue(request, ttl_ms)).await
    }

    async fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        between_turns(|| self.0.load(ticket)).await
    }

    async fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        between_turns(|| self.0.claim(ticket, presented)).await
    }

    async fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        between_turns(|| self.0.finish(finish)).await
    }

    async fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        between_turns(|| self.0.withdraw(ticket)).await
    }

    async fn decide(
        &self,
        ticket: Digest,
        verdict: Verdict,
        approver: &CallContext<'_>,
    ) -> Result<Decided, DecideFault> {
        between_turns(|| self.0.decide(ticket, verdict, approver)).await
    }

    async fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        between_turns(|| self.0.pending(approver, max)).await
    }
}

#[async_trait]
impl Journal for Waits<Arc<WatchedJournal>> {
    async fn recall(&self, presented: &PresentedOperation) -> JournalAnswer {
        between_turns(|| self.0.recall(presented)).await
    }

    async fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer {
        between_turns(|| self.0.claim(request)).await
    }

    async fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault> {
        between_turns(|| self.0.finish(finish, result)).await
    }
}

#[async_trait]
impl Interceptor for Waits<Judge> {
    async fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        let Self(judge) = self;
        if judge.concerns(subject) && judge.script.says == Saying::Hang {
            if judge.mark(subject) {
                // The gate stops it when its time is up.
                judge.time.hang(Duration::from_millis(LIMIT_MS.saturating_add(1))).await;
            }
            return Interception::Continue;
        }
        between_turns(|| judge.judge(subject)).await
    }
}

#[async_trait]
impl Audit for Waits<Arc<Sink>> {
    async fn record(&self, entry: Entry) -> Result<(), AuditFault> {
        // Written before the first wait, as the trait asks for.
        let written = self.record_now(entry);
        Pause::default().await;
        written
    }

    fn record_now(&self, entry: Entry) -> Result<(), AuditFault> {
        self.0.write(entry.kind == Kind::Intent, || Ok(entry.json))
    }
}
