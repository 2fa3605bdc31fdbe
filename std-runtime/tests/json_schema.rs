//! What schemas from outside may be, and what they say of values.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use callgate_core::args::Args;
use callgate_core::json::{KeySlot, Limits, key_capacity};
use callgate_std::schema::{JsonSchema, MAX_DEPTH, MAX_SUBSCHEMAS, Profile, SchemaError, SchemaFault};
use serde_json::{Value, json};

fn admitted(schema: &Value) -> JsonSchema {
    JsonSchema::new(schema, Profile::VALUE).unwrap()
}

/// All that is wrong with a schema, as people read it.
#[track_caller]
fn refused(schema: &Value, profile: Profile) -> String {
    JsonSchema::new(schema, profile).unwrap_err().to_string()
}

fn violations(schema: &JsonSchema, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    schema.validate_value(value, &mut |violation| found.push(violation.to_string()));
    found
}

#[track_caller]
fn assert_refused(schema: &Value, expected: &str) {
    let message = refused(schema, Profile::VALUE);
    assert!(message.contains(expected), "{message}");
}

/// A keyword that nobody knows checks nothing, so it is refused, with the one that was meant.
#[test]
fn s6_unknown_keywords_are_refused() {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLenght": 9}, "a/b": {"requird": []}},
        "aditionalProperties": false,
        "$defs": {"x": {"colour": "red"}},
    });
    let message = refused(&schema, Profile::ARGUMENTS);
    for line in [
        "#: unknown keyword aditionalProperties; did you mean additionalProperties?",
        "#/properties/name: unknown keyword maxLenght; did you mean maxLength?",
        "#/properties/a~1b: unknown keyword requird; did you mean required?",
        "#/$defs/x: unknown keyword colour; notes of your own must begin with x-",
    ] {
        assert!(message.lines().any(|found| found == line), "{message}");
    }
    admitted(&json!({"title": "t", "x-colour": "red", "$comment": "c", "examples": [1], "default": {"maxLenght": 1}}));
    // V7: what other dialects say is no silent nothing here.
    assert_refused(&json!({"type": "string", "nullable": true}), r#"write "type": ["string", "null"]"#);
    assert_refused(&json!({"$anchor": "a"}), "names for parts are not supported");
    assert_refused(&json!({"$dynamicRef": "#a"}), "dynamic references are not supported");
    assert_refused(&json!({"dependencies": {}}), "use dependentRequired or dependentSchemas");
    assert_refused(
        &json!({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [true]}),
        "draft-07 does not know it",
    );
}

/// V13: nothing is ever fetched, and nothing outside is even looked at.
#[test]
fn s6_references_stay_within_the_document() {
    for target in [
        "http://127.0.0.1:9/s.json",
        "file:///etc/passwd",
        "other.json",
        "#name",
        "#/$defs/none",
        "#/properties",
        "",
        "#/const",
        "#/%zz",
    ] {
        let schema = json!({"properties": {"a": {"$ref": target}}, "$defs": {"x": true}, "const": {"type": "string"}});
        assert_refused(&schema, "#/properties/a/$ref: a reference must lead to a schema within the document");
    }
    assert_refused(&json!({"$schema": "http://example.com/schema"}), "$schema must be left out");
    assert_refused(
        &json!({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}),
        "$schema must",
    );
    assert_refused(&json!({"properties": {"a": {"$id": "http://example.com/a"}}}), "$id may stand at the root alone");
    let local = json!({
        "$id": "https://example.com/s.json",
        "properties": {"a": {"$ref": "#/$defs/a~1b%25"}, "b": {"$ref": "#/properties/a"}},
        "$defs": {"a/b%": {"type": "string"}},
    });
    assert_eq!(violations(&admitted(&local), &json!({"a": 1, "b": "x"})), ["a: Expected string, got integer"]);
}

