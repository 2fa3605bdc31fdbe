//! The model against the gates, over worlds and scripts that nobody thought of: outcome, order, effects, decisions and records.
#![cfg(test)]

mod scripts;

use std::cell::RefCell;

use callgate_conformance::compare::fits;
use callgate_conformance::event::{Outcome, Seen};
use callgate_conformance::model::{Model, Twist};
use callgate_conformance::play::Play;
use callgate_conformance::process::{DEFAULT_PATIENCE, Process};
use callgate_conformance::subject::{Begun, Subject, SubjectFault};
use callgate_conformance::subjects::{Blocking, Steps};
use callgate_conformance::vector::{Act, Vector};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use serde_json::{Value, json};

use scripts::{names, script};

/// An outcome without what each subject words or draws for itself.
fn outcome(outcome: &Outcome) -> Value {
    let meta = |name: &str| outcome.meta.get(name).cloned().unwrap_or_default();
    let data = match (outcome.meta_text("type"), outcome.data.get("plan")) {
        (Some("confirmation"), _) => json!({"approval": outcome.data_text("approval_id").is_some()}),
        (_, Some(plan)) => json!({"plan": {"tool": plan["tool"], "mutating": plan["mutating"], "args": plan["args"]}}),
        _ => outcome.data.clone(),
    };
    let told: serde_json::Map<_, _> = ["code", "effect", "type", "confirmed_by", "audit_pending", "request_id", "tool"]
        .map(|name| (name.to_owned(), meta(name)))
        .into_iter()
        .collect();
    json!({"success": outcome.success, "data": data, "meta": told})
}

/// What was seen, likewise. Of the arguments in records only those that both show are compared: the papers leave open whether
/// arguments that do not fit are recorded.
fn seen(seen: &Seen, with_args: &[bool]) -> Value {
    let records = seen.records.iter().enumerate().map(|(at, record)| {
        let part = |name: &str| record.get(name).cloned().unwrap_or_default();
        let args = if with_args.get(at) == Some(&true) { part("args") } else { Value::Null };
        let names = ["kind", "request_id", "tool", "channel", "principal", "code", "effect", "confirmed_by"];
        json!({"args": args, "rest": names.map(part)})
    });
    let marks = serde_json::to_value(&seen.marks).unwrap();
    json!({
        "outcome": seen.outcome.as_ref().map(outcome), "decided": seen.decided, "marks": marks,
        "effects": seen.effects, "records": records.collect::<Vec<_>>(),
    })
}

/// Whether so much time passes in a script that a store may have forgotten a ticket whose time is over. What was denied is then told
/// as unknown: `PROTOCOL.md` leaves that open.
fn forgets(vector: &Vector) -> bool {
    let passed = vector.script.iter().map(|step| match step.act {
        Act::Advance(ms) => ms,
        // The most that interceptors and bodies take.
        Act::Call(_) | Act::Redeem(_) => 2_000,
        _ => 0,
    });
    passed.sum::<u64>() >= vector.world.ttl_ms()
}

fn agree(one: &Seen, other: &Seen, forgets: bool) -> Result<(), String> {
    let has_args = |seen: &Seen, at: usize| seen.records.get(at).is_some_and(|record| record.get("args").is_some());
    let both: Vec<bool> = (0..one.records.len()).map(|at| has_args(one, at) && has_args(other, at)).collect();
    let told = |shown: &Seen| match seen(shown, &both) {
        shown if forgets => {
            serde_json::from_str(&shown.to_string().replace("APPROVAL_DENIED", "CONFIRMATION_INVALID")).unwrap()
        }
        shown => shown,
    };
    let (one, other) = (told(one), told(other));
    // In both directions, because a pattern asks for at least its members.
    if fits(&one, &other) && fits(&other, &one) { Ok(()) } else { Err(format!("\n  {one}\nand\n  {other}")) }
}

/// Runs a script at two subjects side by side, up to the first difference.
fn compare(vector: &Vector, one: &mut dyn Subject, other: &mut dyn Subject) -> Result<(), String> {
    let begin = |subject: &mut dyn Subject| match subject.begin(&vector.world, 5) {
        Ok(Begun::Ready) => Ok(()),
        refused => Err(format!("{refused:?}")),
    };
    begin(one)?;
    begin(other)?;
    let (mut of_one, mut of_other) = (Play::new(vector), Play::new(vector));
    for (at, step) in vector.script.iter().enumerate() {
        let (first, second) = match (of_one.next(at, &step.act), of_other.next(at, &step.act)) {
            (Ok(Some(first)), Ok(Some(second))) => (first, second),
            (Ok(None), Ok(None)) => continue,
            // Neither was given anything to go on with: a step of chance that came to nothing.
            (Err(first), Err(second)) if first == second => continue,
            (first, second) => return Err(format!("step {at}: {first:?} and {second:?}")),
        };
        let tell = |subject: &mut dyn Subject, play: &mut Play, event| {
            let seen = subject.event(event).map_err(|fault| format!("step {at}: {fault}"))?;
            play.came_to(event, seen.outcome.as_ref());
            Ok::<_, String>(seen)
        };
        let seen_of_one = tell(one, &mut of_one, &first)?;
        let seen_of_other = tell(other, &mut of_other, &second)?;
        let agreed = agree(&seen_of_one, &seen_of_other, forgets(vector));
        agreed.map_err(|difference| format!("step {at}, {:?}: {difference}", step.act))?;
    }
    Ok(())
}

