//! Structs and enums that derive `Arguments`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use callgate_core::args::Args;
use callgate_core::clamp::{Bound, Clamp};
use callgate_core::context::CallContext;
use callgate_core::json::{KeySlot, Limits};
use callgate_core::request::Request;
use callgate_core::schema::Schema;
use callgate_core::tool::FieldRule;
use callgate_core::typed::{self, Arguments as _, Parameter as _, Read};
use callgate_macros::Arguments;
use callgate_std::gate::Gate;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use serde_json::{Value, json};

use crate::drive::call;

/// How to sort
#[derive(Arguments, Debug, PartialEq, Clone, Copy)]
#[arguments(rename_all = "lowercase")]
pub(crate) enum Order {
    /// by name
    Name,
    /// newest first
    Date,
}

#[derive(Arguments, Debug, PartialEq)]
pub(crate) enum Shape {
    Nothing,
    Circle(#[param(range(0.0..=100.0))] f64),
    Text(String),
    Box {
        #[param(range(1..=50))]
        width: u8,
        #[param(default = 3)]
        height: u8,
        label: Option<String>,
    },
}

#[derive(Arguments, Debug, PartialEq)]
pub(crate) struct Id(#[param(range(1..=999))] u32);

#[derive(Arguments, Debug, PartialEq)]
pub(crate) struct Range {
    #[param(clamp(0..=10))]
    from: i32,
    #[param(clamp(..=20), secret)]
    to: Option<i32>,
}

#[derive(Arguments, Debug, PartialEq)]
pub(crate) struct Everything<'a> {
    flag: bool,
    #[param(range(-5..=5))]
    small: i8,
    wide: u64,
    #[param(clamp(0.5..=2.5), default = 1.5)]
    factor: f64,
    letter: char,
    #[param(length(1..=8), description = "a word")]
    word: String,
    /// Text that
    /// may be borrowed.
    ///
    /// # Panics
    /// never
    #[param(clamp_length(..=3))]
    text: Cow<'a, str>,
    #[param(enum("a", "b"))]
    choice: Option<String>,
    #[param(enum(1, 5, 10))]
    step: Option<u8>,
    #[param(default = "date")]
    order: Order,
    shape: Option<Shape>,
    #[param(items(..=2))]
    ids: Vec<Id>,
    #[param(default)]
    tags: Vec<String>,
    pair: [i64; 2],
    ranges: BTreeMap<String, Range>,
    #[param(secret, rename = "type")]
    kind: Option<Box<Range>>,
}

fn read<T, R>(text: &Value, look: impl FnOnce(Result<T, String>) -> R) -> R
where
    T: for<'a> Read<'a>,
{
    let text = text.to_string();
    with_args(&text, |args| look(typed::parse(args).map_err(|error| error.to_string())))
}

fn with_args<R>(text: &str, look: impl FnOnce(Args<'_>) -> R) -> R {
    let mut keys = [KeySlot::default(); 128];
    look(Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap())
}

pub(crate) fn fits(schema: &Schema<'_>, text: &Value) -> bool {
    with_args(&text.to_string(), |args| schema.accepts(args))
}

pub(crate) fn document(schema: &Schema<'_>) -> Value {
    let mut text = String::new();
    schema.write_json_schema(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn full() -> Value {
    json!({
        "flag": true, "small": -5, "wide": u64::MAX, "factor": 2, "letter": "\u{1f600}", "word": "w", "text": "t\n\u{e9}",
        "choice": "b", "step": 5, "order": "name", "shape": {"Box": {"width": 50, "label": null}}, "ids": [1, 999],
        "tags": ["x"], "pair": [i64::MIN, i64::MAX], "ranges": {"one": {"from": 3}}, "type": {"from": 1, "to": 2}
    })
}

fn without(value: &Value, name: &str) -> Value {
    let mut value = value.clone();
    value.as_object_mut().unwrap().remove(name);
    value
}

fn with(name: &str, changed: Value) -> Value {
    let mut value = full();
    value[name] = changed;
    value
}

#[test]
fn every_kind_of_field_is_read() {
    let text = full().to_string();
    with_args(&text, |args| {
        let it: Everything<'_> = typed::parse(args).unwrap();
        // A text with escapes can't be borrowed.
        assert_eq!(it.text, Cow::<str>::Owned("t\n\u{e9}".to_owned()));
        assert!(matches!(it.text, Cow::Owned(_)));
        assert_eq!((it.flag, it.small, it.wide, it.factor, it.letter), (true, -5, u64::MAX, 2.0, '\u{1f600}'));
        assert_eq!((it.word.as_str(), it.choice.as_deref(), it.step, it.order), ("w", Some("b"), Some(5), Order::Name));
        assert_eq!(it.shape, Some(Shape::Box { width: 50, height: 3, label: None }));
        assert_eq!((it.ids, it.tags, it.pair), (vec![Id(1), Id(999)], vec!["x".to_owned()], [i64::MIN, i64::MAX]));
        assert_eq!(it.ranges["one"], Range { from: 3, to: None });
        assert_eq!(it.kind, Some(Box::new(Range { from: 1, to: Some(2) })));
    });
}

/// S8, V9: closed, and what must be there must be.
#[test]
fn s8_what_may_be_left_out_may_and_nothing_else() {
    let schema = Everything::SCHEMA;
    assert!(fits(&schema, &full()));
    let optional = ["factor", "choice", "step", "order", "shape", "tags", "type"];
    for name in full().as_object().unwrap().keys() {
        let text = without(&full(), name);
        let may = optional.contains(&name.as_str());
        assert_eq!(fits(&schema, &text), may, "{name}");
        with_args(&text.to_string(), |args| {
            assert_eq!(typed::parse::<Everything<'_>>(args).is_ok(), may, "{name}");
        });
    }
    assert!(!fits(&schema, &with("kind", json!(null))), "the name in the source is none on the wire");
    with_args(&without(&full(), "factor").to_string(), |args| {
        assert_eq!(typed::parse::<Everything<'_>>(args).unwrap().factor, 1.5);
    });
    with_args(&without(&full(), "order").to_string(), |args| {
        assert_eq!(typed::parse::<Everything<'_>>(args).unwrap().order, Order::Date);
    });
    // V6, V7: null is nothing where a field is an `Option`, and refused elsewhere.
    for name in full().as_object().unwrap().keys() {
        let may = ["choice", "step", "shape", "type"].contains(&name.as_str());
        assert_eq!(fits(&schema, &with(name, Value::Null)), may, "{name}");
    }
}

#[test]
fn s6_what_is_said_of_a_field_is_checked() {
    let schema = Everything::SCHEMA;
    for (name, good, bad) in [
        ("small", json!(5), json!(6)),
        ("small", json!(1.0), json!(1.5)),
        ("wide", json!(0), json!(-1)),
        ("letter", json!("x"), json!("xy")),
        ("word", json!("12345678"), json!("123456789")),
        ("word", json!("1"), json!("")),
        ("choice", json!("a"), json!("c")),
        ("step", json!(10), json!(2)),
        ("order", json!("name"), json!("Name")),
        ("shape", json!("Nothing"), json!("nothing")),
        ("shape", json!({"Circle": 100}), json!({"Circle": 100.5})),
        ("shape", json!({"Text": ""}), json!({"Text": "", "Circle": 1})),
        ("shape", json!({"Box": {"width": 1}}), json!({"Box": {"width": 51}})),
        ("shape", json!({"Box": {"width": 1, "height": 255}}), json!({"Box": {"width": 1, "height": 256}})),
        ("ids", json!([]), json!([0])),
        ("ids", json!([1, 2]), json!([1, 2, 3])),
        ("pair", json!([1, 2]), json!([1])),
        ("ranges", json!({"x": {"from": 99}}), json!({"x": {"form": 1}})),
    ] {
        assert!(fits(&schema, &with(name, good.clone())), "{name} {good}");
        assert!(!fits(&schema, &with(name, bad.clone())), "{name} {bad}");
        with_args(&with(name, good.clone()).to_string(), |args| {
            if let Err(error) = typed::parse::<Everything<'_>>(args) {
                panic!("what fits is read: {name} {good}: {error}");
            }
        });
    }
}

/// K3, L1: the rules for fields come from the same constant, nested ones too.
#[test]
fn k3_l1_clamps_and_secrets_come_along() {
    let float = Clamp { min: Some(Bound::Float(0.5)), max: Some(Bound::Float(2.5)), max_length: None };
    assert_eq!(
        Everything::FIELDS,
        [
            FieldRule::clamp("/factor", float),
            FieldRule::clamp("/text", Clamp::max_length(3)),
            FieldRule::clamp("/ranges/*/from", Clamp::range(0, 10)),
            FieldRule { path: "/ranges/*/to", clamp: Some(Clamp::max(20)), secret: true },
            FieldRule::secret("/type"),
            FieldRule::clamp("/type/from", Clamp::range(0, 10)),
            FieldRule { path: "/type/to", clamp: Some(Clamp::max(20)), secret: true },
        ]
    );
    assert!(fits(&Everything::SCHEMA, &with("factor", json!(-7))), "what the clamp is to mend gets there");
}

#[test]
fn descriptions_and_defaults_are_told() {
    let document = document(&Everything::SCHEMA);
    let told = |name: &str, word: &str| document["properties"][name][word].clone();
    assert_eq!(told("text", "description"), "Text that\nmay be borrowed.");
    assert_eq!(told("word", "description"), "a word");
    assert_eq!(told("order", "description"), "How to sort\n- name: by name\n- date: newest first");
    assert_eq!((told("order", "default"), told("factor", "default")), (json!("date"), json!(1.5)));
    assert_eq!(told("tags", "default"), Value::Null);
}

/// L4: the type itself refuses what no schema stood before, by names and never by values.
#[test]
fn l4_reading_names_the_field_and_not_the_value() {
    let refused = |text: Value| read::<Range, _>(&text, |read| read.unwrap_err());
    assert_eq!(refused(json!({})), "the field `from` is missing");
    assert!(refused(json!({"from": 1, "form": "SECRET"})).contains("form"));
    assert!(!refused(json!({"from": "SECRET"})).contains("SECRET"));
    assert!(read::<Shape, _>(&json!({"Nothing": null}), |read| read.is_ok()), "as serde has it");
    assert!(read::<Shape, _>(&json!({"Hexagon": 1}), |read| read.unwrap_err()).contains("Nothing"));
}

#[test]
fn a_closure_takes_a_derived_type_along_with_its_schema() {
    let tool = Tool::builder("range.show")
        .description("Shows a range")
        .takes(|_call, range: Range| Ok(Reply::new(json!([range.from, range.to]))));
    let registry = Registry::builder().add(tool).build().unwrap();
    let tool = registry.get("range.show").unwrap();
    assert!(tool.advertised_schema().contains("Numbers outside 0 to 10 are brought to the nearer of the two."));
    assert_eq!(tool.spec().fields.len(), 2);
    let outcome = call(&registry, "range.show", r#"{"from": -3, "to": 21}"#);
    assert_eq!(outcome["data"], json!([0, 20]), "{outcome}");
    assert_eq!(call(&registry, "range.show", r#"{"from": "1"}"#)["meta"]["code"], "VALIDATION_ERROR");
}

/// The same for a body that waits.
#[test]
fn a_closure_that_waits_takes_a_derived_type() {
    let tool = Tool::builder("range.show")
        .description("Shows a range")
        .async_takes(|call, range: Range| async move { Ok(Reply::new(json!([call.spec().name, range.from]))) });
    let gate = Gate::builder(Registry::builder().add(tool).build().unwrap()).build().unwrap();
    let request = Request { tool: "range.show", arguments: br#"{"from": 99}"#, token: None };
    let outcome = gate.call(&CallContext::cli("r1"), request);
    assert_eq!(outcome.output().map(|reply| reply.data().to_string()).as_deref(), Some(r#"["range.show",10]"#));
}
