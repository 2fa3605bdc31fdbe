//! What approvers and hosts do at a gate of any front-end: in which order its parts are asked, and what is recorded of it.
//!
//! Written once, as futures (invariant N1). A front-end says how its parts are reached; those of the blocking gate answer before they
//! are waited for.

mod approvals;
mod operations;
mod ruling;

use std::future::Future;

use callgate_core::audit::AuditFault;
use callgate_core::confirm::{CancelError, Decided, ReconcileError, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;

use crate::captured::CapturedContext;
use crate::common::Common;
use crate::confirmations::{
    DecideFault, GrantError, NewGrant, PendingApproval, Revoked, StandingGrant, StoreFault, TicketView,
};
use crate::context::random_request_id;
use crate::journal::OperationView;

pub use approvals::{cancel, decide, grant, reap, resolve, revoke, tickets};
pub use operations::{operations, reap_operations, resolve_operation};
pub use ruling::{Finding, Ruling};

/// How many tickets or operations the reaper takes in one step of the store.
const AT_ONCE: usize = 256;
/// The channel of what the gate does by itself.
const OWN_CHANNEL: &str = "gate";

/// How the parts of a gate are asked. Each answer is contained: a part that panics, or does not answer in time, has failed.
pub trait Desk: Sync {
    /// What all gates share.
    fn common(&self) -> &Common;
    /// Writes the record of a ruling.
    fn record(&self, ruling: &Ruling) -> impl Future<Output = Result<(), AuditFault>> + Send;

    /// [`ConfirmationStore::decide`](crate::confirmations::ConfirmationStore::decide), and so on.
    fn decide(
        &self,
        ticket: Digest,
        verdict: Verdict,
        approver: &CapturedContext,
    ) -> impl Future<Output = Result<Decided, DecideFault>> + Send;
    fn pending(
        &self,
        approver: &CapturedContext,
        max: usize,
    ) -> impl Future<Output = Result<Vec<PendingApproval>, StoreFault>> + Send;
    fn tickets(
        &self,
        viewer: &CapturedContext,
        max: usize,
    ) -> impl Future<Output = Result<Vec<TicketView>, StoreFault>> + Send;
    fn cancel(
        &self,
        ticket: Digest,
        requester: &CapturedContext,
    ) -> impl Future<Output = Result<Result<(), CancelError>, StoreFault>> + Send;
    fn reap(&self, max: usize) -> impl Future<Output = Result<Vec<TicketView>, StoreFault>> + Send;
    fn reconcile(
        &self,
        ticket: Digest,
        finding: &Finding,
    ) -> impl Future<Output = Result<Result<TicketView, ReconcileError>, StoreFault>> + Send;
    fn grant(
        &self,
        grant: NewGrant,
        by: &CapturedContext,
    ) -> impl Future<Output = Result<StandingGrant, GrantError>> + Send;
    fn grants(
        &self,
        viewer: &CapturedContext,
        max: usize,
    ) -> impl Future<Output = Result<Vec<StandingGrant>, StoreFault>> + Send;
    fn revoke(&self, grant: Digest, by: &CapturedContext) -> impl Future<Output = Result<Revoked, GrantError>> + Send;

    /// Whether there is a journal. The questions to one that is not there fail.
    fn has_journal(&self) -> bool;
    /// [`Journal::operations`](crate::journal::Journal::operations), and so on.
    fn operations(
        &self,
        viewer: &CapturedContext,
        max: usize,
    ) -> impl Future<Output = Result<Vec<OperationView>, StoreFault>> + Send;
    fn reap_operations(&self, max: usize) -> impl Future<Output = Result<Vec<OperationView>, StoreFault>> + Send;
    fn reconcile_operation(
        &self,
        key: Digest,
        finding: &Finding,
    ) -> impl Future<Output = Result<Result<OperationView, ReconcileError>, StoreFault>> + Send;
}

/// What the gate itself finds out, asked by nobody.
fn found_out(common: &Common, note: String) -> Ruling {
    let id = random_request_id(&*common.entropy).unwrap_or_default();
    let gate = CapturedContext::from(&CallContext::new(OWN_CHANNEL, &id));
    Ruling { note: Some(note), ..Ruling::new(common, &gate, "in_doubt") }
}
