//! Tools as model providers want them: names that stay apart, schemas in the provider's own words, and the way back.
#![cfg(test)]
#![allow(dead_code, reason = "helpers that other programs use")]

#[path = "../../core/tests/generate/mod.rs"]
mod generate;

use callgate_core::args::Args;
use callgate_core::context::CallContext;
use callgate_core::json::{KeySlot, Limits, key_capacity};
use callgate_core::schema::{Property, Schema};
use callgate_macros::{Arguments, tool};
use callgate_std::listing::Listing;
use callgate_std::output::Reply;
use callgate_std::provider::{ExportError, Provider, ToolNames, Unsayable, export, restore};
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use generate::{Choices, instance};
use proptest::prelude::*;
use serde_json::{Value, json};

const ALL: [Provider; 4] = [Provider::OpenAi, Provider::OpenAiStrict, Provider::Anthropic, Provider::Gemini];

#[derive(Arguments)]
struct Filter {
    #[param(length(1..=20))]
    text: String,
    #[param(default = true)]
    exact: bool,
}

#[derive(Arguments)]
enum Target {
    Everything,
    One { id: u32, note: Option<String> },
}

/// Finds things
#[tool(name = "things.find")]
#[expect(clippy::needless_pass_by_value, unused_variables, reason = "only its definition is of interest")]
fn find(
    filter: Filter,
    target: Target,
    /// How many
    #[param(range(1..=50), default = 10)]
    max: u8,
    #[param(enum(1, 5))] step: Option<u8>,
    #[param(enum("up", "down"))] order: Option<String>,
    #[param(items(..=3))] tags: Option<Vec<String>>,
    #[param(range(0.5..))] share: Option<f64>,
) -> u8 {
    max
}

fn one(provider: Provider, tool: &Tool) -> Value {
    let exported = export(provider, [tool]).unwrap();
    serde_json::from_str(&exported.tools().next().unwrap()).unwrap()
}

fn tool_of(name: &str, schema: Schema<'static>) -> Tool {
    Tool::builder(name)
        .description("Does something")
        .const_schema(schema)
        .handler(|_| Ok(Reply::empty()))
        .build()
        .unwrap()
}

fn json_tool(schema: Value) -> Tool {
    Tool::builder("t")
        .description("Does something")
        .json_schema(schema)
        .handler(|_| Ok(Reply::empty()))
        .build()
        .unwrap()
}

/// V19: names that a provider would have as one are refused together, whatever their order, and none is taken for another.
#[test]
fn v19_names_stay_apart_or_are_refused() {
    for (first, second) in [("read.file", "read_file"), ("read_file", "read.file"), ("a.b_c", "a_b.c")] {
        for provider in [Provider::OpenAi, Provider::OpenAiStrict, Provider::Anthropic] {
            let error = ToolNames::new(provider, [first, "other", second]).unwrap_err();
            assert!(
                matches!(&error, ExportError::SameName { first: a, second: b, .. } if a == first && b == second),
                "{error}"
            );
        }
        assert!(ToolNames::new(Provider::Gemini, [first, second]).is_ok(), "it admits dots");
    }
    let names = ToolNames::new(Provider::Anthropic, ["read-file", "read.file", "x"]).unwrap();
    assert_eq!((names.wire("read.file"), names.tool("read_file")), (Some("read_file"), Some("read.file")));
    assert_eq!((names.tool("read-file"), names.tool("read.file")), (Some("read-file"), None));
    let schema = Schema::object(const { &[Property::required("a", Schema::integer())] });
    let clash = export(Provider::OpenAi, [&tool_of("read.file", schema), &tool_of("read_file", schema)]).unwrap_err();
    assert_eq!(
        clash.to_string(),
        "tools read.file and read_file would both be read_file; rename one, or give the model one of the two"
    );
    let long = "x".repeat(65);
    assert!(matches!(ToolNames::new(Provider::OpenAi, [&*long]), Err(ExportError::LongName { max: 64, .. })));
    assert!(ToolNames::new(Provider::Anthropic, [&*long]).is_ok());
    assert!(matches!(ToolNames::new(Provider::Gemini, ["1a"]), Err(ExportError::FirstCharacter { .. })));
}

