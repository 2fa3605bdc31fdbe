//! A text, character by character as it is meant: `%3D`, `\u003d` and `=` are all an equals sign.

use core::cell::Cell;

use super::names::is_in;
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

/// Whether `c` can be part of a name. All beyond ASCII can, except spaces and quotes, so that no invisible character cuts a name
/// in two.
pub(super) const fn is_name(c: char) -> bool {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' => true,
        '\0'..='\u{7f}' | '\u{ff1a}' | '\u{ff1d}' => false,
        _ => !is_space(c) && !is_quote(c),
    }
}

const fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t'..='\r' | ' ' | '\u{85}' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{3000}'
    )
}

const fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' | '\u{ab}' | '\u{bb}')
}

impl Unit {
    pub(super) const fn is_name(self) -> bool {
        is_name(self.c)
    }

    pub(super) const fn is_space(self) -> bool {
        is_space(self.c)
    }

    /// A space within a line.
    pub(super) const fn is_blank(self) -> bool {
        self.is_space() && !self.is_newline()
    }

    pub(super) const fn is_newline(self) -> bool {
        matches!(self.c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    }

    pub(super) const fn is_quote(self) -> bool {
        is_quote(self.c)
    }

    /// Whether it is the same character in the same encoding.
    pub(super) const fn is_twin(self, of: Self) -> bool {
        self.c == of.c && self.depth == of.depth && self.slashes == of.slashes
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

    /// Where the mark begins that ends the quotation which `open` began: not always where `self` does, some of whose
    /// backslashes can be escaped ones that belong to the quotation.
    pub(super) const fn closing_start(self, open: Self) -> u32 {
        if self.slashes > open.slashes {
            self.end.saturating_sub(open.slashes as u32).saturating_sub(1)
        } else {
            self.start
        }
    }
}

/// What holds for a whole text.
#[derive(Debug)]
pub(super) struct Bounds {
    /// How many bytes are visible.
    limit: u32,
    /// Whether the text goes on behind them.
    cut: bool,
    /// How many characters may still be read, by all cursors together.
    work: Cell<u32>,
}

impl Bounds {
    /// `work` is how many characters may be read in all: once these are used up, every cursor is at the end.
    pub(super) const fn new(limit: u32, cut: bool, work: u32) -> Self {
        Self { limit, cut, work: Cell::new(work) }
    }

    /// Whether no more may be read, so that what was found need not be all.
    pub(super) const fn is_used_up(&self) -> bool {
        self.work.get() == 0
    }
}

/// A place in a text, and the way on from there. Cheap to clone, for looking ahead.
///
/// What takes a condition takes a function and not any closure: this is small code that is called from many places, and has
/// to fit into firmware.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    bounds: &'t Bounds,
    /// What follows the unit.
    chars: Chars<'t>,
    /// The byte offset of what follows the unit.
    behind: u32,
    unit: Option<Unit>,
}

impl<'t> Cursor<'t> {
    /// The start of a text.
    pub(super) fn new(chars: Chars<'t>, bounds: &'t Bounds) -> Self {
        let mut cursor = Self { bounds, chars, behind: 0, unit: None };
        cursor.advance();
        cursor
    }

    /// The byte offset of the next unit.
    pub(super) fn at(&self) -> u32 {
        self.unit.map_or(self.behind, |unit| unit.start)
    }

    /// Whether this is the end of what is visible and not of the text, so that what reaches here may go on.
    pub(super) const fn is_cut(&self) -> bool {
        self.bounds.cut && self.unit.is_none()
    }

    /// The next unit, without going there.
    pub(super) const fn peek(&self) -> Option<Unit> {
        self.unit
    }

    /// Whether the next unit `fits`.
    pub(super) fn is(&self, fits: fn(Unit) -> bool) -> bool {
        self.unit.is_some_and(fits)
    }

    /// Whether the next unit that is no space `fits`.
    pub(super) fn is_followed_by(&self, fits: fn(Unit) -> bool) -> bool {
        let mut ahead = self.clone();
        ahead.pass(Unit::is_space);
        ahead.is(fits)
    }

    /// Goes past the next unit if it `fits`.
    pub(super) fn next_if(&mut self, fits: fn(Unit) -> bool) -> Option<Unit> {
        if self.is(fits) { self.next() } else { None }
    }

    /// Goes past the next unit if it is this character, in whatever encoding.
    pub(super) fn pass_char(&mut self, c: char) -> Option<Unit> {
        if self.unit.is_some_and(|unit| unit.c == c) { self.next() } else { None }
    }

