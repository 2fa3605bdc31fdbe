//! JSON Schema documents as schemas of the core, for tests: exact or refused, never approximated (invariant S6).
//!
//! Parts are leaked, which a test may do and a gate may not.

use callgate_core::json::Number;
use callgate_core::schema::{Literal, MAX_DEPTH, Property, Schema, Types};
use serde_json::{Map, Value};

/// What the core's schemas can't say.
#[derive(Debug, PartialEq)]
pub(crate) struct Unsupported {
    /// Where, as a JSON Pointer.
    pub(crate) pointer: String,
    /// The keyword.
    pub(crate) keyword: String,
    /// Why.
    pub(crate) why: String,
}

/// The schema of the core that means exactly what `document` means.
pub(crate) fn import(document: &Value) -> Result<Schema<'static>, Unsupported> {
    let schema = Import { document }.schema(document, "", 1)?;
    schema.check().map_err(|error| Unsupported {
        pointer: String::new(),
        keyword: "(check)".into(),
        why: error.to_string(),
    })?;
    Ok(schema)
}

struct Import<'d> {
    document: &'d Value,
}

type Imported<T> = Result<T, Unsupported>;

fn refuse<T>(pointer: &str, keyword: &str, why: impl Into<String>) -> Imported<T> {
    Err(Unsupported { pointer: pointer.into(), keyword: keyword.into(), why: why.into() })
}

impl Import<'_> {
    fn schema(&self, value: &Value, at: &str, depth: u8) -> Imported<Schema<'static>> {
        if depth > MAX_DEPTH {
            return refuse(at, "", "too deep, or a reference to itself");
        }
        let object = match value {
            Value::Bool(true) => return Ok(Schema::any()),
            Value::Object(object) => object,
            _ => return refuse(at, "", "only objects and `true` are schemas here"),
        };
        for (keyword, argument) in object {
            check_keyword(keyword, argument, at)?;
        }
        if let Some(reference) = object.get("$ref") {
            return self.reference(object, reference, at, depth);
        }

        let types = types(object, at)?;
        let mut schema = Schema::of(types).with_any_size();
        schema = choices(schema, object, types, at)?;
        if types.contains(Types::INTEGER) {
            schema = bounds(schema, object, at)?;
        }
        if types.contains(Types::STRING) {
            if let Some(least) = count(object, "minLength", at)? {
                schema = schema.min_length(least);
            }
            if let Some(greatest) = count(object, "maxLength", at)? {
                schema = schema.max_length(greatest);
            }
        }
        if types.contains(Types::ARRAY) {
            schema = self.array(schema, object, at, depth)?;
        }
        if types.contains(Types::OBJECT) {
            schema = self.object(schema, object, at, depth)?;
        }
        Ok(schema)
    }

    fn reference(
        &self,
        object: &Map<String, Value>,
        reference: &Value,
        at: &str,
        depth: u8,
    ) -> Imported<Schema<'static>> {
        if object.keys().any(|key| key != "$ref" && !is_annotation(key)) {
            return refuse(at, "$ref", "keywords beside a reference");
        }
        let target = reference
            .as_str()
            .and_then(|text| text.strip_prefix('#'))
            .filter(|pointer| pointer.starts_with('/') && !pointer.contains('%'))
            .and_then(|pointer| self.document.pointer(pointer));
        match target {
            // A reference uses up depth, so one to itself ends.
            Some(target) => self.schema(target, at, depth + 1),
            None => refuse(at, "$ref", "only pointers into the same document, and not to its root"),
        }
    }

    fn array(
        &self,
        mut schema: Schema<'static>,
        object: &Map<String, Value>,
        at: &str,
        depth: u8,
    ) -> Imported<Schema<'static>> {
        let mut greatest = count(object, "maxItems", at)?;
        match object.get("items") {
            None => {}
            Some(Value::Bool(false)) => greatest = Some(0),
            Some(items) => schema = schema.items(leak(self.schema(items, &format!("{at}/items"), depth + 1)?)),
        }
        if let Some(least) = count(object, "minItems", at)? {
            schema = schema.min_items(least);
        }
        Ok(match greatest {
            Some(greatest) => schema.max_items(greatest),
            None => schema,
        })
    }

    fn object(
        &self,
        mut schema: Schema<'static>,
        object: &Map<String, Value>,
        at: &str,
        depth: u8,
    ) -> Imported<Schema<'static>> {
        let required: Vec<&str> = match object.get("required") {
            None => Vec::new(),
            Some(names) => names.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
        };
        let mut others = Some(Schema::any());
        match object.get("additionalProperties") {
            None | Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => others = None,
            Some(values) => others = Some(self.schema(values, &format!("{at}/additionalProperties"), depth + 1)?),
        }
        let mut properties = Vec::new();
        let none = Map::new();
        for (name, value) in object.get("properties").and_then(Value::as_object).unwrap_or(&none) {
            let at = format!("{at}/properties/{}", name.replace('~', "~0").replace('/', "~1"));
            let part = self.schema(value, &at, depth + 1)?;
            let name: &str = String::leak(name.clone());
            let needed = required.contains(&name);
            properties.push(if needed { Property::required(name, part) } else { Property::optional(name, part) });
        }
        for name in required {
            if properties.iter().all(|property| property.name() != name) {
                let Some(others) = others else {
                    return refuse(at, "required", "a required property that is refused: nothing fits");
                };
                properties.push(Property::required(String::leak(name.to_owned()), others));
            }
        }
        schema = schema.properties(Vec::leak(properties));
        Ok(match others {
            None => schema.closed(),
            Some(_) if matches!(object.get("additionalProperties"), None | Some(Value::Bool(true))) => schema.open(),
            Some(values) => schema.open_to(leak(values)),
        })
    }
}

