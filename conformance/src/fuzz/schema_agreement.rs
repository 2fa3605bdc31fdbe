//! The schemas of the core beside JSON Schema.

use std::fmt::Write as _;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use callgate_core::json::{Limits, scan};
use callgate_core::schema::{Literal, Property, Schema, Types};
use callgate_std::schema::{JsonSchema, Profile};
use serde_json::Value;

use super::choices::Choices;
use super::slots;

/// How deep schemas are made.
const DEEP: u8 = 4;
/// What every text begins with that is a value, and no name and nothing in a schema.
const CANARY: &str = "CANARY";

/// Invariants S6, L4: a schema of the core that can be used is one that JSON Schema admits, and both judge every value alike; what
/// they tell of it holds no text of it. The bytes choose the schema, then some values that are near it.
pub fn schema_agreement(data: &[u8]) {
    let arena = Bump::new();
    let mut choices = Choices::new(data);
    let made = Maker { arena: &arena }.schema(&mut choices, 0);
    let Ok(()) = made.check() else { return };
    let mut text = String::new();
    made.write_json_schema(&mut text).expect("a schema that was checked is written");
    let admitted = JsonSchema::parse(&text, Profile::VALUE)
        .unwrap_or_else(|error| panic!("what is exported is admitted: {text}: {error}"));
    for _ in 0..4 {
        let mut value = String::new();
        instance(admitted.document(), &mut choices, 0, &mut value);
        let mut keys = slots(value.as_bytes());
        // Not all that is made is read: a name may stand twice, a number may be none that is kept exactly.
        let Ok(scanned) = scan(value.as_bytes(), &mut keys, &Limits::DEFAULT) else { continue };
        let parsed: Value = scanned.value().parse().expect("what was scanned can be parsed");
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        made.validate_value(scanned.value(), &mut |violation| ours.push(violation.to_string()));
        admitted.validate_value(&parsed, &mut |violation| theirs.push(violation.to_string()));
        // The one thing in which the core is stricter than what it exports: see `Schema::with_64_bits`.
        if ours.iter().any(|told| told.contains("without point and exponent")) {
            continue;
        }
        assert_eq!(ours.is_empty(), theirs.is_empty(), "{text} {value} {ours:?} {theirs:?}");
        assert!(ours.iter().chain(&theirs).all(|told| !told.contains(CANARY)), "{ours:?} {theirs:?}");
    }
}

struct Maker<'b> {
    arena: &'b Bump,
}

