//! Names with their values in a text: `name=value`, `name: value`, `"name":"value"`, `--name value` and the like.

use super::Redaction;
use super::names::Words;
use super::units::{Cursor, Unit};
use super::values::{self, Place, Value, is_separator};

/// The most words of a name that stand apart: `API key: ..`, `client secret value = ..`.
const MAX_WORDS: usize = 3;

/// Words that may stand between a name and its separator: `API key provided: ..`.
const FILLERS: [&str; 7] = ["given", "is", "provided", "received", "supplied", "used", "value"];

/// What stands before a name.
#[derive(Clone, Copy)]
pub(super) struct Before<'c, 't> {
    /// The unit directly before it.
    pub(super) unit: Option<Unit>,
    /// Where the word begins that stands one space before it.
    pub(super) word: Option<&'c Cursor<'t>>,
    /// Whether the name is part of a path: `/etc/passwd: not found` gives no value away.
    pub(super) path: bool,
}

/// The value of the sensitive name that begins at `start`, if one does.
pub(super) fn pair(start: &Cursor<'_>, before: Before<'_, '_>, redaction: &Redaction<'_>) -> Option<Value> {
    let flag = start.peek()?.c == '-';
    let query = before.unit.is_some_and(|unit| matches!(unit.c, '?' | '&' | '#' | ';'));
    let mut name = Words::new();
    let mut cursor = start.clone();
    let mut complete = false;
    for nth in 0..MAX_WORDS {
        let word = cursor.clone();
        let mut dotted = false;
        let mut last = None;
        while let Some(unit) = cursor.next_if(Unit::is_name) {
            name.push(unit.c);
            dotted |= unit.c == '.';
            last = Some(unit);
        }
        let last = last?;
        let sensitive = name.are_sensitive(redaction.names) || query && name.are_signature();
        // `token expired: ..` tells of a token, `API key: ..` gives one: the last word has to be part of the name.
        let names_value = sensitive && (!complete || is_filler(&word));
        if names_value && !(nth == 0 && is_about_more(&name, before, redaction)) {
            let context = Context {
                before: before.unit,
                flag,
                query,
                path: before.path || dotted && in_path(before),
                arrow: last.c == '-',
            };
            if let Some(value) = value_after(cursor.clone(), &name, context) {
                return Some(value);
            }
        }
        complete = sensitive;
        cursor.next_if(|unit| unit.c == ' ')?;
        name.push(' ');
    }
    None
}

/// Whether the word is only part of a harmless name of two words: `total tokens: 12`.
fn is_about_more(name: &Words, before: Before<'_, '_>, redaction: &Redaction<'_>) -> bool {
    let Some(word) = before.word else { return false };
    let mut both = Words::new();
    for unit in word.clone().take_while(|unit| unit.is_name()) {
        both.push(unit.c);
    }
    both.push(' ');
    both.append(name);
    !both.are_sensitive(redaction.names)
}

fn is_filler(word: &Cursor<'_>) -> bool {
    FILLERS.iter().any(|filler| {
        let mut word = word.clone();
        word.pass_word(filler) && !word.peek().is_some_and(Unit::is_name)
    })
}

fn in_path(before: Before<'_, '_>) -> bool {
    before.unit.is_some_and(|unit| matches!(unit.c, '/' | '\\'))
}

#[derive(Clone, Copy)]
struct Context {
    before: Option<Unit>,
    flag: bool,
    query: bool,
    path: bool,
    /// The name ends in a hyphen, which may be that of an arrow.
    arrow: bool,
}

/// The value that belongs to the name which ends at `cursor`.
fn value_after(mut cursor: Cursor<'_>, name: &Words, context: Context) -> Option<Value> {
    let name_end = cursor.clone();
    let closers = cursor.pass(|unit| unit.is_quote() || matches!(unit.c, ']' | ')'));
    let spaces = cursor.pass(|unit| unit.is_space() && !unit.is_newline());
    let mut xml = false;
    let separator = match cursor.next() {
        Some(unit) if is_separator(unit) => unit,
        Some(unit) if unit.c == '>' && context.before.is_some_and(|before| before.c == '<') => {
            xml = true;
            unit
        }
        Some(unit) if unit.c == '>' && context.arrow => unit,
        Some(unit) if unit.c == '-' && spaces > 0 && cursor.next_if(|unit| unit.c == '>').is_some() => unit,
        Some(_) if closers == 0 && spaces > 0 => return without_separator(name_end, context.flag),
        _ => return None,
    };
    if separator.c == ':' {
        // `token::parse` is a path of a program, and `/etc/passwd:` one of a file.
        if context.path || cursor.peek().is_some_and(|unit| unit.c == ':') {
            return None;
        }
    }
    // `=>`, `:=`, `==`, `=~`.
    if matches!(separator.c, '=' | ':') {
        cursor.pass(|unit| matches!(unit.c, '=' | '~') || unit.c == '>' && separator.c == '=');
    }
    let place = Place {
        separator,
        quote: context.before.filter(|unit| unit.is_quote() && closers == 0),
        xml,
        query: context.query,
        line: name.take_the_line() && !context.query,
    };
    values::value(cursor, place)
}

/// The value that stands one space behind a name: the argument of a flag, or a quotation.
fn without_separator(mut cursor: Cursor<'_>, flag: bool) -> Option<Value> {
    let space = cursor.next()?;
    if !flag {
        return values::quoted_on_this_line(cursor);
    }
    cursor.pass(|unit| unit.is_space() && !unit.is_newline());
    if cursor.peek()?.c == '-' {
        return None;
    }
    values::value(
        cursor,
        Place { separator: Unit { c: '=', ..space }, quote: None, xml: false, query: false, line: false },
    )
}
