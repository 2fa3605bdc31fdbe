//! One value of checked text.

use core::fmt;

use serde::Deserialize;

use super::de::{self, DeError};
use super::edit::{self, Edit, Replacement};
use super::event::Events;
use super::lex;
use super::number::Number;
use super::scan::Scanned;
use super::text::Text;
use super::token;

/// A value somewhere in checked text, with clamps applied. Cheap to copy; reading it walks the text.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    /// The text up to the end of the value.
    text: &'a str,
    at: u32,
    edits: &'a [Edit],
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[expect(clippy::exhaustive_enums, reason = "these are the kinds of JSON values")]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// The name in JSON Schema; every number is a `number`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Value(..)")
    }
}

impl<'a> Value<'a> {
    pub(crate) fn root(scanned: Scanned<'a>, edits: &'a [Edit]) -> Self {
        let text = scanned.as_str();
        let bytes = text.as_bytes();
        let (at, end) = (lex::skip_space(bytes, 0), lex::end_of_text(bytes));
        Self { text: text.get(..end).unwrap_or_default(), at: at as u32, edits }
    }

    /// The value that starts at `at`.
    fn at(text: &'a str, at: usize, edits: &'a [Edit]) -> Self {
        let end = lex::checked_value(text.as_bytes(), at);
        Self { text: text.get(..end).unwrap_or_default(), at: at as u32, edits }
    }

    /// The offset of the value's first byte in the whole text.
    #[must_use]
    pub const fn offset(self) -> u32 {
        self.at
    }

    /// The value as it stands in the text, clamps not applied: for a host whose calls are members of a larger text, and who gives
    /// the gate the arguments as they were sent.
    #[must_use]
    pub fn source(self) -> &'a str {
        self.text.get(self.at as usize..).unwrap_or_default()
    }

    pub(super) const fn parts(self) -> (&'a str, usize, &'a [Edit]) {
        (self.text, self.at as usize, self.edits)
    }

    /// What the value is.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.text.as_bytes().get(self.at as usize) {
            Some(b'"') => Kind::String,
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// The events of the value, with their offsets in the whole text.
    #[must_use]
    pub fn events(self) -> Events<'a> {
        Events::new(self.text, self.at as usize, self.edits)
    }

    /// The string, if the value is one.
    #[must_use]
    pub fn as_text(self) -> Option<Text<'a>> {
        if self.kind() != Kind::String {
            return None;
        }
        let (text, _) = Text::at(self.text, self.at as usize);
        match edit::at(self.edits, self.at as usize) {
            Some(Replacement::Cut { chars }) => Some(text.cut(chars)),
            _ => Some(text),
        }
    }

    /// The number, if the value is one.
    #[must_use]
    pub fn as_number(self) -> Option<Number> {
        if self.kind() != Kind::Number {
            return None;
        }
        match edit::at(self.edits, self.at as usize) {
            Some(Replacement::Number(number)) => Some(number),
            _ => Some(token::checked(self.text.as_bytes().get(self.at as usize..).unwrap_or_default()).0),
        }
    }

    /// The truth value, if the value is one.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.text.as_bytes().get(self.at as usize) {
            Some(b't') => Some(true),
            Some(b'f') => Some(false),
            _ => None,
        }
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The members in the order of the text, if the value is an object; none otherwise.
    #[must_use]
    pub fn members(self) -> Members<'a> {
        Members(Inside::new(self, Kind::Object))
    }

    /// The items, if the value is an array; none otherwise.
    #[must_use]
    pub fn items(self) -> Items<'a> {
        Items(Inside::new(self, Kind::Array))
    }

    /// The member `key`, if the value is an object that has it. Keys compare exactly (invariant S2).
    #[must_use]
    pub fn get(self, key: &str) -> Option<Self> {
        let mut inside = Inside::new(self, Kind::Object);
        while let Some(at) = inside.next_token() {
            if inside.key(at).eq_str(key) {
                return inside.next_value();
            }
            inside.skip_value();
        }
        None
    }

    /// Makes a `T` of the value, clamps applied. Nothing is coerced: a string is no number, and numbers are kept exactly or
    /// refused (invariant S4).
    ///
    /// Strings with escapes are unescaped into `room` and can be borrowed from there; the length of the text always
    /// suffices, and nothing is needed while there are none.
    ///
    /// # Errors
    /// Says which field the type does not take, and why, and never its value.
    pub fn deserialize<T: Deserialize<'a>>(self, room: &'a mut [u8]) -> Result<T, DeError> {
        de::from_value_in(self, room)
    }

    /// Makes a `T` of the value, as [`deserialize`](Self::deserialize) does, without room to lend. Strings with escapes are
    /// given to `T` as owned; a `&str` field does not take them.
    ///
    /// # Errors
    /// Says which field the type does not take, and why, and never its value.
    #[cfg(feature = "alloc")]
    pub fn parse<T: Deserialize<'a>>(self) -> Result<T, DeError> {
        de::from_value(self)
    }

    /// Writes the value as compact JSON text: members in their order, strings escaped as in [`super::write`].
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_json(self, out: &mut dyn fmt::Write) -> fmt::Result {
        super::write::Writer::new(out).events(self.events())
    }
}

/// The members of an object: keys and values.
#[derive(Clone, Debug)]
pub struct Members<'a>(Inside<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (Text<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.0.next_token()?;
        let key = self.0.key(at);
        Some((key, self.0.next_value()?))
    }
}

/// The items of an array.
#[derive(Clone, Debug)]
pub struct Items<'a>(Inside<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.0.next_value()
    }
}

/// A walk through what an array or object holds.
#[derive(Clone)]
struct Inside<'a> {
    /// The text up to the closing bracket.
    text: &'a str,
    at: usize,
    edits: &'a [Edit],
}

impl fmt::Debug for Inside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl<'a> Inside<'a> {
    fn new(value: Value<'a>, kind: Kind) -> Self {
        let (text, at, edits) = value.parts();
        if value.kind() == kind {
            let inside = text.len().saturating_sub(1);
            Self { text: text.get(..inside).unwrap_or_default(), at: at + 1, edits }
        } else {
            Self { text: "", at: 0, edits: &[] }
        }
    }

    /// Goes to the next token behind white space, commas and colons.
    fn next_token(&mut self) -> Option<usize> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') = self.text.as_bytes().get(self.at) {
            self.at += 1;
        }
        (self.at < self.text.len()).then_some(self.at)
    }

    /// The key at `at`; goes behind it.
    fn key(&mut self, at: usize) -> Text<'a> {
        let (key, end) = Text::at(self.text, at);
        self.at = end;
        key
    }

    fn next_value(&mut self) -> Option<Value<'a>> {
        let at = self.next_token()?;
        let value = Value::at(self.text, at, self.edits);
        self.at = value.text.len();
        Some(value)
    }

    fn skip_value(&mut self) {
        if let Some(at) = self.next_token() {
            self.at = lex::checked_value(self.text.as_bytes(), at);
        }
    }
}
