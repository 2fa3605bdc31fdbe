//! The suite is tested: each subject that is wrong on purpose is found, by the vectors that are listed in `found.txt` and by no
//! others, and each of them holds a rule that the subject breaks.
#![cfg(test)]

use std::fmt::Write as _;
use std::path::Path;

use callgate_conformance::library::Library;
use callgate_conformance::run::{Runner, Verdict};
use callgate_conformance::wrong::{Twist, Wrong};

/// Which vectors find which wrong subject. `CALLGATE_BLESS=1` writes it anew: read what changed before it is committed.
const FOUND: &str = include_str!("found.txt");

#[test]
fn every_wrong_subject_is_found_and_only_for_its_reason() {
    let library = Library::built_in().unwrap();
    let (mut problems, mut found) = (Vec::new(), String::new());
    for twist in Twist::ALL {
        let report = Runner::new().run(&mut Wrong::new(*twist), library.vectors(), library.vectors(), |_, _| ());
        let failed: Vec<_> = report.judged.iter().filter(|one| matches!(one.verdict, Verdict::Failed(_))).collect();
        if failed.is_empty() {
            problems.push(format!("{} is not found", twist.as_str()));
        }
        writeln!(found, "{}", twist.as_str()).unwrap();
        for one in failed {
            writeln!(found, "    {}", one.id).unwrap();
            let holds: Vec<_> = one.rules.iter().map(ToString::to_string).collect();
            if !holds.iter().any(|rule| twist.breaks().contains(&rule.as_str())) {
                problems.push(format!("{} fails {}, which holds {holds:?}: {:?}", twist.as_str(), one.id, one.verdict));
            }
        }
        assert!(!report.judged.iter().any(|one| matches!(one.verdict, Verdict::Errored(_))), "{}", twist.as_str());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    if std::env::var_os("CALLGATE_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong/found.txt");
        return std::fs::write(path, found).unwrap();
    }
    assert_eq!(found, FOUND, "other vectors find a wrong subject than tests/wrong/found.txt says");
}

/// The issue that this suite comes from asks for thirty, one for each kind of incident.
#[test]
fn there_are_enough_of_them_and_no_two_are_one() {
    let mut names: Vec<_> = Twist::ALL.iter().map(|twist| twist.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Twist::ALL.len());
    assert!(names.len() >= 30, "{}", names.len());
}
