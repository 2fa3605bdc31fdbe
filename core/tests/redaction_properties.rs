//! Properties of redaction (invariants L1, L2, F5; cases R1, R4, R5), on generated texts and arguments.
#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::string_slice, reason = "helpers of tests")]

use callgate_core::args::Args;
use callgate_core::json::{KeySlot, Limits, key_capacity};
use callgate_core::redact::{REPLACEMENT, Redaction, Secrets};
use callgate_core::tool::FieldRule;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

fn with_args<T>(json: &str, then: impl FnOnce(Args<'_>) -> T) -> T {
    let mut keys = vec![KeySlot::default(); key_capacity(json.as_bytes())];
    then(Args::read(json.as_bytes(), &mut keys, &Limits::DEFAULT).expect(json))
}

fn redact(text: &str) -> String {
    Redaction::DEFAULT.text(text, Secrets::NONE).to_string()
}

const SENSITIVE: [&str; 16] = [
    "password",
    "PASSWD",
    "apiKey",
    "x-api-key",
    "API_KEY",
    "access_token",
    "refreshToken",
    "client_secret",
    "privateKey",
    "db.pwd",
    "sessionId",
    "otp",
    "aws_secret_access_key",
    "xAuthToken",
    "creds",
    "CVV2",
];
const HARMLESS: [&str; 16] = [
    "path",
    "max",
    "author",
    "max_tokens",
    "tokenizer",
    "secretary",
    "keyboard",
    "monkey",
    "passenger",
    "user_name",
    "note",
    "public_key",
    "list",
    "r\u{e9}sum\u{e9}",
    "pin",
    "id",
];

/// Every stretch of four characters of a secret: none of them may be left.
fn leaked<'s>(output: &str, secret: &'s str) -> Option<&'s str> {
    let starts: Vec<usize> = secret.char_indices().map(|(at, _)| at).chain([secret.len()]).collect();
    starts.windows(5).map(|window| &secret[window[0]..window[4]]).find(|part| output.contains(part))
}

/// What stands between the quotes.
fn inside(quoted: &str) -> String {
    quoted[1..quoted.len() - 1].to_owned()
}

/// The usual encodings of a text.
fn encodings(text: &str) -> Vec<String> {
    let json = Value::from(text).to_string();
    let json = inside(&json);
    let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    let debug = format!("{text:?}");
    let debug = inside(&debug);
    let percent: String = text
        .bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let all: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let twice = inside(&Value::from(json.as_str()).to_string());
    vec![text.to_owned(), json, units, debug, percent, all, twice]
}

/// Characters that only secrets have here, so that a stretch of one is never harmless text.
fn bare_secret() -> impl Strategy<Value = String> {
    "[QXZ79][QXZ79!#$%*+/?@^_~.-]{6,24}[QXZ79]".prop_filter("has no mark of its own", |secret| !secret.contains("**"))
}

fn any_secret() -> impl Strategy<Value = String> {
    "[QXZ79 \"'\\\\,;&={}\\[\\]()<>:|\u{e9}\u{5bc6}\u{1f600}\u{200b}\n\t]{8,24}"
        .prop_filter("is not white space alone", |secret| secret.chars().filter(|c| "QXZ79".contains(*c)).count() >= 4)
}

/// A piece of text with what it becomes.
type Piece = (String, String);

fn harmless_piece() -> impl Strategy<Value = Piece> {
    let words = prop::collection::vec(select(&HARMLESS[..]), 1..4).prop_map(|words| words.join(" "));
    let pair = (select(&HARMLESS[..]), select(&["=", ": ", "\":\"", " = "][..]), select(&["5", "abc", "/etc/x"][..]));
    let pair = pair.prop_map(|(name, separator, value)| format!("{name}{separator}{value}"));
    let other = select(
        &[
            "https://h:80/a?max=5&n=1#top",
            "{\"max\":5}",
            "a@b.c",
            "100%",
            "C:\\new",
            "fn(a, b)[0]",
            "\u{1f600}\u{202e}",
            "it's",
            "src/token.rs:5:1",
            "/etc/passwd:",
        ][..],
    );
    prop_oneof![words, pair, other.prop_map(str::to_owned)].prop_map(|text| (format!("{text}\n"), format!("{text}\n")))
}

