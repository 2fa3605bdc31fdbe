//! Secrets whose values are known: those of the call's own arguments.
//!
//! They are kept as hashes and looked for by a rolling hash, so that neither their length nor their number makes a search
//! slow. Two texts with one hash would cost a stretch of harmless text; no occurrence is ever missed.

use core::fmt;

use super::spans::{Span, Spans};
use crate::json::{Chars, Number, Text};

/// The most secrets that are looked for. With more, whole texts are replaced.
pub(super) const MAX_KNOWN: usize = 32;

/// The fewest characters of a secret that is looked for: shorter ones stand in every text by chance.
pub(super) const MIN_CHARS: u32 = 4;

/// The base of the rolling hash, odd and without a pattern.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// A known secret, as it is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Needle {
    hash: u64,
    /// Its length in characters.
    chars: u32,
}

/// The known secrets, in room that somebody lends.
pub(super) struct Known<'n> {
    needles: &'n mut [Needle],
    len: usize,
    overflow: bool,
}

impl<'n> Known<'n> {
    /// None yet, and room for as many as there are needles.
    pub(super) const fn new(needles: &'n mut [Needle]) -> Self {
        Self { needles, len: 0, overflow: false }
    }

    /// Adds a secret, unless it is too short.
    pub(super) fn add(&mut self, secret: impl Iterator<Item = char>) {
        let mut needle = Needle::NONE;
        for c in secret {
            needle.push(c);
        }
        self.keep(needle);
    }

    /// Adds a secret number, as JSON writes it.
    pub(super) fn add_number(&mut self, secret: Number) {
        self.keep(Needle::of(secret));
    }

    /// Whether a secret stands in `text` as it is, in any case of ASCII letters; true when there are more than can be kept.
    pub(super) fn occurs_in(&self, text: Text<'_>) -> bool {
        self.overflow
            || self.iter().any(|needle| {
                let (mut first, mut last) = (text.chars(), text.chars());
                let mut hash = 0;
                for _ in 0..needle.chars {
                    let Some(c) = last.next() else { return false };
                    hash = roll(hash, c);
                }
                let outgoing = power(needle.chars);
                while hash != needle.hash {
                    let (Some(old), Some(new)) = (first.next(), last.next()) else { return false };
                    hash = roll(hash, new).wrapping_sub(value(old).wrapping_mul(outgoing));
                }
                true
            })
    }

    /// Whether there is no secret to be looked for.
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a number is one of the secrets.
    pub(super) fn is_number(&self, number: Number) -> bool {
        self.overflow
            || self.len > 0 && {
                let needle = Needle::of(number);
                self.iter().any(|known| known == needle)
            }
    }

    fn keep(&mut self, needle: Needle) {
        if needle.chars < MIN_CHARS || self.iter().any(|known| known == needle) {
            return;
        }
        match self.needles.get_mut(self.len) {
            Some(room) => {
                *room = needle;
                self.len = self.len.saturating_add(1);
            }
            None => self.overflow = true,
        }
    }

    /// Adds to `spans` every occurrence that begins in the first `visible` bytes of `text`: as it is, in JSON's, Rust's or
    /// URLs' encoding, once or twice, and in any case of ASCII letters. `None` when there are more secrets than can be kept.
    pub(super) fn find(&self, text: Text<'_>, visible: u32, spans: &mut Spans) -> Option<()> {
        use Layer::{Late, Percent, Plain, Slash};
        if self.overflow {
            return None;
        }
        if self.len == 0 {
            return Some(());
        }
        let (mut slash, mut percent) = (false, false);
        for c in text.chars() {
            slash |= c == '\\';
            percent |= c == '%';
        }
        let ways = [
            (true, [Plain, Plain]),
            (slash, [Slash, Plain]),
            (slash, [Late, Plain]),
            (slash, [Slash, Slash]),
            (percent, [Percent, Plain]),
            (percent, [Percent, Percent]),
            (slash && percent, [Slash, Percent]),
        ];
        for (_, layers) in ways.iter().filter(|(needed, _)| *needed) {
            let decoded = Decoded { chars: text.chars(), at: 0, layers: *layers };
            for needle in self.iter() {
                needle.find(&decoded, visible, spans);
            }
        }
        Some(())
    }

    fn iter(&self) -> impl Iterator<Item = Needle> + '_ {
        self.needles.iter().take(self.len).copied()
    }
}

impl fmt::Write for Needle {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().for_each(|c| self.push(c));
        Ok(())
    }
}

impl Needle {
    pub(super) const NONE: Self = Self { hash: 0, chars: 0 };

    fn of(number: Number) -> Self {
        let mut needle = Self::NONE;
        // A needle takes whatever is written to it.
        let _ = fmt::write(&mut needle, format_args!("{number}"));
        needle
    }

    fn push(&mut self, c: char) {
        self.hash = roll(self.hash, c);
        self.chars = self.chars.saturating_add(1);
    }

