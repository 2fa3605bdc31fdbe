//! A text, character by character as it is meant: `%3D`, `\u003d` and `=` are all an equals sign.

use core::cell::Cell;

use crate::json::Chars;

/// One character as it is meant, and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    /// The character. Only ASCII is decoded.
    pub(super) c: char,
    /// In how many layers of encoding it stands: 0 for itself, 1 for `%3D` or `\"`, 2 for `%253D` or `\\\"`.
    pub(super) depth: u8,
    /// How many backslashes stand before it.
    pub(super) slashes: u8,
    /// Byte offset of its first byte in the text.
    pub(super) start: u32,
    /// Byte offset behind its last byte.
    pub(super) end: u32,
}

impl Unit {
    /// Whether it can be part of a name. All beyond ASCII can, except spaces and quotes, so that no invisible character cuts a
    /// name in two.
    pub(super) fn is_name(self) -> bool {
        match self.c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' | '$' => true,
            '\0'..='\u{7f}' | '\u{ff1a}' | '\u{ff1d}' => false,
            _ => !self.is_space() && !self.is_quote(),
        }
    }

    pub(super) const fn is_space(self) -> bool {
        matches!(
            self.c,
            '\t'..='\r' | ' ' | '\u{85}' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{3000}'
        )
    }

    pub(super) const fn is_newline(self) -> bool {
        matches!(self.c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    }

    pub(super) const fn is_quote(self) -> bool {
        matches!(self.c, '"' | '\'' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' | '\u{ab}' | '\u{bb}')
    }

    /// Whether it ends the quotation that `open` began.
    pub(super) fn closes(self, open: Self) -> bool {
        let pair = match open.c {
            '\u{2018}' => '\u{2019}',
            '\u{201c}' => '\u{201d}',
            '\u{ab}' => '\u{bb}',
            same => same,
        };
        if self.c != pair {
            return false;
        }
        if self.slashes == 0 && open.slashes == 0 {
            return self.depth <= open.depth;
        }
        // Within a string that is quoted by k backslashes and a quote, k = 0, 1, 3, 7: fewer end a string further out, and of
        // more, every 2(k + 1) are one escaped backslash of the innermost string.
        let layer = u16::from(open.slashes).saturating_add(1).saturating_mul(2);
        match u16::from(self.slashes).checked_sub(u16::from(open.slashes)) {
            Some(more) => more.checked_rem(layer) == Some(0),
            None => true,
        }
    }

    /// Where the mark begins that ends the quotation which `open` began: further back than all of `self`, some of whose
    /// backslashes can be escaped ones.
    pub(super) const fn closing_start(self, open: Self) -> u32 {
        if self.slashes > open.slashes {
            self.end.saturating_sub(open.slashes as u32).saturating_sub(1)
        } else {
            self.start
        }
    }
}

/// A place in a text, and the way on from there. Cheap to clone, for looking ahead.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    chars: Chars<'t>,
    at: u32,
    limit: u32,
    /// How many steps all cursors over this text may still take.
    work: &'t Cell<u32>,
}

impl<'t> Cursor<'t> {
    /// The start of a text of which the first `limit` bytes are visible, and how many steps may be taken in all. Once these
    /// are used up, every cursor is at the end.
    pub(super) const fn new(chars: Chars<'t>, limit: u32, work: &'t Cell<u32>) -> Self {
        Self { chars, at: 0, limit, work }
    }

    /// The byte offset of the next character.
    pub(super) const fn at(&self) -> u32 {
        self.at
    }

    /// The next unit, without going there.
    pub(super) fn peek(&self) -> Option<Unit> {
        self.clone().next()
    }

    /// Goes past the next unit if it is one that `fits`.
    pub(super) fn next_if(&mut self, fits: impl FnOnce(Unit) -> bool) -> Option<Unit> {
        let mut ahead = self.clone();
        let unit = ahead.next().filter(|unit| fits(*unit))?;
        *self = ahead;
        Some(unit)
    }

