//! Signed checkpoints of a log: its head, vouched for by a key, to be kept where whoever writes the log cannot reach.
//!
//! A chain shows every edit within itself, and neither that its end was cut off nor that all of it was written anew (invariant J10).
//! A checkpoint does: a log that is verified against the last one has at least its lines, in their bytes.

use std::fmt;

use callgate_core::audit::chain::Head;
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;

use crate::allowed::AllowedSigners;
use crate::key::{KeyError, SecretKey, VerifyingKey};

/// What a checkpoint begins with. Another version is refused (invariant N6); and no signed operation begins so.
const FIRST: &str = "callgate checkpoint v1";
/// The most bytes of a checkpoint's text.
const MAX_TEXT: usize = 8 << 10;
/// The most bytes of a log's name.
const MAX_NAME: usize = 128;

/// The head of a log at some time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    log: String,
    head: Head,
    at_ms: u64,
}

/// Why a text is no checkpoint to go by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// It is none.
    #[error("this is no checkpoint")]
    Malformed,
    /// It is of a version that this program does not know.
    #[error("this is a checkpoint of a version that this program does not know")]
    UnknownVersion,
    /// It was not signed by this key, or was changed afterwards.
    #[error("this checkpoint is not signed by a given key")]
    BadSignature,
    /// It is of another log.
    #[error("this is the checkpoint of another log")]
    OtherLog,
    /// A log's name has 1 to 128 printable ASCII characters.
    #[error("a log's name has 1 to 128 printable ASCII characters")]
    BadName,
}

impl Checkpoint {
    /// The checkpoint of the log of this name, which ends at `head` at this time.
    ///
    /// # Errors
    /// [`CheckpointError::BadName`].
    pub fn new(log: impl Into<String>, head: Head, at: Timestamp) -> Result<Self, CheckpointError> {
        let log = log.into();
        let good = (1..=MAX_NAME).contains(&log.len()) && log.bytes().all(|byte| byte.is_ascii_graphic());
        if good { Ok(Self { log, head, at_ms: at.as_unix_millis() }) } else { Err(CheckpointError::BadName) }
    }

    /// The name of the log.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The end of the log, to verify it against.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.head
    }

    /// When it was made.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.at_ms)
    }

    /// The text with its signature, to be kept elsewhere.
    ///
    /// # Errors
    /// The key could not sign.
    pub fn sign(&self, key: &SecretKey) -> Result<String, KeyError> {
        let payload = self.to_string();
        let signature = key.sign(payload.as_bytes())?;
        Ok(format!("{payload}\n{signature}"))
    }

    /// Reads a signed checkpoint of the log of this name.
    ///
    /// # Errors
    /// Says why it is none to go by.
    pub fn read(text: &str, log: &str, key: &VerifyingKey) -> Result<Self, CheckpointError> {
        let (read, _) = Self::read_signed(text, &AllowedSigners::one("", key.clone()))?;
        if read.log == log { Ok(read) } else { Err(CheckpointError::OtherLog) }
    }

    /// Reads a checkpoint that any of these signers has signed, of whatever log, and says who.
    ///
    /// # Errors
    /// Says why it is none to go by.
    pub fn read_signed<'s>(text: &str, signers: &'s AllowedSigners) -> Result<(Self, &'s str), CheckpointError> {
        if text.len() > MAX_TEXT {
            return Err(CheckpointError::Malformed);
        }
        let (payload, signature) = text.split_once("\n\n").ok_or(CheckpointError::Malformed)?;
        // The empty line is told from the payload by its own line break, which is part of what is signed.
        let payload = format!("{payload}\n");
        if !payload.starts_with(FIRST) {
            let other = payload.starts_with("callgate checkpoint v");
            return Err(if other { CheckpointError::UnknownVersion } else { CheckpointError::Malformed });
        }
        let signer = signers.who_signed(payload.as_bytes(), signature).ok_or(CheckpointError::BadSignature)?;
        let read = Self::parse(&payload).ok_or(CheckpointError::Malformed)?;
        Ok((read, signer))
    }

    fn parse(payload: &str) -> Option<Self> {
        let mut lines = payload.strip_suffix('\n')?.split('\n');
        let mut next = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let (version, log) = (next("callgate checkpoint")?, next("log")?);
        let (seq, hash, at) = (next("seq")?, next("hash")?, next("at_ms")?);
        let head = Head { seq: seq.parse().ok()?, hash: hash.parse::<Digest>().ok()? };
        let read = Self::new(log, head, Timestamp::from_unix_millis(at.parse().ok()?)).ok()?;
        // What is written differently is something else.
        (version == "v1" && lines.next().is_none() && read.to_string() == payload).then_some(read)
    }
}

/// What is signed: five lines.
impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log, head, at_ms } = self;
        writeln!(f, "{FIRST}\nlog {log}\nseq {}\nhash {}\nat_ms {at_ms}", head.seq, head.hash)
    }
}