    fn find(self, text: &Decoded<'_>, visible: u32, spans: &mut Spans) {
        let (mut first, mut last) = (text.clone(), text.clone());
        let mut hash = 0;
        for _ in 0..self.chars {
            let Some(c) = last.next() else { return };
            hash = roll(hash, c);
        }
        let outgoing = power(self.chars);
        loop {
            let start = first.at;
            let Some(old) = first.next() else { return };
            if start >= visible {
                return;
            }
            if hash == self.hash {
                spans.add(Span { start, end: last.at.min(visible) });
            }
            let Some(new) = last.next() else { return };
            hash = roll(hash, new).wrapping_sub(value(old).wrapping_mul(outgoing));
        }
    }
}

/// The hash with one more character.
fn roll(hash: u64, c: char) -> u64 {
    hash.wrapping_mul(BASE).wrapping_add(value(c))
}

/// What a character counts. A plus sign counts as a space, which it stands for in the query of a URL.
fn value(c: char) -> u64 {
    match c {
        '+' => u64::from(b' '),
        other => u64::from(u32::from(other.to_ascii_lowercase())),
    }
}

/// `BASE` to the power of `exponent`.
const fn power(mut exponent: u32) -> u64 {
    let (mut result, mut base) = (1_u64, BASE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    /// Nothing is decoded.
    Plain,
    /// Backslash escapes of JSON and of Rust's `Debug`.
    Slash,
    /// The same, where of several backslashes the last one is the escape: `\\u0041` may be a text that ends with a backslash
    /// and an escape behind it.
    Late,
    /// Percent encoding of UTF-8.
    Percent,
}

/// The characters of a text with up to two layers of encoding taken off, the outer first.
#[derive(Clone)]
struct Decoded<'t> {
    chars: Chars<'t>,
    /// Byte offset of the next character in the text.
    at: u32,
    layers: [Layer; 2],
}

impl Decoded<'_> {
    fn next(&mut self) -> Option<char> {
        self.layer(self.layers.len())
    }

    /// The next character below this many layers.
    fn layer(&mut self, depth: usize) -> Option<char> {
        let Some((below, layer)) = depth.checked_sub(1).and_then(|below| Some((below, *self.layers.get(below)?)))
        else {
            let c = self.chars.next()?;
            self.at = u32::try_from(c.len_utf8()).ok().and_then(|len| self.at.checked_add(len)).unwrap_or(u32::MAX);
            return Some(c);
        };
        let c = self.layer(below)?;
        let mut ahead = self.clone();
        let decoded = match (layer, c) {
            (Layer::Slash, '\\') => ahead.escape(below),
            (Layer::Late, '\\') if ahead.clone().layer(below) != Some('\\') => ahead.escape(below),
            (Layer::Percent, '%') => ahead.percent(below),
            _ => None,
        };
        if decoded.is_some() {
            *self = ahead;
        }
        Some(decoded.unwrap_or(c))
    }

    /// What follows a backslash.
    fn escape(&mut self, below: usize) -> Option<char> {
        match self.layer(below)? {
            c @ ('"' | '\'' | '`' | '/' | '\\') => Some(c),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            '0' => Some('\0'),
            'x' => char::from_u32(self.hex(below, 2)?),
            'u' => {
                let mut ahead = self.clone();
                if ahead.layer(below) == Some('{') {
                    *self = ahead;
                    return self.braced(below);
                }
                let high = self.hex(below, 4)?;
                if high & 0xfc00 != 0xd800 {
                    return char::from_u32(high);
                }
                if (self.layer(below)?, self.layer(below)?) != ('\\', 'u') {
                    return None;
                }
                let low = self.hex(below, 4)?;
                char::from_u32(((high & 0x3ff) << 10 | low & 0x3ff).wrapping_add(0x1_0000))
            }
            _ => None,
        }
    }

    /// The number of a character, up to the brace behind it.
    fn braced(&mut self, below: usize) -> Option<char> {
        let mut code = 0_u32;
        loop {
            match self.layer(below)? {
                '}' => return char::from_u32(code),
                digit => code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
            }
        }
    }

    /// What follows a percent sign: one character of UTF-8, or a byte that is none as the character of its number.
    fn percent(&mut self, below: usize) -> Option<char> {
        let first = self.hex(below, 2)?;
        let (more, mut code) = match first {
            0xc2..=0xdf => (1, first & 0x1f),
            0xe0..=0xef => (2, first & 0x0f),
            0xf0..=0xf4 => (3, first & 0x07),
            _ => return char::from_u32(first),
        };
        let mut ahead = self.clone();
        for _ in 0..more {
            let tail = if ahead.layer(below) == Some('%') { ahead.hex(below, 2) } else { None };
            let Some(tail) = tail.filter(|tail| tail & 0xc0 == 0x80) else {
                return char::from_u32(first);
            };
            code = code << 6 | tail & 0x3f;
        }
        let c = char::from_u32(code)?;
        *self = ahead;
        Some(c)
    }

    fn hex(&mut self, below: usize, digits: u32) -> Option<u32> {
        let mut code = 0;
        for _ in 0..digits {
            code = code << 4 | self.layer(below)?.to_digit(16)?;
        }
        Some(code)
    }
}