fn secret_piece() -> impl Strategy<Value = Piece> {
    let bare = (
        select(&SENSITIVE[..]),
        select(
            &[
                ("{k}={v} ", 0),
                ("{k}: {v}\n", 0),
                ("a=b;{k}={v};c=d\n", 0),
                ("({k}={v})\n", 0),
                ("\"{k}={v}\"\n", 0),
                ("--{k} {v}\n", 0),
                ("--{k}={v} -x\n", 0),
                ("https://h/?n=1&{k}={v}&m=2\n", 0),
                ("{k}={v}, max=5\n", 0),
                ("config['{k}'] = {v}\n", 0),
                ("Bearer {v}\n", 0),
                ("<{k}>{v}</{k}>\n", 0),
                ("{k} => {v}\n", 0),
                ("\"{k}\":{v},\"max\":5}\n", 0),
            ][..],
        ),
        bare_secret(),
    )
        .prop_map(|(name, (template, _), secret)| {
            let fill = |value: &str| template.replace("{k}", name).replace("{v}", value);
            (fill(&secret), fill(REPLACEMENT))
        });
    let quoted = (select(&SENSITIVE[..]), any_secret(), 0..6_usize).prop_map(|(name, secret, way)| {
        let quoted = Value::from(secret.as_str()).to_string();
        let fill = |value: &str| match way {
            0 => format!("{{\"{name}\":{value},\"max\":5}}\n"),
            1 => format!("{{\"max\":5,\"{name}\" : {value}}}\n"),
            2 => format!("{name}={value} max=5\n"),
            3 => format!("{name}: {value}, max: 5\n"),
            4 => format!("invalid {name} {value} at 5\n"),
            // Once more within a string.
            _ => Value::from(format!("{{\"{name}\":{value},\"max\":5}}")).to_string() + "\n",
        };
        (fill(&quoted), fill(&format!("\"{REPLACEMENT}\"")))
    });
    let line = (
        select(&["Authorization", "authorization", "Proxy-Authorization", "Cookie", "passphrase"][..]),
        bare_secret(),
        bare_secret(),
    )
        .prop_map(|(name, one, two)| (format!("{name}: {one} {two}\n"), format!("{name}: {REPLACEMENT}\n")));
    let url = bare_secret().prop_map(|secret| {
        let secret: String = secret.chars().filter(|c| !"/?#@".contains(*c)).collect();
        (format!("https://user:{secret}@h:5/x?y#z\n"), format!("https://{REPLACEMENT}@h:5/x?y#z\n"))
    });
    let token = (
        select(
            &["sk-", "ghp_", "github_pat_", "glpat-", "xoxb-", "AKIA", "AIza", "eyJabcde.abcde.", "hvs.", "hf_"][..],
        ),
        "[QXZ79]{36}",
        select(&["\n", ", x\n", "\"\n", ")\n", "\u{e9}\n"][..]),
    )
        .prop_map(|(prefix, tail, end)| (format!("{prefix}{tail}{end}"), format!("{REPLACEMENT}{end}")));
    let pem = "[QXZ79+/=]{40,64}".prop_map(|body| {
        let text = format!("-----BEGIN EC PRIVATE KEY-----\n{body}\n-----END EC PRIVATE KEY-----");
        (format!("{text} x\n"), format!("{REPLACEMENT} x\n"))
    });
    prop_oneof![bare, quoted, line, url, token, pem]
}

