//! The mutants as `cargo mutants --list --json` tells them.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;

/// A place in a file, both from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    /// Where it is in a text, in bytes.
    fn offset(self, text: &str) -> Option<usize> {
        let line = text.split_inclusive('\n').nth(self.line.checked_sub(1)?)?;
        let before: usize = text.split_inclusive('\n').take(self.line - 1).map(str::len).sum();
        let within = line.char_indices().nth(self.column.checked_sub(1)?).map_or(line.len(), |(at, _)| at);
        Some(before + within)
    }
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
    end: Place,
}

#[derive(Deserialize)]
struct Function {
    span: Around,
}

#[derive(Deserialize)]
struct Listed {
    file: String,
    function: Option<Function>,
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
    /// The same without its place: what it keeps when lines above it come and go. Those that are called alike are counted.
    pub(crate) key: String,
    pub(crate) replacement: String,
    pub(crate) start: Place,
    end: Place,
    /// From where to where the function reaches that it stands in.
    around: (Place, Place),
}

impl Mutant {
    /// What it changes of the text of its file, in bytes.
    pub(crate) fn place(&self, text: &str) -> Option<Range<usize>> {
        let (start, end) = (self.start.offset(text)?, self.end.offset(text)?);
        // A field goes with its comma.
        Some(start..end + usize::from(self.genre == Genre::StructField && text.get(end..)?.starts_with(',')))
    }

    /// Where the function is that it stands in, in bytes.
    pub(crate) fn function(&self, text: &str) -> Option<Range<usize>> {
        Some(self.around.0.offset(text)?..self.around.1.offset(text)?)
    }
}

/// Reads a list.
pub(crate) fn read(json: &str) -> serde_json::Result<Vec<Mutant>> {
    let listed: Vec<Listed> = serde_json::from_str(json)?;
    let mut alike = BTreeMap::new();
    let mutants = (1..).zip(listed).map(|(id, Listed { file, function, genre, name, replacement, span })| {
        let what = name.splitn(4, ':').last().unwrap_or_default().trim();
        let count = alike.entry((file.clone(), what.to_owned())).and_modify(|count| *count += 1).or_insert(1u32);
        let key = format!("{file}: {what} #{count}");
        let around = function.map_or((span.start, span.end), |function| (function.span.start, function.span.end));
        Mutant { id, file, genre, name, key, replacement, start: span.start, end: span.end, around }
    });
    Ok(mutants.collect())
}
