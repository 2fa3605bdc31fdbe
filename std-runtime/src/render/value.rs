//! Pieces of foreign text and foreign JSON, made fit to be shown.

use std::fmt::{self, Write};

use callgate_core::json::write::must_escape;
use callgate_core::json::{KeySlot, Kind, Limits, MAX_DEPTH, Scanned, Text, Value, key_capacity, scan};

/// JSON that a renderer looks into. Every bound is that of the result itself, which the gate has applied before.
const LIMITS: Limits = Limits {
    depth: MAX_DEPTH,
    bytes: u32::MAX,
    nodes: u32::MAX,
    members: u32::MAX,
    key_bytes: u32::MAX,
    number_bytes: 1 << 20,
};

/// Reads JSON text; `None` for what the gate's reader does not take.
pub(super) fn read(text: &str) -> Option<Scanned<'_>> {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    scan(text.as_bytes(), &mut keys, &LIMITS).ok()
}

/// A text on one line, in which nothing is left that acts on a terminal or cannot be seen. What is taken out is shown as its
/// number: `\u{1b}`.
pub(super) struct OneLine<'a>(pub(super) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| put(c, f))
    }
}

/// The same for a text of a JSON value.
pub(super) struct OneLineOf<'a>(pub(super) Text<'a>);

impl fmt::Display for OneLineOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| put(c, f))
    }
}

fn put(c: char, out: &mut dyn Write) -> fmt::Result {
    match c {
        '"' | '\\' => out.write_char(c),
        '\n' => out.write_str("\\n"),
        '\t' => out.write_str("\\t"),
        '\r' => out.write_str("\\r"),
        c if must_escape(c) => write!(out, "\\u{{{:x}}}", u32::from(c)),
        c => out.write_char(c),
    }
}

/// Writes a text of several lines, each behind `margin`: whatever stands in it, it does not look like what is not indented.
pub(super) fn write_block(text: &str, margin: &str, out: &mut dyn Write) -> fmt::Result {
    text.split('\n').try_for_each(|line| {
        out.write_str(margin)?;
        // A tab moves ahead only, and keeps columns of code and tables.
        line.chars().try_for_each(|c| if c == '\t' { out.write_char(c) } else { put(c, out) })?;
        out.write_char('\n')
    })
}

/// How the words of JSON are put.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) null: &'static str,
    pub(super) yes: &'static str,
    pub(super) no: &'static str,
}

/// A value on one line: a text without quotes, what is nested as compact JSON.
pub(super) fn write_inline(value: Value<'_>, words: Words, out: &mut dyn Write) -> fmt::Result {
    match value.kind() {
        Kind::Null => out.write_str(words.null),
        Kind::Bool => out.write_str(if value.as_bool() == Some(true) { words.yes } else { words.no }),
        Kind::String => value.as_text().map_or(Ok(()), |text| write!(out, "{}", OneLineOf(text))),
        // The writer of JSON escapes whatever acts on a terminal.
        Kind::Number | Kind::Array | Kind::Object => value.write_json(out),
    }
}

/// Writes `label: value` behind `margin`; a text of several lines as a block of its own below.
pub(super) fn write_member(
    margin: &str,
    label: &dyn fmt::Display,
    value: Value<'_>,
    words: Words,
    out: &mut dyn Write,
) -> fmt::Result {
    write!(out, "{margin}{label}:")?;
    match value.as_text().filter(|text| text.chars().any(|c| c == '\n')) {
        Some(text) => {
            out.write_char('\n')?;
            let text: String = text.chars().collect();
            write_block(text.strip_suffix('\n').unwrap_or(&text), "    | ", out)
        }
        None => {
            out.write_char(' ')?;
            write_inline(value, words, out)?;
            out.write_char('\n')
        }
    }
}

/// A name as a label: underscores become spaces, the first letter a capital.
pub(super) struct Label<'a>(pub(super) Text<'a>);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars().map(|c| if c == '_' { ' ' } else { c });
        chars.next().into_iter().flat_map(char::to_uppercase).try_for_each(|c| put(c, f))?;
        chars.try_for_each(|c| put(c, f))
    }
}

/// What a list shows of one item: its id, or its place; its name, or all of it.
pub(super) fn write_item(item: Value<'_>, place: usize, words: Words, out: &mut dyn Write) -> fmt::Result {
    let id = item.get("id").filter(|id| matches!(id.kind(), Kind::Number | Kind::String));
    out.write_char('#')?;
    match id {
        Some(id) => write_inline(id, words, out)?,
        None => write!(out, "{place}")?,
    }
    out.write_str(": ")?;
    let name = ["name", "title", "nombre"].into_iter().find_map(|key| item.get(key)).filter(|name| !name.is_null());
    write_inline(name.unwrap_or(item), words, out)
}

/// The page that a list is: `page, pages, items`.
pub(super) fn pagination(meta: Value<'_>) -> Option<[u64; 3]> {
    let page = meta.get("pagination")?;
    let number = |key| page.get(key)?.as_number()?.as_u64();
    Some([number("page")?, number("total_pages")?, number("total_items")?])
}

/// Each action of a detail: plain texts, or objects with a label and what it calls.
pub(super) fn actions<'a>(meta: Value<'a>) -> impl Iterator<Item = (Option<Value<'a>>, Value<'a>)> {
    meta.get("actions").into_iter().filter(|actions| actions.kind() == Kind::Array).flat_map(Value::items).map(
        |action| match action.get("action") {
            Some(called) if action.kind() == Kind::Object => (action.get("label"), called),
            _ => (None, action),
        },
    )
}

/// What the outcome's meta warns of, in words.
pub(super) fn warnings(meta: Value<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let told = |key: &str| meta.get(key).and_then(Value::as_bool) == Some(true);
    for clamp in meta.get("clamped").into_iter().filter(|list| list.kind() == Kind::Array).flat_map(Value::items) {
        let part = |key| clamp.get(key).and_then(Value::as_text).map(|text| OneLineOf(text).to_string());
        if let (Some(field), Some(from), Some(to)) = (part("field"), part("from"), part("to")) {
            warnings.push(format!("{field} was brought from {from} to {to}"));
        }
    }
    let number = |key| {
        let mut text = String::new();
        let value = meta.get(key).filter(|value| value.kind() == Kind::Number)?;
        value.write_json(&mut text).ok().map(|()| text)
    };
    if told("timeout_exceeded")
        && let (Some(took), Some(limit)) = (number("execution_time"), number("timeout_limit"))
    {
        warnings.push(format!("it took {took} s, more than the {limit} s that it has"));
    }
    if told("output_truncated") {
        warnings.push(match number("output_bytes") {
            Some(bytes) => format!("the result is cut; all of it has {bytes} bytes"),
            None => "the result is cut".to_owned(),
        });
    }
    if told("audit_pending") {
        warnings.push("the audit record of this call is not written yet".to_owned());
    }
    warnings
}
