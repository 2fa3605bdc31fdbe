//! Operations as pure rules: what runs at most once under an id of its caller's, and what is told when it is asked for again.
//!
//! A journal keeps [`Operation`]s by [`operation_key`] and applies these rules inside one atomic step of its own; it decides nothing
//! itself.
//!
//! ```text
//! (unknown) -> Claimed -> Completed
//!    Open <----/  |   \-> InDoubt -> Completed | Open (by a host, with a proof)
//!    \--> Claimed
//! ```

use core::fmt;
use core::num::NonZeroU32;

use crate::code::{Code, Effect};
use crate::confirm::{RECONCILE_SCOPE, ReconcileError, may_settle, principal_digest, proven};
use crate::context::CallContext;
use crate::digest::{Digest, DigestBuilder};
use crate::time::Timestamp;

/// The name under which a journal keeps an operation: of its tenant, its principal and the id that it was given, so that nobody finds
/// another's (invariant P2). `None` for a caller that nobody knows: all of those would share one name.
#[must_use]
pub fn operation_key(caller: &CallContext<'_>, operation: &str) -> Option<Digest> {
    let principal = caller.known_principal()?;
    let mut hash = DigestBuilder::new("gate/operation/v1");
    hash.option_str(caller.tenant).str(principal).str(operation);
    Some(hash.finish())
}

/// Where an operation stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a journal must be able to keep every state")]
pub enum OperationState {
    /// Its last attempt is known to have had no effect; the next call of it may try again.
    Open,
    /// One call is at it.
    Claimed {
        /// From when on a call that has not been heard of is in doubt, by the journal's clock.
        until: Timestamp,
    },
    /// The call that was at it was never heard of again, or ended without knowing what it did. Nothing runs it again; whoever finds out
    /// what happened settles it.
    InDoubt,
    /// It took effect. Its result is kept, unless it was none or too large.
    Completed,
}

impl OperationState {
    /// The name in records and listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Claimed { .. } => "claimed",
            Self::InDoubt => "in_doubt",
            Self::Completed => "completed",
        }
    }

    /// Whether what became of it is still to be found out.
    #[must_use]
    pub const fn is_unsettled(self) -> bool {
        matches!(self, Self::Claimed { .. } | Self::InDoubt)
    }
}

/// An operation, as a journal keeps it beside its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a journal has to make it of what it kept")]
pub struct Operation {
    /// The digest of the tool's definition.
    pub tool: Digest,
    /// The digest of the clamped arguments.
    pub arguments: Digest,
    /// Which attempt it is; the first has number 1.
    pub attempt: NonZeroU32,
    /// Where it stands.
    pub state: OperationState,
    /// When it came there, by the journal's clock.
    pub since: Timestamp,
}

/// An operation as a call presents it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a journal in another process has to make it of what it was sent")]
pub struct PresentedOperation {
    /// Its name; see [`operation_key`].
    pub key: Digest,
    /// The digest of tenant and principal, for the bounds of a journal.
    pub principal: Digest,
    /// The digest of the tool's definition.
    pub tool: Digest,
    /// The digest of the clamped arguments.
    pub arguments: Digest,
    /// How long the call that claims it may take, in milliseconds, before it counts as lost.
    pub lease_ms: u64,
}

/// What a journal says of an operation that may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "an operation is to be made or was made")]
pub enum Recalled<O> {
    /// It is not made yet. A journal that was asked to claim it has: this is the number of the attempt.
    Free(NonZeroU32),
    /// It was made, with this result.
    Completed(O),
}

/// Why a call with the id of an operation neither runs nor gets a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OperationRefusal {
    /// The gate has no journal.
    Unsupported,
    /// Nobody known asks: the id is nobody's.
    Anonymous,
    /// The id is that of a call of another tool, or of an earlier definition of this one.
    OtherTool,
    /// The id is that of a call with other arguments.
    OtherArguments,
    /// A call of it is under way.
    InProgress,
    /// Whether it took effect is not known.
    InDoubt,
    /// It took effect, and its result is not kept.
    NotKept,
    /// The journal is full of what it may not forget.
    Full,
}

impl OperationRefusal {
    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsupported => "no_journal",
            Self::Anonymous => "anonymous",
            Self::OtherTool => "other_tool",
            Self::OtherArguments => "other_arguments",
            Self::InProgress => "in_progress",
            Self::InDoubt => "in_doubt",
            Self::NotKept => "not_kept",
            Self::Full => "journal_full",
        }
    }

    /// What the caller is told.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Unsupported | Self::Anonymous => Code::OperationUnsupported,
            Self::OtherTool | Self::OtherArguments => Code::OperationConflict,
            Self::InProgress => Code::OperationInProgress,
            Self::InDoubt => Code::UnknownOutcome,
            Self::NotKept => Code::ResultNotKept,
            Self::Full => Code::StoreUnavailable,
        }
    }

    /// What the operation did, as far as is known. The call that is refused did nothing.
    #[must_use]
    pub const fn effect(self) -> Effect {
        match self {
            Self::InProgress | Self::InDoubt => Effect::Unknown,
            Self::NotKept => Effect::Done,
            _ => Effect::None,
        }
    }

    /// Whether it is for what the caller sent or is.
    #[must_use]
    pub const fn is_the_callers(self) -> bool {
        matches!(self, Self::Unsupported | Self::Anonymous | Self::OtherTool | Self::OtherArguments)
    }
}

impl fmt::Display for OperationRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsupported => "This gate keeps no journal, so a call with the id of an operation is not run",
            Self::Anonymous => "The id of an operation belongs to a known principal, and nobody known asks",
            Self::OtherTool => {
                "The id of the operation was used for another tool, or for an earlier version of this one"
            }
            Self::OtherArguments => "The id of the operation was used with other arguments",
            Self::InProgress => "A call of this operation is under way; try again later",
            Self::InDoubt => "An earlier call of this operation was lost; whether it took effect is not known",
            Self::NotKept => "The operation took effect before, and its result was not kept",
            Self::Full => "The journal is full, so the call was not run",
        })
    }
}

