//! Bounds, tried.

use super::*;
use crate::args::MAX_CLAMPS;
use crate::json::{KeySlot, Limits, Number};
use crate::schema::{Property, Schema};
use proptest::prelude::*;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

/// Gives `text` with the clamps of `rules` to `look`.
fn clamped<T>(text: &str, rules: &[FieldRule<'_>], look: impl FnOnce(Args<'_>) -> T) -> Result<T, ClampError> {
    let mut keys = vec![KeySlot::default(); text.len()];
    let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap();
    let mut edits = Edits::new();
    apply(args, rules, &mut edits)?;
    Ok(look(args.with_edits(&edits)))
}

fn json(args: Args<'_>) -> String {
    let mut text = String::new();
    args.write_json(&mut text).unwrap();
    text
}

#[track_caller]
fn assert_clamped(clamp: Clamp, from: &str, to: &str) {
    let rules = [FieldRule::clamp("/a", clamp)];
    assert_eq!(clamped(&format!(r#"{{"a":{from}}}"#), &rules, json).unwrap(), format!(r#"{{"a":{to}}}"#));
}

#[test]
fn numbers_are_brought_into_bounds() {
    for (from, to) in [
        ("5000", "100"),
        ("0", "1"),
        ("-7", "1"),
        ("1", "1"),
        ("100.0", "100.0"),
        ("1e3", "100"),
        ("0.5", "1"),
        ("50.5", "50.5"),
        ("100.5", "100"),
    ] {
        assert_clamped(Clamp::range(1, 100), from, to);
    }
    assert_clamped(Clamp::max(5), "-99", "-99");
    assert_clamped(Clamp::min(-5), "18446744073709551615", "18446744073709551615");
    assert_clamped(Clamp::max(9_007_199_254_740_992), "9007199254740993", "9007199254740992");
}

/// An integer stays one: bounds are rounded inwards, as long as they hold an integer.
#[test]
fn k2_an_integer_stays_an_integer_within_the_range() {
    let between = |min, max| Clamp { min: Some(Bound::Float(min)), max: Some(Bound::Float(max)), max_length: None };
    assert_clamped(between(0.5, 9.5), "0", "1");
    assert_clamped(between(0.5, 9.5), "12", "9");
    assert_clamped(between(0.5, 9.5), "12.0", "9");
    assert_clamped(between(0.5, 9.5), "12.25", "9.5");
    assert_clamped(between(-9.5, -0.5), "0", "-1");
    assert_clamped(between(0.2, 0.8), "7", "0.8");
    assert_clamped(between(-0.0, 0.5), "-3", "0");
    assert_clamped(between(-1e300, 1e300), "7", "7");
}

#[test]
fn texts_are_cut_by_code_points() {
    assert_clamped(Clamp::max_length(2), "\"abc\"", "\"ab\"");
    assert_clamped(Clamp::max_length(3), "\"abc\"", "\"abc\"");
    assert_clamped(Clamp::max_length(1), "\"\u{1f600}x\"", "\"\u{1f600}\"");
    assert_clamped(Clamp::max_length(2), r#""\u0061\ud83d\ude00z""#, "\"a\u{1f600}\"");
    assert_clamped(Clamp::max_length(0), "\"abc\"", "\"\"");
}

#[test]
fn several_rules_for_one_value_all_hold() {
    let rules = [
        FieldRule::clamp("/*", Clamp { max_length: Some(2), ..Clamp::range(0, 9) }),
        FieldRule::clamp("/a", Clamp { max_length: Some(3), ..Clamp::range(5, 20) }),
    ];
    assert_eq!(clamped(r#"{"a":1,"b":-1}"#, &rules, json).unwrap(), r#"{"a":5,"b":0}"#);
    assert_eq!(clamped(r#"{"a":99,"b":"xyz"}"#, &rules, json).unwrap(), r#"{"a":9,"b":"xy"}"#);
    assert_eq!(clamped(r#"{"a":"xyz"}"#, &rules, json).unwrap(), r#"{"a":"xy"}"#);
}

/// What was clamped in one call is not clamped in the next.
#[test]
fn edits_are_emptied_first() {
    let mut edits = Edits::new();
    edits.push(Edit { at: 5, to: Replacement::Number(Number::U64(1)) }).unwrap();
    for rules in [&[][..], &[FieldRule::clamp("/a", Clamp::max(9))]] {
        apply(Args::EMPTY, rules, &mut edits).unwrap();
        assert!(edits.is_empty());
    }
}

/// V2: what is of another type is left alone, and so is refused by the schema or by nothing.
#[test]
fn values_of_other_types_stay() {
    let both = Clamp { max_length: Some(1), ..Clamp::range(1, 2) };
    for value in ["null", "true", "[9]", "{\"a\":9}"] {
        assert_clamped(both, value, value);
    }
    assert_clamped(Clamp::range(1, 2), "\"NaN\"", "\"NaN\"");
    assert_clamped(Clamp::max_length(1), "99", "99");
}

#[test]
fn k3_each_clamp_is_told_with_its_field() {
    let rules = [
        FieldRule::clamp("/rows/*/n", Clamp::max(5)),
        FieldRule::clamp("/note", Clamp::max_length(3)),
        FieldRule::clamp("/pin", Clamp::max(9)),
        FieldRule::secret("/pin"),
        FieldRule::clamp("/box/pin", Clamp::max(9)),
        FieldRule::secret("/box"),
    ];
    let text = r#"{"rows":[{"n":1},{"n":6},{"n":7}],"note":"abcdef","pin":4711,"box":{"pin":4711},"n":9}"#;
    let told = clamped(text, &rules, |args| {
        let mut told = Vec::new();
        changes(args, &rules, &mut |change| told.push(change.to_string()));
        told
    });
    assert_eq!(
        told.unwrap(),
        [
            "rows[1].n: 6 -> 5",
            "rows[2].n: 7 -> 5",
            "note: 6 characters -> 3 characters",
            "pin: (secret) -> (secret)",
            "box.pin: (secret) -> (secret)",
        ]
    );
}

#[test]
fn f5_more_clamps_than_there_is_room_for_are_refused() {
    let rules = [FieldRule::clamp("/a/*", Clamp::max(5))];
    let list = |count| format!(r#"{{"a":[{}]}}"#, vec!["6"; count].join(","));
    assert!(clamped(&list(MAX_CLAMPS), &rules, json).is_ok());
    assert_eq!(clamped(&list(MAX_CLAMPS + 1), &rules, json), Err(ClampError::TooMany));
}

/// Rules that contradict each other can't both be kept, so the call is refused.
#[test]
fn f5_clamps_that_leave_no_room_are_refused() {
    let rules = [FieldRule::clamp("/*", Clamp::max(5)), FieldRule::clamp("/a", Clamp::min(6))];
    assert_eq!(clamped(r#"{"a":1}"#, &rules, json), Err(ClampError::Unusable));
    assert_eq!(clamped(r#"{"b":9}"#, &rules, json).unwrap(), r#"{"b":5}"#);
    let nan = Clamp { min: Some(Bound::Float(f64::NAN)), ..Clamp::max(1) };
    assert_eq!(nan.check(), Err(ClampFault::NotFinite));
    assert_eq!(clamped(r#"{"a":1}"#, &[FieldRule::clamp("/a", nan)], json), Err(ClampError::Unusable));
    let many = [FieldRule::clamp("/a", Clamp::max(5)); 65];
    assert_eq!(clamped(r#"{"a":1}"#, &many, json), Err(ClampError::Unusable));
}

fn any_bound() -> impl Strategy<Value = Bound> {
    prop_oneof![
        (-20i64..20).prop_map(Bound::Integer),
        any::<i64>().prop_map(Bound::Integer),
        (-80i64..80).prop_map(|quarter| Bound::Float(quarter as f64 / 4.0)),
        proptest::num::f64::NORMAL.prop_map(Bound::Float),
    ]
}

fn any_clamp() -> impl Strategy<Value = Clamp> {
    let clamp = (proptest::option::of(any_bound()), proptest::option::of(any_bound()), proptest::option::of(0u32..6));
    clamp
        .prop_map(|(min, max, max_length)| Clamp { min, max, max_length })
        .prop_filter("a clamp that can be registered", |clamp| clamp.check().is_ok())
}

fn any_scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        (-25i64..25).prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        (-90i64..90).prop_map(|quarter| format!("{:?}", quarter as f64 / 4.0)),
        proptest::num::f64::NORMAL
            .prop_map(|f| Number::F64(f).to_string())
            .prop_filter("readable", |text| text.len() < 60),
        "\\PC{0,8}".prop_map(|text| serde_json::Value::from(text).to_string()),
        Just("null".to_string()),
        Just("[1]".to_string()),
    ]
}

proptest! {
    /// K2: clamped twice is clamped once, and every number and text is within its bounds. K1: with the same bounds in
    /// the schema the result satisfies it.
    #[test]
    fn k1_k2_clamping_is_idempotent_and_stays_in_range(clamp in any_clamp(), values in proptest::collection::vec(any_scalar(), 0..8)) {
        let text = format!(r#"{{"a":[{}]}}"#, values.join(","));
        let rules = [FieldRule::clamp("/a/*", clamp)];
        let mut item = Schema::any();
        if let Some(min) = value_of(clamp.min) {
            item = item.lower(min, false);
        }
        if let Some(max) = value_of(clamp.max) {
            item = item.upper(max, false);
        }
        if let Some(chars) = clamp.max_length {
            item = item.max_length(chars);
        }
        let list = [Property::required("a", Schema::array(&item))];
        let schema = Schema::object(&list);
        clamped(&text, &rules, |args| {
            assert!(schema.accepts(args), "{clamp:?} {text} {}", json(args));
            let mut again = Edits::new();
            apply(args, &rules, &mut again).unwrap();
            assert!(again.is_empty(), "{clamp:?} {text}");
            // Read anew, the clamped text is the same.
            let twice = clamped(&json(args), &rules, json).unwrap();
            assert_eq!(twice, json(args));
        }).unwrap();
    }

    /// The short way for members of the root and the long way for any path find the same.
    #[test]
    fn both_ways_clamp_alike(
        clamps in proptest::collection::vec((any_clamp(), "[*ab~/]{0,2}"), 1..4),
        values in proptest::collection::vec(("[*ab~/]{0,2}", any_scalar()), 0..6),
    ) {
        let mut members = std::collections::BTreeMap::new();
        members.extend(values);
        let members: Vec<_> = members.iter().map(|(name, value)| format!("{}:{value}", serde_json::Value::from(name.as_str()))).collect();
        let text = format!("{{{}}}", members.join(","));
        let paths: Vec<_> = clamps.iter().map(|(_, name)| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect();
        let mut rules: Vec<_> = paths.iter().zip(&clamps).map(|(path, (clamp, _))| FieldRule::clamp(path, *clamp)).collect();
        let short = clamped(&text, &rules, json);
        rules.push(FieldRule::clamp("/nothing/here", Clamp::max(1)));
        prop_assert_eq!(short, clamped(&text, &rules, json));
    }

    /// K1: a schema that asks for integers gets integers, whatever the bounds are, when they hold any.
    #[test]
    fn k1_integers_stay_integers(clamp in any_clamp(), value in any::<i64>()) {
        let rules = [FieldRule::clamp("/a", clamp)];
        let whole = Range::of([clamp].into_iter()).unwrap();
        prop_assume!(!Range { min: whole.min.map(number::ceil), max: whole.max.map(number::floor) }.is_empty());
        let properties = [Property::required("a", Schema::integer().with_any_size())];
        clamped(&format!(r#"{{"a":{value}}}"#), &rules, |args| {
            assert!(Schema::object(&properties).accepts(args), "{}", json(args));
        }).unwrap();
    }
}

/// L1: what is within a secret stays one, also behind what is nested within it; what follows the secret is told.
#[test]
fn l1_a_clamp_within_a_secret_tells_nothing_of_it() {
    let rules = [
        FieldRule::secret("/box"),
        FieldRule::clamp("/box/pin", Clamp::max(9)),
        FieldRule::clamp("/box/in/0/pin", Clamp::max(9)),
        FieldRule::clamp("/pin", Clamp::max(9)),
    ];
    let text = r#"{"box":{"in":[{"pin":11},[]],"pin":12},"pin":13}"#;
    let told = clamped(text, &rules, |args| {
        let mut told = Vec::new();
        changes(args, &rules, &mut |change| {
            told.push(change.to_string());
            assert_eq!(format!("{change:?}"), format!("Change({change})"));
        });
        told
    });
    assert_eq!(told.unwrap(), ["box.in[0].pin: (secret) -> (secret)", "box.pin: (secret) -> (secret)", "pin: 13 -> 9"]);
}

/// F5: as many rules as there may be are applied, one more are not.
#[test]
fn f5_as_many_rules_as_there_may_be() {
    for path in ["/a", "/b/c"] {
        let rules = [FieldRule::clamp(path, Clamp::max(9)); fields::MAX_RULES + 1];
        let text = r#"{"a":10,"b":{"c":10}}"#;
        let most = clamped(text, &rules[1..], json).unwrap();
        assert_eq!(most.matches('9').count(), 1, "{most}");
        assert_eq!(clamped(text, &rules, json), Err(ClampError::Unusable));
    }
}
