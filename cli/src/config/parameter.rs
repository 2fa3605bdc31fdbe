//! `[exec.parameters.NAME]`: the arguments of a declared tool, in short form, and the JSON Schema that they stand for.

use callgate_core::clamp::Clamp;
use callgate_core::json::Number;
use serde_json::{Map, Value, json};
use toml::de::DeValue;

use super::decode::{Entry, Key, Keys, Table};
use super::field::{FieldRules, bound, top_level};
use super::problem::quoted;

/// The most characters of a string that states no `max_length`.
pub const DEFAULT_MAX_LENGTH: u32 = 4096;
/// The most items of a list that states no `max_items`.
pub const DEFAULT_MAX_ITEMS: u32 = 64;
/// The largest whole number that every reader of JSON keeps exactly (RFC 8259 section 6): the bound of an integer that
/// states none.
pub const MAX_EXACT_INTEGER: i64 = (1 << 53) - 1;
/// The most parameters of one tool.
const MAX_PARAMETERS: usize = 64;
/// The argument that a host may take for a confirmation token; it is never a tool's own (invariant S8).
const RESERVED: &str = "confirm_token";

pub(super) static KEYS: Keys = Keys {
    table: "exec.parameters.NAME",
    keys: &[
        Key {
            name: "type",
            takes: "\"string\", \"integer\", \"number\", \"boolean\" or \"array\"",
            example: "\"string\"",
        },
        Key { name: "description", takes: "a text in quotes", example: "\"How many commits.\"" },
        Key { name: "required", takes: "true or false", example: "true" },
        Key { name: "enum", takes: "a list of the values that are right", example: "[\"short\", \"full\"]" },
        Key { name: "min", takes: "a number", example: "1" },
        Key { name: "max", takes: "a number", example: "100" },
        Key { name: "min_length", takes: "a whole number", example: "1" },
        Key { name: "max_length", takes: "a whole number", example: "200" },
        Key { name: "pattern", takes: "a regular expression in quotes", example: "\"^[a-z]+$\"" },
        Key { name: "items", takes: "\"string\", \"integer\", \"number\" or \"boolean\"", example: "\"string\"" },
        Key { name: "min_items", takes: "a whole number", example: "1" },
        Key { name: "max_items", takes: "a whole number", example: "20" },
        Key { name: "clamp", takes: "true or false", example: "true" },
        Key { name: "secret", takes: "true or false", example: "true" },
    ],
};

/// The type of a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    String,
    Integer,
    Number,
    Boolean,
    Array,
}

