//! Replies, tried.

use super::*;
use serde_json::from_str;

/// Meta as an outcome shows it, with a member of the gate before it.
fn meta(reply: &Reply) -> Value {
    let mut text = String::new();
    let mut meta = Object::begin(&mut text).unwrap();
    meta.text("tool", "the gate's").unwrap();
    reply.write_meta(&mut meta).unwrap();
    meta.end().unwrap();
    // This reader refuses a name that comes twice.
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap().value().parse().unwrap()
}

fn data(reply: &Reply) -> Value {
    let mut text = String::new();
    reply.write_data(&mut text).unwrap();
    from_str(&text).unwrap()
}

/// A typed result is the same result as its value, whoever looks at it.
#[test]
fn a_typed_result_is_its_value() {
    let typed = |value: &Value, cap, may_cut| {
        let (mut text, mut plain) = (Reply::of(value).unwrap(), Reply::new(value.clone()));
        assert!(matches!((&text.data, &plain.data), (Data::Text { .. }, Data::Value(_))));
        text.bound(cap, may_cut);
        plain.bound(cap, may_cut);
        assert_eq!((&text, text.fault(cap)), (&plain, plain.fault(cap)));
        assert_eq!((data(&text), meta(&text)), (data(&plain), meta(&plain)));
        assert_eq!(text.clone().into_data(), plain.into_data());
    };
    let value = json!({"a": [1, 2.5, "\u{202e}x\"", null, true], "b": {"c": u64::MAX}});
    let length = value.to_string().len() + 5;
    for cap in [2, 3, 20, length - 1, length, length + 1, DEFAULT_MAX_OUTPUT] {
        for may_cut in [true, false] {
            typed(&value, cap, may_cut);
            typed(&json!("x\u{202e}".repeat(9)), cap, may_cut);
        }
    }
}

#[test]
fn pages_count_as_the_ancestor_counts() {
    let page = |page, total, limit| {
        let reply = Reply::paginated([json!(1), json!(2), json!(3)], page, total, limit).unwrap();
        assert_eq!((reply.kind(), reply.data()), ("list", &json!([1, 2, 3])));
        meta(&reply)["pagination"].clone()
    };
    let shape = |page, pages, items, prev, next| json!({"page": page, "total_pages": pages, "total_items": items, "limit": 10, "has_prev": prev, "has_next": next});
    assert_eq!(page(2, 50, 10), shape(2, 5, 50, true, true));
    assert_eq!(page(1, 30, 10), shape(1, 3, 30, false, true));
    assert_eq!(page(3, 30, 10), shape(3, 3, 30, true, false));
    assert_eq!(page(1, 5, 10), shape(1, 1, 5, false, false));
    assert_eq!(page(1, 0, 10), shape(1, 0, 0, false, false));
    assert_eq!(page(u64::MAX, u64::MAX, 10)["has_next"], false);
}

#[test]
fn a_page_of_nothing_is_an_error_and_no_panic() {
    assert_eq!(Reply::paginated([], 1, 5, 0), Err(PageError::NoLimit));
    assert_eq!(Reply::paginated([], 0, 5, 10), Err(PageError::NoPage));
}

#[test]
fn details_and_own_kinds_have_their_type() {
    let detail = Reply::detail(json!({"id": 1}), "Product", [json!("edit")]).with_message("Here");
    assert_eq!(detail.message(), Some("Here"));
    assert_eq!(
        meta(&detail),
        json!({"tool": "the gate's", "type": "detail", "entity": "Product", "actions": ["edit"]})
    );
    assert_eq!(Reply::new(1).kind(), "generic");
    assert_eq!(Reply::new(1).with_meta("type", "chart").kind(), "chart");
}

/// A tool neither replaces what the gate says nor pretends that nothing has run.
#[test]
fn the_gates_names_stay_the_gates() {
    let mut reply = Reply::empty();
    for name in callgate_core::outcome::RESERVED_META.iter().chain(&OWN_META) {
        reply = reply.with_meta(*name, "forged");
    }
    for (name, value) in meta(&reply).as_object().unwrap() {
        assert_eq!(value, if name == "tool" { "the gate's" } else { "forged" });
        assert!(name == "tool" || name == "type" || name.starts_with("tool_"), "{name}");
    }
    for kind in GATE_TYPES {
        let reply = Reply::empty().with_meta("type", kind);
        assert_eq!(meta(&reply), json!({"tool": "the gate's", "tool_type": kind}));
        assert_eq!(reply.kind(), "generic");
    }
    let both = Reply::empty().with_meta("code", 1).with_meta("tool_code", 2);
    assert_eq!(meta(&both)["tool_code"], 2);
}

