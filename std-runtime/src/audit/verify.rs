//! Verification of a log: line by line, all of it, whatever is found on the way.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_core::audit::chain::{ChainError, Head};
use serde::Deserialize;

use super::anchor::{self, Anchored};
use super::jsonl::{MOST_MOVES, anchor_path};
use super::report::{OpenIntent, Problem, ProblemKind, Report};
use super::segment::{self, SegmentLines, Segments};
use super::{disk, line, tail};
use crate::private_file::{self, FileError};

/// How many problems, and how many calls without an end, a report names; it counts the rest.
const MAX_NAMED: usize = 1_000;
/// How many intents are kept at once while their terminal records are looked for.
const MAX_OPEN: usize = 1_000_000;

/// What a log is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever verifies has an anchor, a broken one, or none")]
pub enum Against {
    /// The head that was recorded, from the `.head` file or from a copy that is kept elsewhere.
    Head(Head),
    /// An anchor that cannot be read.
    Damaged,
    /// Nothing.
    Nothing,
}

/// What a log is verified against.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Expected {
    /// A head that was copied elsewhere before, instead of the one that stands beside the log.
    pub kept: Option<Head>,
    /// A head that the log has to hold in any case: that of its last checkpoint.
    pub checkpoint: Option<Head>,
}

impl Expected {
    /// The head beside the log, or `kept` instead of it; and that of a checkpoint.
    #[must_use]
    pub const fn new(kept: Option<Head>, checkpoint: Option<Head>) -> Self {
        Self { kept, checkpoint }
    }
}

/// Verifies the log at `path` with its segments against the `.head` file beside it, under a lock, so that a log that is being written to
/// is seen between two records. With `kept`, against that head instead: one that was copied elsewhere before.
///
/// # Errors
/// A file cannot be read. What is wrong with the content is no error but in the report.
pub fn verify_file(path: &Path, kept: Option<Head>) -> Result<Report, FileError> {
    verify_log(path, Expected::new(kept, None))
}

/// The same, against whatever is expected.
///
/// # Errors
/// As [`verify_file`].
pub fn verify_log(path: &Path, expected: Expected) -> Result<Report, FileError> {
    let io = |error| FileError::io(path, "read")(error);
    loop {
        let (log, against) = open_log(path, expected.kept)?;
        // One that can't be told begins with its first line.
        let begin = segment::begins_after(&log).map_err(io)?.unwrap_or(Head::EMPTY);
        let before = || Segments::of(path).before(begin.seq.saturating_add(1)).map_err(io);
        let segments = before()?;
        let length = log.metadata().map_err(FileError::io(path, "look at"))?.len();
        log.unlock().map_err(FileError::io(path, "let go of"))?;
        let mut live = &log;
        live.rewind().map_err(io)?;
        let mut parts: Vec<(PathBuf, Box<dyn BufRead>)> = Vec::new();
        for segment in segments.iter().cloned() {
            parts.push((segment.path.clone(), Box::new(SegmentLines::of(vec![segment]))));
        }
        parts.push((path.to_owned(), Box::new(BufReader::new(Read::take(live, length)))));
        let report = verify_parts(parts, against, expected.checkpoint);
        // One that was removed before it was its turn could not be looked at.
        if report.is_ok() || before()? == segments {
            return report.map_err(io);
        }
    }
}

