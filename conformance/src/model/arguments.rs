//! What the papers say about arguments: read strictly, checked, brought into bounds.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::world::Clamp;

const MAX_DEPTH: usize = 64;
const MAX_BYTES: usize = 1 << 20;

/// Reads one JSON object, or nothing (design 3): no duplicate key at any depth, bounded, numbers exact.
pub(super) fn read(text: &str) -> Option<Map<String, Value>> {
    if text.is_empty() {
        return Some(Map::new());
    }
    if text.len() > MAX_BYTES {
        return None;
    }
    match serde_json::from_str(text) {
        Ok(Strict(Value::Object(object))) if object.values().all(|value| depth(value) < MAX_DEPTH) => Some(object),
        _ => None,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        // An integer that is too large for 64 bits comes as a float, rounded.
        if value.fract() == 0.0 && value.abs() >= 9_223_372_036_854_775_808.0 {
            return Err(E::custom("not exact"));
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("no number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Strict(value))) = members.next_entry::<String, _>()? {
            if object.insert(key, value).is_some() {
                return Err(A::Error::custom("a key is there twice"));
            }
        }
        Ok(Value::Object(object))
    }
}

/// Whether the value fits the schema, in the subset of PROTOCOL.md. Nothing is coerced.
pub(super) fn fits(schema: &Value, value: &Value) -> bool {
    let Value::Object(schema) = schema else { return schema != &Value::Bool(false) };
    schema.iter().all(|(keyword, asked)| match keyword.as_str() {
        "type" => match asked {
            Value::Array(types) => types.iter().any(|one| is_a(one, value)),
            one => is_a(one, value),
        },
        "enum" => asked.as_array().is_some_and(|all| all.contains(value)),
        "minimum" => value.as_f64().zip(asked.as_f64()).is_none_or(|(value, least)| value >= least),
        "maximum" => value.as_f64().zip(asked.as_f64()).is_none_or(|(value, most)| value <= most),
        "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= asked.as_u64().unwrap_or(0)),
        "maxLength" => {
            value.as_str().is_none_or(|text| text.chars().count() as u64 <= asked.as_u64().unwrap_or(u64::MAX))
        }
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| fits(asked, item))),
        "required" => value.as_object().is_none_or(|object| {
            let names = asked.as_array().into_iter().flatten().filter_map(Value::as_str);
            names.into_iter().all(|name| object.contains_key(name))
        }),
        "properties" => value.as_object().is_none_or(|object| {
            let fits = |(name, value): (&String, &Value)| asked.get(name).is_none_or(|schema| fits(schema, value));
            object.iter().all(fits)
        }),
        "additionalProperties" => value.as_object().is_none_or(|object| {
            let properties = schema.get("properties").and_then(Value::as_object);
            let known: BTreeSet<&String> = properties.into_iter().flat_map(Map::keys).collect();
            object.iter().all(|(name, value)| known.contains(name) || fits(asked, value))
        }),
        _ => true,
    })
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

/// Brings numbers into their bounds; leaves everything else alone.
pub(super) fn clamp(clamps: &[Clamp], args: &mut Map<String, Value>) {
    for Clamp { field, min, max, max_length } in clamps {
        let Some(value) = args.get_mut(field) else { continue };
        if let (Value::String(text), Some(most)) = (&mut *value, max_length) {
            *value = text.chars().take(*most as usize).collect::<String>().into();
        }
        let Some(number) = value.as_f64() else { continue };
        if let Some(min) = min
            && number < *min as f64
        {
            *value = (*min).into();
        } else if let Some(max) = max
            && number > *max as f64
        {
            *value = (*max).into();
        }
    }
}
