//! Builds the tests: with all mutants in them, taking those out that do not compile, or with one alone.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Ids;
use crate::mutant::Mutant;
use crate::switch::switch;

/// What each mutated crate says at its root: which mutant is on. While the compiler evaluates constants, none is.
const SWITCH: &str = r#"
extern crate std as std_of_mutants;
#[doc(hidden)]
#[inline]
pub(crate) const fn mutant() -> u32 {
    const fn none() -> u32 {
        0
    }
    fn on() -> u32 {
        static ON: std_of_mutants::sync::LazyLock<u32> = std_of_mutants::sync::LazyLock::new(|| {
            std_of_mutants::env::var("MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(0)
        });
        *ON
    }
    core::intrinsics::const_eval_select((), none, on)
}
"#;

/// What the switch needs of the compiler, for these crates alone and for no purpose but this.
const FEATURES: &str = "#![allow(internal_features)]\n#![feature(core_intrinsics, const_eval_select)]\n";

/// Two copies of the workspace: one that stays as it is, and one whose files are changed and built.
pub(crate) struct Tree<'m> {
    root: &'m Path,
    mutants: &'m [Mutant],
    cargo: &'m [String],
    /// The files as they were.
    texts: BTreeMap<String, String>,
}

/// A mutant and where its function is.
type Placed<'o> = (&'o Mutant, Range<usize>);

/// The programs with the tests, and the mutants that are in them.
pub(crate) struct Built {
    pub(crate) programs: Vec<PathBuf>,
    pub(crate) placed: Ids,
    /// Those of `placed` that stand where the compiler may evaluate them, when they are off.
    pub(crate) constant: Ids,
}

impl<'m> Tree<'m> {
    /// Reads the files of `original`, and brings everything else in `root` to the same state.
    pub(crate) fn read(
        original: &Path,
        root: &'m Path,
        mutants: &'m [Mutant],
        cargo: &'m [String],
    ) -> io::Result<Self> {
        let files = mutants.iter().map(|mutant| mutant.file.as_str());
        let roots = mutants.iter().filter_map(|mutant| mutant.file.split_once("/src/"));
        let roots: BTreeSet<String> = roots.map(|(package, _)| format!("{package}/src/lib.rs")).collect();
        let files: BTreeSet<&str> = files.chain(roots.iter().map(String::as_str)).collect();
        let texts = files.into_iter().map(|file| Ok((file.to_owned(), fs::read_to_string(original.join(file))?)));
        let tree = Self { root, mutants, cargo, texts: texts.collect::<io::Result<_>>()? };
        tree.bring(original, Path::new(""))?;
        Ok(tree)
    }

