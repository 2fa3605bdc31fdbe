//! Schemas and values that fit them more or less, for property tests.

use callgate_core::schema::{Literal, Property, Schema, Types};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What every text begins with that is a value, and no name and nothing in a schema. It must never be in a message.
pub(crate) const CANARY: &str = "CANARY";

/// Schemas that can be used, up to some levels deep. Their parts are leaked.
pub(crate) fn schemas() -> impl Strategy<Value = Schema<'static>> {
    leaves()
        .prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                2 => (inner.clone(), counts()).prop_map(|(items, (least, greatest))| {
                    let mut array = Schema::array(leak(items));
                    if let Some(least) = least {
                        array = array.min_items(least);
                    }
                    if let Some(greatest) = greatest {
                        array = array.max_items(greatest);
                    }
                    array
                }),
                6 => (properties(inner.clone()), 0..3, inner.clone()).prop_map(|(properties, open, others)| {
                    let object = Schema::object(Vec::leak(properties));
                    match open {
                        0 => object,
                        1 => object.open(),
                        _ => object.open_to(leak(others)),
                    }
                }),
                1 => inner.clone().prop_map(|values| Schema::map(leak(values))),
                1 => inner.clone().prop_map(Schema::nullable),
                2 => (properties(inner.clone()), 0..3usize).prop_map(|(variants, names)| {
                    Schema::tagged(["", "a", "C"].get(..names).unwrap_or_default(), Vec::leak(variants))
                }),
                // Keywords of several types at once.
                1 => (properties(inner.clone()), inner).prop_map(|(properties, items)| {
                    Schema::any().minimum(-3).max_length(8).items(leak(items)).properties(Vec::leak(properties))
                }),
            ]
        })
        .prop_filter("usable", |schema| schema.check().is_ok())
}

/// As [`schemas`], and an object, as arguments are.
pub(crate) fn argument_schemas() -> impl Strategy<Value = Schema<'static>> {
    (properties(schemas().boxed()), any::<bool>()).prop_map(|(properties, open)| {
        let object = Schema::object(Vec::leak(properties));
        if open { object.open() } else { object }
    })
}

fn properties(inner: BoxedStrategy<Schema<'static>>) -> impl Strategy<Value = Vec<Property<'static>>> {
    btree_map(names(), (inner, any::<bool>()), 0..5).prop_map(|members| {
        let property = |(name, (schema, required)): (String, (Schema<'static>, bool))| {
            let name = String::leak(name);
            if required { Property::required(name, schema) } else { Property::optional(name, schema) }
        };
        members.into_iter().map(property).collect()
    })
}

/// Names, some of them near each other, some of them odd.
fn names() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[ab]{1,2}_?[ab]?", 1 => "[\u{e9} /~\"\\\\*]{0,2}"]
}

fn leaves() -> impl Strategy<Value = Schema<'static>> {
    prop_oneof![
        2 => (0..3, bounds()).prop_map(|(width, bounds)| {
            let integer = match width {
                0 => Schema::integer(),
                1 => Schema::integer64(),
                _ => Schema::integer().with_any_size(),
            };
            bounds.apply(integer)
        }),
        2 => bounds().prop_map(|bounds| bounds.apply(Schema::number())),
        2 => counts().prop_map(|(least, greatest)| {
            let mut text = Schema::string();
            if let Some(least) = least {
                text = text.min_length(least);
            }
            if let Some(greatest) = greatest {
                text = text.max_length(greatest);
            }
            text
        }),
        1 => (0u8..0x80, bounds()).prop_map(|(bits, bounds)| {
            let kinds = [Types::NULL, Types::BOOLEAN, Types::INTEGER, Types::NUMBER, Types::STRING, Types::ARRAY, Types::OBJECT];
            let types = (0..).zip(kinds).filter(|(n, _)| bits >> n & 1 == 1).fold(Types::NONE, |all, (_, kind)| all.or(kind));
            let schema = Schema::of(types);
            if types.contains(Types::INTEGER) { bounds.apply(schema) } else { schema }
        }),
        1 => (vec(literals(), 1..4), any::<bool>()).prop_map(|(values, one)| match values.first() {
            Some(first) if one => Schema::any().constant(*first),
            _ => Schema::any().one_of(Vec::leak(values)),
        }),
        1 => any::<bool>().prop_map(|null| {
            let choice = Schema::choice(&["", "C", "\u{e9}\""]);
            if null { choice.nullable() } else { choice }
        }),
        1 => Just(Schema::any()),
        1 => Just(Schema::boolean()),
    ]
}

fn literals() -> impl Strategy<Value = Literal<'static>> {
    prop_oneof![
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Bool),
        numbers().prop_map(|(whole, quarters)| if quarters == 0 {
            Literal::integer(whole)
        } else {
            Literal::float(whole as f64 + quarters as f64 / 4.0)
        }),
        proptest::sample::select(vec!["", "a", "C", "1", "null"]).prop_map(Literal::Text),
    ]
}

/// A whole part and some quarters, so that a number is the same number to every reader. Quarters only where there is room
/// for them.
fn numbers() -> impl Strategy<Value = (i64, i64)> {
    prop_oneof![
        3 => (-6i64..6, 0i64..4),
        1 => (proptest::sample::select(EDGES.to_vec()), Just(0)),
    ]
}

const EDGES: [i64; 8] =
    [(1 << 53) - 1, 1 << 53, (1 << 53) + 1, -(1 << 53), -(1 << 53) - 1, i64::MAX, i64::MIN, i64::MAX - 1];

#[derive(Clone, Copy, Debug)]
struct Bounds {
    lower: Option<((i64, i64), bool)>,
    upper: Option<((i64, i64), bool)>,
}

