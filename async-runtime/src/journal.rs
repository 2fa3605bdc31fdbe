//! Journals of operations that may wait.

use async_trait::async_trait;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
pub use callgate_std::confirmations::{Guarantee, ReconcileError, Resolution};
use callgate_std::journal::Journal as BlockingJournal;
pub use callgate_std::journal::{
    FinishOperation, JournalAnswer, KeptReply, OperationRefusal, OperationRequest, OperationView, PresentedOperation,
    Recalled, SettleError, StoreFault,
};

use crate::seam::{Seam, seams};

/// A journal. Every method is one atomic step; the future of one that is dropped may or may not have taken it. What holds for every
/// journal is in [`callgate_std::journal`].
#[async_trait]
pub trait Journal: Send + Sync {
    /// What the journal vouches for. One that does not say anything vouches for nothing.
    fn guarantee(&self) -> Guarantee {
        Guarantee::NONE
    }

    /// Looks an operation up and claims nothing.
    ///
    /// # Errors
    /// The journal failed.
    async fn recall(&self, presented: &PresentedOperation) -> JournalAnswer;

    /// Claims an operation: until it is settled, no other claim of it succeeds (invariants A5, J3).
    ///
    /// # Errors
    /// The journal failed. Whether the operation was claimed is unknown then, so the call must not run.
    async fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer;

    /// Takes what became of an attempt, with its result where it took effect and has one (invariant J4).
    ///
    /// # Errors
    /// The journal failed. The operation is in doubt when its lease is over, if it was not told.
    async fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault>;

    /// The reaper: leaves in doubt what calls are at that have not been heard of within their lease, at most `max` operations, and tells
    /// which (invariant J4). Nothing runs again by it.
    ///
    /// # Errors
    /// The journal failed, which is also what one says that cannot do this.
    async fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        let _ = max;
        Err(StoreFault)
    }

    /// Settles an operation in doubt, and tells what it is now.
    ///
    /// # Errors
    /// The journal failed, which is also what one says that cannot do this.
    async fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        let _ = (key, resolution);
        Err(StoreFault)
    }

    /// The operations that `viewer` may be told of, those in doubt first and then the oldest first, at most `max`.
    ///
    /// # Errors
    /// The journal failed, which is also what one says that cannot do this.
    async fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        let _ = (viewer, max);
        Err(StoreFault)
    }
}

/// How the gate reaches its journal.
pub type JournalSeam = Seam<dyn Journal, dyn BlockingJournal>;
seams!(JournalSeam, Journal, BlockingJournal);

impl JournalSeam {
    /// What the journal vouches for.
    pub(crate) fn guarantee(&self) -> Guarantee {
        match self {
            Self::Waiting(journal) => journal.guarantee(),
            Self::Immediate(journal) | Self::Blocking(journal) => journal.guarantee(),
        }
    }
}
