//! What approvers do at a gate: see what waits, and decide, with a record of each decision.

use callgate_core::audit::{Decision, Record};
use callgate_core::code::{Code, Effect};
use callgate_core::confirm::{CancelError, DecideError, Decided, ReconcileError, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;

use super::Gate;
use crate::confirmations::{
    ConfirmationStore as _, DecideFault, GrantError, NewGrant, PendingApproval, Resolution, Revoked, StandingGrant,
    StoreFault, TicketView,
};
use crate::contain::contain;
use crate::context::random_request_id;
use crate::render::approver;

/// The most requests that the one which is decided is looked for among, to name its tool in the record.
const MOST: usize = 10_000;

/// How many tickets the reaper takes in one step of the store.
pub(super) const AT_ONCE: usize = 256;
/// The channel of what the gate does by itself.
pub(super) const OWN_CHANNEL: &str = "gate";

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
        contain(|| self.0.0.confirmations.pending(approver, max)).unwrap_or(Err(StoreFault))
    }

    /// The requests that `viewer` may be told of, whatever became of them: its own, those that it could decide, and with the scope
    /// [`RECONCILE_SCOPE`](callgate_core::confirm::RECONCILE_SCOPE) all of its tenant; the oldest first, at most `max`. What was claimed by a
    /// call that was never heard of again is found to be in doubt by this (invariant J4).
    ///
    /// # Errors
    /// The store failed.
    pub fn tickets(self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        drop(self.reap()?);
        contain(|| self.0.0.confirmations.tickets(viewer, max)).unwrap_or(Err(StoreFault))
    }

    /// Withdraws a request for its requester, who no longer wants the call.
    ///
    /// # Errors
    /// Says why it stays as it is.
    pub fn cancel(self, ticket: Digest, requester: &CallContext<'_>) -> Result<(), DecisionFault> {
        let decision = self.about(ticket, requester, "cancel", None);
        self.recorded(&decision, || {
            let cancelled = self.0.0.confirmations.cancel(ticket, requester).map_err(DecideFault::from)?;
            cancelled.map_err(DecisionFault::Cancel)
        })
    }

    /// Settles a request in doubt by what somebody found out, and tells what it is now. The proof stands in the record.
    ///
    /// # Errors
    /// Says why it stays in doubt.
    pub fn resolve(self, ticket: Digest, resolution: &Resolution<'_>) -> Result<TicketView, DecisionFault> {
        let what = match resolution.effect {
            Effect::Done => "resolve_done",
            Effect::None => "resolve_none",
            Effect::Unknown => "resolve_unknown",
        };
        let decision = self.about(ticket, &resolution.by, what, Some(resolution.proof));
        self.recorded(&decision, || {
            drop(self.reap().map_err(DecideFault::from)?);
            let settled = self.0.0.confirmations.reconcile(ticket, resolution).map_err(DecideFault::from)?;
            settled.map_err(DecisionFault::Resolve)
        })
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
        let what = match verdict {
            Verdict::Approve => "approve",
            Verdict::Deny => "deny",
        };
        let decision = Decision {
            tool: asked.as_ref().map_or("", |asked| asked.tool.as_str()),
            arguments: asked.as_ref().and_then(|asked| approver::digest_of(&asked.summary)),
            ..self.about(ticket, approver, what, None)
        };
        self.recorded(&decision, || Ok(self.0.0.confirmations.decide(ticket, verdict, approver)?))
    }

    /// Leaves in doubt what calls hold that have not been heard of within their lease, and tells what that was (invariant J4). For a
    /// host to call when it starts, and from time to time. Nothing runs again by it.
    ///
    /// # Errors
    /// The store failed. What it left in doubt before is recorded.
    pub fn reap(self) -> Result<Vec<TicketView>, StoreFault> {
        let gate = &self.0.0;
        let mut lost = Vec::new();
        loop {
            let reaped = contain(|| gate.confirmations.reap(AT_ONCE)).unwrap_or(Err(StoreFault))?;
            for view in &reaped {
                let id = random_request_id(&*gate.common.entropy).unwrap_or_default();
                let reaper = CallContext::new(OWN_CHANNEL, &id);
                let note = format!("asked by {}: its call was not heard of within its lease", view.request_id);
                let decision =
                    Decision { tool: &view.tool, ..self.about(view.ticket, &reaper, "in_doubt", Some(&note)) };
                // It is in doubt whether or not this can be recorded.
                if self.record(&decision).is_err() {
                    tracing::error!(ticket = %view.ticket, "that a ticket was left in doubt could not be recorded");
                }
            }
            let all = reaped.len() < AT_ONCE;
            lost.extend(reaped);
            if all {
                return Ok(lost);
            }
        }
    }

    /// Gives a standing grant: calls that it covers are not asked about, and pass every other stage.
    ///
    /// # Errors
    /// Nobody may give this one, the store failed, or it could not be recorded.
    pub fn grant(self, grant: NewGrant, by: &CallContext<'_>) -> Result<StandingGrant, GrantFault> {
        let note = format!(
            "for {}: {} calls within {} ms, {:?}",
            grant.principal, grant.max_uses, grant.lasts_ms, grant.arguments
        );
        let (tool, definition) = (grant.tool.clone(), grant.definition);
        let decision = Decision { tool: &tool, ..self.about(definition, by, "grant", Some(&note)) };
        self.granting(&decision, || self.0.0.confirmations.grant(grant, by))
    }

    /// The standing grants that `viewer` may be told of, the oldest first, at most `max`.
    ///
    /// # Errors
    /// The store failed.
    pub fn grants(self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        contain(|| self.0.0.confirmations.grants(viewer, max)).unwrap_or(Err(StoreFault))
    }

    /// Takes a standing grant back: from the answer on it covers nothing (invariant P5).
    ///
    /// # Errors
    /// `by` may not, the store failed, or it could not be recorded. After a failure of the store it may be revoked.
    pub fn revoke(self, grant: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantFault> {
        let decision = self.about(grant, by, "revoke", None);
        self.granting(&decision, || self.0.0.confirmations.revoke(grant, by))
    }

    fn granting<R>(
        self,
        decision: &Decision<'_>,
        step: impl FnOnce() -> Result<R, GrantError>,
    ) -> Result<R, GrantFault> {
        self.record(decision).map_err(|()| GrantFault::Unrecorded)?;
        contain(step).unwrap_or(Err(GrantError::Store)).map_err(GrantFault::from).inspect_err(|fault| {
            let _ = self.record(&Decision { refused: Some((fault.code(), "grant")), ..*decision });
        })
    }

    pub(super) fn about<'d>(
        self,
        ticket: Digest,
        by: &CallContext<'d>,
        what: &'static str,
        note: Option<&'d str>,
    ) -> Decision<'d>
    where
        'g: 'd,
    {
        let common = &self.0.0.common;
        let settings = common.settings.borrow();
        Decision {
            at: common.now(),
            by: *by,
            tool: "",
            arguments: None,
            policy: settings.policy,
            ticket: Some(ticket),
            operation: None,
            what,
            refused: None,
            note,
            redaction: settings.redaction,
        }
    }

    /// Records a decision, then has it take effect, and records once more when it does not.
    pub(super) fn recorded<R>(
        self,
        decision: &Decision<'_>,
        step: impl FnOnce() -> Result<R, DecisionFault>,
    ) -> Result<R, DecisionFault> {
        self.record(decision).map_err(|()| DecisionFault::Unrecorded)?;
        contain(step).unwrap_or(Err(DecisionFault::Refused(DecideFault::Store))).inspect_err(|fault| {
            // That it was tried is recorded already; that it does not count is the safe side.
            let _ = self.record(&Decision { refused: Some((fault.code(), fault.as_str())), ..*decision });
        })
    }

    pub(super) fn record(self, decision: &Decision<'_>) -> Result<(), ()> {
        match &self.0.0.audit {
            None => Ok(()),
            Some(audit) => match contain(|| audit.record(&Record::decision(decision))) {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) | Err(_) => Err(()),
            },
        }
    }
}
