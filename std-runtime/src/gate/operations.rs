//! What a gate's journal tells of operations, and how those in doubt are settled, with a record of each.

use callgate_core::context::CallContext;
use callgate_core::digest::Digest;

use super::{DecisionFault, Gate};
use crate::confirmations::{Resolution, StoreFault};
use crate::desk;
use crate::future::block_on;
use crate::journal::OperationView;

/// The operations of a gate. Made by [`Gate::operations`]. Whoever asks comes from a transport that authenticated it, never from
/// arguments (invariant A3).
#[derive(Clone, Copy, Debug)]
pub struct Operations<'g>(&'g Gate);

impl<'g> Operations<'g> {
    pub(super) const fn new(gate: &'g Gate) -> Self {
        Self(gate)
    }

    /// The operations that `viewer` may be told of: its own, and with the scope
    /// [`RECONCILE_SCOPE`](callgate_core::confirm::RECONCILE_SCOPE) all of its tenant; those in doubt first and then the oldest first, at
    /// most `max`. What was claimed by a call that was never heard of again is found to be in doubt by this (invariant J4).
    ///
    /// # Errors
    /// The journal failed, or there is none.
    pub fn list(self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        block_on(desk::operations(&*self.0.0, &viewer.into(), max))
    }

    /// Settles an operation in doubt by what somebody found out, and tells what it is now: with effect [`Effect::Done`] it counts as made,
    /// and with [`Effect::None`] the next call of it may try again. The proof stands in the record, which is made before.
    ///
    /// [`Effect::Done`]: callgate_core::code::Effect::Done
    /// [`Effect::None`]: callgate_core::code::Effect::None
    ///
    /// # Errors
    /// Says why it stays in doubt.
    pub fn resolve(self, key: Digest, resolution: &Resolution<'_>) -> Result<OperationView, DecisionFault> {
        block_on(desk::resolve_operation(&*self.0.0, key, &resolution.into()))
    }

    /// Leaves in doubt what calls are at that have not been heard of within their lease, and tells what that was (invariant J4). For a
    /// host to call when it starts, and from time to time. Nothing runs again by it.
    ///
    /// # Errors
    /// The journal failed, or there is none. What it left in doubt before is recorded.
    pub fn reap(self) -> Result<Vec<OperationView>, StoreFault> {
        block_on(desk::reap_operations(&*self.0.0))
    }
}
