//! A JSON value for people: short things first as `name value`, lists of like things as tables, texts as they are.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::table::{Cell, Table};
use crate::terminal::{Brush, DIM, NAME, columns, visible, visible_lines};

/// What names a thing comes first in a row, in this order.
const FIRST: [&str; 6] = ["id", "name", "path", "line", "column", "type"];
/// What can be long comes last.
const LAST: [&str; 4] = ["text", "content", "message", "description"];
/// A list of plain values up to this width stands on one line.
const SHORT: usize = 60;

/// The value as lines of text, with a line break at the end. Nothing in it acts on a terminal (invariant O3).
pub(crate) fn view(value: &Value, width: usize, brush: Brush) -> String {
    let mut text = String::new();
    View { width, brush }.push(&mut text, value, 0);
    text
}

#[derive(Clone, Copy)]
struct View {
    width: usize,
    brush: Brush,
}

impl View {
    fn push(self, out: &mut String, value: &Value, indent: usize) {
        match value {
            Value::Object(map) if !map.is_empty() => self.push_map(out, map, indent),
            Value::Array(items) if !items.is_empty() => self.push_list(out, items, indent),
            Value::String(text) => push_lines(out, text, indent),
            other => {
                let _ = writeln!(out, "{}{}", " ".repeat(indent), plain(other).unwrap_or_default());
            }
        }
    }

    fn push_map(self, out: &mut String, map: &Map<String, Value>, indent: usize) {
        let mut members: Vec<(&String, &Value)> = map.iter().collect();
        members.sort_by_key(|(name, _)| place(name));
        // What needs lines of its own comes first: the last thing on a screen is what is read first.
        let (short, long): (Vec<_>, Vec<_>) = members.into_iter().partition(|(_, value)| one_line(value).is_some());
        for (name, value) in &long {
            let _ = writeln!(out, "{}{}", " ".repeat(indent), self.brush.paint(NAME, visible(name)));
            self.push(out, value, indent.saturating_add(2));
        }
        let widest = short.iter().map(|(name, _)| columns(&visible(name))).max().unwrap_or(0);
        for (name, value) in &short {
            let name = visible(name);
            let gap = widest.saturating_sub(columns(&name)).saturating_add(2);
            let value = one_line(value).unwrap_or_default();
            let _ = writeln!(out, "{}{}{}{value}", " ".repeat(indent), self.brush.paint(NAME, name), " ".repeat(gap));
        }
    }

    fn push_list(self, out: &mut String, items: &[Value], indent: usize) {
        if let Some(table) = self.table(items, indent) {
            out.push_str(&table);
            return;
        }
        for item in items {
            let start = out.len();
            self.push(out, item, indent.saturating_add(2));
            // The dash takes the place of two of the spaces before the item.
            let at = start.saturating_add(indent);
            let dash = self.brush.paint(DIM, "-").to_string();
            if out.is_char_boundary(at.saturating_add(1)) && out.get(at..at.saturating_add(1)) == Some(" ") {
                out.replace_range(at..at.saturating_add(1), &dash);
            }
        }
    }

    /// A table of objects whose members fit on a line, when all items are such.
    fn table(self, items: &[Value], indent: usize) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        for item in items {
            let map = item.as_object().filter(|map| !map.is_empty())?;
            for (name, value) in map {
                plain(value)?;
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
        }
        names.sort_by_key(|name| place(name));
        let heads: Vec<String> = names.iter().map(|name| visible(name).to_uppercase()).collect();
        let mut table = Table::new(heads).indented(indent).cut();
        for item in items {
            table.row(names.iter().map(|name| Cell::from(item.get(name).and_then(plain).unwrap_or_default())));
        }
        Some(table.render(self.width, self.brush))
    }
}

fn place(name: &str) -> (usize, usize) {
    let first = FIRST.iter().position(|known| *known == name).unwrap_or(FIRST.len());
    let last = LAST.iter().position(|known| *known == name).map_or(0, |at| at.saturating_add(1));
    (last, first)
}

/// A value without parts, on one line.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("-".to_owned()),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) if !text.contains('\n') => Some(visible(text)),
        Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        Value::Object(members) if members.is_empty() => Some("none".to_owned()),
        _ => None,
    }
}

/// What stands on one line behind its name: a plain value, a short list, a small object.
fn one_line(value: &Value) -> Option<String> {
    let joined = match value {
        Value::Array(items) => items.iter().map(plain).collect::<Option<Vec<_>>>()?.join(", "),
        Value::Object(members) if !members.is_empty() => {
            let member = |(name, value): (&String, &Value)| match value {
                Value::Object(_) | Value::Array(_) | Value::String(_) => None,
                value => Some(format!("{} {}", visible(name), plain(value)?)),
            };
            members.iter().map(member).collect::<Option<Vec<_>>>()?.join(", ")
        }
        other => return plain(other),
    };
    if joined.is_empty() { plain(value) } else { Some(joined).filter(|text| columns(text) <= SHORT) }
}

fn push_lines(out: &mut String, text: &str, indent: usize) {
    for line in visible_lines(text).lines() {
        let _ = writeln!(out, "{}{line}", " ".repeat(indent));
    }
    if text.is_empty() {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(value: &Value) -> String {
        view(value, 80, Brush::PLAIN)
    }

    #[test]
    fn a_search_reads_like_one() {
        let found = json!({
            "path": ".", "files_searched": 3, "truncated": false,
            "skipped": {"binary": 0, "too_large": 0, "unreadable": 1},
            "matches": [
                {"path": "src/a.rs", "line": 3, "column": 4, "text": "// TODO mend"},
                {"path": "b.md", "line": 12, "column": 1, "text": "TODO"},
            ],
        });
        assert_eq!(
            shown(&found),
            "\
matches
  PATH      LINE  COLUMN  TEXT
  src/a.rs  3     4       // TODO mend
  b.md      12    1       TODO
path            .
files_searched  3
skipped         binary 0, too_large 0, unreadable 1
truncated       no
"
        );
    }

    #[test]
    fn what_is_no_table_is_a_list() {
        assert_eq!(shown(&json!(["a", "b"])), "- a\n- b\n");
        assert_eq!(shown(&json!({"tags": ["a", "b"], "none": [], "n": null})), "n     -\nnone  none\ntags  a, b\n");
        assert_eq!(shown(&json!([{"a": [1, [2]]}, 3])), "- a\n    - 1\n    - - 2\n- 3\n");
        assert_eq!(shown(&json!("one\ntwo\n")), "one\ntwo\n");
        assert_eq!(shown(&json!({"content": "x\ny"})), "content\n  x\n  y\n");
        assert_eq!(shown(&json!({})), "none\n");
    }

    // O3
    #[test]
    fn o3_a_result_cannot_act_on_the_terminal() {
        let evil =
            json!({"\u{1b}[2J": "\u{1b}]0;x\u{7}", "list": [{"k\u{202e}": "\r\u{9b}31m"}], "text": "a\n\u{1b}c"});
        assert!(!shown(&evil).contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')), "{}", shown(&evil));
    }
}
