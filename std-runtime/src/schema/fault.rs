//! Why a schema is refused, with the way to mend it.

use std::fmt;

use callgate_core::fields::write_name;

/// Everything that is wrong with a schema, up to [`SchemaError::MOST`] faults. `Display` gives a line for each.
#[derive(Clone, PartialEq, Debug)]
pub struct SchemaError {
    pub(super) faults: Vec<(String, SchemaFault)>,
}

impl SchemaError {
    /// The most faults that are told at once.
    pub const MOST: usize = 16;

    /// What is wrong, and where: a URI fragment such as `#/properties/limit`. At least one.
    #[must_use]
    pub fn faults(&self) -> &[(String, SchemaFault)] {
        &self.faults
    }

    pub(super) fn new(pointer: &str, fault: SchemaFault) -> Self {
        Self { faults: vec![(format!("#{pointer}"), fault)] }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (at, fault)) in self.faults.iter().enumerate() {
            if nth > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{at}: {fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SchemaError {}

/// Why a schema is refused.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum SchemaFault {
    /// It is no text that the gate reads.
    Unreadable(String),
    /// It is neither an object nor `true` or `false`.
    NotASchema,
    /// It does not say that arguments are an object.
    NotAnObject,
    /// `$schema` names another draft.
    Dialect,
    /// It nests deeper than [`super::MAX_DEPTH`].
    TooDeep,
    /// It holds more than [`super::MAX_SUBSCHEMAS`] schemas.
    TooMany,
    /// Checking one path of a value would take more than [`super::MAX_EXPANDED`] steps, or more than
    /// [`super::MAX_NESTED`] within each other.
    TooCostly,
    /// A keyword that the gate does not know.
    Keyword {
        /// The keyword.
        name: String,
        /// The one that was meant.
        meant: Option<&'static str>,
        /// What to do instead.
        advice: Option<&'static str>,
    },
    /// A keyword whose value is not what it must be.
    Value {
        /// Why.
        reason: String,
    },
    /// A reference that leaves the document, or leads to no schema.
    Reference,
    /// A reference that leads to itself and looks at nothing on the way.
    Loop,
    /// Draft-07 ignores what stands beside a reference.
    BesideReference(String),
    /// An identifier of a part.
    Identifier,
    /// A format that nobody checks.
    Format(String),
    /// A pattern that is none, or that can't be matched in linear time.
    Pattern,
    /// `uniqueItems` without a bound on the items.
    Unbounded,
    /// What [`super::Profile::STRICT`] asks for.
    Strict(&'static str),
}

impl fmt::Display for SchemaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reason) => write!(f, "the schema is not JSON as the gate reads it: {reason}"),
            Self::NotASchema => f.write_str("a schema is an object, or true or false"),
            Self::NotAnObject => f.write_str("arguments are an object; say \"type\": \"object\" at the root"),
            Self::Dialect => f.write_str(
                "$schema must be left out, or be \"https://json-schema.org/draft/2020-12/schema\" or \
                 \"http://json-schema.org/draft-07/schema#\", at the root only",
            ),
            Self::TooDeep => write!(f, "nests deeper than {} schemas; move parts into $defs", super::MAX_DEPTH),
            Self::TooMany => {
                write!(f, "holds more than {} schemas; make it smaller, or leave a part open", super::MAX_SUBSCHEMAS)
            }
            Self::TooCostly => write!(
                f,
                "checking one value may take more than {} steps, or {} within each other, since parts refer to parts that \
                 refer to parts; refer to each part from one place, or tell alternatives apart by a required property with \
                 a const of its own",
                super::MAX_EXPANDED,
                super::MAX_NESTED
            ),
            Self::Keyword { name, meant, advice } => {
                f.write_str("unknown keyword ")?;
                write_name(f, name.chars())?;
                match (advice, meant) {
                    (Some(advice), _) => write!(f, ": {advice}"),
                    (None, Some(meant)) => write!(f, "; did you mean {meant}?"),
                    (None, None) => f.write_str("; notes of your own must begin with x-"),
                }
            }
            Self::Value { reason } => f.write_str(reason),
            Self::Reference => f.write_str(
                "a reference must lead to a schema within the document, as \"#/$defs/name\"; nothing is ever fetched",
            ),
            Self::Loop => f.write_str("refers to itself without looking into the value on the way, so it says nothing"),
            Self::BesideReference(name) => {
                f.write_str("draft-07 ignores ")?;
                write_name(f, name.chars())?;
                f.write_str(" beside $ref; put both into an allOf")
            }
            Self::Identifier => {
                f.write_str("$id may stand at the root alone, as an absolute URI without a fragment; drop it")
            }
            Self::Format(name) => {
                f.write_str("format ")?;
                write_name(f, name.chars())?;
                f.write_str(" is not checked by anything; use a pattern, or one of: ")?;
                f.write_str(&super::keywords::FORMATS.join(", "))
            }
            Self::Pattern => f.write_str(
                "the pattern is no regular expression, is too large, or looks around or back, which takes more than \
                 linear time; rewrite it without",
            ),
            Self::Unbounded => {
                write!(f, "uniqueItems needs maxItems of at most {} beside it", super::MAX_UNIQUE_ITEMS)
            }
            Self::Strict(what) => write!(f, "the strict profile asks for {what}"),
        }
    }
}
