//! The core's schemas against JSON-Schema-Test-Suite, draft 2020-12: whatever the core can say, it says right, and the
//! rest is refused (invariant S6).

#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod import;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callgate_core::json::{KeySlot, Limits, key_capacity, scan};
use callgate_core::schema::Schema;
use serde_json::Value;

fn suite() -> PathBuf {
    std::env::var_os("CALLGATE_SUITES")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/suites")), PathBuf::from)
        .join("json-schema-test-suite/draft2020-12")
}

/// All files of the suite, in a fixed order.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        dir.read_dir().expect("the suite can be listed").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Whether `instance` fits; `None` when the reader refuses it.
fn fits(schema: &Schema<'_>, instance: &Value) -> Option<bool> {
    let text = instance.to_string();
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    let scanned = scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).ok()?;
    let mut fits = true;
    schema.validate_value(scanned.value(), &mut |_| fits = false);
    Some(fits)
}

/// The schema after it was written down and taken in again.
fn exported(schema: &Schema<'_>) -> Schema<'static> {
    let mut text = String::new();
    schema.write_json_schema(&mut text).expect("a schema that was checked is written");
    let document = serde_json::from_str(&text).expect("JSON");
    import::import(&document).unwrap_or_else(|why| panic!("{text}: {why:?}"))
}

#[test]
fn s6_json_schema_test_suite() {
    let dir = suite();
    if !dir.is_dir() {
        println!("skipped: no JSON-Schema-Test-Suite at {}; set CALLGATE_SUITES", dir.display());
        return;
    }
    let mut paths = Vec::new();
    files(&dir, &mut paths);

    let (mut covered, mut unreadable, mut all) = (0, 0, 0);
    let mut refused = BTreeMap::<String, usize>::new();
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let groups: Vec<Value> = serde_json::from_str(&text).expect("a list of groups");
        for group in groups {
            let tests = group["tests"].as_array().expect("tests");
            all += tests.len();
            let schema = match import::import(&group["schema"]) {
                Ok(schema) => schema,
                Err(unsupported) => {
                    *refused.entry(unsupported.keyword).or_default() += tests.len();
                    continue;
                }
            };
            let again = exported(&schema);
            for test in tests {
                let instance = &test["data"];
                let Some(decision) = fits(&schema, instance) else {
                    unreadable += 1;
                    continue;
                };
                covered += 1;
                if Some(decision) != test["valid"].as_bool() || fits(&again, instance) != Some(decision) {
                    wrong.push(format!(
                        "{}: {}: {}",
                        path.strip_prefix(&dir).unwrap_or(&path).display(),
                        group["description"],
                        test["description"],
                    ));
                }
            }
        }
    }
    println!(
        "covered {covered} of {all} cases ({:.1} %), {unreadable} more have arguments that the reader refuses",
        100.0 * f64::from(covered) / all as f64
    );
    println!("refused, by the first keyword that the core does not know: {refused:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(covered > 250, "the suite was hardly used: {covered} cases");
}
