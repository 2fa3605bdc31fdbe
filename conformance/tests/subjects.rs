//! The vectors at the subjects of this workspace: each of them holds all that applies to it, in this process and over the wire.
#![cfg(test)]

use std::collections::BTreeSet;

use callgate_conformance::baseline::Baseline;
use callgate_conformance::feature::Feature;
use callgate_conformance::library::Library;
use callgate_conformance::model::Model;
use callgate_conformance::process::{DEFAULT_PATIENCE, Process};
use callgate_conformance::report::human;
use callgate_conformance::run::{Lacking, Report, Runner, Verdict};
use callgate_conformance::subject::{Subject, SubjectFault};
use callgate_conformance::subjects::{Blocking, Durable, Linear, Smol, Steps, Tokio, named};
use callgate_conformance::wrong::{Twist, Wrong};

fn library() -> Library {
    Library::built_in().unwrap()
}

fn run(subject: &mut dyn Subject) -> Report {
    let library = library();
    Runner::new().seeded(7).run(subject, library.vectors(), library.vectors(), |_, _| ())
}

/// Holds everything but what needs one of these.
fn holds(subject: &mut dyn Subject, without: &[Feature]) {
    let report = run(subject);
    assert!(report.holds() && report.counts().lenient == 0, "{}", human(&report));
    let lacking: BTreeSet<_> = Feature::ALL.iter().filter(|one| !report.declaration.supports.contains(one)).collect();
    assert_eq!(lacking, without.iter().collect());
    for one in &report.judged {
        match &one.verdict {
            Verdict::NotApplicable(Lacking::Features(_)) | Verdict::Passed => {}
            other => panic!("{}: {other:?}", one.id),
        }
    }
}

/// What the model and the gate in Python leave out: words, and what surrounds a gate.
const NOT_MODELLED: [Feature; 7] = [
    Feature::Events,
    Feature::OutputCap,
    Feature::Reasons,
    Feature::Display,
    Feature::Inspect,
    Feature::Admission,
    Feature::Operations,
];

/// What belongs to hosts that have drivers.
const OF_DRIVERS: [Feature; 5] =
    [Feature::Listen, Feature::Events, Feature::OutputCap, Feature::Inspect, Feature::Operations];

#[test]
fn the_model_holds_every_vector() {
    holds(&mut Model::new(), &NOT_MODELLED);
}

#[test]
fn the_blocking_gate_holds_every_vector() {
    holds(&mut Blocking::new(), &[]);
}

#[test]
fn n1_the_core_step_by_step_holds_every_vector_but_those_of_drivers() {
    holds(&mut Steps::new(), &OF_DRIVERS);
}

#[test]
fn n1_the_core_stage_after_stage_holds_every_vector_but_those_of_drivers() {
    holds(&mut Linear::new(), &OF_DRIVERS);
}

#[test]
fn n1_the_async_gate_on_tokio_holds_every_vector() {
    holds(&mut Tokio::new().unwrap(), &[Feature::Inspect]);
}

#[test]
fn n1_the_async_gate_on_smol_holds_every_vector() {
    holds(&mut Smol::new(), &[Feature::Inspect]);
}

#[test]
fn over_the_wire_nothing_changes() {
    for name in ["blocking", "steps", "tokio"] {
        let mut local = named(name).unwrap();
        let mut remote = Process::start(env!("CARGO_BIN_EXE_gate-subject"), [name], DEFAULT_PATIENCE).unwrap();
        assert_eq!(run(&mut remote), run(&mut *local), "{name}");
    }
}

/// The same seed gives the same run, token by token.
#[test]
fn a_seed_repeats_a_run() {
    let tokens = |seed| {
        let library = library().matching("order-ask");
        let vector = &library.vectors()[0];
        let mut gate = Blocking::new();
        gate.begin(&vector.world, seed).unwrap();
        let mut play = callgate_conformance::play::Play::new(vector);
        let Some(event) = play.next(0, &vector.script[0].act).unwrap() else {
            panic!("it begins with a call");
        };
        gate.event(&event).unwrap().outcome.unwrap().data_text("confirm_token").unwrap().to_owned()
    };
    assert_eq!(tokens(1), tokens(1));
    assert_ne!(tokens(1), tokens(2));
}

/// A vector that fails tells all that is wrong with it, not only the first thing.
#[test]
fn all_failures_are_told() {
    let library = library().matching("token-single-use");
    let mut subject = Wrong::new(Twist::TokenReusable);
    let declaration = subject.declaration().clone();
    let verdict = callgate_conformance::run::judge(&mut subject, &declaration, &library.vectors()[0], 0);
    let Verdict::Failed(mismatches) = verdict else { panic!("{verdict:?}") };
    let steps: BTreeSet<_> = mismatches.iter().map(|mismatch| mismatch.step).collect();
    assert_eq!(steps.len(), 2, "{mismatches:?}");
}

/// What files do not do: go on with what waits, when the clock on the wall was set back by more than a few seconds.
const GIVEN_UP: &str = "clock-back-lengthens-nothing";

/// Really killed, at each point and between calls, and started again with the files that are left. `CALLGATE_KILL=all` runs all
/// vectors, each in a process of its own, and not only those that kill or set the clock back.
#[test]
fn the_blocking_gate_with_files_holds_its_vectors_though_it_is_killed() {
    let expected = serde_json::json!({"format": 1, "expected": {GIVEN_UP: "a file gives up what waits (decision 15)"}});
    let baseline = Baseline::read(&expected.to_string()).unwrap();
    let all = library();
    let of_interest = [Feature::Kill, Feature::KillWithin, Feature::WallClock];
    let everything = std::env::var_os("CALLGATE_KILL").is_some_and(|which| which == "all");
    let some: Vec<_> = all
        .vectors()
        .iter()
        .filter(|vector| everything || of_interest.iter().any(|feature| vector.needs().contains(feature)))
        // Its files keep no operations.
        .filter(|vector| !vector.needs().contains(&Feature::Operations))
        .cloned()
        .collect();
    assert!(some.len() > 25);
    let mut subject = Durable::new(env!("CARGO_BIN_EXE_gate-subject"), ["durable"]);
    let report = Runner::new().seeded(7).knowing(baseline).run(&mut subject, &some, all.vectors(), |_, _| ());
    let counts = report.counts();
    assert!(report.holds() && counts.lenient == 0 && counts.not_applicable == 0, "{}", human(&report));
    assert_eq!(counts.expected, 1);
}

/// A small adapter, written from the protocol's page alone, in a third language.
#[test]
fn the_gate_in_javascript_holds_every_vector_that_applies_to_it() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects/node/subject.mjs");
    match Process::start("node", [script], DEFAULT_PATIENCE) {
        Ok(mut node) => {
            let report = run(&mut node);
            let counts = report.counts();
            assert!(report.holds() && counts.lenient == 0, "{}", human(&report));
            assert!(counts.passed >= 140, "{counts:?}");
        }
        Err(SubjectFault::Start(why)) => println!("not judged, because there is no node: {why}"),
        Err(fault) => panic!("{fault}"),
    }
}

/// The independent subject, written from the protocol and the papers in another language.
#[test]
fn the_gate_in_python_holds_every_vector() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects/python/subject.py");
    match Process::start("python3", [script], DEFAULT_PATIENCE) {
        Ok(mut python) => holds(&mut python, &NOT_MODELLED),
        Err(SubjectFault::Start(why)) => println!("not judged, because there is no python3: {why}"),
        Err(fault) => panic!("{fault}"),
    }
}
