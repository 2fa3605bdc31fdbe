//! What the verification of a log finds.

use std::fmt;
use std::path::PathBuf;

use callgate_core::audit::chain::{ChainError, Head};

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
    /// The log begins behind this line, and no record of it says that what was before was removed.
    Missing {
        /// How many lines are not here.
        up_to: u64,
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
            ProblemKind::Missing { up_to } => {
                write!(f, "the log begins behind line {up_to}, and no record says that what was before was removed")
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
    /// The end of what was before the first line that is here, where the log itself says that it was removed.
    pub removed: Option<Head>,
    /// The file of each part of the log, and how many lines are before it: the segments, and the log itself last. Empty where it was
    /// verified as one text.
    pub parts: Vec<(PathBuf, u64)>,
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
