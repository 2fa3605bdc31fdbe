//! What the validator found, in messages of our own: where, and why, and never the value (invariant L4).
//!
//! The wording is that of the core's schemas, so a caller reads the same whichever of the two a tool has.

use std::fmt;

use callgate_core::fields::{write_key, write_name};
use callgate_core::nearest::nearest;
use callgate_core::schema::Literal;
use callgate_core::tool::Violation;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use super::fault::{SchemaError, SchemaFault};

/// How many values or names a message lists.
const LISTED: usize = 16;
/// How much of a value that the schema names a message shows, in characters.
const SHOWN: usize = 80;

/// Tells of one error, or of those that are behind it. Whether it told anything.
pub(super) fn tell(
    error: &ValidationError<'_>,
    root: &Value,
    document: &Value,
    report: &mut dyn FnMut(Violation<'_>),
) -> bool {
    let field = Field { root, location: error.instance_path() };
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let declared = declared(document, error.schema_path());
            for name in unexpected {
                report(Violation { field: &field, reason: &Unknown { name, declared: &declared } });
            }
            !unexpected.is_empty()
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => match closest(context, error.instance_path()) {
            // Only one of the alternatives can have been meant: its errors say more.
            Some(branch) => branch.iter().fold(false, |told, error| tell(error, root, document, report) | told),
            None => {
                report(Violation { field: &field, reason: &Reason { error } });
                true
            }
        },
        _ => {
            report(Violation { field: &field, reason: &Reason { error } });
            true
        }
    }
}

/// The error of a schema that the validator does not take.
pub(super) fn schema_error(error: &ValidationError<'_>) -> SchemaError {
    let at = error.instance_path().as_str();
    let fault = match error.kind() {
        Kind::Format { format } if format == "regex" => SchemaFault::Pattern,
        Kind::Referencing(_) => SchemaFault::Reference,
        Kind::Pattern { .. } | Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            SchemaFault::Pattern
        }
        Kind::AnyOf { .. } if at.ends_with("/type") => SchemaFault::Value {
            reason: "must be one or more of null, boolean, integer, number, string, array, object".to_owned(),
        },
        _ => SchemaFault::Value { reason: format!("is no JSON Schema: {}", Reason { error }) },
    };
    SchemaError::new(at, fault)
}

/// The alternative that must have been meant: the only one whose errors are not about the type of this very value, or about
/// a value that tells alternatives apart.
fn closest<'e>(
    context: &'e [Vec<ValidationError<'static>>],
    here: &Location,
) -> Option<&'e [ValidationError<'static>]> {
    let other_type = |error: &ValidationError<'_>| {
        matches!(error.kind(), Kind::Type { .. }) && error.instance_path().as_str() == here.as_str()
    };
    let other_tag = |error: &ValidationError<'_>| {
        matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. })
            && error
                .instance_path()
                .as_str()
                .strip_prefix(here.as_str())
                .is_some_and(|below| below.matches('/').count() <= 1)
    };
    let fitting = |unfit: &dyn Fn(&ValidationError<'_>) -> bool| {
        let mut fitting = context.iter().filter(|errors| !errors.iter().any(unfit));
        (fitting.next(), fitting.next())
    };
    match fitting(&other_type) {
        (Some(only), None) => Some(only),
        (None, _) => None,
        _ => match fitting(&|error| other_type(error) || other_tag(error)) {
            (Some(only), None) => Some(only),
            _ => None,
        },
    }
}

/// The names that the schema declares beside the keyword at `keyword`.
fn declared<'d>(document: &'d Value, keyword: &Location) -> Vec<&'d str> {
    let path = keyword.as_str();
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let properties = document.pointer(parent).and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    properties.into_iter().flat_map(|properties| properties.keys()).map(String::as_str).collect()
}

/// A place in a value, `filter.limit` or `rows[3].price`.
struct Field<'e> {
    /// Tells names from positions, which look alike in a location.
    root: &'e Value,
    location: &'e Location,
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = Some(self.root);
        for (nth, segment) in self.location.into_iter().enumerate() {
            let name = match &segment {
                LocationSegment::Property(name) => name.to_string(),
                LocationSegment::Index(index) => index.to_string(),
            };
            match value {
                Some(Value::Array(items)) => {
                    write!(f, "[{name}]")?;
                    value = name.parse().ok().and_then(|index: usize| items.get(index));
                }
                within => {
                    write_key(f, name.chars(), nth == 0)?;
                    value = within.and_then(|object| object.get(&name));
                }
            }
        }
        Ok(())
    }
}

/// A member that the schema does not declare.
struct Unknown<'e> {
    name: &'e str,
    declared: &'e [&'e str],
}

impl fmt::Display for Unknown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unknown property: ")?;
        write_name(f, self.name.chars())?;
        if let Some(meant) = nearest(self.name.chars(), self.declared.iter().copied()) {
            f.write_str(" (did you mean ")?;
            write_name(f, meant.chars())?;
            return f.write_str("?)");
        }
        if self.declared.is_empty() {
            return f.write_str(" (none is accepted)");
        }
        f.write_str(" (known: ")?;
        for (nth, name) in self.declared.iter().enumerate() {
            f.write_str(if nth > 0 { ", " } else { "" })?;
            if nth == LISTED {
                f.write_str("...")?;
                break;
            }
            write_name(f, name.chars())?;
        }
        f.write_str(")")
    }
}

