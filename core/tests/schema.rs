//! What the core's schemas accept and what they say, on arguments that passed the strict reader.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use callgate_core::args::Args;
use callgate_core::json::{KeySlot, Limits, key_capacity, scan};
use callgate_core::schema::{Literal, Property, Schema, Types};

/// The violations of `text`, as people read them.
fn violations(schema: &Schema<'_>, text: &str) -> Vec<String> {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap();
    let mut found = Vec::new();
    schema.validate(args, &mut |violation| found.push(violation.to_string()));
    assert_eq!(schema.accepts(args), found.is_empty());
    found
}

/// Whether any value, an object or not, fits.
fn fits(schema: &Schema<'_>, text: &str) -> bool {
    schema.check().unwrap();
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    let scanned = scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap();
    let mut fits = true;
    schema.validate_value(scanned.value(), &mut |_| fits = false);
    fits
}

fn assert_fits(schema: &Schema<'_>, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(fits(schema, text), "{text} should fit");
    }
    for text in bad {
        assert!(!fits(schema, text), "{text} should not fit");
    }
}

const ROW: Schema<'static> = Schema::object(&[Property::required("price", Schema::number().minimum(0))]);
const ORDER: Schema<'static> = Schema::object(&[
    Property::required("id", Schema::integer().minimum(1).maximum(999)),
    Property::optional("unit", Schema::choice(&["C", "F"]).nullable()),
    Property::optional("note", Schema::string().min_length(2).max_length(5)),
    Property::optional("rows", Schema::array(&ROW).min_items(1).max_items(2)),
    Property::optional("filter", Schema::object(&[Property::required("limit", Schema::integer64())])),
    Property::optional("vault_dir", Schema::string()),
]);
const _: () = assert!(ORDER.check().is_ok());

