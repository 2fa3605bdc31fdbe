//! Typed values out of checked text: as `serde_json` makes them, but for numbers and the places named here.

#![expect(clippy::expect_used, clippy::panic, reason = "a helper of tests fails by panicking")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use callgate_core::json::{DeError, DeErrorKind, KeySlot, Limits, key_capacity, scan};
use serde::Deserialize;
use serde::de::IgnoredAny;

fn with<R>(text: &str, look: impl FnOnce(callgate_core::json::Value<'_>, &mut Vec<u8>) -> R) -> R {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    let scanned = scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("good text");
    look(scanned.value(), &mut vec![0; text.len()])
}

fn ours<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, DeError> {
    with(text, |value, room| {
        let read = value.deserialize::<T>(room);
        #[cfg(feature = "alloc")]
        assert_eq!(read.is_ok(), value.parse::<T>().is_ok(), "{text}: room and heap agree");
        read
    })
}

/// Both accept and give the same, or both refuse.
fn same<T: for<'de> Deserialize<'de> + PartialEq + core::fmt::Debug>(text: &str) {
    match (ours::<T>(text), serde_json::from_str::<T>(text)) {
        (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{text}"),
        (Err(_), Err(_)) => {}
        (ours, theirs) => panic!("{text}: {ours:?}, serde_json {theirs:?}"),
    }
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
struct Point {
    x: i32,
    y: Option<u8>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Unit;

#[derive(Deserialize, PartialEq, Debug)]
struct Newtype(u16);

#[derive(Deserialize, PartialEq, Debug)]
struct Pair(u8, String);

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "snake_case")]
enum Shape {
    Empty,
    Round(u8),
    Pair(u8, u8),
    Named { a: bool },
    Nothing(()),
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(tag = "kind")]
enum Tagged {
    A { x: u8 },
    B { y: String },
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
    List(Vec<Untagged>),
}

#[derive(PartialEq, Debug)]
struct ByteBuf(Vec<u8>);

impl<'de> Deserialize<'de> for ByteBuf {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = ByteBuf;
            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<ByteBuf, E> {
                Ok(ByteBuf(bytes.to_vec()))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<ByteBuf, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(ByteBuf(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Visitor)
    }
}

#[test]
fn s1_scalars_as_serde_json_makes_them() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "1",
        "-1",
        "127",
        "128",
        "-128",
        "-129",
        "255",
        "256",
        "65535",
        "65536",
        "2147483647",
        "-2147483648",
        "2147483648",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "18446744073709551615",
        "1.5",
        "-2.25",
        "1e2",
        "\"\"",
        "\"a\"",
        "\"ab\"",
        "\"\\n\"",
        "\"\\ud83d\\ude00\"",
        "\"é\"",
        "[]",
        "{}",
        "[1]",
        "{\"a\":1}",
        "\"1\"",
        "\"true\"",
    ] {
        same::<bool>(text);
        same::<String>(text);
        same::<char>(text);
        same::<()>(text);
        same::<Unit>(text);
        same::<Option<bool>>(text);
        same::<Option<String>>(text);
        same::<Cow<'_, str>>(text);
        same::<ByteBuf>(text);
        same::<Untagged>(text);
        same::<serde_json::Value>(text);
        assert!(ours::<IgnoredAny>(text).is_ok());
        if !text.contains(['.', 'e']) {
            same::<u8>(text);
            same::<i8>(text);
            same::<u16>(text);
            same::<i16>(text);
            same::<u32>(text);
            same::<i32>(text);
            same::<u64>(text);
            same::<i64>(text);
            same::<u128>(text);
            same::<i128>(text);
            same::<usize>(text);
            same::<Newtype>(text);
            same::<Option<i32>>(text);
            same::<Option<Option<u8>>>(text);
            same::<Vec<u8>>(text);
        }
    }
}

#[test]
fn s1_compounds_as_serde_json_makes_them() {
    for text in [
        r#"{"x": 1}"#,
        r#"{"x": 1, "y": null}"#,
        r#"{"x": -1, "y": 255, "tags": ["a", "\u0062"]}"#,
        r#"{"\u0078": 1}"#,
        r#"{"x": 1, "z": 2}"#,
        r#"{"y": 1}"#,
        r#"{"x": "1"}"#,
        r#"{"x": 1, "tags": [1]}"#,
        "{}",
        "[1]",
        "[1, \"a\"]",
        "[1, \"a\", 2]",
        "[1, 2]",
        "[[1, 2], [3]]",
        r#""empty""#,
        r#""\u0065mpty""#,
        r#""round""#,
        r#""other""#,
        r#"{"empty": null}"#,
        r#"{"empty": 1}"#,
        r#"{"round": 7}"#,
        r#"{"round": [7]}"#,
        r#"{"pair": [1, 2]}"#,
        r#"{"pair": [1]}"#,
        r#"{"pair": [1, 2, 3]}"#,
        r#"{"named": {"a": true}}"#,
        r#"{"named": {}}"#,
        r#"{"nothing": null}"#,
        r#"{"round": 7, "empty": null}"#,
        r#"{"other": 1}"#,
        r#"{"kind": "A", "x": 1}"#,
        r#"{"x": 1, "kind": "A"}"#,
        r#"{"kind": "B", "y": "\t"}"#,
        r#"{"kind": "C"}"#,
        r#"[1, "a", [2, ["b\n"]]]"#,
        r#"{"1": 10, "-2": 20}"#,
        r#"{"1.0": 10}"#,
        r#"{"01": 10}"#,
        r#"{"+1": 10}"#,
        r#"{" 1": 10}"#,
        r#"{"": 10}"#,
        r#"{"256": 1, "-129": 2}"#,
        r#"{"true": 1, "false": 2}"#,
        r#"{"empty": 3}"#,
        r#"{"\u0061\n": 1}"#,
    ] {
        // `serde_json` fills a struct from an array as well.
        if text.starts_with('{') {
            same::<Point>(text);
        } else {
            assert!(ours::<Point>(text).is_err(), "{text}");
        }
        same::<Pair>(text);
        same::<(u8, String)>(text);
        same::<[u8; 2]>(text);
        same::<Vec<Vec<u8>>>(text);
        same::<Shape>(text);
        same::<Tagged>(text);
        same::<Untagged>(text);
        same::<BTreeMap<String, u8>>(text);
        same::<BTreeMap<i8, u8>>(text);
        same::<BTreeMap<u64, u8>>(text);
        same::<BTreeMap<i128, u8>>(text);
        same::<BTreeMap<bool, u8>>(text);
        same::<BTreeMap<char, u8>>(text);
        same::<BTreeMap<Shape, u8>>(text);
        same::<BTreeMap<Option<String>, u8>>(text);
        same::<serde_json::Value>(text);
    }
}

// S4, V1, V11: an integral decimal is an integer where one is asked for; nothing is rounded.
#[test]
fn s4_numbers_are_exact_for_every_type() {
    assert_eq!(ours::<u8>("1.0").ok(), Some(1));
    assert_eq!(ours::<i8>("-1.28e2").ok(), Some(-128));
    assert_eq!(ours::<u64>("1e3").ok(), Some(1000));
    assert_eq!(ours::<i64>("0.0").ok(), Some(0));
    assert_eq!(ours::<i32>("-0").ok(), Some(0));
    assert_eq!(ours::<u32>("-0.0").ok(), Some(0));
    assert_eq!(ours::<u64>("9007199254740992.0").ok(), Some(1 << 53));
    assert_eq!(ours::<u64>("9007199254740993").ok(), Some((1 << 53) + 1));
    assert_eq!(ours::<u64>("18446744073709551615").ok(), Some(u64::MAX));
    for refused in ["1.5", "9007199254740994.0", "1e19", "1152921504606847e3", "-1.0", "true", "\"1\"", "null"] {
        assert!(ours::<u64>(refused).is_err(), "{refused}");
    }
    assert_eq!(ours::<f64>("9007199254740992").ok(), Some(9007199254740992.0));
    assert_eq!(ours::<f64>("0.1").ok(), Some(0.1));
    assert_eq!(ours::<f64>("-0.0").map(f64::to_bits).ok(), Some(0));
    for inexact in ["9007199254740993", "18446744073709551615", "-9223372036854775807"] {
        assert_eq!(ours::<f64>(inexact).expect_err(inexact).kind(), DeErrorKind::Inexact);
    }
    assert_eq!(ours::<f32>("0.1").ok(), Some(0.1));
    assert_eq!(ours::<f32>("16777216").ok(), Some(16777216.0));
    assert_eq!(ours::<f32>("0.5").ok(), Some(0.5));
    for inexact in ["16777217", "0.12345678901", "1e300", "1e-300", "16777217.0"] {
        assert_eq!(ours::<f32>(inexact).expect_err(inexact).kind(), DeErrorKind::Inexact, "{inexact}");
    }
}

// L4: an error names the field and never the value.
#[test]
fn l4_errors_name_the_field_and_not_the_value() {
    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors count")]
    struct Outer {
        filter: Option<Point>,
        rows: Option<Vec<(u8, Shape)>>,
        only: Option<Only>,
    }
    #[derive(Debug)]
    struct Only;
    impl<'de> Deserialize<'de> for Only {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            Err(serde::de::Error::custom(format!("{text} is not it")))
        }
    }
    let cases = [
        (r#"{"filter": {"x": "canary"}}"#, "filter.x: expected i32, found a string"),
        (r#"{"filter": {"x": 40000000000}}"#, "filter.x: expected i32, found an integer that does not fit"),
        (r#"{"filter": {"x": 1.25}}"#, "filter.x: expected i32, found a decimal"),
        (r#"{"filter": {"x": 1, "y": 256}}"#, "filter.y: expected u8, found an integer that does not fit"),
        (r#"{"filter": {"y": 2}}"#, "filter: the field `x` is missing"),
        (r#"{"filter": {"x": 1, "canary": 2}}"#, "filter.canary: unknown field, expected `x`, `y`, `tags`"),
        (r#"{"filter": [1, 2]}"#, "filter: expected struct Point, found an array"),
        (
            r#"{"rows": [[1, "empty"], [2, "canary"]]}"#,
            "rows[1][1]: unknown variant, expected `empty`, `round`, `pair`, `named`, `nothing`",
        ),
        (r#"{"rows": [[1, "empty"], [2]]}"#, "rows[1]: expected a tuple of size 2, found another number of items"),
        (r#"{"rows": [[1, "empty", 3]]}"#, "rows[0]: too many items"),
        (r#"{"rows": [[1, {"round": "canary"}]]}"#, "rows[0][1].round: expected u8, found a string"),
        (r#"{"rows": [[1, {}]]}"#, "rows[0][1]: expected an object with one member, found an object that does not fit"),
        (r#"{"only": "canary"}"#, "only: the value is not acceptable"),
        ("[]", "expected struct Outer, found an array"),
    ];
    for (text, expected) in cases {
        let error = ours::<Outer>(text).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
        assert_eq!(format!("{error:?}"), format!("DeError({expected})"), "{text}");
        let told = [error.field(), &error.reason().to_string()];
        assert_eq!(told.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": "), expected, "{text}");
    }
    let at = |text: &str| ours::<Outer>(text).expect_err(text).at();
    assert_eq!([at("[]"), at(r#"{"filter": {"x": "canary"}}"#), at(r#"{"filter": {"y": 2}}"#)], [0, 17, 11]);
}

#[test]
fn strings_are_borrowed_and_room_is_counted() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Texts<'a> {
        plain: &'a str,
        escaped: &'a str,
        #[serde(borrow)]
        either: Cow<'a, str>,
    }
    let text = r#"{"plain": "a", "escaped": "\u0062\n", "either": "\"c"}"#;
    let expected = Texts { plain: "a", escaped: "b\n", either: Cow::Borrowed("\"c") };
    with(text, |value, room| {
        assert_eq!(value.deserialize::<Texts<'_>>(room.get_mut(..4).expect("room")).ok(), Some(expected));
    });
    // Without room, what stands as it is is borrowed all the same.
    #[cfg(feature = "alloc")]
    with(r#"["plain", "b"]"#, |value, _| assert_eq!(value.parse::<(&str, &str)>().ok(), Some(("plain", "b"))));
    with(text, |value, room| {
        let error = value.deserialize::<Texts<'_>>(room.get_mut(..3).expect("room")).expect_err("too small");
        assert_eq!((error.kind(), error.field()), (DeErrorKind::NoRoom, "either"));
    });
}

// A visitor that leaves values alone does not shift what follows.
#[test]
fn what_a_visitor_leaves_alone_is_skipped() {
    struct Blind;
    impl<'de> Deserialize<'de> for Blind {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Ok(Self)
        }
    }
    struct Keys(Vec<String>);
    impl<'de> Deserialize<'de> for Keys {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Keys;
                fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                    let mut keys = Vec::new();
                    while let Some(key) = map.next_key()? {
                        keys.push(key);
                    }
                    Ok(Keys(keys))
                }
            }
            deserializer.deserialize_map(Visitor)
        }
    }
    let keys = ours::<Keys>(r#"{"a": "x", "b": ["y", {"c": 1}], "d": 2}"#).expect("an object");
    assert_eq!(keys.0, ["a", "b", "d"]);
    let (_, last) = ours::<(Blind, u8)>(r#"[{"a": [1, "]"]}, 2]"#).expect("two items");
    assert_eq!(last, 2);
    let (members, last) =
        ours::<(BTreeMap<String, Blind>, u8)>(r#"[{"a": "b", "c": {"d": 1}}, 3]"#).expect("two items");
    assert_eq!((members.into_keys().collect::<String>(), last), (String::from("ac"), 3));
}
