//! The log: a file of JSON Lines in one hash chain.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_core::audit::chain::Head;
use callgate_core::audit::{Audit, AuditFault, Kind, Record};
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;

use super::anchor::{Anchor, Slot};
use super::disk::Disk;
use super::error::JsonlError;
use super::line;
use super::lost::{LostCalls, OpenUpTo};
use super::reaper::LostCall;
use super::rotate::{self, Rotated};
use super::segment::{self, Retention, Segments};
use super::spool::Spool;
use super::tail::{self, Tail, TailError};
use crate::clock::{SharedClock, SystemClock};
use crate::lock::{Mutex, lock};
use crate::private_file::{self, FileError, Open};

/// After how many lines it is kept anew how far the reaper has come.
const KEPT_AFTER: u64 = 256;

/// How often a log may be put aside by others while one record waits for it. Each of these rotations took a record of somebody's, so
/// there is an end to them.
pub(super) const MOST_MOVES: u32 = 256;

/// What a record waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::exhaustive_enums, reason = "a host chooses one")]
pub enum Durability {
    /// Every record is on the disk before it is acknowledged. A loss of power loses nothing.
    #[default]
    All,
    /// Intents are; terminal records are only handed to the system, which writes them soon. A process that is killed loses
    /// nothing; a loss of power can lose the last terminal records, and then what they told of is known by their intents alone.
    /// The anchor follows what is on the disk, so lines that were cut off behind the last intent do not show.
    Intents,
}

/// How a log is kept.
#[derive(Clone)]
#[non_exhaustive]
pub struct JsonlOptions {
    /// What a record waits for.
    pub durability: Durability,
    /// The most bytes of a line, at least 16 KiB. A longer record is replaced by one that says so, with its length and hash.
    pub max_line: usize,
    /// The most bytes of the whole log; no bound when `None`. A full log refuses records as a full disk does.
    pub max_bytes: Option<u64>,
    /// How long a record waits for other processes.
    pub wait: Duration,
    /// What the log's own notes are dated by.
    pub clock: SharedClock,
}

impl JsonlOptions {
    /// Every record durable, lines of at most 1 MiB, no bound for the log, 5 seconds for other processes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            durability: Durability::All,
            max_line: 1 << 20,
            max_bytes: None,
            wait: Duration::from_secs(5),
            clock: SystemClock::shared(),
        }
    }
}

impl Default for JsonlOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for JsonlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonlOptions")
            .field("durability", &self.durability)
            .field("max_line", &self.max_line)
            .field("max_bytes", &self.max_bytes)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

/// A log in a file that several processes share.
///
/// Each record is one line, appended under the file's lock and chained to the line before it ([`callgate_core::audit::chain`]).
/// Beside the log, `<file>.head` says how far it has come; a log that is shorter than that, or another one, is not written
/// to any more: what happened to it is for people to find out, with [`verify_file`](super::verify_file). Keep a copy of the
/// head elsewhere: whoever can change both files can change both alike.
///
/// The start of a line that a killed process left behind is moved to `<file>.torn`, and a note in the log says so.
///
/// A terminal record that cannot be written is kept in memory, bounded, and written before the next record (invariant J8);
/// [`JsonlAudit::spooled`] counts those. A program that ends calls [`JsonlAudit::flush`] first; what is still there when the
/// sink is dropped goes to `tracing`.
pub struct JsonlAudit {
    pub(super) path: PathBuf,
    pub(super) options: JsonlOptions,
    log: Mutex<Log>,
    #[cfg(test)]
    faults: std::sync::Arc<super::disk::faults::Faults>,
}

pub(super) struct Log {
    /// None when the files have to be opened again, because the system failed on them.
    disk: Option<Disk>,
    /// The end of what was acknowledged.
    pub(super) at: Anchor,
    /// What the anchor file says.
    pub(super) anchored: Anchor,
    pub(super) slot: Slot,
    /// Whether the files may hold something else than `at` and `anchored`: nobody looked yet, or an operation failed.
    pub(super) doubtful: bool,
    /// What may stand behind `at` although it was reported as not written, because it could not be cut off.
    uncut: Option<String>,
    spool: Spool,
    lost: u64,
    last_error: Option<String>,
}