#[test]
fn strict_schemas_require_all_and_close_all() {
    let function = one(Provider::OpenAiStrict, &find::tool().build().unwrap());
    assert_eq!(
        (&function["type"], &function["name"], &function["strict"]),
        (&json!("function"), &json!("things_find"), &json!(true))
    );
    assert_eq!(
        function["parameters"],
        json!({
            "type": "object",
            "properties": {
                "filter": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "description": "At least 1 characters. At most 20 characters."},
                        "exact": {"type": ["boolean", "null"], "description": "Default: true."}
                    },
                    "required": ["text", "exact"],
                    "additionalProperties": false
                },
                "target": {"anyOf": [
                    {"type": "string", "enum": ["Everything"]},
                    {
                        "type": "object",
                        "properties": {"One": {
                            "type": "object",
                            "properties": {
                                "id": {"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32},
                                "note": {"type": ["null", "string"]}
                            },
                            "required": ["id", "note"],
                            "additionalProperties": false
                        }},
                        "required": ["One"],
                        "additionalProperties": false
                    }
                ]},
                "max": {"type": ["integer", "null"], "minimum": 1, "maximum": 50, "description": "How many Default: 10."},
                "step": {"type": ["null", "integer"], "enum": [1, 5, null], "minimum": 0, "maximum": 255},
                "order": {"type": ["null", "string"], "enum": ["up", "down", null]},
                "tags": {"type": ["null", "array"], "maxItems": 3, "items": {"type": "string"}},
                "share": {"type": ["null", "number"], "minimum": 0.5}
            },
            "required": ["filter", "target", "max", "step", "order", "tags", "share"],
            "additionalProperties": false
        })
    );
}

#[test]
fn gemini_gets_its_own_words_alone() {
    let declaration = one(Provider::Gemini, &find::tool().build().unwrap());
    assert_eq!(declaration["name"], "things.find");
    let properties = &declaration["parameters"]["properties"];
    assert_eq!(
        properties["step"],
        json!({"type": "INTEGER", "minimum": 0, "maximum": 255, "nullable": true, "description": "One of: 1, 5."})
    );
    assert_eq!(properties["order"], json!({"type": "STRING", "enum": ["up", "down"], "nullable": true}));
    assert_eq!(
        properties["max"],
        json!({"type": "INTEGER", "minimum": 1, "maximum": 50, "description": "How many Default: 10."})
    );
    assert_eq!(properties["target"]["anyOf"][0], json!({"type": "STRING", "enum": ["Everything"]}));
    assert_eq!(declaration["parameters"]["propertyOrdering"][6], "share");
    let none = json_tool(json!({"type": "object", "additionalProperties": false}));
    assert!(one(Provider::Gemini, &none).get("parameters").is_none());
    let refers = json_tool(json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/small", "description": "here"}, "b": {"type": ["integer", "string"], "exclusiveMinimum": 3, "maxLength": 2}},
        "$defs": {"small": {"type": "integer", "exclusiveMaximum": 5, "description": "there"}}
    }));
    let lowered = one(Provider::Gemini, &refers);
    assert_eq!(
        lowered["parameters"]["properties"]["a"],
        json!({"type": "INTEGER", "maximum": 4, "description": "here"})
    );
    assert_eq!(
        lowered["parameters"]["properties"]["b"],
        json!({"anyOf": [{"type": "INTEGER", "minimum": 4}, {"type": "STRING", "maxLength": 2}]})
    );
}

