//! What the built-in tools say of themselves agrees with what they do.
#![expect(clippy::unwrap_used, clippy::panic, reason = "in helpers of tests; a failure is a failed test")]

use callgate::toolkit::fs::{ListArgs, ReadArgs, SearchArgs, WriteArgs};
use callgate::toolkit::time::NowArgs;
use callgate::toolkit::{ToolDef, definitions};
use callgate_core::name::check_tool_name;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

fn schema(definition: &ToolDef) -> Value {
    serde_json::from_str(&definition.input_schema).unwrap()
}

fn properties(schema: &Value) -> &Map<String, Value> {
    schema["properties"].as_object().unwrap()
}

/// Whether the tool's typed arguments can be read from `arguments`.
fn reads(name: &str, arguments: &Value) -> bool {
    fn can<T: DeserializeOwned>(arguments: &Value) -> bool {
        serde_json::from_value::<T>(arguments.clone()).is_ok()
    }
    match name {
        "time.now" => can::<NowArgs>(arguments),
        "fs.list" => can::<ListArgs>(arguments),
        "fs.read" => can::<ReadArgs>(arguments),
        "fs.search" => can::<SearchArgs>(arguments),
        "fs.write" => can::<WriteArgs>(arguments),
        other => panic!("no typed arguments for {other}"),
    }
}

/// A value of the fitting type for a property: its default, its first choice, or anything.
fn sample(property: &Value) -> Value {
    if let Some(default) = property.get("default") {
        return default.clone();
    }
    match property["type"].as_str().unwrap() {
        "string" => json!("x"),
        "integer" => json!(1),
        "boolean" => json!(true),
        other => panic!("no sample of {other}"),
    }
}

#[test]
fn names_are_sorted_and_in_the_grammar() {
    let names: Vec<_> = definitions().into_iter().map(|definition| definition.name).collect();
    assert_eq!(names, ["fs.list", "fs.read", "fs.search", "fs.write", "time.now"]);
    assert!(names.iter().all(|name| check_tool_name(name).is_ok()));
}

// S6, S8: closed, and bounded in every field.
#[test]
fn s6_every_schema_is_closed_and_bounded() {
    for definition in definitions() {
        let schema = schema(&definition);
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&json!("object"), &json!(false)),
            "{}",
            definition.name
        );
        for (name, property) in properties(&schema) {
            let bounds: &[&str] = match property["type"].as_str().unwrap() {
                "string" => &["maxLength"],
                "integer" => &["minimum", "maximum"],
                _ => &[],
            };
            assert!(bounds.iter().all(|bound| property[*bound].is_i64()), "{}.{name}", definition.name);
            assert!(property["description"].is_string(), "{}.{name}", definition.name);
        }
    }
}

#[test]
fn schemas_and_typed_arguments_have_the_same_fields() {
    for definition in definitions() {
        let schema = schema(&definition);
        let all: Map<_, _> =
            properties(&schema).iter().map(|(name, property)| (name.clone(), sample(property))).collect();
        assert!(reads(&definition.name, &json!(all)), "{}", definition.name);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|name| name.as_str().unwrap())
            .collect();
        let least: Map<_, _> = all.clone().into_iter().filter(|(name, _)| required.contains(&name.as_str())).collect();
        assert!(reads(&definition.name, &json!(least)), "{}", definition.name);
        for missing in required {
            let without: Map<_, _> = all.clone().into_iter().filter(|(name, _)| name != missing).collect();
            assert!(!reads(&definition.name, &json!(without)), "{} reads without {missing}", definition.name);
        }
        let unknown: Map<_, _> = all.into_iter().chain([("unknown".to_owned(), json!(1))]).collect();
        assert!(!reads(&definition.name, &json!(unknown)), "{}", definition.name);
    }
}

// K1: what the clamp mends is not refused before it, and what it gives is not refused after it.
#[test]
fn k1_no_schema_is_narrower_than_its_clamps() {
    for definition in definitions() {
        let schema = schema(&definition);
        for clamp in &definition.clamps {
            let property = &schema["properties"][clamp.pointer.strip_prefix('/').unwrap()];
            assert_eq!(property["type"], "integer", "{}{}", definition.name, clamp.pointer);
            let (least, most) = (property["minimum"].as_i64().unwrap(), property["maximum"].as_i64().unwrap());
            assert!(
                least < clamp.min && clamp.max < most && clamp.min <= clamp.max,
                "{}{}",
                definition.name,
                clamp.pointer
            );
            let default = property["default"].as_i64().unwrap();
            assert!((clamp.min..=clamp.max).contains(&default), "{}{}", definition.name, clamp.pointer);
        }
    }
}

#[test]
fn only_what_writes_is_mutating_and_it_is_confirmed() {
    for definition in definitions() {
        let writes = definition.name == "fs.write";
        assert_eq!(
            (definition.mutating, definition.confirm_by_caller, definition.read_only),
            (writes, writes, !writes),
            "{}",
            definition.name
        );
    }
}
