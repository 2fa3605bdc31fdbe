//! Scripts of chance at a subject, with the model for an oracle.

use std::ops::ControlFlow;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::agree::{Apart, compare};
use super::fitted::fitted;
use super::scripts::script;
use super::shrink::shrink;
use crate::compare::Mismatch;
use crate::event::{Outcome, Seen};
use crate::model::Model;
use crate::play::Play;
use crate::run::{Judged, Verdict, judge};
use crate::subject::{Subject, SubjectFault};
use crate::vector::{Act, Expect, ExpectedMark, ExpectedOutcome, Vector};

/// How often a subject that could not be judged is tried again with the next script before it is given up.
const MOST_FAULTS: usize = 3;

/// What scripts of chance came to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Chance {
    /// What they were drawn from.
    pub seed: u64,
    /// How many were to be run.
    pub wanted: usize,
    /// How many were run at the subject.
    pub run: usize,
    /// How many of them the subject can't be put into.
    pub not_applicable: usize,
    /// The smallest script at which the subject differs from the model, as a vector that holds what the model shows.
    pub found: Option<Box<Vector>>,
}

impl Chance {
    /// How many scripts the subject and the model were compared at.
    #[must_use]
    pub const fn compared(&self) -> usize {
        self.run.saturating_sub(self.not_applicable)
    }
}

/// What a hunt came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Hunted {
    /// How many scripts were run.
    pub chance: Chance,
    /// What the vector that was found came to, or that the subject could not be judged.
    pub judged: Option<Judged>,
}

/// Runs scripts of chance. The same seed draws the same scripts.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    seed: u64,
    scripts: usize,
}

impl Random {
    /// So many scripts, drawn from this seed.
    #[must_use]
    pub const fn new(seed: u64, scripts: usize) -> Self {
        Self { seed, scripts }
    }

