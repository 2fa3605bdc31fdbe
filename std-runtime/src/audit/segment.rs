//! The segments of a log: what was put aside when it was rotated.
//!
//! They stand in the directory `<log>.segments`, each a file of JSON Lines under the number of its first line. The chain goes through all
//! of them into the log itself: its first line follows the last one of the last segment.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use callgate_core::audit::chain::Head;
use callgate_core::time::Timestamp;

use super::reaper::OpenCalls;
use super::{line, tail};
use crate::private_file::{self, FileError, Open};

/// How many digits the name of a segment has at least, so that names sort as numbers do.
const DIGITS: usize = 12;
const EXTENSION: &str = ".jsonl";

/// Where the segments of a log are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segments(PathBuf);

/// One segment.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Segment {
    /// The number of its first line.
    pub first: u64,
    /// Its file.
    pub path: PathBuf,
}

/// What is kept of the segments. Nothing is removed by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Retention {
    /// The most segments that are kept beside the log.
    pub segments: Option<u32>,
    /// For how long a segment is kept after its last record, in milliseconds.
    pub for_ms: Option<u64>,
}

impl Retention {
    /// Keeps at most so many segments, and each for so many milliseconds.
    #[must_use]
    pub const fn new(segments: Option<u32>, for_ms: Option<u64>) -> Self {
        Self { segments, for_ms }
    }
}

/// Segments that are to be removed: those up to some line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Removal {
    /// The segments, the oldest first.
    pub segments: Vec<Segment>,
    /// The end of the last one.
    pub up_to: Head,
}

impl Segments {
    /// Those of the log at `log`.
    #[must_use]
    pub fn of(log: &Path) -> Self {
        Self(log.with_added_extension("segments"))
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Where the segment is that begins with this line.
    #[must_use]
    pub fn path_of(&self, first: u64) -> PathBuf {
        self.0.join(format!("{first:0DIGITS$}{EXTENSION}"))
    }

    /// The segments before the line of this number, the oldest first. What a rotation has left behind that did not come to its end
    /// begins with that line, and is none.
    ///
    /// # Errors
    /// The directory can't be read.
    pub fn before(&self, line: u64) -> io::Result<Vec<Segment>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut segments = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let first = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(EXTENSION));
            if let Some(first) = first.and_then(|first| first.parse().ok())
                && first < line
                && path == self.path_of(first)
            {
                segments.push(Segment { first, path });
            }
        }
        segments.sort_unstable_by_key(|segment| segment.first);
        Ok(segments)
    }

    /// Makes the directory, for its owner alone.
    ///
    /// # Errors
    /// The system refused, or others could have a hand in it.
    pub fn prepare(&self) -> Result<(), FileError> {
        private_file::prepare_directory(&self.path_of(0))?;
        private_file::sync_directory(&self.0)
    }

    /// Writes a segment in one step: it is there whole and on the disk, or not at all. One that is there, which is what a rotation left
    /// that did not come to its end, is replaced.
    ///
    /// # Errors
    /// The system refused.
    pub fn write(&self, first: u64, text: &[u8]) -> Result<(), FileError> {
        self.prepare()?;
        private_file::replace(&self.path_of(first), text)
    }

    /// Whether a segment before the line of this number holds the line with which this head ends.
    ///
    /// # Errors
    /// A segment can't be read.
    pub fn hold(&self, line: u64, head: &Head) -> io::Result<bool> {
        let segments = self.before(line)?;
        let Some(segment) = segments.iter().rfind(|segment| segment.first <= head.seq) else { return Ok(false) };
        let at = usize::try_from(head.seq.saturating_sub(segment.first)).unwrap_or(usize::MAX);
        let found = BufReader::new(File::open(&segment.path)?).lines().nth(at).transpose()?;
        Ok(found.is_some_and(|found| line::claimed(&found) == Some(*head)))
    }

    /// Has `open` take the lines of the segments before this line.
    ///
    /// # Errors
    /// A segment can't be read.
    pub fn go_through(&self, line: u64, open: &mut OpenCalls) -> io::Result<()> {
        for segment in self.before(line)? {
            let mut seq = segment.first;
            let mut lines = BufReader::new(File::open(&segment.path)?);
            let mut text = Vec::new();
            while lines.read_until(b'\n', &mut text)? > 0 {
                open.line(seq, str::from_utf8(&text).unwrap_or_default());
                seq = seq.saturating_add(1);
                text.clear();
            }
        }
        Ok(())
    }

    /// Which segments before the line `first` of the log are to be removed at `now`: the oldest, as long as the retention has them go and
    /// the call of none of their lines is open, the first of which has the number `open`.
    ///
    /// # Errors
    /// A segment can't be read.
    pub fn to_remove(
        &self,
        first: u64,
        open: Option<u64>,
        retention: Retention,
        now: Timestamp,
    ) -> io::Result<Option<Removal>> {
        let all = self.before(first)?;
        let mut removal: Option<Removal> = None;
        for (at, segment) in all.iter().enumerate() {
            let next = all.get(at.saturating_add(1)).map_or(first, |next| next.first);
            let left = all.len().saturating_sub(at) as u64;
            let too_many = retention.segments.is_some_and(|most| left > u64::from(most));
            let (end, ended) = end_of(&segment.path)?;
            let too_old = retention.for_ms.zip(ended).is_some_and(|(ms, ended)| ended.saturating_add_millis(ms) <= now);
            // One that does not end where the next begins is left to whoever verifies the log.
            let is_whole = end.is_some_and(|end| end.seq.saturating_add(1) == next);
            if !(too_many || too_old) || open.is_some_and(|open| open < next) || !is_whole {
                break;
            }
            let Some(up_to) = end else { break };
            let segments = removal.map_or_else(Vec::new, |removal| removal.segments);
            removal = Some(Removal { segments: [segments, vec![segment.clone()]].concat(), up_to });
        }
        Ok(removal)
    }

    /// Removes them. That they are to be removed was recorded before.
    ///
    /// # Errors
    /// The system refused; the next time removes the rest.
    pub fn remove(&self, removal: &Removal) -> io::Result<()> {
        for segment in &removal.segments {
            remove(&segment.path)?;
        }
        private_file::sync_directory(&self.path_of(0)).map_err(io::Error::other)
    }
}