    /// Goes past all units that `fit`, and tells how many there were.
    pub(super) fn pass(&mut self, fits: impl Fn(Unit) -> bool) -> u32 {
        let mut count = 0_u32;
        while self.next_if(&fits).is_some() {
            count = count.saturating_add(1);
        }
        count
    }

    /// Goes past `word`, letter for letter, whatever its case and encoding.
    pub(super) fn pass_word(&mut self, word: &str) -> bool {
        let mut ahead = self.clone();
        let same = word.chars().all(|c| ahead.next_if(|unit| unit.c.eq_ignore_ascii_case(&c)).is_some());
        if same {
            *self = ahead;
        }
        same
    }

    fn raw(&mut self) -> Option<char> {
        let left = self.work.get().checked_sub(1)?;
        let mut ahead = self.chars.clone();
        let c = ahead.next()?;
        let end = u32::try_from(c.len_utf8()).ok().and_then(|len| self.at.checked_add(len))?;
        if end > self.limit {
            return None;
        }
        self.work.set(left);
        self.chars = ahead;
        self.at = end;
        Some(c)
    }

    fn raw_if(&mut self, fits: impl FnOnce(char) -> bool) -> Option<char> {
        let mut ahead = self.clone();
        let c = ahead.raw().filter(|c| fits(*c))?;
        *self = ahead;
        Some(c)
    }

    /// A byte in two hexadecimal digits, if they follow and it is ASCII.
    fn hex(&mut self) -> Option<char> {
        let mut ahead = self.clone();
        let high = ahead.raw()?.to_digit(16)?;
        let low = ahead.raw()?.to_digit(16)?;
        let c = u8::try_from(high << 4 | low).ok().filter(u8::is_ascii)?;
        *self = ahead;
        Some(char::from(c))
    }

    /// What follows a percent sign: the character, and its layers.
    fn percent(&mut self) -> Option<(char, u8)> {
        let mut c = self.hex()?;
        let mut depth = 1;
        while c == '%' && depth < 3 {
            match self.hex() {
                Some(inner) => c = inner,
                None => break,
            }
            depth += 1;
        }
        Some((c, depth))
    }

    /// What follows backslashes, if they escape it in one of the usual ways.
    fn escape(&mut self) -> Option<char> {
        let mut ahead = self.clone();
        let c = match ahead.raw()? {
            c @ ('"' | '\'' | '`' | '/') => c,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'x' => ahead.hex()?,
            'u' => {
                ahead.raw_if(|c| c == '0')?;
                ahead.raw_if(|c| c == '0')?;
                ahead.hex()?
            }
            _ => return None,
        };
        *self = ahead;
        Some(c)
    }

    /// What follows an ampersand, if it is an entity of HTML that matters here.
    fn entity(&mut self) -> Option<char> {
        const ENTITIES: [(&str, char); 5] =
            [("amp;", '&'), ("quot;", '"'), ("apos;", '\''), ("#34;", '"'), ("#39;", '\'')];
        ENTITIES.iter().find_map(|(name, c)| {
            let mut ahead = self.clone();
            name.chars().all(|c| ahead.raw_if(|found| found == c).is_some()).then(|| {
                *self = ahead;
                *c
            })
        })
    }
}

impl Iterator for Cursor<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let start = self.at;
        let first = self.raw()?;
        let (c, depth, slashes) = match first {
            '%' => self.percent().map_or((first, 0, 0), |(c, depth)| (c, depth, 0)),
            '&' => self.entity().map_or((first, 0, 0), |c| (c, 1, 0)),
            '\\' => {
                let mut slashes = 1_u8;
                while self.raw_if(|c| c == '\\').is_some() {
                    slashes = slashes.saturating_add(1);
                }
                let depth = match slashes {
                    0..=2 => 1,
                    3..=6 => 2,
                    _ => 3,
                };
                self.escape().map_or((first, 0, 0), |c| (c, depth, slashes))
            }
            c => (c, 0, 0),
        };
        Some(Unit { c, depth, slashes, start, end: self.at })
    }
}