impl core::error::Error for OperationRefusal {}

/// Why what a call tells of its operation is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SettleError {
    /// There is no such operation.
    Unknown,
    /// Another attempt is at it, or was after this one.
    OtherAttempt,
    /// The attempt was settled before: by this call, or by the reaper because the call took longer than its lease. A call that comes
    /// later changes nothing (invariant J4).
    Settled(OperationState),
}

impl fmt::Display for SettleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such operation",
            Self::OtherAttempt => "another attempt is at the operation",
            Self::Settled(_) => "the attempt was settled before",
        })
    }
}

impl core::error::Error for SettleError {}

impl Operation {
    /// What a call that presents an operation is told before anything is claimed: that it may go on, or `Completed`.
    ///
    /// # Errors
    /// Says why it may not. What differs is told first: to whoever uses an id for something else, the state of it is nothing.
    pub fn look(
        kept: Option<&Self>,
        presented: &PresentedOperation,
        now: Timestamp,
    ) -> Result<Recalled<()>, OperationRefusal> {
        let Some(kept) = kept else { return Ok(Recalled::Free(NonZeroU32::MIN)) };
        if kept.tool != presented.tool {
            return Err(OperationRefusal::OtherTool);
        }
        if kept.arguments != presented.arguments {
            return Err(OperationRefusal::OtherArguments);
        }
        match kept.state {
            // After so many attempts the numbers are used up: nothing is ever fenced by a number that was given before.
            OperationState::Open => match kept.attempt.checked_add(1) {
                Some(attempt) => Ok(Recalled::Free(attempt)),
                None => Err(OperationRefusal::InDoubt),
            },
            OperationState::Claimed { until } if now < until => Err(OperationRefusal::InProgress),
            OperationState::Claimed { .. } | OperationState::InDoubt => Err(OperationRefusal::InDoubt),
            OperationState::Completed => Ok(Recalled::Completed(())),
        }
    }

    /// Claims an operation for the call that presents it, and gives what is to be kept in the same atomic step, before the call goes on
    /// (invariant J3); `None` where it was completed before.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn claim(
        kept: Option<&Self>,
        presented: &PresentedOperation,
        now: Timestamp,
    ) -> Result<Option<Self>, OperationRefusal> {
        Ok(match Self::look(kept, presented, now)? {
            Recalled::Completed(()) => None,
            Recalled::Free(attempt) => {
                let until = now.saturating_add_millis(presented.lease_ms);
                let PresentedOperation { tool, arguments, .. } = *presented;
                Some(Self { tool, arguments, attempt, state: OperationState::Claimed { until }, since: now })
            }
        })
    }

    /// Takes what became of an attempt: it took effect, it is known to have had none, or that is not known.
    ///
    /// # Errors
    /// It is not this attempt that is under way. The operation is unchanged (invariant J4).
    pub fn settle(&mut self, attempt: NonZeroU32, effect: Effect, now: Timestamp) -> Result<(), SettleError> {
        if self.attempt != attempt {
            return Err(SettleError::OtherAttempt);
        }
        let OperationState::Claimed { .. } = self.state else { return Err(SettleError::Settled(self.state)) };
        self.state = match effect {
            Effect::None => OperationState::Open,
            Effect::Done => OperationState::Completed,
            Effect::Unknown => OperationState::InDoubt,
        };
        self.since = now;
        Ok(())
    }

    /// Leaves the operation in doubt where the call that claimed it has not been heard of within its lease, and says whether it did
    /// (invariant J4).
    pub fn reap(&mut self, now: Timestamp) -> bool {
        let lost = matches!(self.state, OperationState::Claimed { until } if now >= until);
        if lost {
            (self.state, self.since) = (OperationState::InDoubt, now);
        }
        lost
    }

    /// Settles an operation in doubt by what `by` found out: it took effect, and is completed, or it did not, and the next call of it may
    /// try again. `tenant` is the requester's, `proof` says how it is known.
    ///
    /// # Errors
    /// Says why it stays as it is.
    pub fn reconcile(
        &mut self,
        effect: Effect,
        proof: &str,
        by: &CallContext<'_>,
        tenant: Option<&str>,
        now: Timestamp,
    ) -> Result<(), ReconcileError> {
        may_settle(by, tenant)?;
        if self.state != OperationState::InDoubt {
            return Err(ReconcileError::OperationNotInDoubt(self.state));
        }
        let effect = proven(effect, proof)?;
        self.state = if effect == Effect::Done { OperationState::Completed } else { OperationState::Open };
        self.since = now;
        Ok(())
    }

    /// Whether a journal may forget the operation `retention_ms` milliseconds after it was settled. What is not settled is kept
    /// (invariant J5). From then on its id is unknown, and a call that comes with it runs.
    #[must_use]
    pub fn is_forgettable(&self, now: Timestamp, retention_ms: u64) -> bool {
        !self.state.is_unsettled() && now >= self.since.saturating_add_millis(retention_ms)
    }
}

/// Whether `viewer` may be told of an operation of this tenant and principal: its own, and whoever could settle it (invariant P2).
#[must_use]
pub fn is_visible_to(viewer: &CallContext<'_>, tenant: Option<&str>, principal: Digest) -> bool {
    viewer.tenant == tenant
        && viewer.known_principal().is_some()
        && (principal_digest(viewer) == principal || viewer.scopes.contains(RECONCILE_SCOPE))
}

#[cfg(test)]
mod tests;
