//! JSON values as a model, and their texts in every spelling.

use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

/// A JSON value, with its numbers told apart as the reader tells them apart.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// Fits `u64` or `i64`.
    Integer(i128),
    /// Finite, with at most 15 significant digits.
    Decimal(f64),
    Text(String),
    Array(Vec<Json>),
    /// Keys are unique.
    Object(Vec<(String, Json)>),
}

/// Choices of a spelling: white space, escapes, forms of numbers. Everything comes out of one number, so a failure can be
/// repeated.
pub(crate) struct Spelling(u64);

impl Spelling {
    /// `None` spells compactly and without needless escapes.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        Self(seed.map_or(0, |seed| seed | 1))
    }

    fn pick(&mut self, below: u64) -> u64 {
        if self.0 == 0 {
            return 0;
        }
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    fn space(&mut self, out: &mut String) {
        for _ in 0..self.pick(3) {
            out.push_str([" ", "\n", "\t", "\r"][self.pick(4) as usize]);
        }
    }

    pub(crate) fn text(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            let short = match c {
                '"' => Some("\\\""),
                '\\' => Some("\\\\"),
                '/' => Some("\\/"),
                '\u{8}' => Some("\\b"),
                '\u{c}' => Some("\\f"),
                '\n' => Some("\\n"),
                '\r' => Some("\\r"),
                '\t' => Some("\\t"),
                _ => None,
            };
            let must = c < ' ' || matches!(c, '"' | '\\');
            match (short, self.pick(4)) {
                (Some(short), 0 | 1) => out.push_str(short),
                (_, 2) | (None, 0) if must => self.units(c, out),
                (_, 2) => self.units(c, out),
                (Some(short), _) if must => out.push_str(short),
                (None, _) if must => self.units(c, out),
                _ => out.push(c),
            }
        }
        out.push('"');
    }

    fn units(&mut self, c: char, out: &mut String) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&if self.pick(2) == 0 { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") });
        }
    }

    pub(crate) fn value(&mut self, value: &Json, out: &mut String) {
        self.space(out);
        match value {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Integer(0) if self.pick(2) == 1 => out.push_str("-0"),
            Json::Integer(value) => out.push_str(&format!("{value}")),
            Json::Decimal(value) => {
                let text = match self.pick(3) {
                    0 => format!("{value:?}"),
                    1 => format!("{value:e}").replace('e', "E"),
                    _ => format!("{value:e}").replace('e', "00e+").replace("e+-", "e-0"),
                };
                // A whole number spelt without point would be an integer.
                out.push_str(&if text.contains(['.', 'e', 'E']) { fix_point(&text) } else { format!("{text}.0") });
            }
            Json::Text(text) => self.text(text, out),
            Json::Array(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    self.value(item, out);
                }
                self.space(out);
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (place, (key, value)) in members.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    self.space(out);
                    self.text(key, out);
                    self.space(out);
                    out.push(':');
                    self.value(value, out);
                }
                self.space(out);
                out.push('}');
            }
        }
        self.space(out);
    }
}

/// Zeros were put before the exponent: they need a point before them.
fn fix_point(text: &str) -> String {
    match text.split_once("00e") {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.00e{exponent}"),
        _ => String::from(text),
    }
}

impl Json {
    pub(crate) fn to_text(&self, seed: Option<u64>) -> String {
        let mut out = String::new();
        Spelling::new(seed).value(self, &mut out);
        out
    }
}

/// Strings of plain, escaped, non-ASCII and astral characters, and sometimes long ones.
pub(crate) fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,3}",
        // Alike but for their ends.
        "common prefix [ab]{0,3}",
        "[ -~]{0,20}",
        proptest::collection::vec(any::<char>(), 0..12).prop_map(|chars| chars.into_iter().collect()),
        "[\\x00-\\x1f\"\\\\/é\u{2028}\u{202e}😀\u{10ffff}a-z]{0,40}",
    ]
}

/// Scalars, with the edges of each kind.
pub(crate) fn scalars() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        (-5..5_i128).prop_map(Json::Integer),
        prop_oneof![
            any::<u64>().prop_map(i128::from),
            any::<i64>().prop_map(i128::from),
            Just(i128::from(u64::MAX)),
            Just(i128::from(i64::MIN)),
            Just(1_i128 << 53),
            Just((1_i128 << 53) + 1),
        ]
        .prop_map(Json::Integer),
        (-999_999_999_999_999..=999_999_999_999_999_i64, -22..=0_i32)
            .prop_map(|(digits, exponent)| Json::Decimal(digits as f64 / 10_f64.powi(-exponent) + 0.0)),
        texts().prop_map(Json::Text),
    ]
}

/// Whole values.
pub(crate) fn values() -> impl Strategy<Value = Json> {
    scalars().prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Json::Array),
            proptest::collection::btree_map(texts(), inner, 0..8)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// Objects.
pub(crate) fn objects() -> impl Strategy<Value = Json> {
    proptest::collection::btree_map(texts(), values(), 0..6)
        .prop_map(|members| Json::Object(members.into_iter().collect()))
}
