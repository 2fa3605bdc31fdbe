//! The model against the gates, over worlds and scripts that nobody thought of: outcome, order, effects, decisions and records.
#![cfg(test)]

mod statements;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use callgate_conformance::model::Model;
use callgate_conformance::play::Play;
use callgate_conformance::process::{DEFAULT_PATIENCE, Process};
use callgate_conformance::random::{self, script};
use callgate_conformance::subject::{Subject, SubjectFault};
use callgate_conformance::subjects::{Blocking, Durable, Linear, Smol, Steps, Tokio};
use callgate_conformance::vector::Vector;
use callgate_conformance::wrong::{Twist, Wrong};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use statements::Book;

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

/// Both do the same in scripts of what both can do.
fn all_agree(scripts: u32, mut one: impl Subject, mut other: impl Subject) {
    let supports = &one.declaration().supports & &other.declaration().supports;
    let (one, other) = (RefCell::new(&mut one), RefCell::new(&mut other));
    let agreed = runner(scripts).run(&script(), |vector| {
        let vector = random::fitted(vector, &supports);
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

/// Scripts that kill it, with `SIGKILL`, in the middle of calls: what its files hold is what the model keeps.
#[test]
fn j4_the_gate_with_files_does_what_the_model_does_though_it_is_killed() {
    all_agree(40, Model::new(), Durable::new(env!("CARGO_BIN_EXE_gate-subject"), ["durable"]));
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

#[test]
fn the_gate_in_javascript_does_what_the_model_does() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects/node/subject.mjs");
    match Process::start("node", [program], DEFAULT_PATIENCE) {
        Ok(node) => all_agree(SCRIPTS, Model::new(), node),
        Err(SubjectFault::Start(why)) => println!("not compared, because there is no node: {why}"),
        Err(fault) => panic!("{fault}"),
    }
}

/// What a script shows of a subject that breaks a statement.
fn follow(vector: &Vector, subject: &mut dyn Subject) -> Result<(), String> {
    subject.begin(&vector.world, 5).map_err(|fault| fault.to_string())?;
    let (mut play, mut book) = (Play::new(vector), Book::new(&vector.world));
    for (at, step) in vector.script.iter().enumerate() {
        let Ok(Some(event)) = play.next(at, &step.act) else { continue };
        let seen = subject.event(&event).map_err(|fault| fault.to_string())?;
        play.came_to(&event, &seen);
        let broken = book.broken(&event, &seen);
        if !broken.is_empty() {
            return Err(format!("step {at}: {broken:?} in {seen:?}"));
        }
    }
    Ok(())
}

/// The statements of the papers hold of what is shown, whatever another subject would have shown: see [`statements`].
#[test]
fn the_statements_hold_of_every_subject() {
    let subjects: [Box<dyn Subject>; 4] =
        [Box::new(Model::new()), Box::new(Blocking::new()), Box::new(Linear::new()), Box::new(Tokio::new().unwrap())];
    for subject in subjects {
        let subject = RefCell::new(subject);
        let held = runner(SCRIPTS).run(&script(), |vector| {
            let held = follow(&vector, &mut **subject.borrow_mut());
            prop_assert!(held.is_ok(), "{}\nin {}", held.unwrap_err(), show(&vector));
            Ok(())
        });
        if let Err(broken) = held {
            panic!("{}: {broken}", subject.borrow().declaration().name);
        }
    }
}

/// What scripts of chance do not find: nothing in them tells these from others.
const BEYOND_CHANCE: &[(Twist, &str)] = &[
    (Twist::FailureTold, "texts are not compared: each gate has words of its own"),
    (Twist::ClampSilent, "whether a clamp is told is not compared"),
    (Twist::SecretsInPlans, "worlds of chance have no secrets: each gate masks them by a word of its own"),
    (Twist::SecretsInVetoes, "worlds of chance have no secrets: each gate masks them by a word of its own"),
    (Twist::Rounds, "no number of a script of chance is so large that it would be rounded"),
    (Twist::ExpiryTold, "a gate that forgets what is over its time may tell it so"),
];

/// So many scripts in the ordinary run; what takes more is looked for by `CALLGATE_DETECT=1000`.
const ORDINARY: u32 = 150;

/// How many scripts it takes until one shows that a subject is wrong, and how long.
fn detected(most: u32, mut shows: impl FnMut(&Vector) -> bool) -> Option<(u32, Duration)> {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let (scripts, began) = (script(), Instant::now());
    let found = (1..=most).find(|_| shows(&scripts.new_tree(&mut runner).unwrap().current()));
    found.map(|scripts| (scripts, began.elapsed()))
}

/// Time to detection: how many scripts of chance it takes until the model tells a wrong subject from itself, and until a statement
/// does, without any model. `CALLGATE_DETECT=1000 cargo test -p callgate-conformance --test agreement -- --nocapture wrong` prints
/// the whole table; the ordinary run looks at what is found soon.
#[test]
fn scripts_of_chance_find_what_is_wrong() {
    let many: Option<u32> = std::env::var("CALLGATE_DETECT").ok().and_then(|many| many.parse().ok());
    let (mut missed, mut soon) = (Vec::new(), 0);
    let told = |found: Option<(u32, Duration)>| match found {
        Some((scripts, time)) => format!("{scripts:>5} scripts {:>7.2} s", time.as_secs_f64()),
        None => "    -                 ".to_owned(),
    };
    println!("{:<24} {:<24} by a statement", "", "by the model");
    for twist in Twist::ALL {
        let of_operations = twist.is_of_operations().then_some("scripts of chance have no operations");
        let told_why = BEYOND_CHANCE.iter().find(|(beyond, _)| beyond == twist).map(|(_, why)| *why);
        let beyond = told_why.or(of_operations);
        let most = if beyond.is_some() { 0 } else { many.unwrap_or(ORDINARY) };
        let (mut model, mut wrong) = (Model::new(), Wrong::new(*twist));
        let by_model = detected(most, |vector| compare(vector, &mut model, &mut wrong).is_err());
        let by_statement = match many {
            Some(most) if of_operations.is_none() => detected(most, |vector| follow(vector, &mut wrong).is_err()),
            _ => None,
        };
        match (by_model, beyond) {
            (Some(_), _) => soon += 1,
            (None, None) => missed.push(twist.as_str()),
            (None, Some(_)) => {}
        }
        let why = beyond.map_or_else(|| told(by_statement), str::to_owned);
        println!("{:<24} {} {why}", twist.as_str(), told(by_model));
    }
    println!("{soon} of {} are found", Twist::ALL.len());
    let least = if many.is_some() { 40 } else { 30 };
    assert!(soon >= least, "{soon}: {missed:?} are not found");
}

/// The scripts come to every code and every point, or they look at less than they say.
#[test]
fn the_scripts_lead_everywhere() {
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), seed);
    let mut reached = std::collections::BTreeSet::new();
    let scripts = script();
    for _ in 0..1_500 {
        let vector = scripts.new_tree(&mut runner).unwrap().current();
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