/// Verifies the parts of a log, segments and the log itself, each with its file, in order. It may begin behind its first line, if one of
/// its records says that what was before was removed.
///
/// # Errors
/// A part cannot be read.
pub fn verify_parts(
    parts: Vec<(PathBuf, Box<dyn BufRead + '_>)>,
    against: Against,
    checkpoint: Option<Head>,
) -> io::Result<Report> {
    let mut verifier = Verifier::new(Head::EMPTY, against, checkpoint);
    verifier.may_begin_later = true;
    for (path, mut part) in parts {
        let before = verifier.report.lines;
        verifier.report.parts.push((path, before));
        verifier.read(&mut *part)?;
        verifier.ends.push(verifier.head);
    }
    Ok(verifier.finish())
}

/// Verifies the file at `path` as [`verify_file`] does, as an excerpt that begins behind the line of `after`: the dump of an
/// [`AuditRing`](callgate_core::fixed::AuditRing), or what is left of a log whose older lines were put aside.
///
/// # Errors
/// As [`verify_file`].
pub fn verify_file_after(path: &Path, after: Head, expected: Expected) -> Result<Report, FileError> {
    let (log, against) = open_log(path, expected.kept)?;
    // What is appended from here on is not looked at.
    let length = log.metadata().map_err(FileError::io(path, "look at"))?.len();
    log.unlock().map_err(FileError::io(path, "let go of"))?;
    let mut verifier = Verifier::new(after, against, expected.checkpoint);
    verifier.read(&mut BufReader::new(Read::take(log, length))).map_err(FileError::io(path, "read"))?;
    Ok(verifier.finish())
}

/// The log, locked so that nobody writes to it, and what it is compared with.
fn open_log(path: &Path, kept: Option<Head>) -> Result<(File, Against), FileError> {
    // Whoever may read the files may verify them, be it a copy that belongs to somebody else.
    let locked = || {
        let log = File::open(path).map_err(FileError::io(path, "open"))?;
        private_file::lock_shared(&log, path, Duration::from_secs(5)).map(|()| log)
    };
    let mut log = locked()?;
    for _ in 0..MOST_MOVES {
        // One that was put aside before it was locked does not end where the anchor says.
        if disk::is_same(&log, fs::metadata(path)) {
            break;
        }
        log = locked()?;
    }
    let anchor_path = anchor_path(path);
    let against = match kept {
        Some(head) => Against::Head(head),
        None => match File::open(&anchor_path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Against::Nothing,
            Err(error) => return Err(FileError::io(&anchor_path, "open")(error)),
            Ok(file) => match anchor::read(&file).map_err(FileError::io(&anchor_path, "read"))? {
                Anchored::At(anchor, _) => Against::Head(anchor.head),
                Anchored::Blank => Against::Head(Head::EMPTY),
                Anchored::Damaged => Against::Damaged,
            },
        },
    };
    Ok((log, against))
}

/// Verifies a log, in as much memory as its longest line and the calls that are open at once take.
///
/// # Errors
/// Those of `log`.
pub fn verify(log: &mut dyn BufRead, against: Against) -> io::Result<Report> {
    verify_after(log, Head::EMPTY, against)
}

/// Verifies an excerpt of a log that begins behind the line of `after`.
///
/// # Errors
/// Those of `log`.
pub fn verify_after(log: &mut dyn BufRead, after: Head, against: Against) -> io::Result<Report> {
    let mut verifier = Verifier::new(after, against, None);
    verifier.read(log)?;
    Ok(verifier.finish())
}

/// Passes over the rest of a line.
fn skip_line(log: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let buffer = log.fill_buf()?;
        let length = buffer.len();
        if length == 0 {
            return Ok(());
        }
        if let Some(at) = buffer.iter().position(|byte| *byte == b'\n') {
            log.consume(at.saturating_add(1));
            return Ok(());
        }
        log.consume(length);
    }
}

struct Verifier {
    report: Report,
    /// Where the chain goes on.
    head: Head,
    against: Against,
    /// Whether the anchored line was met.
    met: bool,
    /// The head of a checkpoint that was not met yet.
    checkpoint: Option<Head>,
    /// Whether the first line may be another than the first of the chain.
    may_begin_later: bool,
    /// The head behind which it then begins.
    begin: Option<Head>,
    /// The ends of what records say to have been removed.
    removed: Vec<Head>,
    /// The ends of the parts.
    ends: Vec<Head>,
    /// Calls whose intent was met and whose terminal record was not: the lines of the intents.
    open: HashMap<(String, String), Vec<u64>>,
    open_lines: usize,
}

/// What is read of a line's content.
#[derive(Deserialize)]
struct Content<'a> {
    v: u64,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    request_id: Cow<'a, str>,
    #[serde(borrow, default)]
    tool: Cow<'a, str>,
    #[serde(borrow, default)]
    end: Cow<'a, str>,
    #[serde(borrow, default)]
    note: Cow<'a, str>,
    #[serde(borrow, default)]
    up_to_seq: Cow<'a, str>,
    #[serde(borrow, default)]
    up_to_hash: Cow<'a, str>,
}

