//! Strings as they stand in checked text.

use core::cmp::Ordering;
use core::fmt::{self, Write as _};

use super::lex;

/// A string of a JSON text: what stands between its quotes, unescaped whenever it is looked at. Where a clamp cuts the
/// string, the rest is not here.
///
/// Compared, ordered and hashed by its unescaped characters, so `"\u0061"` equals `"a"`; nothing is folded or normalized
/// (invariant S2). A `&str` is a `Text` too (`Text::from`). `Debug` does not show the characters, `Display` does.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> Text<'a> {
    /// What stands between two quotes of checked text; `escaped` when it holds an escape.
    pub(super) const fn new(raw: &'a str, escaped: bool) -> Self {
        Self { raw, escaped }
    }

    /// The string whose opening quote stands at `at`, in text that was checked up to the string's end, and where what
    /// follows its closing quote starts.
    #[inline]
    pub(super) fn at(text: &'a str, at: usize) -> (Self, usize) {
        let span = lex::checked_string(text.as_bytes(), at);
        (Self::new(text.get(span.start..span.end).unwrap_or_default(), span.escaped), span.end + 1)
    }

    /// The string, when it holds no escape (the usual case).
    #[must_use]
    pub const fn as_plain(self) -> Option<&'a str> {
        if self.escaped { None } else { Some(self.raw) }
    }

    /// The characters, unescaped.
    #[must_use]
    pub fn chars(self) -> Chars<'a> {
        Chars { rest: self.raw.chars(), escaped: self.escaped }
    }

    /// The UTF-8 bytes, unescaped.
    #[must_use]
    pub fn bytes(self) -> Bytes<'a> {
        Bytes { plain: self.raw.as_bytes(), chars: self.chars(), pending: [0; 4], at: 4 }
    }

    /// The number of characters (Unicode code points), unescaped.
    #[must_use]
    pub fn char_count(self) -> usize {
        if self.escaped { self.chars().count() } else { self.raw.chars().count() }
    }

    /// The number of UTF-8 bytes, unescaped.
    #[must_use]
    pub fn byte_count(self) -> usize {
        self.pieces().map(Piece::byte_count).sum()
    }

    /// Whether there is no character.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Whether the unescaped string is `other`, byte for byte.
    #[must_use]
    pub fn eq_str(self, other: &str) -> bool {
        match self.as_plain() {
            Some(plain) => plain == other,
            None => self.bytes().eq(other.bytes()),
        }
    }

    /// The first `chars` characters, or the whole string when it has no more.
    #[must_use]
    pub fn cut(self, chars: u32) -> Self {
        let mut walk = self.chars();
        for _ in 0..chars {
            if walk.next().is_none() {
                return self;
            }
        }
        let kept = self.raw.len().saturating_sub(walk.rest.as_str().len());
        Self { raw: self.raw.get(..kept).unwrap_or(self.raw), escaped: self.escaped }
    }

    /// The string as runs of plain characters and single characters that were escaped.
    pub(crate) const fn pieces(self) -> Pieces<'a> {
        Pieces { rest: self.raw, escaped: self.escaped }
    }

    /// Writes the unescaped string into the start of `room`, and returns it with the room that is left; `None` when the
    /// room is too small.
    pub(super) fn unescape_into(self, room: &mut [u8]) -> Option<(&str, &mut [u8])> {
        let (head, rest) = room.split_at_mut_checked(self.byte_count())?;
        let mut free = &mut *head;
        for piece in self.pieces() {
            let mut utf8 = [0; 4];
            let from = match piece {
                Piece::Run(run) => run.as_bytes(),
                Piece::Char(c) => c.encode_utf8(&mut utf8).as_bytes(),
            };
            let (to, behind) = free.split_at_mut_checked(from.len())?;
            to.copy_from_slice(from);
            free = behind;
        }
        core::str::from_utf8(head).ok().map(|text| (text, rest))
    }

    /// Appends the unescaped string to `buffer`.
    #[cfg(feature = "alloc")]
    pub(super) fn unescape_to(self, buffer: &mut alloc::string::String) {
        self.pieces().for_each(|piece| piece.append_to(buffer));
    }

    /// Appends the unescaped string whose inside starts at `start` of checked text to `buffer`, and says where its closing
    /// quote is.
    #[cfg(feature = "alloc")]
    pub(super) fn unescape_from(text: &str, start: usize, buffer: &mut alloc::string::String) -> usize {
        let mut pieces = Pieces { rest: text.get(start..).unwrap_or_default(), escaped: true };
        while !pieces.rest.starts_with('"') {
            match pieces.next() {
                Some(piece) => piece.append_to(buffer),
                None => break,
            }
        }
        text.len() - pieces.rest.len()
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(plain: &'a str) -> Self {
        Self { raw: plain, escaped: false }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.as_plain(), other.as_plain()) {
            (Some(a), Some(b)) => a == b,
            _ => self.bytes().eq(other.bytes()),
        }
    }
}

impl Eq for Text<'_> {}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.eq_str(other)
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.eq_str(other)
    }
}

