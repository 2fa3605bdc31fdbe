//! Why a log of text cannot be written to.

use std::io;
use std::path::{Path, PathBuf};

use callgate_core::audit::AuditFault;
use callgate_core::audit::chain::ChainError;

use crate::private_file::FileError;

/// Why a log cannot be written to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonlError {
    /// A file cannot be used, or others could have a hand in it.
    #[error(transparent)]
    File(#[from] FileError),
    /// The log is shorter than its anchor says.
    #[error(
        "{}: {anchored} lines were recorded, and the {bytes} bytes that are left hold fewer: the log was cut off. Verify it; \
         to start a new one, move it and its .head file away",
        path.display()
    )]
    Truncated {
        /// The log.
        path: PathBuf,
        /// How many lines were recorded.
        anchored: u64,
        /// How many bytes are left.
        bytes: u64,
    },
    /// The log has no usable anchor.
    #[error(
        "{} has no usable .head file beside it, so nobody can say whether it is whole. Verify it; to start a new one, move it \
         and its .head file away",
        path.display()
    )]
    NoAnchor {
        /// The log.
        path: PathBuf,
    },
    /// The log is not the one that was anchored.
    #[error(
        "{}: line {seq} is not the one that was recorded: the log was written anew or belongs to another .head file. Verify \
         it; to start a new one, move it and its .head file away",
        path.display()
    )]
    Forked {
        /// The log.
        path: PathBuf,
        /// The number of the line.
        seq: u64,
    },
    /// A line does not follow the one before it.
    #[error(
        "{}: line {seq}: {reason}. Verify the log; to start a new one, move it and its .head file away",
        path.display()
    )]
    Broken {
        /// The log.
        path: PathBuf,
        /// The number of the line.
        seq: u64,
        /// What is wrong with it.
        reason: ChainError,
    },
    /// The log has reached its bound.
    #[error("{} is full: it may have {max_bytes} bytes; move it and its .head file away to start a new one", path.display())]
    Full {
        /// The log.
        path: PathBuf,
        /// The bound.
        max_bytes: u64,
    },
    /// The record could not be put into words.
    #[error("a record could not be written as a line")]
    Record,
}

impl JsonlError {
    pub(super) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File(FileError::Io { path: path.to_owned(), doing, source })
    }
}

impl From<AuditFault> for JsonlError {
    fn from(_: AuditFault) -> Self {
        Self::Record
    }
}
