//! Journals: where it is kept which operations were made, and with which result.
//!
//! A call that carries the id of an operation is made at most once under it. Its caller can ask again, as often as it likes, until it has
//! an answer: it gets the result of the one call that ran, or hears that this is not known. The rules are core's
//! ([`Operation`]); a journal applies them inside one atomic step.
//!
//! A journal keeps results as they were delivered, secrets included, because that is what it gives again: whoever can read it can read
//! them. What it tells people of ([`OperationView`], `Debug`) holds none.

mod kept;
mod memory;

use std::fmt;
use std::sync::Arc;

use callgate_core::call::Operating;
pub use callgate_core::call::{FinishOperation, StoreFault};
use callgate_core::code::Effect;
use callgate_core::confirm::ReconcileError;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
pub use callgate_core::journal::{
    Operation, OperationRefusal, OperationState, PresentedOperation, Recalled, SettleError, is_visible_to,
    operation_key,
};
use callgate_core::request::Context;
use callgate_core::time::Timestamp;
use callgate_core::tool::Tool;

use crate::confirmations::Resolution;
use crate::guarantee::Guarantee;

pub use kept::KeptReply;
pub use memory::MemoryJournal;

/// How much a journal keeps at most. Reaching a bound refuses what comes next; nothing that may be asked for is dropped for it
/// (invariants F5, C3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain bounds, set by hosts")]
pub struct JournalLimits {
    /// The most operations.
    pub operations: usize,
    /// The most operations of one tenant; says nothing of callers without one.
    pub per_tenant: usize,
    /// The most operations of one principal, so that nobody fills the journal alone.
    pub per_principal: usize,
    /// The most bytes of one result. One that is larger is delivered and not kept.
    pub result_bytes: usize,
    /// The most bytes of results and names, plus [`OPERATION_BYTES`](Self::OPERATION_BYTES) for each operation. Without room for its
    /// names an operation is refused; without room for its result it is made, and the result not kept.
    pub bytes: usize,
    /// How long an operation is kept after it was settled, in milliseconds. Afterwards its id is unknown, and a call that comes with it
    /// runs.
    pub retention_ms: u64,
}

impl JournalLimits {
    /// 100,000 operations, 50,000 of a tenant, 10,000 of a principal, results of 256 KiB, 64 MiB in all, kept for 24 hours.
    pub const DEFAULT: Self = Self {
        operations: 100_000,
        per_tenant: 50_000,
        per_principal: 10_000,
        result_bytes: 256 << 10,
        bytes: 64 << 20,
        retention_ms: 24 * 60 * 60 * 1_000,
    };

    /// What an operation counts for beside its texts, in bytes.
    pub const OPERATION_BYTES: usize = 512;
    /// The most operations that one step forgets while there is room, so that no single call pays for an hour of others.
    pub const SWEEP: usize = 64;
}

impl Default for JournalLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a call that claims an operation presents.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "stores elsewhere have to make it of what they were sent")]
pub struct OperationRequest<'a> {
    /// What core's rules compare.
    pub presented: PresentedOperation,
    /// The id that the caller gave the operation.
    pub operation: &'a str,
    /// The name of the tool.
    pub tool: &'a str,
    /// Who calls.
    pub caller: CallContext<'a>,
}

impl<'a> OperationRequest<'a> {
    /// The request of a call.
    pub fn of<C: Context, T: Tool, S>(operating: &'a Operating<C, T, S>) -> Self {
        let call = operating.call();
        Self {
            presented: operating.presented(),
            operation: operating.operation(),
            tool: call.spec().name,
            caller: call.caller(),
        }
    }

    /// What the operation counts for without its result; see [`JournalLimits::bytes`].
    #[must_use]
    pub fn bytes(&self) -> usize {
        let caller = &self.caller;
        [
            self.operation,
            self.tool,
            caller.tenant.unwrap_or_default(),
            caller.principal.unwrap_or_default(),
            caller.request_id,
        ]
        .into_iter()
        .map(str::len)
        .fold(JournalLimits::OPERATION_BYTES, usize::saturating_add)
    }
}

/// What a journal answers to a question about an operation.
pub type JournalAnswer<R = KeptReply> = Result<Result<Recalled<R>, OperationRefusal>, StoreFault>;

