//! A report for people and for machines.

mod human;
mod json;
mod junit;

use std::collections::BTreeMap;

use crate::run::{Report, Verdict};
use crate::vector::RuleNumber;

pub use human::human;
pub use json::json;
pub use junit::junit;

/// How a rule fared: of the vectors that hold it and could be judged, how many passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Score {
    /// Passed.
    pub passed: usize,
    /// Passed or failed, in the baseline or not.
    pub judged: usize,
}

/// The score of every rule that a vector of this run holds.
#[must_use]
pub fn scores(report: &Report) -> BTreeMap<RuleNumber, Score> {
    let mut scores: BTreeMap<RuleNumber, Score> = BTreeMap::new();
    for judged in &report.judged {
        let (passed, counts) = match judged.verdict {
            Verdict::Passed => (1, 1),
            Verdict::Failed(_) | Verdict::Expected { .. } => (0, 1),
            Verdict::NotApplicable(_) | Verdict::Errored(_) => (0, 0),
        };
        for rule in &judged.rules {
            let score = scores.entry(rule.clone()).or_default();
            score.passed = score.passed.saturating_add(passed);
            score.judged = score.judged.saturating_add(counts);
        }
    }
    scores
}

/// A verdict in a word.
const fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed(_) => "failed",
        Verdict::Expected { .. } => "expected",
        Verdict::NotApplicable(_) => "not_applicable",
        Verdict::Errored(_) => "errored",
    }
}

/// Why a vector does not apply, as a text.
fn lacking(lacking: &crate::run::Lacking) -> String {
    match lacking {
        crate::run::Lacking::Features(features) => {
            let names: Vec<_> = features.iter().map(|feature| feature.as_str()).collect();
            format!("the subject lacks {}", names.join(", "))
        }
        crate::run::Lacking::Said(why) => why.clone(),
    }
}
