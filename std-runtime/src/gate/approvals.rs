//! What approvers do at a gate: see what waits, and decide, with a record of each decision.

use callgate_core::audit::AuditFault;
use callgate_core::code::Code;
use callgate_core::confirm::{CancelError, DecideError, Decided, ReconcileError, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;

use super::{Gate, Parts};
use crate::captured::CapturedContext;
use crate::common::Common;
use crate::confirmations::{
    DecideFault, GrantError, NewGrant, PendingApproval, Resolution, Revoked, StandingGrant, StoreFault, TicketView,
};
use crate::contain::contain;
use crate::desk::{self, Desk, Finding, Ruling};
use crate::future::block_on;
use crate::journal::OperationView;

/// What approvers do at a gate. Made by [`Gate::approvals`].
///
/// Whoever decides comes from a transport that authenticated it, never from arguments (invariants A2, A3). A decision is recorded
/// before it takes effect, and once more when it does not count: no call is ever let through by a yes that left no trace.
#[derive(Clone, Copy, Debug)]
pub struct Approvals<'g>(&'g Gate);

/// Why a decision was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecisionFault {
    /// The rules or the store refuse it.
    #[error(transparent)]
    Refused(#[from] DecideFault),
    /// The request is not cancelled.
    #[error(transparent)]
    Cancel(CancelError),
    /// The request stays in doubt.
    #[error(transparent)]
    Resolve(ReconcileError),
    /// The record of it could not be written, so it was not made (invariant J2).
    #[error("the decision could not be recorded, so it was not made")]
    Unrecorded,
}

impl DecisionFault {
    /// The code of the fault.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Refused(DecideFault::Unknown)
            | Self::Cancel(CancelError::Unknown)
            | Self::Resolve(ReconcileError::Unknown) => Code::NotFound,
            Self::Refused(DecideFault::Refused(DecideError::Unauthenticated))
            | Self::Resolve(ReconcileError::Unauthenticated) => Code::Unauthorized,
            Self::Resolve(ReconcileError::NoProof | ReconcileError::StillUnknown) => Code::ValidationError,
            Self::Refused(DecideFault::Refused(_)) | Self::Cancel(_) | Self::Resolve(_) => Code::Forbidden,
            Self::Refused(DecideFault::Store) => Code::StoreUnavailable,
            Self::Unrecorded => Code::AuditUnavailable,
        }
    }

    /// The name in records.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Refused(DecideFault::Unknown)
            | Self::Cancel(CancelError::Unknown)
            | Self::Resolve(ReconcileError::Unknown) => "unknown",
            Self::Refused(DecideFault::Refused(error)) => error.as_str(),
            Self::Refused(DecideFault::Store) => "store",
            Self::Cancel(_) => "settled",
            Self::Resolve(ReconcileError::Unauthenticated) => "unauthenticated",
            Self::Resolve(ReconcileError::MissingScope) => "missing_scope",
            Self::Resolve(ReconcileError::NoProof) => "no_proof",
            Self::Resolve(ReconcileError::StillUnknown) => "still_unknown",
            Self::Resolve(_) => "not_in_doubt",
            Self::Unrecorded => "unrecorded",
        }
    }
}

/// Why a standing grant was not given, or not taken back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantFault {
    /// The rules or the store refuse it.
    #[error(transparent)]
    Refused(#[from] GrantError),
    /// The record of it could not be written, so it was not done (invariant J2).
    #[error("it could not be recorded, so it was not done")]
    Unrecorded,
}

impl GrantFault {
    /// The code of the fault.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Refused(error) => match error {
                GrantError::Unknown => Code::NotFound,
                GrantError::Unauthenticated => Code::Unauthorized,
                GrantError::Duration | GrantError::Uses | GrantError::Arguments | GrantError::Schema(_) => {
                    Code::ValidationError
                }
                GrantError::Store | GrantError::Full => Code::StoreUnavailable,
                GrantError::MissingScope | GrantError::OwnGrant | GrantError::Over => Code::Forbidden,
            },
            Self::Unrecorded => Code::AuditUnavailable,
        }
    }
}

impl<'g> Approvals<'g> {
    pub(super) const fn new(gate: &'g Gate) -> Self {
        Self(gate)
    }

    /// What `approver` could decide now, the oldest first, at most `max`.
    ///
    /// # Errors
    /// The store failed.
    pub fn pending(self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        block_on(self.parts().pending(&approver.into(), max))
    }

    /// The requests that `viewer` may be told of, whatever became of them: its own, those that it could decide, and with the scope
    /// [`RECONCILE_SCOPE`](callgate_core::confirm::RECONCILE_SCOPE) all of its tenant; the oldest first, at most `max`. What was claimed by a
    /// call that was never heard of again is found to be in doubt by this (invariant J4).
    ///
    /// # Errors
    /// The store failed.
    pub fn tickets(self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        block_on(desk::tickets(self.parts(), &viewer.into(), max))
    }

    /// Withdraws a request for its requester, who no longer wants the call.
    ///
    /// # Errors
    /// Says why it stays as it is.
    pub fn cancel(self, ticket: Digest, requester: &CallContext<'_>) -> Result<(), DecisionFault> {
        block_on(desk::cancel(self.parts(), ticket, &requester.into()))
    }

