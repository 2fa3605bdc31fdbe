//! What must not compile, does not: the order of the gate as facts that the compiler checks (invariants G1, G5, G7).
//!
//! Each case is two files under `compile_fail/` that differ in one line: `NAME.pass.rs` compiles, `NAME.fail.rs` does not, because
//! of the line that ends with `//~ CODE`, and for nothing else: the error has that code and stands on that line. The text of an
//! error is not compared, because it changes with the compiler. That is why this is no `trybuild`, which compares nothing else.
#![expect(clippy::expect_used, clippy::panic, reason = "the helpers of tests fail loudly")]
#![expect(clippy::indexing_slicing, reason = "a member that a JSON value does not have is null")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;

const MARK: &str = " //~ ";

/// A line that must not compile.
struct Marked {
    /// Counted from 1.
    line: u64,
    code: String,
}

/// An error that the compiler found, with the lines that it points at.
struct Found {
    code: Option<String>,
    lines: Vec<u64>,
    text: String,
}

#[test]
fn g1_g5_g7_what_must_not_compile_does_not() {
    let cases = cases();
    assert!(cases.len() >= 18, "only {} cases", cases.len());
    let mut found = compile(&cases);
    let mut faults = String::new();
    for (name, marked) in &cases {
        for error in found.remove(&format!("{name}_pass")).unwrap_or_default() {
            let _ = writeln!(faults, "{name}.pass.rs does not compile:\n{}", error.text);
        }
        let errors = found.remove(&format!("{name}_fail")).unwrap_or_default();
        if errors.is_empty() {
            let _ = writeln!(faults, "{name}.fail.rs compiles");
        }
        for error in errors {
            if error.code.as_ref() != Some(&marked.code) || error.lines != [marked.line] {
                let _ =
                    writeln!(faults, "{name}.fail.rs fails for another reason than {}:\n{}", marked.code, error.text);
            }
        }
    }
    for (name, error) in found.iter().flat_map(|(name, errors)| errors.iter().map(move |error| (name, error))) {
        let _ = writeln!(faults, "{name}: {}", error.text);
    }
    assert!(faults.is_empty(), "{faults}");
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail")
}

/// The cases by name. Both files of each are there, and differ in the marked line alone.
fn cases() -> BTreeMap<String, Marked> {
    let mut cases = BTreeMap::new();
    let mut twins = 0;
    for entry in fs::read_dir(directory()).expect("the directory of the cases") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8").to_owned();
        if let Some(name) = name.strip_suffix(".fail.rs") {
            let failing = fs::read_to_string(&path).expect("a text");
            let twin = fs::read_to_string(path.with_file_name(format!("{name}.pass.rs")))
                .unwrap_or_else(|_| panic!("{name}.fail.rs has no twin {name}.pass.rs"));
            cases.insert(name.to_owned(), marked(name, &failing, &twin));
        } else {
            twins += usize::from(name.ends_with(".pass.rs"));
        }
    }
    assert_eq!(twins, cases.len(), "a .pass.rs without a .fail.rs");
    cases
}

fn marked(name: &str, failing: &str, twin: &str) -> Marked {
    assert_eq!(failing.lines().count(), twin.lines().count(), "{name}: the twins have different lengths");
    assert!(!twin.contains(MARK), "{name}.pass.rs has a mark");
    let mut other = failing.lines().zip(twin.lines()).zip(1..).filter(|((failing, twin), _)| failing != twin);
    let ((line, _), at) = other.next().unwrap_or_else(|| panic!("{name}: the twins are the same"));
    assert!(other.next().is_none(), "{name}: the twins differ in more than one line");
    let (_, code) = line.split_once(MARK).unwrap_or_else(|| panic!("{name}: line {at} differs and has no mark"));
    Marked { line: at, code: code.to_owned() }
}

/// Checks all files in one run of cargo and gives the errors of each. Every file is a library of its own: an error in one says
/// nothing of another.
fn compile(cases: &BTreeMap<String, Marked>) -> BTreeMap<String, Vec<Found>> {
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    fs::create_dir_all(&project).expect("a directory for the project");
    fs::write(project.join("Cargo.toml"), manifest(cases)).expect("a manifest");
    // The versions that were tested, and no look at a registry.
    drop(fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock"), project.join("Cargo.lock")));
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["check", "--offline", "--examples", "--keep-going", "--quiet", "--message-format=json", "--target-dir"])
        .arg(project.join("target"))
        .current_dir(&project)
        .stdin(Stdio::null())
        .output()
        .expect("cargo runs");
    let messages: Vec<Value> =
        output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let finished = messages.iter().any(|message| message["reason"] == "build-finished");
    assert!(finished, "cargo did not come to the cases:\n{}", String::from_utf8_lossy(&output.stderr));

    let mut found = BTreeMap::<String, Vec<Found>>::new();
    for message in messages.iter().filter(|message| message["reason"] == "compiler-message") {
        let (target, diagnostic) = (&message["target"]["name"], &message["message"]);
        let spans = diagnostic["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
        // The summary at the end ("aborting due to ...") is an error that points at nothing.
        if diagnostic["level"] != "error" || diagnostic["code"].is_null() && spans.is_empty() {
            continue;
        }
        let mut lines: Vec<u64> = spans
            .iter()
            .filter(|span| span["is_primary"] == true)
            .filter_map(|span| span["line_start"].as_u64())
            .collect();
        lines.dedup();
        found.entry(target.as_str().unwrap_or_default().to_owned()).or_default().push(Found {
            code: diagnostic["code"]["code"].as_str().map(str::to_owned),
            lines,
            text: diagnostic["rendered"].as_str().unwrap_or_default().to_owned(),
        });
    }
    found
}

fn manifest(cases: &BTreeMap<String, Marked>) -> String {
    let directory = directory();
    let core = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut manifest = format!(
        "[workspace]\n[package]\nname = \"world\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [lib]\npath = {:?}\n\
         [dependencies]\ncallgate-core = {{ path = {core:?} }}\nserde = {{ version = \"1\", default-features = false }}\n",
        directory.join("world.rs")
    );
    for (name, twin) in cases.keys().flat_map(|name| [(name, "pass"), (name, "fail")]) {
        let path = directory.join(format!("{name}.{twin}.rs"));
        let _ = write!(manifest, "[[example]]\nname = \"{name}_{twin}\"\npath = {path:?}\ncrate-type = [\"lib\"]\n");
    }
    manifest
}
