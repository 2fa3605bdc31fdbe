//! A store that is named before it is opened: tools that need one are listed and checked without it.

use std::sync::{Arc, OnceLock};

use callgate_core::call::{Finish, IssueFault, Issued, Loaded, StoreFault};
use callgate_core::confirm::{By, Decided, FinishError, Presented, Refusal, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_std::confirmations::{ConfirmationStore, DecideFault, PendingApproval, PendingRequest, Snapshot};

/// The store, once it is there; until then none that answers.
#[derive(Default)]
pub(super) struct Later(OnceLock<Arc<dyn ConfirmationStore>>);

impl Later {
    /// From now on it is this one.
    pub(super) fn set(&self, store: Arc<dyn ConfirmationStore>) {
        // A plan is opened once.
        drop(self.0.set(store));
    }

    fn store(&self) -> Result<&Arc<dyn ConfirmationStore>, StoreFault> {
        self.0.get().ok_or(StoreFault)
    }
}

impl ConfirmationStore for Later {
    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        self.0.get().ok_or(IssueFault::Store)?.issue(request, ttl_ms)
    }

    fn load(&self, ticket: Digest) -> Result<Option<Loaded<Snapshot>>, StoreFault> {
        self.store()?.load(ticket)
    }

    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        self.store()?.claim(ticket, presented)
    }

    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        self.store()?.finish(finish)
    }

    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        self.store()?.withdraw(ticket)
    }

    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        self.store()?.decide(ticket, verdict, approver)
    }

    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        self.store()?.pending(approver, max)
    }
}
