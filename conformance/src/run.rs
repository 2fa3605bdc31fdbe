//! The runner: every vector at a subject, and every failure of each.

use std::collections::BTreeSet;

use crate::baseline::Baseline;
use crate::compare::{Mismatch, compare, leaks};
use crate::feature::Feature;
use crate::play::{CannotGoOn, Play};
use crate::random::{Chance, Hunted};
use crate::stop::Stop;
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::vector::{Admission, Level, Profile, RuleNumber, Vector};

/// What one vector came to at a subject.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever reports must know every kind")]
pub enum Verdict {
    /// Everything was seen as it must be.
    Passed,
    /// Something was otherwise.
    Failed(Vec<Mismatch>),
    /// Something was otherwise, as the baseline says, for this reason.
    Expected {
        /// What was otherwise.
        mismatches: Vec<Mismatch>,
        /// Why that is known.
        reason: String,
    },
    /// The subject can't do what the vector needs.
    NotApplicable(Lacking),
    /// The subject could not be judged.
    Errored(String),
}

/// Why a vector does not apply.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever reports must know every kind")]
pub enum Lacking {
    /// The subject lacks this.
    Features(BTreeSet<Feature>),
    /// The subject says so itself.
    Said(String),
}

/// A vector and what it came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// The id of the vector.
    pub id: String,
    /// Why it must be so.
    pub reason: String,
    /// The rules that it holds.
    pub rules: Vec<RuleNumber>,
    /// How binding it is.
    pub level: Level,
    /// Its set.
    pub profile: Profile,
    /// What it came to.
    pub verdict: Verdict,
}

/// What a run came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The subject.
    pub declaration: Declaration,
    /// What its randomness came from.
    pub seed: u64,
    /// Every vector, in the order in which they were run.
    pub judged: Vec<Judged>,
    /// How many vectors were not run, because somebody asked to stop.
    pub not_run: usize,
    /// What scripts of chance came to, if there were any. The one at which the subject differs is among `judged`, too.
    pub chance: Option<Chance>,
    /// Entries of the baseline whose vectors passed, or are not there (any more).
    pub stale: Vec<String>,
}

/// How many of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Passed.
    pub passed: usize,
    /// Failed, and must not.
    pub failed: usize,
    /// Failed, and should not, or may.
    pub lenient: usize,
    /// Failed as the baseline says.
    pub expected: usize,
    /// Do not apply.
    pub not_applicable: usize,
    /// Could not be judged.
    pub errored: usize,
}

impl Report {
    /// How many of each kind.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for judged in &self.judged {
            let count = match (&judged.verdict, judged.level) {
                (Verdict::Passed, _) => &mut counts.passed,
                (Verdict::Failed(_), Level::Must) => &mut counts.failed,
                (Verdict::Failed(_), Level::Should | Level::May) => &mut counts.lenient,
                (Verdict::Expected { .. }, _) => &mut counts.expected,
                (Verdict::NotApplicable(_), _) => &mut counts.not_applicable,
                (Verdict::Errored(_), _) => &mut counts.errored,
            };
            *count = count.saturating_add(1);
        }
        counts
    }

    /// Whether the subject holds what it was judged by: nothing failed that must not and is not in the baseline, everything was run
    /// and could be judged, something was, and the baseline is not stale.
    #[must_use]
    pub fn holds(&self) -> bool {
        let counts = self.counts();
        let by_chance = self.chance.as_ref().map_or(0, Chance::compared);
        let judged = counts.passed.saturating_add(counts.expected).saturating_add(by_chance) > 0;
        judged && counts.failed == 0 && counts.errored == 0 && self.stale.is_empty() && !self.is_cut_short()
    }

    /// Whether it ended before everything was run that was to be, because somebody asked to stop.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        let scripts = self.chance.as_ref().is_some_and(|chance| chance.run < chance.wanted && chance.found.is_none());
        self.not_run > 0 || scripts && self.counts().errored == 0
    }

    /// The report of scripts of chance alone.
    #[must_use]
    pub fn of_chance(declaration: Declaration, hunted: Hunted) -> Self {
        let Hunted { chance, judged } = hunted;
        let seed = chance.seed;
        let judged = judged.into_iter().collect();
        Self { declaration, seed, judged, not_run: 0, chance: Some(chance), stale: Vec::new() }
    }
}

/// Runs vectors at a subject.
#[derive(Clone, Debug, Default)]
pub struct Runner {
    seed: u64,
    baseline: Baseline,
    stop: Stop,
}