/// A listing is told as it is listed: what a caller can't find, its model is not told of.
#[test]
fn a_listing_is_told_in_its_order() {
    let schema = Schema::object(const { &[Property::required("a", Schema::integer())] });
    let registry = Registry::builder().add(tool_of("b", schema)).add(tool_of("a", schema)).build().unwrap();
    let listing = Listing::of(&registry, &CallContext::cli("r1"));
    let exported = export(Provider::Anthropic, listing.tools()).unwrap();
    let names: Vec<String> = exported
        .tools()
        .map(|tool| serde_json::from_str::<Value>(&tool).unwrap()["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["b", "a"]);
}

#[test]
fn anthropic_gets_the_schema_as_it_is() {
    let tool = find::tool().build().unwrap();
    let exported = one(Provider::Anthropic, &tool);
    assert_eq!(exported["input_schema"], serde_json::from_str::<Value>(tool.advertised_schema()).unwrap());
    assert_eq!(exported.as_object().unwrap().len(), 3);
    let odd = json_tool(json!({"type": "object", "properties": {"a": {"items": {"properties": {"b c": {}}}}}}));
    let error = export(Provider::Anthropic, [&odd]).unwrap_err();
    assert_eq!(
        error,
        ExportError::Schema {
            tool: "t".to_owned(),
            at: "/properties/a/items/properties/b c".to_owned(),
            problem: Unsayable::PropertyName
        }
    );
}

/// What can't be said is refused with its place, and never left out in silence.
#[test]
fn what_can_not_be_said_is_refused() {
    let refused = |provider, schema: Value| match export(provider, [&json_tool(schema)]) {
        Err(ExportError::Schema { at, problem, .. }) => (at, problem),
        other => panic!("{other:?}"),
    };
    let keyword = |word: &str| Unsayable::Keyword(word.to_owned());
    for provider in [Provider::OpenAiStrict, Provider::Gemini] {
        let with =
            |property: Value| json!({"type": "object", "properties": {"a": property}, "additionalProperties": false});
        assert_eq!(
            refused(provider, with(json!({"type": "integer", "not": {"const": 3}}))),
            ("/properties/a/not".into(), keyword("not"))
        );
        assert_eq!(refused(provider, with(json!({}))), ("/properties/a".into(), Unsayable::Untyped));
        assert_eq!(
            refused(provider, json!({"type": "object"})),
            if provider == Provider::Gemini {
                (String::from("the root"), Unsayable::Open)
            } else {
                ("the root".into(), Unsayable::Open)
            }
        );
    }
    let map = json!({"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}, "additionalProperties": false});
    assert_eq!(refused(Provider::OpenAiStrict, map.clone()), ("/properties/a".into(), Unsayable::Open));
    let gemini = one(Provider::Gemini, &json_tool(map));
    assert_eq!(
        gemini["parameters"]["properties"]["a"],
        json!({"type": "OBJECT", "description": "Members of any name, each of which fits {\"type\":\"string\"}."})
    );
    let untyped =
        |values: Value| json!({"type": "object", "properties": {"a": {"enum": values}}, "additionalProperties": false});
    for mixed in [json!(["x", false]), json!([[1]]), json!([null])] {
        assert_eq!(refused(Provider::Gemini, untyped(mixed)), ("/properties/a".into(), Unsayable::Untyped));
    }
    let numbers = one(Provider::Gemini, &json_tool(untyped(json!([1, null, 2]))));
    assert_eq!(
        numbers["parameters"]["properties"]["a"],
        json!({"type": "INTEGER", "nullable": true, "description": "One of: 1, 2."})
    );
    let around = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}});
    assert_eq!(refused(Provider::Gemini, around).1, Unsayable::Reference);
}

/// Every property that may be left out is there, as null: what a model sends that is held to a strict schema.
fn filled(schema: &Value, value: &Value) -> Value {
    if let Some(parts) = schema["anyOf"].as_array() {
        let fitting = parts.iter().find(|part| jsonschema::validator_for(part).unwrap().is_valid(value));
        return fitting.map_or_else(|| value.clone(), |part| filled(part, value));
    }
    match value {
        Value::Object(members) => {
            let mut members = members.clone();
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let value = members.get(name).map_or(Value::Null, |value| filled(property, value));
                members.insert(name.clone(), value);
            }
            Value::Object(members)
        }
        Value::Array(items) => items.iter().map(|item| filled(&schema["items"], item)).collect(),
        other => other.clone(),
    }
}

/// A schema of Gemini as one of JSON Schema.
fn as_json_schema(schema: &Value) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    let mut out = serde_json::Map::new();
    for (name, value) in members {
        match name.as_str() {
            "type" => drop(out.insert("type".into(), json!(value.as_str().unwrap().to_lowercase()))),
            "properties" => {
                let properties =
                    value.as_object().unwrap().iter().map(|(name, part)| (name.clone(), as_json_schema(part)));
                out.insert("properties".into(), Value::Object(properties.collect()));
            }
            "items" => drop(out.insert("items".into(), as_json_schema(value))),
            "anyOf" => {
                let parts = value.as_array().unwrap().iter().map(as_json_schema).collect();
                out.insert("anyOf".into(), Value::Array(parts));
            }
            "nullable" => {}
            "enum" | "required" | "minimum" | "maximum" | "minItems" | "maxItems" | "minLength" | "maxLength"
            | "pattern" | "description" => drop(out.insert(name.clone(), value.clone())),
            "propertyOrdering" => {
                assert_eq!(value.as_array().unwrap().len(), members["properties"].as_object().unwrap().len());
            }
            other => panic!("no word of Gemini's: {other}"),
        }
    }
    let schema = Value::Object(out);
    if members.get("nullable") == Some(&json!(true)) { json!({"anyOf": [schema, {"type": "null"}]}) } else { schema }
}

