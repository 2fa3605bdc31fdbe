//! The model against the gates, over worlds and scripts that nobody thought of: outcome, order, effects, decisions and records.
#![cfg(test)]

use std::cell::RefCell;

use callgate_conformance::model::{Model, Twist};
use callgate_conformance::play::Play;
use callgate_conformance::process::{DEFAULT_PATIENCE, Process};
use callgate_conformance::random::{self, script};
use callgate_conformance::subject::{Subject, SubjectFault};
use callgate_conformance::subjects::{Blocking, Linear, Smol, Steps, Tokio};
use callgate_conformance::vector::Vector;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use serde_json::json;

/// What scripts are to come to, all together.
const NAMES: &[&str] = &[
    "success",
    "VALIDATION_ERROR",
    "TOOL_NOT_FOUND",
    "FORBIDDEN",
    "RATE_LIMITED",
    "CONFIRMATION_INVALID",
    "APPROVAL_PENDING",
    "APPROVAL_DENIED",
    "NO_APPROVER",
    "VETOED",
    "OUTPUT_INVALID",
    "AUDIT_UNAVAILABLE",
    "STORE_UNAVAILABLE",
    "INTERNAL_ERROR",
    "TIMEOUT",
    "self",
    "approver",
    "decided: true",
    "decided: false",
    "authorize",
    "charge",
    "issue",
    "redeem",
    "intercept",
    "intent",
    "execute",
    "record",
];

fn compare(vector: &Vector, one: &mut dyn Subject, other: &mut dyn Subject) -> Result<(), String> {
    random::compare(vector, one, other, 5).map_err(|apart| apart.to_string())
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

#[test]
fn n1_the_core_stage_after_stage_does_what_it_does_step_by_step() {
    all_agree(SCRIPTS, Steps::new(), Linear::new());
}

#[test]
fn n1_the_async_gate_on_tokio_does_what_the_blocking_gate_does() {
    all_agree(SCRIPTS, Blocking::new(), Tokio::new().unwrap());
}

#[test]
fn n1_the_async_gate_on_smol_does_what_it_does_on_tokio() {
    all_agree(SCRIPTS, Tokio::new().unwrap(), Smol::new());
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
            play.came_to(&event, &seen);
            reached.extend(seen.marks.iter().map(|mark| mark.at.to_string()));
            if let Some(outcome) = seen.outcome {
                reached.insert(outcome.meta_text("code").unwrap_or("success").to_owned());
                reached.extend(outcome.meta_text("confirmed_by").map(str::to_owned));
            }
            reached.extend(seen.decided.map(|decided| format!("decided: {decided}")));
        }
    }
    let missed: Vec<_> = NAMES.iter().filter(|name| !reached.contains(**name)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
