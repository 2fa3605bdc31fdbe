//! A log whose lines are linked: each carries its number, the hash of the line before it, and its own.
//!
//! A line is one JSON object: `{"seq":2,"prev":"<hash of line 1>", ...record..., "hash":"<hash of this line>"}`. The hash is
//! plain SHA-256 over the line's bytes up to its `,"hash"` member, and `prev` is among them, so an edit, a deletion, an insertion or a
//! swap breaks the link that follows it. What no chain can show by itself is a log cut off at its end, or written anew
//! from its beginning: keep the last [`Head`] elsewhere and compare (invariant J10).

use core::fmt::{self, Write};

use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::json::Object;

use super::Record;

/// The end of a chain: how many lines it has, and the hash of the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The number of lines.
    pub seq: u64,
    /// The hash of the last line; all zeros before the first.
    pub hash: Digest,
}

/// Not inlined: it needs its copies of the state when the line is written, and not beside all that writes it.
#[inline(never)]
fn finished(hasher: Sha256) -> Digest {
    Digest::from_bytes(hasher.finalize().into())
}

impl Head {
    /// The head of an empty log.
    pub const EMPTY: Self = Self { seq: 0, hash: Digest::from_bytes([0; 32]) };

    /// Writes `record` as the next line, without a line break, and gives the head after it. The head is unchanged until
    /// the host knows that the line is written, and takes the new one.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn append(&self, record: &Record<'_>, out: &mut dyn Write) -> Result<Self, fmt::Error> {
        self.append_with(|object| record.write_members(object), out)
    }

    /// Writes the next line with whatever members `members` writes: for a host's own entries, such as a checkpoint.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn append_with(
        &self,
        members: impl FnOnce(&mut Object<'_>) -> fmt::Result,
        out: &mut dyn Write,
    ) -> Result<Self, fmt::Error> {
        let seq = self.seq.checked_add(1).ok_or(fmt::Error)?;
        let mut line = Hashing { out, hasher: Sha256::new() };
        let mut object = Object::begin(&mut line)?;
        object.number("seq", seq)?;
        object.display("prev", &self.hash)?;
        members(&mut object)?;
        object.leave_open();
        let Hashing { out, hasher } = line;
        let hash = finished(hasher);
        write!(out, "{HASH_MEMBER}{hash}\"}}")?;
        Ok(Self { seq, hash })
    }

    /// Checks that `line` (without its line break) is the line after this head, and gives the head after it.
    ///
    /// # Errors
    /// Says what does not fit.
    pub fn verify(&self, line: &str) -> Result<Self, ChainError> {
        let (body, hash) = split(line).ok_or(ChainError::NotALine)?;
        let seq = self.seq.checked_add(1).ok_or(ChainError::NotALine)?;
        if Digest::of_bytes(body.as_bytes()) != hash {
            return Err(ChainError::Edited);
        }
        let mut start = Prefix { text: body, fits: true };
        let written = write!(start, "{{\"seq\":{seq},\"prev\":\"");
        if written.is_err() || !start.fits {
            return Err(ChainError::OutOfSequence { expected: seq });
        }
        let written = write!(start, "{}\"", self.hash);
        if written.is_err() || !start.fits {
            return Err(ChainError::BrokenLink);
        }
        Ok(Self { seq, hash })
    }
}

const HASH_MEMBER: &str = ",\"hash\":\"";
/// `"}` after the 64 digits.
const HASH_TAIL: &str = "\"}";

fn split(line: &str) -> Option<(&str, Digest)> {
    let line = line.strip_suffix(HASH_TAIL)?;
    let (body, digits) = line.split_at_checked(line.len().checked_sub(64)?)?;
    Some((body.strip_suffix(HASH_MEMBER)?, digits.parse().ok()?))
}

/// Why a line does not follow a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ChainError {
    /// The text is not a line of a chain.
    NotALine,
    /// The line's own hash does not fit its bytes: it was edited.
    Edited,
    /// The line has another number: lines were deleted, inserted or swapped.
    OutOfSequence {
        /// The number that should stand here.
        expected: u64,
    },
    /// The line follows another line than the one before it.
    BrokenLink,
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotALine => f.write_str("this is not a line of an audit log"),
            Self::Edited => f.write_str("the line was changed after it was written: its hash does not fit"),
            Self::OutOfSequence { expected } => {
                write!(f, "the line that should stand here has number {expected}: lines were removed, added or swapped")
            }
            Self::BrokenLink => f.write_str("the line does not follow the one before it: an earlier line was replaced"),
        }
    }
}

impl core::error::Error for ChainError {}

/// Hashes what it passes on.
struct Hashing<'a> {
    out: &'a mut dyn Write,
    hasher: Sha256,
}

impl Write for Hashing<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.hasher.update(text.as_bytes());
        self.out.write_str(text)
    }
}

/// Takes what is written to it off the front of a text.
struct Prefix<'a> {
    text: &'a str,
    fits: bool,
}

impl Write for Prefix<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        match self.text.strip_prefix(text) {
            Some(rest) => self.text = rest,
            None => self.fits = false,
        }
        Ok(())
    }
}
