//! The derived schemas mean what schemars says of the same types: both are given the same values.
//!
//! Two things are read into what schemars writes. The `format` of an integer is its width, which schemars tells in no other
//! way and which a type can't exceed. And what is written is closed, as what is read is (invariant S8).

use std::collections::BTreeMap;

use callgate_core::json::{KeySlot, Limits, key_capacity, scan};
use callgate_core::schema::Schema;
use callgate_core::typed::{Output as _, Read, Typed};
use callgate_macros::{Arguments, Output};
use jsonschema::Validator;
use proptest::prelude::*;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::generate::{Choices, instance};

#[derive(Arguments, Deserialize, JsonSchema, Debug, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Order {
    ByName,
    NewestFirst,
}

#[derive(Arguments, Deserialize, JsonSchema, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
enum Action {
    Stop,
    /// sideways
    Wait,
    Move(f64),
    Turn {
        degrees: i16,
        slow: Option<bool>,
    },
    List(Vec<Order>),
}

#[derive(Arguments, Deserialize, JsonSchema, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
enum OnlyData {
    A(u8),
    B { b: String },
}

#[derive(Arguments, Deserialize, JsonSchema, Debug, PartialEq)]
struct Percent(
    #[param(range(0..=100))]
    #[schemars(range(min = 0, max = 100))]
    u8,
);

#[derive(Arguments, Deserialize, JsonSchema, Debug, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Inner {
    is_open: bool,
    /// how much
    share_of_all: Option<Percent>,
}

#[derive(Arguments, Deserialize, JsonSchema, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Numbers {
    a: u8,
    b: i8,
    c: u16,
    d: i16,
    e: u32,
    f: i32,
    g: u64,
    h: i64,
    i: f64,
    j: Option<u32>,
    #[param(range(-3..=7))]
    #[schemars(range(min = -3, max = 7))]
    k: i32,
    #[param(range(0.25..=0.75))]
    #[schemars(range(min = 0.25, max = 0.75))]
    l: Option<f64>,
}

#[derive(Arguments, Deserialize, JsonSchema, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Whole {
    flag: bool,
    letter: char,
    text: String,
    #[param(length(2..=4))]
    #[schemars(length(min = 2, max = 4))]
    short: String,
    maybe: Option<String>,
    order: Order,
    other: Option<Order>,
    action: Action,
    perhaps: Option<Action>,
    data: OnlyData,
    inner: Inner,
    boxed: Box<Inner>,
    percents: Vec<Percent>,
    #[param(items(1..=2))]
    #[schemars(length(min = 1, max = 2))]
    few: Vec<Option<Inner>>,
    pair: [u8; 2],
    by_name: BTreeMap<String, Vec<Action>>,
    #[serde(rename = "type")]
    kind: Option<Percent>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Serialize, JsonSchema, Output)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Written {
    NothingAtAll,
    Number(u32),
    Fields { a: Option<i8>, b: Vec<f64> },
}

#[derive(Serialize, JsonSchema, Output)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    all_items: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<u64>,
    last: Option<Box<str>>,
    #[serde(skip)]
    _hidden: u8,
    #[serde(rename = "kind")]
    written: Written,
    by_name: BTreeMap<String, bool>,
}

/// The schema of ours as a document.
fn document(schema: &Schema<'_>) -> Value {
    schema.check().expect("a derived schema is usable");
    crate::generate::document(schema)
}

/// What schemars says, with what only its `format` and nothing at all says of it.
fn theirs<T: JsonSchema>(written: bool) -> Value {
    let mut settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    if written {
        settings = settings.for_serialize();
    }
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    complete(&mut schema);
    schema
}

fn complete(schema: &mut Value) {
    let bounds = match schema.get("format").and_then(Value::as_str) {
        Some("uint8") => Some((json!(0), json!(u8::MAX))),
        Some("uint16") => Some((json!(0), json!(u16::MAX))),
        Some("uint32") => Some((json!(0), json!(u32::MAX))),
        Some("uint64") => Some((json!(0), json!(u64::MAX))),
        Some("int8") => Some((json!(i8::MIN), json!(i8::MAX))),
        Some("int16") => Some((json!(i16::MIN), json!(i16::MAX))),
        Some("int32") => Some((json!(i32::MIN), json!(i32::MAX))),
        Some("int64") => Some((json!(i64::MIN), json!(i64::MAX))),
        _ => None,
    };
    match schema {
        Value::Object(members) => {
            if let Some((least, greatest)) = bounds {
                // What a `range` says is narrower.
                members.entry("minimum").or_insert(least);
                members.entry("maximum").or_insert(greatest);
            }
            if members.get("properties").is_some_and(Value::is_object) {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(complete);
        }
        Value::Array(items) => items.iter_mut().for_each(complete),
        _ => {}
    }
}

fn fits(schema: &Schema<'_>, text: &str) -> bool {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    let scanned = scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("readable");
    let mut fits = true;
    schema.validate_value(scanned.value(), &mut |_| fits = false);
    fits
}

fn reads<T: for<'a> Read<'a>>(text: &str) -> Result<T, String> {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    let scanned = scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("readable");
    scanned.value().parse::<Typed<T>>().map(|Typed(value)| value).map_err(|error| error.to_string())
}

/// A value that fits with one member changed, replaced after its schema, or left out; or a value made up altogether.
fn near(good: &Value, document: &Value, choices: &mut Choices) -> Value {
    let names: Vec<&String> = document["properties"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
    let (Some(name), true) = (choices.pick(&names), good.is_object() && choices.below(6) > 0) else {
        return instance(document, choices, 0);
    };
    let mut value = good.clone();
    if let Some(members) = value.as_object_mut() {
        if choices.below(6) == 0 {
            members.remove(*name);
        } else {
            members.insert((*name).clone(), instance(&document["properties"][name.as_str()], choices, 0));
        }
    }
    value
}

/// Gives values to both schemas, made after the one and after the other. Gives back those that fitted.
fn agree(ours: &Schema<'_>, theirs: &Value, good: &Value, seed: u64) -> Result<Vec<Value>, TestCaseError> {
    let validator = validator(theirs);
    let mut choices = Choices::new(seed);
    let documents = [&document(ours), theirs];
    let mut fitted = Vec::new();
    for turn in 0..12 {
        let value = near(good, documents[turn % 2], &mut choices);
        let fit = fits(ours, &value.to_string());
        prop_assert_eq!(fit, validator.is_valid(&value), "{}\n{}\n{}", documents[0], documents[1], value);
        if fit {
            fitted.push(value);
        }
    }
    Ok(fitted)
}

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).expect("what schemars writes is a schema")
}

