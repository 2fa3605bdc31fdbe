//! A writer of JSON text that is safe in a terminal and in a record line (invariants D5, J9).
//!
//! Strings are escaped as RFC 8259 requires, and beyond that every character that can move the cursor, change the
//! direction of text, or be invisible is written as `\uXXXX`. The text means the same to every JSON reader.

use core::fmt::{self, Write as _};

use super::event::Event;
use super::lex;
use super::limits::MAX_DEPTH;
use super::number::Number;
use super::text::{Piece, Text};

/// Whether `c` is written as an escape: quote, backslash, controls (C0, U+007F, C1), bidirectional controls, and all that
/// leaves no mark by itself: zero-width and other format characters, line and paragraph separators, fillers, variation
/// selectors, the tag block (Unicode's `Default_Ignorable_Code_Point`, annotations, and musical and shorthand format controls).
#[must_use]
pub const fn must_escape(c: char) -> bool {
    matches!(c,
        '"' | '\\'
        | '\0'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Writes one JSON text, value by value; commas and colons come by themselves.
///
/// ```
/// use callgate_core::json::write::Writer;
/// let mut text = String::new();
/// let mut json = Writer::new(&mut text);
/// json.start_object()?;
/// json.key("tool")?;
/// json.string("fs.read")?;
/// json.key("sizes")?;
/// json.start_array()?;
/// json.u64(1)?;
/// json.u64(2)?;
/// json.end_array()?;
/// json.end_object()?;
/// assert_eq!(text, r#"{"tool":"fs.read","sizes":[1,2]}"#);
/// # Ok::<(), core::fmt::Error>(())
/// ```
///
/// Every method gives [`fmt::Error`] when the output does, and when arrays and objects are nested more than [`MAX_DEPTH`]
/// deep, which no text that passed the reader is. Whether brackets match is up to the caller.
pub struct Writer<'w> {
    out: &'w mut dyn fmt::Write,
    depth: u16,
    /// For each open array or object, whether something stands in it already; the innermost is the lowest bit.
    filled: u64,
    /// Whether a key was written and its value is missing.
    after_key: bool,
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer(..)")
    }
}

impl<'w> Writer<'w> {
    /// A writer of one text to `out`.
    pub fn new(out: &'w mut dyn fmt::Write) -> Self {
        Self { out, depth: 0, filled: 0, after_key: false }
    }

    /// The comma that the next key or item needs.
    fn separate(&mut self) -> fmt::Result {
        if core::mem::take(&mut self.after_key) || self.depth == 0 {
            return Ok(());
        }
        if self.filled & 1 != 0 {
            return self.out.write_char(',');
        }
        self.filled |= 1;
        Ok(())
    }

    fn token(&mut self, token: &str) -> fmt::Result {
        self.separate()?;
        self.out.write_str(token)
    }

    fn open(&mut self, bracket: &str) -> fmt::Result {
        if self.depth >= MAX_DEPTH {
            return Err(fmt::Error);
        }
        self.token(bracket)?;
        self.depth += 1;
        self.filled <<= 1;
        Ok(())
    }

    fn close(&mut self, bracket: &str) -> fmt::Result {
        self.depth = self.depth.saturating_sub(1);
        self.filled >>= 1;
        self.out.write_str(bracket)
    }

    /// Writes `null`.
    pub fn null(&mut self) -> fmt::Result {
        self.token("null")
    }

    /// Writes `true` or `false`.
    pub fn bool(&mut self, value: bool) -> fmt::Result {
        self.token(if value { "true" } else { "false" })
    }

    /// Writes a number.
    pub fn number(&mut self, value: Number) -> fmt::Result {
        self.separate()?;
        write!(self.out, "{value}")
    }

    /// Writes an integer.
    pub fn u64(&mut self, value: u64) -> fmt::Result {
        self.number(Number::U64(value))
    }

    /// Writes a string.
    pub fn string(&mut self, value: &str) -> fmt::Result {
        self.text(Text::from(value))
    }

    /// Writes a string of checked text.
    pub fn text(&mut self, value: Text<'_>) -> fmt::Result {
        self.separate()?;
        self.quoted(value)
    }

    fn quoted(&mut self, text: Text<'_>) -> fmt::Result {
        self.out.write_char('"')?;
        for piece in text.pieces() {
            match piece {
                Piece::Run(run) => escape(run, self.out)?,
                Piece::Char(c) if must_escape(c) => escape_char(c, self.out)?,
                Piece::Char(c) => self.out.write_char(c)?,
            }
        }
        self.out.write_char('"')
    }

    /// Writes what `value` displays, as one string.
    pub fn display(&mut self, value: &dyn fmt::Display) -> fmt::Result {
        self.separate()?;
        self.out.write_char('"')?;
        write!(Escaping(self.out), "{value}")?;
        self.out.write_char('"')
    }