/// What is read of any version.
#[derive(Deserialize)]
struct AnyVersion {
    v: u64,
}

impl Verifier {
    fn new(after: Head, against: Against, checkpoint: Option<Head>) -> Self {
        let mut verifier = Self {
            report: Report {
                lines: 0,
                head: after,
                beyond_anchor: 0,
                intents: 0,
                terminals: 0,
                completions: 0,
                decisions: 0,
                late: 0,
                notes: 0,
                problems: Vec::new(),
                problem_count: 0,
                open_intents: Vec::new(),
                open_intent_count: 0,
                removed: None,
                parts: Vec::new(),
            },
            checkpoint: checkpoint.filter(|head| head.seq > after.seq),
            may_begin_later: false,
            begin: None,
            removed: Vec::new(),
            ends: Vec::new(),
            head: after,
            against,
            met: matches!(against, Against::Head(anchored) if anchored.seq <= after.seq),
            open: HashMap::new(),
            open_lines: 0,
        };
        if let Against::Head(head) = against {
            verifier.compare_begin(head, after);
        }
        if let Some(head) = checkpoint {
            verifier.compare_begin(head, after);
        }
        verifier
    }

    /// Compares a head that the log has to hold with the one behind which it begins.
    fn compare_begin(&mut self, head: Head, after: Head) {
        if head.seq == after.seq && head.seq > 0 && head.hash != after.hash {
            self.problem(ProblemKind::Forked);
        } else if head.seq < after.seq {
            self.problem(ProblemKind::Overwritten { anchored: head.seq });
        }
    }

    fn read(&mut self, log: &mut dyn BufRead) -> io::Result<()> {
        loop {
            let mut line = Vec::new();
            let read = log.take(tail::MAX_READ).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            match line.strip_suffix(b"\n") {
                Some(line) => self.line(line),
                None if (read as u64) < tail::MAX_READ => self.torn(read as u64),
                None => {
                    self.too_long();
                    skip_line(log)?;
                }
            }
        }
    }

    /// The log begins with this line, which may be another than the first of the chain.
    fn first_line(&mut self, text: &str) {
        let Some(begin) = line::before(text).filter(|begin| begin.seq > 0) else { return };
        (self.head, self.begin) = (begin, Some(begin));
        // A checkpoint of what was removed is met by what says so; the head beside the log is never one.
        if let Against::Head(anchored) = self.against
            && anchored.seq <= begin.seq
        {
            self.met = true;
            self.compare_begin(anchored, begin);
        }
        if let Some(checkpoint) = self.checkpoint
            && checkpoint.seq <= begin.seq
        {
            self.checkpoint = None;
            self.compare_begin(checkpoint, begin);
        }
    }

    fn problem(&mut self, kind: ProblemKind) {
        if self.report.problems.len() < MAX_NAMED {
            self.report.problems.push(Problem { line: self.report.lines, kind });
        }
        self.report.problem_count = self.report.problem_count.saturating_add(1);
    }

    fn line(&mut self, line: &[u8]) {
        self.report.lines = self.report.lines.saturating_add(1);
        let Ok(text) = str::from_utf8(line) else {
            return self.problem(ProblemKind::Chain(ChainError::NotALine));
        };
        if self.report.lines == 1 && self.may_begin_later {
            self.first_line(text);
        }
        match self.head.verify(text) {
            Ok(head) => self.head = head,
            Err(error) => {
                self.problem(ProblemKind::Chain(error));
                // What follows is compared with what this line says of itself, so that one fault is told once.
                match line::said(text) {
                    Some(head) => self.head = head,
                    None => return,
                }
            }
        }
        if let Against::Head(anchored) = self.against {
            if self.met {
                self.report.beyond_anchor = self.report.beyond_anchor.saturating_add(1);
            } else if self.head.seq == anchored.seq {
                self.met = true;
                if self.head.hash != anchored.hash {
                    self.problem(ProblemKind::Forked);
                }
            }
        }
        if let Some(checkpoint) = self.checkpoint
            && self.head.seq == checkpoint.seq
        {
            self.checkpoint = None;
            if self.head.hash != checkpoint.hash {
                self.problem(ProblemKind::Forked);
            }
        }
        self.content(text);
    }