/// Holds a type to what schemars and serde make of it.
fn same<T>(good: &Value, seed: u64) -> Result<usize, TestCaseError>
where
    T: JsonSchema + serde::de::DeserializeOwned + for<'a> Read<'a> + std::fmt::Debug + PartialEq,
{
    let fitted = agree(&T::SCHEMA, &theirs::<T>(false), good, seed)?;
    for value in &fitted {
        let text = value.to_string();
        let read = reads::<T>(&text);
        prop_assert!(read.is_ok(), "what fits is read: {} {:?}", text, read);
        // Where serde reads it, too (it takes no 1.0 for an integer), it is the same.
        if let Ok(by_serde) = serde_json::from_str::<T>(&text) {
            prop_assert_eq!(read, Ok(by_serde));
        }
    }
    Ok(fitted.len())
}

fn numbers() -> Value {
    json!({"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1.5, "j": 1, "k": 1, "l": 0.5})
}

fn whole() -> Value {
    json!({
        "flag": true, "letter": "x", "text": "", "short": "abc", "order": "by-name", "action": "Stop",
        "data": {"B": {"b": "c"}}, "inner": {"isOpen": false, "shareOfAll": 7}, "boxed": {"isOpen": true}, "percents": [0, 100],
        "few": [null], "pair": [1, 2], "by_name": {"a": [{"Turn": {"degrees": 1}}]}, "tags": ["x"]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s6_what_is_read_is_what_schemars_says(seed in any::<u64>()) {
        same::<Numbers>(&numbers(), seed)?;
        same::<Whole>(&whole(), seed)?;
        same::<Action>(&json!("Wait"), seed)?;
        same::<OnlyData>(&json!({"A": 1}), seed)?;
        same::<Option<Action>>(&json!(null), seed)?;
        same::<Inner>(&json!({"isOpen": true}), seed)?;
    }

    #[test]
    fn o1_what_is_written_is_what_schemars_says(seed in any::<u64>()) {
        let page = json!({"allItems": ["NOTHING_AT_ALL"], "last": null, "kind": {"NUMBER": 1}, "byName": {}});
        agree(&Written::SCHEMA, &theirs::<Written>(true), &page["kind"], seed)?;
        agree(&<Page<Written>>::SCHEMA, &theirs::<Page<Written>>(true), &page, seed)?;
        let list = &<Vec<Option<char>> as callgate_core::typed::Output>::SCHEMA;
        agree(list, &theirs::<Vec<Option<char>>>(true), &json!([]), seed)?;
    }
}

/// Values that nothing fits prove nothing, and neither do values that all fit.
#[test]
fn some_of_the_values_fit_and_some_do_not() {
    for (fitted, of) in [
        ((0..40).map(|seed| same::<Whole>(&whole(), seed * 77).unwrap()).sum::<usize>(), "whole"),
        ((0..40).map(|seed| same::<Numbers>(&numbers(), seed * 77).unwrap()).sum::<usize>(), "numbers"),
    ] {
        assert!((150..330).contains(&fitted), "{of}: {fitted} of 480");
    }
}

/// What serde writes fits what the type says is written.
#[test]
fn o1_what_serde_writes_fits() {
    let page = |written, next_page, last| Page {
        all_items: vec![1u8, 2],
        next_page,
        last,
        _hidden: 3,
        written,
        by_name: BTreeMap::from([("a".to_owned(), true)]),
    };
    for page in [
        page(Written::NothingAtAll, None, None),
        page(Written::Number(1), Some(u64::MAX), Some("x".into())),
        page(Written::Fields { a: None, b: vec![0.5] }, None, None),
    ] {
        let text = serde_json::to_string(&page).unwrap();
        assert!(fits(&<Page<u8>>::SCHEMA, &text), "{text}");
    }
}