impl Type {
    const SCALAR: [(&'static str, Self); 4] =
        [("string", Self::String), ("integer", Self::Integer), ("number", Self::Number), ("boolean", Self::Boolean)];
    const ANY: [(&'static str, Self); 5] = {
        let [string, integer, number, boolean] = Self::SCALAR;
        [string, integer, number, boolean, ("array", Self::Array)]
    };

    fn name(self) -> &'static str {
        Self::ANY.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// The closed schema of a tool without arguments.
pub(super) fn no_parameters() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

/// Reads `parameters` into a closed JSON Schema (design: unknown arguments are refused), and clamps and secrets into `fields`.
pub(super) fn read(parameters: &Entry<'_>, fields: &mut FieldRules) -> Value {
    let named = parameters.named();
    if named.len() > MAX_PARAMETERS {
        parameters.report_with(format!("a tool has at most {MAX_PARAMETERS} parameters"), None);
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, entry) in named {
        check_name(name, &entry);
        let Some(table) = entry.table(&KEYS) else {
            continue;
        };
        if let Some(schema) = parameter(name, &table, fields) {
            properties.insert(name.to_owned(), schema);
        }
        if table.boolean("required", false) {
            required.push(name);
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if let (Value::Object(schema), false) = (&mut schema, required.is_empty()) {
        schema.insert("required".into(), required.into());
    }
    schema
}

fn check_name(name: &str, entry: &Entry<'_>) {
    // A parameter is named in placeholders, so it has no braces, dots or dashes.
    let shaped = name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !shaped {
        let help = "a parameter's name is 1 to 64 of A-Z a-z 0-9 _ and starts with a letter or _";
        entry.report_key(format!("{} is no name for a parameter", quoted(name)), Some(help.into()));
    } else if name == RESERVED {
        let message = format!("`{RESERVED}` is reserved for the token of a confirmation");
        entry.report_key(message, Some("give the parameter another name".into()));
    }
}

fn parameter(name: &str, table: &Table<'_>, fields: &mut FieldRules) -> Option<Value> {
    let kind = table.require("type")?.one_of(&Type::ANY)?;
    let items = match (kind, table.get("items")) {
        (Type::Array, Some(items)) => items.one_of(&Type::SCALAR)?,
        (Type::Array, None) => Type::String,
        (_, Some(items)) => {
            misplaced(&items, kind);
            return None;
        }
        (_, None) => kind,
    };
    for (key, fits) in [
        ("min", matches!(items, Type::Integer | Type::Number)),
        ("max", matches!(items, Type::Integer | Type::Number)),
        ("min_length", items == Type::String),
        ("max_length", items == Type::String),
        ("pattern", items == Type::String),
        ("min_items", kind == Type::Array),
        ("max_items", kind == Type::Array),
        ("enum", items != Type::Boolean),
    ] {
        if let (false, Some(entry)) = (fits, table.get(key)) {
            misplaced(&entry, kind);
        }
    }
    let clamp = clamp(table, kind);
    let secret = table.boolean("secret", false);
    if clamp.is_some() || secret {
        fields.set(top_level(name), clamp, secret);
    }
    let mut schema = scalar(table, items, clamp.is_some());
    if kind == Type::Array {
        let (min, max) = lengths(table, ["min_items", "max_items"], DEFAULT_MAX_ITEMS);
        schema = json!({ "type": "array", "items": schema, "minItems": min, "maxItems": max });
    }
    if let (Value::Object(schema), Some(text)) = (&mut schema, description(table, clamp.is_some())) {
        schema.insert("description".into(), text.into());
    }
    Some(schema)
}

fn misplaced(entry: &Entry<'_>, kind: Type) {
    let help = match kind {
        Type::Array => "what its items are is said by `items`",
        _ => "leave it out, or give the parameter the type that it belongs to",
    };
    entry.report_with(
        format!("`{}` means nothing for a parameter of type \"{}\"", entry.path(), kind.name()),
        Some(help.into()),
    );
}

/// The schema of one plain value. What is clamped has no bounds here: validation comes first, and would refuse what the clamp
/// is there to mend.
fn scalar(table: &Table<'_>, kind: Type, clamped: bool) -> Value {
    let mut schema = json!({ "type": kind.name() });
    let mut state = |keyword: &str, value: Value| {
        if let Value::Object(schema) = &mut schema {
            schema.insert(keyword.into(), value);
        }
    };
    match kind {
        Type::String => {
            let (min, max) = lengths(table, ["min_length", "max_length"], DEFAULT_MAX_LENGTH);
            state("minLength", min.into());
            state("maxLength", if clamped { max.max(DEFAULT_MAX_LENGTH) } else { max }.into());
            if let Some(pattern) = table.get("pattern").and_then(|pattern| pattern.filled_text()) {
                state("pattern", pattern.into());
            }
        }
        Type::Integer | Type::Number => {
            let (min, max) = bounds(table, kind);
            let (min, max) = if clamped { (None, None) } else { (min, max) };
            let exact = (kind == Type::Integer).then_some(MAX_EXACT_INTEGER);
            if let Some(min) = min.map(json_number).or(exact.map(|max| (-max).into())) {
                state("minimum", min);
            }
            if let Some(max) = max.map(json_number).or(exact.map(Value::from)) {
                state("maximum", max);
            }
        }
        Type::Boolean | Type::Array => {}
    }
    if let Some(values) = table.get("enum") {
        let items = values.filled_list("no value is right then: leave the parameter out");
        state("enum", values.set(&items, |item| enumerated(item, kind)).into());
    }
    schema
}

fn enumerated(item: &Entry<'_>, kind: Type) -> Option<Value> {
    match (kind, item.value()) {
        (Type::String, DeValue::String(_)) => item.text().map(Value::from),
        (Type::Integer, DeValue::Integer(_)) | (Type::Number, DeValue::Integer(_) | DeValue::Float(_)) => {
            item.number().map(json_number)
        }
        _ => {
            item.report_with(format!("`{}` is not of type \"{}\"", item.path(), kind.name()), None);
            None
        }
    }
}

/// `min` and `max`, of the parameter's type and in order.
fn bounds(table: &Table<'_>, kind: Type) -> (Option<Number>, Option<Number>) {
    let read = |name: &'static str| {
        let entry = table.get(name)?;
        match kind {
            Type::Integer => {
                let fits = entry.integer(-MAX_EXACT_INTEGER..=MAX_EXACT_INTEGER).is_some();
                entry.number().filter(|_| fits)
            }
            _ => entry.number(),
        }
    };
    let (min, max) = (read("min"), read("max"));
    if let (Some(min), Some(max)) = (min, max)
        && min.cmp_value(max).is_gt()
    {
        table.report(format!("min {min} is greater than max {max}"), Some("no value would be right".into()));
    }
    (min, max)
}

/// A least and a greatest length, in order.
fn lengths(table: &Table<'_>, [min_name, max_name]: [&'static str; 2], default_max: u32) -> (u32, u32) {
    let read = |name: &'static str| table.get(name).and_then(|entry| entry.natural(0..=1 << 20));
    let (min, max) = (read(min_name), read(max_name).unwrap_or(default_max));
    if let Some(min) = min
        && min > max
    {
        table.report(
            format!("{min_name} {min} is greater than {max_name} {max}"),
            Some(format!("without {max_name} it is {default_max}")),
        );
    }
    (min.unwrap_or(0), max)
}

/// What `clamp = true` brings the value into.
fn clamp(table: &Table<'_>, kind: Type) -> Option<Clamp> {
    let entry = table.get("clamp")?;
    if !entry.boolean()? {
        return None;
    }
    let clamp = match kind {
        Type::Integer | Type::Number => {
            let (min, max) = bounds(table, kind);
            Clamp { min: min.and_then(bound), max: max.and_then(bound), max_length: None }
        }
        Type::String => Clamp {
            max_length: table.get("max_length").and_then(|entry| entry.natural(1..=1 << 20)),
            ..Clamp::default()
        },
        Type::Boolean | Type::Array => {
            entry.report_with(format!("`{}` means nothing for type \"{}\"", entry.path(), kind.name()), None);
            return None;
        }
    };
    if clamp == Clamp::default() {
        let needed = if kind == Type::String { "max_length" } else { "min or max" };
        entry.report_with("there is nothing to clamp to", Some(format!("add {needed}, or leave clamp out")));
        return None;
    }
    Some(clamp)
}

/// The description, with the bounds that the schema does not show because they are clamped.
fn description(table: &Table<'_>, clamped: bool) -> Option<String> {
    let text = table.get("description").and_then(|text| text.filled_text());
    let number = |name| table.get(name).and_then(|entry: Entry<'_>| entry.number());
    let bounds = clamped.then(|| match (number("min"), number("max"), number("max_length")) {
        (Some(min), Some(max), _) => format!("Brought into {min} to {max}."),
        (Some(min), None, _) => format!("Raised to at least {min}."),
        (None, Some(max), _) => format!("Lowered to at most {max}."),
        (None, None, Some(length)) => format!("Cut to {length} characters."),
        (None, None, None) => String::new(),
    });
    match (text, bounds) {
        (Some(text), Some(bounds)) => Some(format!("{} {bounds}", text.trim_end())),
        (text, bounds) => text.map(str::to_owned).or(bounds),
    }
}

pub(super) fn json_number(number: Number) -> Value {
    match number {
        Number::U64(number) => number.into(),
        Number::I64(number) => number.into(),
        Number::F64(number) => number.into(),
    }
}