    fn content(&mut self, text: &str) {
        let content: Content<'_> = match serde_json::from_str(text) {
            Ok(content) => content,
            Err(_) => {
                return self.problem(match serde_json::from_str(text) {
                    Ok(AnyVersion { v }) if v != line::VERSION => ProblemKind::UnknownVersion(v),
                    _ => ProblemKind::Unreadable,
                });
            }
        };
        if content.v != line::VERSION {
            return self.problem(ProblemKind::UnknownVersion(content.v));
        }
        let report = &mut self.report;
        let call = (content.request_id.into_owned(), content.tool.into_owned());
        match &*content.kind {
            "intent" => {
                report.intents = report.intents.saturating_add(1);
                self.opened(call);
            }
            "terminal" => {
                report.terminals = report.terminals.saturating_add(1);
                self.closed(&call);
                // Its tool goes on: what it did is open until its completion is met.
                if content.end == "accepted" {
                    self.opened(call);
                }
            }
            "completion" => {
                report.completions = report.completions.saturating_add(1);
                self.closed(&call);
            }
            // What a call did that was given up before: its end is recorded already.
            "late" => report.late = report.late.saturating_add(1),
            "decision" => report.decisions = report.decisions.saturating_add(1),
            "note" => {
                report.notes = report.notes.saturating_add(1);
                if content.note == segment::REMOVED
                    && let (Ok(seq), Ok(hash)) = (content.up_to_seq.parse(), content.up_to_hash.parse())
                {
                    self.removed.push(Head { seq, hash });
                }
            }
            _ => self.problem(ProblemKind::Unreadable),
        }
    }

    fn opened(&mut self, call: (String, String)) {
        self.report.open_intent_count = self.report.open_intent_count.saturating_add(1);
        if self.open_lines < MAX_OPEN {
            self.open_lines = self.open_lines.saturating_add(1);
            self.open.entry(call).or_default().push(self.report.lines);
        }
    }

    fn closed(&mut self, call: &(String, String)) {
        if let Some(lines) = self.open.get_mut(call) {
            lines.pop();
            if lines.is_empty() {
                self.open.remove(call);
            }
            self.open_lines = self.open_lines.saturating_sub(1);
            self.report.open_intent_count = self.report.open_intent_count.saturating_sub(1);
        }
    }

    fn too_long(&mut self) {
        self.report.lines = self.report.lines.saturating_add(1);
        self.problem(ProblemKind::TooLong);
    }

    fn torn(&mut self, bytes: u64) {
        self.report.lines = self.report.lines.saturating_add(1);
        self.problem(ProblemKind::Torn { bytes });
    }

    fn finish(mut self) -> Report {
        match self.against {
            Against::Head(anchored) if !self.met => self.problem(ProblemKind::Truncated { anchored: anchored.seq }),
            Against::Head(_) => {}
            Against::Damaged => self.problem(ProblemKind::DamagedAnchor),
            Against::Nothing => self.problem(ProblemKind::NoAnchor),
        }
        if let Some(checkpoint) = self.checkpoint {
            self.problem(ProblemKind::Truncated { anchored: checkpoint.seq });
        }
        if let Some(begin) = self.begin {
            // Of several segments that were to be removed, some may be here still.
            if self.removed.iter().any(|removed| *removed == begin || self.ends.contains(removed)) {
                self.report.removed = Some(begin);
            } else {
                let missing = Problem { line: 1, kind: ProblemKind::Missing { up_to: begin.seq } };
                self.report.problems.insert(0, missing);
                self.report.problems.truncate(MAX_NAMED);
                self.report.problem_count = self.report.problem_count.saturating_add(1);
            }
        }
        self.report.head = self.head;
        let open = self.open.into_iter().flat_map(|((request_id, tool), lines)| {
            lines.into_iter().map(move |line| OpenIntent { line, request_id: request_id.clone(), tool: tool.clone() })
        });
        self.report.open_intents = open.collect();
        self.report.open_intents.sort_unstable_by_key(|intent| intent.line);
        self.report.open_intents.truncate(MAX_NAMED);
        self.report
    }
}