/// What the searches look for, and anything else.
fn odd_part() -> impl Strategy<Value = String> {
    let telling = select(
        &[
            "\"",
            "'",
            "`",
            "{",
            "}",
            "[",
            "]",
            "(",
            ")",
            "=",
            ":",
            ";",
            ",",
            "&",
            "%",
            "\\",
            "/",
            "<",
            ">",
            "@",
            "-",
            "\n",
            "\t",
            " ",
            "secret",
            "token ",
            "Bearer ",
            "basic ",
            "://",
            "//",
            "%25",
            "%3D",
            "\\\"",
            "\\u0022",
            "eyJ",
            "sk-",
            "AKIA",
            "-----BEGIN PRIVATE KEY-----",
            "\u{201c}",
            "\u{ff1d}",
            "&quot;",
            "|\n ",
            "--",
            "=>",
            "::",
        ][..],
    );
    prop_oneof![3 => telling.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// L2, R4: what is a secret is replaced, to its last character, and everything else stays byte for byte.
    #[test]
    fn l2_r4_secrets_in_texts_go_and_all_else_stays(
        pieces in prop::collection::vec(prop_oneof![harmless_piece(), secret_piece()], 0..12),
    ) {
        let text: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        let expected: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
        prop_assert_eq!(redact(&text), expected);
    }

    /// Redacting what was redacted changes nothing, so that a text may pass the choke point twice.
    #[test]
    fn redaction_is_idempotent(pieces in prop::collection::vec(prop_oneof![harmless_piece(), secret_piece()], 0..12)) {
        let text: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        let once = redact(&text);
        prop_assert_eq!(redact(&once), once);
    }

    /// L2: the coarse way keeps a text only where the fine way finds nothing in it.
    #[test]
    fn l2_the_coarse_way_replaces_at_least_as_much(
        pieces in prop::collection::vec(prop_oneof![harmless_piece(), secret_piece()], 0..3),
        limit in prop_oneof![Just(8192_u32), 0..80_u32],
        own in prop_oneof![Just(String::from("none")), bare_secret()],
        glue in select(&["", " ", "x"][..]),
    ) {
        let mut text: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        if own != "none" && !glue.is_empty() {
            text.extend([glue, &own, glue]);
        }
        let json = json!({"password": own}).to_string();
        let (coarse, fine) = with_args(&json, |args| {
            let show = |redaction: Redaction<'_>| redaction.with_text_limit(limit).text(&text, Secrets::of(args, &[])).to_string();
            (show(Redaction::COARSE), show(Redaction::DEFAULT))
        });
        prop_assert!(coarse == fine || coarse == REPLACEMENT, "{coarse:?} and not {fine:?}");
        prop_assert!(coarse == REPLACEMENT || !fine.contains(REPLACEMENT));
    }

    /// L2, R4: a secret of the call's own arguments is found in every text about it: in any of the usual encodings,
    /// repeated, overlapping, at the ends, with word characters around it.
    #[test]
    fn l2_r4_the_calls_own_secrets_never_come_back(
        secret in any_secret(),
        parts in prop::collection::vec((select(&["", " ", "k", "_", "9", "\u{e9}", "path is ", "\n", "-"][..]), 0..8_usize), 1..6),
    ) {
        let json = json!({"n": 1, "deep": [{"password": secret}]}).to_string();
        let ways = encodings(&secret);
        let mut text = String::new();
        for (before, way) in &parts {
            text.push_str(before);
            text.push_str(ways.get(*way).map_or("", String::as_str));
        }
        let output = with_args(&json, |args| Redaction::DEFAULT.text(&text, Secrets::of(args, &[])).to_string());
        for way in &ways {
            prop_assert!(!output.to_lowercase().contains(&way.to_lowercase()), "{way:?} of {secret:?} in {output:?} from {text:?}");
        }
    }

    /// L2: where a text that ends with a backslash stands before an escaped secret, the two are no escape of a backslash.
    #[test]
    fn l2_a_backslash_before_an_escaped_secret_hides_nothing(secret in "[QXZ79]{4}[\u{e9}\u{5bc6}QXZ79]{0,9}", before in "[a-c]{0,3}\\\\{1,4}") {
        let json = json!({"password": secret}).to_string();
        for way in encodings(&secret) {
            let text = format!("{before}{way}");
            let output = with_args(&json, |args| Redaction::DEFAULT.text(&text, Secrets::of(args, &[])).to_string());
            prop_assert!(!output.to_lowercase().contains(&way.to_lowercase()), "{way:?} in {output:?} from {text:?}");
        }
    }

    /// R4: a secret that overlaps itself or another leaves no part.
    #[test]
    fn r4_overlapping_secrets_leave_nothing(period in "[QXZ79]{1,5}", times in 8..30_usize, cut in 4..20_usize, before in "[a-p ]{0,5}", after in "[a-p ]{0,5}") {
        let long: String = period.repeat(times);
        let (one, two) = (&long[..cut.min(long.len())], &long[long.len() - cut.min(long.len())..]);
        let json = json!({"a": one, "b": two}).to_string();
        let fields = [FieldRule::secret("/a"), FieldRule::secret("/b")];
        let text = format!("{before}{long}{after}");
        let output = with_args(&json, |args| Redaction::DEFAULT.text(&text, Secrets::of(args, &fields)).to_string());
        // Every character of the run is part of an occurrence, but for fewer than a period at its ends.
        prop_assert!(!output.contains(one) && !output.contains(two));
        prop_assert!(output.starts_with(&before) && output.ends_with(&after));
        if one.len() >= period.len() && two.len() >= period.len() {
            prop_assert_eq!(output, format!("{before}{REPLACEMENT}{after}"));
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// F5: no text is too odd, and none makes the output large.
    #[test]
    fn f5_any_text_ends_in_bounds(parts in prop::collection::vec(odd_part(), 0..300)) {
        let text = parts.concat();
        let output = redact(&text);
        prop_assert!(output.len() <= text.len() * 8 + REPLACEMENT.len());
        let cut = Redaction::DEFAULT.with_text_limit(64).text(&text, Secrets::NONE).to_string();
        prop_assert!(cut.len() <= 64 * 8 + 40);
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// F5: where a text is cut, no secret that the cut runs through is left either.
    #[test]
    fn f5_a_cut_leaves_no_part_of_a_secret((text, _) in secret_piece(), before in "[a-z]{0,40}", limit in 0_u32..120) {
        let text = format!("{before}\n{text}");
        let output = Redaction::DEFAULT.with_text_limit(limit).text(&text, Secrets::NONE).to_string();
        let whole = redact(&text);
        let kept = whole.split(REPLACEMENT).next().unwrap_or_default();
        let visible: String = text.chars().scan(0, |at, c| { *at += c.len_utf8(); Some((*at, c)) }).take_while(|(at, _)| *at <= limit as usize).map(|(_, c)| c).collect();
        if visible.len() < text.len() {
            let mark = format!("[cut: {} bytes in all]", text.len());
            prop_assert!(output.ends_with(&mark));
            let shown = output.strip_suffix(&mark).unwrap_or_default();
            let first = shown.split(REPLACEMENT).next().unwrap_or_default();
            // The beginning of a token's prefix, as far as it is only that, may be seen.
            prop_assert!(kept.starts_with(first) || leaked(&first[kept.len()..], &text).is_none_or(|part| !part.contains(['Q', 'X', 'Z', '7', '9'])), "{output:?} from {text:?}");
        }
    }
}

/// A value of arguments, and what it becomes.
type Pair = (Value, Value);

fn leaf(canary: &'static str) -> impl Strategy<Value = Pair> {
    let same = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1000_i64..1000).prop_map(Value::from),
        select(&["notes.txt", "a b", "", "\u{e9}\u{202e}\"\\\n", "it's 5%", "https://h/?n=1"][..])
            .prop_map(Value::from),
    ]
    .prop_map(|value| (value.clone(), value));
    let within = select(
        &[
            "https://h/?token={}&n=1",
            "https://{}@h/",
            "password={} x",
            "{\"apiKey\":\"{}\",\"n\":1}",
            "Bearer {}",
            "-H 'Authorization: {}' x",
            "api%5Fkey%3D{}%26n%3D1",
            "{\\\"api\\u004bey\\\":\\\"{}\\\"}",
            "x{}x {}",
            "{}",
        ][..],
    )
    .prop_map(move |template| {
        (Value::from(template.replace("{}", canary)), Value::from(template.replace("{}", REPLACEMENT)))
    });
    prop_oneof![4 => same, 1 => within]
}

/// What stands under a sensitive name: nothing that stands as a harmless value elsewhere.
fn secret_value(canary: &'static str) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), Just(Value::from(7)), Just(Value::from(true)), Just(Value::from(canary))];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((select(&HARMLESS[..]), inner), 0..4).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Map<String, Value>>()
                .into()),
        ]
    })
}

