//! Admitted schemas against JSON-Schema-Test-Suite, drafts 2020-12 and 07: right in every case, or refused (invariant S6).

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests, which print what they covered"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callgate_std::schema::{JsonSchema, Profile, SchemaFault};
use serde_json::Value;

fn suite() -> PathBuf {
    std::env::var_os("CALLGATE_SUITES")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/suites")), PathBuf::from)
        .join("json-schema-test-suite")
}

/// All files of a draft, in a fixed order.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        dir.read_dir().expect("the suite can be listed").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Whether the suite asks for what the gate decides otherwise: under 2020-12 a format is only a note there, here it is
/// checked, since who declares one means it.
fn decided_otherwise(path: &Path, description: &str) -> bool {
    path.ends_with("draft2020-12/format.json") && description.ends_with("is only an annotation by default")
}

fn kind(fault: &SchemaFault) -> String {
    match fault {
        SchemaFault::Keyword { name, .. } => format!("keyword {name}"),
        SchemaFault::Format(name) => format!("format {name}"),
        other => format!("{other:?}").split([' ', '(']).next().unwrap_or_default().to_owned(),
    }
}

fn run(draft: &str, declared: Option<&str>) {
    let dir = suite().join(draft);
    if !dir.is_dir() {
        println!("skipped: no JSON-Schema-Test-Suite at {}; set CALLGATE_SUITES", dir.display());
        return;
    }
    let mut paths = Vec::new();
    files(&dir, &mut paths);
    let (mut covered, mut otherwise, mut all) = (0u32, 0u32, 0usize);
    let mut refused = BTreeMap::<String, usize>::new();
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let groups: Vec<Value> = serde_json::from_str(&text).expect("a list of groups");
        for mut group in groups {
            if let (Some(declared), Some(schema)) = (declared, group["schema"].as_object_mut()) {
                schema.entry("$schema").or_insert(declared.into());
            }
            let tests = group["tests"].as_array().expect("tests");
            all += tests.len();
            let schema = match JsonSchema::new(&group["schema"], Profile::VALUE) {
                Ok(schema) => schema,
                Err(error) => {
                    let (_, fault) = error.faults().first().expect("a fault");
                    *refused.entry(kind(fault)).or_default() += tests.len();
                    continue;
                }
            };
            for test in tests {
                let description = test["description"].as_str().unwrap_or_default();
                if decided_otherwise(&path, description) {
                    otherwise += 1;
                    continue;
                }
                covered += 1;
                let mut violations = Vec::new();
                schema.validate_value(&test["data"], &mut |violation| violations.push(violation.to_string()));
                if Some(violations.is_empty()) != test["valid"].as_bool() {
                    let file = path.strip_prefix(&dir).unwrap_or(&path).display();
                    wrong.push(format!("{file}: {}: {description}: {violations:?}", group["description"]));
                }
            }
        }
    }
    println!(
        "{draft}: covered {covered} of {all} cases ({:.1} %), {otherwise} decided otherwise",
        100.0 * f64::from(covered) / all as f64
    );
    println!("refused, by the first fault: {refused:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(covered > 1000, "the suite was hardly used: {covered} cases");
}

#[test]
fn s6_draft_2020_12() {
    run("draft2020-12", None);
}

#[test]
fn s6_draft_07() {
    run("draft7", Some("http://json-schema.org/draft-07/schema#"));
}
