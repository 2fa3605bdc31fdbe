//! What a gate's journal tells of operations, and how those in doubt are settled, with a record of each.

use callgate_core::audit::Decision;
use callgate_core::code::Effect;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;

use super::Gate;
use super::approvals::{AT_ONCE, DecisionFault, OWN_CHANNEL};
use crate::confirmations::{DecideFault, Resolution, StoreFault};
use crate::contain::contain;
use crate::context::random_request_id;
use crate::journal::{Journal, OperationView};

/// The most operations that the one which is settled is looked for among, to name it in the record.
const MOST: usize = 100_000;

/// The operations of a gate. Made by [`Gate::operations`]. Whoever asks comes from a transport that authenticated it, never from
/// arguments (invariant A3).
#[derive(Clone, Copy, Debug)]
pub struct Operations<'g>(&'g Gate);

impl<'g> Operations<'g> {
    pub(super) const fn new(gate: &'g Gate) -> Self {
        Self(gate)
    }

    fn journal(self) -> Result<&'g dyn Journal, StoreFault> {
        self.0.0.journal.as_deref().ok_or(StoreFault)
    }

    /// The operations that `viewer` may be told of: its own, and with the scope
    /// [`RECONCILE_SCOPE`](callgate_core::confirm::RECONCILE_SCOPE) all of its tenant; those in doubt first and then the oldest first, at
    /// most `max`. What was claimed by a call that was never heard of again is found to be in doubt by this (invariant J4).
    ///
    /// # Errors
    /// The journal failed, or there is none.
    pub fn list(self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        drop(self.reap()?);
        let journal = self.journal()?;
        contain(|| journal.operations(viewer, max)).unwrap_or(Err(StoreFault))
    }

    /// Settles an operation in doubt by what somebody found out, and tells what it is now: with effect [`Effect::Done`] it counts as made,
    /// and with [`Effect::None`] the next call of it may try again. The proof stands in the record, which is made before.
    ///
    /// # Errors
    /// Says why it stays in doubt.
    pub fn resolve(self, key: Digest, resolution: &Resolution<'_>) -> Result<OperationView, DecisionFault> {
        let journal = self.journal().map_err(DecideFault::from)?;
        let what = match resolution.effect {
            Effect::Done => "resolve_done",
            Effect::None => "resolve_none",
            Effect::Unknown => "resolve_unknown",
        };
        let known = self.list(&resolution.by, MOST).map_err(DecideFault::from)?;
        let known = known.iter().find(|view| view.key == key);
        let approvals = self.0.approvals();
        let decision = Decision {
            ticket: None,
            tool: known.map_or("", |view| view.tool.as_str()),
            operation: known.map(|view| view.operation.as_str()),
            ..approvals.about(key, &resolution.by, what, Some(resolution.proof))
        };
        approvals.recorded(&decision, || {
            let settled = journal.reconcile(key, resolution).map_err(DecideFault::from)?;
            settled.map_err(DecisionFault::Resolve)
        })
    }

    /// Leaves in doubt what calls are at that have not been heard of within their lease, and tells what that was (invariant J4). For a
    /// host to call when it starts, and from time to time. Nothing runs again by it.
    ///
    /// # Errors
    /// The journal failed, or there is none. What it left in doubt before is recorded.
    pub fn reap(self) -> Result<Vec<OperationView>, StoreFault> {
        let journal = self.journal()?;
        let mut lost = Vec::new();
        loop {
            let reaped = contain(|| journal.reap(AT_ONCE)).unwrap_or(Err(StoreFault))?;
            for view in &reaped {
                let id = random_request_id(&*self.0.0.common.entropy).unwrap_or_default();
                let reaper = CallContext::new(OWN_CHANNEL, &id);
                let note = format!("made by {}: the call was not heard of within its lease", view.request_id);
                let approvals = self.0.approvals();
                let decision = Decision {
                    ticket: None,
                    tool: &view.tool,
                    operation: Some(&view.operation),
                    ..approvals.about(view.key, &reaper, "in_doubt", Some(&note))
                };
                // It is in doubt whether or not this can be recorded.
                if approvals.record(&decision).is_err() {
                    tracing::error!(operation = %view.key, "that an operation was left in doubt could not be recorded");
                }
            }
            let all = reaped.len() < AT_ONCE;
            lost.extend(reaped);
            if all {
                return Ok(lost);
            }
        }
    }
}
