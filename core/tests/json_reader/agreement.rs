//! S1, S2, S4: one reader, and nobody who reads the same text sees another value.

use callgate_core::json::{KeySlot, Kind, Limits, Number, ReadErrorKind, key_capacity, scan};
use proptest::prelude::*;

use super::model::{self, Json, Spelling};
use super::{checked, kind, rebuild, refusal};

/// The value as `serde_json` has it. `-0` is a float there.
fn theirs(value: &serde_json::Value) -> Json {
    match value {
        serde_json::Value::Null => Json::Null,
        serde_json::Value::Bool(value) => Json::Bool(*value),
        serde_json::Value::String(text) => Json::Text(text.clone()),
        serde_json::Value::Array(items) => Json::Array(items.iter().map(theirs).collect()),
        serde_json::Value::Object(members) => {
            Json::Object(members.iter().map(|(key, value)| (key.clone(), theirs(value))).collect())
        }
        serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(value), ..) => Json::Integer(value.into()),
            (None, Some(value), _) => Json::Integer(value.into()),
            (None, None, Some(value)) => Json::Decimal(value),
            (None, None, None) => panic!("a number is one of three"),
        },
    }
}

/// Whether both mean the same: `serde_json` may be two units in the last place off for long decimals (without its feature
/// `float_roundtrip`), and has a float for `-0`.
fn agree(ours: &Json, theirs: &Json) -> bool {
    match (ours, theirs) {
        (Json::Integer(0), Json::Decimal(zero)) => zero.to_bits() == (-0.0_f64).to_bits(),
        (Json::Decimal(a), Json::Decimal(b)) => {
            a == b || a.to_bits().abs_diff(b.to_bits()) <= 2 || (*a == 0.0 && *b == 0.0)
        }
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agree(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && agree(&a.1, &b.1))
        }
        _ => ours == theirs,
    }
}

/// The refusals of texts that `serde_json` accepts: everything else must be the same.
fn is_stricter(kind: ReadErrorKind) -> bool {
    matches!(
        kind,
        ReadErrorKind::DuplicateKey
            | ReadErrorKind::NumberOutOfRange
            | ReadErrorKind::NumberInexact
            | ReadErrorKind::NumberTooLong { .. }
            | ReadErrorKind::TooDeep { .. }
            | ReadErrorKind::KeyTooLong { .. }
    )
}

/// Compares the two readers on any bytes.
fn compare(text: &[u8]) -> Result<(), TestCaseError> {
    let theirs_read = serde_json::from_slice::<serde_json::Value>(text);
    checked(text, |ours| match (ours, &theirs_read) {
        (Ok(ours), Ok(value)) => {
            let mut room = vec![0; text.len()];
            let typed: serde_json::Value = ours.value().deserialize(&mut room).expect("any value is one");
            let events = rebuild(ours.value().events()).sorted();
            prop_assert!(agree(&events, &theirs(value).sorted()));
            // Our deserializer and our events are of one mind, to the last bit.
            prop_assert_eq!(theirs(&typed).sorted(), events);
            Ok(())
        }
        (Err(_), Err(_)) => Ok(()),
        (Err(error), Ok(_)) => {
            prop_assert!(is_stricter(error.kind), "refused alone: {}", error);
            Ok(())
        }
        (Ok(_), Err(error)) => {
            prop_assert!(false, "accepted alone: {}", error);
            Ok(())
        }
    })
}

fn mutate(text: &mut Vec<u8>, place: usize, with: &[u8], how: u8) {
    let place = place % (text.len() + 1);
    match how % 4 {
        0 => drop(text.splice(place..place, with.iter().copied())),
        1 => drop(text.splice(place..text.len().min(place + with.len()), with.iter().copied())),
        2 => drop(text.drain(place..text.len().min(place + with.len()))),
        _ => {
            let end = text.len().min(place + 8);
            let piece = text[place..end].to_vec();
            text.splice(place..place, piece);
        }
    }
}

