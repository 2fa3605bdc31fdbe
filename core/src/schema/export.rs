//! A schema as JSON Schema 2020-12 text, equal in meaning to what is checked.

use core::fmt::{self, Write};

use super::{Additional, Choices, Literal, MAX_DEPTH, Property, Schema, Types};
use crate::json::write::escape;

impl Schema<'_> {
    /// Writes the schema as compact JSON Schema 2020-12 text. What the text accepts is what [`Self::validate`] accepts: a
    /// closed object says `"additionalProperties":false`, a nullable value has a list of types, an integer states its range.
    ///
    /// # Errors
    /// Those of `out`, and one for a schema that nests deeper than [`MAX_DEPTH`].
    pub fn write_json_schema(&self, out: &mut dyn Write) -> fmt::Result {
        if self.depth > MAX_DEPTH {
            return Err(fmt::Error);
        }
        write_schema(out, self)
    }
}

/// Writes the members of one object, commas between them.
struct Members<'o> {
    out: &'o mut dyn Write,
    first: bool,
}

impl<'o> Members<'o> {
    fn open(out: &'o mut dyn Write) -> Result<Self, fmt::Error> {
        out.write_char('{')?;
        Ok(Self { out, first: true })
    }

    /// Writes the name of the next member; its value is for the caller to write.
    fn name(&mut self, name: &str) -> Result<&mut dyn Write, fmt::Error> {
        if !core::mem::take(&mut self.first) {
            self.out.write_char(',')?;
        }
        write_text(self.out, name)?;
        self.out.write_char(':')?;
        Ok(self.out)
    }

    /// Writes a member.
    fn member(&mut self, name: &str, value: impl fmt::Display) -> fmt::Result {
        write!(self.name(name)?, "{value}")
    }

    fn close(self) -> fmt::Result {
        self.out.write_char('}')
    }
}

/// Writes one schema. Calls itself for its parts, as deep as the schema nests.
fn write_schema(out: &mut dyn Write, schema: &Schema<'_>) -> fmt::Result {
    if schema.tagged {
        return write_tagged(out, schema);
    }
    let mut members = Members::open(out)?;
    if schema.types != Types::ANY {
        write_types(members.name("type")?, schema.types)?;
    }
    if let Some(description) = schema.description {
        write_text(members.name("description")?, description)?;
    }
    match schema.choices {
        Choices::Free => {}
        Choices::Only(value) => members.member("const", value)?,
        choices => write_enum(members.name("enum")?, schema.types, &choices)?,
    }
    write_range(&mut members, schema)?;
    for (name, bound) in [
        ("minLength", schema.min_length),
        ("maxLength", schema.max_length),
        ("minItems", schema.min_items),
        ("maxItems", schema.max_items),
    ] {
        if let Some(bound) = bound {
            members.member(name, bound)?;
        }
    }
    if let Some(items) = schema.items {
        write_schema(members.name("items")?, items)?;
    }
    write_object(&mut members, schema)?;
    if let Some(default) = schema.default {
        members.member("default", default)?;
    }
    members.close()
}

/// Writes a tagged schema as the alternatives that it stands for: a name, an object of one member, null.
fn write_tagged(out: &mut dyn Write, schema: &Schema<'_>) -> fmt::Result {
    let mut members = Members::open(out)?;
    if let Some(description) = schema.description {
        write_text(members.name("description")?, description)?;
    }
    let out = members.name("anyOf")?;
    out.write_char('[')?;
    let mut first = true;
    let mut alternative = |out: &mut dyn Write, schema: &Schema<'_>| {
        if !core::mem::take(&mut first) {
            out.write_char(',')?;
        }
        write_schema(out, schema)
    };
    if let Choices::Texts(texts) = schema.choices {
        alternative(out, &Schema::choice(texts))?;
    }
    for property in schema.properties {
        let only = [Property::required(property.name, property.schema)];
        alternative(out, &Schema::object(&only))?;
    }
    if schema.types.contains(Types::NULL) {
        alternative(out, &Schema::null())?;
    }
    out.write_char(']')?;
    if let Some(default) = schema.default {
        members.member("default", default)?;
    }
    members.close()
}

/// Writes the name of the one type, or the list of names.
fn write_types(out: &mut dyn Write, types: Types) -> fmt::Result {
    let single = types.names().count() == 1;
    if !single {
        out.write_char('[')?;
    }
    for (nth, name) in types.names().enumerate() {
        if nth > 0 {
            out.write_char(',')?;
        }
        write_text(out, name)?;
    }
    if single { Ok(()) } else { out.write_char(']') }
}

fn write_enum(out: &mut dyn Write, types: Types, choices: &Choices<'_>) -> fmt::Result {
    out.write_char('[')?;
    let mut first = true;
    choices.each(types, &mut |value| {
        if !core::mem::take(&mut first) {
            out.write_char(',')?;
        }
        write!(out, "{value}")
    })?;
    out.write_char(']')
}

/// Writes the bounds of numbers.
fn write_range(members: &mut Members<'_>, schema: &Schema<'_>) -> fmt::Result {
    let (lower, upper) = schema.bounds();
    for (limit, inclusive, exclusive) in
        [(lower, "minimum", "exclusiveMinimum"), (upper, "maximum", "exclusiveMaximum")]
    {
        if let Some(limit) = limit {
            members.member(if limit.exclusive { exclusive } else { inclusive }, limit.at)?;
        }
    }
    Ok(())
}

fn write_object(members: &mut Members<'_>, schema: &Schema<'_>) -> fmt::Result {
    if !schema.properties.is_empty() || matches!(schema.additional, Additional::Refused) {
        let mut properties = Members::open(members.name("properties")?)?;
        for property in schema.properties {
            write_schema(properties.name(property.name)?, &property.schema)?;
        }
        properties.close()?;
    }
    if schema.properties.iter().any(Property::is_required) {
        let out = members.name("required")?;
        out.write_char('[')?;
        for (nth, property) in schema.properties.iter().filter(|property| property.required).enumerate() {
            if nth > 0 {
                out.write_char(',')?;
            }
            write_text(out, property.name)?;
        }
        out.write_char(']')?;
    }
    match schema.additional {
        Additional::Allowed => Ok(()),
        Additional::Refused => members.member("additionalProperties", false),
        Additional::Each(values) => write_schema(members.name("additionalProperties")?, values),
    }
}

/// Writes a text as a JSON string.
fn write_text(out: &mut dyn Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    escape(text, out)?;
    out.write_char('"')
}

/// The value as JSON text.
impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(text) => write_text(f, text),
        }
    }
}
