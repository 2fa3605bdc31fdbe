//! Properties of the core's schemas, on generated schemas and values.

#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod generate;
mod import;

use callgate_core::args::Args;
use callgate_core::json::write::must_escape;
use callgate_core::json::{KeySlot, Limits, key_capacity};
use callgate_core::schema::{Property, Schema};
use generate::{CANARY, Choices};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Gives `text` to `look` as arguments.
fn read<T>(text: &str, look: impl FnOnce(Args<'_>) -> T) -> T {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    look(Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("readable"))
}

fn violations(schema: &Schema<'_>, text: &str) -> Vec<(String, String)> {
    read(text, |args| {
        let mut found = Vec::new();
        schema.validate(args, &mut |violation| found.push((violation.field.to_string(), violation.reason.to_string())));
        found
    })
}

/// Arguments that fit the schema more or less.
fn arguments(document: &serde_json::Value, seed: u64) -> String {
    match generate::instance(document, &mut Choices::new(seed), 0) {
        value @ serde_json::Value::Object(_) => value.to_string(),
        _ => "{}".into(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// L4: a message holds what the schema says and names, and never a value.
    #[test]
    fn l4_no_value_is_in_a_message(schema in generate::argument_schemas(), seed in any::<u64>()) {
        for (field, reason) in violations(&schema, &arguments(&generate::document(&schema), seed)) {
            prop_assert!(!field.contains(CANARY) && !reason.contains(CANARY), "{field}: {reason}");
            prop_assert!(!reason.is_empty());
        }
    }

    /// S9: the check changes nothing, and says the same again in the same order.
    #[test]
    fn s9_the_check_changes_nothing(schema in generate::argument_schemas(), seed in any::<u64>()) {
        let text = arguments(&generate::document(&schema), seed);
        prop_assert_eq!(violations(&schema, &text), violations(&schema, &text));
        let written = read(&text, |args| {
            let _ = schema.accepts(args);
            let mut written = String::new();
            args.write_json(&mut written).map(|()| written)
        });
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&written.unwrap()).unwrap(), serde_json::from_str::<serde_json::Value>(&text).unwrap());
    }

    /// What is written down and taken in again means the same.
    #[test]
    fn s6_the_export_means_the_same(schema in generate::argument_schemas(), seed in any::<u64>()) {
        let document = generate::document(&schema);
        // The document may say what only `check` refuses, such as a type of which no value can be.
        let Ok(again) = import::import(&document) else { return Ok(()) };
        let text = arguments(&document, seed);
        prop_assert_eq!(violations(&schema, &text).is_empty(), violations(&again, &text).is_empty(), "{} {}", document, text);
    }
}

/// The compiler writes the same text as the program.
#[test]
fn both_ways_to_write_a_schema_write_the_same() {
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() });
    let same = |schema: Schema<'static>| {
        let mut text = String::new();
        schema.write_json_schema(&mut text).unwrap();
        prop_assert_eq!(schema.json_bytes(), text.len());
        let constant = schema.json_text::<32_768>();
        prop_assert_eq!(constant.as_str(), if text.len() > 32_768 { "" } else { &*text });
        Ok(())
    };
    runner.run(&generate::schemas(), same).unwrap();
    for bound in [0.1, -12.25, 0.0001, 123_456_789.012_345, 4_503_599_627_370.5, 1.0, -0.0, 1e15, 0.300_000_000_000_001]
    {
        same(Schema::number().minimum_f64(bound).describe("\u{e4}\u{20ac}\u{1f600}\t\"\\\r\n")).unwrap();
    }
}

/// D5: a constant of a schema with a character that nobody sees does not compile, wherever in Unicode that character stands; others do.
#[test]
fn d5_a_schema_in_a_constant_hides_no_character() {
    let shown = |c: char| std::panic::catch_unwind(|| Schema::any().describe(String::leak(c.into())).json_bytes());
    let escapes = ['"', '\\', '\n', '\r', '\t'];
    let edge = |c: &char| {
        let beside = [1, -1].map(|step| u32::from(*c).checked_add_signed(step).and_then(char::from_u32));
        beside.iter().any(|other| other.is_none_or(|other| must_escape(other) != must_escape(*c)))
            || u32::from(*c).is_multiple_of(4_111)
    };
    for c in ('\0'..=char::MAX).filter(edge) {
        let mut text = String::new();
        Schema::any().describe(String::leak(c.into())).write_json_schema(&mut text).expect("a string takes all");
        let hidden = must_escape(c) && !escapes.contains(&c);
        assert_eq!(shown(c).ok(), (!hidden).then_some(text.len()), "{c:?}");
    }
}