fn fragments() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "null",
            "true",
            "nul",
            "-",
            "0",
            "-0",
            "01",
            "1.",
            ".5",
            "1e",
            "1e400",
            "1e-400",
            "+",
            "e",
            "E+",
            "\\u",
            "\\ud800",
            "\\udc00",
            "\\u0000",
            "\u{feff}",
            "/",
            "//",
            " ",
            "\n",
            "\t",
            "\u{b}",
            "{}",
            "[]",
            "\"a\":1",
            "18446744073709551616",
            "-9223372036854775809",
            "0.1",
            "1E5",
            "\u{7f}",
            "é",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 1..4),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    // S1: what the model says is what is read, in every spelling.
    #[test]
    fn s1_every_spelling_reads_as_the_model(value in model::values(), seed in any::<u64>()) {
        let text = value.to_text(Some(seed));
        checked(text.as_bytes(), |scanned| {
            let scanned = scanned.unwrap_or_else(|error| panic!("{text}: {error}"));
            prop_assert_eq!(&rebuild(scanned.value().events()), &value);
            let mut written = String::new();
            scanned.value().write_json(&mut written).expect("a string takes all");
            checked(written.as_bytes(), |again| {
                prop_assert_eq!(&rebuild(again.expect("our own text").value().events()), &value);
                Ok(())
            })?;
            compare(text.as_bytes())
        })?;
    }

    // S1: the same bytes, the same verdict and value as serde_json, but for what is stricter by design.
    #[test]
    fn s1_agrees_with_serde_json_on_mutated_texts(
        value in model::values(),
        seed in any::<u64>(),
        mutations in proptest::collection::vec((any::<usize>(), fragments(), any::<u8>()), 1..4),
    ) {
        let mut text = value.to_text(Some(seed)).into_bytes();
        for (place, with, how) in mutations {
            mutate(&mut text, place, &with, how);
        }
        compare(&text)?;
    }

    #[test]
    fn s1_agrees_with_serde_json_on_loose_tokens(pieces in proptest::collection::vec(fragments(), 0..12)) {
        compare(&pieces.concat())?;
    }

    // S2, V16: whatever the spelling, the depth and the number of members, a repeated key is refused where it stands.
    #[test]
    fn s2_duplicate_keys_are_refused_at_every_depth(
        keys in proptest::collection::btree_set(model::texts(), 1..40),
        repeated in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        depth in 0..60_usize,
        seed in any::<u64>(),
    ) {
        let mut spelling = Spelling::new(Some(seed));
        let mut keys: Vec<_> = keys.into_iter().filter(|key| key.len() <= 256).collect();
        prop_assume!(!keys.is_empty());
        let first = repeated.index(keys.len());
        let again = first + 1 + place.index(keys.len() - first);
        keys.insert(again, keys[first].clone());
        let mut text = "[{\"\":".repeat(depth / 2);
        text.push('{');
        let mut at = 0;
        for (nth, key) in keys.iter().enumerate() {
            if nth > 0 {
                text.push(',');
            }
            if nth == again {
                at = text.len();
            }
            spelling.text(key, &mut text);
            text.push_str(":{\"x\":[{}]}");
        }
        text.push('}');
        text.push_str(&"}]".repeat(depth / 2));
        let error = refusal(text.as_bytes()).expect("a duplicate");
        prop_assert_eq!((error.kind, error.at as usize), (ReadErrorKind::DuplicateKey, at), "{}", text);
    }
}

proptest! {
    // The cost is the square of the text's length.
    #![proptest_config(ProptestConfig::with_cases(50))]

    // V21: a text that was cut off anywhere is no text.
    #[test]
    fn v21_no_prefix_of_a_text_is_a_text(value in model::objects(), seed in any::<u64>()) {
        let text = value.to_text(Some(seed));
        let text = text.trim_end();
        for end in 0..text.len() {
            prop_assert!(refusal(&text.as_bytes()[..end]).is_some(), "{}", end);
        }
        prop_assert!(refusal(text.as_bytes()).is_none());
    }
}

// S2: with several repetitions the first is named, however many members there are.
#[test]
fn s2_the_first_repetition_is_named() {
    for count in [3, 16, 17, 100] {
        let members: Vec<_> = (0..count).map(|nth| format!("\"{nth}\":0")).collect();
        for (first, second) in [(1, 2), (2, 1)] {
            let text = format!("{{{},\"{first}\":0,\"{second}\":0}}", members.join(","));
            let at = text.rfind(&format!(",\"{first}\"")).expect("it is there") + 1;
            let error = refusal(text.as_bytes()).expect("a duplicate");
            assert_eq!((error.kind, error.at as usize), (ReadErrorKind::DuplicateKey, at), "{count} {first}");
        }
    }
}

// V16, and what folding or normalizing would equate.
#[test]
fn s2_keys_compare_exactly() {
    for duplicate in [
        r#"{"path":"/tmp/ok","path":"/etc/passwd"}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\ud83d\ude00":1,"😀":2}"#,
        r#"{"":1,"":2}"#,
        r#"[[{"x":{"a":1,"b":2,"a":3}}]]"#,
        r#"{"\/":1,"/":2}"#,
    ] {
        assert_eq!(kind(duplicate), Some(ReadErrorKind::DuplicateKey), "{duplicate}");
    }
    for distinct in [
        r#"{"a":1,"A":2}"#,
        "{\"é\":1,\"e\u{301}\":2}",
        r#"{"a":1,"a ":2,"":3}"#,
        r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}"#,
        r#"{"aaaaaaaaX":1,"aaaaaaaaY":2,"Xaaaaaaaa":3}"#,
    ] {
        assert_eq!(kind(distinct), None, "{distinct}");
    }
}

