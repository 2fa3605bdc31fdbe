//! The suite is tested: each subject that is wrong on purpose fails, and only for its reason.
#![cfg(test)]

use callgate_conformance::library::Library;
use callgate_conformance::model::{Model, Twist};
use callgate_conformance::run::{Runner, Verdict};

#[test]
fn every_wrong_subject_is_found_and_only_for_its_reason() {
    let library = Library::built_in().unwrap();
    let mut problems = Vec::new();
    for twist in Twist::ALL {
        let mut subject = Model::twisted(*twist);
        let report = Runner::new().run(&mut subject, library.vectors(), library.vectors(), |_, _| ());
        let failed: Vec<_> = report.judged.iter().filter(|one| matches!(one.verdict, Verdict::Failed(_))).collect();
        if failed.is_empty() {
            problems.push(format!("{} is not found", twist.as_str()));
        }
        for one in failed {
            let holds: Vec<_> = one.rules.iter().map(ToString::to_string).collect();
            if !holds.iter().any(|rule| twist.breaks().contains(&rule.as_str())) {
                problems.push(format!("{} fails {}, which holds {holds:?}: {:?}", twist.as_str(), one.id, one.verdict));
            }
        }
        assert!(!report.judged.iter().any(|one| matches!(one.verdict, Verdict::Errored(_))), "{}", twist.as_str());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
