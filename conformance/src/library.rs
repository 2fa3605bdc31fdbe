//! The vectors: those that come with this crate, and those of a directory.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::event::Kill;
use crate::vector::{Act, BatchedStep, CallStep, FORMAT, Profile, RedeemStep, Vector, VectorFile};

/// The vectors that come with this crate, by the names of their files.
pub const FILES: &[(&str, &str)] = &include!("files.in");

/// A set of vectors in a fixed order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Library {
    vectors: Vec<Vector>,
}

/// Why vectors were not taken. A harness that judges by a vector that it misread is worse than none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// A file could not be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is not in the format.
    #[error("{file}: {reason}")]
    Format {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
}

impl Library {
    /// The vectors that come with this crate.
    ///
    /// # Errors
    /// One of them is not in the format, which the tests of this crate rule out.
    pub fn built_in() -> Result<Self, LibraryError> {
        Self::of(FILES.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())))
    }

    /// The vectors of all `.json` files in a directory and those below it, in the order of their paths.
    ///
    /// # Errors
    /// A file could not be read or is not in the format.
    pub fn read(directory: &Path) -> Result<Self, LibraryError> {
        let mut paths = Vec::new();
        collect(directory, &mut paths)?;
        paths.sort();
        let mut files = Vec::new();
        for path in paths {
            let text = fs::read_to_string(&path).map_err(|error| LibraryError::Io { path: path.clone(), error })?;
            files.push((path.display().to_string(), text));
        }
        Self::of(files)
    }

    /// The vectors of these files, each with its name.
    ///
    /// # Errors
    /// A file is not in the format, or an id is there twice.
    pub fn of(files: impl IntoIterator<Item = (String, String)>) -> Result<Self, LibraryError> {
        let mut vectors = Vec::new();
        let mut ids = BTreeSet::new();
        for (file, text) in files {
            let wrong = |reason: String| LibraryError::Format { file: file.clone(), reason };
            let read: VectorFile = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            if read.format != FORMAT {
                return Err(wrong(format!("format {} is not known here; this is format {FORMAT}", read.format)));
            }
            for vector in read.vectors {
                check(&vector).map_err(|reason| wrong(format!("vector `{}`: {reason}", vector.id)))?;
                if !ids.insert(vector.id.clone()) {
                    return Err(wrong(format!("vector `{}` is there twice", vector.id)));
                }
                vectors.push(vector);
            }
        }
        Ok(Self { vectors })
    }

    /// The vectors.
    #[must_use]
    pub fn vectors(&self) -> &[Vector] {
        &self.vectors
    }

    /// Only the vectors of a profile.
    #[must_use]
    pub fn of_profile(mut self, profile: Profile) -> Self {
        self.vectors.retain(|vector| vector.profile == profile);
        self
    }

    /// Only the vectors whose id contains the text, or that hold the rule of this number.
    #[must_use]
    pub fn matching(mut self, filter: &str) -> Self {
        let holds = |vector: &Vector| vector.rules.iter().any(|rule| rule.to_string() == filter);
        self.vectors.retain(|vector| vector.id.contains(filter) || holds(vector));
        self
    }
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<(), LibraryError> {
    let fault = |error| LibraryError::Io { path: directory.to_owned(), error };
    for entry in fs::read_dir(directory).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    Ok(())
}