impl Runner {
    /// A runner with the seed 0 and an empty baseline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a seed for the randomness of subjects that can be told. The same seed gives the same run.
    #[must_use]
    pub const fn seeded(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The same with failures that are known.
    #[must_use]
    pub fn knowing(mut self, baseline: Baseline) -> Self {
        self.baseline = baseline;
        self
    }

    /// The same, up to the vector in which somebody asks to stop. What is known until then is reported.
    #[must_use]
    pub fn until(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Runs these vectors, all of them whatever comes of each. `progress` is told of each when it is over, with how many there are.
    ///
    /// `all` is how the baseline is judged: an entry is stale if its vector passed, or is not among these.
    pub fn run(
        &self,
        subject: &mut dyn Subject,
        vectors: &[Vector],
        all: &[Vector],
        mut progress: impl FnMut(&Judged, usize),
    ) -> Report {
        let declaration = subject.declaration().clone();
        let mut judged = Vec::with_capacity(vectors.len());
        for vector in vectors {
            let verdict = match judge(subject, &declaration, vector, self.seed) {
                Verdict::Failed(mismatches) => match self.baseline.reason(&vector.id) {
                    Some(reason) => Verdict::Expected { mismatches, reason: reason.to_owned() },
                    None => Verdict::Failed(mismatches),
                },
                // Nobody knows what it would have come to.
                Verdict::Errored(_) if self.stop.asked() => break,
                verdict => verdict,
            };
            let Vector { id, reason, rules, level, profile, .. } = vector.clone();
            let one = Judged { id, reason, rules, level, profile, verdict };
            progress(&one, vectors.len());
            judged.push(one);
            if self.stop.asked() {
                break;
            }
        }
        let stale = self.baseline.stale(&judged, all);
        let not_run = vectors.len().saturating_sub(judged.len());
        Report { declaration, seed: self.seed, judged, not_run, chance: None, stale }
    }
}

/// Runs one vector at a subject.
pub fn judge(subject: &mut dyn Subject, declaration: &Declaration, vector: &Vector, seed: u64) -> Verdict {
    let lacking: BTreeSet<Feature> = vector.needs().difference(&declaration.supports).copied().collect();
    if !lacking.is_empty() {
        return Verdict::NotApplicable(Lacking::Features(lacking));
    }
    match follow(subject, declaration, vector, seed) {
        Ok(()) => Verdict::Passed,
        Err(Halt::Failed(mismatches)) => Verdict::Failed(mismatches),
        Err(Halt::Said(why)) => Verdict::NotApplicable(Lacking::Said(why)),
        Err(Halt::Errored(why)) => Verdict::Errored(why),
    }
}

enum Halt {
    Failed(Vec<Mismatch>),
    Said(String),
    Errored(String),
}

impl From<SubjectFault> for Halt {
    fn from(fault: SubjectFault) -> Self {
        match fault {
            SubjectFault::Unsupported(why) => Self::Said(why),
            fault => Self::Errored(fault.to_string()),
        }
    }
}

fn follow(subject: &mut dyn Subject, of: &Declaration, vector: &Vector, seed: u64) -> Result<(), Halt> {
    match (subject.begin(&vector.world, seed)?, vector.admission) {
        (Begun::Unsupported(why), _) => return Err(Halt::Said(why)),
        (Begun::Ready, None) => {}
        (Begun::Refused(_), Some(Admission::Refused)) => return Ok(()),
        (Begun::Refused(why), None) => return Err(Halt::Failed(vec![admission("taken", &format!("refused: {why}"))])),
        (Begun::Ready, Some(Admission::Refused)) => return Err(Halt::Failed(vec![admission("refused", "taken")])),
    }
    let mut play = Play::new(vector);
    let mut found = Vec::new();
    for (at, step) in vector.script.iter().enumerate() {
        let event = match play.next(at, &step.act) {
            Ok(Some(event)) => event,
            Ok(None) => continue,
            Err(stop) if stop.is_of_the_subject() => {
                found.push(cannot_go_on(at, &stop));
                break;
            }
            Err(wrong) => return Err(Halt::Errored(wrong.to_string())),
        };
        let seen = subject.event(&event)?;
        play.came_to(&event, &seen);
        compare(at, &step.expect, &seen, &of.compares, &mut found);
        leaks(at, vector, &seen, &mut found);
    }
    if found.is_empty() { Ok(()) } else { Err(Halt::Failed(found)) }
}

fn admission(expected: &str, seen: &str) -> Mismatch {
    Mismatch { step: None, what: "the world".to_owned(), expected: expected.to_owned(), seen: seen.to_owned() }
}

fn cannot_go_on(step: usize, why: &CannotGoOn) -> Mismatch {
    let (expected, seen) = ("possible".to_owned(), why.to_string());
    Mismatch { step: Some(step), what: "the step".to_owned(), expected, seen }
}
