//! Named places within a call and within a rotation at which a process is killed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use callgate_core::audit::{Audit, AuditFault, Kind, Record};
use callgate_core::confirm::ReconcileError;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_sqlite::{SqliteAudit, SqliteConfirmations, SqliteJournal};
use callgate_std::confirmations::{
    By, ConfirmationStore, DecideFault, Decided, Finish, FinishError, Guarantee, IssueFault, Issued, Loaded,
    PendingApproval, PendingRequest, Presented, Refusal, Resolution, StoreFault, TicketView, Verdict,
};
use callgate_std::journal::{
    FinishOperation, Journal, JournalAnswer, KeptReply, OperationRequest, OperationView, PresentedOperation,
    SettleError,
};

use crate::victim::say;

/// What a process does that passes a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passes {
    Calls,
    Confirmed,
    Operations,
    Rotations,
}

/// Every place, in the order in which a call or a rotation passes them: before and after each thing that is kept.
pub(crate) const POINTS: [(&str, Passes); 20] = [
    ("issue.before", Passes::Confirmed),
    ("issue.after", Passes::Confirmed),
    ("claim.before", Passes::Confirmed),
    ("claim.after", Passes::Confirmed),
    ("operation.before", Passes::Operations),
    ("operation.after", Passes::Operations),
    ("intent.before", Passes::Calls),
    ("intent.after", Passes::Calls),
    ("effect.before", Passes::Calls),
    ("effect.after", Passes::Calls),
    ("finish.before", Passes::Confirmed),
    ("finish.after", Passes::Confirmed),
    ("result.before", Passes::Operations),
    ("result.after", Passes::Operations),
    ("terminal.before", Passes::Calls),
    ("terminal.after", Passes::Calls),
    ("rotation.before", Passes::Rotations),
    // The segment is on the disk, and the transaction has nothing yet; it has all of it, and is not committed.
    ("segment_written", Passes::Rotations),
    ("lines_removed", Passes::Rotations),
    ("rotation.after", Passes::Rotations),
];

/// Where this process is killed: at the n-th time that it comes to a place.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    place: Option<(String, u64)>,
    passed: AtomicU64,
    /// How many claims were refused.
    refused: AtomicU64,
    /// Where this process waits for another one, the next time that it comes there.
    pub(crate) meets: Mutex<Option<Meeting>>,
}

/// A place, and how to wait there.
pub(crate) type Meeting = (&'static str, fn());

impl Ends {
    /// What the environment says, as `claim.after 3`; nowhere if it says nothing.
    pub(crate) fn told(text: Option<String>) -> Arc<Self> {
        let place = text.map(|text| {
            let (place, times) = text.split_once(' ').expect("a place and a number");
            (place.to_owned(), times.parse().expect("a number"))
        });
        Arc::new(Self { place, ..Self::default() })
    }

    /// How many claims the store has refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    pub(crate) fn at(&self, place: &str) {
        let meeting = self.meets.lock().expect("no panic").take_if(|meeting| meeting.0 == place);
        if let Some((_, wait)) = meeting {
            wait();
        }
        if let Some((ends, times)) = &self.place
            && ends == place
            && self.passed.fetch_add(1, Ordering::SeqCst) + 1 == *times
        {
            // It holds what it holds here, and comes no further: the parent kills it.
            say("at", 0, place);
            loop {
                std::thread::park();
            }
        }
    }

    pub(crate) fn around<R>(&self, what: &str, act: impl FnOnce() -> R) -> R {
        self.at(&format!("{what}.before"));
        let answer = act();
        self.at(&format!("{what}.after"));
        answer
    }
}

/// A store with these places.
#[derive(Debug)]
pub(crate) struct Store(pub(crate) SqliteConfirmations, pub(crate) Arc<Ends>);

impl ConfirmationStore for Store {
    fn guarantee(&self) -> Guarantee {
        self.0.guarantee()
    }

    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        self.1.around("issue", || self.0.issue(request, ttl_ms))
    }

    fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        self.0.load(ticket)
    }

    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        let claimed = self.1.around("claim", || self.0.claim(ticket, presented));
        self.1.refused.fetch_add(u64::from(matches!(claimed, Ok(Err(_)))), Ordering::SeqCst);
        claimed
    }

    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        self.1.around("finish", || self.0.finish(finish))
    }

    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        self.0.withdraw(ticket)
    }

    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        self.0.decide(ticket, verdict, approver)
    }

    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        self.0.pending(approver, max)
    }

    fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        self.0.reap(max)
    }

    fn reconcile(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        self.0.reconcile(ticket, resolution)
    }
}

/// A journal with these places.
#[derive(Debug)]
pub(crate) struct Operations(pub(crate) SqliteJournal, pub(crate) Arc<Ends>);

impl Journal for Operations {
    fn guarantee(&self) -> Guarantee {
        self.0.guarantee()
    }

    fn recall(&self, presented: &PresentedOperation) -> JournalAnswer {
        self.0.recall(presented)
    }

    fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer {
        self.1.around("operation", || self.0.claim(request))
    }

    fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault> {
        self.1.around("result", || self.0.finish(finish, result))
    }

    fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.0.reap(max)
    }

    fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        self.0.reconcile(key, resolution)
    }

    fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.0.operations(viewer, max)
    }
}

/// A log with these places.
#[derive(Debug)]
pub(crate) struct Log(pub(crate) Arc<SqliteAudit>, pub(crate) Arc<Ends>);

impl Audit for Log {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        match (record.kind, record.end) {
            (Kind::Intent, _) => self.1.around("intent", || self.0.record(record)),
            (_, "done") => self.1.around("terminal", || self.0.record(record)),
            _ => self.0.record(record),
        }
    }
}
