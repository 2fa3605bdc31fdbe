//! What is found wrong with an entry after the file was read: a program that isn't there, a schema that can't be checked.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::problem::{ConfigError, Problem};
use super::settings::{Config, Origin};
use super::source::Source;

/// Something that is wrong with an entry, found when it was put to use.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by whoever puts a configuration to use")]
pub struct Fault {
    /// The entry, as a path: `exec[0].args[2]`, `tools."fs.write".confirm`. Where there is none, the nearest above it is
    /// shown.
    pub entry: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

impl Config {
    /// The same report for faults that were found later as for those of the file: each with its place.
    #[must_use]
    pub fn refuse(&self, faults: impl IntoIterator<Item = Fault>) -> ConfigError {
        let faults = faults.into_iter();
        match &self.origin {
            Origin::Defaults => {
                ConfigError::new(&self.dir, faults.map(|fault| Problem::of_file(fault.message, fault.help)).collect())
            }
            Origin::File(source) => {
                let problem = |fault: Fault| {
                    let span = span_of(source, &fault.entry);
                    Problem::at(source, &span, fault.entry, fault.message, fault.help)
                };
                ConfigError::new(source.file(), faults.map(problem).collect())
            }
        }
    }
}

/// Where the entry stands, or the nearest above it.
fn span_of(source: &Source, entry: &str) -> Range<usize> {
    let (document, _) = DeTable::parse_recoverable(source.text());
    let mut span = 0..0;
    let mut table = Some(document.get_ref());
    let mut array = None;
    let mut rest = entry;
    while let Some((step, left)) = step(rest) {
        rest = left;
        let value = match step {
            Step::Key(key) => table.and_then(|table| table.get(key)),
            Step::Index(index) => array.and_then(|array: &toml::de::DeArray<'_>| array.get(index)),
        };
        let Some(value) = value else { break };
        span = value.span();
        table = value.get_ref().as_table();
        array = match value.get_ref() {
            DeValue::Array(array) => Some(array),
            _ => None,
        };
    }
    span
}

enum Step<'e> {
    Key(&'e str),
    Index(usize),
}

/// The first step of a path, and what follows it.
fn step(path: &str) -> Option<(Step<'_>, &str)> {
    let path = path.strip_prefix('.').unwrap_or(path);
    if let Some(index) = path.strip_prefix('[') {
        let (index, rest) = index.split_once(']')?;
        return Some((Step::Index(index.parse().ok()?), rest));
    }
    if let Some(key) = path.strip_prefix('"') {
        let (key, rest) = key.split_once('"')?;
        return Some((Step::Key(key), rest));
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (key, rest) = path.split_at_checked(end)?;
    (!key.is_empty()).then_some((Step::Key(key), rest))
}
