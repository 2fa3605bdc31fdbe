//! What the reaper of a text log keeps beside it: which calls it gave up, and how far it has gone through the log.
//!
//! `<log>.lost` names the calls that were given up and not heard of since; there is none where there are none. `<log>.open` holds the
//! calls that are open up to some line, so that the next reaping begins there. Nothing depends on the second one: where it is away, or is
//! not of this log, the whole log is gone through.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use callgate_core::audit::chain::Head;
use serde::{Deserialize, Serialize};

use super::anchor::Anchor;
use super::reaper::{self, CallName, OpenCalls};
use crate::private_file::{self, FileError};

/// The most calls that are remembered as given up; the oldest are forgotten first.
const MAX_LOST: usize = 1_000;
const MAX_LOST_BYTES: u64 = 4 << 20;
const MAX_OPEN_BYTES: u64 = 256 << 20;
const VERSION: u64 = 1;

/// The calls that were given up. Read and written under the log's lock.
pub(super) struct LostCalls {
    path: PathBuf,
    calls: Vec<CallName>,
    changed: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LostFile {
    v: u64,
    calls: Vec<CallName>,
}

impl LostCalls {
    /// Those of the log at `log`.
    pub(super) fn of(log: &Path) -> Result<Self, FileError> {
        let path = log.with_added_extension("lost");
        let calls = match fs::symlink_metadata(&path) {
            // This is asked with every record, so the usual answer has to be cheap.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            _ => match private_file::read(&path, MAX_LOST_BYTES)? {
                None => Vec::new(),
                Some(text) => {
                    let damaged = || FileError::io(&path, "read")(io::Error::from(io::ErrorKind::InvalidData));
                    let file: LostFile = serde_json::from_slice(&text).map_err(|_| damaged())?;
                    if file.v == VERSION { file.calls } else { return Err(damaged()) }
                }
            },
        };
        Ok(Self { path, calls, changed: false })
    }

    /// Adds a call.
    pub(super) fn add(&mut self, call: CallName) {
        self.calls.push(call);
        let beyond = self.calls.len().saturating_sub(MAX_LOST);
        self.calls.drain(..beyond);
        self.changed = true;
    }

    /// The record as it is to be written: what is heard of a call that was given up is late, once; and one that is announced anew
    /// under its name is another one.
    pub(super) fn heard(&mut self, record: &str) -> Option<String> {
        if self.calls.is_empty() {
            return None;
        }
        if let Some(call) = reaper::announces(record) {
            let before = self.calls.len();
            self.calls.retain(|lost| *lost != call);
            self.changed |= self.calls.len() < before;
            return None;
        }
        let call = reaper::ends(record)?;
        let at = self.calls.iter().position(|lost| *lost == call)?;
        self.calls.remove(at);
        self.changed = true;
        reaper::late(record)
    }

    /// Writes what changed.
    pub(super) fn keep(self) -> Result<(), FileError> {
        let Self { path, calls, changed } = self;
        if !changed {
            return Ok(());
        }
        if calls.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::io(&path, "remove")(error)),
                _ => Ok(()),
            };
        }
        let text = serde_json::to_vec(&LostFile { v: VERSION, calls })
            .map_err(|error| FileError::io(&path, "write")(error.into()))?;
        private_file::replace(&path, &text)
    }
}

/// The calls that are open up to a line.
#[derive(Default)]
pub(super) struct OpenUpTo {
    pub(super) at: Anchor,
    pub(super) open: OpenCalls,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenFile {
    v: u64,
    seq: u64,
    hash: String,
    bytes: u64,
    open: String,
}

impl OpenUpTo {
    /// What was kept for the log at `log`, if it can be used.
    pub(super) fn of(log: &Path) -> Option<Self> {
        let text = private_file::read(&path(log), MAX_OPEN_BYTES).ok()??;
        let file: OpenFile = serde_json::from_slice(&text).ok()?;
        let head = Head { seq: file.seq, hash: file.hash.parse().ok()? };
        let open = OpenCalls::read(&file.open)?;
        (file.v == VERSION).then_some(Self { at: Anchor { head, bytes: file.bytes }, open })
    }

    /// Keeps it. That it could not be kept costs only time.
    pub(super) fn keep(&self, log: &Path) {
        let Anchor { head, bytes } = self.at;
        let file = OpenFile { v: VERSION, seq: head.seq, hash: head.hash.to_string(), bytes, open: self.open.write() };
        let written = serde_json::to_vec(&file).map_err(io::Error::from);
        let path = path(log);
        let kept = written.map_err(FileError::io(&path, "write")).and_then(|text| private_file::replace(&path, &text));
        if let Err(error) = kept {
            tracing::warn!(%error, "how far the log was gone through could not be kept");
        }
    }
}

fn path(log: &Path) -> PathBuf {
    log.with_added_extension("open")
}
