//! Building a tool: what is refused and how it is told, what is advertised, and how the built tool runs.
#![cfg(test)]

mod drive;

use std::sync::Arc;
use std::time::Duration;

use callgate_core::clamp::{Bound, Clamp};
use callgate_core::schema::{Literal, Property, Schema};
use callgate_core::tool::ConfirmBy;
use callgate_std::failure::Failure;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::{Problem, Tool, ToolBuilder};
use drive::{Around, call, call_around, value};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

const ROW: Schema<'static> = Schema::object(&[
    Property::required("n", Schema::integer()),
    Property::optional("share", Schema::number().minimum(0)),
]);
const FIELDS: Schema<'static> = Schema::object(&[
    Property::optional("max", Schema::integer()),
    Property::optional("least", Schema::integer().minimum(5)),
    Property::optional("few", Schema::integer().minimum(1).maximum(10)),
    Property::optional("note", Schema::string().max_length(100)),
    Property::optional("long", Schema::string().min_length(10)),
    Property::optional("unit", Schema::choice(&["C", "F"])),
    Property::optional("level", Schema::integer().one_of(&[Literal::integer(1), Literal::integer(9)])),
    Property::optional("password", Schema::string()),
    Property::optional("rows", Schema::array(&ROW)),
    Property::optional("free", Schema::any()),
]);

fn define(name: &str) -> ToolBuilder {
    Tool::builder(name).description("Does something").handler(|_| Ok(Reply::empty()))
}

fn with_fields() -> ToolBuilder {
    define("a.b").const_schema(FIELDS)
}

/// The message for a definition with one problem.
#[track_caller]
fn refused(builder: ToolBuilder) -> String {
    let error = builder.build().unwrap_err();
    assert_eq!(error.problems().len(), 1, "{error}");
    error.to_string()
}

#[track_caller]
fn refused_clamp(path: &str, clamp: Clamp, message: &str) {
    let told = refused(with_fields().clamp(path, clamp));
    assert!(told.starts_with(&format!("tool a.b: field {path}: {message}")), "{told}");
}

fn registry(tool: ToolBuilder) -> Registry {
    Registry::builder().add(tool).build().unwrap()
}

#[test]
fn s3_names_outside_the_grammar_are_refused() {
    // V18
    for name in ["", "a b", "delete_file\n", "\u{ff44}elete", "a/b", &"a".repeat(129)] {
        assert!(matches!(define(name).build().unwrap_err().problems(), [Problem::Name(_)]), "{name:?}");
    }
    let told = refused(define("delete\u{202e}\n"));
    assert!(told.starts_with(r"tool delete\u{202e}\u{a}: its name has a character at byte 6"), "{told}");
    assert!(refused(define("")).starts_with("tool \"\": its name is empty; use 1 to 128"));
}

#[test]
fn all_that_is_wrong_is_told_at_once_with_the_way_to_mend_it() {
    let error = Tool::builder("a b")
        .description(" \n")
        .version("")
        .const_schema(Schema::string())
        .output_schema(const { Schema::integer().minimum(5).maximum(3) })
        .clamp("max", 1..=3)
        .scopes(["notes:read", "b ad"])
        .requires(Vec::<String>::new())
        .confirm(ConfirmBy::Approver { scope: "" })
        .mutating()
        .read_only()
        .timeout(Duration::from_micros(999))
        .cost(0)
        .max_output(1)
        .build()
        .unwrap_err();
    assert_eq!(error.tool(), "a b");
    assert_eq!(
        error.to_string().lines().collect::<Vec<_>>(),
        [
            "tool a b: 14 problems",
            "- its name has a character at byte 1 that such a name may not have; use 1 to 128 of A-Z a-z 0-9 _ . -",
            "- its description is empty; say what a model or a reader has to know",
            "- its version is empty; say what a model or a reader has to know",
            "- its input schema does not say `\"type\":\"object\"` at its root; arguments always are one object",
            "- its output schema can't be used: has bounds that no number lies within; check whether they are swapped",
            "- field max: the path must be a JSON Pointer such as `/filter/limit`, which starts with `/`",
            "- its scopes: `b ad` has a character at byte 1 that such a name may not have; use 1 to 128 printable ASCII characters except space, quote, backslash and comma",
            "- its requirements: an empty list asks for nothing; leave it out",
            "- its approver's scope: `\"\"` is empty; use 1 to 128 printable ASCII characters except space, quote, backslash and comma",
            "- its timeout is below 1 ms; leave it out for the usual one",
            "- its cost is below 1; leave it out for the usual one",
            "- its cap on output is below 2 bytes; leave it out for the usual one",
            "- it is said to be mutating and read-only; say one of the two",
            "- it has no body; give it one with `handler` or `typed`",
        ]
    );
}