/// An operation as a journal tells of it. Tells no argument and no result.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "stores elsewhere make it, and must not leave out anything")]
pub struct OperationView {
    /// Its name; see [`operation_key`].
    pub key: Digest,
    /// The id that its caller gave it.
    pub operation: String,
    /// Where it stands.
    pub state: OperationState,
    /// Which attempt it is.
    pub attempt: u32,
    /// When it came there, by the journal's clock.
    pub since: Timestamp,
    /// The name of the tool.
    pub tool: String,
    /// The tenant of its caller.
    pub tenant: Option<String>,
    /// Its caller.
    pub principal: String,
    /// The id of the call that is, or was, the latest attempt.
    pub request_id: String,
    /// Whether its result is kept.
    pub has_result: bool,
    /// How it is known what became of a call that was in doubt.
    pub proof: Option<String>,
}

/// A blocking journal. Every method is one atomic step.
pub trait Journal: Send + Sync {
    /// What the journal vouches for. One that does not say anything vouches for nothing.
    fn guarantee(&self) -> Guarantee {
        Guarantee::NONE
    }

    /// Looks an operation up by [`Operation::look`] and claims nothing.
    ///
    /// # Errors
    /// The journal failed.
    fn recall(&self, presented: &PresentedOperation) -> JournalAnswer;

    /// Claims an operation by [`Operation::claim`]: until it is settled, no other claim of it succeeds (invariants A5, J3). A journal that
    /// is full answers [`OperationRefusal::Full`].
    ///
    /// # Errors
    /// The journal failed. Whether the operation was claimed is unknown then, so the call must not run.
    fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer;

    /// Takes what became of an attempt by [`Operation::settle`], with its result where it took effect and has one. A result that there
    /// is no room for is not kept, and that is no error.
    ///
    /// # Errors
    /// The journal failed. The operation is in doubt when its lease is over, if it was not told.
    fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault>;

    /// The reaper: leaves in doubt what calls are at that have not been heard of within their lease, at most `max` operations, and tells
    /// which (invariant J4). Nothing runs again by it. A host calls it when it starts, and from time to time.
    ///
    /// # Errors
    /// The journal failed.
    fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault>;

    /// Settles an operation in doubt by [`Operation::reconcile`], and tells what it is now.
    ///
    /// # Errors
    /// The journal failed.
    fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault>;

    /// The operations that `viewer` may be told of, those in doubt first and then the oldest first, at most `max`.
    ///
    /// # Errors
    /// The journal failed.
    fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault>;
}

impl<J: Journal + ?Sized> Journal for Arc<J> {
    fn guarantee(&self) -> Guarantee {
        (**self).guarantee()
    }

    fn recall(&self, presented: &PresentedOperation) -> JournalAnswer {
        (**self).recall(presented)
    }

    fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer {
        (**self).claim(request)
    }

    fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault> {
        (**self).finish(finish, result)
    }

    fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        (**self).reap(max)
    }

    fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        (**self).reconcile(key, resolution)
    }

    fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        (**self).operations(viewer, max)
    }
}

/// What a gate is told, with results made of what was kept. One that is no result any more is a fault of the journal.
#[doc(hidden)]
pub fn delivered(answer: JournalAnswer) -> JournalAnswer<crate::output::Reply> {
    Ok(match answer? {
        Ok(Recalled::Free(attempt)) => Ok(Recalled::Free(attempt)),
        Ok(Recalled::Completed(kept)) => Ok(Recalled::Completed(kept.reply().ok_or(StoreFault)?)),
        Err(refusal) => Err(refusal),
    })
}

/// Warns of an operation whose end its journal does not know; gives what the outcome says of it.
#[doc(hidden)]
pub fn finish_told(told: Result<Result<(), SettleError>, StoreFault>, effect: Effect) -> Result<(), StoreFault> {
    match told {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => tracing::warn!(%error, "a call ended after its operation had been left in doubt"),
        Err(StoreFault) => {
            tracing::warn!("a journal was not told how a call ended, and will leave its operation in doubt");
        }
    }
    // That nothing happened is worth no word to the caller: it is told that anyway.
    if effect == Effect::None { Ok(()) } else { Err(StoreFault) }
}

impl fmt::Debug for dyn Journal + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Journal")
    }
}
