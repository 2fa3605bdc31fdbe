//! What of the papers is held by which vector: every rule that can be seen from outside, every scenario, every fault met in the
//! field. `cargo test -p callgate-conformance --test coverage -- --nocapture` prints the table.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use callgate_conformance::library::Library;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Coverage {
    #[serde(rename = "about")]
    _about: String,
    rules: Vec<RuleLine>,
    cases: Vec<CaseLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleLine {
    rule: String,
    about: Option<String>,
    not_seen: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseLine {
    cases: Vec<String>,
    about: String,
    #[serde(default)]
    held_by: Vec<String>,
    not_seen: Option<String>,
}

/// How many rules the papers mark as visible from outside.
const VISIBLE_RULES: usize = 59;

fn coverage() -> Coverage {
    serde_json::from_str(include_str!("../coverage.json")).unwrap()
}

#[test]
fn every_rule_that_can_be_seen_has_a_vector() {
    let library = Library::built_in().unwrap();
    let mut vectors: BTreeMap<String, usize> = BTreeMap::new();
    for rule in library.vectors().iter().flat_map(|vector| &vector.rules) {
        *vectors.entry(rule.to_string()).or_default() += 1;
    }
    let lines = coverage().rules;
    let names: BTreeSet<_> = lines.iter().map(|line| &line.rule).collect();
    assert_eq!((names.len(), lines.len()), (VISIBLE_RULES, VISIBLE_RULES));
    for RuleLine { rule, about, not_seen } in &lines {
        let held = vectors.get(rule).copied().unwrap_or_default();
        match (about, not_seen) {
            (Some(about), None) => {
                assert!(held > 0, "{rule} has no vector");
                println!("{rule:<4} {held:>4} vectors  {about}");
            }
            (None, Some(why)) => {
                assert_eq!(held, 0, "{rule} is said not to be seen, and has a vector");
                println!("{rule:<4}  not seen     {why}");
            }
            _ => panic!("{rule} has either a subject or a reason"),
        }
    }
}

#[test]
fn every_case_of_the_papers_has_a_vector_or_a_reason() {
    let library = Library::built_in().unwrap();
    let ids: BTreeSet<_> = library.vectors().iter().map(|vector| vector.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    for CaseLine { cases, about, held_by, not_seen } in coverage().cases {
        assert!(held_by.is_empty() == not_seen.is_some(), "{cases:?} have vectors, or a reason why there are none");
        let missing: Vec<_> = held_by.iter().filter(|id| !ids.contains(id.as_str())).collect();
        assert!(missing.is_empty(), "{cases:?} are said to be held by {missing:?}, which are not there");
        for case in &cases {
            assert!(seen.insert(case.clone()), "{case} stands there twice");
        }
        let how = not_seen.map_or_else(|| held_by.join(", "), |why| format!("not seen: {why}"));
        println!("{}: {about}\n    {how}", cases.join(" "));
    }
}

/// Nothing is there only to be counted: no two vectors have the same world and the same script.
#[test]
fn no_two_vectors_are_one() {
    let library = Library::built_in().unwrap();
    let mut seen = BTreeMap::new();
    for vector in library.vectors() {
        let acts: Vec<_> = vector.script.iter().map(|step| format!("{:?}", step.act)).collect();
        let what = format!("{:?} {:?} {acts:?}", vector.world, vector.callers);
        if let Some(other) = seen.insert(what, &vector.id) {
            panic!("{} is {other} once more", vector.id);
        }
    }
    assert!(library.vectors().len() >= 300, "{}", library.vectors().len());
}

/// The reference model is read, not tested: it has to stay so short that one can.
#[test]
fn the_model_is_short() {
    let files = [
        include_str!("../src/model/mod.rs"),
        include_str!("../src/model/arguments.rs"),
        include_str!("../src/model/budget.rs"),
        include_str!("../src/model/policy.rs"),
    ];
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines: usize = files.iter().map(|text| text.lines().filter(is_code).count()).sum();
    assert!(lines <= 500, "{lines} lines of code");
}
