//! The gate without a heap holds what applies to it, and answers what it can't do.
#![cfg(test)]

use std::ops::ControlFlow;

use callgate_conformance::feature::Feature;
use callgate_conformance::library::Library;
use callgate_conformance::process::{DEFAULT_PATIENCE, Process};
use callgate_conformance::random::Random;
use callgate_conformance::report::human;
use callgate_conformance::run::{Lacking, Runner, Verdict};

/// Listeners, batches, explanations, results of any size and worlds that are looked through belong to hosts with drivers, nothing here
/// outlives a restart, texts are not kept, and neither are the results of operations.
const LACKS: [Feature; 12] = [
    Feature::Listen,
    Feature::Events,
    Feature::Kill,
    Feature::KillWithin,
    Feature::Batch,
    Feature::Inspect,
    Feature::OutputCap,
    Feature::WallClock,
    Feature::Admission,
    Feature::Display,
    Feature::Reasons,
    Feature::Operations,
];

fn started() -> Process {
    let none: [&str; 0] = [];
    Process::start(env!("CARGO_BIN_EXE_bare-subject"), none, DEFAULT_PATIENCE).expect("it starts")
}

/// N1: the vectors that do not apply are those of what this subject says that it can't do.
#[test]
fn n1_every_vector_that_applies_holds() {
    let library = Library::built_in().expect("vectors");
    let report = Runner::new().seeded(7).run(&mut started(), library.vectors(), library.vectors(), |_, _| ());
    let counts = report.counts();
    assert!(report.holds() && counts.lenient == 0, "{}", human(&report));
    assert!(counts.passed > 110, "{}", human(&report));
    for judged in &report.judged {
        let Verdict::NotApplicable(lacking) = &judged.verdict else { continue };
        let known = match lacking {
            Lacking::Features(features) => features.iter().all(|feature| LACKS.contains(feature)),
            Lacking::Said(why) => ["nothing here can panic", "too large", "too long", "nests deeper", "more "]
                .iter()
                .any(|known| why.contains(known)),
        };
        assert!(known, "{} does not apply: {lacking:?}", judged.id);
    }
}

/// N2: scripts of chance, as far as they fit, come to what they come to at the model.
#[test]
fn n2_scripts_of_chance_come_to_what_the_model_says() {
    let hunted = Random::new(7, 200).hunt(&mut started(), |_, _| ControlFlow::Continue(()));
    assert!(hunted.chance.found.is_none(), "{:#?}", hunted.judged);
    let chance = hunted.chance;
    assert!(chance.compared() > 100, "{chance:?}");
}