    /// Starts an array.
    pub fn start_array(&mut self) -> fmt::Result {
        self.open("[")
    }

    /// Ends an array.
    pub fn end_array(&mut self) -> fmt::Result {
        self.close("]")
    }

    /// Starts an object.
    pub fn start_object(&mut self) -> fmt::Result {
        self.open("{")
    }

    /// Ends an object.
    pub fn end_object(&mut self) -> fmt::Result {
        self.close("}")
    }

    /// Writes the key of a member; its value must follow.
    pub fn key(&mut self, key: &str) -> fmt::Result {
        self.key_text(Text::from(key))
    }

    /// Writes a key of checked text; its value must follow.
    pub fn key_text(&mut self, key: Text<'_>) -> fmt::Result {
        self.separate()?;
        self.quoted(key)?;
        self.after_key = true;
        self.out.write_char(':')
    }

    /// Writes what one event stands for.
    pub fn event(&mut self, event: Event<'_>) -> fmt::Result {
        match event {
            Event::Null => self.null(),
            Event::Bool(value) => self.bool(value),
            Event::Number(value) => self.number(value),
            Event::String(value) => self.text(value),
            Event::Key(key) => self.key_text(key),
            Event::StartArray => self.start_array(),
            Event::EndArray => self.end_array(),
            Event::StartObject => self.start_object(),
            Event::EndObject => self.end_object(),
        }
    }

    /// Writes whatever `value` writes, which must be one JSON text.
    pub fn raw(&mut self, value: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> fmt::Result {
        self.separate()?;
        value(self.out)
    }

    /// Writes the value that `events` describe.
    pub fn events<'e, I: IntoIterator<Item = (u32, Event<'e>)>>(&mut self, events: I) -> fmt::Result {
        events.into_iter().try_for_each(|(_, event)| self.event(event))
    }
}

/// Escapes what is written to it for the inside of a JSON string.
struct Escaping<'w>(&'w mut dyn fmt::Write);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(text, self.0)
    }
}

/// Writes `text` as the inside of a JSON string, without quotes.
///
/// # Errors
/// What `out` says.
pub fn escape(text: &str, out: &mut dyn fmt::Write) -> fmt::Result {
    let mut rest = text;
    loop {
        let run = harmless_run(rest);
        let (plain, from) = rest.split_at_checked(run).unwrap_or((rest, ""));
        if !plain.is_empty() {
            out.write_str(plain)?;
        }
        let mut chars = from.chars();
        let Some(c) = chars.next() else { return Ok(()) };
        escape_char(c, out)?;
        rest = chars.as_str();
    }
}

/// The number of bytes of `text` before the first character that must be escaped.
fn harmless_run(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = lex::printable_ascii_run(bytes);
    loop {
        at += match bytes.get(at) {
            Some(b'"' | b'\\' | 0..0x20 | 0x7f) | None => return at,
            Some(0x20..0x80) => 1,
            // All characters to be escaped behind ASCII start with one of these bytes.
            Some(0xc2 | 0xcd | 0xd8 | 0xe1 | 0xe2 | 0xe3 | 0xef | 0xf0 | 0xf3) => {
                match text.get(at..).and_then(|rest| rest.chars().next()) {
                    Some(c) if !must_escape(c) => c.len_utf8(),
                    _ => return at,
                }
            }
            Some(0x80..0xe0) => 2,
            Some(0xe0..0xf0) => 3,
            Some(0xf0..) => 4,
        };
    }
}

fn escape_char(c: char, out: &mut dyn fmt::Write) -> fmt::Result {
    match c {
        '"' => out.write_str("\\\""),
        '\\' => out.write_str("\\\\"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        _ => {
            let code = c as u32;
            if code < 0x1_0000 {
                return write_unit(code, out);
            }
            let code = code - 0x1_0000;
            write_unit(0xd800 | code >> 10, out)?;
            write_unit(0xdc00 | code & 0x3ff, out)
        }
    }
}

fn write_unit(unit: u32, out: &mut dyn fmt::Write) -> fmt::Result {
    out.write_str("\\u")?;
    for shift in [12, 8, 4, 0] {
        out.write_char(char::from_digit(unit >> shift & 0xf, 16).unwrap_or('0'))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    // D5: the table of first bytes leaves no character out.
    #[test]
    fn d5_every_character_is_told_apart() {
        let mut text = String::from("a");
        for c in '\0'..=char::MAX {
            text.truncate(1);
            text.push(c);
            text.push('"');
            let expected = if must_escape(c) { 1 } else { text.len() - 1 };
            assert_eq!(harmless_run(&text), expected, "{c:?}");
        }
    }
}
