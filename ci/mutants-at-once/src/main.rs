//! Runs the tests of a package against every mutant that `cargo mutants` lists, with one build: the mutants are all in it, and an
//! environment variable says which one is on. Where that cannot be (in constant functions, or where a mutant does not compile) it
//! says so, and the mutant is left to `cargo mutants` itself.
//!
//! `mutants-at-once LIST TREE CARGO-ARGUMENTS...`: the list from `cargo mutants --list --json`, a copy of the workspace, which is
//! changed, and what `cargo test` is to build of it. See `ci/mutants`.

mod build;
mod judge;
mod mutant;
mod switch;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use mutant::Mutant;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutants-at-once: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [list, tree, cargo @ ..] = arguments.as_slice() else {
        return Err("usage: mutants-at-once LIST TREE CARGO-ARGUMENTS...".into());
    };
    let mutants = mutant::read(&std::fs::read_to_string(list)?)?;
    let (tests, placed) = build::build(Path::new(tree), &mutants, cargo)?;
    let left: Vec<&Mutant> = mutants.iter().filter(|mutant| !placed.contains(&mutant.id)).collect();
    for mutant in &left {
        println!("left {}", mutant.name);
    }
    eprintln!("{} mutants, {} of them in the build, {} left", mutants.len(), placed.len(), left.len());
    let package = mutants.first().and_then(|mutant| mutant.file.split_once("/src/")).map_or("", |(package, _)| package);
    judge::judge(&tests, &Path::new(tree).join(package), &mutants, &placed)
}

/// The mutants of a file.
fn of<'m>(mutants: &'m [Mutant], file: &str) -> Vec<&'m Mutant> {
    mutants.iter().filter(|mutant| mutant.file == file).collect()
}

type Ids = BTreeSet<u32>;