/// V14: a schema may refer to itself where it goes into the value; a value that is deeper than can be checked is refused.
#[test]
fn s5_recursion_is_bounded_by_the_value() {
    let list = admitted(&json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}, "additionalProperties": false}},
    }));
    let mut value = json!({});
    for _ in 0..63 {
        value = json!({ "child": value });
    }
    assert_eq!(violations(&list, &value), [""; 0]);
    value = json!({"child": {"child": value}});
    assert_eq!(violations(&list, &value), ["Nested too deep for the schema (max: 64 levels)"]);
    let mut deep = json!({});
    for _ in 0..10_000 {
        deep = Value::Array(vec![deep]);
    }
    assert_eq!(violations(&list, &deep).len(), 1);
    // Whoever made so deep a value has to take it apart as carefully.
    while let Value::Array(mut items) = deep {
        deep = items.pop().unwrap_or_default();
    }

    for looping in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"not": {"$ref": "#/$defs/a"}}]}}}),
        json!({"if": {"$ref": "#/$defs/a"}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    ] {
        assert_refused(&looping, "refers to itself without looking into the value");
    }
}

/// What multiplies itself is refused, in place and on the way into a value.
#[test]
fn s5_multiplying_schemas_are_refused() {
    let doubling = |levels: usize, part: &dyn Fn(Value) -> Value| {
        let mut definitions = serde_json::Map::new();
        for level in 0..levels {
            definitions.insert(format!("l{level}"), part(json!({"$ref": format!("#/$defs/l{}", level + 1)})));
        }
        definitions.insert(format!("l{levels}"), json!({"type": "integer"}));
        json!({"$ref": "#/$defs/l0", "$defs": definitions})
    };
    let in_place = |next: Value| json!({"allOf": [next.clone(), next]});
    let into = |next: Value| json!({"allOf": [{"properties": {"a": next.clone()}}, {"properties": {"a": next}}]});
    let beside = |next: Value| json!({"properties": {"a": next.clone(), "b": next}});
    admitted(&doubling(8, &in_place));
    assert_refused(&doubling(24, &in_place), "checking one value may take more than 4096 steps");
    // On the way into a value, as many levels can be checked as the steps allow; more are refused, not tried.
    let deep = |levels: usize| (0..levels).fold(json!(1), |value, _| json!({ "a": value }));
    let into = admitted(&doubling(24, &into));
    assert_eq!(violations(&into, &deep(8)), [""; 0]);
    assert!(violations(&into, &deep(24)).concat().starts_with("Nested too deep for the schema"));
    // The same on every way into a value.
    let object: &dyn Fn(Value) -> Value = &|value| json!({ "a": value });
    let array: &dyn Fn(Value) -> Value = &|value| json!([value]);
    let ways: [(&dyn Fn(Value) -> Value, _); 8] = [
        (&|next| json!({ "additionalProperties": next }), object),
        (&|next| json!({ "unevaluatedProperties": next }), object),
        (&|next| json!({"patternProperties": {"^a": next}}), object),
        (&|next| json!({"properties": {"b": true}, "patternProperties": {"": next}}), object),
        (&|next| json!({ "items": next }), array),
        (&|next| json!({ "unevaluatedItems": next }), array),
        (&|next| json!({"prefixItems": [next]}), array),
        (&|next| json!({ "contains": next }), array),
    ];
    for (way, wrap) in ways {
        let schema = doubling(24, &|next: Value| json!({"allOf": [way(next.clone()), way(next)]}));
        let found = match JsonSchema::new(&schema, Profile::VALUE) {
            Ok(schema) => violations(&schema, &(0..24).fold(json!(1), |value, _| wrap(value))).concat(),
            Err(error) => error.to_string(),
        };
        assert!(found.contains("Nested too deep") || found.contains("4096 steps"), "{schema}: {found}");
    }
    let names = json!({"propertyNames": {"$ref": "#/$defs/l0"}, "$defs": doubling(24, &in_place)["$defs"]});
    assert_refused(&names, "checking one value may take more than 4096 steps");

    // Two members are two places: nothing is looked at twice.
    let beside = admitted(&doubling(24, &beside));
    assert_eq!(violations(&beside, &json!({"a": {"b": 1}})), [""; 0]);

    let rest =
        |levels: usize| (0..levels).fold(json!(true), |inner, _| json!({"allOf": [inner], "unevaluatedItems": false}));
    admitted(&rest(5));
    assert_refused(&rest(12), "checking one value may take more than 4096 steps");

    let two = json!({"$ref": "#/$defs/e", "$defs": {"e": {"anyOf": [
        {"properties": {"c": {"$ref": "#/$defs/e"}}, "required": ["x"]},
        {"properties": {"c": {"$ref": "#/$defs/e"}}, "required": ["y"]},
    ]}}});
    let two = admitted(&two);
    let nested = |levels: usize| (0..levels).fold(json!({"x": 1}), |value, _| json!({"c": value, "x": 1}));
    assert_eq!(violations(&two, &nested(5)), [""; 0]);
    let [message] = &violations(&two, &nested(60))[..] else { panic!() };
    assert!(message.starts_with("Nested too deep for the schema"), "{message}");

    // The validator looks at both of two alternatives, whatever tells them apart.
    let both = |tag: &str| json!({"properties": {"k": {"const": tag}, "c": {"$ref": "#/$defs/e"}}, "required": ["k"]});
    let both = admitted(&json!({"$ref": "#/$defs/e", "$defs": {"e": {"anyOf": [both("a"), both("b")]}}}));
    let message =
        violations(&both, &(0..40).fold(json!({"k": "a"}), |value, _| json!({"k": "b", "c": value}))).concat();
    assert!(message.starts_with("Nested too deep for the schema"), "{message}");

    // Of more alternatives that a tag tells apart, one is looked at.
    let tagged = |tag: &str| json!({"type": "object", "properties": {"kind": {"const": tag}, "c": {"$ref": "#/$defs/e"}}, "required": ["kind"]});
    let tagged = json!({"$ref": "#/$defs/e", "$defs": {"e": {"oneOf": [tagged("a"), tagged("b"), tagged("c"), {"type": "null"}]}}});
    let untagged = admitted(&tagged);
    let nested = |levels: usize| (0..levels).fold(json!({"kind": "a"}), |value, _| json!({"kind": "b", "c": value}));
    assert_eq!(violations(&untagged, &nested(5)), [""; 0]);
    let three = json!({"$ref": "#/$defs/e", "$defs": {"e": {"oneOf": [
        {"properties": {"kind": {"const": 1}, "c": {"$ref": "#/$defs/e"}}, "required": ["kind"]},
        {"$ref": "#/$defs/two"},
        {"properties": {"kind": {"enum": [3, 4]}, "c": {"$ref": "#/$defs/e"}}, "required": ["kind"]},
    ]}, "two": {"properties": {"kind": {"const": 2}, "c": {"$ref": "#/$defs/e"}}, "required": ["kind"]}}});
    let three = admitted(&three);
    let nested =
        |levels: usize| (0..levels).fold(json!({"kind": 4}), |value, kind| json!({"kind": kind % 4 + 1, "c": value}));
    // If they were, this would not end.
    assert_eq!(violations(&three, &nested(63)), [""; 0]);
    assert_eq!(
        violations(&three, &(0..60).fold(json!({"kind": 9}), |value, _| json!({"kind": 2, "c": value}))).len(),
        1
    );
}

