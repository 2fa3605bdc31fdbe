//! Every fuzz body holds on its corpus and near it, with an ordinary compiler. `CALLGATE_FUZZ_MUTATIONS` says how many inputs near
//! it are tried for each target; `ci/fuzz` tries more than a plain test run does.
#![cfg(test)]

use std::path::Path;

use callgate_conformance::fuzz::TARGETS;
use callgate_conformance::fuzz::replay::replay;

/// How many inputs near the corpus are tried where nobody says.
const MUTATIONS: usize = 200;

fn holds(name: &str) {
    let mutations =
        std::env::var("CALLGATE_FUZZ_MUTATIONS").map_or(MUTATIONS, |count| count.parse().expect("a number"));
    let target = TARGETS.iter().find(|target| target.0 == name).expect("it is one of the targets");
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(name);
    let replayed = replay(*target, &seeds, mutations).unwrap_or_else(|error| panic!("{error}"));
    assert!(replayed.inputs > 3, "a corpus of {}", replayed.inputs);
}

macro_rules! targets {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            holds(stringify!($name));
        })+

        const REPLAYED: &[&str] = &[$(stringify!($name)),+];
    };
}

targets!(
    reader,
    readers,
    schema_admission,
    schema_agreement,
    digest,
    redacted_text,
    redacted_arguments,
    state_files,
    audit_log,
    step,
    wire,
);

/// A body that no program hands anything is never fuzzed.
#[test]
fn every_body_is_replayed_and_has_its_program() {
    let bodies: Vec<&str> = TARGETS.iter().map(|target| target.0).collect();
    assert_eq!(REPLAYED, bodies);
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/fuzz_targets");
    let mut found: Vec<String> = std::fs::read_dir(programs)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    found.sort();
    // The body of `config` is in the command.
    let mut expected: Vec<&str> = bodies.into_iter().chain(["config"]).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
