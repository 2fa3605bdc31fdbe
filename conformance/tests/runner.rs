//! The runner: verdicts, baselines, faults of the harness, reports.
#![cfg(test)]

use std::time::Duration;

use callgate_conformance::baseline::Baseline;
use callgate_conformance::library::Library;
use callgate_conformance::model::Model;
use callgate_conformance::process::{DEFAULT_PATIENCE, Process};
use callgate_conformance::report::{human, json, junit, scores};
use callgate_conformance::run::{Counts, Report, Runner, Verdict};
use callgate_conformance::subject::{Subject, SubjectFault};
use callgate_conformance::subjects::{NAMES, Steps, named};
use callgate_conformance::vector::Level;
use callgate_conformance::wrong::{Twist, Wrong};
use quick_junit::{NonSuccessKind, TestCaseStatus};
use serde_json::json as value;

fn library() -> Library {
    Library::built_in().unwrap()
}

fn run(runner: &Runner, subject: &mut dyn Subject, filter: &str) -> Report {
    let (all, some) = (library(), library().matching(filter));
    runner.run(subject, some.vectors(), all.vectors(), |_, _| ())
}

fn baseline(entries: &serde_json::Value) -> Baseline {
    Baseline::read(&value!({"format": 1, "expected": entries}).to_string()).unwrap()
}

#[test]
fn a_known_failure_is_expected_and_a_stale_entry_fails() {
    let mut wrong = Wrong::new(Twist::TokenReusable);
    let all = run(&Runner::new(), &mut wrong, "");
    let failed: serde_json::Map<_, _> = all
        .judged
        .iter()
        .filter(|one| matches!(one.verdict, Verdict::Failed(_)))
        .map(|one| (one.id.clone(), value!("it is wrong on purpose")))
        .collect();
    assert!(!failed.is_empty() && !all.holds());

    let knowing = Runner::new().knowing(baseline(&failed.clone().into()));
    let report = run(&knowing, &mut wrong, "");
    assert!(report.holds(), "{}", human(&report));
    assert_eq!((report.counts().failed, report.counts().expected), (0, failed.len()));

    // It was mended: every entry is stale. Of vectors that were left out nothing is known.
    let report = run(&knowing, &mut Model::new(), "");
    assert!(!report.holds());
    assert_eq!(report.stale.len(), failed.len());
    let report = run(&knowing, &mut Model::new(), "order-plain");
    assert!(report.holds() && report.stale.is_empty());

    let gone = baseline(&value!({"no-such-vector": "it was renamed"}));
    let report = run(&Runner::new().knowing(gone), &mut Model::new(), "order-plain");
    assert_eq!(report.stale, ["no-such-vector"]);
    assert!(!report.holds());
}

#[test]
fn a_baseline_gives_reasons() {
    for text in [
        r#"{"format":1,"expected":{"a":" "}}"#,
        r#"{"format":2,"expected":{}}"#,
        r#"{"expected":{}}"#,
        r#"{"format":1,"expected":{},"x":1}"#,
    ] {
        assert!(Baseline::read(text).is_err(), "{text}");
    }
}

#[test]
fn nothing_judged_is_nothing_held() {
    let report = run(&Runner::new(), &mut Model::new(), "no vector is called so");
    assert_eq!(report.counts(), Counts::default());
    assert!(!report.holds());
}

#[test]
fn what_does_not_apply_is_apart_from_failures() {
    let report = run(&Runner::new(), &mut Steps::new(), "event-planned");
    assert_eq!(report.counts(), Counts { not_applicable: 1, ..Counts::default() });
    assert!(human(&report).contains("the subject lacks listen"));
    assert!(scores(&report).values().all(|score| score.judged == 0));
}

#[test]
fn a_vector_that_need_not_pass_fails_no_run() {
    let vectors: Vec<_> = library().matching("kill-").vectors().to_vec();
    assert!(vectors.iter().all(|vector| vector.level == Level::Should));
    let report = Runner::new().run(&mut Wrong::new(Twist::TokenReusable), &vectors, &vectors, |_, _| ());
    assert_eq!((report.counts().lenient, report.counts().failed), (1, 0));
    assert!(report.holds());
}

fn shell(script: &str, patience: Duration) -> Result<Process, SubjectFault> {
    Process::start("sh", ["-c", script], patience)
}

#[test]
fn a_subject_that_cannot_be_started_or_does_not_speak_is_no_failed_gate() {
    let none = Process::start("no-such-program-anywhere", [""; 0], DEFAULT_PATIENCE);
    assert!(matches!(none, Err(SubjectFault::Start(_))), "{none:?}");
    let garbage = shell("read line; echo hello", DEFAULT_PATIENCE);
    assert!(matches!(garbage, Err(SubjectFault::Protocol(_))), "{garbage:?}");
    let unknown = shell(r#"read line; echo '{"ready":{},"more":1}'"#, DEFAULT_PATIENCE);
    assert!(matches!(unknown, Err(SubjectFault::Protocol(_))), "{unknown:?}");
    let gone = shell("exit 0", DEFAULT_PATIENCE);
    assert!(matches!(gone, Err(SubjectFault::Ended(_))), "{gone:?}");
    let silent = shell("while read line; do :; done", Duration::from_millis(20));
    assert!(matches!(silent, Err(SubjectFault::TimedOut(20))), "{silent:?}");
    let other = shell(r#"read line; echo '{"error":"no"}'"#, DEFAULT_PATIENCE);
    assert!(matches!(other, Err(SubjectFault::GaveUp(_))), "{other:?}");
}

/// It greets, and ends at the first world: it is started again for each vector, and none of them has failed.
#[test]
fn a_subject_that_ends_is_started_again() {
    let declaration = serde_json::to_string(Model::new().declaration()).unwrap();
    let script = format!("read line; echo '{{\"declare\":{declaration}}}'; read line; exit 3");
    let mut subject = shell(&script, DEFAULT_PATIENCE).unwrap();
    let report = run(&Runner::new(), &mut subject, "order-");
    assert_eq!(report.counts(), Counts { errored: report.judged.len(), ..Counts::default() });
    assert!(report.judged.len() > 3 && !report.holds());
}

#[test]
fn every_subject_has_its_name() {
    for name in NAMES {
        assert!(named(name).is_some(), "{name}");
    }
    for twist in Twist::ALL {
        assert!(named(&format!("wrong:{}", twist.as_str())).is_some());
    }
    assert!(named("wrong:").is_none() && named("other").is_none());
}

#[test]
fn reports_say_the_same() {
    let report = run(&Runner::new().seeded(3), &mut Wrong::new(Twist::TokenReusable), "");
    let counts = report.counts();
    let (text, object) = (human(&report), json(&report));
    assert!(text.contains(&format!("{} passed, {} failed", counts.passed, counts.failed)), "{text}");
    assert!(text.contains("FAILED: token-single-use (A5 A1"), "{text}");
    assert_eq!(object["counts"]["failed"], counts.failed);
    assert_eq!((&object["seed"], &object["holds"]), (&value!(3), &value!(false)));
    assert_eq!(object["vectors"].as_array().unwrap().len(), report.judged.len());

    let document = quick_junit::Report::deserialize_from_str(&junit(&report).unwrap()).unwrap();
    let cases: Vec<_> = document.test_suites.iter().flat_map(|suite| &suite.test_cases).collect();
    assert_eq!(cases.len(), report.judged.len());
    let failures = cases
        .iter()
        .filter(|case| matches!(case.status, TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. }));
    assert_eq!(failures.count(), counts.failed);
}