/// What the types of the format do not say.
fn check(vector: &Vector) -> Result<(), String> {
    let Vector { rules, callers, script, world, .. } = vector;
    if rules.is_empty() || script.is_empty() != vector.admission.is_some() || vector.reason.trim().is_empty() {
        return Err("it needs a reason, a rule that it holds, and a script unless its world is refused".to_owned());
    }
    let named = |name: &str| callers.contains_key(name).then_some(()).ok_or(format!("it describes no caller `{name}`"));
    let mut calls = BTreeSet::new();
    let made = |calls: &BTreeSet<String>, ask: &str| {
        calls.contains(ask).then_some(()).ok_or(format!("there is no call `{ask}` before the step that names it"))
    };
    for (at, step) in script.iter().enumerate() {
        let mut ids = Vec::new();
        let expect = &step.expect;
        let said = [
            expect.outcome.is_some() != expect.killed,
            expect.outcomes.is_some(),
            expect.decided.is_some(),
            expect.shown.is_some(),
            expect.inspection.is_some(),
        ];
        let is_call = |call: &CallStep| {
            let twice = call.arguments.is_some() && call.arguments_text.is_some();
            named(call.caller.as_deref().unwrap_or(crate::vector::DEFAULT_CALLER))?;
            if twice { Err(format!("step {at} gives its arguments twice")) } else { Ok(call.id.clone()) }
        };
        let is_redeem = |redeem: &RedeemStep| {
            made(&calls, &redeem.ask)?;
            redeem.caller.as_deref().map_or(Ok(()), named).map(|()| redeem.id.clone())
        };
        match &step.act {
            Act::Call(call) => ids.extend(is_call(call)?),
            Act::Redeem(redeem) => ids.extend(is_redeem(redeem)?),
            Act::Batch(batch) => {
                for one in &batch.calls {
                    ids.extend(match one {
                        BatchedStep::Call(call) => is_call(call)?,
                        BatchedStep::Redeem(redeem) => is_redeem(redeem)?,
                    });
                }
            }
            Act::Approve(decide) | Act::Deny(decide) | Act::Show(decide) => {
                made(&calls, &decide.ask)?;
                named(&decide.by)?;
            }
            Act::Inspect(inspect) => named(inspect.caller.as_deref().unwrap_or(crate::vector::DEFAULT_CALLER))?,
            Act::Revoke(revoke) => named(&revoke.caller)?,
            Act::Define(tool) if world.tools.iter().all(|old| old.name != tool.name) => {
                return Err(format!("step {at} replaces the tool `{}`, which is not there", tool.name));
            }
            Act::Kill(Kill { at: None, done: true }) => {
                return Err(format!("step {at} kills the gate after something that it does not name"));
            }
            Act::Advance(_) | Act::Rewind(_) | Act::Rule(_) | Act::Define(_) | Act::Fault(_) | Act::Kill(_) => {}
        }
        let (asked, whose) = match &step.act {
            Act::Call(_) | Act::Redeem(_) => {
                (Some(0), "an outcome (or that the gate is killed) and a number of effects are expected of every call")
            }
            Act::Batch(_) => (Some(1), "outcomes and a number of effects are expected of every batch"),
            Act::Approve(_) | Act::Deny(_) => (Some(2), "`decided` is expected of every decision"),
            Act::Show(_) => (Some(3), "`shown` is expected whenever an approver looks"),
            Act::Inspect(_) => (Some(4), "an inspection is expected of every question about one"),
            _ => (None, "nothing is expected of such a step"),
        };
        let counts = matches!(asked, Some(0 | 1));
        if said.iter().enumerate().any(|(kind, said)| *said != (asked == Some(kind)))
            || expect.effects.is_some() != counts
        {
            return Err(format!("step {at}: {whose}, and nothing that other steps are asked for"));
        }
        let mut outcomes = expect.outcome.iter().chain(expect.outcomes.iter().flatten());
        if outcomes.any(|outcome| outcome.success == outcome.code.is_some()) {
            return Err(format!("step {at}: a failure has a code, and a success has none"));
        }
        for id in ids {
            if !calls.insert(id.clone()) {
                return Err(format!("step {at}: there is a call `{id}` already"));
            }
        }
    }
    if world
        .quota
        .iter()
        .chain(&world.attempts)
        .any(|quota| quota.limit == 0 || quota.window_ms % u64::from(quota.limit) != 0)
    {
        return Err("the window of a quota is a multiple of its limit, which is at least 1".to_owned());
    }
    Ok(())
}