// V1, S4: integers are exact to the ends of 64 bits; one beyond is refused, never a rounded float.
#[test]
fn v1_integers_are_exact_or_refused() {
    for kept in
        ["9007199254740993", "18446744073709551615", "-9223372036854775808", "9223372036854775808", "0", "-0", "-1"]
    {
        checked(kept.as_bytes(), |scanned| {
            let written = scanned.expect(kept).value().as_number().expect("a number").to_string();
            assert_eq!(written, if kept == "-0" { "0" } else { kept });
        });
    }
    for beyond in ["18446744073709551616", "-9223372036854775809", "1e400", "-1e400", "99999999999999999999999"] {
        assert_eq!(kind(beyond), Some(ReadErrorKind::NumberOutOfRange), "{beyond}");
    }
    for inexact in ["1e-400", "0.10000000000000000001", "9007199254740993.0"] {
        assert_eq!(kind(inexact), Some(ReadErrorKind::NumberInexact), "{inexact}");
    }
}

// V3, V21: nothing that is not one whole JSON value.
#[test]
fn v3_malformed_texts_say_what_is_wrong() {
    use ReadErrorKind::*;
    let cases = [
        ("{\"amount\": NaN}", 11, ExpectedValue),
        ("{\"a\":", 5, UnexpectedEnd),
        ("{\"path\":\"/tmp/a\"", 16, UnexpectedEnd),
        ("{\"n\":12", 7, UnexpectedEnd),
        ("", 0, UnexpectedEnd),
        ("  ", 2, UnexpectedEnd),
        ("{} {}", 3, TrailingBytes),
        ("{}\0", 2, TrailingBytes),
        ("{a:1}", 1, ExpectedKey),
        ("{'a':1}", 1, ExpectedKey),
        ("{\"a\":1,}", 7, ExpectedKey),
        ("[1,]", 3, ExpectedValue),
        ("[1 2]", 3, ExpectedCommaOrEnd),
        ("[1}", 2, ExpectedCommaOrEnd),
        ("{\"a\" 1}", 5, ExpectedColon),
        ("\"\\x\"", 1, InvalidEscape),
        ("\"\\u12g4\"", 1, InvalidEscape),
        ("\"\\u12", 1, UnexpectedEnd),
        ("\"\n\"", 1, ControlCharacter),
        ("\"a\\ud800\"", 2, LoneSurrogate),
        ("\"\\udc00\\ud800\"", 1, LoneSurrogate),
        ("\"\\ud800\\u0041\"", 1, LoneSurrogate),
        ("01", 1, InvalidNumber),
        ("-", 1, UnexpectedEnd),
        ("1.", 2, UnexpectedEnd),
        ("1.x", 2, InvalidNumber),
        ("+1", 0, ExpectedValue),
        ("-01", 2, InvalidNumber),
        ("tru", 3, UnexpectedEnd),
        ("trux", 0, ExpectedValue),
        ("\u{feff}{}", 0, ByteOrderMark),
        ("/* */ {}", 0, ExpectedValue),
    ];
    for (text, at, kind) in cases {
        let error = refusal(text.as_bytes()).unwrap_or_else(|| panic!("{text} was accepted"));
        assert_eq!((error.at, error.kind), (at, kind), "{text}");
        // L4: the message holds nothing of the text.
        assert!(!error.to_string().contains("amount"));
    }
}

// Checked everywhere, also in what no type asks for.
#[test]
fn s1_skipped_values_are_checked_in_full() {
    for bad in
        [&b"{\"a\":1,\"skip\":\"\xff\"}"[..], b"{\"a\":1,\"skip\":[{\"b\":\"\xc0\x80\"}]}", b"{\"a\":\"\xed\xa0\x80\"}"]
    {
        assert_eq!(refusal(bad).expect("bad UTF-8").kind, ReadErrorKind::NotUtf8);
    }
    for bad in [r#"{"skip":"\ud800"}"#, r#"{"skip":[1,{"b":01}]}"#, r#"{"skip":1e999}"#, "{\"skip\":\"\u{1}\"}"] {
        assert!(kind(bad).is_some(), "{bad}");
    }
}