/// A value that the schema names, as JSON, and no more of it than anybody reads.
struct Named<'v>(&'v Value);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            Value::String(text) => Literal::Text(text).to_string(),
            other => other.to_string(),
        };
        match text.char_indices().nth(SHOWN).and_then(|(cut, _)| text.get(..cut)) {
            Some(start) => write!(f, "{start}..."),
            None => f.write_str(&text),
        }
    }
}

/// Why a value does not fit.
struct Reason<'e> {
    error: &'e ValidationError<'e>,
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error.kind() {
            Kind::Type { kind } => {
                f.write_str("Expected ")?;
                write_types(f, kind)?;
                write!(f, ", got {}", type_name(self.error.instance()))
            }
            Kind::Required { property: Value::String(name) } => {
                f.write_str("Missing required field: ")?;
                write_name(f, name.chars())
            }
            Kind::Constant { expected_value } => write!(f, "Value must be {}", Named(expected_value)),
            Kind::Enum { options } => {
                f.write_str("Value must be one of: ")?;
                for (nth, option) in options.as_array().into_iter().flatten().enumerate() {
                    f.write_str(if nth > 0 { ", " } else { "" })?;
                    if nth == LISTED {
                        return f.write_str("...");
                    }
                    write!(f, "{}", Named(option))?;
                }
                Ok(())
            }
            Kind::Minimum { limit } => write!(f, "Value too small (min: {limit})"),
            Kind::Maximum { limit } => write!(f, "Value too large (max: {limit})"),
            Kind::ExclusiveMinimum { limit } => write!(f, "Value too small (must be above {limit})"),
            Kind::ExclusiveMaximum { limit } => write!(f, "Value too large (must be below {limit})"),
            Kind::MultipleOf { multiple_of } => write!(f, "Value must be a multiple of {multiple_of}"),
            Kind::MinLength { limit } => write!(f, "String too short (min: {limit} characters)"),
            Kind::MaxLength { limit } => write!(f, "String too long (max: {limit} characters)"),
            Kind::Pattern { pattern } => {
                write!(f, "String does not match the pattern {}", Named(&Value::String(pattern.clone())))
            }
            Kind::Format { format } => write!(f, "String is no valid {}", Named(&Value::String(format.clone()))),
            Kind::MinItems { limit } => write!(f, "Too few items (min: {limit})"),
            Kind::MaxItems { limit } => write!(f, "Too many items (max: {limit})"),
            Kind::AdditionalItems { limit } => write!(f, "Too many items (max: {limit})"),
            Kind::UnevaluatedItems { .. } => f.write_str("Has items that are not accepted"),
            Kind::UniqueItems => f.write_str("Items must differ from each other"),
            Kind::Contains => f.write_str("Has too few or too many of the items that it must contain"),
            Kind::MinProperties { limit } => write!(f, "Too few properties (min: {limit})"),
            Kind::MaxProperties { limit } => write!(f, "Too many properties (max: {limit})"),
            Kind::PropertyNames { error } => {
                f.write_str("A property's name is not accepted: ")?;
                write!(f, "{}", Reason { error })
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => write_alternatives(f, context, self.error),
            Kind::OneOfMultipleValid { .. } => {
                f.write_str("Fits more than one of the alternatives, and must fit exactly one")
            }
            Kind::Not { .. } => f.write_str("Fits what it must not fit"),
            Kind::FalseSchema => f.write_str("No value is accepted here"),
            _ => f.write_str("Does not fit the schema"),
        }
    }
}

fn write_types(f: &mut fmt::Formatter<'_>, kind: &TypeKind) -> fmt::Result {
    match kind {
        TypeKind::Single(name) => write!(f, "{name}"),
        TypeKind::Multiple(names) => names.iter().enumerate().try_for_each(|(nth, name)| {
            f.write_str(if nth > 0 { " or " } else { "" })?;
            write!(f, "{name}")
        }),
    }
}

/// When all alternatives ask for another type, the types; else their number.
fn write_alternatives(
    f: &mut fmt::Formatter<'_>,
    context: &[Vec<ValidationError<'static>>],
    error: &ValidationError<'_>,
) -> fmt::Result {
    let kinds: Option<Vec<&TypeKind>> = context
        .iter()
        .map(|errors| {
            errors.iter().find_map(|error| match error.kind() {
                Kind::Type { kind } => Some(kind),
                _ => None,
            })
        })
        .collect();
    match kinds {
        Some(kinds) if !kinds.is_empty() => {
            f.write_str("Expected ")?;
            for (nth, kind) in kinds.into_iter().enumerate() {
                f.write_str(if nth > 0 { " or " } else { "" })?;
                write_types(f, kind)?;
            }
            write!(f, ", got {}", type_name(error.instance()))
        }
        _ => write!(f, "Fits none of the {} alternatives", context.len()),
    }
}

/// The type as JSON Schema names it.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(|float| float.fract() != 0.0) => {
            "number"
        }
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
