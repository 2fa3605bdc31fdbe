//! What an approver is shown: everything, in an alphabet in which nothing hides, and nothing alike for what differs.
#![cfg(test)]

use callgate_core::digest::Digest;
use callgate_std::render::approver::{AgentText, MAX_AGENT_TEXT, Strict, digest_of, is_whole, view};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const DIGEST: Digest = Digest::from_bytes([0xab; 32]);

fn shown(arguments: &Value) -> String {
    view("fs.write", &arguments.to_string(), &[], &[], DIGEST)
}

/// Reads a view back: the value of which it says that it would run.
fn read_back(view: &str) -> Value {
    let mut root = Value::Null;
    let mut lines = view.lines().peekable();
    assert_eq!(lines.next(), Some("fs.write"));
    while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
        let mut rest = line.strip_prefix("  ").unwrap();
        let mut steps = Vec::new();
        if let Some(after) = rest.strip_prefix("(all) = ") {
            rest = after;
        } else {
            loop {
                rest = rest.strip_prefix('.').unwrap_or(rest);
                if let Some(after) = rest.strip_prefix(" = ") {
                    rest = after;
                    break;
                }
                if let Some(after) = rest.strip_prefix('[') {
                    let (at, after) = after.split_once(']').unwrap();
                    steps.push(Err(at.parse::<usize>().unwrap()));
                    rest = after;
                } else if rest.starts_with('"') {
                    let (key, after) = quoted(rest);
                    steps.push(Ok(key));
                    rest = after;
                } else {
                    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).unwrap();
                    let (word, after) = rest.split_at(end);
                    steps.push(Ok(word.to_owned()));
                    rest = after;
                }
            }
        }
        let value = if rest.starts_with('"') {
            let (mut text, after) = quoted(rest);
            assert_eq!(after, "");
            while let Some(next) = lines.next_if(|line| line.starts_with("    \"")) {
                assert!(text.ends_with('\n'));
                let (more, after) = quoted(next.trim_start());
                assert_eq!(after, "");
                text.push_str(&more);
            }
            Value::String(text)
        } else {
            serde_json::from_str(rest).unwrap()
        };
        let mut place = &mut root;
        for step in steps {
            match step {
                Ok(key) => {
                    if place.is_null() {
                        *place = Value::Object(Map::new());
                    }
                    place = place.as_object_mut().unwrap().entry(key).or_insert(Value::Null);
                }
                Err(at) => {
                    if place.is_null() {
                        *place = Value::Array(Vec::new());
                    }
                    let items = place.as_array_mut().unwrap();
                    if at == items.len() {
                        items.push(Value::Null);
                    }
                    place = &mut items[at];
                }
            }
        }
        assert!(place.is_null(), "one line a value: {view}");
        *place = value;
    }
    assert_eq!(lines.collect::<Vec<_>>(), [format!("arguments {DIGEST}")]);
    root
}

/// A text in quotes at the start of `text`, and what follows.
fn quoted(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (out, text.split_at(at + 1).1),
            '\\' => match chars.next().unwrap().1 {
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'u' => {
                    let number: String = chars.by_ref().map(|(_, c)| c).take_while(|c| *c != '}').collect();
                    let number = number.strip_prefix('{').unwrap();
                    out.push(char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap());
                }
                c => out.push(c),
            },
            c => out.push(c),
        }
    }
    panic!("no end of {text}");
}

fn text() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "\n",
        "\n\n",
        "\"",
        "\\",
        "\\n",
        "\u{202e}",
        "\u{200b}",
        "\u{1b}[2J",
        "\u{e0041}",
        "\u{430}",
        "a",
        " = ",
        "  ",
        ".",
        "[0]",
        "{}",
        "arguments ",
        "clamped ",
        "(all)",
        "\r",
        "\t",
        "\u{7f}",
        "\u{85}",
        "é",
        "x",
    ]);
    prop::collection::vec(nasty, 0..6).prop_map(|parts| parts.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((text(), inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    prop::collection::vec((text(), value()), 0..4).prop_map(|members| members.into_iter().collect())
}

proptest! {
    // D3, D5: a view can be read back, so no two values share one; and nothing but printable ASCII is in it.
    #[test]
    fn d3_a_view_can_be_read_back(arguments in arguments()) {
        let view = shown(&arguments);
        prop_assert!(view.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{view:?}");
        prop_assert!(is_whole(&view));
        prop_assert_eq!(digest_of(&view), Some(DIGEST));
        prop_assert_eq!(read_back(&view), arguments);
    }

    #[test]
    fn d5_strict_text_is_printable_ascii_and_can_be_read_back(text in text()) {
        let strict = Strict(&text).to_string();
        prop_assert!(strict.chars().all(|c| (' '..='~').contains(&c)));
        let shown = format!("\"{strict}\"");
        prop_assert_eq!(quoted(&shown), (text, ""));
    }
}

#[test]
fn d1_a_view_is_laid_out_for_people() {
    let arguments =
        json!({"path": "a.txt", "content": "one\ntwo\n", "tags": ["x", {"k v": true}], "none": {}, "few": []});
    let view =
        view("fs.write", &arguments.to_string(), &["max from 5000 to 1000".to_owned()], &[("because", "x\ny")], DIGEST);
    let lines: Vec<_> = view.lines().collect();
    let expected = [
        "fs.write",
        r#"  path = "a.txt""#,
        r#"  content = "one\n""#,
        r#"    "two\n""#,
        r#"  tags[0] = "x""#,
        r#"  tags[1]."k v" = true"#,
        "  none = {}",
        "  few = []",
        "clamped max from 5000 to 1000",
        r#"the agent says, unchecked: because "x\ny""#,
        "arguments abababababababababababababababababababababababababababababababab",
    ];
    let sorted = |lines: &[&str]| {
        let mut lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&lines), sorted(&expected), "{view}");
    assert_eq!((lines[0], &lines[8..]), (expected[0], &expected[8..]));
}

// D2: what is too long is named by its length and its digest, never cut.
#[test]
fn d2_what_is_too_long_is_said_with_bytes_and_digest() {
    let long = "x".repeat(20_000);
    let view = shown(&json!({"path": "a.txt", "content": long}));
    assert!(!is_whole(&view));
    let named = format!("  content is not shown: 20000 bytes, SHA-256 {}", Digest::of_bytes(long.as_bytes()));
    assert!(view.contains(&named) && view.contains(r#"path = "a.txt""#) && !view.contains("xxxx"), "{view}");
    // A text that tries to say the same is in quotes.
    let fake = shown(&json!({"content": format!("NOT SHOWN WHOLE: \n{named}")}));
    assert!(is_whole(&fake) && !fake.contains(&format!("\n{named}")), "{fake}");
    // Many short values are too long as well.
    let many: Vec<_> = (0..5_000).map(|at| format!("value number {at}")).collect();
    let all = json!({ "many": many });
    let view = shown(&all);
    let bytes = all.to_string();
    let named = format!("(all) is not shown: {} bytes, SHA-256 {}", bytes.len(), Digest::of_bytes(bytes.as_bytes()));
    assert!(!is_whole(&view) && view.contains(&named) && view.lines().count() == 4, "{view}");
}

// D6
#[test]
fn d6_what_an_agent_says_is_capped_in_sight() {
    let text = AgentText("please \u{202e}approve\n").to_string();
    assert_eq!(text, r#""please \u{202e}approve\n""#);
    let long = AgentText(&"a".repeat(MAX_AGENT_TEXT + 7)).to_string();
    assert_eq!(long, format!("\"{}\" and 7 more characters", "a".repeat(MAX_AGENT_TEXT)));
}