    /// Copies what differs in a folder, and removes what is not there any more.
    fn bring(&self, original: &Path, folder: &Path) -> io::Result<()> {
        let names = |root: &Path| -> io::Result<BTreeSet<_>> {
            fs::create_dir_all(root.join(folder))?;
            fs::read_dir(root.join(folder))?.map(|entry| Ok(entry?.file_name())).collect()
        };
        let (wanted, there) = (names(original)?, names(self.root)?);
        for name in there.difference(&wanted) {
            let path = self.root.join(folder).join(name);
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        for name in &wanted {
            let file = folder.join(name);
            let (from, to) = (original.join(&file), self.root.join(&file));
            if from.is_dir() {
                self.bring(original, &file)?;
            } else if !(to.exists() && file.to_str().is_some_and(|file| self.texts.contains_key(file))) {
                let text = fs::read(&from)?;
                if fs::read(&to).ok().as_ref() != Some(&text) {
                    fs::copy(&from, &to)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a file, unless it is so: what is as it was is not built anew.
    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        let path = self.root.join(file);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) { Ok(()) } else { fs::write(path, text) }
    }

    fn cargo(&self, arguments: &[&str]) -> io::Result<(bool, Vec<Value>)> {
        let crates: Vec<&str> =
            self.texts.keys().filter_map(|file| file.split_once("/src/")).map(|(name, _)| name).collect();
        let crates: BTreeSet<String> =
            crates.iter().map(|name| format!("callgate_{}", name.replace('-', "_"))).collect();
        let output = Command::new("cargo")
            .args(arguments)
            .args(["--message-format", "json"])
            .current_dir(self.root)
            .env("RUSTFLAGS", "--cap-lints allow")
            .env("RUSTC_BOOTSTRAP", crates.into_iter().collect::<Vec<_>>().join(","))
            .stderr(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok((output.status.success(), text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()))
    }

    fn test(&self) -> io::Result<(bool, Vec<Value>)> {
        let arguments: Vec<&str> =
            ["test", "--no-run"].into_iter().chain(self.cargo.iter().map(String::as_str)).collect();
        self.cargo(&arguments)
    }

    /// Builds the tests with all mutants in them but those of which it is known that they do not compile so, and those that turn out
    /// not to.
    pub(crate) fn build(&self, apart: impl Fn(&Mutant) -> bool) -> Result<Built, Box<dyn Error>> {
        let mut without: Ids = self.mutants.iter().filter(|mutant| apart(mutant)).map(|mutant| mutant.id).collect();
        loop {
            let (mut placed, mut constant) = (Ids::new(), Ids::new());
            for (file, text) in &self.texts {
                let mutants: Vec<&Mutant> = self.mutants.iter().filter(|mutant| mutant.file == *file).collect();
                let switched = switch(text, &mutants, &without)?;
                placed.extend(switched.placed);
                constant.extend(switched.constant);
                if file.ends_with("/src/lib.rs") {
                    self.write(file, &[FEATURES, &switched.text, SWITCH].concat())?;
                } else {
                    self.write(file, &switched.text)?;
                }
            }
            let (built, messages) = self.test()?;
            if built {
                return Ok(Built { programs: programs(&messages), placed, constant });
            }
            let wrong = self.culprits(&messages)?;
            let fresh: Ids = wrong.difference(&without).copied().collect();
            eprintln!("{} mutants do not compile beside the others", fresh.len());
            if fresh.is_empty() {
                return Err("the build fails, and no mutant is to blame".into());
            }
            without.extend(fresh);
        }
    }

    /// Leaves no mutants but these in the tree, as text, and tells where their functions are then. No two may stand in one function.
    fn only<'o>(&self, mutants: &[&'o Mutant]) -> Result<Vec<Placed<'o>>, Box<dyn Error>> {
        let outside = || Box::<dyn Error>::from("a place that is not in its file");
        let mut functions = Vec::new();
        for (file, text) in &self.texts {
            let mut here: Vec<&Mutant> = mutants.iter().filter(|mutant| mutant.file == *file).copied().collect();
            here.sort_by_key(|mutant| mutant.start);
            let (mut changed, mut at) = (String::new(), 0);
            for mutant in here {
                let (function, place) = mutant.function(text).zip(mutant.place(text)).ok_or_else(outside)?;
                changed += text.get(at..function.start).ok_or_else(outside)?;
                let start = changed.len();
                let (head, tail) = (text.get(function.start..place.start), text.get(place.end..function.end));
                let (head, tail) = head.zip(tail).ok_or_else(outside)?;
                changed += &[head, &mutant.replacement, tail].join(" ");
                functions.push((mutant, start..changed.len()));
                at = function.end;
            }
            changed += text.get(at..).ok_or_else(outside)?;
            self.write(file, &changed)?;
        }
        Ok(functions)
    }

    /// Which of these mutants compile alone. They are tried many at a time, one in a function: what is wrong in a function then is so
    /// because of its mutant.
    pub(crate) fn viable<'o>(&self, mutants: &[&'o Mutant]) -> Result<Vec<&'o Mutant>, Box<dyn Error>> {
        let check: Vec<&str> = ["check"].into_iter().chain(self.package()).collect();
        self.only(&[])?;
        if !self.cargo(&check)?.0 {
            return Err("the tree does not compile without mutants".into());
        }
        let (mut open, mut viable, mut most) = (mutants.to_vec(), Vec::new(), usize::MAX);
        while !open.is_empty() {
            let mut batch: Vec<&Mutant> = Vec::new();
            for mutant in &open {
                let text = self.texts.get(&mutant.file).map_or("", String::as_str);
                let apart = |other: &&Mutant| match (mutant.function(text), other.function(text)) {
                    (Some(one), Some(other)) => one.end <= other.start || other.end <= one.start,
                    _ => false,
                };
                if batch.len() < most && batch.iter().filter(|other| other.file == mutant.file).all(apart) {
                    batch.push(mutant);
                }
            }
            let functions = self.only(&batch)?;
            let (compiles, messages) = self.cargo(&check)?;
            let decided: Ids = if compiles {
                viable.extend(open.iter().filter(|mutant| batch.iter().any(|other| other.id == mutant.id)));
                batch.iter().map(|mutant| mutant.id).collect()
            } else if batch.len() == 1 {
                batch.iter().map(|mutant| mutant.id).collect()
            } else {
                let wrong: Vec<(String, usize)> =
                    errors(&messages).flat_map(places).map(|(file, at)| (file, at.start)).collect();
                let is_wrong = |(mutant, function): &&Placed<'_>| {
                    wrong.iter().any(|(file, at)| *file == mutant.file && function.contains(at))
                };
                functions.iter().filter(is_wrong).map(|(mutant, _)| mutant.id).collect()
            };
            // Nobody to blame: fewer at a time.
            most = if decided.is_empty() { (batch.len() / 2).max(1) } else { usize::MAX };
            open.retain(|mutant| !decided.contains(&mutant.id));
        }
        Ok(viable)
    }

    /// Builds the tests with one mutant alone, or one program of them. Nothing when they do not compile: a constant says no.
    pub(crate) fn build_alone(
        &self,
        mutant: &Mutant,
        program: Option<&str>,
    ) -> Result<Option<Vec<PathBuf>>, Box<dyn Error>> {
        self.only(&[mutant])?;
        let (built, messages) = match program {
            None => self.test()?,
            Some(name) => {
                let target = if name.starts_with("callgate_") { vec!["--lib"] } else { vec!["--test", name] };
                self.cargo(&["test", "--no-run"].into_iter().chain(self.package()).chain(target).collect::<Vec<_>>())?
            }
        };
        Ok(built.then(|| programs(&messages)))
    }

    /// What `cargo` is to be told of the package, without its tests.
    fn package(&self) -> impl Iterator<Item = &str> {
        self.cargo.iter().map(String::as_str).take_while(|argument| !matches!(*argument, "--lib" | "--test"))
    }

    /// The mutants in whose lines the errors are: the last number of one that stands before or in the place of an error.
    fn culprits(&self, messages: &[Value]) -> io::Result<Ids> {
        let mut ids = Ids::new();
        for error in errors(messages) {
            let mut blamed = false;
            for (file, at) in places(error) {
                let Ok(text) = fs::read_to_string(self.root.join(file)) else { continue };
                let (within, upto) =
                    (text.get(at.clone()).unwrap_or_default(), text.get(..at.start).unwrap_or_default());
                let id = numbers(within).pop().or_else(|| numbers(upto).pop());
                blamed |= id.is_some();
                ids.extend(id);
            }
            if !blamed {
                eprintln!("{}", error.get("rendered").and_then(Value::as_str).unwrap_or_default());
            }
        }
        Ok(ids)
    }
}

