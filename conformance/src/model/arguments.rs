//! What the papers say about arguments: read strictly, checked, brought into bounds, shown without secrets.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::world::Clamp;

const MAX_DEPTH: usize = 64;
const MAX_BYTES: usize = 1 << 20;

/// Reads one JSON object, or nothing (design 3): no duplicate key at any depth, bounded, numbers exact.
pub(crate) fn read(text: &str) -> Option<Value> {
    if text.is_empty() {
        return Some(Value::Object(Map::new()));
    }
    let value: Value = serde_json::from_str(text).ok()?;
    // The parser keeps the last of two members with one key: then there is a colon too many.
    let sound = value.is_object() && members(&value) == colons(text) && depth(&value) <= MAX_DEPTH && exact(&value);
    (sound && text.len() <= MAX_BYTES).then_some(value)
}

fn parts(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

fn members(value: &Value) -> usize {
    value.as_object().map_or(0, Map::len) + parts(value).into_iter().map(members).sum::<usize>()
}

/// The colons outside of texts: one for each member.
fn colons(json: &str) -> usize {
    let (mut colons, mut inside, mut escaped) = (0, false, false);
    for c in json.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => inside = !inside,
            ':' if !inside => colons += 1,
            _ => {}
        }
    }
    colons
}

fn depth(value: &Value) -> usize {
    usize::from(value.is_array() || value.is_object()) + parts(value).into_iter().map(depth).max().unwrap_or(0)
}

/// An integer that is too large for 64 bits comes as a float, rounded (invariant S4).
fn exact(value: &Value) -> bool {
    let rounded = |number: f64| number.fract() == 0.0 && number.abs() >= 9_223_372_036_854_775_808.0;
    !(value.is_f64() && value.as_f64().is_some_and(rounded)) && parts(value).into_iter().all(exact)
}

/// Whether the value fits the schema, in the subset of PROTOCOL.md. Nothing is coerced.
pub(super) fn fits(schema: Option<&Value>, value: &Value) -> bool {
    let Some(Value::Object(keywords)) = schema else { return schema != Some(&Value::Bool(false)) };
    keywords.iter().all(|(keyword, asked)| match (keyword.as_str(), value) {
        ("type", _) => asked.as_array().map_or(is_a(asked, value), |types| types.iter().any(|one| is_a(one, value))),
        ("enum", _) => asked.as_array().is_some_and(|all| all.contains(value)),
        ("minimum", Value::Number(_)) => order(value, asked) != Some(Ordering::Less),
        ("maximum", Value::Number(_)) => order(value, asked) != Some(Ordering::Greater),
        ("minLength", Value::String(text)) => Some(text.chars().count() as u64) >= asked.as_u64(),
        ("maxLength", Value::String(text)) => Some(text.chars().count() as u64) <= asked.as_u64(),
        ("items", Value::Array(items)) => items.iter().all(|item| fits(Some(asked), item)),
        ("required", Value::Object(members)) => {
            asked.as_array().into_iter().flatten().filter_map(Value::as_str).all(|name| members.contains_key(name))
        }
        ("properties", Value::Object(members)) => members.iter().all(|(name, member)| fits(asked.get(name), member)),
        ("additionalProperties", Value::Object(members)) => {
            let known = |name: &String| keywords.get("properties").is_some_and(|known| known.get(name).is_some());
            members.iter().all(|(name, member)| known(name) || fits(Some(asked), member))
        }
        _ => true,
    })
}

/// How numbers compare, digit by digit where both are whole.
pub(super) fn order(one: &Value, other: &Value) -> Option<Ordering> {
    let whole = |value: &Value| value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    }
}

/// Brings numbers into their bounds and texts to their length; leaves everything else alone.
pub(crate) fn clamped(clamps: &[Clamp], args: &Value) -> Value {
    let mut args = args.clone();
    for Clamp { field, min, max, max_length } in clamps {
        let Some(value) = args.get_mut(field) else { continue };
        let below = |bound: &i64| order(value, &(*bound).into()) == Some(Ordering::Less);
        let above = |bound: &i64| order(value, &(*bound).into()) == Some(Ordering::Greater);
        let bound = min.filter(below).or(max.filter(above));
        if let Some(bound) = bound {
            *value = bound.into();
        } else if let (Value::String(text), Some(most)) = (&*value, max_length) {
            *value = text.chars().take(*most as usize).collect::<String>().into();
        }
    }
    args
}

/// The arguments, less what is secret (invariant L1): ways of names lead to it.
pub(super) fn shown(args: &Value, secrets: &[String]) -> Value {
    let into = |name: &str, value: &Value| {
        let rest = |way: &String| {
            let (first, rest) = way.split_once('/').unwrap_or((way, ""));
            (first == name || first == "*").then(|| rest.to_owned())
        };
        let ways: Vec<String> = secrets.iter().filter_map(rest).collect();
        if ways.iter().any(String::is_empty) { "[secret]".into() } else { shown(value, &ways) }
    };
    match args {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), into(name, value))).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| into(&at.to_string(), item)).collect(),
        other => other.clone(),
    }
}
