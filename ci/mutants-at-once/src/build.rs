//! Builds the tests with all mutants in them; takes those out that do not compile.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::mutant::Mutant;
use crate::switch::switch;
use crate::{Ids, of};

/// What each mutated crate says at its root: which mutant is on.
const SWITCH: &str = r#"
extern crate std as std_of_mutants;
#[doc(hidden)]
#[inline]
pub(crate) fn mutant() -> u32 {
    static ON: std_of_mutants::sync::LazyLock<u32> = std_of_mutants::sync::LazyLock::new(|| {
        std_of_mutants::env::var("MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(0)
    });
    *ON
}
"#;

/// The programs with the tests, and the mutants that are in them.
pub(crate) fn build(tree: &Path, mutants: &[Mutant], cargo: &[String]) -> Result<(Vec<PathBuf>, Ids), Box<dyn Error>> {
    let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    let texts: Vec<(&str, String)> = files
        .iter()
        .map(|file| Ok((*file, fs::read_to_string(tree.join(file))?)))
        .collect::<Result<_, std::io::Error>>()?;
    for root in
        files.iter().filter_map(|file| file.split_once("/src/")).map(|(package, _)| package).collect::<BTreeSet<_>>()
    {
        let path = tree.join(root).join("src/lib.rs");
        let text = fs::read_to_string(&path)?;
        if !text.contains("std_of_mutants") {
            fs::write(&path, text + SWITCH)?;
        }
    }
    let (mut without, mut constant) = (Ids::new(), BTreeSet::new());
    loop {
        let mut placed = Ids::new();
        for (file, text) in &texts {
            let switched = switch(text, &of(mutants, file), &without, &constant)?;
            placed.extend(switched.placed);
            let path = tree.join(file);
            // What is as it was is not built anew.
            if fs::read_to_string(&path)? != switched.text {
                fs::write(path, switched.text)?;
            }
        }
        let output = Command::new("cargo")
            .args(["test", "--no-run", "--message-format", "json"])
            .args(cargo)
            .current_dir(tree)
            .env("RUSTFLAGS", "--cap-lints allow")
            .stderr(Stdio::inherit())
            .output()?;
        let messages: Vec<Value> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if output.status.success() {
            return Ok((programs(&messages), placed));
        }
        // First of all: what is not constant any more makes errors of its own.
        let called = called_by_constants(&messages);
        if !called.is_subset(&constant) {
            eprintln!("{} functions are called by constants", called.len());
            constant.extend(called);
            continue;
        }
        let wrong = culprits(tree, &messages)?;
        let fresh: Ids = wrong.difference(&without).copied().collect();
        eprintln!("{} mutants do not compile", fresh.len());
        if fresh.is_empty() {
            return Err("the build fails, and no mutant is to blame".into());
        }
        without.extend(fresh);
    }
}

fn programs(messages: &[Value]) -> Vec<PathBuf> {
    let tests = messages.iter().filter(|message| message.pointer("/profile/test") == Some(&Value::Bool(true)));
    tests.filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from)).collect()
}

/// The names of functions that have to stay constant.
fn called_by_constants(messages: &[Value]) -> BTreeSet<String> {
    let texts = messages.iter().filter_map(|message| message.pointer("/message/message")?.as_str());
    let called =
        texts.filter(|text| text.starts_with("cannot call non-const")).filter_map(|text| text.split('`').nth(1));
    // `digest::hex::<'_, T>`, `ChannelPolicy::<'_>::without_auth`
    let names = called.filter_map(|path| path.rsplit("::").find(|part| !part.contains(['<', '>'])).map(str::to_owned));
    names.collect()
}

/// The mutants in whose lines the errors are: the last number of one that stands before or in the place of an error.
fn culprits(tree: &Path, messages: &[Value]) -> Result<Ids, Box<dyn Error>> {
    let mut ids = Ids::new();
    let errors = messages
        .iter()
        .filter_map(|message| message.get("message"))
        .filter(|message| message.get("level").and_then(Value::as_str) == Some("error"));
    for error in errors {
        let spans = error.get("spans").and_then(Value::as_array).into_iter().flatten();
        let primary = spans.filter(|span| span.get("is_primary") == Some(&Value::Bool(true)));
        let before = ids.len();
        for span in primary {
            let Some(file) = span.get("file_name").and_then(Value::as_str) else { continue };
            let text = fs::read_to_string(tree.join(file))?;
            let at = |name: &str| span.get(name).and_then(Value::as_u64).unwrap_or_default() as usize;
            let within = text.get(at("byte_start")..at("byte_end")).unwrap_or_default();
            let upto = text.get(..at("byte_start")).unwrap_or_default();
            ids.extend(numbers(within).pop().or_else(|| numbers(upto).pop()));
        }
        if ids.len() == before {
            eprintln!("{}", error.get("rendered").and_then(Value::as_str).unwrap_or_default());
        }
    }
    Ok(ids)
}

/// The numbers of mutants in a text, in order.
fn numbers(text: &str) -> Vec<u32> {
    let pieces: Vec<&str> = text.split("mutant()").collect();
    let pieces = pieces.iter().skip(1).map(|piece| piece.trim_start_matches([' ', '=', '!', '\n']));
    pieces.filter_map(|piece| piece.split_once("u32")?.0.parse().ok()).collect()
}
