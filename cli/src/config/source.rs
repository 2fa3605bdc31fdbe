//! The text of a configuration file, with the way from a byte offset to a line and a column.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A place in a configuration file, for people: both count from 1, the column in characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Location {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A configuration file that was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    file: PathBuf,
    text: String,
}

impl Source {
    pub(super) fn new(file: &Path, text: &str) -> Self {
        Self { file: file.to_owned(), text: text.to_owned() }
    }

    /// The file, as it was named.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where the byte at `offset` stands; the end of the text for an offset beyond it.
    pub(super) fn locate(&self, offset: usize) -> Location {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
        let in_line = before.get(line_start..).unwrap_or_default();
        Location {
            line: before.matches('\n').count().saturating_add(1),
            column: in_line.trim_start_matches('\u{feff}').chars().count().saturating_add(1),
        }
    }

    /// The line with this number, from 1, without its line end.
    pub(super) fn line(&self, number: usize) -> &str {
        let line = self.text.split('\n').nth(number.saturating_sub(1)).unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line).trim_start_matches('\u{feff}')
    }

    /// How many characters of the span stand on the line where it starts; at least 1.
    pub(super) fn width(&self, span: &Range<usize>) -> usize {
        let spanned = self.text.get(span.clone()).unwrap_or_default();
        spanned.split(['\r', '\n']).next().unwrap_or_default().chars().count().max(1)
    }
}

/// The text may hold what its owner would not want in a log, so it isn't shown.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("file", &self.file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_at_either_line_end() {
        let source = Source::new(Path::new("f"), "a = 'é' # x\r\nb = 1\n");
        assert_eq!(source.locate(8), Location { line: 1, column: 8 });
        assert_eq!(source.line(1), "a = 'é' # x");
        assert_eq!(source.locate(14), Location { line: 2, column: 1 });
        assert_eq!(source.locate(999), Location { line: 3, column: 1 });
        assert_eq!(source.line(3), "");
    }

    #[test]
    fn a_byte_order_mark_takes_no_column() {
        let source = Source::new(Path::new("f"), "\u{feff}ab = 1");
        assert_eq!(source.locate(3), Location { line: 1, column: 1 });
        assert_eq!(source.line(1), "ab = 1");
    }
}