fn leak(schema: Schema<'static>) -> &'static Schema<'static> {
    Box::leak(Box::new(schema))
}

fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title"
            | "description"
            | "default"
            | "examples"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "$comment"
            | "$defs"
    )
}

fn check_keyword(keyword: &str, argument: &Value, at: &str) -> Imported<()> {
    match keyword {
        "$schema" if argument == "https://json-schema.org/draft/2020-12/schema" => Ok(()),
        "$ref"
        | "type"
        | "enum"
        | "const"
        | "minimum"
        | "maximum"
        | "exclusiveMinimum"
        | "exclusiveMaximum"
        | "minLength"
        | "maxLength"
        | "items"
        | "minItems"
        | "maxItems"
        | "properties"
        | "required"
        | "additionalProperties" => Ok(()),
        annotation if is_annotation(annotation) => Ok(()),
        other => refuse(at, other, "not a keyword of the core's schemas"),
    }
}

fn types(object: &Map<String, Value>, at: &str) -> Imported<Types> {
    let names: Vec<&Value> = match object.get("type") {
        None => return Ok(Types::ANY),
        Some(Value::Array(names)) => names.iter().collect(),
        Some(name) => vec![name],
    };
    names.into_iter().try_fold(Types::NONE, |types, name| {
        Ok(types.or(match name.as_str() {
            Some("null") => Types::NULL,
            Some("boolean") => Types::BOOLEAN,
            Some("integer") => Types::INTEGER,
            Some("number") => Types::NUMBER,
            Some("string") => Types::STRING,
            Some("array") => Types::ARRAY,
            Some("object") => Types::OBJECT,
            _ => return refuse(at, "type", "no type of JSON Schema"),
        }))
    })
}

fn choices(schema: Schema<'static>, object: &Map<String, Value>, types: Types, at: &str) -> Imported<Schema<'static>> {
    let (keyword, values) = match (object.get("enum"), object.get("const")) {
        (None, None) => return Ok(schema),
        (Some(_), Some(_)) => return refuse(at, "const", "beside an enum"),
        (Some(values), None) => ("enum", values.as_array().map(Vec::as_slice).unwrap_or_default()),
        (None, Some(value)) => ("const", std::slice::from_ref(value)),
    };
    let mut literals = Vec::new();
    for value in values {
        let literal = match value {
            Value::Null => Literal::Null,
            Value::Bool(value) => Literal::Bool(*value),
            Value::Number(value) => Literal::Number(number(value, keyword, at)?),
            Value::String(text) => Literal::Text(String::leak(text.clone())),
            Value::Array(_) | Value::Object(_) => return refuse(at, keyword, "only scalars"),
        };
        // What is of none of the types never fits, so it says nothing.
        if types.contains(literal.types()) {
            literals.push(literal);
        }
    }
    if types != Types::ANY && types.contains(Types::NULL) && !literals.contains(&Literal::Null) {
        return refuse(at, keyword, "null is a type and not a value");
    }
    match literals.as_slice() {
        [] => refuse(at, keyword, "nothing fits"),
        [only] if keyword == "const" => Ok(schema.constant(*only)),
        _ => Ok(schema.one_of(Vec::leak(literals))),
    }
}

fn bounds(mut schema: Schema<'static>, object: &Map<String, Value>, at: &str) -> Imported<Schema<'static>> {
    for (inclusive, exclusive, lower) in [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)]
    {
        let bound = match (object.get(inclusive), object.get(exclusive)) {
            (None, None) => continue,
            (Some(_), Some(_)) => return refuse(at, exclusive, "beside an inclusive bound"),
            (Some(bound), None) => (bound, false),
            (None, Some(bound)) => (bound, true),
        };
        let (Value::Number(bound), excluded) = bound else { return refuse(at, inclusive, "no number") };
        let bound = number(bound, inclusive, at)?;
        schema = if lower { schema.lower(bound, excluded) } else { schema.upper(bound, excluded) };
    }
    Ok(schema)
}

fn number(value: &serde_json::Number, keyword: &str, at: &str) -> Imported<Number> {
    if let Some(value) = value.as_u64() {
        return Ok(Number::U64(value));
    }
    if let Some(value) = value.as_i64() {
        return Ok(Number::I64(value));
    }
    match value.as_f64() {
        // Whoever read the document may have rounded a longer number to this one.
        Some(value) if value.abs() < 9_007_199_254_740_992.0 => Ok(Number::F64(value)),
        _ => refuse(at, keyword, "a number beyond what is kept exactly"),
    }
}

fn count(object: &Map<String, Value>, keyword: &str, at: &str) -> Imported<Option<u32>> {
    let Some(value) = object.get(keyword) else { return Ok(None) };
    // `2.0` is a count, too.
    let count = value.as_u64().or_else(|| value.as_f64().filter(|f| f.fract() == 0.0 && *f >= 0.0).map(|f| f as u64));
    match count.and_then(|count| u32::try_from(count).ok()) {
        Some(count) => Ok(Some(count)),
        None => refuse(at, keyword, "no count of 32 bits"),
    }
}