impl<'b> Maker<'b> {
    fn schema(&self, choices: &mut Choices<'_>, depth: u8) -> Schema<'b> {
        let kinds = if depth < DEEP { 14 } else { 8 };
        let schema = match choices.below(kinds) {
            0 => bounded(Schema::integer(), choices),
            1 => bounded(Schema::integer().with_64_bits(), choices),
            2 => bounded(Schema::integer().with_any_size(), choices),
            3 => bounded(Schema::number(), choices),
            4 => sized(Schema::string(), choices),
            5 => self.chosen(choices),
            6 => Schema::boolean(),
            7 => Self::mixed(choices),
            8 => counted(Schema::array(self.part(choices, depth)), choices),
            9 => Schema::map(self.part(choices, depth)),
            10 => Schema::tagged(
                [&[] as &[&str], &["a"], &["a", "C"]].get(choices.below(3)).copied().unwrap_or_default(),
                self.properties(choices, depth),
            ),
            11 => {
                let mixed = Self::mixed(choices).items(self.part(choices, depth));
                mixed.properties(self.properties(choices, depth))
            }
            _ => {
                let object = Schema::object(self.properties(choices, depth));
                match choices.below(4) {
                    0 => object.open(),
                    1 => object.open_to(self.part(choices, depth)),
                    _ => object,
                }
            }
        };
        if choices.one_in(8) { schema.nullable() } else { schema }
    }

    fn part(&self, choices: &mut Choices<'_>, depth: u8) -> &'b Schema<'b> {
        self.arena.alloc(self.schema(choices, depth + 1))
    }

    fn properties(&self, choices: &mut Choices<'_>, depth: u8) -> &'b [Property<'b>] {
        let mut properties = BumpVec::new_in(self.arena);
        for _ in 0..choices.below(4) {
            let name = choices.pick(NAMES).unwrap_or_default();
            properties.push(Property::new(name, self.schema(choices, depth + 1), choices.one_in(2)));
        }
        properties.into_bump_slice()
    }

    fn chosen(&self, choices: &mut Choices<'_>) -> Schema<'b> {
        let mut literals = BumpVec::new_in(self.arena);
        for _ in 0..=choices.below(3) {
            literals.push(match choices.below(5) {
                0 => Literal::Null,
                1 => Literal::Bool(choices.one_in(2)),
                2 => Literal::integer(whole(choices)),
                3 => Literal::float(part(choices)),
                _ => Literal::Text(choices.pick(TEXTS).unwrap_or_default()),
            });
        }
        let literals = literals.into_bump_slice();
        match literals {
            [only] => Schema::any().constant(*only),
            all => Schema::any().one_of(all),
        }
    }

    fn mixed(choices: &mut Choices<'_>) -> Schema<'b> {
        let all =
            [Types::NULL, Types::BOOLEAN, Types::INTEGER, Types::NUMBER, Types::STRING, Types::ARRAY, Types::OBJECT];
        let bits = choices.byte();
        let some = (0_u8..).zip(all).filter(|(at, _)| bits >> at & 1 == 1);
        let types = some.fold(Types::NONE, |types, (_, kind)| types.or(kind));
        let mut schema = Schema::of(types);
        if types.contains(Types::INTEGER) {
            schema = bounded(schema, choices);
        }
        if types.contains(Types::STRING) { sized(schema, choices) } else { schema }
    }
}

const NAMES: &[&str] = &["a", "b", "ab", "", "C", "\u{e9}", "a~/\"", "__proto__"];
const TEXTS: &[&str] = &["", "a", "C", "CA", "1", "null", "\u{e9}"];
const EDGES: &[i64] = &[
    (1 << 53) - 1,
    1 << 53,
    (1 << 53) + 1,
    1 - (1 << 53),
    -(1 << 53),
    -(1 << 53) - 1,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    0,
];

fn whole(choices: &mut Choices<'_>) -> i64 {
    match choices.below(8) {
        0 => choices.pick(EDGES).unwrap_or_default(),
        1 => choices.word() as i64,
        _ => i64::from(choices.byte()) - 100,
    }
}

fn part(choices: &mut Choices<'_>) -> f64 {
    match choices.below(8) {
        0 => choices.pick(&[0.5, 1e300, -1e300, 9_007_199_254_740_992.0, 1.8e19, 5e-324]).unwrap_or_default(),
        1 => Some(f64::from_bits(choices.word())).filter(|value| value.is_finite()).unwrap_or_default(),
        _ => (f64::from(choices.byte()) - 100.0) / 4.0,
    }
}

fn bounded<'b>(mut schema: Schema<'b>, choices: &mut Choices<'_>) -> Schema<'b> {
    let kinds = choices.byte();
    schema = match kinds & 7 {
        1 => schema.minimum(whole(choices)),
        2 => schema.above(whole(choices)),
        3 => schema.minimum_f64(part(choices)),
        4 => schema.above_f64(part(choices)),
        _ => schema,
    };
    match kinds >> 3 & 7 {
        1 => schema.maximum(whole(choices)),
        2 => schema.below(whole(choices)),
        3 => schema.maximum_f64(part(choices)),
        4 => schema.below_f64(part(choices)),
        _ => schema,
    }
}

fn sized<'b>(schema: Schema<'b>, choices: &mut Choices<'_>) -> Schema<'b> {
    let schema = if choices.one_in(2) { schema.min_length(u32::from(choices.byte() % 5)) } else { schema };
    if choices.one_in(2) { schema.max_length(u32::from(choices.byte() % 12)) } else { schema }
}

fn counted<'b>(schema: Schema<'b>, choices: &mut Choices<'_>) -> Schema<'b> {
    let schema = if choices.one_in(2) { schema.min_items(u32::from(choices.byte() % 4)) } else { schema };
    if choices.one_in(2) { schema.max_items(u32::from(choices.byte() % 5)) } else { schema }
}

/// Writes a value that fits `schema` in most places, and in the others is near it, spelled in one way or another.
fn instance(schema: &Value, choices: &mut Choices<'_>, depth: u8, out: &mut String) {
    if choices.one_in(16) || depth > 8 {
        out.push_str(
            choices.pick(&["null", "1", "1.5", "\"CANARY\"", "[1]", "{\"a\":1}", "true", "[]"]).unwrap_or("0"),
        );
        return;
    }
    if let Some(value) = schema.get("const") {
        return spell(value, choices, out);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return spell(values.get(choices.below(values.len())).unwrap_or(&Value::Null), choices, out);
    }
    if let Some(all) = schema.get("anyOf").and_then(Value::as_array) {
        return instance(all.get(choices.below(all.len())).unwrap_or(&Value::Null), choices, depth + 1, out);
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.get(choices.below(kinds.len())).and_then(Value::as_str).unwrap_or("null"),
        _ => choices.pick(&["integer", "number", "string", "array", "object", "null"]).unwrap_or("null"),
    };
    match kind {
        "boolean" => out.push_str(if choices.one_in(2) { "true" } else { "false" }),
        "integer" | "number" => number(schema, choices, out),
        "string" => {
            out.push('"');
            let filler = choices.pick(&["\u{1f600}", "\\ud83d\\ude00", "e\u{301}", "x", "\\u0000"]).unwrap_or("x");
            let count = choices.below(14);
            let _ = write!(out, "{}", CANARY.get(..count.min(CANARY.len())).unwrap_or(CANARY));
            (CANARY.len()..count).for_each(|_| out.push_str(filler));
            out.push('"');
        }
        "array" => {
            out.push('[');
            let items = schema.get("items").unwrap_or(&Value::Null);
            for at in 0..choices.below(6) {
                out.push_str(if at == 0 { "" } else { "," });
                instance(items, choices, depth + 1, out);
            }
            out.push(']');
        }
        "object" => object(schema, choices, depth, out),
        _ => out.push_str("null"),
    }
}

fn object(schema: &Value, choices: &mut Choices<'_>, depth: u8, out: &mut String) {
    out.push('{');
    let mut first = true;
    let mut member = |name: &str, part: &Value, choices: &mut Choices<'_>, out: &mut String| {
        out.push_str(if std::mem::take(&mut first) { "" } else { "," });
        spell(&name.into(), choices, out);
        out.push(':');
        instance(part, choices, depth + 1, out);
    };
    for (name, part) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if !choices.one_in(4) {
            member(name, part, choices, out);
        }
    }
    if choices.one_in(3) {
        let others = schema.get("additionalProperties").unwrap_or(&Value::Null);
        member(choices.pick(NAMES).unwrap_or_default(), others, choices, out);
    }
    out.push('}');
}

/// A number at or near a bound, if there is one.
fn number(schema: &Value, choices: &mut Choices<'_>, out: &mut String) {
    let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    let bounds: Vec<&Value> = bounds.iter().filter_map(|keyword| schema.get(keyword)).collect();
    let near = bounds.get(choices.below(bounds.len())).copied();
    let value = match (near, choices.below(8)) {
        (Some(bound), 0..4) => match (bound.as_i64(), bound.as_f64()) {
            (Some(bound), _) => bound.saturating_add(i64::from(choices.byte() % 3) - 1).into(),
            (None, Some(bound)) => match choices.below(3) {
                0 => bound.into(),
                1 => bound.next_up().into(),
                _ => bound.next_down().into(),
            },
            (None, None) => bound.clone(),
        },
        (Some(bound), 4) => bound.clone(),
        (_, 5) => part(choices).into(),
        (_, 6) => choices.word().into(),
        _ => whole(choices).into(),
    };
    spell(&value, choices, out);
}

/// Writes a value in one of its spellings.
fn spell(value: &Value, choices: &mut Choices<'_>, out: &mut String) {
    let text = value.to_string();
    match (value, choices.below(6)) {
        (Value::Number(number), 0) if !number.is_f64() => out.push_str(&format!("{text}.0")),
        (Value::Number(number), 1) if !number.is_f64() => out.push_str(&format!("{text}e0")),
        (Value::Number(number), 2) if !number.is_f64() => out.push_str(&format!("{text}0e-1")),
        (Value::Number(number), 3) if !number.is_f64() => out.push_str(&format!("{text}.5")),
        (Value::String(text), 0) => {
            out.push('"');
            text.encode_utf16().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            out.push('"');
        }
        _ => out.push_str(&text),
    }
}
