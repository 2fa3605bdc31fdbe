//! Tables for people: columns that line up, the last of which takes the room that is left.

use crate::terminal::{Brush, DIM, columns, fit, wrap};
use anstyle::Style;

/// A table.
pub(crate) struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<Cell>>,
    indent: usize,
    wraps: bool,
    least: Vec<usize>,
}

/// One cell.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A text in a style; it has to be [visible](crate::terminal::visible).
    pub(crate) fn painted(style: Style, text: impl Into<String>) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::new() }
    }
}

const GAP: usize = 2;

impl Table {
    /// A table with these columns.
    pub(crate) fn new<H: Into<String>>(heads: impl IntoIterator<Item = H>) -> Self {
        Self {
            heads: heads.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            indent: 0,
            wraps: true,
            least: Vec::new(),
        }
    }

    /// The same table, so many columns to the right.
    pub(crate) const fn indented(mut self, indent: usize) -> Self {
        self.indent = indent;
        self
    }

    /// The same table; what does not fit into the last column is left out instead of wrapped.
    pub(crate) const fn cut(mut self) -> Self {
        self.wraps = false;
        self
    }

    /// The same table, whose columns have at least these widths.
    pub(crate) fn at_least(mut self, widths: &[usize]) -> Self {
        self.least = widths.to_vec();
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text of at most `width` columns, unless the columns before the last are wider.
    pub(crate) fn render(&self, width: usize, brush: Brush) -> String {
        const LEAST: usize = 16;
        let widths = self.widths();
        let before = widths.iter().fold(self.indent, |sum, width| sum.saturating_add(width.saturating_add(GAP)));
        let room = width.saturating_sub(before).max(LEAST);
        let mut text = String::new();
        if self.heads.iter().any(|head| !head.is_empty()) {
            let heads: Vec<Cell> = self.heads.iter().map(|head| Cell::painted(DIM, head.as_str())).collect();
            self.push_row(&mut text, &heads, &widths, room, brush);
        }
        for row in &self.rows {
            self.push_row(&mut text, row, &widths, room, brush);
        }
        text
    }

    /// How wide the columns before the last one are.
    pub(crate) fn widths(&self) -> Vec<usize> {
        let last = self.heads.len().saturating_sub(1);
        let width = |at: usize| {
            let head = self.heads.get(at).map_or(0, |head| columns(head));
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| columns(&cell.text));
            cells.chain(self.least.get(at).copied()).fold(head, usize::max)
        };
        (0..last).map(width).collect()
    }

    fn push_row(&self, text: &mut String, row: &[Cell], widths: &[usize], room: usize, brush: Brush) {
        let Some((last, cells)) = row.split_last() else { return };
        let lines = if self.wraps { wrap(&last.text, room) } else { vec![fit(&last.text, room)] };
        for (at, line) in lines.iter().enumerate() {
            let mut shown = " ".repeat(self.indent);
            for (cell, width) in cells.iter().zip(widths) {
                let (part, pad) = match at {
                    0 => (
                        brush.paint(cell.style, cell.text.as_str()).to_string(),
                        width.saturating_sub(columns(&cell.text)),
                    ),
                    _ => (String::new(), *width),
                };
                shown.push_str(&part);
                shown.extend(std::iter::repeat_n(' ', pad.saturating_add(GAP)));
            }
            if line.is_empty() {
                shown.truncate(shown.trim_end_matches(' ').len());
            } else {
                shown.push_str(&brush.paint(last.style, line).to_string());
            }
            text.push_str(&shown);
            text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_one_wraps() {
        let mut table = Table::new(["A", "WIDE", "TEXT"]).indented(1);
        table.row(["1".into(), "x".into(), "one two three four five".into()]);
        table.row(["22".into(), "yyyyy".into(), "".into()]);
        let text = table.render(27, Brush::PLAIN);
        assert_eq!(text, " A   WIDE   TEXT\n 1   x      one two three\n            four five\n 22  yyyyy\n");
        assert!(table.cut().render(27, Brush::PLAIN).contains("one two three..."));
    }
}