fn tree(canary: &'static str) -> impl Strategy<Value = Pair> {
    leaf(canary).prop_recursive(5, 40, 5, move |inner| {
        let array = prop::collection::vec(inner.clone(), 0..5).prop_map(|items| {
            let (values, redacted): (Vec<Value>, Vec<Value>) = items.into_iter().unzip();
            (Value::from(values), Value::from(redacted))
        });
        let member = prop_oneof![
            3 => (select(&HARMLESS[..]), inner).prop_map(|(name, (value, redacted))| (name.to_owned(), value, redacted)),
            1 => (select(&SENSITIVE[..]), secret_value(canary)).prop_map(|(name, value)| (name.to_owned(), value, Value::from(REPLACEMENT))),
        ];
        let object = prop::collection::vec(member, 0..5).prop_map(|members| {
            let (mut values, mut redacted) = (Map::new(), Map::new());
            for (name, value, becomes) in members {
                values.insert(name.clone(), value);
                redacted.insert(name, becomes);
            }
            (Value::from(values), Value::from(redacted))
        });
        prop_oneof![array, object]
    })
}

/// Writes JSON in which characters are escaped as `coins` fall.
fn write_escaped(value: &Value, coins: &mut impl Iterator<Item = bool>, out: &mut String) {
    let string = |text: &str, coins: &mut dyn Iterator<Item = bool>, out: &mut String| {
        out.push('"');
        for c in text.chars() {
            if coins.next().unwrap_or(false) || c.is_control() || matches!(c, '"' | '\\') {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
            } else {
                out.push(c);
            }
        }
        out.push('"');
    };
    match value {
        Value::String(text) => string(text, coins, out),
        Value::Array(items) => {
            out.push('[');
            for (nth, item) in items.iter().enumerate() {
                out.push_str(if nth == 0 { "" } else { " , " });
                write_escaped(item, coins, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (nth, (name, item)) in members.iter().enumerate() {
                out.push_str(if nth == 0 { "" } else { ",\n" });
                string(name, coins, out);
                out.push(':');
                write_escaped(item, coins, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

const CANARY: &str = "CANARY-7f3a";
const ODD_CANARY: &str = "CAN\u{e9}\"RY 7f\\3a";

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// R1, R5, L2: the canary is nowhere, whatever its place and however keys and values are escaped; what is no secret is
    /// all there.
    #[test]
    fn r5_a_canary_in_arguments_is_nowhere_in_the_record(
        (value, redacted) in tree(CANARY),
        coins in prop::collection::vec(any::<bool>(), 0..400),
    ) {
        let (value, redacted) = (json!({"path": value, "password": CANARY}), json!({"path": redacted, "password": REPLACEMENT}));
        let mut text = String::new();
        write_escaped(&value, &mut coins.iter().copied(), &mut text);
        let output = with_args(&text, |args| Redaction::DEFAULT.args(args, &[]).to_string());
        for way in encodings(CANARY) {
            prop_assert!(!output.contains(&way), "{output} from {text}");
        }
        prop_assert!(leaked(&output, CANARY).is_none());
        let found: Value = serde_json::from_str(&output).expect("JSON");
        prop_assert_eq!(found, redacted, "{}", text);
        prop_assert!(output.bytes().all(|byte| !byte.is_ascii_control()));
    }

    /// L2: the same for a canary that every encoding changes, in a field that only the tool's rule marks.
    #[test]
    fn l2_a_canary_in_a_marked_field_is_nowhere_in_the_record(
        (value, _) in tree(ODD_CANARY),
        coins in prop::collection::vec(any::<bool>(), 0..400),
        way in 0..7_usize,
    ) {
        let said = encodings(ODD_CANARY).swap_remove(way);
        let value = json!({"note": value, "rows": [{"x": ODD_CANARY}, {"x": [ODD_CANARY]}], "max": said});
        let mut text = String::new();
        write_escaped(&value, &mut coins.iter().copied(), &mut text);
        let fields = [FieldRule::secret("/rows/*/x")];
        let output = with_args(&text, |args| Redaction::DEFAULT.args(args, &fields).to_string());
        for way in encodings(ODD_CANARY) {
            prop_assert!(!output.contains(&way), "{output} from {text}");
        }
        let found: Value = serde_json::from_str(&output).expect("JSON");
        prop_assert_eq!(&found["rows"], &json!([{"x": REPLACEMENT}, {"x": REPLACEMENT}]));
        prop_assert_eq!(&found["max"], REPLACEMENT);
    }
}
