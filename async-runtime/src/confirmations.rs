//! Stores of pending confirmations that may wait.

use async_trait::async_trait;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_std::confirmations::ConfirmationStore as BlockingStore;
pub use callgate_std::confirmations::{
    Binding, By, DecideFault, Decided, Finish, FinishError, Guarantee, IssueFault, Issued, Loaded, PendingApproval,
    PendingRequest, Presented, Refusal, StoreFault, Verdict,
};

use crate::seam::{Seam, seams};

/// A store of pending confirmations. Every method is one atomic step; the future of one that is dropped may or may not have
/// taken it. What holds for every store is in [`callgate_std::confirmations`].
#[async_trait]
pub trait ConfirmationStore: Send + Sync {
    /// What the store vouches for. One that does not say anything vouches for nothing.
    fn guarantee(&self) -> Guarantee {
        Guarantee::NONE
    }

    /// Keeps `request` and gives the token for it, good for `ttl_ms` milliseconds.
    ///
    /// # Errors
    /// Nothing was issued: the store failed, is full, or has no approver to ask.
    async fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault>;

    /// Looks a ticket up and claims nothing.
    ///
    /// # Errors
    /// The store failed.
    async fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault>;

    /// Claims a ticket for the call that `presented` describes: at most one claim of a ticket ever succeeds (invariant A5).
    ///
    /// # Errors
    /// The store failed. Whether the ticket was claimed is unknown then, so the call must not run.
    async fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault>;

    /// Takes what became of the call that claimed a ticket (invariant J4).
    ///
    /// # Errors
    /// The store failed. The ticket is in doubt when its lease is over, if it was not told.
    async fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault>;

    /// Withdraws a ticket, unless it is settled or unknown.
    ///
    /// # Errors
    /// The store failed.
    async fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault>;

    /// Takes an approver's decision. The first decision stands (invariant A9).
    ///
    /// # Errors
    /// The decision does not count, or the store failed.
    async fn decide(
        &self,
        ticket: Digest,
        verdict: Verdict,
        approver: &CallContext<'_>,
    ) -> Result<Decided, DecideFault>;

    /// What `approver` could decide now, the oldest first, at most `max`.
    ///
    /// # Errors
    /// The store failed.
    async fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault>;
}

/// How the gate reaches its store of confirmations.
pub type ConfirmationSeam = Seam<dyn ConfirmationStore, dyn BlockingStore>;
seams!(ConfirmationSeam, ConfirmationStore, BlockingStore);
