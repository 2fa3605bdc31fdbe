//! The end of a log: found from its anchor, and checked line by line from there.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use callgate_core::audit::chain::{ChainError, Head};

use super::anchor::{self, Anchor, Anchored, Slot};
use super::line;
use super::lost::OpenUpTo;
use super::segment::{self, Segments};

/// The longest line that is read: far beyond what is written, and a bound on what a damaged file can cost.
pub(super) const MAX_READ: u64 = 16 << 20;

/// What stands at the end of a log.
pub(super) struct Tail {
    /// The end of the last whole line.
    pub(super) at: Anchor,
    /// What the anchor file says.
    pub(super) anchored: Anchor,
    /// Where the next anchor goes.
    pub(super) slot: Slot,
    /// Whether both files were just made.
    pub(super) new: bool,
    /// What stands behind the last line break: the start of a line that was never finished.
    pub(super) torn: Vec<u8>,
}

/// Why a log does not end as its anchor says.
#[derive(Debug)]
pub(super) enum TailError {
    Io(io::Error),
    /// The log is shorter than its anchor says, or the anchor is not of this log any more.
    Truncated {
        anchored: u64,
        bytes: u64,
    },
    /// The log has lines and no anchor, or one that cannot be read.
    NoAnchor,
    /// The anchored line is not the one that was anchored.
    Forked {
        seq: u64,
    },
    /// A line after the anchored one does not follow.
    Broken {
        seq: u64,
        reason: ChainError,
    },
}

impl From<io::Error> for TailError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Finds the end of the log.
pub(super) fn find(log: &File, anchor_file: &File) -> Result<Tail, TailError> {
    let bytes = log.metadata()?.len();
    let (anchored, slot, new) = match anchor::read(anchor_file)? {
        Anchored::At(anchor, slot) => (anchor, slot, false),
        // An anchor stands before the first line does.
        Anchored::Blank if bytes == 0 => (Anchor::EMPTY, Slot::First, true),
        Anchored::Blank | Anchored::Damaged => return Err(TailError::NoAnchor),
    };
    // The log was rotated, and whoever did it was killed before it could say so here.
    let anchored = if follows(log, &anchored.head)? { Anchor { bytes: 0, ..anchored } } else { anchored };
    if anchored.bytes > bytes {
        return Err(TailError::Truncated { anchored: anchored.head.seq, bytes });
    }
    check_anchored(log, &anchored)?;
    let mut log = log;
    log.seek(SeekFrom::Start(anchored.bytes))?;
    let mut lines = BufReader::new(log);
    let mut at = anchored;
    loop {
        let mut line = Vec::new();
        let length = (&mut lines).take(MAX_READ).read_until(b'\n', &mut line)?;
        let Some(body) = line.strip_suffix(b"\n") else {
            if length as u64 >= MAX_READ {
                return Err(TailError::Broken { seq: at.head.seq.saturating_add(1), reason: ChainError::NotALine });
            }
            return Ok(Tail { at, anchored, slot, new, torn: line });
        };
        let next = str::from_utf8(body).map_err(|_| ChainError::NotALine).and_then(|body| at.head.verify(body));
        match next {
            Ok(head) => at = Anchor { head, bytes: at.bytes.saturating_add(length as u64) },
            Err(reason) => return Err(TailError::Broken { seq: at.head.seq.saturating_add(1), reason }),
        }
    }
}

/// Whether the line that ends where the anchor says is the one that was anchored.
fn check_anchored(log: &File, anchored: &Anchor) -> Result<(), TailError> {
    if anchored.head.seq == 0 {
        return if *anchored == Anchor::EMPTY { Ok(()) } else { Err(TailError::NoAnchor) };
    }
    let forked = TailError::Forked { seq: anchored.head.seq };
    if anchored.bytes == 0 {
        return if follows(log, &anchored.head)? { Ok(()) } else { Err(forked) };
    }
    match last_line(log, anchored.bytes)? {
        Some(line) => match line::claimed(&line) {
            Some(head) if head == anchored.head => Ok(()),
            _ => Err(forked),
        },
        None => Err(forked),
    }
}

/// Whether the log is a segment that begins behind the line of this head.
pub(super) fn follows(log: &File, head: &Head) -> io::Result<bool> {
    Ok(head.seq > 0 && segment::begins_after(log)? == Some(*head))
}

/// The line whose line break is the last of the first `end` bytes; `None` when there is none, or it is too long or no text.
pub(super) fn last_line(mut log: &File, end: u64) -> io::Result<Option<String>> {
    let mut reach = 4_096;
    loop {
        let start = end.saturating_sub(reach);
        log.seek(SeekFrom::Start(start))?;
        let mut window = Vec::new();
        log.take(end - start).read_to_end(&mut window)?;
        let Some(body) = window.strip_suffix(b"\n") else { return Ok(None) };
        let line = match body.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => body.get(at.saturating_add(1)..),
            None if start == 0 => Some(body),
            None if reach >= MAX_READ => return Ok(None),
            None => {
                reach = reach.saturating_mul(8);
                continue;
            }
        };
        return Ok(line.and_then(|line| str::from_utf8(line).ok()).map(str::to_owned));
    }
}

/// Has `known` take the lines of the log up to `end`: from where it is, if that is in this log, else from the beginning of its first
/// segment.
pub(super) fn go_through(mut log: &File, segments: &Segments, known: &mut OpenUpTo, end: &Anchor) -> io::Result<()> {
    if follows(log, &known.at.head)? {
        known.at.bytes = 0;
    }
    let is_here = known.at.bytes <= end.bytes && check_anchored(log, &known.at).is_ok();
    if !is_here || known.at.head.seq == 0 {
        *known = OpenUpTo::default();
        // One that can't be told begins with its first line.
        let begin = segment::begins_after(log)?.unwrap_or(Head::EMPTY);
        segments.go_through(begin.seq.saturating_add(1), &mut known.open)?;
        known.at.head = begin;
    }
    log.seek(SeekFrom::Start(known.at.bytes))?;
    let mut lines = BufReader::new(log.take(end.bytes.saturating_sub(known.at.bytes)));
    let mut seq = known.at.head.seq;
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        seq = seq.saturating_add(1);
        known.open.line(seq, str::from_utf8(&line).unwrap_or_default());
        line.clear();
    }
    known.at = *end;
    Ok(())
}

/// What stands at `at`, up to one byte more than `length`.
pub(super) fn read_at(mut log: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    log.seek(SeekFrom::Start(at))?;
    let mut found = Vec::new();
    log.take((length as u64).saturating_add(1)).read_to_end(&mut found)?;
    Ok(found)
}

/// The head after `torn`, when it is a whole line that only lacks its line break.
pub(super) fn complete(head: &Head, torn: &[u8]) -> Option<Head> {
    head.verify(str::from_utf8(torn).ok()?).ok()
}