#[test]
fn d5_texts_that_hide_something_are_refused() {
    for hidden in ['\u{202e}', '\u{200b}', '\u{e0041}', '\u{7}', '\r', '\u{feff}'] {
        let told = refused(define("a").description(format!("Reads{hidden}")));
        assert!(
            told.contains(&format!("its description holds the character U+{:04X} at byte 5", u32::from(hidden))),
            "{told}"
        );
    }
    assert!(define("a").description("Reads \"a\\b\"\n\tfiles, größer als nötig \u{1f600}").build().is_ok());
    assert!(define("a").description("x".repeat(16 * 1024)).build().is_ok());
    assert!(refused(define("a").description("x".repeat(16 * 1024 + 1))).contains("shorten it to 16384"));
}

#[test]
fn s6_schemas_that_can_not_be_checked_are_refused() {
    let told = |schema: &str| refused(define("a").json_schema(schema));
    assert!(told("{").starts_with("tool a: its input schema is no JSON that the gate reads"));
    assert!(told(r#"{"type":"object","type":"object"}"#).contains("is no JSON that the gate reads"), "S2");
    for (schema, at) in [
        ("false", "#: "),
        (r#"{"type":"string"}"#, "#: "),
        (r#"{"properties":{}}"#, "#: "),
        (
            r#"{"type":"object","properties":{"s":{"type":"string","maxLenght":3}}}"#,
            "#/properties/s: unknown keyword maxLenght; did you mean maxLength?",
        ),
        // V13
        (r#"{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:9/s.json"}}}"#, "#/properties/a/$ref: "),
        (r#"{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}"#, "#/properties/a/$ref: "),
    ] {
        let told = told(schema);
        assert!(told.starts_with(&format!("tool a: its input schema at {at}")), "{told}");
    }
    for anything in ["{}", " { } ", "true"] {
        let tool = define("a").json_schema(anything).build().unwrap();
        assert_eq!((tool.spec().input_schema, tool.advertised_schema()), (None, r#"{"type":"object"}"#));
    }
    assert!(define("a").output_schema(r#"{"type":"array"}"#).build().is_ok(), "a result may be anything");
    assert!(define("a").json_schema("[]").build().is_err());
    let two = define("a").json_schema(json!({"type": "object", "x": 1, "y": 2})).build().unwrap_err();
    assert_eq!(two.problems().len(), 2, "each fault is a problem: {two}");
}

#[test]
fn s6_a_strict_tool_bounds_everything() {
    let open = r#"{"type":"object","properties":{"s":{"type":"string"}}}"#;
    let closed = r#"{"type":"object","properties":{"s":{"type":"string","maxLength":9}},"additionalProperties":false}"#;
    assert!(define("a").json_schema(open).build().is_ok());
    assert_eq!(define("a").json_schema(open).strict().build().unwrap_err().problems().len(), 2);
    assert!(define("a").json_schema(closed).strict().build().is_ok());
    assert!(with_fields().strict().build().is_err(), "a constant is held to it, too");
    for missing in [define("a"), define("a").json_schema("{}")] {
        assert!(refused(missing.strict()).contains("is missing"));
    }
}

#[test]
fn v8_a_json_schema_is_advertised_and_checked_as_it_stands() {
    let schema = r#"{"type":"object","required":["unit"],"properties":{"unit":{"type":["string","null"],"enum":["C","F",null]},"a":{}},"additionalProperties":false}"#;
    let tools = || {
        registry(
            define("a.b")
                .json_schema(format!(" {schema}\n"))
                .handler(|call| Ok(Reply::new(call.arguments::<Value>()?))),
        )
    };
    let tool = Arc::clone(tools().get("a.b").unwrap());
    assert_eq!((tool.spec().input_schema, tool.advertised_schema()), (Some(schema), schema), "white space apart");
    // V6
    assert_eq!(call(&tools(), "a.b", r#"{"unit":null}"#)["data"], json!({"unit": null}));
    let evil = call(&tools(), "a.b", r#"{"unit":"C","evil":"CANARY"}"#);
    assert_eq!(evil["meta"]["code"], "VALIDATION_ERROR");
    let error = evil["error"].as_str().unwrap();
    assert!(error.contains("evil") && !error.contains("CANARY"), "{error}");
    assert_eq!(call(&tools(), "a.b", r#"{"unit":"K"}"#)["meta"]["code"], "VALIDATION_ERROR");
}

// K1, K3: with a schema from outside a clamp works as with a constant one.
#[test]
fn k1_clamps_work_with_a_json_schema() {
    let schema = json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}},
        "$defs": {"row": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}}}});
    let tool = || define("a.b").json_schema(schema.clone()).handler(|call| Ok(Reply::new(call.arguments::<Value>()?)));
    let outcome = call(&registry(tool().clamp("/rows/*/n", ..=9)), "a.b", r#"{"rows":[{"n":5},{"n":50}]}"#);
    assert_eq!(outcome["data"], json!({"rows": [{"n": 5}, {"n": 9}]}));
    assert_eq!(outcome["meta"]["clamped"], json!([{"field": "rows[1].n", "from": "50", "to": "9"}]));
    let told = tool().clamp("/rows/*/n", ..=9).build().unwrap();
    assert_eq!(told.advertised_description(), "Does something /rows/*/n: Numbers above 9 are brought down to it.");
    assert!(refused(tool().clamp("/rows/*/m", ..=9)).contains("declares no `m`"));
}

#[test]
fn fields_that_the_schema_does_not_declare_are_refused() {
    assert_eq!(
        refused(with_fields().secret("/pasword")),
        "tool a.b: field /pasword: the input schema declares no `pasword`; did you mean `password`?"
    );
    assert_eq!(
        refused(with_fields().clamp("/rows/*/m", 1..=2)),
        "tool a.b: field /rows/*/m: the input schema declares no `m`; declare it, or correct the path"
    );
    assert!(with_fields().secret("/rows/*").secret("/rows/3/n").secret("").secret("/free/any/thing").build().is_ok());
    assert!(
        define("a").secret("/whatever").clamp("/it/is", 1..=2).build().is_ok(),
        "without a schema nothing is known"
    );
}

#[test]
fn k1_clamps_that_contradict_the_schema_are_refused() {
    refused_clamp("/note", Clamp::range(1, 2), "the clamp is for numbers, and the input schema admits none here");
    refused_clamp("/max", Clamp::max_length(1), "the clamp is for texts, and the input schema admits none here");
    refused_clamp("/max", Clamp::range(2, 1), "the clamp's min is above its max");
    refused_clamp("/max", Clamp::default(), "the clamp has no bound");
    refused_clamp("/least", Clamp::max(4), "the input schema refuses what the clamp makes of a value");
    refused_clamp("/few", Clamp::min(11), "the input schema refuses what the clamp makes of a value");
    refused_clamp("/long", Clamp::max_length(9), "the input schema refuses what the clamp makes of a value");
    refused_clamp("/few", Clamp::range(1, 10), "the input schema refuses every value that the clamp would mend");
    refused_clamp("/few", Clamp::range(0, 11), "the input schema refuses every value that the clamp would mend");
    refused_clamp("/note", Clamp::max_length(100), "the input schema refuses every value that the clamp would mend");
    refused_clamp("/level", Clamp::max(5), "the input schema lists the values of this field");
    let between = |min, max| Clamp { min: Some(Bound::Float(min)), max: Some(Bound::Float(max)), max_length: None };
    refused_clamp("/max", between(0.2, 0.8), "the clamp leaves no integer");
    for (path, clamp) in [
        ("/max", Clamp::range(1, 100)),
        ("/max", between(0.5, 9.5)),
        ("/least", Clamp::max(5)),
        ("/least", Clamp::range(1, 9)),
        ("/few", Clamp::range(1, 9)),
        ("/long", Clamp::max_length(10)),
        ("/note", Clamp { max_length: Some(99), ..Clamp::default() }),
        ("/rows/*/share", Clamp::max(1)),
        ("/free", Clamp { max_length: Some(9), ..Clamp::range(1, 2) }),
    ] {
        assert!(with_fields().clamp(path, clamp).build().is_ok(), "{path} {clamp:?}");
    }
}

#[test]
fn clamps_are_checked_beside_each_other() {
    assert!(refused(with_fields().clamp("/max", 1..=5).clamp("/max", ..=3)).contains("two clamps have this path"));
    assert!(refused(with_fields().clamp("/max", 1..=5).clamp("/max", 7..)).contains("two clamps have this path"));
    assert!(
        refused(with_fields().clamp("/rows/*/n", ..=3).clamp("/rows/0/n", 4..))
            .contains("field /rows/0/n: no number is within this clamp and the one of /rows/*/n")
    );
    let many = (0..65).fold(define("a"), |tool, n| tool.secret(format!("/f{n}")));
    assert!(refused(many).contains("more than 64 rules"));
    assert!((0..64).fold(define("a"), |tool, n| tool.secret(format!("/f{n}"))).build().is_ok());
}

#[test]
fn a_model_is_told_of_clamps_as_of_no_bound() {
    let tool =
        with_fields().clamp("/max", 1..=100).clamp("/few", 0..=9).clamp("/rows/*/share", 0.0..=0.5).build().unwrap();
    let advertised = value(tool.advertised_schema());
    let declared = value(tool.spec().input_schema.unwrap());
    let fields = &advertised["properties"];
    assert_eq!(fields["max"]["description"], "Numbers outside 1 to 100 are brought to the nearer of the two.");
    assert_eq!(fields["few"]["description"], "Numbers above 9 are brought down to it.");
    assert_eq!(
        fields["rows"]["items"]["properties"]["share"]["description"],
        "Numbers above 0.5 are brought down to it."
    );
    // Beside the notes it is the schema that calls are checked against.
    let mut bare = advertised.clone();
    for place in ["/properties/max", "/properties/few", "/properties/rows/items/properties/share"] {
        bare.pointer_mut(place).unwrap().as_object_mut().unwrap().remove("description");
    }
    assert_eq!(bare, declared);
    assert_eq!(tool.advertised_description(), "Does something");
}

#[derive(Deserialize)]
struct Find {
    max: i64,
    #[serde(default)]
    note: String,
}

fn finder() -> ToolBuilder {
    with_fields()
        .clamp("/max", 1..=100)
        .typed(|call, find: Find| Ok(Reply::new(json!([find.max, find.note, call.request_id(), call.spec().name]))))
}

#[test]
fn k3_typed_arguments_are_the_clamped_ones() {
    let outcome = call(&registry(finder()), "a.b", r#"{"max":5000,"note":"h\u00e9"}"#);
    assert_eq!(outcome["data"], json!([100, "hé", "r1", "a.b"]));
    assert_eq!(outcome["success"], true);
    assert_eq!(outcome["meta"]["clamped"], json!([{"field": "max", "from": "5000", "to": "100"}]));
    // V11: an integer by the schema is one for the type.
    assert_eq!(call(&registry(finder()), "a.b", r#"{"max":7.0}"#)["data"][0], 7);
}

#[test]
fn arguments_that_the_type_does_not_take_never_reach_the_body() {
    let outcome = call(&registry(finder()), "a.b", r#"{"note":"CANARY"}"#);
    assert_eq!((&outcome["meta"]["code"], &outcome["meta"]["effect"]), (&json!("VALIDATION_ERROR"), &json!("none")));
    let error = outcome["error"].as_str().unwrap();
    assert!(error.contains("max") && !error.contains("CANARY"), "{error}");
    // V8, V9: the schema comes first, and refuses what it does not declare.
    let outcome = call(&registry(finder()), "a.b", r#"{"max":1,"mxa":2}"#);
    assert!(outcome["error"].as_str().unwrap().contains("mxa"));
}

#[test]
fn l4_failures_show_what_the_tool_says_is_public() {
    let failing = |failure: fn() -> Failure| {
        call(&registry(Tool::builder("a").description("Fails").handler(move |_| Err(failure()))), "a", "{}")
    };
    let private = failing(|| Failure::new("CANARY in /etc"));
    assert_eq!((&private["error"], &private["meta"]["code"]), (&json!("Tool 'a' failed"), &json!("INTERNAL_ERROR")));
    assert_eq!(private["meta"]["effect"], "unknown");
    let public = failing(|| Failure::not_found("no note 7").public().without_effect());
    assert_eq!((&public["error"], &public["meta"]["code"]), (&json!("no note 7"), &json!("NOT_FOUND")));
    assert_eq!(public["meta"]["effect"], "none");
}

// O1, O2
#[test]
fn o2_results_are_bounded_by_the_tools_cap() {
    let large = |builder: ToolBuilder| {
        let builder = builder.max_output(64).handler(|_| Ok(Reply::new("x".repeat(100)).with_message("m")));
        call(&registry(builder), "a.b", "{}")
    };
    let cut = large(define("a.b"));
    assert_eq!((&cut["success"], cut["data"].as_str().unwrap().len()), (&json!(true), 62));
    assert_eq!((&cut["meta"]["output_truncated"], &cut["meta"]["output_bytes"]), (&json!(true), &json!(102)));
    let refused = large(define("a.b").output_schema(Schema::string()));
    assert_eq!((&refused["meta"]["code"], &refused["meta"]["effect"]), (&json!("OUTPUT_INVALID"), &json!("done")));
    assert_eq!(refused["data"], Value::Null);
}

// O1, E2: neither a tool nor an interceptor gives out what the output schema refuses.
#[test]
fn o1_results_fit_the_output_schema() {
    const OUTPUT: Schema<'static> = Schema::object(&[Property::required("id", Schema::integer64())]);
    let giving =
        |data: Value| registry(define("a").output_schema(OUTPUT).handler(move |_| Ok(Reply::new(data.clone()))));
    // V1
    let outcome = call(&giving(json!({"id": u64::MAX})), "a", "{}");
    assert_eq!(outcome["data"]["id"], json!(u64::MAX));
    for bad in [json!({"id": "7"}), json!({}), json!({"id": 1, "more": 2}), json!(null)] {
        let outcome = call(&giving(bad.clone()), "a", "{}");
        assert_eq!(
            (&outcome["meta"]["code"], &outcome["meta"]["effect"]),
            (&json!("OUTPUT_INVALID"), &json!("done")),
            "{bad}"
        );
        let answer = Around { interception: Some(Reply::new(bad)), ..Around::default() };
        let outcome = call_around(&giving(json!({"id": 1})), "a", "{}", answer);
        assert_eq!((&outcome["meta"]["code"], &outcome["meta"]["effect"]), (&json!("OUTPUT_INVALID"), &json!("none")));
    }
    // A schema from outside is held to the same.
    let listing = |data: Value| {
        let schema = r#"{"type":"array","items":{"type":"integer"},"maxItems":2}"#;
        let tool = define("a").output_schema(schema).handler(move |_| Ok(Reply::new(data.clone())));
        call(&registry(tool), "a", "{}")["meta"]["code"].clone()
    };
    assert_eq!((listing(json!([1, 2])), listing(json!([1, 2, 3]))), (Value::Null, json!("OUTPUT_INVALID")));
    let huge = Around { interception: Some(Reply::new("x".repeat(2 << 20))), ..Around::default() };
    assert_eq!(call_around(&registry(define("a")), "a", "{}", huge)["meta"]["code"], "OUTPUT_INVALID", "X6");
}

#[test]
fn a_body_can_tell_its_deadline_and_who_asks() {
    let tool = define("a").timeout(Duration::from_secs(2)).handler(|call| {
        assert!(call.call("b", b"{}").is_err(), "this host serves no nested calls");
        assert!(!call.is_cancelled());
        Ok(Reply::new(json!([call.deadline().as_nanos(), call.caller().principal, call.args().is_empty()])))
    });
    assert_eq!(call(&registry(tool), "a", "")["data"], json!([2_000_000_000_u64, "local-shell", true]));
}

/// The parts of a definition that can change, each alone.
fn changed(part: usize) -> ToolBuilder {
    let base = |name: &str| {
        let tool =
            Tool::builder(name).handler(|_| Ok(Reply::empty())).version("1").scopes(["a", "b"]).const_schema(FIELDS);
        tool.description("Does").clamp("/max", 1..=9).timeout(Duration::from_secs(1))
    };
    let tool = base("a.b");
    match part {
        0 => tool,
        1 => base("a.c"),
        2 => tool.description("Does it"),
        3 => tool.version("2"),
        4 => tool.const_schema(FIELDS.describe("x")),
        5 => tool.output_schema(Schema::string()),
        6 => tool.clamp("/few", 2..=9),
        7 => tool.secret("/max"),
        8 => tool.scopes(["a"]),
        9 => tool.scopes(["b", "a"]),
        10 => tool.requires(["a", "b"]),
        11 => tool.mutating(),
        12 => tool.read_only(),
        13 => tool.dangerous(),
        14 => tool.idempotent(),
        15 => tool.confirm(ConfirmBy::Caller),
        16 => tool.confirm(ConfirmBy::Approver { scope: "a" }),
        17 => tool.confirm(ConfirmBy::Approver { scope: "b" }),
        18 => tool.timeout(Duration::from_millis(1001)),
        19 => tool.cost(1),
        _ => tool.cost(2),
    }
}

const PARTS: usize = 21;

// G4: equal definitions have equal digests, and one that differs in any part has another.
#[test]
fn g4_every_part_of_a_definition_counts() {
    let digests: Vec<_> = (0..PARTS).map(|part| changed(part).build().unwrap().digest()).collect();
    for (part, digest) in digests.iter().enumerate() {
        assert_eq!(*digest, changed(part).build().unwrap().digest());
        assert!(!digests[..part].contains(digest), "part {part} does not count");
    }
    let tool = changed(0).scopes(["a", "b", "a"]).build().unwrap();
    assert_eq!(tool.digest(), digests[0], "a scope that comes twice says nothing more");
    assert_eq!(tool.digest(), tool.spec().digest());
}

// N5: how a program was built does not change what a schema given as a value is; a text keeps its order.
#[test]
fn n5_the_same_schema_is_the_same_text_in_every_build() {
    let text = r#"{"type":"object","properties":{"b":{"type":"string"},"a":{"maximum":5,"type":"integer"}}}"#;
    let sorted = r#"{"properties":{"a":{"maximum":5,"type":"integer"},"b":{"type":"string"}},"type":"object"}"#;
    assert_eq!(define("a").json_schema(text).build().unwrap().spec().input_schema, Some(text));
    assert_eq!(define("a").json_schema(value(text)).build().unwrap().spec().input_schema, Some(sorted));
}

proptest! {
    /// G4: whatever texts a definition holds, none can be moved from one part to another.
    #[test]
    fn g4_texts_of_different_parts_are_not_confused(a in "[a-z]{1,8}", b in "[a-z]{1,8}") {
        let tool = |name: &str, description: &str, version: &str, scope: &str| {
            define(name).description(description).version(version).scopes([scope]).build().unwrap().digest()
        };
        let texts = [[&a, &a, &a, &b], [&a, &a, &b, &a], [&a, &b, &a, &a], [&b, &a, &a, &a]];
        let digests = texts.map(|[n, d, v, s]| tool(n, d, v, s));
        for (x, one) in digests.iter().enumerate() {
            for other in &digests[..x] {
                prop_assert_eq!(one == other, a == b);
            }
        }
    }
}