/// By unescaped UTF-8 bytes, which is the order of Unicode code points.
impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.as_plain(), other.as_plain()) {
            (Some(a), Some(b)) => a.as_bytes().cmp(b.as_bytes()),
            _ => self.bytes().cmp(other.bytes()),
        }
    }
}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl core::hash::Hash for Text<'_> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        for byte in self.bytes() {
            state.write_u8(byte);
        }
        state.write_u8(0xff);
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Text(..)")
    }
}

/// The unescaped string, as it is. What goes to a terminal or into a record is escaped by [`write`](super::write).
impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_plain() {
            Some(plain) => f.write_str(plain),
            None => self.pieces().try_for_each(|piece| match piece {
                Piece::Run(run) => f.write_str(run),
                Piece::Char(c) => f.write_char(c),
            }),
        }
    }
}

/// A part of a string.
#[derive(Clone, Copy)]
pub(crate) enum Piece<'a> {
    /// Plain characters, at least one.
    Run(&'a str),
    /// A character that an escape stands for.
    Char(char),
}

impl Piece<'_> {
    #[cfg(feature = "alloc")]
    fn append_to(self, buffer: &mut alloc::string::String) {
        match self {
            Self::Run(run) => buffer.push_str(run),
            Self::Char(c) => buffer.push(c),
        }
    }

    const fn byte_count(self) -> usize {
        match self {
            Self::Run(run) => run.len(),
            Self::Char(c) => c.len_utf8(),
        }
    }
}

/// The parts of a [`Text`].
#[derive(Clone)]
pub(crate) struct Pieces<'a> {
    rest: &'a str,
    escaped: bool,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let bytes = self.rest.as_bytes();
        let (piece, len) = match bytes {
            [] => return None,
            [b'\\', b'n', ..] if self.escaped => (Piece::Char('\n'), 2),
            [b'\\', plain @ (b'"' | b'\\' | b'/'), ..] if self.escaped => (Piece::Char(char::from(*plain)), 2),
            [b'\\', ..] if self.escaped => {
                let mut chars = Chars { rest: self.rest.chars(), escaped: true };
                (Piece::Char(chars.next()?), bytes.len() - chars.rest.as_str().len())
            }
            _ => {
                let run = if self.escaped { lex::plain_run(bytes) } else { bytes.len() };
                (Piece::Run(self.rest.get(..run)?), run)
            }
        };
        self.rest = self.rest.get(len..).unwrap_or_default();
        Some(piece)
    }
}

/// The unescaped characters of a [`Text`].
#[derive(Clone)]
pub struct Chars<'a> {
    rest: core::str::Chars<'a>,
    escaped: bool,
}

impl fmt::Debug for Chars<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chars(..)")
    }
}

impl Chars<'_> {
    /// The character whose escape starts after the backslash that was just read. The text was checked, so the
    /// replacement character is never made.
    fn escape(&mut self) -> char {
        match self.rest.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let unit = self.hex4();
                if unit & 0xfc00 != 0xd800 {
                    return char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
                }
                // The second half: `\uDC00` to `\uDFFF`.
                self.rest.next();
                self.rest.next();
                let low = self.hex4();
                char::from_u32(0x1_0000 + ((unit & 0x3ff) << 10) + (low & 0x3ff)).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            Some(other) => other,
            None => char::REPLACEMENT_CHARACTER,
        }
    }

    fn hex4(&mut self) -> u32 {
        let mut unit = 0;
        for _ in 0..4 {
            unit = unit << 4 | self.rest.next().and_then(|c| c.to_digit(16)).unwrap_or(0);
        }
        unit
    }
}

impl Iterator for Chars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self.rest.next() {
            Some('\\') if self.escaped => Some(self.escape()),
            other => other,
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.escaped { (0, self.rest.size_hint().1) } else { self.rest.size_hint() }
    }
}

/// The unescaped UTF-8 bytes of a [`Text`].
#[derive(Clone)]
pub struct Bytes<'a> {
    /// All that is left, when there is no escape.
    plain: &'a [u8],
    chars: Chars<'a>,
    /// The bytes of the last character, right-aligned; those from `at` on are still to come.
    pending: [u8; 4],
    at: u8,
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bytes(..)")
    }
}

impl Iterator for Bytes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if !self.chars.escaped {
            let (first, rest) = self.plain.split_first()?;
            self.plain = rest;
            return Some(*first);
        }
        if self.at >= 4 {
            (self.pending, self.at) = utf8(self.chars.next()?);
        }
        let byte = self.pending.get(usize::from(self.at)).copied();
        self.at += 1;
        byte
    }
}

/// The UTF-8 bytes of `c`, right-aligned, and where they start. (`char::encode_utf8` has a panicking path.)
const fn utf8(c: char) -> ([u8; 4], u8) {
    const fn tail(code: u32, shift: u32) -> u8 {
        (code >> shift & 0x3f) as u8 | 0x80
    }
    let code = c as u32;
    match code {
        0..0x80 => ([0, 0, 0, code as u8], 3),
        0x80..0x800 => ([0, 0, (code >> 6) as u8 | 0xc0, tail(code, 0)], 2),
        0x800..0x1_0000 => ([0, (code >> 12) as u8 | 0xe0, tail(code, 6), tail(code, 0)], 1),
        _ => ([(code >> 18) as u8 | 0xf0, tail(code, 12), tail(code, 6), tail(code, 0)], 0),
    }
}