/// The lines of segments, one segment after the other. Each is opened when it is its turn and let go of at its end, so there may be any
/// number of them.
#[derive(Debug)]
pub struct SegmentLines {
    rest: std::vec::IntoIter<Segment>,
    file: Option<BufReader<File>>,
}

impl SegmentLines {
    /// Those of these, in this order.
    #[must_use]
    pub fn of(segments: Vec<Segment>) -> Self {
        Self { rest: segments.into_iter(), file: None }
    }
}

impl BufRead for SegmentLines {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.file.as_mut().map_or(Ok(true), |file| file.fill_buf().map(<[u8]>::is_empty))? {
            // Kept open no longer than it is read.
            self.file = None;
            let Some(segment) = self.rest.next() else { break };
            self.file = Some(BufReader::new(File::open(&segment.path)?));
        }
        self.file.as_mut().map_or(Ok(&[]), BufRead::fill_buf)
    }

    fn consume(&mut self, count: usize) {
        if let Some(file) = &mut self.file {
            file.consume(count);
        }
    }
}

impl Read for SegmentLines {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl Removal {
    /// The record that says so, which comes before it.
    ///
    /// # Errors
    /// It can't be written.
    pub fn note(&self, now: Timestamp) -> Result<String, callgate_core::audit::AuditFault> {
        let count = self.segments.len();
        line::note(now, REMOVED, &[(UP_TO_SEQ, &self.up_to.seq), (UP_TO_HASH, &self.up_to.hash), ("segments", &count)])
    }
}

/// The record with which a log goes on after a rotation.
///
/// # Errors
/// It can't be written.
pub fn begins(now: Timestamp, after: &Head) -> Result<String, callgate_core::audit::AuditFault> {
    line::note(now, "segment_begins", &[("after_seq", &after.seq), ("after_hash", &after.hash)])
}

/// Tells, as an event of `tracing` by this target, which step of a rotation was taken: for whoever looks for what a rotation that was killed
/// has left, and for those who kill it there.
#[doc(hidden)]
pub fn passed(step: &'static str) {
    tracing::trace!(target: "callgate::rotation", step);
}

pub(super) const REMOVED: &str = "segments_removed";
pub(super) const UP_TO_SEQ: &str = "up_to_seq";
pub(super) const UP_TO_HASH: &str = "up_to_hash";

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The end of a segment as its last line says it, and when that was written.
fn end_of(path: &Path) -> io::Result<(Option<Head>, Option<Timestamp>)> {
    let file = private_file::open(path, Open::Read).map_err(io::Error::other)?;
    let length = file.metadata()?.len();
    let Some(last) = tail::last_line(&file, length)? else { return Ok((None, None)) };
    let record: serde_json::Value = serde_json::from_str(&last).unwrap_or_default();
    let at = record.get("at").and_then(serde_json::Value::as_str).and_then(|at| at.parse().ok());
    Ok((line::said(&last), at))
}

/// The head behind which the first line of a log's file follows, as that line says it; the head of an empty log where there is no line, and
/// `None` where the line is none. Leaves the file somewhere.
///
/// # Errors
/// The file can't be read.
pub fn begins_after(mut log: &File) -> io::Result<Option<Head>> {
    log.seek(SeekFrom::Start(0))?;
    let mut text = Vec::new();
    BufReader::with_capacity(1 << 10, Read::take(log, tail::MAX_READ)).read_until(b'\n', &mut text)?;
    if text.is_empty() {
        return Ok(Some(Head::EMPTY));
    }
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    Ok(str::from_utf8(text).ok().and_then(line::before))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be more segments than a process may have files open.
    #[test]
    fn a_segment_is_opened_when_it_is_its_turn() {
        let directory = tempfile::tempdir().unwrap();
        let segment = |first: u64| Segment { first, path: directory.path().join(first.to_string()) };
        fs::write(segment(1).path, "one\ntwo\n").unwrap();
        fs::write(segment(3).path, "").unwrap();
        fs::write(segment(4).path, "three\n").unwrap();
        let of = |firsts: &[u64]| SegmentLines::of(firsts.iter().map(|first| segment(*first)).collect());
        let lines: io::Result<Vec<_>> = of(&[1, 3, 4]).lines().collect();
        assert_eq!(lines.unwrap(), ["one", "two", "three"]);
        let mut lines = of(&[1, 9]).lines();
        assert_eq!([lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap()], ["one", "two"]);
        assert_eq!(lines.next().unwrap().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
