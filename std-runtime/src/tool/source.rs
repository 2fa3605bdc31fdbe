//! Where a tool's schemas come from, and what checks values against them.

use std::borrow::Cow;
use std::fmt;

use callgate_core::args::Args;
use callgate_core::json::{KeySlot, Limits, ReadError, Scanned, key_capacity, scan};
use callgate_core::schema::{Schema, Types};
use callgate_core::tool::Violation;
use serde_json::Value;

use super::error::SchemaProblem;
use crate::output::Reply;
use crate::schema::{JsonSchema, Profile, SchemaError};
use crate::value_text::sorted_text;

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

    /// A schema that fits `profile`.
    ///
    /// Fails with everything that is wrong with it.
    pub(super) fn new(source: &SchemaSource, profile: Profile) -> Result<Self, Vec<SchemaProblem>> {
        let (text, value) = read(&text_of(source)?, &Limits::DEFAULT, |scanned| {
            let root = scanned.value();
            let mut compact = String::new();
            // A string takes everything.
            let _ = root.write_json(&mut compact);
            root.parse::<Value>().map(|value| (compact, value)).map_err(|error| error.to_string())
        })
        .map_err(|error| error.to_string())
        .flatten()
        .map_err(|error| vec![SchemaProblem::NotJson(error)])?;
        if value == Value::Bool(true) || value.as_object().is_some_and(serde_json::Map::is_empty) {
            return if profile == Profile::STRICT { Err(vec![SchemaProblem::Missing]) } else { Ok(Self::none()) };
        }
        let checker = match source {
            SchemaSource::Const(schema) if profile != Profile::VALUE && schema.types() != Types::OBJECT => {
                return Err(vec![SchemaProblem::NotAnObject]);
            }
            SchemaSource::Const(schema) => {
                if profile == Profile::STRICT {
                    drop(JsonSchema::new(&value, profile).map_err(|error| refused(&error))?);
                }
                Checker::Const(*schema)
            }
            SchemaSource::Text(_) | SchemaSource::Value(_) => {
                Checker::Json(Box::new(JsonSchema::new(&value, profile).map_err(|error| refused(&error))?))
            }
        };
        Ok(Self { text: Some(text), value, checker })
    }
}

fn text_of(source: &SchemaSource) -> Result<Cow<'_, str>, Vec<SchemaProblem>> {
    match source {
        SchemaSource::Text(text) => Ok(Cow::Borrowed(text)),
        SchemaSource::Value(value) => {
            sorted_text(value).map(Cow::Owned).map_err(|fmt::Error| vec![SchemaProblem::TooDeep])
        }
        SchemaSource::Const(schema) => {
            schema.check().map_err(|error| vec![SchemaProblem::Unusable(error.to_string())])?;
            let mut text = String::new();
            schema.write_json_schema(&mut text).map_err(|fmt::Error| vec![SchemaProblem::TooDeep])?;
            Ok(Cow::Owned(text))
        }
    }
}

fn refused(error: &SchemaError) -> Vec<SchemaProblem> {
    error.faults().iter().map(|(at, fault)| SchemaProblem::Refused { at: at.clone(), fault: fault.clone() }).collect()
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
    Json(Box<JsonSchema>),
}

impl Checker {
    pub(super) fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        match self {
            Self::Anything => {}
            Self::Const(schema) => schema.validate(args, report),
            Self::Json(schema) => schema.validate(args, report),
        }
    }

    /// The schema, where the core can check it by itself.
    pub(super) const fn schema(&self) -> Option<&Schema<'static>> {
        match self {
            Self::Const(schema) => Some(schema),
            Self::Anything | Self::Json(_) => None,
        }
    }

    /// Checks a result.
    pub(super) fn validate_output(&self, output: &Reply, report: &mut dyn FnMut(Violation<'_>)) {
        match self {
            Self::Anything => {}
            Self::Json(schema) => schema.validate_value(output.data(), report),
            Self::Const(schema) => {
                // The result was bounded before, in size and in depth.
                let limits = Limits { bytes: u32::MAX, nodes: u32::MAX, members: u32::MAX, ..Limits::DEFAULT };
                let read = output.data_text().map_err(|fmt::Error| None).and_then(|text| {
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
