//! What a blocking tool can ask for instead of the whole call: less to hold, and something that a test of the function can give.

use std::fmt;

use serde_json::Value;

use super::body::ToolCall;
use crate::failure::Failure;
use crate::update::Progress;

/// Tells whether anybody still waits for the result. A function that blocks takes it as a parameter; long work asks now and
/// then, and ends when nobody does. (A function that waits takes a [`Cancellation`](crate::cancellation::Cancellation).)
///
/// ```
/// use callgate_std::{failure::Failure, tool::Cancelled};
/// fn count(to: u64, cancelled: Cancelled<'_>) -> Result<u64, Failure> {
///     for _ in 0..to {
///         cancelled.check()?;
///     }
///     Ok(to)
/// }
/// assert!(count(3, Cancelled::NEVER).is_ok());
/// assert!(count(3, Cancelled::when(&|| true)).is_err());
/// ```
#[derive(Clone, Copy)]
pub struct Cancelled<'r>(Option<&'r (dyn Fn() -> bool + Sync)>);

impl<'r> Cancelled<'r> {
    /// Somebody waits to the end.
    pub const NEVER: Self = Self(None);

    /// Nobody waits once `gone` says so.
    #[must_use]
    pub const fn when(gone: &'r (dyn Fn() -> bool + Sync)) -> Self {
        Self(Some(gone))
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_cancelled(self) -> bool {
        self.0.is_some_and(|gone| gone())
    }

    /// Goes on only while somebody waits.
    ///
    /// # Errors
    /// Nobody does. Return it: see [`Failure::cancelled`].
    pub fn check(self) -> Result<(), Failure> {
        if self.is_cancelled() { Err(Failure::cancelled()) } else { Ok(()) }
    }
}

impl fmt::Debug for Cancelled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancelled").field(&self.is_cancelled()).finish()
    }
}

/// Takes what a blocking tool tells before it is done. A function takes it as a parameter.
///
/// ```
/// use callgate_std::{failure::Failure, tool::Reporter, update::Progress};
/// fn copy(files: &[String], report: Reporter<'_>) -> Result<usize, Failure> {
///     for (done, file) in (0..).zip(files) {
///         report.progress(Progress::count(done).with_message(file.as_str()));
///         report.chunk(file.as_str())?;
///     }
///     Ok(files.len())
/// }
/// assert_eq!(copy(&["a".to_owned()], Reporter::NOBODY).ok(), Some(1));
/// ```
#[derive(Clone, Copy)]
pub struct Reporter<'r>(Option<&'r (dyn Reports + Sync)>);

impl Reporter<'_> {
    /// Nobody follows.
    pub const NOBODY: Self = Self(None);

    /// Tells how far the body is; does nothing when nobody follows.
    pub fn progress(self, progress: Progress) {
        if let Some(call) = self.0 {
            call.progress(progress);
        }
    }

    /// Hands a part of the result over. Waits while who follows is behind.
    ///
    /// # Errors
    /// Those of [`ToolCall::chunk`]. Return it.
    pub fn chunk(self, chunk: impl Into<Value>) -> Result<(), Failure> {
        self.0.map_or(Ok(()), |call| call.chunk(chunk.into()))
    }
}

impl fmt::Debug for Reporter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").finish_non_exhaustive()
    }
}

/// A call, as far as it takes reports.
trait Reports {
    fn progress(&self, progress: Progress);
    fn chunk(&self, chunk: Value) -> Result<(), Failure>;
}

impl Reports for ToolCall<'_> {
    fn progress(&self, progress: Progress) {
        ToolCall::progress(self, progress);
    }

    fn chunk(&self, chunk: Value) -> Result<(), Failure> {
        ToolCall::chunk(self, chunk)
    }
}

impl<'r> ToolCall<'r> {
    /// What tells whether anybody still waits for the result.
    #[must_use]
    pub const fn cancellation(&self) -> Cancelled<'r> {
        Cancelled(self.cancelled())
    }

    /// What takes reports of this call.
    #[must_use]
    pub fn reporter(&self) -> Reporter<'_> {
        Reporter(Some(self))
    }
}
