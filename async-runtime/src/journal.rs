//! Journals of operations that may wait.

use async_trait::async_trait;
use callgate_std::confirmations::Guarantee;
use callgate_std::journal::Journal as BlockingJournal;
pub use callgate_std::journal::{
    FinishOperation, JournalAnswer, KeptReply, OperationRefusal, OperationRequest, PresentedOperation, Recalled,
    SettleError, StoreFault,
};

use crate::seam::{Seam, seams};

/// A journal. Every method is one atomic step; the future of one that is dropped may or may not have taken it. What holds for every
/// journal is in [`callgate_std::journal`]. Those who settle what is in doubt ask the journal itself.
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
