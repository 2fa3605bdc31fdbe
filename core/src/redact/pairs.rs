//! Names with their values in a text: `name=value`, `name: value`, `"name":"value"`, `--name value` and the like.

use super::Redaction;
use super::names::{MAX_LETTERS, Words};
use super::units::{Cursor, Unit};
use super::values::{self, Place, Value, is_separator};

/// Words that may stand between a name and its separator: `API key provided: ..`.
const FILLERS: &[&str] = &["given", "is", "provided", "received", "supplied", "used", "value"];

/// A word of a text that may be a name or the last word of one, as in `API key: ..`.
pub(super) struct Word<'c, 't> {
    pub(super) start: &'c Cursor<'t>,
    /// What follows it.
    pub(super) behind: &'c Cursor<'t>,
    pub(super) last: Unit,
    /// Whether it holds a point.
    pub(super) dotted: bool,
    /// Where the words begin that stand before it, a single space between two: the last one, and the last but one.
    pub(super) previous: &'c [Option<Cursor<'t>>; 2],
    /// The unit directly before it.
    pub(super) before: Option<Unit>,
    /// Whether it stands in a path: `/etc/passwd: not found` gives no value away.
    pub(super) path: bool,
}

impl Word<'_, '_> {
    /// The value that belongs to the name, if it is a sensitive one.
    pub(super) fn value(&self, redaction: &Redaction<'_>) -> Option<Value> {
        let (at, link) = self.link()?;
        let query = self.before.is_some_and(|unit| matches!(unit.c, '?' | '&' | '#'));
        let mut name = self.name_from(self.start);
        let mut sensitive = name.are_sensitive(redaction.names) || query && name.are_signature();
        let [previous, first] = self.previous;
        if let (true, Some(previous)) = (sensitive, previous) {
            // `total tokens: 12` is harmless.
            sensitive = self.name_from(previous).are_sensitive(redaction.names);
        } else {
            for start in [previous, first].into_iter().flatten() {
                if sensitive {
                    break;
                }
                name = self.name_from(start);
                // `token expired: ..` tells of a token, `API key: ..` gives one: the last word has to be part of the name.
                let told = || {
                    self.words(start, self.start.at()).are_sensitive(redaction.names) && !self.start.is_word_of(FILLERS)
                };
                sensitive = name.are_sensitive(redaction.names) && !told();
            }
        }
        if sensitive { link.value(at, &name, self.before, query) } else { None }
    }

    fn name_from(&self, start: &Cursor<'_>) -> Words {
        self.words(start, self.behind.at())
    }

    fn words(&self, start: &Cursor<'_>, end: u32) -> Words {
        let mut words = Words::new();
        let units = || start.clone().take_while(|unit| unit.start < end);
        // Of what is too long for a name, such as Base64 with a `=` at its end, the end is looked at.
        let too_many = units().count().saturating_sub(MAX_LETTERS);
        words.extend(units().skip(too_many).map(|unit| unit.c));
        words
    }

    /// What stands between the name and its value, and where the value begins.
    fn link(&self) -> Option<(Cursor<'_>, Link)> {
        let mut cursor = self.behind.clone();
        let closers = cursor.pass(|unit| unit.is_quote() || matches!(unit.c, ']' | ')')) > 0;
        let spaces = cursor.pass(Unit::is_blank) > 0;
        let unit = cursor.next()?;
        let arrow = unit.c == '>' && self.last.c == '-' || unit.c == '-' && spaces && cursor.pass_char('>').is_some();
        if is_separator(unit) || arrow {
            // `token::parse` is a path of a program, `/etc/passwd: not found` and `"/a/token": 5` name one of a file;
            // `"/password": "x"` has a value.
            let path = self.path || self.dotted && self.before.is_some_and(|unit| matches!(unit.c, '/' | '\\'));
            if unit.c == ':'
                && (cursor.is(|unit| unit.c == ':') || path && !(closers && cursor.is_followed_by(Unit::is_quote)))
            {
                return None;
            }
            // `=>`, `:=`, `==`, `=~`.
            if !arrow {
                cursor.pass(|unit| matches!(unit.c, '=' | '~' | '>'));
            }
            return Some((cursor, Link::Separator(unit, closers)));
        }
        if unit.c == '>' && self.before.is_some_and(|before| before.c == '<') {
            return Some((cursor, Link::Tag(unit)));
        }
        if let Some(found) = self.separate_value(closers) {
            return Some(found);
        }
        if closers || !spaces {
            return None;
        }
        cursor = self.behind.clone();
        let space = cursor.next()?;
        if self.start.is(|unit| unit.c == '-') {
            cursor.pass(Unit::is_blank);
            return cursor.is(|unit| unit.c != '-').then_some((cursor, Link::Flag(Unit { c: '=', ..space })));
        }
        cursor.is(Unit::is_quote).then_some((cursor, Link::Quotation))
    }
}

impl<'t> Word<'_, 't> {
    /// A value that does not stand beside its name, but behind it: `name: DB_PASSWORD, value: x`, `"--password", "x"`.
    fn separate_value(&self, closers: bool) -> Option<(Cursor<'t>, Link)> {
        let mut cursor = self.behind.clone();
        cursor.pass(Unit::is_quote);
        let comma = cursor.next_if(|unit| matches!(unit.c, ',' | ';'));
        cursor.pass(Unit::is_space);
        if let Some(comma) = comma
            && closers
            && self.start.is(|unit| unit.c == '-')
            && cursor.is(Unit::is_quote)
        {
            return Some((cursor, Link::Flag(comma)));
        }
        cursor.next_if(Unit::is_quote);
        if !cursor.pass_text("value", true) {
            return None;
        }
        cursor.next_if(Unit::is_quote);
        cursor.pass(Unit::is_blank);
        let separator = cursor.next_if(is_separator)?;
        Some((cursor, Link::Separator(separator, true)))
    }
}

/// What stands between a name and its value.
#[derive(Clone, Copy)]
enum Link {
    /// A separator, and whether the name stands in quotes or brackets of its own.
    Separator(Unit, bool),
    /// The bracket that ends the opening tag of an XML element.
    Tag(Unit),
    /// A space behind a flag: `--password hunter2`; a comma in a list of arguments.
    Flag(Unit),
    /// A space before a quotation: `invalid token "x"`.
    Quotation,
}

impl Link {
    fn value(self, at: Cursor<'_>, name: &Words, before: Option<Unit>, query: bool) -> Option<Value> {
        let plain = |separator| Place { separator, quote: None, xml: false, query: false, line: false };
        let place = match self {
            Self::Quotation => return values::quoted_on_this_line(at),
            Self::Flag(space) => plain(space),
            Self::Tag(separator) => Place { xml: true, ..plain(separator) },
            Self::Separator(separator, closed) => Place {
                quote: before.filter(|unit| unit.is_quote() && !closed),
                query,
                line: name.take_the_line() && !query,
                ..plain(separator)
            },
        };
        values::value(at, place)
    }
}
