//! Types of the language as parameters: what their schema accepts is what they read, and they read what `serde_json` reads.
#![cfg(test)]

use std::fmt::Debug;

use callgate_core::args::Args;
use callgate_core::code::{Code, Effect};
use callgate_core::json::{KeySlot, Limits, Value, key_capacity, scan};
use callgate_core::schema::{Property, Schema};
use callgate_core::tool::{Tool, ToolFailure, ToolSpec};
use callgate_core::typed::{self, BareTool, Failed, FieldName, Parameter, Read, Seed, Typed, VariantName};
use serde::de::value::{Error as Plain, StrDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, IntoDeserializer};

fn look<R>(text: &str, look: impl FnOnce(Value<'_>, &mut Vec<u8>) -> R) -> R {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    let scanned = scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("good text");
    look(scanned.value(), &mut vec![0; text.len()])
}

fn accepts(schema: &Schema<'_>, value: Value<'_>) -> bool {
    let mut fits = true;
    schema.validate_value(value, &mut |_| fits = false);
    fits
}

const TEXTS: [&str; 41] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "7.0",
    "2.5",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "32767",
    "-32769",
    "65535",
    "65536",
    "2147483647",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "0.1",
    r#""""#,
    r#""a""#,
    r#""\n""#,
    r#""\u00e9b""#,
    "[]",
    "[1]",
    "[1,2]",
    "[1,2,3]",
    r#"["a","\u0062"]"#,
    "{}",
    r#"{"a":1}"#,
    r#"{"a":1,"\u0062":2}"#,
    r#"{"a":[null,"c"]}"#,
];

