//! The audit log in the file.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use callgate_core::audit::chain::Head;
use callgate_core::audit::{Audit, AuditFault, Kind, Record};
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use callgate_std::audit::reaper::{self, OpenCalls};
use callgate_std::audit::segment::SegmentLines;
use callgate_std::audit::{
    Against, Expected, LostCall, Report, Retention, Segments, Spool, line, segment, verify_parts,
};
use callgate_std::contain::contain;
use callgate_std::private_file::FileError;
use rusqlite::params;

use crate::database::{Database, Link, lock};
use crate::error::DatabaseError;
use crate::lines::Lines;

/// The most bytes of a line where a host says nothing else.
const MAX_LINE: usize = 1 << 20;
/// The most records of one transaction.
const MAX_BATCH: usize = 256;
/// How many lines the reaper reads at once.
const PAGE: i64 = 1_000;
/// After how many lines it is kept anew how far the reaper has come.
const KEPT_AFTER: i64 = 256;

/// A log in SQLite: one row a record, numbered without gaps and chained as the lines of a file's log are
/// ([`callgate_core::audit::chain`]), in the same bytes.
///
/// Every record is on the disk when it is acknowledged, intents and terminal records alike. Records that come while another one is
/// being written wait, and are then written together in one transaction, so that many callers share one wait for the disk.
///
/// The rows cannot be changed or removed but by whoever changes the tables first. What was removed at the end shows against the head
/// that the file keeps; whoever can change both can change both alike, so keep a copy of the [head](SqliteAudit::head)
/// elsewhere and [verify](SqliteAudit::verify) against it.
///
/// A terminal record that cannot be written is kept in memory, bounded, and written before the next record (invariant J8);
/// [`SqliteAudit::spooled`] counts those. A program that ends calls [`SqliteAudit::flush`] first; what is still there when the sink is
/// dropped goes to `tracing`.
pub struct SqliteAudit {
    database: Arc<Database>,
    max_line: usize,
    queue: Mutex<Queue>,
    written: Condvar,
    log: Mutex<Log>,
}

/// Records that wait for their turn.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    next: u64,
    /// Whether one of the callers writes for all.
    leading: bool,
    /// Whether each record that was tried was written, until its caller has heard of it.
    answers: HashMap<u64, bool>,
}

struct Waiting {
    number: u64,
    kind: Kind,
    text: String,
}

struct Log {
    /// The end of what this process wrote or found.
    head: Head,
    spool: Spool,
    /// The head after a transaction that failed, when it could be there nevertheless, and how many of the records that wait
    /// were part of it.
    attempted: Option<(Head, usize)>,
    lost: u64,
}

