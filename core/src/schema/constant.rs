//! A schema as JSON Schema text that the compiler writes, so that it lies in flash beside the code: the text that
//! [`write_json_schema`](super::Schema::write_json_schema) writes, byte for byte.

use super::{Additional, Choices, Literal, MAX_DEPTH, Property, Schema, Types};
use crate::json::Number;
use crate::json::write::must_escape;

/// The JSON Schema text of a constant schema, as a constant `&'static str`.
///
/// ```
/// use callgate_core::json_schema;
/// use callgate_core::schema::{Property, Schema};
/// use callgate_core::tool::ToolSpec;
///
/// const INPUT: Schema<'static> = Schema::object(&[Property::required("a", Schema::boolean())]);
/// const SPEC: ToolSpec<'static> = ToolSpec::new("a.b", "Does something").with_input_schema(json_schema!(INPUT));
/// assert!(SPEC.input_schema.unwrap().starts_with(r#"{"type":"object","properties":{"a":{"type":"boolean"}}"#));
/// ```
///
/// Does not compile for a schema that can't be used, for names and descriptions with characters that nobody sees, and for
/// numbers with a fraction that have more than 15 digits or are nearer to zero than 0.0001.
#[macro_export]
macro_rules! json_schema {
    ($schema:expr) => {{
        const CALLGATE_JSON_SCHEMA: &$crate::schema::Schema<'static> = &$schema;
        const CALLGATE_JSON_TEXT: &$crate::schema::JsonText<{ CALLGATE_JSON_SCHEMA.json_bytes() }> =
            &CALLGATE_JSON_SCHEMA.json_text();
        CALLGATE_JSON_TEXT.as_str()
    }};
}

/// The text of a schema in a constant. Made by [`json_schema!`](crate::json_schema).
#[derive(Clone, Copy, Debug)]
pub struct JsonText<const BYTES: usize> {
    bytes: [u8; BYTES],
    /// How many there are, or would be.
    len: usize,
}

impl Schema<'_> {
    /// How many bytes the schema's text has.
    ///
    /// # Panics
    /// As [`json_text`](Self::json_text).
    #[must_use]
    pub const fn json_bytes(&self) -> usize {
        JsonText::<0>::of(self).len
    }

    /// The schema's text; `BYTES` is [`json_bytes`](Self::json_bytes), or more.
    ///
    /// # Panics
    /// The schema is one that [`json_schema!`](crate::json_schema) does not compile for. For constants alone.
    #[must_use]
    pub const fn json_text<const BYTES: usize>(&self) -> JsonText<BYTES> {
        JsonText::of(self)
    }
}

impl<const BYTES: usize> JsonText<BYTES> {
    const fn of(schema: &Schema<'_>) -> Self {
        assert!(schema.depth <= MAX_DEPTH, "the schema nests too deep; its `check` says how to mend it");
        let mut text = Self { bytes: [0; BYTES], len: 0 };
        text.schema(schema);
        text
    }