impl JsonlAudit {
    /// Opens the log, or makes one. Its directory is made as well.
    ///
    /// # Errors
    /// The log is not as it was left, or cannot be used; the message says what to do.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, JsonlError> {
        Self::open_with(path, JsonlOptions::new())
    }

    /// The same, kept as `options` say.
    ///
    /// # Errors
    /// As [`JsonlAudit::open`].
    pub fn open_with(path: impl Into<PathBuf>, mut options: JsonlOptions) -> Result<Self, JsonlError> {
        options.max_line = options.max_line.max(16 << 10);
        let path = path.into();
        private_file::prepare_directory(&path)?;
        let log = Log {
            disk: None,
            at: Anchor::EMPTY,
            anchored: Anchor::EMPTY,
            slot: Slot::First,
            doubtful: true,
            uncut: None,
            spool: Spool::default(),
            lost: 0,
            last_error: None,
        };
        let audit = Self {
            path,
            options,
            log: Mutex::new(log),
            #[cfg(test)]
            faults: std::sync::Arc::default(),
        };
        audit.write(&mut lock(&audit.log), Content::Nothing, true)?;
        Ok(audit)
    }

    /// The log's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The end of the chain, as far as this process knows.
    #[must_use]
    pub fn head(&self) -> Head {
        lock(&self.log).at.head
    }

    /// How many terminal records wait to be written.
    #[must_use]
    pub fn spooled(&self) -> usize {
        lock(&self.log).spool.len()
    }

    /// How many terminal records were given up because too many waited. Each went to `tracing` in full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        lock(&self.log).lost
    }

    /// What the last record that failed ran into, for people; `None` when none has failed.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        lock(&self.log).last_error.clone()
    }

    /// Writes what waits, and makes all of the log durable.
    ///
    /// # Errors
    /// It still cannot be written.
    pub fn flush(&self) -> Result<(), JsonlError> {
        self.write(&mut lock(&self.log), Content::Nothing, true)
    }

    /// The reaper of the log: closes the calls that were announced and not heard of within their lease, each by a record that says that
    /// it was lost and what it did is unknown, and tells which (invariant J1). What such a call tells afterwards is kept as a record
    /// of kind `late`. For a host to call when it starts, and from time to time; goes through what was written since the last time.
    ///
    /// # Errors
    /// The log is not as it was left, or cannot be used. Nothing is closed then.
    pub fn reap(&self, now: Timestamp) -> Result<Vec<LostCall>, JsonlError> {
        let mut log = lock(&self.log);
        self.write(&mut log, Content::Nothing, true)?;
        let mut known = OpenUpTo::of(&self.path).unwrap_or_default();
        let start = known.at.head.seq;
        let mut lost = Vec::new();
        let mut closing = |disk: &Disk, at: &Anchor| {
            tail::go_through(&disk.log, &Segments::of(&self.path), &mut known, at)
                .map_err(JsonlError::io(&self.path, "read"))?;
            let mut calls = LostCalls::of(&self.path)?;
            let mut records = Vec::new();
            for (call, record) in known.open.closing(now)? {
                calls.add((call.request_id.clone(), call.tool.clone()));
                records.push(record);
                lost.push(call);
            }
            // Before the records: a call that is late and not closed yet is closed by the next reaping.
            calls.keep()?;
            Ok(records)
        };
        self.write(&mut log, Content::AtTheEnd(&mut closing), true)?;
        if known.at.head.seq.abs_diff(start) >= KEPT_AFTER {
            known.keep(&self.path);
        }
        Ok(lost)
    }

    /// Puts the log aside as a [segment](super::segment) and goes on with a new one, whose first line follows the last one of the segment;
    /// gives the end of the segment. Nothing to put aside gives `None`. Whenever a process is killed on the way, the log stays whole.
    ///
    /// # Errors
    /// The log is not as it was left, or cannot be used; or files can't have two names here, which this takes. The log goes on.
    pub fn rotate(&self) -> Result<Option<Head>, JsonlError> {
        let mut log = lock(&self.log);
        for _ in 0..MOST_MOVES {
            self.write(&mut log, Content::Nothing, true)?;
            let disk = match log.disk.take() {
                Some(disk) => disk,
                None => self.open_disk()?,
            };
            let rotated = rotate::rotate(self, &disk, &mut log);
            // Whatever came of it, the files are opened and looked at again.
            log.doubtful = true;
            match rotated? {
                Rotated::To(end) => return Ok(end),
                Rotated::Moved => {}
            }
        }
        Err(self.moved())
    }

    /// Removes the oldest segments, as far as `retention` has them go and no call of theirs is open, and says up to where. A record
    /// of it is written before.
    ///
    /// # Errors
    /// The log is not as it was left, or cannot be used. What was not removed is the next time.
    pub fn retain(&self, retention: Retention) -> Result<Option<Head>, JsonlError> {
        let (segments, now) = (Segments::of(&self.path), self.options.clock.now().wall);
        let mut log = lock(&self.log);
        let mut removal = None;
        let mut note = |disk: &Disk, at: &Anchor| {
            let io = JsonlError::io(&self.path, "look at the segments of");
            let look = || {
                let mut known = OpenUpTo::of(&self.path).unwrap_or_default();
                tail::go_through(&disk.log, &segments, &mut known, at)?;
                let first = segment::begins_after(&disk.log)?.map_or(1, |begin| begin.seq.saturating_add(1));
                segments.to_remove(first, known.open.first(), retention, now)
            };
            removal = look().map_err(io)?;
            Ok(removal.iter().map(|removal| removal.note(now)).collect::<Result<Vec<_>, _>>()?)
        };
        self.write(&mut log, Content::AtTheEnd(&mut note), true)?;
        let Some(removal) = removal else { return Ok(None) };
        // Whoever writes and verifies meanwhile finds the record and the segments.
        segments.remove(&removal).map_err(JsonlError::io(&self.path, "remove segments of"))?;
        Ok(Some(removal.up_to))
    }

    /// How many bytes the log has, without its segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        lock(&self.log).at.bytes
    }

    /// Writes the records that wait, then `content`, then the anchor; durably if `durable` or the options say so.
    fn write(&self, log: &mut Log, mut content: Content<'_>, durable: bool) -> Result<(), JsonlError> {
        let mut disk = match log.disk.take() {
            Some(disk) => disk,
            None => self.open_disk()?,
        };
        for _ in 0..MOST_MOVES {
            match self.write_to(&disk, log, &mut content, durable) {
                Ok(Written::Yes) => {
                    log.disk = Some(disk);
                    return Ok(());
                }
                Ok(Written::Moved) => {
                    // Somebody put the log aside to start a new one, or as a segment, perhaps again while this one waited for it.
                    if let Some(uncut) = log.uncut.take()
                        && tail::read_at(&disk.log, log.at.bytes, uncut.len())
                            .is_ok_and(|found| found.starts_with(uncut.as_bytes()))
                    {
                        log.spool.drop_first(uncut.lines().count());
                    }
                    log.doubtful = true;
                    disk = self.open_disk()?;
                }
                Err(error @ JsonlError::File(FileError::Io { .. })) => {
                    // After an error of the system, what its cache holds of the file is unknown: the files are opened and looked
                    // at again.
                    log.doubtful = true;
                    return Err(error);
                }
                Err(error) => {
                    log.disk = Some(disk);
                    return Err(error);
                }
            }
        }
        Err(self.moved())
    }

    fn open_disk(&self) -> Result<Disk, JsonlError> {
        Ok(Disk::open(
            &self.path,
            &anchor_path(&self.path),
            #[cfg(test)]
            &self.faults,
        )?)
    }

    /// The faults of this log's disk.
    #[cfg(test)]
    pub(super) fn faults(&self) -> std::sync::Arc<super::disk::faults::Faults> {
        std::sync::Arc::clone(&self.faults)
    }

    fn moved(&self) -> JsonlError {
        JsonlError::io(&self.path, "write to")(io::Error::other("it was moved or replaced while it was open"))
    }

    fn write_to(
        &self,
        disk: &Disk,
        log: &mut Log,
        content: &mut Content<'_>,
        durable: bool,
    ) -> Result<Written, JsonlError> {
        private_file::lock(&disk.log, &self.path, self.options.wait)?;
        let _unlocked_at_the_end = Unlock(&disk.log);
        if !disk.is_at(&self.path) {
            return Ok(Written::Moved);
        }
        let length = disk.len().map_err(JsonlError::io(&self.path, "look at"))?;
        if log.doubtful || length != log.at.bytes {
            self.find_end(disk, log)?;
        }
        let durable = durable || self.options.durability == Durability::All || !log.spool.is_empty();
        let mut text = String::new();
        let mut head = log.at.head;
        let closing = match content {
            Content::AtTheEnd(records) => records(disk, &log.at)?,
            Content::Nothing | Content::Record(_) => Vec::new(),
        };
        let mut lost = LostCalls::of(&self.path)?;
        let record = if let Content::Record(record) = content { Some(*record) } else { None };
        for record in log.spool.iter().chain(record) {
            let late = lost.heard(record);
            head = line::append(&head, late.as_deref().unwrap_or(record), &mut text)?;
        }
        for record in &closing {
            head = line::append(&head, record, &mut text)?;
        }
        let next = Anchor { head, bytes: log.at.bytes.saturating_add(text.len() as u64) };
        if let Some(max_bytes) = self.options.max_bytes
            && next.bytes > max_bytes
            && !text.is_empty()
        {
            return Err(JsonlError::Full { path: self.path.clone(), max_bytes });
        }
        let durable = durable && log.anchored != next;
        if let Err(error) = append(disk, &text, durable) {
            // Nothing of it may stay: it is told that it was not written, and a terminal record comes again.
            if disk.cut(log.at.bytes).is_err() {
                log.uncut = Some(text);
            }
            return Err(JsonlError::io(&self.path, "write to")(error));
        }
        log.at = next;
        log.spool.clear();
        if let Err(error) = lost.keep() {
            // The record is on the disk. What is told again of the same call would be late as well.
            tracing::error!(%error, "that a lost call was heard of could not be kept");
        }
        if durable {
            match disk.anchor(&next, log.slot) {
                Ok(slot) => (log.anchored, log.slot) = (next, slot),
                Err(error) => {
                    // The record is on the disk, so it counts as written. The next one comes after the anchor.
                    tracing::error!(%error, path = %self.path.display(), "the anchor of the audit log was not written");
                    log.doubtful = true;
                }
            }
        }
        Ok(Written::Yes)
    }

    /// Finds the end of the log where it may be another one than this process left: at the start, after another process
    /// wrote, after a fault. What there is to say about it goes to the spool, to be written next.
    pub(super) fn find_end(&self, disk: &Disk, log: &mut Log) -> Result<(), JsonlError> {
        let Tail { mut at, anchored, mut slot, new, torn } =
            tail::find(&disk.log, &disk.anchor).map_err(|error| self.explain(error))?;
        let io = |doing| JsonlError::io(&self.path, doing);
        if new {
            // From here on a log without an anchor is one that lost it.
            slot = disk.anchor(&anchored, slot).map_err(io("write the first anchor of"))?;
            disk.sync_anchor().map_err(io("write the first anchor of"))?;
        }
        let every_line_is_anchored = self.options.durability == Durability::All;
        if let Some(uncut) = &log.uncut {
            let found = tail::read_at(&disk.log, log.at.bytes, uncut.len()).map_err(io("read"))?;
            if uncut.as_bytes().starts_with(&found) {
                disk.cut(log.at.bytes).map_err(io("cut off a failed record in"))?;
                (log.slot, log.doubtful, log.uncut) = (slot, false, None);
                return Ok(());
            }
            if found.starts_with(uncut.as_bytes()) {
                // Another process went on behind it, so it counts: it must not be written again.
                log.spool.drop_first(uncut.lines().count());
            }
        }
        let now = self.options.clock.now().wall;
        let mut notes = Vec::new();
        if !torn.is_empty() {
            let about: [(&str, &dyn fmt::Display); 2] = [("bytes", &torn.len()), ("sha256", &Digest::of_bytes(&torn))];
            if let Some(head) = tail::complete(&at.head, &torn) {
                disk.append("\n").map_err(io("write to"))?;
                at = Anchor { head, bytes: at.bytes.saturating_add(torn.len() as u64).saturating_add(1) };
                notes.push(line::note(now, "line_completed", &about)?);
            } else {
                self.set_aside(&torn)?;
                disk.cut(at.bytes).map_err(io("cut off an unfinished line in"))?;
                notes.push(line::note(now, "torn_line_set_aside", &about)?);
            }
        }
        let behind = at.head.seq.saturating_sub(anchored.head.seq);
        if behind > 0 && every_line_is_anchored {
            notes.push(line::note(now, "anchor_behind", &[("lines", &behind)])?);
        }
        (log.at, log.anchored, log.slot, log.doubtful, log.uncut) = (at, anchored, slot, false, None);
        for note in notes {
            if let Err(note) = log.spool.push(note) {
                tracing::error!(note, "too many records wait for the audit log; this note is here alone");
            }
        }
        Ok(())
    }

    /// Keeps the start of a line that was never finished.
    fn set_aside(&self, torn: &[u8]) -> Result<(), JsonlError> {
        let path = self.path.with_added_extension("torn");
        let mut file = private_file::open(&path, Open::Append)?;
        let write = file.write_all(torn).and_then(|()| file.write_all(b"\n")).and_then(|()| file.sync_all());
        write.map_err(JsonlError::io(&path, "write"))
    }

    fn explain(&self, error: TailError) -> JsonlError {
        let path = self.path.clone();
        match error {
            TailError::Io(source) => JsonlError::io(&path, "read")(source),
            TailError::Truncated { anchored, bytes } => JsonlError::Truncated { path, anchored, bytes },
            TailError::NoAnchor => JsonlError::NoAnchor { path },
            TailError::Forked { seq } => JsonlError::Forked { path, seq },
            TailError::Broken { seq, reason } => JsonlError::Broken { path, seq, reason },
        }
    }
}