fn show(vector: &Vector) -> String {
    serde_json::to_string(&json!({"world": vector.world, "script": vector.script})).unwrap()
}

/// How many scripts are compared: `CALLGATE_SCRIPTS`, drawn anew each time, or this many that are always the same.
const SCRIPTS: u32 = 400;

fn runner(scripts: u32) -> TestRunner {
    let config = |cases| ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var("CALLGATE_SCRIPTS").ok().and_then(|many| many.parse().ok()) {
        Some(many) => TestRunner::new(config(many)),
        None => TestRunner::new_with_rng(config(scripts), TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    }
}

fn all_agree(scripts: u32, mut one: impl Subject, mut other: impl Subject) {
    let (one, other) = (RefCell::new(&mut one), RefCell::new(&mut other));
    let agreed = runner(scripts).run(&script(), |vector| {
        let agreed = compare(&vector, *one.borrow_mut(), *other.borrow_mut());
        prop_assert!(agreed.is_ok(), "{}\nin {}", agreed.unwrap_err(), show(&vector));
        Ok(())
    });
    if let Err(difference) = agreed {
        panic!("{difference}");
    }
}

#[test]
fn the_blocking_gate_does_what_the_model_does() {
    all_agree(SCRIPTS, Model::new(), Blocking::new());
}

#[test]
fn n1_the_core_step_by_step_does_what_the_blocking_gate_does() {
    all_agree(SCRIPTS, Blocking::new(), Steps::new());
}

/// Two readings of the same papers, in two languages.
#[test]
fn the_gate_in_python_does_what_the_model_does() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects/python/subject.py");
    match Process::start("python3", [program], DEFAULT_PATIENCE) {
        Ok(python) => all_agree(SCRIPTS, Model::new(), python),
        Err(SubjectFault::Start(why)) => println!("not compared, because there is no python3: {why}"),
        Err(fault) => panic!("{fault}"),
    }
}

/// Whether random scripts find the wrong subjects too: how many scripts it takes is printed.
#[test]
fn random_scripts_find_what_is_wrong() {
    let config =
        ProptestConfig { cases: 3_000, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() };
    let mut missed = Vec::new();
    // What a failed tool's text is, is not compared: each gate has words of its own.
    for twist in Twist::ALL.iter().filter(|twist| **twist != Twist::FailureTold) {
        let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config.clone(), seed);
        let tried = std::cell::Cell::new(0);
        let found = runner.run(&script(), |vector| {
            tried.set(tried.get() + 1);
            match compare(&vector, &mut Model::new(), &mut Model::twisted(*twist)) {
                Ok(()) => Ok(()),
                Err(difference) => Err(TestCaseError::fail(difference)),
            }
        });
        match found {
            Err(TestError::Fail(..)) => println!("{:<22} found by script {}", twist.as_str(), tried.get()),
            other => missed.push(format!("{}: {other:?}", twist.as_str())),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// The scripts come to every code and every point, or they look at less than they say.
#[test]
fn the_scripts_lead_everywhere() {
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), seed);
    let mut reached = std::collections::BTreeSet::new();
    for _ in 0..1_500 {
        let vector = script().new_tree(&mut runner).unwrap().current();
        let mut model = Model::new();
        model.begin(&vector.world, 0).unwrap();
        let mut play = Play::new(&vector);
        for (at, step) in vector.script.iter().enumerate() {
            let Ok(Some(event)) = play.next(at, &step.act) else { continue };
            let seen = model.event(&event).unwrap();
            play.came_to(&event, seen.outcome.as_ref());
            reached.extend(seen.marks.iter().map(|mark| mark.at.to_string()));
            if let Some(outcome) = seen.outcome {
                reached.insert(outcome.meta_text("code").unwrap_or("success").to_owned());
                reached.extend(outcome.meta_text("confirmed_by").map(str::to_owned));
            }
            reached.extend(seen.decided.map(|decided| format!("decided: {decided}")));
        }
    }
    let missed: Vec<_> = names().into_iter().filter(|name| !reached.contains(*name)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
