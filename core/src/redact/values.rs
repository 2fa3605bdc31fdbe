//! How far the value reaches that stands beside a sensitive name in a text.
//!
//! Where the end is in doubt, the value is longer: a delimiter ends it only when something follows that can't be part of it.

use super::spans::Span;
use super::units::{Cursor, Unit};

/// What is known of a value before it is read.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The separator before it; an encoded delimiter ends the value only if the separator is encoded as deeply.
    pub(super) separator: Unit,
    /// The quote that opened the string which the name begins, as in `"X-Key: value"`.
    pub(super) quote: Option<Unit>,
    /// Whether it stands between the tags of an XML element.
    pub(super) xml: bool,
    /// Whether it stands in the query of a URL, so that `&` always ends it.
    pub(super) query: bool,
    /// Whether it reaches to the end of the line, as that of a header or a passphrase does.
    pub(super) line: bool,
}

/// A value that was found.
#[derive(Clone, Copy)]
pub(super) struct Value {
    /// Where it is; empty where nothing stands between a name and what ends its value.
    pub(super) span: Span,
    /// Whether it has an end of its own (a closing quote or bracket), so that nothing which begins in it reaches beyond it.
    pub(super) closed: bool,
}

/// The value at `cursor`, if there is one.
pub(super) fn value(mut cursor: Cursor<'_>, place: Place) -> Option<Value> {
    let newlines = place.separator.c != '=';
    cursor.pass(if newlines { Unit::is_space } else { Unit::is_blank });
    if let Some(block) = block(cursor.clone()) {
        return Some(Value { span: block, closed: false });
    }
    let first = cursor.peek()?;
    if place.xml {
        return Some(Value { span: element(cursor), closed: true });
    }
    if first.is_quote() {
        return string(cursor, first, place);
    }
    if place.line {
        return Some(Value { span: line(cursor, place.quote), closed: false });
    }
    if let (Some(quote), true) = (place.quote, place.separator.c != '=')
        && let Some(span) = until_quote(cursor.clone(), quote)
    {
        return Some(Value { span, closed: false });
    }
    if is_opening(first) {
        let end = group(&mut cursor)?;
        return Some(Value { span: Span { start: first.start, end }, closed: true });
    }
    bare(cursor, place).map(|span| Value { span, closed: false })
}

/// A value in quotes.
fn string(cursor: Cursor<'_>, open: Unit, place: Place) -> Option<Value> {
    let (span, after) = match quoted(cursor, false) {
        Quoted::No => return None,
        Quoted::Open(span) => return Some(Value { span, closed: false }),
        Quoted::Empty(after) => (None, after),
        Quoted::Closed(span, after) => (Some(span), after),
    };
    // Strings that are put together: `'it''s'`, `'a'"b"`, and `""name"":""value""` in a table of comma-separated values.
    if after.peek().is_some_and(|unit| unit.is_name() || unit.is_quote())
        && let Some(more) = bare(after, place)
    {
        let start = if span.is_some() { open.start } else { more.start };
        return Some(Value { span: Span { start, end: more.end }, closed: true });
    }
    span.map(|span| Value { span, closed: true })
}

/// The string in quotes behind a name without a separator: `invalid key "x"`.
pub(super) fn quoted_on_this_line(cursor: Cursor<'_>) -> Option<Value> {
    cursor.peek().filter(|unit| unit.is_quote())?;
    match quoted(cursor, true) {
        Quoted::Closed(span, _) | Quoted::Open(span) => Some(Value { span, closed: true }),
        Quoted::No | Quoted::Empty(_) => None,
    }
}

