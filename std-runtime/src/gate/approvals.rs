//! What approvers do at a gate: see what waits, and decide, with a record of each decision.

use callgate_core::audit::{Decision, Record};
use callgate_core::code::Code;
use callgate_core::confirm::{DecideError, Decided, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;

use super::Gate;
use crate::confirmations::{ConfirmationStore as _, DecideFault, PendingApproval, StoreFault};
use crate::contain::contain;
use crate::render::approver;

/// The most requests that the one which is decided is looked for among, to name its tool in the record.
const MOST: usize = 10_000;

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
    /// The record of it could not be written, so it was not made (invariant J2).
    #[error("the decision could not be recorded, so it was not made")]
    Unrecorded,
}

impl DecisionFault {
    /// The code of the fault.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Refused(DecideFault::Unknown) => Code::NotFound,
            Self::Refused(DecideFault::Refused(DecideError::Unauthenticated)) => Code::Unauthorized,
            Self::Refused(DecideFault::Refused(_)) => Code::Forbidden,
            Self::Refused(DecideFault::Store) => Code::StoreUnavailable,
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
        contain(|| self.0.0.confirmations.pending(approver, max)).unwrap_or(Err(StoreFault))
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
        let asked = self.pending(approver, MOST).map_err(DecideFault::from)?;
        let asked = asked.into_iter().find(|asked| asked.ticket == ticket);
        let gate = &self.0.0;
        let settings = gate.common.settings.borrow();
        let decision = Decision {
            at: gate.common.now(),
            by: *approver,
            tool: asked.as_ref().map_or("", |asked| asked.tool.as_str()),
            arguments: asked.as_ref().and_then(|asked| approver::digest_of(&asked.summary)),
            policy: settings.policy,
            ticket: Some(ticket),
            what: match verdict {
                Verdict::Approve => "approve",
                Verdict::Deny => "deny",
            },
            refused: None,
            note: None,
            redaction: settings.redaction,
        };
        self.record(&decision).map_err(|()| DecisionFault::Unrecorded)?;
        let decided = contain(|| gate.confirmations.decide(ticket, verdict, approver));
        decided.unwrap_or(Err(DecideFault::Store)).map_err(|fault| {
            let refused = DecisionFault::Refused(fault);
            let why = match fault {
                DecideFault::Unknown => "unknown",
                DecideFault::Refused(error) => error.as_str(),
                DecideFault::Store => "store",
            };
            // That it was tried is recorded already; that it does not count is the safe side.
            let _ = self.record(&Decision { refused: Some((refused.code(), why)), ..decision });
            refused
        })
    }

    fn record(self, decision: &Decision<'_>) -> Result<(), ()> {
        match &self.0.0.audit {
            None => Ok(()),
            Some(audit) => match contain(|| audit.record(&Record::decision(decision))) {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) | Err(_) => Err(()),
            },
        }
    }
}