// F5: too little room for keys refuses, and is told apart from a fault of the text.
#[test]
fn f5_a_small_key_table_refuses() {
    let text = br#"{"a":{"b":1,"c":2},"d":[{"e":{}}]}"#;
    for room in 0..6 {
        let read = scan(text, &mut vec![KeySlot::default(); room], &Limits::DEFAULT);
        // At most three keys are open at once: a, b, c; then a, d, e.
        let expected = if room < 3 { Some(ReadErrorKind::NoRoomForKeys) } else { None };
        assert_eq!(read.err().map(|error| error.kind), expected, "{room}");
    }
}

/// S1, S9: each value is of one kind, and is nothing that it is not; its source is what was sent.
#[test]
fn s1_a_value_is_of_one_kind() {
    let values = ["null", "true", "false", "-1.50", "\"a\\u0062\"", "[ 1 ]", "{ \"a\" : 1 }"];
    let text = format!("[{}]", values.join(" , "));
    let kinds = [Kind::Null, Kind::Bool, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object];
    checked(text.as_bytes(), |scanned| {
        let list = scanned.expect("good text").value();
        assert_eq!((list.kind(), list.source(), list.offset()), (Kind::Array, text.as_str(), 0));
        assert_eq!(list.items().count(), values.len());
        for ((value, source), kind) in list.items().zip(values).zip(kinds) {
            assert_eq!((value.kind(), value.source()), (kind, source));
            assert_eq!(value.offset() as usize, text.find(source).expect("it is there"), "{source}");
            assert_eq!(value.is_null(), kind == Kind::Null, "{source}");
            assert_eq!(value.as_bool(), source.parse().ok(), "{source}");
            assert_eq!(value.as_number().is_some(), kind == Kind::Number, "{source}");
            assert_eq!(value.as_text().is_some(), kind == Kind::String, "{source}");
            assert_eq!(value.items().count(), usize::from(kind == Kind::Array), "{source}");
            assert_eq!(value.members().count(), usize::from(kind == Kind::Object), "{source}");
            assert_eq!(value.get("a").is_some(), kind == Kind::Object, "{source}");
        }
    });
}

/// S4, S5: a finite number is taken as it is, and a colon is counted for each key.
#[test]
fn s4_a_finite_number_is_taken_as_it_is() {
    for value in [1.5, -1.5, 0.0, 5e-324, f64::MAX, f64::MIN] {
        assert_eq!(Number::from_f64(value), Some(Number::F64(value)));
    }
    assert!(matches!(Number::from_f64(-0.0), Some(Number::F64(zero)) if zero.is_sign_positive()));
    assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(Number::from_f64), [None; 3]);
    assert_eq!([key_capacity(b""), key_capacity(b"[1,2]"), key_capacity(br#"{"a":{"b":1},"c":":"}"#)], [0, 0, 4]);
}

/// V3: a text that ends within an escape ends too early; one that goes on otherwise has a wrong escape.
#[test]
fn v3_an_escape_that_breaks_off_is_told_as_the_end() {
    for whole in ["\\", "\\u", "\\u0", "\\u00", "\\u00e", "\\ud83d", "\\ud83d\\", "\\ud83d\\u", "\\ud83d\\ude0"] {
        assert_eq!(kind(&format!("\"{whole}")), Some(ReadErrorKind::UnexpectedEnd), "{whole}");
    }
    for (wrong, expected) in [
        ("\\x", ReadErrorKind::InvalidEscape),
        ("\\U0061", ReadErrorKind::InvalidEscape),
        ("\\u00g0", ReadErrorKind::InvalidEscape),
        ("\\ud83d", ReadErrorKind::LoneSurrogate),
        ("\\ud83d\\n", ReadErrorKind::LoneSurrogate),
        ("\\ud83dx", ReadErrorKind::LoneSurrogate),
        ("\\ude00", ReadErrorKind::LoneSurrogate),
        ("\\ud83d\\u0061", ReadErrorKind::LoneSurrogate),
        ("\\ud83d\\ud83d", ReadErrorKind::LoneSurrogate),
    ] {
        assert_eq!(kind(&format!("\"{wrong}\"")), Some(expected), "{wrong}");
    }
}

/// V3: a number that is none is told at its first byte that does not fit, with a sign and without.
#[test]
fn v3_a_number_is_refused_where_it_stops_being_one() {
    for (text, at) in [
        ("01", 1),
        ("00", 1),
        ("1.", 2),
        ("1.x", 2),
        ("12.", 3),
        ("1e", 2),
        ("1E+", 3),
        ("12.5e-x", 6),
        ("1.5e", 4),
        ("0x", 1),
    ] {
        for sign in ["", "-"] {
            let told = refusal([sign, text].concat().as_bytes()).expect("it is no number");
            assert_eq!(told.at as usize, sign.len() + at, "{sign}{text}: {told}");
        }
    }
}
