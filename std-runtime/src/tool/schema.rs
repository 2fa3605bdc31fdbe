//! Where a tool's schemas come from, and what checks values against them.

use std::fmt;

use callgate_core::args::Args;
use callgate_core::json::{KeySlot, Kind, Limits, ReadError, Scanned, key_capacity, scan};
use callgate_core::schema::Schema;
use callgate_core::tool::Violation;
use serde_json::Value;

use super::error::SchemaProblem;
use crate::value_text::{sorted_text, write_value};

/// A schema as an author gives it: JSON Schema 2020-12 as text or as a value, or a constant of the core.
///
/// The order of properties in a text is kept for the model that reads it. In a value it depends on how the program was
/// built, so a value is written with its members sorted: the same definition has the same digest in every build
/// (invariant N5).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SchemaSource {
    /// JSON text.
    Text(String),
    /// A parsed value.
    Value(Value),
    /// A constant.
    Const(Schema<'static>),
}

impl From<&str> for SchemaSource {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SchemaSource {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Value> for SchemaSource {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl From<Schema<'static>> for SchemaSource {
    fn from(schema: Schema<'static>) -> Self {
        Self::Const(schema)
    }
}

/// A schema that can be used.
pub(super) struct Prepared {
    /// As compact text; nothing for one that accepts everything.
    pub(super) text: Option<String>,
    /// As a value.
    pub(super) value: Value,
    pub(super) checker: Checker,
}

impl Prepared {
    /// The schema of a tool that declares none.
    pub(super) const fn none() -> Self {
        Self { text: None, value: Value::Bool(true), checker: Checker::Anything }
    }

    /// A schema for arguments, which always are one object.
    pub(super) fn for_arguments(source: &SchemaSource) -> Result<Self, SchemaProblem> {
        let prepared = Self::new(source)?;
        match prepared.value.get("type").and_then(Value::as_str) {
            Some("object") => Ok(prepared),
            _ if prepared.text.is_none() => Ok(prepared),
            _ => Err(SchemaProblem::NotAnObject),
        }
    }

    /// A schema for any value.
    pub(super) fn new(source: &SchemaSource) -> Result<Self, SchemaProblem> {
        let text = match source {
            SchemaSource::Text(text) => text.clone(),
            SchemaSource::Value(value) => sorted_text(value).map_err(|fmt::Error| SchemaProblem::TooDeep)?,
            SchemaSource::Const(schema) => {
                schema.check().map_err(|error| SchemaProblem::Unusable(error.to_string()))?;
                let mut text = String::new();
                schema.write_json_schema(&mut text).map_err(|fmt::Error| SchemaProblem::TooDeep)?;
                text
            }
        };
        let (text, value) = read(&text, &Limits::DEFAULT, |scanned| {
            let root = scanned.value();
            let mut compact = String::new();
            // A string takes everything.
            let _ = root.write_json(&mut compact);
            let value = root.parse::<Value>().map_err(|error| SchemaProblem::NotJson(error.to_string()))?;
            Ok(match root.kind() {
                Kind::Object if root.members().next().is_none() => (None, value),
                Kind::Object => (Some(compact), value),
                Kind::Bool if root.as_bool() == Some(true) => (None, value),
                _ => return Err(SchemaProblem::NotASchema),
            })
        })
        .map_err(|error| SchemaProblem::NotJson(error.to_string()))??;
        let checker = match (source, &text) {
            (_, None) => Checker::Anything,
            (SchemaSource::Const(schema), Some(_)) => Checker::Const(*schema),
            (SchemaSource::Text(_) | SchemaSource::Value(_), Some(_)) => {
                return Err(SchemaProblem::Unusable(
                    "JSON Schema from outside can't be checked yet; declare a constant schema".to_owned(),
                ));
            }
        };
        Ok(Self { text, value, checker })
    }
}

/// Reads a text with the gate's strict reader and gives it to `look`.
fn read<R>(text: &str, limits: &Limits, look: impl FnOnce(Scanned<'_>) -> R) -> Result<R, ReadError> {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    scan(text.as_bytes(), &mut keys, limits).map(look)
}

/// What checks values.
pub(super) enum Checker {
    /// Nothing: every value fits.
    Anything,
    Const(Schema<'static>),
}

impl Checker {
    pub(super) fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        match self {
            Self::Anything => {}
            Self::Const(schema) => schema.validate(args, report),
        }
    }

    /// Checks a result.
    pub(super) fn validate_data(&self, data: &Value, report: &mut dyn FnMut(Violation<'_>)) {
        match self {
            Self::Anything => {}
            Self::Const(schema) => {
                let mut text = String::new();
                // The result was bounded before, in size and in depth.
                let limits = Limits { bytes: u32::MAX, nodes: u32::MAX, members: u32::MAX, ..Limits::DEFAULT };
                let read = write_value(data, &mut text).map_err(|fmt::Error| None).and_then(|()| {
                    read(&text, &limits, |scanned| schema.validate_value(scanned.value(), report)).map_err(Some)
                });
                match read {
                    Ok(()) => {}
                    Err(Some(error)) => report(Violation { field: &"", reason: &error }),
                    Err(None) => report(Violation { field: &"", reason: &"nests too deep" }),
                }
            }
        }
    }
}