#[test]
fn each_violation_names_the_field_and_what_would_be_right() {
    for (text, expected) in [
        (r#"{"id":7}"#, &[][..]),
        (r#"{"id":7,"unit":null,"note":"ab","rows":[{"price":1}],"filter":{"limit":1},"vault_dir":""}"#, &[]),
        (r#"{"id":"7"}"#, &["id: Expected integer, got string"]),
        (r#"{"id":7.5}"#, &["id: Expected integer, got number"]),
        (r#"{}"#, &["Missing required field: id"]),
        (r#"{"id":0}"#, &["id: Value too small (min: 1)"]),
        (r#"{"id":1000}"#, &["id: Value too large (max: 999)"]),
        (r#"{"id":1,"unit":"K"}"#, &[r#"unit: Value must be one of: "C", "F", null"#]),
        (r#"{"id":1,"unit":1}"#, &["unit: Expected null or string, got integer"]),
        (r#"{"id":1,"note":"a"}"#, &["note: String too short (min: 2 characters)"]),
        (r#"{"id":1,"note":"abcdef"}"#, &["note: String too long (max: 5 characters)"]),
        (r#"{"id":1,"rows":[]}"#, &["rows: Too few items (min: 1)"]),
        (r#"{"id":1,"rows":{}}"#, &["rows: Expected array, got object"]),
        (
            r#"{"id":1,"rows":[{"price":1},{"price":-1},{}]}"#,
            &[
                "rows[1].price: Value too small (min: 0)",
                "rows[2]: Missing required field: price",
                "rows: Too many items (max: 2)",
            ],
        ),
        (r#"{"id":1,"filter":{"limit":"x"}}"#, &["filter.limit: Expected integer, got string"]),
        (
            r#"{"filter":{"limit":1,"extra":2},"id":true}"#,
            &["filter: Unknown property: extra (known: limit)", "id: Expected integer, got boolean"],
        ),
    ] {
        assert_eq!(violations(&ORDER, text), expected, "{text}");
    }
}

/// V8: an unknown member is refused and named, whatever it holds.
#[test]
fn s8_unknown_members_are_refused() {
    const A: Schema<'static> = Schema::object(&[Property::optional("a", Schema::any())]);
    assert_eq!(violations(&A, r#"{"a":1,"evil":2}"#), ["Unknown property: evil (known: a)"]);
    assert_eq!(violations(&A, r#"{"evil":{"a":[{}]},"a":{"b":[1]}}"#), ["Unknown property: evil (known: a)"]);
    // Neither folded nor normalized, and unescaped before it is compared (S2).
    assert_eq!(violations(&A, r#"{"A":1}"#), ["Unknown property: A (did you mean a?)"]);
    assert_eq!(violations(&A, "{\"\\u0061\":1}"), [""; 0]);
    assert_eq!(violations(&Schema::object(&[]), r#"{"a":1}"#), ["Unknown property: a (none is accepted)"]);
    assert_eq!(violations(&A.open(), r#"{"a":1,"evil":{"x":[1]}}"#), [""; 0]);
    // What a redemption carries beside the arguments is no way around it.
    assert_eq!(violations(&A, r#"{"confirm_token":"t"}"#), ["Unknown property: confirm_token (known: a)"]);
}

/// V9: a misspelt name never makes a tool run with its defaults.
#[test]
fn s8_a_misspelt_name_is_refused_with_a_suggestion() {
    assert_eq!(
        violations(&ORDER, r#"{"id":1,"vault_dirr":"/x"}"#),
        ["Unknown property: vault_dirr (did you mean vault_dir?)"]
    );
    assert_eq!(
        violations(&ORDER, r#"{"id":1,"vaultDir":"/x"}"#),
        ["Unknown property: vaultDir (did you mean vault_dir?)"]
    );
}

/// V6: null where null is one of the types; V7: absent and null differ.
#[test]
fn s9_null_is_a_value_and_not_absence() {
    const UNIT: Schema<'static> = Schema::object(&[Property::required(
        "unit",
        Schema::of(Types::STRING.or(Types::NULL)).one_of(&[Literal::Text("C"), Literal::Text("F"), Literal::Null]),
    )]);
    assert_fits(&UNIT, &[r#"{"unit":null}"#, r#"{"unit":"C"}"#], &["{}", r#"{"unit":"c"}"#, r#"{"unit":""}"#]);
    let plain = [Property::optional("a", Schema::string())];
    assert_fits(&Schema::object(&plain), &["{}"], &[r#"{"a":null}"#]);
}

/// V11: `1.0` is an integer; nothing else becomes one.
#[test]
fn s9_nothing_is_coerced() {
    assert_fits(&Schema::integer(), &["1", "1.0", "-0", "1e2"], &["1.5", "true", "\"1\"", "null", "[]", "[1]", "{}"]);
    assert_fits(&Schema::number(), &["1", "1.5"], &["\"1\"", "\"NaN\"", "\"Infinity\"", "\"-inf\"", "false"]);
    assert_fits(&Schema::boolean(), &["true", "false"], &["0", "1", "\"true\"", "null"]);
    assert_fits(&Schema::string(), &["\"\"", "\"1\""], &["1", "null", "true", "[\"a\"]"]);
    assert_fits(&Schema::null(), &["null"], &["\"\"", "\"null\"", "0", "false", "[]", "{}"]);
}

/// V1: integers beyond 53 bits only where the schema says so, and then exactly.
#[test]
fn s4_integers_have_a_width() {
    let safe = ["9007199254740991", "-9007199254740991", "9007199254740991.0"];
    let wide = ["9007199254740992", "9007199254740993", "-9007199254740992", "18446744073709551615"];
    assert_fits(&Schema::integer(), &safe, &wide);
    assert_fits(&Schema::integer64(), &safe, &["1e19", "1e17", "1e300"]);
    assert_fits(&Schema::integer64(), &wide, &[]);
    assert_fits(&Schema::integer().with_any_size(), &["1e17", "1e300", "18446744073709551615"], &["0.5"]);
    assert_fits(&Schema::integer64().maximum(9_007_199_254_740_992), &["9007199254740992"], &["9007199254740993"]);
    assert_fits(
        &Schema::integer64().constant(Literal::integer(9_007_199_254_740_993)),
        &["9007199254740993"],
        &["9007199254740992", "9007199254740994"],
    );
    // A width concerns integers alone: where any number fits, it says nothing.
    assert_fits(&Schema::number(), &["18446744073709551615", "1e300"], &[]);
}

#[test]
fn keywords_concern_values_of_their_own_type_only() {
    const ITEM: Schema<'static> = Schema::string();
    const EVERYTHING: Schema<'static> = Schema::any()
        .minimum(5)
        .max_length(1)
        .items(&ITEM)
        .max_items(1)
        .properties(&[Property::required("a", Schema::null())])
        .closed();
    assert_fits(
        &EVERYTHING,
        &["5", "\"x\"", "null", "true", "[]", "[\"long enough\"]", r#"{"a":null}"#],
        &["4", "\"xy\"", "[1]", "[\"a\",\"b\"]", "{}", r#"{"a":null,"b":1}"#],
    );
}

#[test]
fn bounds_include_themselves_unless_they_exclude_themselves() {
    assert_fits(&Schema::number().minimum(1).maximum(2), &["1", "1.0", "2", "1.5"], &["0.999", "2.001"]);
    assert_fits(&Schema::number().above(1).below(2), &["1.5"], &["1", "2", "1.0", "2.0"]);
    assert_fits(&Schema::number().minimum_f64(0.5).maximum_f64(0.75), &["0.5", "0.75"], &["0", "1", "0.25"]);
    assert_fits(&Schema::number().above_f64(-0.5), &["0", "-0.25"], &["-0.5", "-1"]);
}

#[test]
fn values_to_choose_from_are_equal_as_numbers_and_texts_are() {
    const CHOICE: Schema<'static> = Schema::any().one_of(&[
        Literal::Null,
        Literal::Bool(true),
        Literal::integer(1),
        Literal::float(1.5),
        Literal::Text("x"),
    ]);
    assert_fits(
        &CHOICE,
        &["null", "true", "1", "1.0", "1.5", "\"x\"", r#""\u0078""#],
        &["false", "2", "\"X\"", "\"1\"", "[]", "{}"],
    );
    assert_fits(&Schema::any().constant(Literal::Bool(false)), &["false"], &["0", "null", "\"\"", "[]", "[false]"]);
}

/// Lengths count Unicode code points, however they are written.
#[test]
fn lengths_count_code_points() {
    let two = Schema::string().min_length(2).max_length(2);
    assert_fits(
        &two,
        &["\"ab\"", "\"\u{1f600}\u{1f600}\"", r#""\ud83d\ude00\u0061""#, "\"e\u{301}\""],
        &["\"\u{e9}\"", "\"abc\"", "\"\""],
    );
    // Three code points of four bytes each are not four, and not twelve.
    let wide = "\"\u{1f600}\u{1f601}\u{1f602}\"";
    assert_fits(&Schema::string().min_length(3).max_length(3), &[wide], &[]);
    assert_fits(&Schema::string().min_length(4), &["\"abcd\""], &[wide]);
    assert_fits(&Schema::string().max_length(2), &[], &[wide]);
    assert_fits(&Schema::string().max_length(0), &["\"\""], &["\"a\""]);
    assert_fits(&Schema::string().max_length(u32::MAX), &["\"abc\""], &[]);
}

#[test]
fn maps_check_each_member() {
    const VALUES: Schema<'static> = Schema::array(&Schema::integer()).max_items(2);
    let map = Schema::map(&VALUES);
    assert_fits(&map, &["{}", r#"{"a":[1],"b":[]}"#], &[r#"{"a":1}"#, r#"{"a":[1],"b":[1,2,3]}"#]);
    assert_eq!(violations(&map, r#"{"a b":["x"]}"#), [r#"["a b"][0]: Expected integer, got string"#]);
    assert_eq!(violations(&map, "{\"a\u{202e}\\n\\\"\":[]}"), [""; 0]);
    assert_eq!(violations(&map, "{\"a\u{202e}\\n\\\"\":7}"), [r#"["a\u{202e}\u{a}\""]: Expected array, got integer"#]);
    let known = [Property::required("n", Schema::null())];
    assert_fits(
        &map.properties(&known),
        &[r#"{"n":null,"a":[]}"#],
        &[r#"{"a":[]}"#, r#"{"n":[]}"#, r#"{"n":null,"a":1}"#],
    );
}

/// What nobody looks into may hold anything; what comes after it is looked at again.
#[test]
fn open_parts_are_passed_over_whole() {
    const PART: Schema<'static> = Schema::object(&[
        Property::optional("any", Schema::any()),
        Property::optional("list", Schema::of(Types::ARRAY)),
        Property::required("id", Schema::integer()),
    ]);
    let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
    assert_eq!(violations(&PART, &format!(r#"{{"any":{deep},"list":[{{"id":"x"}},[[]]],"id":1}}"#)), [""; 0]);
    assert_eq!(
        violations(&PART, &format!(r#"{{"id":{{"id":1,"a":{deep}}},"list":{deep},"x":{{"id":[]}}}}"#)),
        ["id: Expected integer, got object", "Unknown property: x (known: any, list, id)"]
    );
}

/// F5: a schema that nobody checked refuses where it can't be checked.
#[test]
fn f5_an_unusable_schema_refuses() {
    let names: Vec<String> = (0..200).map(|n| format!("p{n}")).collect();
    let properties: Vec<_> = names.iter().map(|name| Property::optional(name, Schema::any())).collect();
    assert_eq!(violations(&Schema::object(&properties), "{}").len(), 1);

    let mut schema = Schema::object(&[]);
    for _ in 0..40 {
        schema = Schema::map(Box::leak(Box::new(schema)));
    }
    let text = format!("{}{{}}{}", r#"{"a":"#.repeat(39), "}".repeat(39));
    assert_eq!(violations(&schema, &text).len(), 1);
}

/// Names come from the caller: cut, and visible to the last character (D5); values never show.
#[test]
fn l4_messages_hold_names_and_no_values() {
    let long = "x".repeat(250);
    let [message] = &violations(&ORDER, &format!(r#"{{"id":1,"{long}":"CANARY"}}"#))[..] else { panic!() };
    assert!(message.len() < 200 && message.contains("xxx...") && !message.contains("CANARY"), "{message}");
    let message = violations(&ORDER, "{\"id\":1,\"\\u001b[2K\u{200b}\":1}").concat();
    assert!(message.starts_with(r#"Unknown property: "\u{1b}[2K\u{200b}""#), "{message}");
}

#[test]
fn the_export_says_what_is_checked() {
    let mut text = String::new();
    ORDER.write_json_schema(&mut text).unwrap();
    let expected = concat!(
        r#"{"type":"object","properties":{"id":{"type":"integer","minimum":1,"maximum":999},"#,
        r#""unit":{"type":["null","string"],"enum":["C","F",null]},"#,
        r#""note":{"type":"string","minLength":2,"maxLength":5},"#,
        r#""rows":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"object","#,
        r#""properties":{"price":{"type":"number","minimum":0}},"required":["price"],"additionalProperties":false}},"#,
        r#""filter":{"type":"object","properties":{"limit":{"type":"integer","#,
        r#""minimum":-9223372036854775808,"maximum":18446744073709551615}},"required":["limit"],"additionalProperties":false},"#,
        r#""vault_dir":{"type":"string"}},"required":["id"],"additionalProperties":false}"#,
    );
    assert_eq!(text, expected);

    let mut text = String::new();
    let schema = Schema::any().describe("a \"b\"\n").default_value(Literal::float(1.5)).above_f64(0.5);
    schema.write_json_schema(&mut text).unwrap();
    assert_eq!(text, r#"{"description":"a \"b\"\n","exclusiveMinimum":0.5,"default":1.5}"#);
}

/// S6, F7: what is wrong within a schema is told with the way to it, wherever it stands.
#[test]
fn s6_a_fault_within_a_schema_is_told_with_its_place() {
    const BAD: Schema<'static> = Schema::integer().minimum(5).maximum(1);
    const LIST: Schema<'static> = Schema::array(&BAD);
    const PAIR: [Property<'static>; 2] =
        [Property::required("x", Schema::array(&Schema::any())), Property::required("y", BAD)];
    let place = |schema: Schema<'_>| {
        let error = schema.check().unwrap_err();
        assert_eq!(format!("{error:?}"), format!("SchemaError({error})"));
        let text = error.to_string();
        let fault = error.fault().to_string();
        text.strip_suffix(&fault).unwrap().strip_suffix(": ").unwrap_or_default().to_owned()
    };
    let after = |schema| [Property::required("a", Schema::object(&PAIR[..1])), Property::required("b", schema)];
    assert_eq!(place(BAD), "");
    assert_eq!(place(LIST), "[]");
    assert_eq!(place(Schema::array(&LIST)), "[][]");
    assert_eq!(place(Schema::map(&BAD)), "[*]");
    assert_eq!(place(Schema::map(&LIST)), "[*][]");
    assert_eq!(place(Schema::object(&PAIR)), "y");
    assert_eq!(place(Schema::object(&after(BAD))), "b");
    assert_eq!(place(Schema::object(&after(LIST))), "b[]");
    assert_eq!(place(Schema::object(&after(Schema::map(&BAD)))), "b[*]");
    assert_eq!(place(Schema::object(&after(Schema::object(&PAIR)))), "b.y");
    assert_eq!(place(Schema::object(&after(Schema::any())).open_to(&BAD)), "[*]");
    assert_eq!(place(Schema::object(&after(Schema::any())).open_to(&LIST)), "[*][]");
    let all = Schema::any().properties(&PAIR[..1]).open_to(PAIR[0].schema());
    assert_eq!(place(all.items(&BAD)), "[]");
    assert_eq!(place(all.items(&LIST)), "[][]");
}

/// What a schema says of itself.
#[test]
fn a_schema_tells_what_it_is_made_of() {
    const PARTS: [Property<'static>; 2] =
        [Property::required("x", Schema::array(&Schema::any())), Property::optional("y", Schema::string())];
    const OTHERS: Schema<'static> = Schema::null();
    let whole = Schema::object(&PARTS).open_to(&OTHERS).describe("a thing");
    assert_eq!(
        (whole.types(), whole.description(), whole.depth(), whole.nodes()),
        (Types::OBJECT, Some("a thing"), 3, 5)
    );
    assert_eq!(
        whole.declared().iter().map(|part| (part.name(), part.is_required())).collect::<Vec<_>>(),
        [("x", true), ("y", false)]
    );
    let leaf = Schema::string();
    assert_eq!((leaf.description(), leaf.depth(), leaf.nodes(), leaf.declared().len()), (None, 1, 1, 0));
}

/// S5: of a long list the first sixteen are named, and that there are more, once.
#[test]
fn s5_a_message_names_sixteen_of_many() {
    let names: Vec<String> = (10..30).map(|n| format!("n{n}")).collect();
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    let properties: Vec<_> = texts.iter().map(|name| Property::optional(name, Schema::any())).collect();
    for count in [1, 2, 15, 16, 17, 20] {
        let choice = [Property::required("a", Schema::choice(&texts[..count]))];
        let [told] = &violations(&Schema::object(&choice), r#"{"a":"zzzzzzzz"}"#)[..] else { panic!("one violation") };
        let shown = texts[..count.min(16)].iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ");
        let more = if count > 16 { ", ..." } else { "" };
        assert_eq!(*told, format!("a: Value must be one of: {shown}{more}"));
        let [told] = &violations(&Schema::object(&properties[..count]), r#"{"zzzzzzzz":1}"#)[..] else {
            panic!("one violation")
        };
        let shown = texts[..count.min(16)].join(", ");
        assert_eq!(*told, format!("Unknown property: zzzzzzzz (known: {shown}{more})"));
    }
}

/// S6: one of its names, or one of its variants, and nothing else.
#[test]
fn s6_a_tagged_schema_takes_its_names_and_variants_alone() {
    const VARIANTS: [Property<'static>; 2] =
        [Property::required("v", Schema::integer()), Property::required("w", Schema::null())];
    let tagged = Schema::tagged(&["x", "y"], &VARIANTS);
    assert_fits(
        &tagged,
        &["\"x\"", "\"y\"", r#"{"v":1}"#, r#"{"w":null}"#],
        &["\"v\"", "\"z\"", "{}", r#"{"v":1,"w":null}"#, r#"{"x":1}"#, "null", "[]"],
    );
    assert_fits(&Schema::tagged(&[], &VARIANTS), &[r#"{"v":1}"#], &["\"x\"", "\"v\"", "{}"]);
    assert_fits(&Schema::tagged(&["x"], &[]), &["\"x\""], &["{}", "\"y\""]);
    assert_fits(&tagged.nullable(), &["null", "\"x\"", r#"{"v":1}"#], &["\"z\"", "{}"]);
}