enum Quoted<'t> {
    /// No quote, or none that closes it on the line.
    No,
    /// Nothing stands between the quotes; the place behind them.
    Empty(Cursor<'t>),
    /// No quote closes it: all to the end.
    Open(Span),
    /// What stands between the quotes, and the place behind them.
    Closed(Span, Cursor<'t>),
}

/// A string from its opening quote, or from three of them.
fn quoted(mut cursor: Cursor<'_>, one_line: bool) -> Quoted<'_> {
    let Some(open) = cursor.next() else { return Quoted::No };
    let mut ahead = cursor.clone();
    let mut needed = 1;
    if ahead.next().is_some_and(|unit| unit.is_twin(open)) {
        if !ahead.peek().is_some_and(|unit| unit.is_twin(open)) {
            return Quoted::Empty(ahead);
        }
        ahead.next();
        cursor = ahead;
        needed = 3;
    }
    let start = cursor.at();
    let mut run = 0;
    let mut end = start;
    while let Some(unit) = cursor.next() {
        if one_line && unit.is_newline() && unit.depth <= open.depth {
            return Quoted::No;
        }
        if !unit.closes(open) {
            run = 0;
            continue;
        }
        if run == 0 {
            end = unit.closing_start(open);
        }
        run += 1;
        if run == needed {
            return if end > start { Quoted::Closed(Span { start, end }, cursor) } else { Quoted::Empty(cursor) };
        }
    }
    if one_line && !cursor.is_cut() { Quoted::No } else { Quoted::Open(Span { start, end: cursor.at() }) }
}

/// A bare value: to the next space or to a delimiter that ends it.
pub(super) fn bare(mut cursor: Cursor<'_>, place: Place) -> Option<Span> {
    let start = cursor.at();
    let mut end = start;
    let depth = place.separator.depth;
    let mut is_name = true;
    while let Some(unit) = cursor.peek() {
        if unit.depth <= depth && (unit.is_space() || ends(cursor.clone(), place)) {
            break;
        }
        if is_opening(unit) && unit.depth <= depth {
            match group(&mut cursor) {
                Some(to) => end = to,
                None => break,
            }
            continue;
        }
        if unit.is_quote() {
            // A quote within: `ab'c d'ef`, `b"c d"`.
            if let Quoted::Closed(_, after) = quoted(cursor.clone(), true) {
                end = after.at();
                cursor = after;
                continue;
            }
        }
        is_name &= unit.is_name();
        end = unit.end;
        cursor.next();
    }
    // `Secret { inner: .. }`, as `Debug` writes it.
    let mut ahead = cursor.clone();
    if is_name
        && place.separator.c == ':'
        && ahead.pass_char(' ').is_some()
        && ahead.peek().is_some_and(|unit| unit.c == '{')
        && let Some(to) = group(&mut ahead)
    {
        end = to;
    }
    (end > start).then_some(Span { start, end })
}

/// Whether the delimiter at `cursor` ends a bare value: when nothing that can be part of the value follows it.
fn ends(mut cursor: Cursor<'_>, place: Place) -> bool {
    let Some(unit) = cursor.next() else { return true };
    if place.query && unit.c == '&' {
        return true;
    }
    if place.quote.is_some_and(|open| unit.closes(open)) {
        return true;
    }
    if !is_delimiter(unit) {
        return false;
    }
    if unit.is_quote() {
        cursor.pass(Unit::is_quote);
        return cursor.peek().is_none_or(|next| next.is_space() || is_delimiter(next) || next.c == '.');
    }
    let Some(next) = cursor.peek() else { return true };
    if next.is_space() || is_delimiter(next) && !next.is_quote() {
        return true;
    }
    // The next of several pairs: `,name=`, `;name=`, `&name=`, `,"name":`.
    if matches!(unit.c, ',' | ';' | '&' | '|') {
        cursor.next_if(Unit::is_quote);
        let letters = cursor.pass(Unit::is_name);
        cursor.next_if(Unit::is_quote);
        return letters > 0 && cursor.peek().is_some_and(is_separator);
    }
    unit.c != '>' && next.is_quote()
}

fn is_delimiter(unit: Unit) -> bool {
    matches!(unit.c, ',' | ';' | '&' | '|' | ')' | ']' | '}' | '<' | '>') || unit.is_quote()
}

/// Whether it can stand between a name and a value.
pub(super) const fn is_separator(unit: Unit) -> bool {
    matches!(unit.c, '=' | ':' | '\u{ff1a}' | '\u{ff1d}')
}

const fn is_opening(unit: Unit) -> bool {
    matches!(unit.c, '{' | '[' | '(')
}

/// Goes past a bracket and all up to the one that closes it, or to the end; tells where that is.
fn group(cursor: &mut Cursor<'_>) -> Option<u32> {
    let mut open = 0_u32;
    let mut before: Option<Unit> = None;
    while let Some(unit) = cursor.peek() {
        let starts_string = unit.c == '"' || unit.is_quote() && !before.is_some_and(Unit::is_name);
        if starts_string {
            match quoted(cursor.clone(), false) {
                Quoted::Closed(_, after) | Quoted::Empty(after) => {
                    *cursor = after;
                    before = Some(unit);
                    continue;
                }
                Quoted::Open(span) if unit.c == '"' => {
                    while cursor.next().is_some() {}
                    return Some(span.end);
                }
                Quoted::No | Quoted::Open(_) => {}
            }
        }
        cursor.next();
        before = Some(unit);
        match unit.c {
            '{' | '[' | '(' => open = open.saturating_add(1),
            '}' | ']' | ')' => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    before.map(|_| cursor.at())
}

/// The text of an XML element: all to the next tag.
fn element(mut cursor: Cursor<'_>) -> Span {
    let start = cursor.at();
    cursor.pass(|unit| unit.c != '<');
    Span { start, end: cursor.at() }
}

/// All to the end of the line, or to the quote that ends the string in which the name stands.
fn line(cursor: Cursor<'_>, quote: Option<Unit>) -> Span {
    let start = cursor.at();
    let mut end = start;
    for unit in cursor {
        if unit.is_newline() && unit.depth == 0 || quote.is_some_and(|open| unit.closes(open)) {
            break;
        }
        if !unit.is_space() {
            end = unit.end;
        }
    }
    Span { start, end }
}

/// All to the quote that ends the string in which the name stands, if it stands on this line.
fn until_quote(mut cursor: Cursor<'_>, quote: Unit) -> Option<Span> {
    let start = cursor.at();
    for unit in cursor.by_ref() {
        if unit.closes(quote) {
            // A value that begins with a quote is no such value, so that something stands before it.
            return Some(Span { start, end: unit.closing_start(quote) });
        }
        if unit.is_newline() && unit.depth <= quote.depth {
            return None;
        }
    }
    cursor.is_cut().then_some(Span { start, end: cursor.at() })
}

/// A block of YAML: `|` or `>` alone on the line, then all lines that are indented.
fn block(mut cursor: Cursor<'_>) -> Option<Span> {
    cursor.next_if(|unit| matches!(unit.c, '|' | '>'))?;
    cursor.pass(|unit| matches!(unit.c, '-' | '+' | '0'..='9' | ' '));
    cursor.next_if(Unit::is_newline)?;
    let indented = cursor.clone();
    cursor.pass(Unit::is_space);
    let start = cursor.at();
    let mut end = start;
    cursor = indented;
    while cursor.next_if(Unit::is_space).is_some() {
        while let Some(unit) = cursor.next_if(|unit| !unit.is_newline()) {
            end = unit.end;
        }
        cursor.next_if(Unit::is_newline);
    }
    (end > start).then_some(Span { start, end })
}
