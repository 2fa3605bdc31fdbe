//! Names of tools as a provider admits them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{ExportError, Provider};

/// The names of some tools, as a provider admits them, and the way back. No two tools have the same: names that would become
/// one are refused together (V19), and never is one of them taken for the other.
#[derive(Clone, Debug)]
pub struct ToolNames {
    by_wire: HashMap<String, String>,
    by_tool: HashMap<String, String>,
}

impl ToolNames {
    /// Lowers names: what `provider` admits stays as it is, and `.` becomes `_` where it admits no dots. Nothing else is
    /// changed.
    ///
    /// # Errors
    /// A name is too long for the provider or starts as it admits no name to start, or two names become one.
    pub fn new<'n, I: IntoIterator<Item = &'n str>>(provider: Provider, names: I) -> Result<Self, ExportError> {
        let mut lowered = Self { by_wire: HashMap::new(), by_tool: HashMap::new() };
        for name in names {
            let wire = lower(provider, name)?;
            match lowered.by_wire.entry(wire) {
                Entry::Occupied(other) if other.get() != name => {
                    return Err(ExportError::SameName {
                        first: other.get().clone(),
                        second: name.to_owned(),
                        wire: other.key().clone(),
                    });
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(place) => {
                    drop(lowered.by_tool.insert(name.to_owned(), place.key().clone()));
                    place.insert(name.to_owned());
                }
            }
        }
        Ok(lowered)
    }

    /// The name of a tool for the provider.
    #[must_use]
    pub fn wire(&self, tool: &str) -> Option<&str> {
        self.by_tool.get(tool).map(String::as_str)
    }

    /// The tool that the provider's model means.
    #[must_use]
    pub fn tool(&self, wire: &str) -> Option<&str> {
        self.by_wire.get(wire).map(String::as_str)
    }
}

fn lower(provider: Provider, name: &str) -> Result<String, ExportError> {
    let grammar = provider.grammar();
    if name.len() > grammar.longest {
        return Err(ExportError::LongName { tool: name.to_owned(), max: grammar.longest });
    }
    if grammar.starts_with_letter && !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return Err(ExportError::FirstCharacter { tool: name.to_owned() });
    }
    Ok(if grammar.dots { name.to_owned() } else { name.replace('.', "_") })
}

/// Which names a provider admits, of those that a tool can have: `A-Z a-z 0-9 _ . -`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grammar {
    /// How many characters at most.
    pub(super) longest: usize,
    pub(super) dots: bool,
    pub(super) starts_with_letter: bool,
}
