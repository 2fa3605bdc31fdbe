//! What the journal of an async gate tells of operations, and how those in doubt are settled, with a record of each.

use std::future::Future;

use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_std::captured::CapturedContext;
use callgate_std::confirmations::{Resolution, StoreFault};
use callgate_std::desk::{self, Finding};
use callgate_std::journal::OperationView;

use super::approvals::unanswered;
use super::desk::Front;
use super::{DecisionFault, Gate};

/// The operations of a gate. Made by [`Gate::operations`]. Whoever asks comes from a transport that authenticated it, never from
/// arguments (invariant A3). What holds for the futures of [`Approvals`](super::Approvals) holds for these.
#[derive(Clone, Copy, Debug)]
pub struct Operations<'g>(&'g Gate);

impl<'g> Operations<'g> {
    pub(super) const fn new(gate: &'g Gate) -> Self {
        Self(gate)
    }

    fn front(self) -> Front {
        Front(self.0.clone())
    }

    /// The operations that `viewer` may be told of: its own, and with the scope
    /// [`RECONCILE_SCOPE`](callgate_core::confirm::RECONCILE_SCOPE) all of its tenant; those in doubt first and then the oldest first, at
    /// most `max`. What was claimed by a call that was never heard of again is found to be in doubt by this (invariant J4).
    ///
    /// # Errors
    /// The journal failed, or there is none.
    pub fn list(
        self,
        viewer: &CallContext<'_>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<OperationView>, StoreFault>> + Send + use<> {
        let (front, viewer) = (self.front(), CapturedContext::from(viewer));
        self.0.to_its_end(async move { desk::operations(&front, &viewer, max).await }, || Err(StoreFault))
    }

    /// Settles an operation in doubt by what somebody found out, and tells what it is now: with effect [`Effect::Done`] it counts as made,
    /// and with [`Effect::None`] the next call of it may try again. The proof stands in the record, which is made before.
    ///
    /// [`Effect::Done`]: callgate_core::code::Effect::Done
    /// [`Effect::None`]: callgate_core::code::Effect::None
    ///
    /// # Errors
    /// Says why it stays in doubt.
    pub fn resolve(
        self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> impl Future<Output = Result<OperationView, DecisionFault>> + Send + use<> {
        let (front, finding) = (self.front(), Finding::from(resolution));
        self.0.to_its_end(async move { desk::resolve_operation(&front, key, &finding).await }, unanswered)
    }

    /// Leaves in doubt what calls are at that have not been heard of within their lease, and tells what that was (invariant J4). For a
    /// host to call when it starts, and from time to time. Nothing runs again by it.
    ///
    /// # Errors
    /// The journal failed, or there is none. What it left in doubt before is recorded.
    pub fn reap(self) -> impl Future<Output = Result<Vec<OperationView>, StoreFault>> + Send + use<> {
        let front = self.front();
        self.0.to_its_end(async move { desk::reap_operations(&front).await }, || Err(StoreFault))
    }
}
