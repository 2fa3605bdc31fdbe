//! What can be wrong with the file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callgate_core::audit::chain::Head;
use callgate_std::private_file::FileError;

use crate::schema;

/// Why the file cannot be used, or why a step failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The file cannot be used, or others could have a hand in it.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not one of these stores.
    #[error("{} is not a file of the gate's stores; name another", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is of a version that this program does not know (invariant N6). It was not touched.
    #[error(
        "{} has version {version}, and this program knows version {}; use the program that wrote it",
        path.display(),
        schema::VERSION
    )]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// The version.
        version: i64,
    },
    /// The path leads to another file than the one that was opened.
    #[error("{} was moved or replaced while it was open; start again with the file that is to count", path.display())]
    Moved {
        /// The file.
        path: PathBuf,
    },
    /// Another process holds it.
    #[error("another process has held {} for {} ms; try again, or find out who does", path.display(), waited.as_millis())]
    Busy {
        /// The file.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// The content is not what a store wrote.
    #[error("{} is damaged: {reason}. Keep a copy of it to look into, and put it aside to start anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: &'static str,
    },
    /// The audit log does not end where it was left.
    #[error(
        "{}: {} lines were recorded in the audit log, and it does not end there: lines were removed, added or replaced. Verify the log, \
         and put the file aside to start anew",
        path.display(),
        recorded.seq
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The end that was recorded.
        recorded: Head,
    },
    /// The record could not be put into words.
    #[error("a record could not be written as a line")]
    Record,
    /// The transaction failed that the step shared with others. What the step did is unknown.
    #[error("{}: a step failed together with others: {reason}", path.display())]
    Shared {
        /// The file.
        path: PathBuf,
        /// What the one that failed first ran into.
        reason: Arc<str>,
    },
    /// SQLite failed. What the step did is unknown.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it says.
        source: rusqlite::Error,
    },
}
