//! Rules for fields, tried.

use super::*;
use crate::args::Args;
use crate::clamp::Clamp;
use crate::json::{KeySlot, Limits};
use proptest::prelude::*;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

/// The paths of all values that a rule names.
fn named(paths: &[&str], text: &str) -> Vec<String> {
    let rules: Vec<_> = paths.iter().map(|path| FieldRule::secret(path)).collect();
    assert_eq!(check(&rules), Ok(()));
    let mut keys = vec![KeySlot::default(); text.len()];
    let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap();
    let (mut matcher, mut trail) = (Matcher::new(&rules).unwrap(), Trail::default());
    let mut found = Vec::new();
    for (_, event) in args.events() {
        trail.step(&event);
        let matches = matcher.step(&event);
        assert_eq!(matches.secret(), !matches.is_empty());
        if matches.secret() {
            found.push(trail.to_string());
        }
    }
    found
}

#[test]
fn a_path_names_one_value() {
    let text = r#"{"a":1,"b":{"a":[2,{"a":3}],"":4},"c/d":{"~":5},"*":6}"#;
    assert_eq!(named(&["/a"], text), ["a"]);
    assert_eq!(named(&["/b/a/1/a"], text), ["b.a[1].a"]);
    assert_eq!(named(&["/b"], text), ["b"]);
    assert_eq!(named(&[""], text), [""]);
    assert_eq!(named(&["/b/"], text), [r#"b[""]"#]);
    assert_eq!(named(&["/c~1d/~0"], text), [r#"["c/d"]["~"]"#]);
    assert_eq!(named(&["/A", "/b/a/01/a", "/b/a/+1/a", "/b/a/2", "/a/a", "/b/a/-"], text), [""; 0]);
    assert_eq!(named(&["/\u{61}"], r#"{"\u0061":1}"#), ["a"]);
}

/// Each item by its number, however many digits that has, and no other.
#[test]
fn a_number_names_one_item() {
    let text = format!(r#"{{"a":[{}]}}"#, vec!["0"; 121].join(","));
    for item in 0..121 {
        assert_eq!(named(&[&format!("/a/{item}")], &text), [format!("a[{item}]")]);
    }
    for none in ["/a/121", "/a/00", "/a/", "/a/:", "/a//", "/a/1:", "/a/4294967296", "/a/4294967295"] {
        assert_eq!(named(&[none], &text), [""; 0], "{none}");
    }
}

#[test]
fn a_star_names_every_item_and_every_member() {
    let text = r#"{"rows":[{"p":1},{"p":2,"q":3},[4]],"m":{"x":5,"y":{"p":6}}}"#;
    assert_eq!(named(&["/rows/*/p"], text), ["rows[0].p", "rows[1].p"]);
    assert_eq!(named(&["/rows/*"], text), ["rows[0]", "rows[1]", "rows[2]"]);
    assert_eq!(named(&["/m/*", "/rows/2/*"], text), ["rows[2][0]", "m.x", "m.y"]);
    assert_eq!(named(&["/*/*/p"], text), ["rows[0].p", "rows[1].p", "m.y.p"]);
}

/// Containers deeper than any path are counted, and the way back is found.
#[test]
fn depth_beyond_the_levels_is_counted() {
    let text = format!(r#"{{"a":{}{},"b":[{{"p":1}}]}}"#, "[".repeat(60), "]".repeat(60));
    assert_eq!(named(&["/b/*/p"], &text), ["b[0].p"]);
    let deepest = format!("/a{}", "/0".repeat(MAX_SEGMENTS - 1));
    assert_eq!(named(&[&deepest], &text), [format!("a{}", "[0]".repeat(MAX_SEGMENTS - 1))]);
}

#[test]
fn faulty_rules_are_refused() {
    let clamp = Clamp::range(1, 2);
    let deep = "/a".repeat(MAX_SEGMENTS + 1);
    for (rule, fault) in [
        (FieldRule::secret("a"), FieldFault::NoSlash),
        (FieldRule::secret("/a~"), FieldFault::Tilde),
        (FieldRule::secret("/a~2b"), FieldFault::Tilde),
        (FieldRule::secret(&deep), FieldFault::TooDeep),
        (FieldRule { path: "/a", clamp: None, secret: false }, FieldFault::Idle),
        (FieldRule::clamp("", clamp), FieldFault::ClampedRoot),
        (FieldRule::clamp("/a", Clamp::default()), FieldFault::Clamp(ClampFault::Idle)),
        (FieldRule::clamp("/a", Clamp::range(2, 1)), FieldFault::Clamp(ClampFault::Empty)),
    ] {
        assert_eq!(check(&[FieldRule::secret("/x"), rule]), Err((1, fault)));
    }
    let twice = [FieldRule::clamp("/a", clamp), FieldRule::secret("/a"), FieldRule::clamp("/a", clamp)];
    assert_eq!(check(&twice), Err((0, FieldFault::Duplicate)));
    let many = [FieldRule::secret("/a"); MAX_RULES + 1];
    assert_eq!(check(&many), Err((MAX_RULES, FieldFault::TooMany)));
    assert!(Matcher::new(&many).is_err());
    assert_eq!(check(&many[1..]), Ok(()));
}

/// All paths of a value, each with every way to name it by stars.
fn paths(value: &serde_json::Value, path: &str, found: &mut Vec<String>) {
    found.push(path.into());
    match value {
        serde_json::Value::Array(items) => {
            for (nth, item) in items.iter().enumerate() {
                paths(item, &format!("{path}/{nth}"), found);
            }
        }
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                paths(member, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => {}
    }
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = any::<u8>().prop_map(serde_json::Value::from);
    let value = leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::btree_map("[ab~/*0\u{e9}]{0,2}", inner, 0..4)
                .prop_map(|members| members.into_iter().collect()),
        ]
    });
    proptest::collection::btree_map("[abc]", value, 0..4).prop_map(|members| members.into_iter().collect())
}

proptest! {
    /// A rule for the pointer of any value names just that value.
    #[test]
    fn every_pointer_names_its_value_alone(value in any_value()) {
        let text = value.to_string();
        let mut all = Vec::new();
        paths(&value, "", &mut all);
        // A star in a name is a star in a path.
        for path in all.iter().filter(|path| !path.contains('*')) {
            prop_assert_eq!(named(&[path], &text).len(), 1, "{} {}", path, text);
        }
    }
}

/// All texts of at most so many of these characters.
fn texts(alphabet: &str, most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut longest = all.clone();
    for _ in 0..most {
        longest = longest.iter().flat_map(|text| alphabet.chars().map(move |c| format!("{text}{c}"))).collect();
        all.extend_from_slice(&longest);
    }
    all
}

/// The quick way to tell a member of the root says what the way through the segments says, for every path and every name.
#[test]
fn k1_members_of_the_root_are_told_alike_in_both_ways() {
    for path in texts("/~01*a", 4) {
        for name in texts("/~1*a", 3) {
            let key = Text::from(name.as_str());
            let slow = from_segment(&path, 1).and_then(|rest| names_member(rest, key)).is_some_and(<[u8]>::is_empty);
            assert_eq!(names_top_level(&path, key), slow, "{path} {name}");
        }
    }
}