#[test]
fn s5_size_and_depth_of_a_schema_are_bounded() {
    let nested = |depth: u8| (1..depth).fold(json!({"type": "integer"}), |inner, _| json!({"items": inner}));
    admitted(&nested(MAX_DEPTH));
    assert_refused(&nested(MAX_DEPTH + 1), "nests deeper than 32 schemas");
    let wide = |count: usize| json!({"anyOf": (1..count).map(|n| json!({"const": n})).collect::<Vec<_>>()});
    admitted(&wide(MAX_SUBSCHEMAS));
    assert_refused(&wide(MAX_SUBSCHEMAS + 1), "holds more than 1024 schemas");
    // A value that a schema only names is part of its document.
    let mut named = json!(1);
    for _ in 0..10_000 {
        named = Value::Array(vec![named]);
    }
    let mut schema = json!({"default": null});
    schema["default"] = named;
    assert_refused(&schema, "nests deeper than 32 schemas");
    while let Value::Array(mut items) = schema["default"].take() {
        schema["default"] = items.pop().unwrap_or_default();
    }

    // A long way of references takes as much room on the stack as nested schemas do.
    let chain = |length: usize| {
        let next =
            |n: usize| (format!("d{n}"), json!({"oneOf": [{"$ref": format!("#/$defs/d{}", n + 1)}, {"type": "null"}]}));
        let mut chain: serde_json::Map<_, _> = (0..length).map(next).collect();
        chain.insert(format!("d{length}"), json!({"type": "integer", "properties": {"c": {"$ref": "#/$defs/d0"}}}));
        json!({"$ref": "#/$defs/d0", "$defs": chain})
    };
    assert_refused(&chain(300), "or 512 within each other");
    // What the walk did not come to is not told to be missing.
    assert_eq!(JsonSchema::new(&chain(600), Profile::VALUE).unwrap_err().faults().len(), 1);
    let deep = |levels: usize| (0..levels).fold(json!("x"), |value, _| json!({ "c": value }));
    for (length, most) in [(4, 50), (12, 18), (20, 11)] {
        let chain = admitted(&chain(length));
        assert_eq!(violations(&chain, &json!(7)), [""; 0]);
        assert!(!violations(&chain, &deep(most))[0].starts_with("Nested too deep"), "{length}");
        assert!(violations(&chain, &deep(most + 10))[0].starts_with("Nested too deep"), "{length}");
    }
}

