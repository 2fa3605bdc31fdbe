//! The last stage: a call that ended is settled, recorded and only then answered, whoever still waits for it.

use std::future::pending;
use std::sync::Arc;

use callgate_core::audit::{AuditFault, Record};
use callgate_core::call::StoreFault;
use callgate_core::limit::Allowance;
use callgate_core::time::Now;
use callgate_std::common;
use callgate_std::contain::contain;
use callgate_std::journal;
use callgate_std::tool::Tool;

use super::background::Accepted;
use super::drive::{ask, offload_with, within};
use super::parked::{Carried, Over, Passage};
use super::{Gate, Outcome};
use crate::audit::Entry;
use crate::seam::Seam;

type Closed = callgate_core::call::Closed<Carried, Arc<Tool>>;

impl Over {
    /// Settles and records the call, and gives its outcome. `at` is when it ended, where that is known already.
    ///
    /// Where that may wait, it is done by a task of its own, so that it comes to its end even when this future is dropped.
    pub(super) async fn finish(self, at: Option<Now>) -> Outcome {
        match self.finish_now(at) {
            Ok(outcome) => outcome,
            Err(closing) => closing.answered().await,
        }
    }

    /// The same, at once where nothing has to wait.
    #[expect(clippy::result_large_err, reason = "one of the two is moved on at once")]
    pub(super) fn finish_now(self, at: Option<Now>) -> Result<Outcome, Closing> {
        self.close(at, true)
    }

    /// The same when nobody waits any more.
    pub(super) fn finish_alone(self) {
        if let Err(closing) = self.close(None, false) {
            let runtime = Arc::clone(&closing.passage.gate.0.runtime);
            runtime.spawn(Box::pin(closing.run()));
        }
    }

    /// Closes the call and, where nothing has to wait, finishes it. `awaited` says whether anybody waits for the outcome.
    #[expect(clippy::result_large_err, reason = "one of the two is moved on at once")]
    fn close(self, at: Option<Now>, awaited: bool) -> Result<Outcome, Closing> {
        let Self { ended, passage, then } = self;
        let gate = &passage.gate;
        let mut closed = ended.close(at.unwrap_or_else(|| gate.0.common.now()));
        if !gate.finishes_at_once() {
            return Err(Closing { closed: Some(closed), passage, sender: None, then, recorded: None });
        }
        gate.settle_now(&mut closed);
        let record = closed.record();
        let recorded = gate.record_now(&record);
        gate.0.common.observers.ended(&record);
        drop(passage);
        if let Some(accepted) = then.filter(|_| awaited) {
            accepted.go_on();
        }
        Ok(closed.audited(recorded))
    }
}

impl Closing {
    /// The outcome, once a task of its own has settled and recorded the call.
    pub(super) async fn answered(mut self) -> Outcome {
        let (sender, receiver) = async_channel::bounded(1);
        self.sender = Some(sender);
        let closing = self;
        let runtime = Arc::clone(&closing.passage.gate.0.runtime);
        runtime.spawn(Box::pin(closing.run()));
        match receiver.recv().await {
            Ok(outcome) => outcome,
            // A closing sends its outcome even when it is dropped.
            Err(_) => pending().await,
        }
    }
}

impl Gate {
    /// Whether nothing of the last stage waits.
    pub(super) fn finishes_at_once(&self) -> bool {
        self.0.audit.as_ref().is_none_or(Seam::is_immediate)
            && self.0.limiter.as_ref().is_none_or(Seam::is_immediate)
            && self.0.confirmations.is_immediate()
            && self.0.journal.as_ref().is_none_or(Seam::is_immediate)
    }

    /// Records without waiting for anything but the sink itself.
    fn record_now(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        match &self.0.audit {
            Some(Seam::Immediate(sink) | Seam::Blocking(sink)) => {
                contain(|| sink.record(record)).unwrap_or(Err(AuditFault))
            }
            Some(Seam::Waiting(sink)) => contain(|| sink.record_now(Entry::of(record)?)).unwrap_or(Err(AuditFault)),
            None => Ok(()),
        }
    }

    /// Settles where nothing waits.
    fn settle_now(&self, closed: &mut Closed) {
        let limiter = match &self.0.limiter {
            Some(Seam::Immediate(limiter)) => Some(&**limiter),
            _ => None,
        };
        let journal = match &self.0.journal {
            Some(Seam::Immediate(journal)) => Some(&**journal),
            _ => None,
        };
        if let Seam::Immediate(store) = &self.0.confirmations {
            common::settle(closed, limiter, &**store, journal);
        }
    }
}