    /// Settles a request in doubt by what somebody found out, and tells what it is now. The proof stands in the record.
    ///
    /// # Errors
    /// Says why it stays in doubt.
    pub fn resolve(self, ticket: Digest, resolution: &Resolution<'_>) -> Result<TicketView, DecisionFault> {
        block_on(desk::resolve(self.parts(), ticket, &resolution.into()))
    }

    /// Takes an approver's decision on a pending call, by the ticket that its question named as `approval_id`. The first decision
    /// stands (invariant A9).
    ///
    /// # Errors
    /// Says why the decision does not count. What is unknown then is recorded as such.
    pub fn decide(
        self,
        ticket: Digest,
        verdict: Verdict,
        approver: &CallContext<'_>,
    ) -> Result<Decided, DecisionFault> {
        block_on(desk::decide(self.parts(), ticket, verdict, &approver.into()))
    }

    /// Leaves in doubt what calls hold that have not been heard of within their lease, and tells what that was (invariant J4). For a
    /// host to call when it starts, and from time to time. Nothing runs again by it.
    ///
    /// # Errors
    /// The store failed. What it left in doubt before is recorded.
    pub fn reap(self) -> Result<Vec<TicketView>, StoreFault> {
        block_on(desk::reap(self.parts()))
    }

    /// Gives a standing grant: calls that it covers are not asked about, and pass every other stage.
    ///
    /// # Errors
    /// Nobody may give this one, the store failed, or it could not be recorded.
    pub fn grant(self, grant: NewGrant, by: &CallContext<'_>) -> Result<StandingGrant, GrantFault> {
        block_on(desk::grant(self.parts(), grant, &by.into()))
    }

    /// The standing grants that `viewer` may be told of, the oldest first, at most `max`.
    ///
    /// # Errors
    /// The store failed.
    pub fn grants(self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        block_on(self.parts().grants(&viewer.into(), max))
    }

    /// Takes a standing grant back: from the answer on it covers nothing (invariant P5).
    ///
    /// # Errors
    /// `by` may not, the store failed, or it could not be recorded. After a failure of the store it may be revoked.
    pub fn revoke(self, grant: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantFault> {
        block_on(desk::revoke(self.parts(), grant, &by.into()))
    }

    fn parts(self) -> &'g Parts {
        &self.0.0
    }
}

/// Every part that is asked answers at once: no future here ever waits.
impl Desk for Parts {
    fn common(&self) -> &Common {
        &self.common
    }

    async fn record(&self, ruling: &Ruling) -> Result<(), AuditFault> {
        let Some(audit) = &self.audit else { return Ok(()) };
        ruling.with_record(|record| contain(|| audit.record(record)).unwrap_or(Err(AuditFault)))
    }

    async fn decide(
        &self,
        ticket: Digest,
        verdict: Verdict,
        approver: &CapturedContext,
    ) -> Result<Decided, DecideFault> {
        let decided = contain(|| self.confirmations.decide(ticket, verdict, &approver.borrow()));
        decided.unwrap_or(Err(DecideFault::Store))
    }

    async fn pending(&self, approver: &CapturedContext, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        contain(|| self.confirmations.pending(&approver.borrow(), max)).unwrap_or(Err(StoreFault))
    }

    async fn tickets(&self, viewer: &CapturedContext, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        contain(|| self.confirmations.tickets(&viewer.borrow(), max)).unwrap_or(Err(StoreFault))
    }

    async fn cancel(&self, ticket: Digest, requester: &CapturedContext) -> Result<Result<(), CancelError>, StoreFault> {
        contain(|| self.confirmations.cancel(ticket, &requester.borrow())).unwrap_or(Err(StoreFault))
    }

    async fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        contain(|| self.confirmations.reap(max)).unwrap_or(Err(StoreFault))
    }

    async fn reconcile(
        &self,
        ticket: Digest,
        finding: &Finding,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        contain(|| self.confirmations.reconcile(ticket, &finding.borrow())).unwrap_or(Err(StoreFault))
    }

    async fn grant(&self, grant: NewGrant, by: &CapturedContext) -> Result<StandingGrant, GrantError> {
        contain(|| self.confirmations.grant(grant, &by.borrow())).unwrap_or(Err(GrantError::Store))
    }

    async fn grants(&self, viewer: &CapturedContext, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        contain(|| self.confirmations.grants(&viewer.borrow(), max)).unwrap_or(Err(StoreFault))
    }

    async fn revoke(&self, grant: Digest, by: &CapturedContext) -> Result<Revoked, GrantError> {
        contain(|| self.confirmations.revoke(grant, &by.borrow())).unwrap_or(Err(GrantError::Store))
    }

    fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    async fn operations(&self, viewer: &CapturedContext, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        let journal = self.journal.as_deref().ok_or(StoreFault)?;
        contain(|| journal.operations(&viewer.borrow(), max)).unwrap_or(Err(StoreFault))
    }

    async fn reap_operations(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        let journal = self.journal.as_deref().ok_or(StoreFault)?;
        contain(|| journal.reap(max)).unwrap_or(Err(StoreFault))
    }

    async fn reconcile_operation(
        &self,
        key: Digest,
        finding: &Finding,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        let journal = self.journal.as_deref().ok_or(StoreFault)?;
        contain(|| journal.reconcile(key, &finding.borrow())).unwrap_or(Err(StoreFault))
    }
}