/// What is written behind the records that wait.
enum Content<'c> {
    Nothing,
    Record(&'c str),
    /// The records that the end of the log, found under its lock, asks for.
    AtTheEnd(&'c mut AtTheEnd<'c>),
}

/// Gives the records for the end of the log that was found.
type AtTheEnd<'c> = dyn FnMut(&Disk, &Anchor) -> Result<Vec<String>, JsonlError> + 'c;

/// Whether a record got to where it belongs.
enum Written {
    Yes,
    /// The path leads to another file now.
    Moved,
}

/// Appends `text`, and waits for the disk if told so.
fn append(disk: &Disk, text: &str, durable: bool) -> io::Result<()> {
    if !text.is_empty() {
        disk.append(text)?;
    }
    if durable { disk.sync() } else { Ok(()) }
}

/// Where the anchor of the log at `path` is.
pub(super) fn anchor_path(path: &Path) -> PathBuf {
    path.with_added_extension("head")
}

/// Lets go of a lock.
pub(super) struct Unlock<'f>(pub(super) &'f File);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::error!(%error, "the lock of the audit log was not let go of");
        }
    }
}

impl Audit for JsonlAudit {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let text = line::render(record, self.options.max_line.saturating_sub(line::CHAIN_BYTES));
        let mut log = lock(&self.log);
        let result = match &text {
            Ok(text) => self.write(&mut log, Content::Record(text), record.kind.comes_first()),
            Err(AuditFault) => Err(JsonlError::Record),
        };
        let Err(error) = result else { return Ok(()) };
        let error = error.to_string();
        tracing::error!(error, "a record was not written to the audit log");
        log.last_error = Some(error);
        if let (Kind::Terminal | Kind::Completion, Ok(text)) = (record.kind, text)
            && let Err(text) = log.spool.push(text)
        {
            log.lost = log.lost.saturating_add(1);
            tracing::error!(record = text, "too many records wait for the audit log; this one is here alone");
        }
        Err(AuditFault)
    }
}

impl Drop for JsonlAudit {
    fn drop(&mut self) {
        let mut log = lock(&self.log);
        if log.spool.is_empty() && log.at == log.anchored {
            return;
        }
        if let Err(error) = self.write(&mut log, Content::Nothing, true) {
            tracing::error!(%error, "the audit log could not be brought to its end");
            for record in log.spool.iter() {
                tracing::error!(record, "this record was never written to the audit log; it is here alone");
            }
        }
    }
}

impl fmt::Debug for JsonlAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonlAudit").field("path", &self.path).field("head", &self.head()).finish_non_exhaustive()
    }
}
