//! Redaction: what may be written down.

use callgate_core::args::Args;
use callgate_core::json::Limits;
use callgate_core::redact::{REPLACEMENT, Redaction, Secrets, TEXT_LIMIT};
use callgate_core::tool::FieldRule;
use serde_json::{Value, json};

use super::slots;

/// A secret that no encoding changes.
const PLAIN: &str = "S3cr3tC4n4ry";
/// One that each encoding changes.
const ODD: &str = "CAN\u{e9}\"RY 7f\\3a";

fn shown(text: &str) -> String {
    Redaction::DEFAULT.text(text, Secrets::NONE).to_string()
}

/// Whether `less` is `more` but for stretches that were replaced.
fn is_left_of(less: &str, more: &str) -> bool {
    let mut rest = more;
    less.split(REPLACEMENT).all(|piece| match rest.split_once(piece) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

/// The usual spellings of a text.
fn spellings(text: &str) -> Vec<String> {
    let json = Value::from(text).to_string();
    let inside = |quoted: String| quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map(str::to_owned);
    let json = inside(json).unwrap_or_default();
    vec![
        text.to_owned(),
        inside(Value::from(json.as_str()).to_string()).unwrap_or_default(),
        json,
        text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect(),
        text.bytes().map(|byte| format!("%{byte:02X}")).collect(),
    ]
}

/// Invariants L1, L2, F5: a password behind any text, and a secret of the call's own in any of the usual spellings within it, are
/// gone to the last letter; the coarse way keeps a text only where the fine way finds nothing; redacting again shows nothing more.
pub fn redacted_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let once = shown(&text);
    assert!(once.len() <= text.len().saturating_mul(8).saturating_add(64), "{} from {}", once.len(), text.len());
    if once.len() <= TEXT_LIMIT as usize && text.len() <= TEXT_LIMIT as usize {
        // Of well-formed text nothing more goes. Of any other a little more can: where a value ends is told by what stands behind it.
        assert!(is_left_of(&shown(&once), &once), "redacted twice, from {text:?}");
        // The coarse way tells a token by a digit or a capital in it, and so may the text here.
        let coarse = Redaction::COARSE.text(&text, Secrets::NONE).to_string();
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.') || !c.is_ascii();
        let odd = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase();
        let told = text.split(|c| !is_word(c)).all(|word| word.len() < 10 || word.chars().skip(1).any(odd));
        assert!(coarse == REPLACEMENT || coarse == text && (once == text || !told), "{coarse:?} and not {once:?}");
    }
    let planted = shown(&format!("{text} password={PLAIN}&x=1"));
    // The text may hold it already, and nobody says there that it is one.
    assert!(text.contains(PLAIN) || !planted.contains(PLAIN), "{planted}");

    let middle = text.floor_char_boundary(text.len() / 2);
    let (head, tail) = text.split_at_checked(middle).unwrap_or((&text, ""));
    for secret in [PLAIN, ODD] {
        let arguments = json!({"n": 1, "deep": [{"password": secret}]}).to_string();
        let mut keys = slots(arguments.as_bytes());
        let args = Args::read(arguments.as_bytes(), &mut keys, &Limits::DEFAULT).expect("they can be read");
        // Glued to what stands around it only as it is: half an escape before it would make another text of a spelling.
        let glued = format!("{head}{secret}{tail}");
        let spelled = spellings(secret).into_iter().map(|spelling| (format!("{head}\n{spelling}\n{tail}"), spelling));
        for (planted, spelling) in spelled.chain([(glued, secret.to_owned())]) {
            let shown = Redaction::DEFAULT.text(&planted, Secrets::of(args, &[])).to_string();
            assert!(!shown.contains(&spelling), "{spelling:?} in {shown:?} from {planted:?}");
            assert!(!shown.contains(secret), "{secret:?} in {shown:?} from {planted:?}");
        }
    }
}

/// Invariants L1, L2, D5: arguments without their secrets are JSON, have the shape that they had, and name no secret: not under a
/// sensitive name, not in a field that the tool marks, and not where the same value stands elsewhere. Redacting again shows
/// nothing more.
pub fn redacted_arguments(data: &[u8]) {
    let mut keys = slots(data);
    let Ok(args) = Args::read(data, &mut keys, &Limits::DEFAULT) else { return };
    let fields = [FieldRule::secret("/marked"), FieldRule::secret("/list/*/marked")];
    let text = written(args, &fields);
    let redacted: Value = serde_json::from_str(&text).expect("redacted arguments are JSON");
    assert!(text.bytes().all(|byte| !byte.is_ascii_control()), "{text:?}");
    let sent: Value = args.parse().expect("what was read can be parsed");
    same_shape(&sent, &redacted);
    for marked in ["/marked", "/list/0/marked", "/list/1/marked"] {
        if sent.pointer(marked).is_some() {
            assert_eq!(redacted.pointer(marked), Some(&Value::from(REPLACEMENT)), "{marked} of {text}");
        }
    }
    // Keys that were redacted can be equal, and then the text is none that the reader takes.
    let mut keys = slots(text.as_bytes());
    if let Ok(again) = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT) {
        assert!(is_left_of(&written(again, &fields), &text), "redacted twice, from {text}");
    }
    planted(&sent);
}

/// A secret under a name of its own, while the same text stands wherever there was a text.
fn planted(sent: &Value) {
    for secret in [PLAIN, ODD] {
        let mut value = sent.clone();
        plant(&mut value, secret);
        let Value::Object(members) = &mut value else { return };
        members.insert("password".to_owned(), secret.into());
        let text = value.to_string();
        let mut keys = slots(text.as_bytes());
        let Ok(args) = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT) else { return };
        let shown = written(args, &[]);
        for spelling in spellings(secret) {
            assert!(!shown.contains(&spelling), "{spelling:?} in {shown} from {text}");
        }
    }
}

fn plant(value: &mut Value, secret: &str) {
    match value {
        Value::String(text) => text.push_str(secret),
        Value::Array(items) => items.iter_mut().for_each(|item| plant(item, secret)),
        Value::Object(members) => members.values_mut().for_each(|member| plant(member, secret)),
        _ => {}
    }
}

fn written(args: Args<'_>, fields: &[FieldRule<'_>]) -> String {
    let mut text = String::new();
    Redaction::DEFAULT.write_args(args, fields, &mut text).expect("a string takes all");
    text
}

/// What is no secret is as it was.
fn same_shape(sent: &Value, redacted: &Value) {
    if *redacted == REPLACEMENT {
        return;
    }
    match (sent, redacted) {
        (Value::Array(sent), Value::Array(redacted)) => {
            assert_eq!(sent.len(), redacted.len());
            sent.iter().zip(redacted).for_each(|(sent, redacted)| same_shape(sent, redacted));
        }
        (Value::Object(sent), Value::Object(redacted)) => {
            assert!(redacted.len() <= sent.len());
            for (key, sent) in sent {
                match redacted.get(key) {
                    Some(redacted) => {
                        let secret = Redaction::DEFAULT.is_sensitive(key);
                        assert!(!secret || *redacted == REPLACEMENT, "{key} is {redacted}");
                        same_shape(sent, redacted);
                    }
                    None => assert!(redacted.contains_key(REPLACEMENT), "{key} is gone"),
                }
            }
        }
        (Value::String(_), Value::String(_)) => {}
        (sent, redacted) => assert_eq!(sent, redacted),
    }
}
