//! Why a tool can't be built.

use std::fmt;

use callgate_core::fields::FieldFault;
use callgate_core::name::NameError;

use crate::schema::SchemaFault;

/// Everything that is wrong with a tool's definition, each with the way to mend it.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolError {
    pub(super) tool: String,
    pub(super) problems: Vec<Problem>,
}

impl ToolError {
    /// The name of the tool, as it was given.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// What is wrong, in the order of the definition; at least one thing.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// `tool fs.read: ...`; several problems have a line each.
impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tool ")?;
        write_shown(f, &self.tool)?;
        match self.problems.as_slice() {
            [problem] => write!(f, ": {problem}"),
            problems => {
                write!(f, ": {} problems", problems.len())?;
                problems.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
            }
        }
    }
}

impl std::error::Error for ToolError {}

/// Writes a name or a path that may be anything: visible, and no more of it than anybody reads.
pub(crate) fn write_shown(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    const SHOWN: usize = 160;
    for c in name.chars().take(SHOWN) {
        if callgate_core::json::write::must_escape(c) && !matches!(c, '"' | '\\') {
            write!(f, "{}", c.escape_unicode())?;
        } else {
            write!(f, "{c}")?;
        }
    }
    if name.is_empty() {
        f.write_str("\"\"")
    } else if name.chars().nth(SHOWN).is_some() {
        f.write_str("...")
    } else {
        Ok(())
    }
}

struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_shown(f, self.0)
    }
}

/// One thing that is wrong with a definition, by the part of it that has to change.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The name.
    #[error("its name {0}; use 1 to 128 of A-Z a-z 0-9 _ . -")]
    Name(NameError),
    /// A text for people and models.
    #[error("its {part} {problem}")]
    Text {
        /// `description` or `version`.
        part: &'static str,
        /// What is wrong with it.
        problem: TextProblem,
    },
    /// A schema.
    #[error("its {part} schema {problem}")]
    Schema {
        /// `input` or `output`.
        part: &'static str,
        /// What is wrong with it.
        problem: SchemaProblem,
    },
    /// A clamp or a secret.
    #[error("field {}: {problem}", Shown(path))]
    Field {
        /// The path of the field, as it was given.
        path: String,
        /// What is wrong with it.
        problem: FieldProblem,
    },
    /// What it asks of callers or hosts.
    #[error("its {part}: {problem}")]
    Demand {
        /// `scopes`, `requirements` or `approver's scope`.
        part: &'static str,
        /// What is wrong with it.
        problem: DemandProblem,
    },
    /// A number that has to be greater.
    #[error("its {part} is below {least}; leave it out for the usual one")]
    TooSmall {
        /// `timeout`, `cost` or `cap on output`.
        part: &'static str,
        /// The least that it may be, with its unit.
        least: &'static str,
    },
    /// It says that it changes something and that it doesn't.
    #[error("it is said to be mutating and read-only; say one of the two")]
    Contradiction,
    /// It has nothing to run.
    #[error("it has no body; give it one with `handler` or `typed`")]
    NoBody,
}

/// What is wrong with a text for people and models.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextProblem {
    /// It is not there.
    #[error("is empty; say what a model or a reader has to know")]
    Empty,
    /// It is too long.
    #[error("has {bytes} bytes; shorten it to {max}")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// It holds a character that nobody sees, or that changes how others are shown.
    #[error("holds the character U+{:04X} at byte {at}, which readers don't see; remove it", u32::from(*character))]
    Invisible {
        /// The character.
        character: char,
        /// Where it stands, from 0.
        at: usize,
    },
}

/// What is wrong with a schema.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaProblem {
    /// It is no JSON text that the gate's reader takes.
    #[error("is no JSON that the gate reads: {0}")]
    NotJson(String),
    /// It nests too deep.
    #[error("nests too deep; make it flatter")]
    TooDeep,
    /// It is not there, and the tool says that it is strict.
    #[error("is missing, and the strict profile asks for one; declare what the tool takes")]
    Missing,
    /// It is not about objects, and arguments always are one.
    #[error("does not say `\"type\":\"object\"` at its root; arguments always are one object")]
    NotAnObject,
    /// A constant that can't be checked (invariant S6).
    #[error("can't be used: {0}")]
    Unusable(String),
    /// A part of a JSON Schema that can't be checked (invariant S6).
    #[error("at {}: {fault}", Shown(at))]
    Refused {
        /// The part, as a URI fragment such as `#/properties/limit`.
        at: String,
        /// What is wrong with it.
        fault: SchemaFault,
    },
}

/// What is wrong with a clamp or a secret.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FieldProblem {
    /// The rule by itself.
    #[error("{0}")]
    Rule(FieldFault),
    /// The schema declares no such field.
    #[error("the input schema declares no `{}`{}", Shown(name), Meant(nearest.as_deref()))]
    Undeclared {
        /// The part of the path that is not there.
        name: String,
        /// What most likely was meant.
        nearest: Option<String>,
    },
    /// The clamp is for values that the field doesn't take.
    #[error(
        "the clamp is for {clamp}, and the input schema admits none here; change the field's type, or drop the bound"
    )]
    NotOfType {
        /// `numbers` or `texts`.
        clamp: &'static str,
    },
    /// What the clamp makes of a value, the schema refuses.
    #[error("the input schema refuses what the clamp makes of a value; let their bounds overlap")]
    Refused,
    /// No integer is within the clamp.
    #[error("the clamp leaves no integer, and the input schema admits nothing else here; widen it")]
    NoInteger,
    /// The schema refuses all that the clamp would mend.
    #[error(
        "the input schema refuses every value that the clamp would mend, because it is checked first; \
         widen the schema's bounds, or drop the clamp"
    )]
    Shadowed,
    /// The schema lists the values.
    #[error("the input schema lists the values of this field, and a clamp makes others; drop one of the two")]
    Listed,
    /// A bound is no multiple of what the schema asks for.
    #[error("a bound of the clamp is no `multipleOf` of the input schema, so it would be refused; choose a multiple")]
    NoMultiple,
    /// Two clamps that can name the same value leave no room.
    #[error(
        "no number is within this clamp and the one of {}, which name a value together; let them overlap",
        Shown(other)
    )]
    NoRoom {
        /// The path of the other clamp.
        other: String,
    },
}

/// `; did you mean ...`, where something was.
struct Meant<'a>(Option<&'a str>);

impl fmt::Display for Meant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "; did you mean `{}`?", Shown(name)),
            None => f.write_str("; declare it, or correct the path"),
        }
    }
}

/// What is wrong with what a tool asks of callers or hosts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemandProblem {
    /// An empty list, which would read as a demand and ask for nothing (invariant F2).
    #[error("an empty list asks for nothing; leave it out")]
    Empty,
    /// One of them is no name.
    #[error(
        "`{}` {reason}; use 1 to 128 printable ASCII characters except space, quote, backslash and comma",
        Shown(name)
    )]
    Name {
        /// The name, as it was given.
        name: String,
        /// What is wrong with it.
        reason: NameError,
    },
}
