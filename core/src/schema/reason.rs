//! What is wrong with a value, and what would be right. Never the value (invariant L4): only what the schema says, and names.

use core::fmt;

use super::{Additional, Choices, Limit, Literal, Schema, Types};
use crate::fields::write_name;
use crate::json::{Number, Text};
use crate::nearest::nearest;

/// How many values or names a message lists.
const LISTED: usize = 16;

/// Why a value does not fit.
pub(super) enum Reason<'r> {
    Type {
        expected: Types,
        got: &'static str,
    },
    Choice {
        types: Types,
        choices: Choices<'r>,
    },
    Below(Limit),
    Beyond(Limit),
    Width {
        least: Option<Number>,
        greatest: Option<Number>,
    },
    Notation,
    ShortText(u32),
    LongText(u32),
    FewItems(u32),
    ManyItems(u32),
    Missing(&'r str),
    /// An object that has none of its properties or several, where one is asked for.
    Tag(&'r Schema<'r>),
    Unknown {
        name: Text<'r>,
        object: &'r Schema<'r>,
    },
    /// The schema is one that [`Schema::check`] refuses.
    Unusable,
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { expected, got } => write!(f, "Expected {expected}, got {got}"),
            Self::Choice { choices: Choices::Only(value), .. } => write!(f, "Value must be {value}"),
            Self::Choice { types, choices } => {
                f.write_str("Value must be one of: ")?;
                write_choices(f, *types, choices)
            }
            Self::Below(Limit { at, exclusive: false }) => write!(f, "Value too small (min: {at})"),
            Self::Below(Limit { at, exclusive: true }) => write!(f, "Value too small (must be above {at})"),
            Self::Beyond(Limit { at, exclusive: false }) => write!(f, "Value too large (max: {at})"),
            Self::Beyond(Limit { at, exclusive: true }) => write!(f, "Value too large (must be below {at})"),
            Self::Width { least: Some(least), greatest: Some(greatest) } => {
                write!(f, "Integer out of range (min: {least}, max: {greatest})")
            }
            Self::Width { .. } => f.write_str("Integer out of range"),
            Self::Notation => f.write_str("Integer beyond 2^53 must be written without point and exponent"),
            Self::ShortText(chars) => write!(f, "String too short (min: {chars} characters)"),
            Self::LongText(chars) => write!(f, "String too long (max: {chars} characters)"),
            Self::FewItems(items) => write!(f, "Too few items (min: {items})"),
            Self::ManyItems(items) => write!(f, "Too many items (max: {items})"),
            Self::Missing(name) => {
                f.write_str("Missing required field: ")?;
                write_name(f, name.chars())
            }
            Self::Tag(object) => {
                f.write_str("Exactly one property is expected, of: ")?;
                write_names(f, object)
            }
            Self::Unknown { name, object } => write_unknown(f, *name, object),
            Self::Unusable => f.write_str("The tool's schema can't be checked; its `check` says why"),
        }
    }
}

fn write_choices(f: &mut fmt::Formatter<'_>, types: Types, choices: &Choices<'_>) -> fmt::Result {
    let mut nth = 0usize;
    let mut list = |value: Literal<'_>| {
        nth = nth.saturating_add(1);
        match nth {
            1 => write!(f, "{value}"),
            2..=LISTED => write!(f, ", {value}"),
            _ if nth == LISTED + 1 => f.write_str(", ..."),
            _ => Ok(()),
        }
    };
    choices.each(types, &mut list)
}

fn write_unknown(f: &mut fmt::Formatter<'_>, name: Text<'_>, object: &Schema<'_>) -> fmt::Result {
    f.write_str("Unknown property: ")?;
    write_name(f, name.chars())?;
    let declared = || object.properties.iter().map(|property| property.name);
    if let Some(meant) = nearest(name.chars(), declared()) {
        f.write_str(" (did you mean ")?;
        write_name(f, meant.chars())?;
        return f.write_str("?)");
    }
    if object.properties.is_empty() {
        return f.write_str(" (none is accepted)");
    }
    f.write_str(" (known: ")?;
    write_names(f, object)?;
    f.write_str(")")
}

/// Lists the declared properties.
fn write_names(f: &mut fmt::Formatter<'_>, object: &Schema<'_>) -> fmt::Result {
    for (nth, property) in object.properties.iter().enumerate() {
        if nth > 0 {
            f.write_str(", ")?;
        }
        if nth == LISTED {
            return f.write_str("...");
        }
        write_name(f, property.name.chars())?;
    }
    Ok(())
}

impl<'a> Choices<'a> {
    /// Hands out the values, in order.
    pub(super) fn each(&self, types: Types, take: &mut dyn FnMut(Literal<'a>) -> fmt::Result) -> fmt::Result {
        match self {
            Self::Free => Ok(()),
            Self::Only(value) => take(*value),
            Self::Values(values) => values.iter().try_for_each(|value| take(*value)),
            Self::Texts(texts) => {
                texts.iter().try_for_each(|text| take(Literal::Text(text)))?;
                if types.contains(Types::NULL) { take(Literal::Null) } else { Ok(()) }
            }
        }
    }
}

/// Whether the schema says anything about what is within an object.
pub(super) const fn concerns_members(schema: &Schema<'_>) -> bool {
    !schema.properties.is_empty() || !matches!(schema.additional, Additional::Allowed)
}
