//! Verification of a log: line by line, all of it, whatever is found on the way.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use callgate_core::audit::chain::{ChainError, Head};
use serde::Deserialize;

use super::anchor::{self, Anchored};
use super::jsonl::anchor_path;
use super::{line, tail};
use crate::private_file::{self, FileError};

/// How many problems, and how many calls without an end, a report names; it counts the rest.
const MAX_NAMED: usize = 1_000;
/// How many intents are kept at once while their terminal records are looked for.
const MAX_OPEN: usize = 1_000_000;

/// What is wrong with a log, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The line, from 1. For what concerns the log as a whole, its last line.
    pub line: u64,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// What can be wrong with a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The line does not follow the one before it, or was changed.
    Chain(ChainError),
    /// The line is longer than any that is written.
    TooLong,
    /// The line is in its place in the chain, and its content is no record.
    Unreadable,
    /// The line is of a version that this program does not know (invariant N6).
    UnknownVersion(u64),
    /// The last line has no end: it was being written when its writer was killed, or the log was cut off.
    Torn {
        /// How many bytes of it there are.
        bytes: u64,
    },
    /// There are fewer lines than were recorded: the log was cut off.
    Truncated {
        /// How many were recorded.
        anchored: u64,
    },
    /// The line is not the one that was recorded under its number: the log was written anew.
    Forked,
    /// There is no anchor to compare with, so a log that was cut off would not show.
    NoAnchor,
    /// The anchor cannot be read.
    DamagedAnchor,
    /// What was recorded ends before the first line that is here: nobody can compare.
    Overwritten {
        /// How many lines were recorded.
        anchored: u64,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match self.kind {
            ProblemKind::Chain(error) => write!(f, "{error}"),
            ProblemKind::TooLong => f.write_str("the line is longer than any that is ever written"),
            ProblemKind::Unreadable => f.write_str("the line is no record"),
            ProblemKind::UnknownVersion(version) => {
                write!(f, "the record has version {version}, which this program does not know")
            }
            ProblemKind::Torn { bytes } => write!(f, "the line was never finished; there are {bytes} bytes of it"),
            ProblemKind::Truncated { anchored } => {
                write!(f, "{anchored} lines were recorded, and the log ends here: it was cut off")
            }
            ProblemKind::Forked => f.write_str("this is not the line that was recorded here: the log was written anew"),
            ProblemKind::NoAnchor => f.write_str(
                "there is no .head file to compare with, so nobody can say whether lines are missing at the end",
            ),
            ProblemKind::DamagedAnchor => f.write_str("the .head file cannot be read"),
            ProblemKind::Overwritten { anchored } => {
                write!(f, "the head is that of {anchored} lines, and this excerpt begins behind them")
            }
        }
    }
}

/// A call whose tool was about to start, and of whose end the log says nothing: a process was killed, or lines are missing.
/// Whether it took effect is unknown (invariant J4).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OpenIntent {
    /// The line of the intent, or of the acceptance, from 1.
    pub line: u64,
    /// The call.
    pub request_id: String,
    /// Its tool.
    pub tool: String,
}

/// What was found in a log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Report {
    /// How many lines there are, a torn one included.
    pub lines: u64,
    /// The end of the chain, as far as it holds: compare it with a copy that is kept elsewhere.
    pub head: Head,
    /// How many lines stand behind the anchored one. Beyond those of a writer that was killed, nobody vouches for them.
    pub beyond_anchor: u64,
    /// How many lines are intents.
    pub intents: u64,
    /// How many are terminal records.
    pub terminals: u64,
    /// How many are records of runs that went on in the background and are over.
    pub completions: u64,
    /// How many are decisions of approvers about pending calls, those included that did not count.
    pub decisions: u64,
    /// How many tell of calls that ended after they had been given up.
    pub late: u64,
    /// How many are notes of the log itself.
    pub notes: u64,
    /// The first thousand problems, in order.
    pub problems: Vec<Problem>,
    /// How many problems there are.
    pub problem_count: u64,
    /// The first thousand intents without a terminal record, and accepted calls without a completion. Those of calls that run
    /// right now are among them.
    pub open_intents: Vec<OpenIntent>,
    /// How many there are.
    pub open_intent_count: u64,
}

impl Report {
    /// Whether nothing is wrong with the log. Intents without a terminal record are no fault of the log.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        self.problem_count == 0
    }

    /// The first line that something is wrong with.
    #[must_use]
    pub fn first_broken(&self) -> Option<u64> {
        self.problems.iter().map(|problem| problem.line).min()
    }
}

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

/// Verifies the log at `path` against the `.head` file beside it, under a lock, so that a log that is being written to
/// is seen between two records. With `kept`, against that head instead: one that was copied elsewhere before.
///
/// # Errors
/// A file cannot be read. What is wrong with the content is no error but in the report.
pub fn verify_file(path: &Path, kept: Option<Head>) -> Result<Report, FileError> {
    verify_file_after(path, Head::EMPTY, kept)
}

/// Verifies the file at `path` as [`verify_file`] does, as an excerpt that begins behind the line of `after`: the dump of an
/// [`AuditRing`](callgate_core::fixed::AuditRing), or what is left of a log whose older lines were put aside.
///
/// # Errors
/// As [`verify_file`].
pub fn verify_file_after(path: &Path, after: Head, kept: Option<Head>) -> Result<Report, FileError> {
    // Whoever may read the files may verify them, be it a copy that belongs to somebody else.
    let log = File::open(path).map_err(FileError::io(path, "open"))?;
    private_file::lock_shared(&log, path, Duration::from_secs(5))?;
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
    // What is appended from here on is not looked at.
    let length = log.metadata().map_err(FileError::io(path, "look at"))?.len();
    log.unlock().map_err(FileError::io(path, "let go of"))?;
    verify_after(&mut BufReader::new(Read::take(log, length)), after, against).map_err(FileError::io(path, "read"))
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
    let mut verifier = Verifier::new(after, against);
    loop {
        let mut line = Vec::new();
        let read = log.take(tail::MAX_READ).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(verifier.finish());
        }
        match line.strip_suffix(b"\n") {
            Some(line) => verifier.line(line),
            None if (read as u64) < tail::MAX_READ => verifier.torn(read as u64),
            None => {
                verifier.too_long();
                skip_line(log)?;
            }
        }
    }
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
}

/// What is read of any version.
#[derive(Deserialize)]
struct AnyVersion {
    v: u64,
}

impl Verifier {
    fn new(after: Head, against: Against) -> Self {
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
            },
            head: after,
            against,
            met: matches!(against, Against::Head(anchored) if anchored.seq <= after.seq),
            open: HashMap::new(),
            open_lines: 0,
        };
        match against {
            Against::Head(Head { seq, hash }) if seq == after.seq && seq > 0 && hash != after.hash => {
                verifier.problem(ProblemKind::Forked);
            }
            Against::Head(Head { seq, .. }) if seq < after.seq => {
                verifier.problem(ProblemKind::Overwritten { anchored: seq });
            }
            _ => {}
        }
        verifier
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
            "note" => report.notes = report.notes.saturating_add(1),
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