// O2: over the cap the data is cut, and the outcome says so, with length and digest.
#[test]
fn o2_too_large_data_is_cut_with_a_flag() {
    let mut reply = Reply::new("x".repeat(100));
    assert_eq!(reply.fault(20), Some(OutputFault::TooLarge { bytes: 102, cap: 20 }));
    reply.bound(20, true);
    assert!(reply.is_cut());
    assert_eq!(reply.fault(20), None);
    assert_eq!(data(&reply), "x".repeat(18));
    let meta = meta(&reply);
    assert_eq!((&meta["output_truncated"], &meta["output_bytes"]), (&json!(true), &json!(102)));
    let whole = format!("\"{}\"", "x".repeat(100));
    assert_eq!(meta["output_digest"], Digest::of_bytes(whole.as_bytes()).to_string());

    let mut list = Reply::new(json!([1, 2, 3, 4, 5, 6, 7, 8, 9]));
    list.bound(8, true);
    assert_eq!(data(&list), "[1,2,3");
}

// O1, O2: no part of a value fits the schema of the whole.
#[test]
fn o1_too_large_data_is_refused_where_a_part_would_lie() {
    let mut reply = Reply::new("x".repeat(100));
    reply.bound(20, false);
    assert_eq!(reply.fault(20), Some(OutputFault::TooLarge { bytes: 102, cap: 20 }));
    assert_eq!(data(&reply), Value::Null);
}

#[test]
fn f5_data_and_meta_deeper_than_the_gate_goes_are_contained() {
    let deep = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    let mut reply = Reply::new(deep(65));
    reply.bound(DEFAULT_MAX_OUTPUT, true);
    assert_eq!(reply.fault(DEFAULT_MAX_OUTPUT), Some(OutputFault::TooDeep));
    let mut reply = Reply::new(1).with_meta("deep", deep(65));
    assert_eq!(reply.fault(DEFAULT_MAX_OUTPUT), Some(OutputFault::TooDeep));
    reply.bound(DEFAULT_MAX_OUTPUT, true);
    assert_eq!((reply.fault(DEFAULT_MAX_OUTPUT), meta(&reply)["meta_dropped"].clone()), (None, json!(true)));
    let mut reply = Reply::new(1).with_meta("large", "x".repeat(MAX_META));
    reply.bound(DEFAULT_MAX_OUTPUT, true);
    assert_eq!(meta(&reply), json!({"tool": "the gate's", "meta_dropped": true}));
}

#[test]
fn x6_messages_are_bounded_and_additions_are_looked_at_again() {
    let reply = Reply::new(1).with_message("m".repeat(MAX_MESSAGE + 1));
    assert!(reply.message().unwrap().ends_with(" ... cut after 16384 of 16385 bytes"));
    let mut reply = Reply::new(1);
    reply.bound(DEFAULT_MAX_OUTPUT, true);
    let added = reply.with_meta("large", "x".repeat(MAX_META));
    assert_eq!(added.fault(DEFAULT_MAX_OUTPUT), Some(OutputFault::Meta));
}

#[test]
fn only_a_question_of_the_gate_asks() {
    let whole = json!({"success": true, "data": {}, "meta": {"type": "confirmation", "requires_confirmation": true}});
    let part = json!({"requires_confirmation": true, "confirm_token": "t", "action_summary": "s", "expires_at": "e"});
    for asks in [whole, part, json!({"meta": 1, "requires_confirmation": true})] {
        assert!(value_asks_for_confirmation(&asks) && asks_for_confirmation(&asks.to_string()), "{asks}");
    }
    for other in [
        json!({"success": true, "data": {"requires_confirmation": true}}),
        json!({"plan": {"requires_confirmation": true}}),
        json!({"requires_confirmation": "true"}),
        json!({"meta": {"requires_confirmation": 1}}),
        json!([{"requires_confirmation": true}]),
        json!(null),
    ] {
        assert!(!value_asks_for_confirmation(&other) && !asks_for_confirmation(&other.to_string()), "{other}");
    }
    for text in ["", "done", "{", "{\"requires_confirmation\":false,\"requires_confirmation\":true}"] {
        assert!(!asks_for_confirmation(text), "{text:?}");
    }
}