fn accepts(schema: &Schema<'_>, text: &str) -> bool {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).is_ok_and(|args| schema.accepts(args))
}

/// The value without what is null and may be left out: two values that differ in it mean the same where it is optional.
fn check(schema: Schema<'static>, seed: u64) -> Result<(bool, bool), TestCaseError> {
    let tool = tool_of("t", schema);
    let document = generate::document(&schema);
    let mut choices = Choices::new(seed);
    let strict = export(Provider::OpenAiStrict, [&tool]).ok();
    let gemini = export(Provider::Gemini, [&tool]).ok();
    let parse = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let (mut told_strictly, mut told_to_gemini) = (false, false);
    for _ in 0..6 {
        let value = instance(&document, &mut choices, 0);
        let text = value.to_string();
        if !value.is_object() || !accepts(&schema, &text) {
            continue;
        }
        if let Some(function) = strict.as_ref().and_then(|exported| exported.tools().next()).map(parse) {
            let parameters = &function["parameters"];
            // An open object is told as a closed one, so a model is never told of the other members.
            if jsonschema::validator_for(parameters).unwrap().is_valid(&filled(parameters, &value)) {
                told_strictly = true;
                let sent = filled(parameters, &value).to_string();
                let restored = restore(&tool, sent.as_bytes());
                let restored = std::str::from_utf8(&restored).unwrap();
                prop_assert!(accepts(&schema, restored), "{} {} {}", document, sent, restored);
                // Done twice it is done once.
                prop_assert_eq!(&*restore(&tool, restored.as_bytes()), restored.as_bytes());
            }
        }
        if let Some(declaration) = gemini.as_ref().and_then(|exported| exported.tools().next()).map(parse) {
            let Some(parameters) = declaration.get("parameters") else { continue };
            let lowered = as_json_schema(parameters);
            prop_assert!(
                jsonschema::validator_for(&lowered).unwrap().is_valid(&value),
                "{}\n{}\n{}",
                document,
                lowered,
                value
            );
            told_to_gemini = true;
        }
    }
    Ok((told_strictly, told_to_gemini))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// What a model is told never keeps it from what the tool accepts, and what strict mode adds is taken back.
    #[test]
    fn what_is_told_is_never_narrower_than_the_tool(schema in generate::argument_schemas(), seed in any::<u64>()) {
        check(schema, seed)?;
    }
}

/// The same for schemas as they are derived, of which everything can be told.
#[test]
fn derived_schemas_go_to_strict_mode_and_back() {
    let tool = find::tool().build().unwrap();
    for provider in ALL {
        assert!(export(provider, [&tool]).is_ok(), "{provider:?}");
    }
    let sent = json!({
        "filter": {"text": "x", "exact": null}, "target": {"One": {"id": 1, "note": null}}, "max": null, "step": null,
        "order": "up", "tags": null, "share": null
    });
    let restored: Value = serde_json::from_slice(&restore(&tool, sent.to_string().as_bytes())).unwrap();
    assert_eq!(
        restored,
        json!({
            "filter": {"text": "x"}, "target": {"One": {"id": 1, "note": null}}, "step": null, "order": "up", "tags": null,
            "share": null
        })
    );
    // What can't be read is for the gate to refuse.
    for text in ["{\"max\":null", "null", "[null]", ""] {
        assert_eq!(&*restore(&tool, text.as_bytes()), text.as_bytes());
    }
    let (mut strictly, mut gemini) = (0, 0);
    const SAYABLE: Schema<'static> = Schema::object(&[
        Property::required("a", Schema::integer().minimum(1)),
        Property::optional("b", Schema::choice(&["x", "y"])),
        Property::optional("c", Schema::tagged(&["off"], &[Property::required("on", SWITCHED)])),
        Property::optional("e", Schema::array(&Schema::string()).nullable()),
    ]);
    const SWITCHED: Schema<'static> = Schema::object(&[Property::optional("d", Schema::boolean())]);
    for seed in 0..60 {
        let (told_strictly, told_to_gemini) = check(SAYABLE, seed * 991).unwrap();
        strictly += u8::from(told_strictly);
        gemini += u8::from(told_to_gemini);
    }
    assert!(strictly > 30 && gemini > 30, "{strictly} and {gemini} of 60");
}
