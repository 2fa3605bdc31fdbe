//! Stores of pending confirmations that may wait.

use async_trait::async_trait;
use callgate_core::call::{Asking, Covered};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::request::Context;
use callgate_core::tool::Tool;
use callgate_std::confirmations::ConfirmationStore as BlockingStore;
pub use callgate_std::confirmations::{
    Binding, By, CancelError, DecideFault, Decided, Finish, FinishError, GrantError, Guarantee, IssueFault, Issued,
    Loaded, NewGrant, PendingApproval, PendingRequest, Presented, ReconcileError, Refusal, Resolution, Revoked,
    StandingGrant, StoreFault, TicketView, Verdict,
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

    /// The grants that could cover calls of this principal of a tool of this definition now. Takes no use.
    ///
    /// # Errors
    /// The store failed. A store that keeps none has none.
    async fn grants_for(&self, caller: &CallContext<'_>, definition: Digest) -> Result<Vec<StandingGrant>, StoreFault> {
        let _ = (caller, definition);
        Ok(Vec::new())
    }

    /// Takes a use of a grant for the call of `request`, and in the same step keeps a ticket that `presented` has claimed, whose name
    /// it gives (invariant P5).
    ///
    /// # Errors
    /// No use was taken; after [`GrantError::Store`] that is unknown, so the call must not run.
    async fn claim_grant(
        &self,
        grant: Digest,
        request: &PendingRequest<'_>,
        presented: &Presented,
    ) -> Result<Digest, GrantError> {
        let _ = (grant, request, presented);
        Err(GrantError::Store)
    }

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

    /// Withdraws a ticket for its requester, who no longer wants the call.
    ///
    /// # Errors
    /// The store failed, which is also what one says that cannot do this.
    async fn cancel(&self, ticket: Digest, requester: &CallContext<'_>) -> Result<Result<(), CancelError>, StoreFault> {
        let _ = (ticket, requester);
        Err(StoreFault)
    }

    /// The reaper: leaves in doubt what calls hold that have not been heard of within their lease, at most `max` tickets, and tells
    /// which (invariant J4). Nothing runs again by it.
    ///
    /// # Errors
    /// The store failed, which is also what one says that cannot do this.
    async fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        let _ = max;
        Err(StoreFault)
    }

    /// Settles a ticket in doubt, and tells what it is now.
    ///
    /// # Errors
    /// The store failed, which is also what one says that cannot do this.
    async fn reconcile(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        let _ = (ticket, resolution);
        Err(StoreFault)
    }

    /// Keeps a standing grant that `by` gives.
    ///
    /// # Errors
    /// Nothing was kept; [`GrantError::Store`] is also what a store says that keeps none.
    async fn grant(&self, grant: NewGrant, by: &CallContext<'_>) -> Result<StandingGrant, GrantError> {
        drop((grant, by));
        Err(GrantError::Store)
    }

    /// The grants that `viewer` may be told of, the oldest first, at most `max`; those that are over are among them until they are
    /// forgotten.
    ///
    /// # Errors
    /// The store failed. A store that keeps none has none.
    async fn grants(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        let _ = (viewer, max);
        Ok(Vec::new())
    }

    /// Takes a grant back: when this has answered, no call is covered by it any more (invariant P5).
    ///
    /// # Errors
    /// `by` may not, or the store failed: whether it is revoked is unknown then.
    async fn revoke(&self, grant: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantError> {
        let _ = (grant, by);
        Err(GrantError::Store)
    }

    /// The tickets that `viewer` may be told of, whatever their state, the oldest first, at most `max`.
    ///
    /// # Errors
    /// The store failed, which is also what one says that cannot do this.
    async fn tickets(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        let _ = (viewer, max);
        Err(StoreFault)
    }
}

impl dyn ConfirmationStore + '_ {
    /// Looks for a standing grant that covers a call, and takes a use of the first that does: gives its name, and the ticket that the
    /// call holds then.
    pub(crate) async fn covered<C, T>(&self, asking: &Asking<C, T>) -> Result<Option<Covered>, StoreFault>
    where
        C: Context + Sync,
        T: Tool + Sync,
    {
        let call = asking.call();
        let grants = self.grants_for(&call.caller(), call.tool().definition()).await?;
        for grant in &grants {
            if !grant.covers(&call.subject()) {
                continue;
            }
            match self.claim_grant(grant.id, &PendingRequest::of(asking), &asking.presented()).await {
                Ok(ticket) => return Ok(Some(Covered { ticket, grant: grant.id })),
                Err(GrantError::Store) => return Err(StoreFault),
                Err(_) => {}
            }
        }
        Ok(None)
    }
}

/// How the gate reaches its store of confirmations.
pub type ConfirmationSeam = Seam<dyn ConfirmationStore, dyn BlockingStore>;
seams!(ConfirmationSeam, ConfirmationStore, BlockingStore);