/// A call that is being settled and recorded.
pub(super) struct Closing {
    closed: Option<Closed>,
    passage: Passage,
    sender: Option<async_channel::Sender<Outcome>>,
    then: Option<Box<Accepted>>,
    /// What a sink that was given the record says of it; a fault for as long as it says nothing.
    recorded: Option<Result<(), AuditFault>>,
}

impl Closing {
    #[expect(clippy::expect_used, reason = "it is there until `answer` or the destructor takes it")]
    const fn stage(&self) -> &Closed {
        self.closed.as_ref().expect("a closed call")
    }

    async fn run(self) {
        let gate = self.passage.gate.clone();
        let mut closing = self;
        let settlement = closing.stage().settlement();
        let (refund, attempt) = (settlement.refund.is_some(), settlement.attempt.is_some());
        let (withdraw, finish, operation) = (settlement.withdraw, settlement.finish, settlement.operation);
        if let Some(limiter) = gate.0.limiter.as_ref().filter(|_| refund) {
            let refunded = ask!(gate, closing, limiter, |limiter, closed| closed.settlement().refund => |refund| {
                limiter.refund(&refund)
            });
            if refunded != Some(Ok(())) {
                common::refund_lost();
            }
        }
        if let Some(ticket) = withdraw {
            let store = &gate.0.confirmations;
            let withdrawn =
                ask!(gate, closing, store, |store, _closed| Some(ticket) => |ticket| store.withdraw(ticket));
            if withdrawn != Some(Ok(())) {
                common::not_withdrawn();
            }
        }
        if let Some(finish) = finish {
            let store = &gate.0.confirmations;
            let told = ask!(gate, closing, store, |store, _closed| Some(finish) => |finish| store.finish(&finish));
            common::finish_told(told.unwrap_or(Err(StoreFault)));
        }
        let attempts = match gate.0.limiter.as_ref().filter(|_| attempt) {
            None => Ok(Allowance::Unlimited),
            Some(limiter) => {
                let charged = ask!(gate, closing, limiter, |limiter, closed| closed.settlement().attempt => |key| {
                    limiter.attempt(&key)
                });
                charged.unwrap_or(Err(StoreFault))
            }
        };
        if let (Some(finish), Some(journal)) = (operation, &gate.0.journal) {
            let result = common::kept_result(closing.stage());
            let told = ask!(gate, closing, journal, |journal, _closed| Some((finish, result.clone())) => |told| {
                journal.finish(&told.0, told.1.as_ref())
            });
            let kept = journal::finish_told(told.unwrap_or(Err(StoreFault)), finish.effect);
            if let Some(closed) = &mut closing.closed {
                closed.kept(kept);
            }
        }
        if let Some(closed) = &mut closing.closed
            && !closed.settlement().is_empty()
        {
            closed.settle(attempts);
        }
        match &gate.0.audit {
            Some(Seam::Waiting(sink)) => {
                let entry = Entry::of(&closing.stage().record());
                closing.recorded = Some(Err(AuditFault));
                if let Ok(entry) = entry {
                    closing.recorded = within(&gate, sink.record(entry)).await.or(Some(Err(AuditFault)));
                }
            }
            Some(Seam::Blocking(sink)) => {
                let sink = Arc::clone(sink);
                let record = move |closing: &mut Self| {
                    let recorded = contain(|| sink.record(&closing.stage().record()));
                    // Kept with the call, which may find nobody who waits for it when it comes back.
                    closing.recorded = Some(recorded.unwrap_or(Err(AuditFault)));
                };
                (closing, _) = offload_with(&gate, closing, record).await;
            }
            Some(Seam::Immediate(_)) | None => {}
        }
        closing.answer();
    }

    /// Answers whoever waits. A sink that was not given the record yet is given it now.
    fn answer(&mut self) {
        let Some(closed) = self.closed.take() else { return };
        let recorded = self.recorded.take().unwrap_or_else(|| self.passage.gate.record_now(&closed.record()));
        self.passage.gate.0.common.observers.ended(&closed.record());
        // The places are free before anybody learns that the call is over.
        (self.passage.places, self.passage.shared) = ([None, None], None);
        let outcome = closed.audited(recorded);
        let delivered = self.sender.take().is_some_and(|sender| sender.try_send(outcome).is_ok());
        if let Some(accepted) = self.then.take().filter(|_| delivered) {
            accepted.go_on();
        }
    }
}

/// An executor that goes down drops what it was given. The record is then handed over without waiting; one that a sink was given
/// before is not written twice.
impl Drop for Closing {
    fn drop(&mut self) {
        let Some(closed) = &self.closed else { return };
        let recorded = self.recorded.unwrap_or_else(|| self.passage.gate.record_now(&closed.record()));
        if recorded.is_err() {
            tracing::error!("the record of a call that ended while its executor went down may be lost");
        }
        self.recorded = Some(recorded);
        self.answer();
    }
}
