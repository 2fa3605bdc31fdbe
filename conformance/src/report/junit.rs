//! The report for continuous integration.

use quick_junit::{NonSuccessKind, Report as Document, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::lacking;
use crate::run::{Report, Verdict};
use crate::vector::Level;

/// The report as `JUnit` XML: a suite for each profile, a case for each vector. What does not apply, what failed as expected, and what
/// need not pass counts as skipped; what could not be judged as an error; a stale entry of the baseline as a failure.
///
/// # Errors
/// The document could not be written.
pub fn junit(report: &Report) -> Result<String, SerializeError> {
    let mut document = Document::new(format!("callgate-conformance: {}", report.declaration.name));
    for profile in ["ordering", "seed", "hardened"] {
        let mut suite = TestSuite::new(profile);
        for judged in report.judged.iter().filter(|judged| judged.profile.as_str() == profile) {
            let mut case = TestCase::new(judged.id.as_str(), status(judged.level, &judged.verdict));
            let rules: Vec<_> = judged.rules.iter().map(ToString::to_string).collect();
            case.set_classname(rules.join("."));
            suite.add_test_case(case);
        }
        if suite.tests > 0 {
            document.add_test_suite(suite);
        }
    }
    if let Some(chance) = &report.chance {
        let mut suite = TestSuite::new("random");
        let status = match &chance.found {
            None => TestCaseStatus::success(),
            Some(vector) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status
                    .set_message(format!("the subject differs from the model at script {}: {}", chance.run, vector.id));
                status
            }
        };
        let name = format!("{} of {} scripts of chance, seed {}", chance.run, chance.wanted, chance.seed);
        suite.add_test_case(TestCase::new(name, status));
        document.add_test_suite(suite);
    }
    if report.is_cut_short() {
        let mut suite = TestSuite::new("run");
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(format!("stopped before everything was run; {} vectors are left", report.not_run));
        suite.add_test_case(TestCase::new("to its end", status));
        document.add_test_suite(suite);
    }
    if !report.stale.is_empty() {
        let mut suite = TestSuite::new("baseline");
        for id in &report.stale {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message("the baseline says that it fails, and it passes or is not there");
            suite.add_test_case(TestCase::new(id.as_str(), status));
        }
        document.add_test_suite(suite);
    }
    document.to_string()
}

fn status(level: Level, verdict: &Verdict) -> TestCaseStatus {
    let (mut status, message) = match verdict {
        Verdict::Passed => return TestCaseStatus::success(),
        Verdict::Failed(mismatches) => {
            let lines: Vec<_> = mismatches.iter().map(ToString::to_string).collect();
            let status = match level {
                Level::Must => TestCaseStatus::non_success(NonSuccessKind::Failure),
                Level::Should | Level::May => TestCaseStatus::skipped(),
            };
            (status, lines.join("\n"))
        }
        Verdict::Expected { reason, .. } => (TestCaseStatus::skipped(), format!("expected to fail: {reason}")),
        Verdict::NotApplicable(why) => (TestCaseStatus::skipped(), lacking(why)),
        Verdict::Errored(why) => (TestCaseStatus::non_success(NonSuccessKind::Error), why.clone()),
    };
    status.set_message(message);
    status
}
