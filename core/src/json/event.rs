//! Checked text as a stream of events.

use core::fmt;
use core::iter::FusedIterator;

use super::edit::{self, Edit, Replacement};
use super::number::Number;
use super::text::Text;
use super::token;

/// One step through a JSON value. `Debug` names the kind and never shows content.
#[derive(Clone, Copy, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "these are the tokens of JSON")]
pub enum Event<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string that is a value.
    String(Text<'a>),
    /// The key of a member; the events of its value follow.
    Key(Text<'a>),
    /// `[`; the events of the items follow, then `EndArray`.
    StartArray,
    /// `]`.
    EndArray,
    /// `{`; a `Key` and the events of its value follow for each member, then `EndObject`.
    StartObject,
    /// `}`.
    EndObject,
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "Null",
            Self::Bool(_) => "Bool(..)",
            Self::Number(_) => "Number(..)",
            Self::String(_) => "String(..)",
            Self::Key(_) => "Key(..)",
            Self::StartArray => "StartArray",
            Self::EndArray => "EndArray",
            Self::StartObject => "StartObject",
            Self::EndObject => "EndObject",
        })
    }
}

/// The events of a value, each with the offset of its token in the whole text, clamps applied. Iterative, allocates
/// nothing, cannot fail: the text was checked.
#[derive(Clone)]
pub struct Events<'a> {
    /// The text up to the end of the value.
    text: &'a str,
    at: usize,
    /// For each open array or object, whether it is an object; the innermost is the lowest bit.
    objects: u64,
    /// Whether a colon was passed, so that a string is a value and not a key.
    after_colon: bool,
    /// The clamps at `at` or behind.
    edits: &'a [Edit],
}

impl fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events(..)")
    }
}

impl<'a> Events<'a> {
    /// The events of the value that starts at `at` and ends with `text`.
    pub(super) fn new(text: &'a str, at: usize, edits: &'a [Edit]) -> Self {
        Self { text, at, objects: 0, after_colon: false, edits: edit::from(edits, at) }
    }

    /// The replacement of the value at `at`; forgets those before.
    fn replacement(&mut self, at: usize) -> Option<Replacement> {
        if self.edits.is_empty() {
            return None;
        }
        self.edits = edit::from(self.edits, at);
        let (first, _) = self.edits.split_first()?;
        (first.at as usize == at).then_some(first.to)
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = (u32, Event<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let byte = loop {
            match bytes.get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' | b',' => self.at += 1,
                b':' => {
                    self.after_colon = true;
                    self.at += 1;
                }
                byte => break *byte,
            }
        };
        let at = self.at;
        let is_value = core::mem::take(&mut self.after_colon) || self.objects & 1 == 0;
        self.at += 1;
        let event = match byte {
            b'"' => {
                let (text, end) = Text::at(self.text, at);
                self.at = end;
                if !is_value {
                    Event::Key(text)
                } else if let Some(Replacement::Cut { chars }) = self.replacement(at) {
                    Event::String(text.cut(chars))
                } else {
                    Event::String(text)
                }
            }
            b'{' => {
                self.objects = self.objects << 1 | 1;
                Event::StartObject
            }
            b'[' => {
                self.objects <<= 1;
                Event::StartArray
            }
            b'}' => {
                self.objects >>= 1;
                Event::EndObject
            }
            b']' => {
                self.objects >>= 1;
                Event::EndArray
            }
            b't' => {
                self.at = at + 4;
                Event::Bool(true)
            }
            b'f' => {
                self.at = at + 5;
                Event::Bool(false)
            }
            b'n' => {
                self.at = at + 4;
                Event::Null
            }
            _ => {
                let (number, len) = token::checked(bytes.get(at..).unwrap_or_default());
                self.at = at + len;
                match self.replacement(at) {
                    Some(Replacement::Number(clamped)) => Event::Number(clamped),
                    _ => Event::Number(number),
                }
            }
        };
        Some((at as u32, event))
    }
}

impl FusedIterator for Events<'_> {}
