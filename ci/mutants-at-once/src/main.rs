//! Runs the tests of a package against every mutant that `cargo mutants` lists. Nearly all of them are in one build, and an environment
//! variable says which one is on. What cannot be in it gets a build of its own: what does not compile beside the others (and if it does
//! not compile alone either, it is no mutant), and what the compiler evaluates before anything runs.
//!
//! `mutants-at-once LIST ORIGINAL TREE VERDICTS CARGO-ARGUMENTS...`: the list from `cargo mutants --list --json`; a copy of the
//! workspace, and another one that is changed; the file of verdicts, to which is added, and whose mutants are judged again only if
//! they were missed; what `cargo test` is to build of the copy. See `ci/mutants`.

mod build;
mod judge;
mod mutant;
mod switch;
mod verdict;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use build::Tree;
use judge::Tests;
use mutant::Mutant;
use verdict::{Verdict, Verdicts};

type Ids = BTreeSet<u32>;

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
    let [list, original, root, kept, cargo @ ..] = arguments.as_slice() else {
        return Err("usage: mutants-at-once LIST ORIGINAL TREE VERDICTS CARGO-ARGUMENTS...".into());
    };
    let (root, kept) = (Path::new(root), Path::new(kept));
    let mutants = mutant::read(&std::fs::read_to_string(list)?)?;
    if mutants.is_empty() {
        return Err("there are no mutants in these files".into());
    }
    let package = mutants.first().and_then(|mutant| mutant.file.split_once("/src/")).map_or("", |(package, _)| package);
    let verdicts = Verdicts::open(kept, &mutants)?;
    let mut open: Vec<&Mutant> = mutants.iter().filter(|mutant| !verdicts.is_settled(mutant)).collect();
    // What is new comes first: that something is missed is known already.
    open.sort_by_key(|mutant| verdicts.is_missed(mutant));
    if !open.is_empty() && std::env::var_os("TABLE").is_none() {
        let tree = Tree::read(Path::new(original), root, &mutants, cargo)?;
        let built = tree.build(|mutant| verdicts.is_apart(mutant))?;
        for mutant in mutants.iter().filter(|mutant| !built.placed.contains(&mutant.id) && !verdicts.is_apart(mutant)) {
            verdicts.set_apart(mutant)?;
        }
        let (placed, left): (Vec<&Mutant>, Vec<&Mutant>) =
            open.into_iter().partition(|mutant| built.placed.contains(&mutant.id));
        eprintln!(
            "{} mutants, {} of them in the build, {} for a build of their own",
            mutants.len(),
            placed.len(),
            left.len()
        );
        let tests = Tests::time(built.programs, root.join(package))?;
        let missed = together(&tests, &placed, &built.constant, &verdicts)?;
        // Elsewhere, so that the build above can be used the next time.
        let elsewhere = root.with_extension("apart");
        let tree = Tree::read(Path::new(original), &elsewhere, &mutants, cargo)?;
        // What constants are made of, no switch reaches.
        let constant = missed.into_iter().filter(|mutant| built.constant.contains(&mutant.id));
        let apart: Vec<&Mutant> = left.into_iter().chain(constant).collect();
        let viable = tree.viable(&apart)?;
        for mutant in apart {
            if !viable.iter().any(|other| other.id == mutant.id) {
                verdicts.add(mutant, Verdict::Unviable)?;
            }
        }
        for mutant in viable {
            let verdict = |programs: Option<Vec<PathBuf>>| match programs {
                Some(programs) => tests.rebuilt(programs).judge(mutant, 0),
                None => Ok(Verdict::Caught),
            };
            // Most likely one of the programs suffices, which is the sooner built.
            let mut found = Verdict::Missed;
            if let Some(name) = tests.most_telling(mutant) {
                found = verdict(tree.build_alone(mutant, Some(&name))?)?;
            }
            if found == Verdict::Missed {
                found = verdict(tree.build_alone(mutant, None)?)?;
            }
            verdicts.add(mutant, found)?;
        }
    }
    print!("{}", Verdicts::open(kept, &mutants)?.table(&mutants));
    Ok(())
}

/// Judges what is in the build, on as many threads as `JOBS` says; gives back what was missed.
fn together<'m>(
    tests: &Tests,
    mutants: &[&'m Mutant],
    constant: &Ids,
    verdicts: &Verdicts,
) -> Result<Vec<&'m Mutant>, Box<dyn Error>> {
    let jobs: usize = std::env::var("JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    let next = Mutex::new(mutants.iter().copied());
    let work = || -> Result<Vec<&'m Mutant>, String> {
        let mut missed = Vec::new();
        loop {
            let taken = next.lock().map_err(|error| error.to_string())?.next();
            let Some(mutant) = taken else { return Ok(missed) };
            let verdict = tests.judge(mutant, mutant.id).map_err(|error| error.to_string())?;
            if verdict == Verdict::Missed {
                missed.push(mutant);
            }
            // Of those that constants may be made of, the last word is not spoken yet.
            if verdict != Verdict::Missed || !constant.contains(&mutant.id) {
                verdicts.add(mutant, verdict).map_err(|error| error.to_string())?;
            }
        }
    };
    let all: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a judge panicked".into()))).collect()
    });
    let mut missed = Vec::new();
    for part in all {
        missed.extend(part?);
    }
    missed.sort_by_key(|mutant| mutant.id);
    Ok(missed)
}
