//! From the text of a file to a TOML document, or to everything that is wrong with its syntax.

use std::ops::Range;

use toml::de::{DeTable, DeValue, Error};

use super::decode::Sink;
use super::problem::quoted;
use super::source::Source;

/// Parses the text. A duplicate key leaves a document that can be read on, so that the rest of its problems are found in the
/// same run; after any other fault of syntax what remains is a guess, and `None` is returned.
pub(super) fn parse<'d>(source: &'d Source, sink: &Sink<'_>) -> Option<DeTable<'d>> {
    let (document, errors) = DeTable::parse_recoverable(source.text());
    let document = document.into_inner();
    let mut readable = true;
    for error in &errors {
        let span = error.span().unwrap_or_default();
        if is_duplicate(error) {
            report_duplicate(source, sink, &document, &span);
        } else {
            readable = false;
            sink.report(&span, "", error.message(), help(error, source, &span));
        }
    }
    readable.then_some(document)
}

fn is_duplicate(error: &Error) -> bool {
    error.message() == "duplicate key"
}

/// V16: which of two values counts must never be a matter of the reader.
fn report_duplicate(source: &Source, sink: &Sink<'_>, document: &DeTable<'_>, span: &Range<usize>) {
    let text = source.text();
    let key = text.get(span.clone()).unwrap_or_default();
    let header = source.line(source.locate(span.start).line).trim();
    let first = if header.starts_with('[') {
        let earlier = text.get(..span.start).unwrap_or_default().lines().position(|line| line.trim() == header);
        earlier.map(|index| index.saturating_add(1))
    } else {
        // The parser doesn't say where the first one is; where only one place comes into question it can be told. That is a
        // key of the same name in the same section, on a line of its own like this one, or inside a value like this one.
        let starts_line = |at: usize| {
            let before = text.get(..at).unwrap_or_default();
            before.rsplit('\n').next().is_some_and(|line| line.trim().is_empty())
        };
        let section = text.get(..span.start).unwrap_or_default().rfind("\n[").unwrap_or(0);
        let mut places = Vec::new();
        places_of(document, key.trim_matches(['"', '\'']), &mut places);
        places.retain(|&at| (section..span.start).contains(&at) && starts_line(at) == starts_line(span.start));
        match places.as_slice() {
            [place] => Some(source.locate(*place).line),
            _ => None,
        }
    };
    let help = match first {
        Some(line) => format!("it is on line {line} already: keep one of the two"),
        None => "it is there already: keep one of the two".into(),
    };
    sink.report(span, "", format!("duplicate key {}", quoted(key)), Some(help));
}

/// Where keys called `name` start.
fn places_of(table: &DeTable<'_>, name: &str, places: &mut Vec<usize>) {
    for (key, value) in table {
        if key.get_ref() == name {
            places.push(key.span().start);
        }
        places_in(value.get_ref(), name, places);
    }
}

fn places_in(value: &DeValue<'_>, name: &str, places: &mut Vec<usize>) {
    match value {
        DeValue::Table(table) => places_of(table, name, places),
        DeValue::Array(array) => array.iter().for_each(|item| places_in(item.get_ref(), name, places)),
        _ => {}
    }
}

/// What would be right, for the slips that people make most.
fn help(error: &Error, source: &Source, span: &Range<usize>) -> Option<String> {
    let message = error.message();
    let line = source.line(source.locate(span.start).line);
    let help = if message.starts_with("string values must be quoted") {
        "a text stands in quotes: key = \"text\""
    } else if (message.starts_with("key with no value") || message.starts_with("invalid unquoted key"))
        && line.contains(':')
    {
        "between a key and its value stands `=`, not `:`"
    } else if message.starts_with("key with no value") {
        "each line is `key = value`, a `[table]`, or a comment that starts with #"
    } else if message.starts_with("unclosed table") || message.starts_with("unclosed array table") {
        "a table's header ends with `]`, that of a list's entry with `]]`"
    } else if line.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) {
        "quotes are the plain \" or ', not typographic ones"
    } else {
        return None;
    };
    Some(help.into())
}
