//! Redaction of arguments and of the texts about them (invariants L1, L2, J9, D5; cases R1, R5), through the public API.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use callgate_core::args::Args;
use callgate_core::clamp::{Bound, Clamp};
use callgate_core::json::{KeySlot, Limits};
use callgate_core::redact::{Redaction, Secrets};
use callgate_core::tool::FieldRule;

fn with_args<T>(json: &str, then: impl FnOnce(Args<'_>) -> T) -> T {
    let mut keys = vec![KeySlot::default(); callgate_core::json::key_capacity(json.as_bytes())];
    then(Args::read(json.as_bytes(), &mut keys, &Limits::DEFAULT).expect(json))
}

fn redacted(json: &str, secret: &[&str]) -> String {
    let fields: Vec<FieldRule<'_>> = secret.iter().map(|path| FieldRule::secret(path)).collect();
    with_args(json, |args| Redaction::DEFAULT.args(args, &fields).to_string())
}

/// Arguments with what they become; `*` stands for the replacement.
#[track_caller]
fn check(table: &[(&str, &[&str], &str)]) {
    for (json, secret, expected) in table {
        assert_eq!(redacted(json, secret), expected.replace('*', "***REDACTED***"), "{json}");
    }
}

#[test]
fn r1_sensitive_names_at_every_depth() {
    check(&[
        ("{}", &[], "{}"),
        (
            r#"{"cfg":{"headers":[{"authorization":"Bearer sk-x"}]}}"#,
            &[],
            r#"{"cfg":{"headers":[{"authorization":"*"}]}}"#,
        ),
        (r#"{"username":"bob","password":"x","n":1}"#, &[], r#"{"username":"bob","password":"*","n":1}"#),
        (r#"{"apiKey":{"a":[1,{"b":2}],"c":"d"},"n":[true,null]}"#, &[], r#"{"apiKey":"*","n":[true,null]}"#),
        (r#"{"tokens":["a","b"],"max_tokens":5}"#, &[], r#"{"tokens":"*","max_tokens":5}"#),
        (r#"{"a":[[{"Access-Token":1}],2]}"#, &[], r#"{"a":[[{"Access-Token":"*"}],2]}"#),
        (r#"{"pass\u0077ord":"x"}"#, &[], r#"{"password":"*"}"#),
        (r#"{"secret":null,"otp":true}"#, &[], r#"{"secret":"*","otp":"*"}"#),
    ]);
}

#[test]
fn l2_fields_marked_secret() {
    check(&[
        (r#"{"note":"x","n":1}"#, &["/note"], r#"{"note":"*","n":1}"#),
        (
            r#"{"rows":[{"v":1,"w":2},{"v":[3],"w":4}]}"#,
            &["/rows/*/v"],
            r#"{"rows":[{"v":"*","w":2},{"v":"*","w":4}]}"#,
        ),
        (r#"{"a":{"b":{"c":1}},"b":2}"#, &["/a/b"], r#"{"a":{"b":"*"},"b":2}"#),
        (r#"{"a":1}"#, &[""], "\"*\""),
    ]);
}

#[test]
fn l2_names_beside_their_values() {
    check(&[
        (
            r#"{"env":[{"name":"DB_PASSWORD","value":"x"},{"name":"HOME","value":"y"}]}"#,
            &[],
            r#"{"env":[{"name":"DB_PASSWORD","value":"*"},{"name":"HOME","value":"y"}]}"#,
        ),
        (
            r#"{"h":[{"value":["x"],"key":"X-Api-Key"},{"value":"y","key":"Accept"}]}"#,
            &[],
            r#"{"h":[{"value":"*","key":"X-Api-Key"},{"value":"y","key":"Accept"}]}"#,
        ),
        (
            r#"{"argv":["login","--password","x","--user","bob"]}"#,
            &[],
            r#"{"argv":["login","--password","*","--user","bob"]}"#,
        ),
        (r#"{"argv":[{"a":1},"--password","x","y"]}"#, &[], r#"{"argv":[{"a":1},"--password","*","y"]}"#),
        (r#"{"a":[{"value":"x"},{"name":"DB_PASSWORD"}]}"#, &[], r#"{"a":[{"value":"x"},{"name":"DB_PASSWORD"}]}"#),
        (r#"{"value":["x"],"name":"DB_PASSWORD"}"#, &[], r#"{"value":"*","name":"DB_PASSWORD"}"#),
        (r#"{"argv":["--token",["x"],"y"]}"#, &[], r#"{"argv":["--token","*","y"]}"#),
        (
            r#"{"fields":["password","email"],"name":"password"}"#,
            &[],
            r#"{"fields":["password","email"],"name":"password"}"#,
        ),
        (r#"{"name":"token","inner":{"value":"y"}}"#, &[], r#"{"name":"token","inner":{"value":"y"}}"#),
    ]);
}

/// L2: what was found out of an object or an array holds in it alone, before and behind what stands within it.
#[test]
fn l2_a_name_counts_in_its_own_object() {
    check(&[
        (
            r#"{"name":"DB_PASSWORD","meta":{"a":[1]},"value":"x"}"#,
            &[],
            r#"{"name":"DB_PASSWORD","meta":{"a":[1]},"value":"*"}"#,
        ),
        (r#"{"name":"DB_PASSWORD","meta":[],"value":"x"}"#, &[], r#"{"name":"DB_PASSWORD","meta":[],"value":"*"}"#),
        (r#"{"a":{},"x":"--password","y":"z"}"#, &[], r#"{"a":{},"x":"--password","y":"z"}"#),
        (r#"{"b":[{"a":[[]],"x":"--password","y":"z"}]}"#, &[], r#"{"b":[{"a":[[]],"x":"--password","y":"z"}]}"#),
        (r#"{"argv":["a",["b"],"--password","x","y"]}"#, &[], r#"{"argv":["a",["b"],"--password","*","y"]}"#),
        (r#"{"note":"plain","value":"y"}"#, &[], r#"{"note":"plain","value":"y"}"#),
        (r#"{"value":"y","note":"plain"}"#, &[], r#"{"value":"y","note":"plain"}"#),
        (r#"{"note":"password","value":"y"}"#, &[], r#"{"note":"password","value":"y"}"#),
        (r#"{"value":"x","inner":{"name":"DB_PASSWORD"}}"#, &[], r#"{"value":"x","inner":{"name":"DB_PASSWORD"}}"#),
        (
            r#"{"value":"x","inner":[1,{"a":2}],"key":"DB_PASSWORD"}"#,
            &[],
            r#"{"value":"*","inner":[1,{"a":2}],"key":"DB_PASSWORD"}"#,
        ),
        (
            r#"{"value":{"a":"x"},"inner":{"name":"DB_PASSWORD"},"n":1}"#,
            &[],
            r#"{"value":{"a":"x"},"inner":{"name":"DB_PASSWORD"},"n":1}"#,
        ),
    ]);
}

#[test]
fn l2_secrets_within_strings_and_keys() {
    check(&[
        (r#"{"url":"https://u:p@h/?api_key=x&n=1"}"#, &[], r#"{"url":"https://*@h/?api_key=*&n=1"}"#),
        (r#"{"body":"{\"password\":\"x\",\"n\":1}"}"#, &[], r#"{"body":"{\"password\":\"*\",\"n\":1}"}"#),
        (r#"{"body":"{\"p\\u0061ssword\":\"x\",\"n\":1}"}"#, &[], r#"{"body":"{\"p\\u0061ssword\":\"*\",\"n\":1}"}"#),
        (r#"{"https://u:p@h":1,"n":2}"#, &[], r#"{"*":1,"n":2}"#),
        // The call's own secrets, wherever they stand again.
        (r#"{"password":"hunter2","cmd":"mysql -phunter2","n":1}"#, &[], r#"{"password":"*","cmd":"mysql -p*","n":1}"#),
        (r#"{"id":12345,"note":"it is 12345","n":12345}"#, &["/id"], r#"{"id":"*","note":"it is *","n":"*"}"#),
        (r#"{"hunter2":1,"password":"hunter2"}"#, &[], r#"{"*":1,"password":"*"}"#),
    ]);
}

/// D5, J9: what a record holds moves no cursor, and forges no other record.
#[test]
fn d5_j9_output_is_safe_text() {
    let text = redacted(r#"{"a":"\u001b[2K\r\n\u202e\u200b\u2028\udb40\udc41\u0007","\u2066k":"|"}"#, &[]);
    assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text}");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["a"], "\u{1b}[2K\r\n\u{202e}\u{200b}\u{2028}\u{e0041}\u{7}");
}

#[test]
fn l2_a_calls_own_secrets_in_texts_about_it() {
    let json = r#"{"password":"hun\"ter\u00e9 2","db":{"credentials":[{"user":"alice77","pin_code":48213}]},"note":"mine","tag":"abc","code":"50%25 off","max":5}"#;
    let clamp = Clamp { min: None, max: Some(Bound::Integer(9)), max_length: None };
    let fields = [
        FieldRule::clamp("/max", clamp),
        FieldRule::secret("/note"),
        FieldRule::secret("/tag"),
        FieldRule::secret("/code"),
    ];
    with_args(json, |args| {
        let secrets = Secrets::of(args, &fields);
        for (text, expected) in [
            ("cannot log in with hun\"ter\u{e9} 2!", "cannot log in with *!"),
            ("cannot log in with HUN\"TER\u{e9} 2!", "cannot log in with *!"),
            (r#"{"with":"hun\"ter\u00e9 2"}"#, r#"{"with":"*"}"#),
            (r#"{"with":"hun\"ter\u00E9 2"}"#, r#"{"with":"*"}"#),
            (r#"{\"with\":\"hun\\\"ter\\u00e9 2\"}"#, r#"{\"with\":\"*\"}"#),
            ("Some(\"hun\\\"ter\\u{e9} 2\")", "Some(\"*\")"),
            ("50%25 off", "*"),
            ("GET /?q=50%2525%20off&n=1", "GET /?q=*&n=1"),
            ("GET /?q=hun%22ter%C3%A9%202&n=1", "GET /?q=*&n=1"),
            ("GET /?q=hun%22ter%c3%a9+2&n=1", "GET /?q=*&n=1"),
            ("GET /?q=hun%2522ter%25C3%25A9%25202&n=1", "GET /?q=*&n=1"),
            ("alice77alice77x mine48213", "*x *"),
            ("no user alice7, no pin 4821, tag abc", "no user alice7, no pin 4821, tag abc"),
        ] {
            assert_eq!(
                Redaction::DEFAULT.text(text, secrets).to_string(),
                expected.replace('*', "***REDACTED***"),
                "{text}"
            );
        }
    });
}

/// L2: a secret is found in each of the escapes that JSON and Rust have for its characters.
#[test]
fn l2_a_calls_own_secrets_are_found_in_every_escape() {
    let secret = "q\r\n\t\u{8}\u{c}\0/z";
    let json = serde_json::json!({ "password": secret }).to_string();
    with_args(&json, |args| {
        for text in [
            r"q\r\n\t\b\f\0/z",
            r"q\r\n\t\b\f\u0000\/z",
            r"q\r\n\t\u{8}\u{c}\0/z",
            r"\x71\x0d\x0a\x09\x08\x0C\x00\x2f\x7a",
            r"q\\r\\n\\t\\b\\f\\u0000/z",
            "q%0d%0A%09%08%0c%00%2fz",
            "q%0d\\n%09%08%0c\\0/z",
        ] {
            let output = Redaction::DEFAULT.text(text, Secrets::of(args, &[])).to_string();
            assert_eq!(output, "***REDACTED***", "{text}");
        }
    });
}

/// The coarse way treats names and rules as the fine way does, and strings as a whole.
#[test]
fn l2_the_coarse_way_replaces_strings_as_a_whole() {
    let json = r#"{"authorization":{"a":1},"note":"plain","url":"https://u:p@h/x","password":"hunter2","cmd":"x -phunter2","n":5}"#;
    let output = with_args(json, |args| Redaction::COARSE.args(args, &[FieldRule::secret("/n")]).to_string());
    let expected = r#"{"authorization":"*","note":"plain","url":"*","password":"*","cmd":"*","n":"*"}"#;
    assert_eq!(output, expected.replace('*', "***REDACTED***"));
}

/// F5: with more secrets than can be kept in mind, whole texts are replaced; with more rules than can be followed, all is.
#[test]
fn f5_bounds_replace_more_and_never_less() {
    let many = |count: usize| {
        let secrets: Vec<String> = (0..count).map(|nth| format!("\"hunter{nth}\"")).collect();
        format!("{{\"passwords\":[{}],\"note\":\"plain\",\"n\":5}}", secrets.join(","))
    };
    assert_eq!(redacted(&many(32), &[]), r#"{"passwords":"***REDACTED***","note":"plain","n":5}"#);
    let all = r#"{"*":"*","*":"*","*":"*"}"#.replace('*', "***REDACTED***");
    assert_eq!(redacted(&many(33), &[]), all);
    with_args(&many(33), |args| {
        for redaction in [Redaction::DEFAULT, Redaction::COARSE] {
            assert_eq!(redaction.text("plain", Secrets::of(args, &[])).to_string(), "***REDACTED***");
        }
    });
    let same = format!("{{\"passwords\":[{}\"hunter2\"],\"note\":\"plain\"}}", "\"hunter2\",".repeat(40));
    assert_eq!(redacted(&same, &[]), r#"{"passwords":"***REDACTED***","note":"plain"}"#);
    let paths: Vec<String> = (0..65).map(|nth| format!("/f{nth}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    assert_eq!(redacted(r#"{"note":"plain"}"#, &paths[..64]), r#"{"note":"plain"}"#);
    assert_eq!(redacted(r#"{"note":"plain"}"#, &paths), r#""***REDACTED***""#);
}

/// F5: a text in which a known secret begins before the cut shows no part of it.
#[test]
fn f5_no_cut_shows_a_part_of_a_known_secret() {
    let json = r#"{"password":"QQQQ1QQQQ"}"#;
    with_args(json, |args| {
        for text in ["ab QQQQ1QQQQ cd", "QQQQ1QQQQ1QQQQ", "ab \\u0051QQQ1QQQQ", "\u{e9}%51QQQ1QQQQ"] {
            for limit in 0..=text.len() as u32 {
                for redaction in [Redaction::DEFAULT, Redaction::COARSE] {
                    let output = redaction.with_text_limit(limit).text(text, Secrets::of(args, &[])).to_string();
                    assert!(!output.contains('Q'), "{output} from {text} cut at {limit}");
                }
            }
        }
    });
}

/// F5: a key of which not all may be looked at is replaced, but for a short word, which can be no secret of its own.
#[test]
fn f5_a_key_is_looked_at_as_a_whole_or_replaced() {
    for (key, limit, kept) in [
        ("Value", 1, true),
        ("a_b_c_d_e", 1, true),
        ("max_tokens", 1, false),
        ("max_tokens", 9, false),
        ("max_tokens", 10, true),
        ("*", 1, true),
        ("**", 1, false),
        ("//u:p@h", 99, false),
    ] {
        let json = serde_json::json!({ key: 1 }).to_string();
        let output = with_args(&json, |args| Redaction::DEFAULT.with_text_limit(limit).args(args, &[]).to_string());
        let expected = if kept { json } else { r#"{"***REDACTED***":1}"#.into() };
        assert_eq!(output, expected, "{key} within {limit}");
    }
}

/// D2: a string with escapes is cut where it would be without, and the cut is told.
#[test]
fn d2_a_long_string_is_cut_visibly() {
    for (text, expected) in [
        ("0123\n56789", "0123\n567[cut: 10 bytes in all]"),
        ("0123456789", "01234567[cut: 10 bytes in all]"),
        ("01234567", "01234567"),
        ("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", "\u{e9}\u{e9}\u{e9}\u{e9}[cut: 10 bytes in all]"),
        ("0\u{e9}\u{e9}\u{e9}\u{e9}", "0\u{e9}\u{e9}\u{e9}[cut: 9 bytes in all]"),
        ("\n\u{e9}\u{e9}\u{e9}\u{e9}", "\n\u{e9}\u{e9}\u{e9}[cut: 9 bytes in all]"),
    ] {
        let json = serde_json::json!({ "a": text }).to_string();
        let output = with_args(&json, |args| Redaction::DEFAULT.with_text_limit(8).args(args, &[]).to_string());
        assert_eq!(output, serde_json::json!({ "a": expected }).to_string());
        assert_eq!(Redaction::DEFAULT.with_text_limit(8).text(text, Secrets::NONE).to_string(), expected);
    }
}

/// L1: nothing on the way shows what it holds, `Debug` included.
#[test]
fn l1_debug_shows_no_more_than_display() {
    with_args(r#"{"password":"hunter2","n":1}"#, |args| {
        let secrets = Secrets::of(args, &[]);
        let shown = [
            format!("{:?}", Redaction::DEFAULT.text("hunter2 token=abcdef", secrets)),
            format!("{:?}", Redaction::DEFAULT.args(args, &[])),
            format!("{secrets:?}"),
        ];
        assert_eq!(shown[0], "RedactedText(***REDACTED*** token=***REDACTED***)");
        assert_eq!(shown[1], r#"RedactedArgs({"password":"***REDACTED***","n":1})"#);
        assert_eq!(shown[2], "Secrets(..)");
    });
}