    /// The text; empty when it has no room.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        let Some((text, _)) = self.bytes.split_at_checked(self.len) else { return "" };
        match str::from_utf8(text) {
            Ok(text) => text,
            Err(_) => "",
        }
    }

    const fn schema(&mut self, schema: &Schema<'_>) {
        if schema.tagged {
            return self.tagged(schema);
        }
        let mut first = true;
        self.raw("{");
        if !(schema.types.contains(Types::ANY)) {
            self.name("type", &mut first);
            self.types(schema.types);
        }
        self.description(schema, &mut first);
        match schema.choices {
            Choices::Free => {}
            Choices::Only(value) => {
                self.name("const", &mut first);
                self.literal(value);
            }
            _ => {
                self.name("enum", &mut first);
                self.choices(schema);
            }
        }
        let (lower, upper) = schema.bounds();
        if let Some(limit) = lower {
            self.name(if limit.exclusive { "exclusiveMinimum" } else { "minimum" }, &mut first);
            self.number(limit.at);
        }
        if let Some(limit) = upper {
            self.name(if limit.exclusive { "exclusiveMaximum" } else { "maximum" }, &mut first);
            self.number(limit.at);
        }
        self.count("minLength", schema.min_length, &mut first);
        self.count("maxLength", schema.max_length, &mut first);
        self.count("minItems", schema.min_items, &mut first);
        self.count("maxItems", schema.max_items, &mut first);
        if let Some(items) = schema.items {
            self.name("items", &mut first);
            self.schema(items);
        }
        self.object(schema, &mut first);
        self.default(schema, &mut first);
        self.raw("}");
    }

    const fn tagged(&mut self, schema: &Schema<'_>) {
        let mut first = true;
        self.raw("{");
        self.description(schema, &mut first);
        self.name("anyOf", &mut first);
        self.raw("[");
        let mut first_part = true;
        if let Choices::Texts(texts) = schema.choices {
            self.comma(&mut first_part);
            self.schema(&Schema::choice(texts));
        }
        let mut rest = schema.properties;
        while let Some((property, others)) = rest.split_first() {
            self.comma(&mut first_part);
            self.schema(&Schema::object(&[Property::required(property.name, property.schema)]));
            rest = others;
        }
        if schema.types.contains(Types::NULL) {
            self.comma(&mut first_part);
            self.schema(&Schema::null());
        }
        self.raw("]");
        self.default(schema, &mut first);
        self.raw("}");
    }

    const fn description(&mut self, schema: &Schema<'_>, first: &mut bool) {
        if let Some(description) = schema.description {
            self.name("description", first);
            self.text(description);
        }
    }

    const fn default(&mut self, schema: &Schema<'_>, first: &mut bool) {
        if let Some(default) = schema.default {
            self.name("default", first);
            self.literal(default);
        }
    }

    const fn types(&mut self, types: Types) {
        let single = types.count() == 1;
        if !single {
            self.raw("[");
        }
        let mut first = true;
        let mut rest: &[_] = &Types::NAMES;
        while let Some(((kind, name), others)) = rest.split_first() {
            if types.names_alone(*kind) {
                self.comma(&mut first);
                self.text(name);
            }
            rest = others;
        }
        if !single {
            self.raw("]");
        }
    }

    const fn choices(&mut self, schema: &Schema<'_>) {
        let mut first = true;
        self.raw("[");
        match schema.choices {
            Choices::Free | Choices::Only(_) => {}
            Choices::Texts(texts) => {
                let mut rest = texts;
                while let Some((text, others)) = rest.split_first() {
                    self.comma(&mut first);
                    self.text(text);
                    rest = others;
                }
                if schema.types.contains(Types::NULL) {
                    self.comma(&mut first);
                    self.raw("null");
                }
            }
            Choices::Values(values) => {
                let mut rest = values;
                while let Some((value, others)) = rest.split_first() {
                    self.comma(&mut first);
                    self.literal(*value);
                    rest = others;
                }
            }
        }
        self.raw("]");
    }

    const fn object(&mut self, schema: &Schema<'_>, first: &mut bool) {
        if !schema.properties.is_empty() || matches!(schema.additional, Additional::Refused) {
            self.name("properties", first);
            self.raw("{");
            let mut first_property = true;
            let mut rest = schema.properties;
            while let Some((property, others)) = rest.split_first() {
                self.name(property.name, &mut first_property);
                self.schema(&property.schema);
                rest = others;
            }
            self.raw("}");
        }
        let mut first_required = true;
        let mut rest = schema.properties;
        while let Some((property, others)) = rest.split_first() {
            if property.required {
                if first_required {
                    self.name("required", first);
                    self.raw("[");
                }
                self.comma(&mut first_required);
                self.text(property.name);
            }
            rest = others;
        }
        if !first_required {
            self.raw("]");
        }
        match schema.additional {
            Additional::Allowed => {}
            Additional::Refused => {
                self.name("additionalProperties", first);
                self.raw("false");
            }
            Additional::Each(values) => {
                self.name("additionalProperties", first);
                self.schema(values);
            }
        }
    }

    const fn count(&mut self, name: &str, count: Option<u32>, first: &mut bool) {
        if let Some(count) = count {
            self.name(name, first);
            self.integer(count as u64);
        }
    }

    const fn literal(&mut self, value: Literal<'_>) {
        match value {
            Literal::Null => self.raw("null"),
            Literal::Bool(true) => self.raw("true"),
            Literal::Bool(false) => self.raw("false"),
            Literal::Number(number) => self.number(number),
            Literal::Text(text) => self.text(text),
        }
    }

    const fn number(&mut self, number: Number) {
        match number {
            Number::U64(value) => self.integer(value),
            Number::I64(value) => {
                if value < 0 {
                    self.raw("-");
                }
                self.integer(value.unsigned_abs());
            }
            Number::F64(value) => self.fraction(value),
        }
    }

    const fn integer(&mut self, value: u64) {
        if value >= 10 {
            self.integer(value / 10);
        }
        self.push(b'0' + (value % 10) as u8);
    }

    /// The shortest decimal that is the number. It is found by trying: with at most 15 digits, and as few places as that,
    /// dividing is exact enough to tell.
    #[expect(clippy::panic, reason = "it is what stops the compiler, and nobody calls it at run time")]
    const fn fraction(&mut self, value: f64) {
        if value < 0.0 {
            self.raw("-");
        }
        let value = value.abs();
        let mut power = 10u64;
        let mut places = 1u32;
        while places <= 15 && value >= 0.0001 {
            let scaled = (value * power as f64 + 0.5) as u64;
            if scaled < 1_000_000_000_000_000 && scaled as f64 / power as f64 == value {
                self.integer(scaled / power);
                self.raw(".");
                let mut rest = scaled % power;
                while power > 1 {
                    power /= 10;
                    self.push(b'0' + (rest / power) as u8);
                    rest %= power;
                }
                return;
            }
            power *= 10;
            places += 1;
        }
        panic!(
            "a number in the schema has more digits than the compiler writes; use fewer, or write the schema at run time"
        );
    }

    /// The name of a member, a comma before it unless it is the first one.
    const fn name(&mut self, name: &str, first: &mut bool) {
        self.comma(first);
        self.text(name);
        self.raw(":");
    }

    const fn comma(&mut self, first: &mut bool) {
        if !*first {
            self.raw(",");
        }
        *first = false;
    }

    #[expect(clippy::panic, reason = "it is what stops the compiler, and nobody calls it at run time")]
    const fn text(&mut self, text: &str) {
        self.raw("\"");
        let mut bytes = text.as_bytes();
        while let Some((byte, rest)) = bytes.split_first() {
            match byte {
                b'"' => self.raw("\\\""),
                b'\\' => self.raw("\\\\"),
                b'\n' => self.raw("\\n"),
                b'\r' => self.raw("\\r"),
                b'\t' => self.raw("\\t"),
                other => {
                    if must_escape(scalar(bytes)) {
                        panic!("a name or a description in the schema has a character that nobody sees; remove it");
                    }
                    self.push(*other);
                }
            }
            bytes = rest;
        }
        self.raw("\"");
    }

    const fn raw(&mut self, text: &str) {
        let mut bytes = text.as_bytes();
        while let Some((byte, rest)) = bytes.split_first() {
            self.push(*byte);
            bytes = rest;
        }
    }

    const fn push(&mut self, byte: u8) {
        if let Some((_, [room, ..])) = self.bytes.split_at_mut_checked(self.len) {
            *room = byte;
        }
        self.len += 1;
    }
}

/// The character that starts here; a harmless one within a character.
const fn scalar(bytes: &[u8]) -> char {
    const fn bits(byte: u8) -> u32 {
        (byte & 0b0011_1111) as u32
    }
    let code = match bytes {
        [a @ 0..0x80, ..] => *a as u32,
        [a @ 0xc0..0xe0, b, ..] => ((*a & 0b0001_1111) as u32) << 6 | bits(*b),
        [a @ 0xe0..0xf0, b, c, ..] => ((*a & 0b0000_1111) as u32) << 12 | bits(*b) << 6 | bits(*c),
        [a @ 0xf0..=0xff, b, c, d, ..] => ((*a & 0b0000_0111) as u32) << 18 | bits(*b) << 12 | bits(*c) << 6 | bits(*d),
        _ => b'x' as u32,
    };
    match char::from_u32(code) {
        Some(scalar) => scalar,
        None => 'x',
    }
}
