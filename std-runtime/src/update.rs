//! What a running tool tells before it is done: how far it is, and parts of its result.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::failure::{Failure, cut_text};
use crate::value_text::{Size, dismantle, exact_size, size};

/// The most bytes of a progress message; the rest is cut off.
pub const MAX_PROGRESS_MESSAGE: usize = 1 << 10;

/// How many updates wait for their consumer before the tool has to.
pub const PENDING_UPDATES: usize = 16;

/// Something that a running tool tells. It is provisional: what counts is the outcome, which alone is checked against the
/// output schema and recorded. Like a result it is the tool's word, and shown to the caller; `Debug` does not show it.
#[derive(Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a consumer handles both")]
pub enum Update {
    /// How far it is.
    Progress(Progress),
    /// A part of the result.
    Chunk(Value),
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Progress(progress) => fmt::Debug::fmt(progress, f),
            Self::Chunk(_) => f.write_str("Chunk(..)"),
        }
    }
}

/// How far a tool is: so much of a total, and a message.
///
/// ```
/// use callgate_std::update::Progress;
/// assert_eq!(Progress::percent(40).with_message("reading").to_string(), "40 of 100: reading");
/// assert_eq!(Progress::count(3).of(12).to_string(), "3 of 12");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// How much is done, in whatever the tool counts.
    pub done: u64,
    /// How much there is, if the tool knows; 100 for a percentage.
    pub total: Option<u64>,
    /// What is going on, for people.
    pub message: Option<String>,
}

impl Progress {
    /// So much is done of an unknown total.
    #[must_use]
    pub const fn count(done: u64) -> Self {
        Self { done, total: None, message: None }
    }

    /// So many percent are done; more than 100 counts as 100.
    #[must_use]
    pub const fn percent(percent: u8) -> Self {
        let done = if percent > 100 { 100 } else { percent };
        Self { done: done as u64, total: Some(100), message: None }
    }

    /// The same with this total.
    #[must_use]
    pub const fn of(mut self, total: u64) -> Self {
        self.total = Some(total);
        self
    }

    /// The same with this message. Cut after [`MAX_PROGRESS_MESSAGE`] bytes.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(cut_text(message.into(), MAX_PROGRESS_MESSAGE));
        self
    }
}

/// Without the message, as for a [`Reply`](crate::output::Reply).
impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("done", &self.done)
            .field("total", &self.total)
            .field("message", &self.message.as_ref().map(|_| ".."))
            .finish()
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.done)?;
        if let Some(total) = self.total {
            write!(f, " of {total}")?;
        }
        self.message.as_deref().map_or(Ok(()), |message| write!(f, ": {message}"))
    }
}

/// Nobody takes updates any more, so that nobody waits for the result either.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("nobody takes updates of this call any more")]
pub struct Gone;

/// Counts the chunks of one call. All together they may have as many bytes of JSON as the result (invariants O2, X6). They count
/// whether or not anybody follows, so that a call ends the same either way (invariant N1).
#[derive(Debug)]
pub(crate) struct Chunks {
    cap: usize,
    bytes: AtomicUsize,
}

impl Chunks {
    pub(crate) const fn new(cap: usize) -> Self {
        Self { cap, bytes: AtomicUsize::new(0) }
    }

    /// The most bytes.
    pub(crate) const fn cap(&self) -> usize {
        self.cap
    }

    /// The chunk as an update.
    ///
    /// # Errors
    /// It is too much, or nested too deeply.
    pub(crate) fn count(&self, chunk: Value) -> Result<Update, Failure> {
        let bytes = match size(&chunk, self.cap) {
            Size::Within => exact_size(&chunk),
            Size::Beyond | Size::TooDeep => {
                dismantle(chunk);
                return Err(self.too_much());
            }
        };
        let all = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if all > self.cap { Err(self.too_much()) } else { Ok(Update::Chunk(chunk)) }
    }

    fn too_much(&self) -> Failure {
        Failure::new(format!("the chunks have more than {} bytes together, or nest too deeply", self.cap))
    }
}

/// Where a call's updates go.
#[derive(Clone, Default)]
pub(crate) struct Updates(Option<async_channel::Sender<Update>>);

impl Updates {
    /// Nowhere: nobody asked for them.
    pub(crate) const NONE: Self = Self(None);

    pub(crate) const fn to(sender: async_channel::Sender<Update>) -> Self {
        Self(Some(sender))
    }

    /// Hands one over, waiting while too many wait already.
    pub(crate) async fn send(&self, update: Update) -> Result<(), Gone> {
        match &self.0 {
            Some(sender) => sender.send(update).await.map_err(|_| Gone),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Updates").field(&self.0.is_some()).finish()
    }
}