impl SqliteAudit {
    /// The log in this file, which is made if there is none.
    ///
    /// # Errors
    /// As [`SqliteAudit::on`] and [`Database::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Self::on(Arc::new(Database::open(path)?))
    }

    /// The log in this file, with lines of at most 1 MiB.
    ///
    /// # Errors
    /// The log does not end as it was left, or the file cannot be used.
    pub fn on(database: Arc<Database>) -> Result<Self, DatabaseError> {
        Self::with_max_line(database, MAX_LINE)
    }

    /// The log in this file, with lines of at most this many bytes, at least 16 KiB. A longer record is replaced by one that says
    /// so, with its length and hash.
    ///
    /// # Errors
    /// As [`SqliteAudit::on`].
    pub fn with_max_line(database: Arc<Database>, max_line: usize) -> Result<Self, DatabaseError> {
        let head = database.step(end)?;
        let log = Log { head, spool: Spool::default(), attempted: None, lost: 0 };
        Ok(Self {
            database,
            max_line: max_line.max(16 << 10),
            queue: Mutex::default(),
            written: Condvar::new(),
            log: Mutex::new(log),
        })
    }

    /// The file.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The end of the chain, as far as this process knows.
    #[must_use]
    pub fn head(&self) -> Head {
        lock(&self.log).head
    }

    /// How many terminal records wait to be written after a failure.
    #[must_use]
    pub fn spooled(&self) -> usize {
        lock(&self.log).spool.len()
    }

    /// How many terminal records were given up because too many waited. Each went to `tracing` in full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        lock(&self.log).lost
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// It still cannot be written.
    pub fn flush(&self) -> Result<(), DatabaseError> {
        self.write(&mut lock(&self.log), Vec::new())
    }

    /// The reaper of the log: closes the calls that were announced and not heard of within their lease, each by a record that says that
    /// it was lost and what it did is unknown, and tells which (invariant J1). What such a call tells afterwards is kept as a record
    /// of kind `late`. For a host to call when it starts, and from time to time; goes through what was written since the last time.
    ///
    /// # Errors
    /// The log does not end as it was left, or the file cannot be used. Nothing is closed then.
    pub fn reap(&self, now: Timestamp) -> Result<Vec<LostCall>, DatabaseError> {
        let mut log = lock(&self.log);
        self.write(&mut log, Vec::new())?;
        let (kept, mut read, mut open) = self.database.step(|link| known(link, &self.segments()))?;
        // Whoever writes is kept waiting for a page, not for the log.
        while self.database.step(|link| page(link, &mut read, &mut open, PAGE))? {}
        let head = log.head;
        let (next, lost) = self.database.step(|link| {
            let mut next = end(link)?;
            if !is_there(link, &head)? {
                return Err(link.truncated(head));
            }
            page(link, &mut read, &mut open, i64::MAX)?;
            if read.saturating_sub(kept) >= KEPT_AFTER {
                keep(link, read, &open)?;
            }
            let closing = open.closing(now).map_err(|AuditFault| DatabaseError::Record)?;
            if closing.is_empty() {
                return Ok((next, Vec::new()));
            }
            let mut lost = Vec::new();
            for (call, record) in closing {
                next = insert(link, &next, &record)?;
                let sql = "INSERT INTO audit_lost (request_id, tool) VALUES (?1, ?2)";
                link.execute(sql, (&call.request_id, &call.tool))?;
                lost.push(call);
            }
            set_end(link, &next)?;
            Ok((next, lost))
        })?;
        log.head = next;
        Ok(lost)
    }

    /// Puts the lines aside as a [segment](Segments), a file beside the database, and goes on with a line that follows the last one of the
    /// segment; gives the end of the segment. Nothing to put aside gives `None`. The segment is on the disk before its lines leave the
    /// database, in one transaction; whenever a process is killed on the way, the log stays whole.
    ///
    /// # Errors
    /// The log does not end as it was left, or a file cannot be used. The log goes on.
    pub fn rotate(&self, now: Timestamp) -> Result<Option<Head>, DatabaseError> {
        let mut log = lock(&self.log);
        self.write(&mut log, Vec::new())?;
        let (head, segments) = (log.head, self.segments());
        let rotated = self.database.step(|link| {
            let (end, begin) = (end(link)?, begin(link)?);
            if !is_there(link, &head)? {
                return Err(link.truncated(head));
            }
            // One that holds nothing but its own beginning is new.
            if end.seq.saturating_sub(begin.seq) <= u64::from(begin.seq > 0) {
                return Ok(None);
            }
            let mut text = Vec::new();
            link.each("SELECT line FROM audit ORDER BY seq", [], |row| {
                text.extend_from_slice(row.get_ref(0)?.as_str()?.as_bytes());
                text.push(b'\n');
                Ok(true)
            })?;
            let (_, mut read, mut open) = known(link, &segments)?;
            page(link, &mut read, &mut open, i64::MAX)?;
            keep(link, read, &open)?;
            segments.write(begin.seq.saturating_add(1), &text)?;
            segment::passed("segment_written");
            let note = segment::begins(now, &end).map_err(|AuditFault| DatabaseError::Record)?;
            let next = insert(link, &end, &note)?;
            set_end(link, &next)?;
            let put_aside = number(end.seq, link)?;
            link.execute("UPDATE audit_begin SET seq = ?1, hash = ?2", params![put_aside, end.hash.as_bytes()])?;
            link.execute("DELETE FROM audit WHERE seq <= ?1", [put_aside])?;
            segment::passed("lines_removed");
            Ok(Some((end, next)))
        })?;
        Ok(rotated.map(|(end, next)| {
            log.head = next;
            end
        }))
    }

    /// Removes the oldest segments, as far as `retention` has them go and no call of theirs is open, and says up to where. A record
    /// of it is written before.
    ///
    /// # Errors
    /// The log does not end as it was left, or a file cannot be used. What was not removed is the next time.
    pub fn retain(&self, retention: Retention, now: Timestamp) -> Result<Option<Head>, DatabaseError> {
        let mut log = lock(&self.log);
        self.write(&mut log, Vec::new())?;
        let (head, segments) = (log.head, self.segments());
        let found = self.database.step(|link| {
            let (end, begin) = (end(link)?, begin(link)?);
            if !is_there(link, &head)? {
                return Err(link.truncated(head));
            }
            let (_, mut read, mut open) = known(link, &segments)?;
            page(link, &mut read, &mut open, i64::MAX)?;
            let removal = segments.to_remove(begin.seq.saturating_add(1), open.first(), retention, now);
            let Some(removal) = removal.map_err(|error| unreadable(&segments, error))? else { return Ok(None) };
            let next = insert(link, &end, &removal.note(now).map_err(|AuditFault| DatabaseError::Record)?)?;
            set_end(link, &next)?;
            Ok(Some((removal, next)))
        })?;
        let Some((removal, next)) = found else { return Ok(None) };
        log.head = next;
        segments.remove(&removal).map_err(|error| unreadable(&segments, error))?;
        Ok(Some(removal.up_to))
    }

    /// How many bytes the lines have that are in the database, each with its line break.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn bytes(&self) -> Result<u64, DatabaseError> {
        let bytes =
            self.database.step(|link| link.one("SELECT bytes FROM audit_begin", [], |row| row.get::<_, i64>(0)))?;
        Ok(bytes.unsigned_abs())
    }

    fn segments(&self) -> Segments {
        Segments::of(self.database.path())
    }

    /// Writes the whole log, its segments first, to `out` as JSON Lines, as a file's log has them, and gives the head that was recorded
    /// for it. What is written on meanwhile is not part of it, and what is put aside meanwhile is. Nothing is verified: `callgate audit verify FILE --head SEQ:HASH` does that.
    ///
    /// # Errors
    /// Those of `out`, and of the file as [`io::Error::other`].
    pub fn export(&self, out: &mut dyn Write) -> io::Result<Head> {
        let mut lines = Lines::all(&self.database)?;
        let head = lines.head();
        io::copy(&mut lines, out)?;
        out.flush()?;
        Ok(head)
    }

    /// Verifies the log, line by line, against the head that the file keeps, or with `kept` against one that was copied elsewhere
    /// before.
    ///
    /// # Errors
    /// The file cannot be read. What is wrong with the log is no error but in the report.
    pub fn verify(&self, kept: Option<Head>) -> io::Result<Report> {
        Self::verify_in(&self.database, Expected::new(kept, None))
    }

    /// The same with its segments for a log that may be not as it was left, which no sink opens any more, against whatever is expected.
    ///
    /// # Errors
    /// As [`SqliteAudit::verify`].
    pub fn verify_in(database: &Database, expected: Expected) -> io::Result<Report> {
        loop {
            let lines = Lines::here(database)?;
            let (head, begin, before) = (lines.head(), lines.begin(), lines.before().to_vec());
            let mut parts: Vec<(PathBuf, Box<dyn BufRead + '_>)> = Vec::new();
            for segment in before.iter().cloned() {
                parts.push((segment.path.clone(), Box::new(SegmentLines::of(vec![segment]))));
            }
            parts.push((database.path().to_owned(), Box::new(lines)));
            let report = verify_parts(parts, Against::Head(expected.kept.unwrap_or(head)), expected.checkpoint);
            // Whatever was put aside meanwhile is in a segment that was not looked at, and one that was removed could not be.
            let now = Lines::here(database)?;
            if now.begin() == begin && (report.is_ok() || now.before() == before) {
                return report;
            }
        }
    }

    /// How many records wait for their turn, beside those that are being written.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.queue).waiting.len()
    }

    /// Writes the records that wait since a failure, then these, in one transaction. When that fails, the terminal ones among
    /// these wait, too.
    fn write(&self, log: &mut Log, records: Vec<Waiting>) -> Result<(), DatabaseError> {
        let Log { head, spool, attempted, lost } = log;
        if spool.is_empty() && records.is_empty() {
            return Ok(());
        }
        let mut trying = None;
        let result = self.database.step(|link| {
            let mut next = end(link)?;
            if !is_there(link, head)? {
                return Err(link.truncated(*head));
            }
            if let Some((there, count)) = *attempted {
                if was_written(link, &there, &self.segments())? {
                    // It was told to have failed and had not.
                    spool.drop_first(count);
                }
                *attempted = None;
            }
            let some_lost = link.one("SELECT EXISTS (SELECT 1 FROM audit_lost)", [], |row| row.get::<_, bool>(0))?;
            for record in spool.iter().chain(records.iter().map(|record| record.text.as_str())) {
                let late = if some_lost { heard(link, record)? } else { None };
                next = insert(link, &next, late.as_deref().unwrap_or(record))?;
            }
            set_end(link, &next)?;
            trying = Some(next);
            Ok(next)
        });
        let error = match result {
            Ok(next) => {
                *head = next;
                spool.clear();
                return Ok(());
            }
            Err(error) => error,
        };
        // Whoever was told that an intent was not written does not start.
        for Waiting { text, .. } in records.into_iter().filter(|record| !record.kind.comes_first()) {
            if let Err(text) = spool.push(text) {
                *lost = lost.saturating_add(1);
                tracing::error!(record = text, "too many records wait for the audit log; this one is here alone");
            }
        }
        if let Some(next) = trying {
            *attempted = Some((next, spool.len()));
        }
        Err(error)
    }

    /// Writes what came together, and says whether all of it was written.
    fn write_batch(&self, batch: Vec<Waiting>) -> bool {
        let result = self.write(&mut lock(&self.log), batch);
        result.inspect_err(|error| self.database.report(error)).is_ok()
    }
}