/// V24: patterns take linear time, or are refused.
#[test]
fn s5_patterns_are_linear_or_refused() {
    let nasty = admitted(&json!({"type": "string", "pattern": "^(a+)+$"}));
    let text = format!("{}!", "a".repeat(50_000));
    assert_eq!(violations(&nasty, &json!(text)), [r#"String does not match the pattern "^(a+)+$""#]);
    for pattern in ["(?=a)", "(?<!a)b", r"(a)\1", "(a{1000}){1000}", "(", "[a", "a{2,1}"] {
        assert_refused(
            &json!({"properties": {"p": {"pattern": pattern}}}),
            "#/properties/p/pattern: the pattern is no regular",
        );
    }
    assert_refused(&json!({"patternProperties": {"(?!x)": true}}), "the pattern is no regular expression");
    assert_refused(&json!({"items": {"uniqueItems": true}}), "#/items: uniqueItems needs maxItems");
    assert_refused(&json!({"uniqueItems": true, "maxItems": 10_001}), "uniqueItems needs maxItems of at most 10000");
    admitted(&json!({"uniqueItems": true, "maxItems": 10_000}));
}

#[test]
fn s6_formats_are_checked_or_refused() {
    for format in ["idn-email", "idn-hostname", "ssn", "int32"] {
        assert_refused(&json!({"format": format}), &format!("format {format} is not checked by anything"));
    }
    let email = admitted(&json!({"format": "email"}));
    assert_eq!(violations(&email, &json!("nobody")), [r#"String is no valid "email""#]);
    assert_eq!(violations(&email, &json!("a@example.com")), [""; 0]);
    let draft = "http://json-schema.org/draft-07/schema#";
    assert_refused(&json!({"$schema": draft, "format": "uuid"}), "format uuid is not checked");
    assert_eq!(violations(&admitted(&json!({"$schema": draft, "format": "date"})), &json!("yesterday")).len(), 1);
}

#[test]
fn s6_arguments_are_an_object() {
    for schema in [
        json!({}),
        json!(true),
        json!({"type": "array"}),
        json!({"type": ["object", "null"]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}),
    ] {
        let message = refused(&schema, Profile::ARGUMENTS);
        assert!(message.contains(r#"arguments are an object; say "type": "object" at the root"#), "{message}");
    }
    JsonSchema::new(&json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}), Profile::ARGUMENTS).unwrap();
    for schema in
        [json!(1), json!("x"), json!([]), json!(null), json!({"properties": {"a": 1}}), json!({"allOf": [[]]})]
    {
        assert_refused(&schema, "a schema is an object, or true or false");
    }
    for (schema, at) in [
        (json!({"type": "objekt"}), "#/type: must be one or more of null, boolean"),
        (
            json!({"properties": {"a": {"minimum": "CANARY"}}}),
            "#/properties/a/minimum: is no JSON Schema: Expected number",
        ),
        (json!({"required": ["a", "a"]}), "#/required: is no JSON Schema: Items must differ"),
        (json!({"properties": []}), "#/properties: must be an object of schemas"),
        (json!({"anyOf": {}}), "#/anyOf: must be a list of schemas"),
        (json!({"anyOf": []}), "#/anyOf: is no JSON Schema: Too few items (min: 1)"),
        (json!({"maxLength": -1}), "#/maxLength: is no JSON Schema"),
    ] {
        let message = refused(&schema, Profile::VALUE);
        assert!(message.starts_with(at) && !message.contains("CANARY"), "{message}");
    }
    let error = JsonSchema::parse(r#"{"type":"object","type":"array"}"#, Profile::ARGUMENTS).unwrap_err();
    assert!(matches!(error.faults(), [(_, SchemaFault::Unreadable(_))]), "{error}");
}

#[test]
fn draft_07_has_its_own_keywords() {
    let draft = "http://json-schema.org/draft-07/schema#";
    let schema = admitted(&json!({
        "$schema": draft,
        "properties": {"list": {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false}},
        "dependencies": {"a": ["b"], "c": {"required": ["d"]}},
    }));
    assert_eq!(violations(&schema, &json!({"list": ["x", "y"]})), ["list[1]: Expected integer, got string"]);
    assert_eq!(violations(&schema, &json!({"list": ["x", 1, 2]})), ["list: Too many items (max: 2)"]);
    assert_eq!(
        violations(&schema, &json!({"a": 1, "c": 2})),
        ["Missing required field: b", "Missing required field: d"]
    );
    let ignored = json!({"$schema": draft, "properties": {"a": {"$ref": "#/definitions/b", "maxLength": 3}}, "definitions": {"b": true}});
    assert_refused(&ignored, "#/properties/a: draft-07 ignores maxLength beside $ref");
    let noted = json!({"$schema": draft, "properties": {"a": {"$ref": "#/definitions/b", "title": "x"}}, "definitions": {"b": true}});
    admitted(&noted);
}

#[test]
fn the_strict_profile_asks_for_bounds() {
    let loose = json!({
        "type": "object",
        "properties": {
            "text": {"type": ["string", "null"]},
            "list": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "choice": {"type": "string", "enum": ["a"]},
        },
    });
    JsonSchema::new(&loose, Profile::ARGUMENTS).unwrap();
    let error: SchemaError = JsonSchema::new(&loose, Profile::STRICT).unwrap_err();
    let mut places: Vec<&str> = error.faults().iter().map(|(at, _)| at.as_str()).collect();
    places.sort_unstable();
    assert_eq!(places, ["#", "#/properties/list", "#/properties/list/items", "#/properties/text"]);
    let tight = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "maxLength": 9},
            "list": {"type": "array", "maxItems": 3, "items": {"type": "integer", "minimum": 1, "exclusiveMaximum": 5}},
        },
        "additionalProperties": false,
    });
    JsonSchema::new(&tight, Profile::STRICT).unwrap();
}

/// The wording is that of the core's schemas.
#[test]
fn each_violation_names_the_field_and_what_would_be_right() {
    let schema = admitted(&json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9},
            "unit": {"enum": ["C", "F", null]},
            "version": {"const": 2},
            "note": {"type": "string", "minLength": 2, "maxLength": 3},
            "rows": {
                "type": "array", "maxItems": 2, "minItems": 1,
                "items": {"type": "object", "properties": {"price": {"multipleOf": 5}}, "required": ["price"]},
            },
            "who": {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]},
            "what": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "shape": {"oneOf": [
                {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
                {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
            ]},
            "map": {"propertyNames": {"maxLength": 2}, "minProperties": 1, "maxProperties": 2},
            "0": {"type": "array", "contains": {"type": "string"}},
            "vault_dir": {"not": {"const": "/"}},
            "never": false,
        },
        "required": ["id"],
        "additionalProperties": false,
    }));
    for (value, expected) in [
        (json!({"id": 1}), &[][..]),
        (json!({}), &["Missing required field: id"]),
        (json!({"id": "7"}), &["id: Expected integer, got string"]),
        (json!({"id": 1.5}), &["id: Expected integer, got number"]),
        (json!({"id": 0}), &["id: Value too small (min: 1)"]),
        (json!({"id": 9}), &["id: Value too large (must be below 9)"]),
        (json!({"id": 1, "unit": "K"}), &[r#"unit: Value must be one of: "C", "F", null"#]),
        (json!({"id": 1, "version": 3}), &["version: Value must be 2"]),
        (json!({"id": 1, "note": "a"}), &["note: String too short (min: 2 characters)"]),
        (json!({"id": 1, "note": "abcd"}), &["note: String too long (max: 3 characters)"]),
        (
            json!({"id": 1, "rows": [{}, {"price": 7}, {"price": 5}]}),
            &[
                "rows: Too many items (max: 2)",
                "rows[0]: Missing required field: price",
                "rows[1].price: Value must be a multiple of 5",
            ],
        ),
        (json!({"id": 1, "who": "abc"}), &["who: String too long (max: 2 characters)"]),
        (json!({"id": 1, "who": 5}), &["who: Expected string or null, got integer"]),
        (json!({"id": 1, "what": true}), &["what: Expected string or integer, got boolean"]),
        (json!({"id": 1, "shape": {"kind": "square"}}), &["shape: Missing required field: side"]),
        (json!({"id": 1, "shape": {"kind": "line"}}), &["shape: Fits none of the 2 alternatives"]),
        (
            json!({"id": 1, "map": {"abc": 1}}),
            &["map: A property's name is not accepted: String too long (max: 2 characters)"],
        ),
        (json!({"id": 1, "map": {}}), &["map: Too few properties (min: 1)"]),
        (json!({"id": 1, "0": [1]}), &["0: Has too few or too many of the items that it must contain"]),
        (json!({"id": 1, "vault_dir": "/"}), &["vault_dir: Fits what it must not fit"]),
        (json!({"id": 1, "never": 1}), &["never: No value is accepted here"]),
        // V8, V9.
        (json!({"id": 1, "vault_dirr": "/x"}), &["Unknown property: vault_dirr (did you mean vault_dir?)"]),
        (
            json!({"id": 1, "ev\u{202e}il": 2}),
            &[
                r#"Unknown property: "ev\u{202e}il" (known: 0, id, map, never, note, rows, shape, unit, vault_dir, version, what, who)"#,
            ],
        ),
    ] {
        assert_eq!(violations(&schema, &value), expected, "{value}");
    }
}

/// V1, V6, V11: integers are exact, null is a value, nothing is coerced, on the way that a call takes.
#[test]
fn s4_s9_arguments_are_checked_as_they_are() {
    let schema = JsonSchema::parse(
        r#"{"type":"object","properties":{"id":{"type":"integer","maximum":9007199254740992},"unit":{"type":["string","null"]}}}"#,
        Profile::ARGUMENTS,
    )
    .unwrap();
    let check = |text: &str| {
        let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
        let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap();
        let mut found = Vec::new();
        schema.validate(args, &mut |violation| found.push(violation.to_string()));
        found
    };
    for good in [r#"{"id":9007199254740992}"#, r#"{"id":1.0}"#, r#"{"unit":null}"#, "{}", ""] {
        assert_eq!(check(good), [""; 0], "{good}");
    }
    for bad in [
        r#"{"id":9007199254740993}"#,
        r#"{"id":1.5}"#,
        r#"{"id":true}"#,
        r#"{"id":"1"}"#,
        r#"{"id":null}"#,
        r#"{"unit":1}"#,
    ] {
        assert_eq!(check(bad).len(), 1, "{bad}");
    }
}

/// S5, L4: what is long is refused as well, with less to say; and a value is never part of it.
#[test]
fn s5_the_account_of_a_long_value_is_bounded() {
    let list = admitted(&json!({"items": {"type": "integer"}}));
    let long: Value = (0..20_000).map(|n| json!(format!("CANARY{n}"))).collect();
    assert_eq!(violations(&list, &long), ["[0]: Expected integer, got string"]);
    let branches = admitted(&json!({"anyOf": (0..50).map(|n| json!({"const": n})).collect::<Vec<_>>()}));
    let long = json!("CANARY".repeat(100_000));
    assert_eq!(violations(&branches, &long), ["The arguments do not fit the schema"]);
    let [message] = &violations(&branches, &json!("CANARY"))[..] else { panic!() };
    assert!(!message.contains("CANARY"));
}