    /// Runs them at `subject` up to the first at which it differs from the model, and makes that one as small as it can. `progress` is
    /// told how many scripts were run and how often one was tried to be made smaller, and says whether to go on.
    pub fn hunt(&self, subject: &mut dyn Subject, mut progress: impl FnMut(usize, usize) -> ControlFlow<()>) -> Hunted {
        let supports = subject.declaration().supports.clone();
        let mut bytes = [0; 32];
        bytes.iter_mut().zip(self.seed.to_le_bytes()).for_each(|(byte, seed)| *byte = seed);
        let config = Config { failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        let mut chance = Chance { seed: self.seed, wanted: self.scripts, ..Chance::default() };
        let mut faults = 0_usize;
        while chance.run < self.scripts && progress(chance.run, 0).is_continue() {
            let Ok(mut tree) = script().new_tree(&mut runner) else { break };
            chance.run = chance.run.saturating_add(1);
            let mut drawn = fitted(tree.current(), &supports);
            let compared = loop {
                match self.compared(&drawn, subject) {
                    // What can't happen there is left out, and the rest is compared.
                    Err(Apart::NotApplicable { step: Some(step), .. }) if drawn.script.len() > 1 => {
                        drop(drawn.script.remove(step));
                    }
                    compared => break compared,
                }
            };
            match compared {
                Ok(()) => {}
                Err(Apart::NotApplicable { .. }) => chance.not_applicable = chance.not_applicable.saturating_add(1),
                // Of the one that somebody asked to stop in nothing is known.
                Err(Apart::Faulty(SubjectFault::Stopped)) => {
                    chance.run = chance.run.saturating_sub(1);
                    break;
                }
                Err(Apart::Faulty(fault)) => {
                    faults = faults.saturating_add(1);
                    if faults >= MOST_FAULTS {
                        let vector = self.expecting(drawn, chance.run);
                        let judged = Some(judged(&vector, Verdict::Errored(fault.to_string())));
                        return Hunted { chance, judged };
                    }
                }
                Err(Apart::Differ { .. }) => {
                    let mut tried = 0_usize;
                    let mut stopped = false;
                    let mut differs = |vector: &Vector| {
                        tried = tried.saturating_add(1);
                        stopped = stopped || progress(chance.run, tried).is_break();
                        !stopped
                            && replaces_what_is_there(vector)
                            && matches!(self.compared(vector, subject), Err(Apart::Differ { .. }))
                    };
                    let mut smallest = drawn;
                    let mut more = tree.simplify();
                    while more {
                        let candidate = fitted(tree.current(), &supports);
                        more = if differs(&candidate) {
                            smallest = candidate;
                            tree.simplify()
                        } else {
                            tree.complicate()
                        };
                    }
                    let smallest = shrink(smallest, differs);
                    let vector = self.expecting(smallest, chance.run);
                    let verdict = self.verdict(&vector, subject);
                    let judged = Some(judged(&vector, verdict));
                    chance.found = Some(Box::new(vector));
                    return Hunted { chance, judged };
                }
            }
        }
        Hunted { chance, judged: None }
    }

    fn compared(&self, vector: &Vector, subject: &mut dyn Subject) -> Result<(), Apart> {
        compare(vector, &mut Model::new(), subject, self.seed)
    }

    /// What the subject shows at the vector; where that is not among what a vector can hold, what told it from the model.
    fn verdict(&self, vector: &Vector, subject: &mut dyn Subject) -> Verdict {
        let declaration = subject.declaration().clone();
        match judge(subject, &declaration, vector, self.seed) {
            Verdict::Passed => match self.compared(vector, subject) {
                Err(Apart::Differ { step, one, other, .. }) => Verdict::Failed(vec![Mismatch {
                    step: Some(step),
                    what: "what is seen".to_owned(),
                    expected: one,
                    seen: other,
                }]),
                _ => Verdict::Errored("the subject differed from the model, and then no more".to_owned()),
            },
            verdict => verdict,
        }
    }

    /// The script as a vector: what must be seen is what the model shows.
    fn expecting(&self, mut vector: Vector, number: usize) -> Vector {
        vector.id = format!("random-{}-{number}", self.seed);
        vector.reason = "The model, written from the papers, does this; a script of chance came to it.".to_owned();
        let mut model = Model::new();
        if model.begin(&vector.world, self.seed).is_err() {
            return vector;
        }
        let mut play = Play::new(&vector);
        let mut script = Vec::with_capacity(vector.script.len());
        for (at, mut step) in vector.script.drain(..).enumerate() {
            match play.next(at, &step.act) {
                // It came to nothing, and no vector may hold such a step.
                Err(_) => continue,
                Ok(None) => {}
                Ok(Some(event)) => {
                    let Ok(seen) = model.event(&event) else { continue };
                    play.came_to(&event, &seen);
                    step.expect = match step.act {
                        Act::Batch(_) => expected_of_batch(&seen),
                        _ => expected(&seen, matches!(step.act, Act::Call(_) | Act::Redeem(_))),
                    };
                }
            }
            script.push(step);
        }
        vector.script = script;
        vector
    }
}

/// A vector may replace only tools that are there.
fn replaces_what_is_there(vector: &Vector) -> bool {
    let there = |name: &str| vector.world.tools.iter().any(|tool| tool.name == name);
    vector.script.iter().all(|step| !matches!(&step.act, Act::Define(tool) if !there(&tool.name)))
}

fn judged(vector: &Vector, verdict: Verdict) -> Judged {
    let Vector { id, reason, rules, level, profile, .. } = vector.clone();
    Judged { id, reason, rules, level, profile, verdict }
}

/// What a vector holds of what the model showed.
fn expected(seen: &Seen, of_call: bool) -> Expect {
    let marks = seen.marks.iter().map(|mark| ExpectedMark::Mark(mark.clone())).collect();
    Expect {
        outcome: seen.outcome.as_ref().map(expected_outcome),
        killed: seen.killed,
        effects: of_call.then_some(seen.effects),
        decided: seen.decided,
        transcript: of_call.then_some(marks),
        records: of_call.then(|| seen.records.iter().map(expected_record).collect()),
        ..Expect::default()
    }
}

fn expected_of_batch(seen: &Seen) -> Expect {
    Expect {
        outcomes: Some(seen.outcomes.iter().map(expected_outcome).collect()),
        effects: Some(seen.effects),
        records: Some(seen.records.iter().map(expected_record).collect()),
        ..Expect::default()
    }
}

fn expected_outcome(outcome: &Outcome) -> ExpectedOutcome {
    let text = |name: &str| outcome.meta_text(name).map(str::to_owned);
    let asks = outcome.data.get("confirm_token").is_some();
    let data = match outcome.data.get("plan") {
        _ if asks || outcome.data.is_null() => None,
        Some(plan) => Some(
            json!({"plan": {"tool": plan.get("tool"), "mutating": plan.get("mutating"), "args": plan.get("args")}}),
        ),
        None => Some(outcome.data.clone()),
    };
    ExpectedOutcome {
        success: outcome.success,
        code: text("code"),
        effect: text("effect"),
        kind: text("type"),
        data,
        ..ExpectedOutcome::default()
    }
}

/// The members that are compared. The papers leave open whether arguments that do not fit are recorded.
fn expected_record(record: &Value) -> Value {
    let names = ["kind", "request_id", "tool", "channel", "principal", "code", "effect", "confirmed_by"];
    names
        .into_iter()
        .map(|name| (name.to_owned(), record.get(name).cloned().unwrap_or_default()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
