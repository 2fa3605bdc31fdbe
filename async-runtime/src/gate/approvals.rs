//! What approvers do at an async gate: see what waits, and decide, with a record of each decision.

use std::future::Future;

use callgate_core::confirm::{Decided, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_std::captured::CapturedContext;
use callgate_std::confirmations::{
    DecideFault, GrantError, NewGrant, PendingApproval, Resolution, Revoked, StandingGrant, StoreFault, TicketView,
};
use callgate_std::desk::{self, Desk as _, Finding};

use super::desk::Front;
use super::{DecisionFault, Gate, GrantFault};

/// What approvers do at a gate. Made by [`Gate::approvals`].
///
/// Whoever decides comes from a transport that authenticated it, never from arguments (invariants A2, A3). A decision is recorded
/// before it takes effect, and once more when it does not count: no call is ever let through by a yes that left no trace.
///
/// The futures borrow nothing and start when they are polled. One that is dropped after that does what it was to do all the same, on a task
/// of its own where something waits (invariant X4); only its answer is lost. An executor that goes down in the middle leaves what a process that
/// dies there leaves: a record of what was tried, and a decision that may not have been made.
///
/// ```
/// use callgate_async::gate::{DecisionFault, Gate};
/// use callgate_async::runtime::Tokio;
/// use callgate_core::confirm::{Decided, Verdict};
/// use callgate_core::context::{CallContext, Scopes};
/// use callgate_core::request::Request;
/// use callgate_core::tool::ConfirmBy;
/// use callgate_std::output::Reply;
/// use callgate_std::registry::Registry;
/// use callgate_std::tool::Tool;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pay = Tool::builder("pay")
///     .description("Pays a bill")
///     .mutating()
///     .confirm(ConfirmBy::Approver { scope: "approve" })
///     .handler(|_| Ok(Reply::new("paid")));
/// let tools = Registry::builder().add(pay).build()?;
/// let gate = Gate::builder(tools, Tokio::current()?).with_approvers().build()?;
///
/// let alice = CallContext::new("cli", "r1").with_principal("alice");
/// let asked = gate.call(&alice, Request { tool: "pay", arguments: b"{}", token: None }).await;
/// assert!(asked.asks());
///
/// let boss = CallContext::new("cli", "r2").with_principal("boss").with_scopes(Scopes::new("approve"));
/// let waiting = gate.approvals().pending(&boss, 10).await?;
/// let decided = gate.approvals().decide(waiting[0].ticket, Verdict::Approve, &boss).await;
/// assert_eq!(decided, Ok(Decided::Approved));
/// // The first decision stands.
/// let late = gate.approvals().decide(waiting[0].ticket, Verdict::Deny, &boss).await;
/// assert!(matches!(late, Err(DecisionFault::Refused(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Approvals<'g>(&'g Gate);

impl<'g> Approvals<'g> {
    pub(super) const fn new(gate: &'g Gate) -> Self {
        Self(gate)
    }

    fn front(self) -> Front {
        Front(self.0.clone())
    }

    /// What `approver` could decide now, the oldest first, at most `max`.
    ///
    /// # Errors
    /// The store failed.
    pub fn pending(
        self,
        approver: &CallContext<'_>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<PendingApproval>, StoreFault>> + Send + use<> {
        let (front, approver) = (self.front(), CapturedContext::from(approver));
        async move { front.pending(&approver, max).await }
    }

    /// The requests that `viewer` may be told of, whatever became of them: its own, those that it could decide, and with the scope
    /// [`RECONCILE_SCOPE`](callgate_core::confirm::RECONCILE_SCOPE) all of its tenant; the oldest first, at most `max`. What was claimed by a
    /// call that was never heard of again is found to be in doubt by this (invariant J4).
    ///
    /// # Errors
    /// The store failed.
    pub fn tickets(
        self,
        viewer: &CallContext<'_>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<TicketView>, StoreFault>> + Send + use<> {
        let (front, viewer) = (self.front(), CapturedContext::from(viewer));
        self.0.to_its_end(async move { desk::tickets(&front, &viewer, max).await }, || Err(StoreFault))
    }

    /// Withdraws a request for its requester, who no longer wants the call.
    ///
    /// # Errors
    /// Says why it stays as it is.
    pub fn cancel(
        self,
        ticket: Digest,
        requester: &CallContext<'_>,
    ) -> impl Future<Output = Result<(), DecisionFault>> + Send + use<> {
        let (front, requester) = (self.front(), CapturedContext::from(requester));
        self.0.to_its_end(async move { desk::cancel(&front, ticket, &requester).await }, unanswered)
    }

    /// Settles a request in doubt by what somebody found out, and tells what it is now. The proof stands in the record.
    ///
    /// # Errors
    /// Says why it stays in doubt.
    pub fn resolve(
        self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> impl Future<Output = Result<TicketView, DecisionFault>> + Send + use<> {
        let (front, finding) = (self.front(), Finding::from(resolution));
        self.0.to_its_end(async move { desk::resolve(&front, ticket, &finding).await }, unanswered)
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
    ) -> impl Future<Output = Result<Decided, DecisionFault>> + Send + use<> {
        let (front, approver) = (self.front(), CapturedContext::from(approver));
        self.0.to_its_end(async move { desk::decide(&front, ticket, verdict, &approver).await }, unanswered)
    }

    /// Leaves in doubt what calls hold that have not been heard of within their lease, and tells what that was (invariant J4). For a
    /// host to call when it starts, and from time to time. Nothing runs again by it.
    ///
    /// # Errors
    /// The store failed. What it left in doubt before is recorded.
    pub fn reap(self) -> impl Future<Output = Result<Vec<TicketView>, StoreFault>> + Send + use<> {
        let front = self.front();
        self.0.to_its_end(async move { desk::reap(&front).await }, || Err(StoreFault))
    }

    /// Gives a standing grant: calls that it covers are not asked about, and pass every other stage.
    ///
    /// # Errors
    /// Nobody may give this one, the store failed, or it could not be recorded.
    pub fn grant(
        self,
        grant: NewGrant,
        by: &CallContext<'_>,
    ) -> impl Future<Output = Result<StandingGrant, GrantFault>> + Send + use<> {
        let (front, by) = (self.front(), CapturedContext::from(by));
        let unanswered = || Err(GrantFault::Refused(GrantError::Store));
        self.0.to_its_end(async move { desk::grant(&front, grant, &by).await }, unanswered)
    }

    /// The standing grants that `viewer` may be told of, the oldest first, at most `max`.
    ///
    /// # Errors
    /// The store failed.
    pub fn grants(
        self,
        viewer: &CallContext<'_>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<StandingGrant>, StoreFault>> + Send + use<> {
        let (front, viewer) = (self.front(), CapturedContext::from(viewer));
        async move { front.grants(&viewer, max).await }
    }

    /// Takes a standing grant back: from the answer on it covers nothing (invariant P5).
    ///
    /// # Errors
    /// `by` may not, the store failed, or it could not be recorded. After a failure of the store it may be revoked.
    pub fn revoke(
        self,
        grant: Digest,
        by: &CallContext<'_>,
    ) -> impl Future<Output = Result<Revoked, GrantFault>> + Send + use<> {
        let (front, by) = (self.front(), CapturedContext::from(by));
        let unanswered = || Err(GrantFault::Refused(GrantError::Store));
        self.0.to_its_end(async move { desk::revoke(&front, grant, &by).await }, unanswered)
    }
}

/// What is said when the executor went down before there was an answer.
pub(super) const fn unanswered<R>() -> Result<R, DecisionFault> {
    Err(DecisionFault::Refused(DecideFault::Store))
}