fn errors(messages: &[Value]) -> impl Iterator<Item = &Value> {
    let messages = messages.iter().filter_map(|message| message.get("message"));
    messages.filter(|message| message.get("level").and_then(Value::as_str) == Some("error"))
}

/// Where an error is, in bytes.
fn places(error: &Value) -> impl Iterator<Item = (String, Range<usize>)> {
    let spans = error.get("spans").and_then(Value::as_array).into_iter().flatten();
    let primary = spans.filter(|span| span.get("is_primary") == Some(&Value::Bool(true)));
    primary.filter_map(|span| {
        let at = |name: &str| span.get(name).and_then(Value::as_u64).unwrap_or_default() as usize;
        Some((span.get("file_name")?.as_str()?.to_owned(), at("byte_start")..at("byte_end")))
    })
}

fn programs(messages: &[Value]) -> Vec<PathBuf> {
    let tests = messages.iter().filter(|message| message.pointer("/profile/test") == Some(&Value::Bool(true)));
    tests.filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from)).collect()
}

/// The numbers of mutants in a text, in order.
fn numbers(text: &str) -> Vec<u32> {
    let pieces: Vec<&str> = text.split("mutant()").collect();
    let pieces = pieces.iter().skip(1).map(|piece| piece.trim_start_matches([' ', '=', '!', '\n']));
    pieces.filter_map(|piece| piece.split_once("u32")?.0.parse().ok()).collect()
}