/// S4, S9: the schema, the type and `serde_json` are of one opinion on every text, and what is read is what that reads. `inexact` is for
/// types that take no number which they would round.
#[track_caller]
fn agrees<T: for<'de> Read<'de> + DeserializeOwned + PartialEq + Debug>(inexact: bool) {
    let mut taken = 0;
    for text in TEXTS {
        look(text, |value, room| {
            let fits = accepts(&T::SCHEMA, value);
            let read = value.deserialize::<Typed<T>>(room).map(|Typed(value)| value);
            // A whole number is an integer, however it is written.
            let theirs = serde_json::from_str::<T>(text).or_else(|_| serde_json::from_str(&text.replace("7.0", "7")));
            match (read, theirs) {
                (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{text}"),
                (Err(error), Ok(theirs)) => assert!(inexact && fits, "{text}: {error}, {theirs:?}"),
                (Err(error), Err(_)) => assert!(!fits && error.to_string().len() > 10, "{text}: {error}"),
                (Ok(ours), Err(theirs)) => panic!("{text}: {ours:?}, {theirs}"),
            }
            taken += u32::from(fits);
        });
    }
    assert!(taken > 0 && taken < TEXTS.len() as u32, "{taken}");
}

#[test]
fn s4_scalars_take_what_their_schema_says() {
    agrees::<bool>(false);
    agrees::<u8>(false);
    agrees::<i8>(false);
    agrees::<u16>(false);
    agrees::<i16>(false);
    agrees::<u32>(false);
    agrees::<i32>(false);
    agrees::<u64>(false);
    agrees::<usize>(false);
    agrees::<i64>(false);
    agrees::<isize>(false);
    agrees::<f64>(true);
    agrees::<f32>(true);
    agrees::<char>(false);
    agrees::<Option<u8>>(false);
    agrees::<[u8; 2]>(false);
    agrees::<[u8; 0]>(false);
}

#[cfg(feature = "alloc")]
#[test]
fn s4_what_owns_its_parts_takes_what_its_schema_says() {
    use std::collections::BTreeMap;
    agrees::<String>(false);
    agrees::<[Option<String>; 2]>(false);
    agrees::<Vec<u8>>(false);
    agrees::<Vec<String>>(false);
    agrees::<Box<u8>>(false);
    agrees::<Option<Box<Vec<u8>>>>(false);
    agrees::<BTreeMap<String, u8>>(false);
    agrees::<BTreeMap<String, Vec<Option<String>>>>(false);
}

/// What is absent is nothing where it may be left out, and missing where it may not.
#[test]
fn s9_what_may_be_left_out_is_told_by_the_type() {
    assert_eq!((u8::absent(), <Option<u8>>::absent()), (None, Some(None)));
    const { assert!(!u8::OPTIONAL && <Option<u8> as Parameter>::OPTIONAL) };
    #[cfg(feature = "alloc")]
    {
        assert_eq!((<Box<u8>>::absent(), <Box<Option<u8>>>::absent()), (None, Some(Box::new(None))));
        const { assert!(!<Box<u8> as Parameter>::OPTIONAL && <Box<Option<u8>> as Parameter>::OPTIONAL) };
    }
    assert_eq!(typed::present::<u8, Plain>(Some(7), "a"), Ok(7));
    assert_eq!(typed::present::<Option<u8>, Plain>(None, "a"), Ok(None));
    assert!(typed::present::<u8, Plain>(None, "a").is_err_and(|error| error.to_string().contains("`a`")));
}

/// Texts are borrowed where they can be: from what was sent, or from the room.
#[test]
fn texts_are_borrowed_as_they_stand() {
    look(r#"["plain","\u0061\n"]"#, |value, room| {
        let Typed([plain, escaped]) = value.deserialize::<Typed<[&str; 2]>>(room).expect("two texts");
        assert_eq!([plain, escaped], ["plain", "a\n"]);
    });
    look(r#""\u0061""#, |value, _| assert!(value.deserialize::<Typed<&str>>(&mut []).is_err(), "there is no room"));
    #[cfg(feature = "alloc")]
    {
        use std::borrow::Cow;
        let read = |text: &str| {
            look(text, |value, _| {
                let Typed(list) = value.parse::<Typed<Vec<Cow<'_, str>>>>().expect("texts");
                list.into_iter().map(|text| (matches!(text, Cow::Borrowed(_)), text.into_owned())).collect::<Vec<_>>()
            })
        };
        assert_eq!(read(r#"["ab","\u0061c"]"#), [(true, String::from("ab")), (false, String::from("ac"))]);
        look("7", |value, _| {
            let error = value.parse::<Typed<Cow<'_, str>>>().expect_err("no text");
            assert!(error.to_string().contains("string"), "{error}");
        });
    }
}

#[test]
fn names_are_found_by_their_place() {
    const NAMES: &[&str] = &["a", "bc", "d"];
    let text = |name: &'static str| -> StrDeserializer<'static, Plain> { name.into_deserializer() };
    for (place, name) in NAMES.iter().enumerate() {
        assert_eq!(FieldName(NAMES).deserialize(text(name)), Ok(place));
        assert_eq!(VariantName(NAMES).deserialize(text(name)), Ok(place));
    }
    for wrong in ["", "A", "b", "bcd"] {
        let field = FieldName(NAMES).deserialize(text(wrong)).expect_err(wrong).to_string();
        let variant = VariantName(NAMES).deserialize(text(wrong)).expect_err(wrong).to_string();
        assert!(field.contains("field") && variant.contains("variant") && field.contains("`bc`"), "{field} {variant}");
    }
    let number = || -> serde::de::value::U64Deserializer<Plain> { 7_u64.into_deserializer() };
    let field = FieldName(NAMES).deserialize(number()).expect_err("no name").to_string();
    let variant = VariantName(NAMES).deserialize(number()).expect_err("no name").to_string();
    assert!(field.contains("name of a field") && variant.contains("name of a variant"), "{field} {variant}");
}

#[test]
fn a_default_is_read_as_a_value_is() {
    assert_eq!(typed::default_text::<&str, Plain>("a"), Ok("a"));
    assert_eq!(typed::default_integer::<u8, Plain>(7), Ok(7));
    assert_eq!(typed::default_float::<f64, Plain>(2.5), Ok(2.5));
    assert_eq!(typed::default_bool::<bool, Plain>(true), Ok(true));
    assert!(typed::default_text::<u8, Plain>("a").is_err() && typed::default_integer::<u8, Plain>(256).is_err());
    assert!(typed::default_float::<bool, Plain>(1.0).is_err() && typed::default_bool::<u8, Plain>(true).is_err());
    assert_eq!(
        Seed::<u8>::default().deserialize::<serde::de::value::U8Deserializer<Plain>>(7_u8.into_deserializer()),
        Ok(7)
    );
    assert_eq!([typed::bound(i128::from(i64::MIN)), typed::bound(i128::from(i64::MAX))], [i64::MIN, i64::MAX]);
    assert_eq!([typed::length(0), typed::length(u32::MAX as usize)], [0, u32::MAX]);
    for beyond in [i128::from(i64::MIN) - 1, i128::from(i64::MAX) + 1] {
        assert!(std::panic::catch_unwind(|| typed::bound(beyond)).is_err(), "{beyond}");
    }
    assert!(std::panic::catch_unwind(|| typed::length(u32::MAX as usize + 1)).is_err());
}

/// F7: a schema that can't be used stops the compiler, and one that can does not.
#[test]
fn f7_a_schema_that_cannot_be_used_is_told() {
    typed::demand(&Schema::object(&[Property::required("a", u8::SCHEMA)]));
    let wrong = Schema::integer().minimum(5).maximum(1);
    assert!(std::panic::catch_unwind(|| typed::demand(&wrong)).is_err());
}

/// L4: what a function's types do not hold is told as that, by its place and not by its value; what the function says itself is passed on.
#[test]
fn l4_a_function_without_a_heap_fails_with_its_own_reason() {
    struct Reason;
    impl ToolFailure for Reason {
        fn code(&self) -> Code {
            Code::NotFound
        }
        fn public_text(&self) -> Option<&str> {
            Some("it is not there")
        }
        fn detail(&self) -> &str {
            "looked everywhere"
        }
        fn effect(&self) -> Effect {
            Effect::Done
        }
    }
    let own = Failed::Body(Reason);
    assert_eq!((own.code(), own.effect()), (Code::NotFound, Effect::Done));
    assert_eq!((own.public_text(), own.detail()), (Some("it is not there"), "looked everywhere"));
    let error = look("1.5", |value, room| value.deserialize::<Typed<u8>>(room).expect_err("no integer"));
    let types = Failed::<Reason>::Arguments(error.kind());
    assert_eq!((types.code(), types.effect()), (Code::ValidationError, Effect::None));
    assert!(types.detail().len() > 10 && types.public_text() == Some(types.detail()), "{}", types.detail());
}

#[test]
fn a_function_without_a_heap_is_checked_by_its_schema() {
    const INPUT: Schema<'static> = Schema::object(&[Property::required("a", u8::SCHEMA)]);
    let tool = BareTool::<(), &'static str>::new(ToolSpec::new("probe", "A tool under test"), INPUT, |_, _, _| Ok(()));
    assert_eq!(tool.spec().name, "probe");
    assert!(format!("{tool:?}").contains("probe"));
    let told = |text: &str| {
        let mut keys = [KeySlot::default(); 2];
        let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("an object");
        let mut told = 0;
        tool.validate(args, &mut |_| told += 1);
        assert_eq!(tool.schema().map(|schema| schema.accepts(args)), Some(told == 0));
        told
    };
    assert_eq!([told(r#"{"a":1}"#), told(r#"{"a":256,"b":1}"#)], [0, 2]);
}
