//! JSON Schema, as tools from outside bring it: what may be used, and what checks values against it.
//!
//! A [`JsonSchema`] means what JSON Schema says, in draft 2020-12 or draft-07. The validator is the `jsonschema` crate; this
//! module decides beforehand what it is given. Whatever could not be checked in bounded time and memory, or would be
//! passed over in silence, is refused when the tool is registered (invariants S5, S6):
//!
//! - keywords that nobody knows, such as a misspelt `maxLenght`, and formats that nobody checks;
//! - references that leave the document: nothing is ever fetched;
//! - patterns that need more than linear time;
//! - schemas that are too deep, too many, or multiply each other (see [`MAX_EXPANDED`]).
//!
//! What a caller sends is then checked by the validator, and told in messages of our own: where, and why, and what would be
//! right, and never the value (invariant L4).
//!
//! A schema that is a constant of the program is better off as a [`callgate_core::schema::Schema`], which needs no heap.

mod admit;
mod cost;
mod fault;
mod keywords;
mod reason;

pub use fault::{SchemaError, SchemaFault};

use callgate_core::args::Args;
use callgate_core::json::{KeySlot, Limits, key_capacity, scan};
use callgate_core::tool::Violation;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// The deepest nesting of schemas, the root counted.
pub const MAX_DEPTH: u8 = 32;
/// The most schemas within a schema, itself counted.
pub const MAX_SUBSCHEMAS: usize = 1024;
/// The most schemas that may look at a value and what is within it, along the longest way into it. Schemas that are
/// referred to count wherever they are referred to.
pub const MAX_EXPANDED: u64 = 4096;
/// The most of these schemas that may be applied within each other, which bounds the stack: about 2 KiB for each in a
/// program that is not optimized.
pub const MAX_NESTED: u64 = 512;
/// The most items of an array that must differ from each other, since each is compared with all others.
pub const MAX_UNIQUE_ITEMS: u32 = 10_000;

/// How deep the document of a schema may be, values that it names included.
const MAX_DOCUMENT: usize = 128;
/// How large a compiled pattern may be, and the tables made while it is matched, in bytes.
const PATTERN_BYTES: usize = 1 << 20;
/// How much of values the validator may copy for its own account of what is wrong, in bytes of their text.
const COPIED_BYTES: u64 = 4 << 20;
/// How long the text of arguments may be for all violations to be told, in bytes; of longer ones the first is.
const TOLD_BYTES: usize = 64 << 10;

/// What a schema must be, beyond what can be checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    object_root: bool,
    strict: bool,
}

impl Profile {
    /// For the arguments of a tool: the root is an object.
    pub const ARGUMENTS: Self = Self { object_root: true, strict: false };
    /// For any value, such as the result of a tool.
    pub const VALUE: Self = Self { object_root: false, strict: false };
    /// For arguments, and with a bound on everything: `additionalProperties` on each object, `maxLength` on each string,
    /// `maxItems` on each array, a minimum and a maximum on each number.
    pub const STRICT: Self = Self { object_root: true, strict: true };
}

/// A draft of JSON Schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dialect {
    Draft202012,
    Draft07,
}

impl Dialect {
    /// The draft that the document declares.
    fn of(document: &Value) -> Option<Self> {
        match document.get("$schema") {
            None => Some(Self::Draft202012),
            Some(Value::String(name)) => match name.as_str() {
                "https://json-schema.org/draft/2020-12/schema" | "https://json-schema.org/draft/2020-12/schema#" => {
                    Some(Self::Draft202012)
                }
                "http://json-schema.org/draft-07/schema" | "http://json-schema.org/draft-07/schema#" => {
                    Some(Self::Draft07)
                }
                _ => None,
            },
            Some(_) => None,
        }
    }

    const fn draft(self) -> Draft {
        match self {
            Self::Draft202012 => Draft::Draft202012,
            Self::Draft07 => Draft::Draft7,
        }
    }
}

/// A schema that was admitted, ready to check values.
///
/// ```
/// use callgate_std::schema::{JsonSchema, Profile};
/// use serde_json::json;
///
/// let schema = JsonSchema::new(
///     &json!({"type": "object", "properties": {"limit": {"type": "integer", "maximum": 100}}}),
///     Profile::ARGUMENTS,
/// )?;
/// let mut violations = Vec::new();
/// schema.validate_value(&json!({"limit": 500}), &mut |violation| violations.push(violation.to_string()));
/// assert_eq!(violations, ["limit: Value too large (max: 100)"]);
///
/// let typo = json!({"type": "object", "properties": {"name": {"type": "string", "maxLenght": 9}}});
/// let refused = JsonSchema::new(&typo, Profile::ARGUMENTS).unwrap_err();
/// assert_eq!(refused.to_string(), "#/properties/name: unknown keyword maxLenght; did you mean maxLength?");
/// # Ok::<(), callgate_std::schema::SchemaError>(())
/// ```
#[derive(Debug)]
pub struct JsonSchema {
    document: Value,
    validator: Validator,
    /// How deep a value may be. Deeper ones are refused.
    depth: usize,
    /// The steps that an account of what is wrong takes, for values of each depth. There is none for deeper ones.
    account: Vec<u64>,
    /// Whether the validator's account of what is wrong holds copies of values.
    copies: bool,
}

