//! The mutants as `cargo mutants --list --json` tells them.

use serde::Deserialize;

/// A place in a file, both from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// What a mutant changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
pub(crate) enum Genre {
    BinaryOperator,
    FnValue,
    MatchArm,
    MatchArmGuard,
    StructField,
    UnaryOperator,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Around {
    start: Place,
}

#[derive(Deserialize)]
struct Listed {
    file: String,
    genre: Genre,
    name: String,
    replacement: String,
    span: Around,
}

/// One mutant.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// From 1, in the order of the list.
    pub(crate) id: u32,
    /// The file, from the root of the workspace.
    pub(crate) file: String,
    pub(crate) genre: Genre,
    /// What `cargo mutants` calls it.
    pub(crate) name: String,
    pub(crate) replacement: String,
    pub(crate) start: Place,
}

/// Reads a list.
pub(crate) fn read(json: &str) -> serde_json::Result<Vec<Mutant>> {
    let listed: Vec<Listed> = serde_json::from_str(json)?;
    let mutants = (1..).zip(listed).map(|(id, Listed { file, genre, name, replacement, span })| Mutant {
        id,
        file,
        genre,
        name,
        replacement,
        start: span.start,
    });
    Ok(mutants.collect())
}