/// The end of the log as the file keeps it.
pub(crate) fn recorded(link: &Link<'_>) -> Result<Head, DatabaseError> {
    let (seq, hash) = link.one("SELECT seq, hash FROM audit_head", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    head(seq, hash, link)
}

/// The end of the log. It has to be where the file says that it is.
fn end(link: &Link<'_>) -> Result<Head, DatabaseError> {
    let recorded = recorded(link)?;
    let mut last = (0, [0; 32]);
    link.each("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1", [], |row| {
        last = (row.get(0)?, row.get(1)?);
        Ok(false)
    })?;
    if head(last.0, last.1, link)? == recorded { Ok(recorded) } else { Err(link.truncated(recorded)) }
}

fn head(seq: i64, hash: [u8; 32], link: &Link<'_>) -> Result<Head, DatabaseError> {
    let seq = u64::try_from(seq).map_err(|_| link.damaged("a line has a number below zero"))?;
    Ok(Head { seq, hash: Digest::from_bytes(hash) })
}

/// Behind which line the log begins here: the end of its last segment.
pub(crate) fn begin(link: &Link<'_>) -> Result<Head, DatabaseError> {
    let (seq, hash) = link.one("SELECT seq, hash FROM audit_begin", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    head(seq, hash, link)
}

/// Whether the line with which this head ends is in the log. What was put aside is taken to be.
fn is_there(link: &Link<'_>, head: &Head) -> Result<bool, DatabaseError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM audit WHERE seq = ?1 AND hash = ?2)";
    if head.seq == 0 || link.one(sql, params![number(head.seq, link)?, head.hash.as_bytes()], |row| row.get(0))? {
        return Ok(true);
    }
    let begin = begin(link)?;
    Ok(head.seq < begin.seq || *head == begin)
}

/// Whether the line with which this head ends was written, be it that it was put aside since.
fn was_written(link: &Link<'_>, head: &Head, segments: &Segments) -> Result<bool, DatabaseError> {
    let begin = begin(link)?;
    if head.seq > begin.seq {
        return is_there(link, head);
    }
    segments.hold(begin.seq.saturating_add(1), head).map_err(|error| unreadable(segments, error))
}

pub(crate) fn unreadable(segments: &Segments, source: io::Error) -> DatabaseError {
    DatabaseError::File(FileError::Io { path: segments.directory().to_owned(), doing: "use the segments in", source })
}

/// Which calls are open up to which line, as it was kept, and that line once more, to be read on from. Nothing depends on what was kept:
/// where it can't be used, everything is gone through.
fn known(link: &Link<'_>, segments: &Segments) -> Result<(i64, i64, OpenCalls), DatabaseError> {
    let (kept, calls) =
        link.one("SELECT seq, calls FROM audit_open", [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    let begin = begin(link)?;
    if let Some(open) = OpenCalls::read(&calls)
        && kept >= number(begin.seq, link)?
    {
        return Ok((kept, kept, open));
    }
    let mut open = OpenCalls::default();
    segments.go_through(begin.seq.saturating_add(1), &mut open).map_err(|error| unreadable(segments, error))?;
    Ok((0, number(begin.seq, link)?, open))
}

/// Reads on, so many lines at most, and says whether there were any.
fn page(link: &Link<'_>, read: &mut i64, open: &mut OpenCalls, most: i64) -> Result<bool, DatabaseError> {
    let before = *read;
    let sql = "SELECT seq, line FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    link.each(sql, (before, most), |row| {
        *read = row.get(0)?;
        open.line(read.unsigned_abs(), row.get_ref(1)?.as_str()?);
        Ok(true)
    })?;
    Ok(*read > before)
}

/// Keeps which calls are open up to which line.
fn keep(link: &Link<'_>, read: i64, open: &OpenCalls) -> Result<(), DatabaseError> {
    link.execute("UPDATE audit_open SET seq = ?1, calls = ?2", (read, open.write())).map(drop)
}

/// Writes the line of a record behind `head`, and gives the head after it.
fn insert(link: &Link<'_>, head: &Head, record: &str) -> Result<Head, DatabaseError> {
    let mut text = String::new();
    let next = line::append(head, record, &mut text).map_err(|AuditFault| DatabaseError::Record)?;
    link.execute(
        "INSERT INTO audit (seq, hash, line) VALUES (?1, ?2, ?3)",
        params![number(next.seq, link)?, next.hash.as_bytes(), text.trim_end_matches('\n')],
    )?;
    Ok(next)
}

/// Keeps where the log ends.
fn set_end(link: &Link<'_>, head: &Head) -> Result<(), DatabaseError> {
    let sql = "UPDATE audit_head SET seq = ?1, hash = ?2";
    link.execute(sql, params![number(head.seq, link)?, head.hash.as_bytes()]).map(drop)
}

/// The record as it is to be written instead: what is heard of a call that the reaper has closed is late, once; and one that is announced
/// anew under its name is another one.
fn heard(link: &Link<'_>, record: &str) -> Result<Option<String>, DatabaseError> {
    if let Some(call) = reaper::announces(record) {
        link.execute("DELETE FROM audit_lost WHERE request_id = ?1 AND tool = ?2", call)?;
        return Ok(None);
    }
    let Some(call) = reaper::ends(record) else { return Ok(None) };
    let sql = "DELETE FROM audit_lost WHERE rowid = \
               (SELECT rowid FROM audit_lost WHERE request_id = ?1 AND tool = ?2 LIMIT 1)";
    Ok(if link.execute(sql, call)? == 1 { reaper::late(record) } else { None })
}

fn number(seq: u64, link: &Link<'_>) -> Result<i64, DatabaseError> {
    i64::try_from(seq).map_err(|_| link.damaged("a line has a number beyond all"))
}

impl Audit for SqliteAudit {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let text = line::render(record, self.max_line.saturating_sub(line::CHAIN_BYTES)).inspect_err(|AuditFault| {
            self.database.report(&DatabaseError::Record);
        })?;
        let mut queue = lock(&self.queue);
        let number = queue.next;
        queue.next = queue.next.wrapping_add(1);
        queue.waiting.push_back(Waiting { number, kind: record.kind, text });
        loop {
            if let Some(written) = queue.answers.remove(&number) {
                return if written { Ok(()) } else { Err(AuditFault) };
            }
            if queue.leading {
                queue = self.written.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // Nobody writes: this caller does, for all that wait.
            queue.leading = true;
            let count = queue.waiting.len().min(MAX_BATCH);
            let batch: Vec<_> = queue.waiting.drain(..count).collect();
            drop(queue);
            let numbers: Vec<_> = batch.iter().map(|waiting| waiting.number).collect();
            let written = contain(|| self.write_batch(batch)).unwrap_or(false);
            queue = lock(&self.queue);
            queue.leading = false;
            queue.answers.extend(numbers.into_iter().map(|number| (number, written)));
            self.written.notify_all();
        }
    }
}

impl Drop for SqliteAudit {
    fn drop(&mut self) {
        let Err(error) = self.flush() else { return };
        tracing::error!(%error, "the audit log could not be brought to its end");
        for record in lock(&self.log).spool.iter() {
            tracing::error!(record, "this record was never written to the audit log; it is here alone");
        }
    }
}

impl fmt::Debug for SqliteAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteAudit")
            .field("path", &self.database.path())
            .field("head", &self.head())
            .finish_non_exhaustive()
    }
}