impl JsonSchema {
    /// Admits a schema.
    ///
    /// # Errors
    /// Says all that is wrong with it, and how to mend it.
    pub fn new(document: &Value, profile: Profile) -> Result<Self, SchemaError> {
        // What follows walks through the document as deep as it is.
        if is_deeper(document, MAX_DOCUMENT) {
            return Err(SchemaError::new("", SchemaFault::TooDeep));
        }
        let admitted = admit::admit(document, profile)?;
        let validator = jsonschema::options()
            .with_draft(admitted.dialect.draft())
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES))
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            .offline()
            .build(document)
            .map_err(|error| reason::schema_error(&error))?;
        let depth = admitted.steps.len().saturating_sub(1);
        Ok(Self { document: document.clone(), validator, depth, account: admitted.account, copies: copies(document) })
    }

    /// Admits a schema as text, which the gate's strict reader reads.
    ///
    /// # Errors
    /// As [`Self::new`]; and where the text is no JSON that the gate reads.
    pub fn parse(text: &str, profile: Profile) -> Result<Self, SchemaError> {
        let unreadable = |reason: String| SchemaError::new("", SchemaFault::Unreadable(reason));
        let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
        let scanned =
            scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).map_err(|error| unreadable(error.to_string()))?;
        let document: Value = scanned.value().parse().map_err(|error| unreadable(error.to_string()))?;
        Self::new(&document, profile)
    }

    /// The schema.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.document
    }

    /// Checks arguments and tells `report` of each violation, in a stable order. Of arguments longer than 64 KiB only the
    /// first is told.
    ///
    /// Nothing is changed or coerced (invariant S9).
    pub fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        match args.parse::<Value>() {
            Ok(value) => self.check(&value, Some(args.sent().len()), report),
            // Every JSON value is one, so this can't happen; if it does, the arguments are refused.
            Err(error) => report(Violation { field: &"", reason: &error }),
        }
    }

    /// Checks any value; see [`Self::validate`].
    pub fn validate_value(&self, value: &Value, report: &mut dyn FnMut(Violation<'_>)) {
        self.check(value, None, report);
    }

    /// Checks `value`, whose text has `size` bytes if that is known.
    fn check(&self, value: &Value, size: Option<usize>, report: &mut dyn FnMut(Violation<'_>)) {
        // Before anything looks into the value: the bound is what makes that safe.
        if is_deeper(value, self.depth) {
            let reason = format_args!("Nested too deep for the schema (max: {} levels)", self.depth);
            return report(Violation { field: &"", reason: &reason });
        }
        if self.validator.is_valid(value) {
            return;
        }
        let size = size.unwrap_or_else(|| text_size(value));
        let mut told = false;
        if !self.accountable(value, size) {
            // Whatever is wrong, finding out where would take too long, or too much memory.
        } else if size > TOLD_BYTES {
            if let Err(error) = self.validator.validate(value) {
                told = reason::tell(&error, value, &self.document, report);
            }
        } else {
            for error in self.validator.iter_errors(value) {
                told |= reason::tell(&error, value, &self.document, report);
            }
        }
        if !told {
            report(Violation { field: &"", reason: &"The arguments do not fit the schema" });
        }
    }

    /// Whether the validator can give an account of what is wrong with a value. It looks at all alternatives for it, and
    /// copies what it looks at.
    fn accountable(&self, value: &Value, size: usize) -> bool {
        let Some((steps, levels)) = self.account.split_last() else { return false };
        let copied = steps.saturating_mul(size as u64);
        !is_deeper(value, levels.len()) && (!self.copies || copied <= COPIED_BYTES)
    }
}

/// Whether a value nests deeper than so many levels; a scalar has none.
fn is_deeper(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => most == 0 || items.iter().any(|item| is_deeper(item, most - 1)),
        Value::Object(members) => most == 0 || members.values().any(|member| is_deeper(member, most - 1)),
        _ => false,
    }
}

/// About how long the text of a value is, in bytes.
fn text_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len().saturating_add(2),
        Value::Array(items) => items.iter().fold(2, |all, item| all.saturating_add(text_size(item)).saturating_add(1)),
        Value::Object(members) => members.iter().fold(2, |all, (name, member)| {
            all.saturating_add(name.len()).saturating_add(text_size(member)).saturating_add(4)
        }),
    }
}

/// Whether a schema has keywords for which the validator copies values into its errors. Where a property is called like
/// one, it is taken for one.
fn copies(schema: &Value) -> bool {
    match schema {
        Value::Array(parts) => parts.iter().any(copies),
        Value::Object(parts) => parts
            .iter()
            .any(|(name, part)| matches!(name.as_str(), "anyOf" | "oneOf" | "propertyNames") || copies(part)),
        _ => false,
    }
}