    /// Goes past all units that `fit`, and tells how many there were.
    pub(super) fn pass(&mut self, fits: fn(Unit) -> bool) -> u32 {
        let mut count = 0_u32;
        while self.is(fits) {
            self.advance();
            count = count.saturating_add(1);
        }
        count
    }

    /// Goes past all units before the byte offset `at`.
    pub(super) fn pass_to(&mut self, at: u32) {
        while self.unit.is_some_and(|unit| unit.start < at) {
            self.advance();
        }
    }

    /// Goes past `text` (ASCII letters in any case if so told), in whatever encoding.
    pub(super) fn pass_text(&mut self, text: &str, any_case: bool) -> bool {
        let mut ahead = self.clone();
        for c in text.chars() {
            let same = ahead.unit.is_some_and(|unit| unit.c == c || any_case && unit.c.eq_ignore_ascii_case(&c));
            if !same {
                return false;
            }
            ahead.advance();
        }
        *self = ahead;
        true
    }

    /// Whether one of the words in `list` stands here, and is not the beginning of something longer.
    pub(super) fn is_word_of(&self, list: &[&str]) -> bool {
        let mut letters = [0_u8; 16];
        let mut ahead = self.clone();
        let mut length = 0_usize;
        while let Some(unit) = ahead.next_if(Unit::is_name) {
            if let (Some(room), Ok(letter)) = (letters.get_mut(length), u8::try_from(unit.c)) {
                *room = letter.to_ascii_lowercase();
            }
            length = length.saturating_add(1);
        }
        !ahead.is(|unit| matches!(unit.c, '/' | '+' | '=' | '~'))
            && letters.get(..length).is_some_and(|word| is_in(word, list))
    }

    /// Reads the next unit.
    #[inline(never)]
    fn advance(&mut self) {
        let start = self.behind;
        self.unit = self.raw().map(|first| {
            let plain = (first, 0, 0);
            let (c, depth, slashes) = match first {
                '%' => self.percent().unwrap_or(plain),
                '&' => self.entity().unwrap_or(plain),
                '\\' => self.escape().unwrap_or(plain),
                _ => plain,
            };
            Unit { c, depth, slashes, start, end: self.behind }
        });
    }

    fn raw(&mut self) -> Option<char> {
        let left = self.bounds.work.get().checked_sub(1)?;
        if self.behind >= self.bounds.limit {
            return None;
        }
        let c = self.chars.next()?;
        let end = u32::try_from(c.len_utf8()).ok().and_then(|len| self.behind.checked_add(len))?;
        self.bounds.work.set(left);
        self.behind = end;
        Some(c)
    }

    fn raw_is(&mut self, c: char) -> bool {
        let mut ahead = self.clone();
        let same = ahead.raw() == Some(c);
        if same {
            *self = ahead;
        }
        same
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

    /// What follows a percent sign: the character, its layers, no backslashes.
    fn percent(&mut self) -> Option<(char, u8, u8)> {
        let mut c = self.hex()?;
        let mut depth = 1;
        while c == '%' && depth < 3 {
            match self.hex() {
                Some(inner) => c = inner,
                None => break,
            }
            depth += 1;
        }
        Some((c, depth, 0))
    }

    /// What follows a backslash, if it and its like escape it in one of the usual ways. In any case all backslashes in a row
    /// are passed.
    fn escape(&mut self) -> Option<(char, u8, u8)> {
        let mut slashes = 1_u8;
        while self.raw_is('\\') {
            slashes = slashes.saturating_add(1);
        }
        let depth = match slashes {
            0..=2 => 1,
            3..=6 => 2,
            _ => 3,
        };
        let mut ahead = self.clone();
        let c = match ahead.raw()? {
            c @ ('"' | '\'' | '`' | '/') => c,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'x' => ahead.hex()?,
            'u' if ahead.raw_is('0') && ahead.raw_is('0') => ahead.hex()?,
            _ => return None,
        };
        *self = ahead;
        Some((c, depth, slashes))
    }

    /// What follows an ampersand, if it is an entity of HTML that matters here.
    fn entity(&mut self) -> Option<(char, u8, u8)> {
        for (name, c) in [("amp;", '&'), ("quot;", '"'), ("apos;", '\''), ("#34;", '"'), ("#39;", '\'')] {
            let mut ahead = self.clone();
            if name.chars().all(|c| ahead.raw_is(c)) {
                *self = ahead;
                return Some((c, 1, 0));
            }
        }
        None
    }
}

impl Iterator for Cursor<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let unit = self.unit;
        if unit.is_some() {
            self.advance();
        }
        unit
    }
}