/// A number that the compiler would not write in full stops it.
#[test]
fn s4_a_number_with_too_many_digits_is_no_constant() {
    let written = |bound: f64| std::panic::catch_unwind(|| Schema::number().minimum_f64(bound).json_bytes()).is_ok();
    for bound in [0.0001, 0.5, -0.5, 99_999_999_999_999.5, 0.123_456_789_012_345] {
        assert!(written(bound), "{bound}");
    }
    for bound in [0.000_09, 0.1 + 0.2, 1e-300, 999_999_999_999_999.5] {
        assert!(!written(bound), "{bound}");
    }
}

/// S5: at the bounds of the reader and of a schema at once, one pass, every violation told, a fixed stack.
#[test]
fn s5_at_the_bounds_every_violation_is_told() {
    let names: Vec<String> = (0..128).map(|n| format!("p{n}")).collect();
    let properties: Vec<_> = names.iter().map(|name| Property::required(name, Schema::integer())).collect();
    let schema = Schema::object(&properties);
    schema.check().unwrap();

    let members: Vec<String> = (0..4096).map(|n| format!(r#""p{n}":"x""#)).collect();
    let found = violations(&schema, &format!("{{{}}}", members.join(",")));
    assert_eq!(found.len(), 4096);
    assert_eq!(found[127], ("p127".into(), "Expected integer, got string".into()));
    assert!(found[4095].1.starts_with("Unknown property: p4095"));
    assert_eq!(violations(&schema, "{}").len(), 128);

    let list = Schema::array(&schema);
    let root = [Property::required("rows", list)];
    let rows = vec!["{}"; 2_000].join(",");
    assert_eq!(violations(&Schema::object(&root), &format!(r#"{{"rows":[{rows}]}}"#)).len(), 2_000 * 128);
}

/// S5, V14: a value that nests as deep as the reader admits, against schemas that nest less, as deep, and not at all.
#[test]
fn s5_depth_is_bounded_on_both_sides() {
    let text = format!(r#"{{"a":{}{}}}"#, "[".repeat(63), "]".repeat(63));
    const INTEGER: Schema<'static> = Schema::integer();
    let mut schema = Schema::any();
    for depth in 1..31 {
        schema = Schema::array(Box::leak(Box::new(schema)));
        assert_eq!(schema.depth(), depth + 1);
        let root = [Property::required("a", schema)];
        let root = Schema::object(&root);
        root.check().unwrap();
        assert_eq!(violations(&root, &text), []);
        let flat = [Property::required("a", Schema::array(&INTEGER))];
        assert_eq!(violations(&Schema::object(&flat), &text), [("a[0]".into(), "Expected integer, got array".into())]);
    }
    // An innermost object needs a place on the stack of its own.
    let mut map = Schema::object(&[]);
    for depth in 1..31 {
        map = Schema::map(Box::leak(Box::new(map)));
        let text = format!("{}{{\"x\":1}}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let path = vec!["a"; depth].join(".");
        assert_eq!(violations(&map, &text), [(path, "Unknown property: x (none is accepted)".into())]);
    }
    // As deep as a schema may be it is written, and deeper it is not.
    let mut nested = Schema::any();
    for depth in 2..=34 {
        nested = Schema::array(Box::leak(Box::new(nested)));
        assert_eq!(nested.write_json_schema(&mut String::new()).is_ok(), depth <= 32, "{depth}");
    }
    let mut leaf = Schema::integer();
    for _ in 1..31 {
        leaf = Schema::array(Box::leak(Box::new(leaf)));
    }
    let root = [Property::required("a", leaf)];
    let found = violations(&Schema::object(&root), &text);
    assert_eq!(found, [(format!("a{}", "[0]".repeat(30)), "Expected integer, got array".into())]);
}