impl Bounds {
    fn apply(self, mut schema: Schema<'static>) -> Schema<'static> {
        if let Some(((whole, quarters), exclusive)) = self.lower {
            schema = match (quarters, exclusive) {
                (0, false) => schema.minimum(whole),
                (0, true) => schema.above(whole),
                (_, false) => schema.minimum_f64(whole as f64 + quarters as f64 / 4.0),
                (_, true) => schema.above_f64(whole as f64 + quarters as f64 / 4.0),
            };
        }
        if let Some(((whole, quarters), exclusive)) = self.upper {
            schema = match (quarters, exclusive) {
                (0, false) => schema.maximum(whole),
                (0, true) => schema.below(whole),
                (_, false) => schema.maximum_f64(whole as f64 + quarters as f64 / 4.0),
                (_, true) => schema.below_f64(whole as f64 + quarters as f64 / 4.0),
            };
        }
        schema
    }
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let bound = || proptest::option::of((numbers(), any::<bool>()));
    (bound(), bound()).prop_map(|(lower, upper)| Bounds { lower, upper })
}

fn counts() -> impl Strategy<Value = (Option<u32>, Option<u32>)> {
    (proptest::option::of(0u32..4), proptest::option::of(0u32..9))
}

fn leak(schema: Schema<'static>) -> &'static Schema<'static> {
    Box::leak(Box::new(schema))
}

/// The schema as a document.
pub(crate) fn document(schema: &Schema<'_>) -> Value {
    let mut text = String::new();
    schema.write_json_schema(&mut text).expect("a schema that was checked is written");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A small source of choices; all of them follow from the seed.
#[derive(Debug)]
pub(crate) struct Choices(u64);

impl Choices {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // Knuth's multiplier; the high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end.max(1)
    }

    pub(crate) fn pick<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        all.get(self.below(all.len()))
    }
}

/// A value that fits `schema` in most places, and in the others is near it.
pub(crate) fn instance(schema: &Value, choices: &mut Choices, depth: usize) -> Value {
    if choices.below(12) == 0 || depth > 6 {
        return stray(choices);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return choices.pick(values).cloned().unwrap_or_default();
    }
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    if let Some(alternative) = alternatives.and_then(Value::as_array).and_then(|all| choices.pick(all)) {
        return instance(alternative, choices, depth);
    }
    let kinds = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.clone(),
        Some(kind) => vec![kind.clone()],
        None => ["integer", "number", "string", "array", "object", "null"].map(Value::from).to_vec(),
    };
    match choices.pick(&kinds).and_then(Value::as_str) {
        Some("null") => Value::Null,
        Some("boolean") => Value::Bool(choices.below(2) == 0),
        Some("integer") => near_bound(schema, choices, 1.0),
        Some("number") => near_bound(schema, choices, 4.0),
        Some("string") => text(schema, choices),
        Some("array") => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) as usize;
            let count = (least + choices.below(3)).saturating_sub(usize::from(choices.below(8) == 0));
            let items = schema.get("items").cloned().unwrap_or(json!({}));
            (0..count).map(|_| instance(&items, choices, depth + 1)).collect()
        }
        _ => object(schema, choices, depth),
    }
}

fn object(schema: &Value, choices: &mut Choices, depth: usize) -> Value {
    let mut members = serde_json::Map::new();
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let wanted = if required.contains(&&**name) { choices.below(12) > 0 } else { choices.below(2) == 0 };
        if wanted {
            members.insert(name.clone(), instance(property, choices, depth + 1));
        }
    }
    let others = schema.get("additionalProperties").cloned().unwrap_or(json!({}));
    let strays = if others == json!(false) { usize::from(choices.below(12) == 0) } else { choices.below(3) };
    for _ in 0..strays {
        let name = ["a", "ab", "b_a", "zz", "\u{e9}"].get(choices.below(5)).copied().unwrap_or_default();
        members.entry(name).or_insert_with(|| instance(&others, choices, depth + 1));
    }
    Value::Object(members)
}

fn text(schema: &Value, choices: &mut Choices) -> Value {
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0) as usize;
    let length = (least + choices.below(8)).saturating_sub(usize::from(choices.below(6) == 0));
    CANARY.chars().chain(std::iter::repeat('\u{1f600}')).take(length).collect::<String>().into()
}

fn near_bound(schema: &Value, choices: &mut Choices, parts: f64) -> Value {
    let bounds: Vec<&Value> = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
        .iter()
        .filter_map(|keyword| schema.get(keyword))
        .collect();
    let offset = choices.below(5) as i64 - 2;
    match choices.pick(&bounds) {
        Some(Value::Number(bound)) => {
            if let Some(bound) = bound.as_u64() {
                bound.checked_add_signed(offset).unwrap_or(bound).into()
            } else if let Some(bound) = bound.as_i64() {
                bound.saturating_add(offset).into()
            } else {
                (bound.as_f64().unwrap_or_default() + offset as f64 / parts).into()
            }
        }
        // `2.0` is an integer as well as `2`.
        _ if choices.below(2) == 0 => (offset as f64 / parts).into(),
        _ => offset.into(),
    }
}

/// Some value that has nothing to do with a schema.
fn stray(choices: &mut Choices) -> Value {
    match choices.below(8) {
        0 => Value::Null,
        1 => Value::Bool(true),
        2 => json!(1),
        3 => json!(1.5),
        4 => json!("CANARY"),
        5 => json!(["CANARY", [1]]),
        6 => json!({"a": "CANARY", "b": {}}),
        _ => json!(-0.25),
    }
}
