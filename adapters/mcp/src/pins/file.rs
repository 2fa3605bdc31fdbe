//! The file in which pins are kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use callgate_std::private_file::{self, FileError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::book::{Book, Entry, Pinned, Reason, Waiting};
use super::definition::digest_of;

/// How large the file may be, in bytes.
pub const MAX_FILE: u64 = 64 << 20;
/// How long another process is waited for.
const WAIT: Duration = Duration::from_secs(10);
const FORMAT: &str = "callgate pins";
/// The version of the format. Another one is refused, never guessed (invariant N6).
const VERSION: u64 = 1;

/// Pins in a file that processes share. Each change is one step: under a lock, from the file and back, in one replacement.
#[derive(Clone, Debug)]
pub struct PinFile {
    path: PathBuf,
}

/// Why pins can't be used. Nothing of a server is called then (invariant F1).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinFileError {
    /// The file can't be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not what it says.
    #[error("{} can't be read: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// What tells one state of the file from another, without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamp(Option<(SystemTime, u64)>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u64,
    servers: BTreeMap<String, BTreeMap<String, Row>>,
}

#[derive(Deserialize)]
struct AnyVersion {
    format: String,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pinned: Option<PinnedRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting: Option<WaitingRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinnedRow {
    digest: String,
    since_ms: u64,
    definition: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitingRow {
    digest: String,
    since_ms: u64,
    reason: ReasonRow,
    definition: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum ReasonRow {
    Changed,
    Shadows { server: String, tool: String },
    CopyOf { server: String, tool: String },
    TooMany,
}

impl PinFile {
    /// Pins in the file at `path`, whose directory is made if there is none.
    ///
    /// # Errors
    /// The file can't be used, or what is in it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, PinFileError> {
        let file = Self { path: path.into() };
        private_file::prepare_directory(&file.path)?;
        drop(file.read()?);
        Ok(file)
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is pinned.
    ///
    /// # Errors
    /// The file can't be used, or what is in it.
    pub fn read(&self) -> Result<Book, PinFileError> {
        match private_file::read(&self.path, MAX_FILE)? {
            Some(bytes) => self.parse(&bytes),
            None => Ok(Book::default()),
        }
    }

    /// Changes what is pinned, in one step.
    ///
    /// # Errors
    /// The file can't be used, or what is in it; nothing is changed then.
    pub fn update<R>(&self, change: impl FnOnce(&mut Book) -> R) -> Result<R, PinFileError> {
        private_file::update(&self.path, MAX_FILE, WAIT, |bytes| {
            let before = bytes.map_or_else(|| Ok(Book::default()), |bytes| self.parse(bytes))?;
            let mut book = before.clone();
            let answer = change(&mut book);
            let new = if book == before { None } else { Some(self.write(&book)?) };
            Ok((answer, new))
        })
    }

    /// What tells the state of the file now from that at another time.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        let metadata = std::fs::symlink_metadata(&self.path).ok();
        Stamp(metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len()))))
    }

    fn damaged(&self, why: impl std::fmt::Display) -> PinFileError {
        PinFileError::Damaged { path: self.path.clone(), why: why.to_string() }
    }

    fn parse(&self, bytes: &[u8]) -> Result<Book, PinFileError> {
        let any: AnyVersion = serde_json::from_slice(bytes).map_err(|error| self.damaged(error))?;
        if any.format != FORMAT {
            return Err(self.damaged("it is a file of something else"));
        }
        if any.version != VERSION {
            return Err(self.damaged(format!("it is of version {}, and this program reads {VERSION}", any.version)));
        }
        let file: File = serde_json::from_slice(bytes).map_err(|error| self.damaged(error))?;
        let mut book = Book::default();
        for (server, tools) in file.servers {
            for (tool, row) in tools {
                let entry = row.into_entry().map_err(|why| self.damaged(format!("{server}.{tool}: {why}")))?;
                book.put(&server, &tool, entry);
            }
        }
        Ok(book)
    }

    fn write(&self, book: &Book) -> Result<Vec<u8>, PinFileError> {
        let rows = |tools: &BTreeMap<String, Entry>| {
            tools.iter().map(|(tool, entry)| (tool.clone(), Row::of(entry))).collect()
        };
        let servers = book.servers().map(|(server, tools)| (server.to_owned(), rows(tools))).collect();
        let file = File { format: FORMAT.to_owned(), version: VERSION, servers };
        let mut bytes = serde_json::to_vec_pretty(&file).map_err(|error| self.damaged(error))?;
        bytes.push(b'\n');
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE {
            return Err(self.damaged("it would have more than 64 MiB"));
        }
        Ok(bytes)
    }
}

impl Row {
    fn of(entry: &Entry) -> Self {
        let pinned = entry.pinned.as_ref().map(|Pinned { digest, definition, since }| PinnedRow {
            digest: digest.to_string(),
            since_ms: since.as_unix_millis(),
            definition: definition.clone(),
        });
        let waiting = entry.waiting.as_ref().map(|Waiting { digest, definition, since, reason }| WaitingRow {
            digest: digest.to_string(),
            since_ms: since.as_unix_millis(),
            definition: definition.clone(),
            reason: match reason.clone() {
                Reason::Changed => ReasonRow::Changed,
                Reason::Shadows { server, tool } => ReasonRow::Shadows { server, tool },
                Reason::CopyOf { server, tool } => ReasonRow::CopyOf { server, tool },
                Reason::TooMany => ReasonRow::TooMany,
            },
        });
        Self { pinned, waiting }
    }

    fn into_entry(self) -> Result<Entry, &'static str> {
        let pinned = self.pinned.map(|row| {
            let digest = digest(&row.digest, &row.definition)?;
            Ok::<_, &'static str>(Pinned {
                digest,
                definition: row.definition,
                since: Timestamp::from_unix_millis(row.since_ms),
            })
        });
        let waiting = self.waiting.map(|row| {
            let digest = digest(&row.digest, &row.definition)?;
            let reason = match row.reason {
                ReasonRow::Changed => Reason::Changed,
                ReasonRow::Shadows { server, tool } => Reason::Shadows { server, tool },
                ReasonRow::CopyOf { server, tool } => Reason::CopyOf { server, tool },
                ReasonRow::TooMany => Reason::TooMany,
            };
            let since = Timestamp::from_unix_millis(row.since_ms);
            Ok::<_, &'static str>(Waiting { digest, definition: row.definition, since, reason })
        });
        Ok(Entry { pinned: pinned.transpose()?, waiting: waiting.transpose()? })
    }
}

/// The digest, if it is that of the definition beside it: a person who edits one of the two has to be told.
fn digest(text: &str, definition: &Value) -> Result<Digest, &'static str> {
    let digest = Digest::from_str(text).map_err(|_| "its digest is none")?;
    if digest == digest_of(definition) { Ok(digest) } else { Err("its digest is not that of its definition") }
}
