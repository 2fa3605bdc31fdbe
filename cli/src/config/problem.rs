//! What is wrong with a configuration, written for the person who has to mend it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::source::{Location, Source};

/// The most characters of an offending line that are shown.
const SHOWN_COLUMNS: usize = 120;
/// The most problems that are written out; the rest are counted.
const SHOWN_PROBLEMS: usize = 50;

/// One thing that is wrong: where, what, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Where it stands; `None` when it concerns the file as a whole.
    pub location: Option<Location>,
    /// The entry as a path, such as `rules[0].effect`; empty for the file or its syntax.
    pub entry: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    snippet: Option<Snippet>,
}

/// The offending line, ready to be shown.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Snippet {
    line: String,
    before: usize,
    width: usize,
}

impl Problem {
    /// A problem of the file as a whole.
    pub(super) fn of_file(message: impl Into<String>, help: Option<String>) -> Self {
        Self { location: None, entry: String::new(), message: message.into(), help, snippet: None }
    }

    pub(super) fn at(
        source: &Source,
        span: &Range<usize>,
        entry: impl Into<String>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Self {
        let location = source.locate(span.start);
        let snippet = Snippet::new(source.line(location.line), location.column, source.width(span));
        Self { location: Some(location), entry: entry.into(), message: message.into(), help, snippet: Some(snippet) }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, file: &Path) -> fmt::Result {
        let file = shown_path(file);
        match (self.location, &self.snippet) {
            (Some(location), Some(snippet)) => {
                let number = location.line.to_string();
                let gutter = " ".repeat(number.len());
                writeln!(f, "{file}:{location}: {}", self.message)?;
                writeln!(f, "{gutter} |")?;
                writeln!(f, "{number} | {}", snippet.line)?;
                write!(f, "{gutter} | {}{}", " ".repeat(snippet.before), "^".repeat(snippet.width))?;
                if let Some(help) = &self.help {
                    write!(f, "\n{gutter} = {help}")?;
                }
            }
            _ => {
                write!(f, "{file}: {}", self.message)?;
                if let Some(help) = &self.help {
                    write!(f, "\n  = {help}")?;
                }
            }
        }
        Ok(())
    }
}

impl Snippet {
    /// `column` counts from 1; `width` is in characters. Controls and other characters that a terminal would act on or hide
    /// are written as escapes, so the caret stays under its place and the file can't paint over the message.
    fn new(line: &str, column: usize, width: usize) -> Self {
        // Of a long line only a window is kept, starting a little before the place.
        let skipped = if line.chars().count() > SHOWN_COLUMNS { column.saturating_sub(SHOWN_COLUMNS / 2) } else { 0 };
        let mut shown = String::from(if skipped > 0 { "... " } else { "" });
        let mut place = 0..0;
        let end = column.saturating_add(width);
        for (number, character) in (1..).zip(line.chars()).skip(skipped).take(SHOWN_COLUMNS) {
            if number == column {
                place.start = shown.chars().count();
            }
            push_visible(&mut shown, character);
            if (column..end).contains(&number) {
                place.end = shown.chars().count();
            }
        }
        // A place at the end of the line, where something is missing.
        if place.is_empty() {
            let at_end = shown.chars().count();
            place = at_end..at_end;
        }
        Self { line: shown, before: place.start, width: place.len().max(1) }
    }
}

fn push_visible(out: &mut String, character: char) {
    match character {
        '\t' => out.push(' '),
        ' '..='~' => out.push(character),
        // Letters, less the Hangul fillers, which count as letters and show nothing.
        _ if character.is_alphanumeric() && !matches!(character, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}') => {
            out.push(character);
        }
        _ => out.extend(character.escape_unicode()),
    }
}

/// A text of the file as it may be shown in a message: in back-quotes, short, and with nothing in it that a terminal acts on.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown = String::from("`");
    for character in text.chars().take(SHOWN) {
        push_visible(&mut shown, character);
    }
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown.push('`');
    shown
}

/// A path as it may be shown in a message.
pub(super) fn shown_path(path: &Path) -> String {
    let mut shown = String::new();
    for character in path.to_string_lossy().chars() {
        push_visible(&mut shown, character);
    }
    shown
}

/// Everything that is wrong with one configuration. The program doesn't start with it (invariant F7).
///
/// `Display` writes each problem with its file, line, column, the offending line, and what would be right: plain text, no
/// colour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    file: PathBuf,
    problems: Vec<Problem>,
}

impl ConfigError {
    pub(super) fn new(file: &Path, mut problems: Vec<Problem>) -> Self {
        // An entry that two readers look at is reported once.
        problems.sort_by(|left, right| (left.location, &left.message).cmp(&(right.location, &right.message)));
        problems.dedup();
        Self { file: file.to_owned(), problems }
    }

    pub(super) fn of_file(file: &Path, message: impl Into<String>, help: Option<String>) -> Self {
        Self::new(file, vec![Problem::of_file(message, help)])
    }

    /// The file that is wrong.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The problems, in the order of the file; at least one.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().take(SHOWN_PROBLEMS).enumerate() {
            if number > 0 {
                f.write_str("\n\n")?;
            }
            problem.write(f, &self.file)?;
        }
        match self.problems.len() {
            0 | 1 => Ok(()),
            count if count > SHOWN_PROBLEMS => {
                write!(f, "\n\n{count} problems, the first {SHOWN_PROBLEMS} shown")
            }
            count => write!(f, "\n\n{count} problems"),
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str, span: Range<usize>) -> String {
        let source = Source::new(Path::new("callgate.toml"), text);
        let problem = Problem::at(&source, &span, "x", "is wrong", Some("write it right".into()));
        ConfigError::new(source.file(), vec![problem]).to_string()
    }

    #[test]
    fn a_problem_shows_the_place_and_what_would_be_right() {
        assert_eq!(
            report("a = 1\nroot = 17\n", 13..15),
            "callgate.toml:2:8: is wrong\n  |\n2 | root = 17\n  |        ^^\n  = write it right"
        );
    }

    #[test]
    fn d5_the_file_cannot_paint_over_the_message() {
        let shown = report("a = '\u{1b}[2J\u{202e}é' # \t!", 4..15);
        assert!(shown.contains(r"'\u{1b}[2J\u{202e}é' #  !"), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']));
        assert!(shown.contains(&format!("|     {}", "^".repeat("'\\u{1b}[2J\\u{202e}é'".chars().count()))), "{shown}");
    }

    #[test]
    fn a_place_after_the_last_character_is_shown_there() {
        assert!(report("root =", 6..6).contains("1 | root =\n  |       ^"));
        assert!(report("", 0..0).contains("1 | \n  | ^"));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("a = '{}' wrong", "x".repeat(5_000));
        let at = text.len() - 5;
        let shown = report(&text, at..at + 5);
        assert!(shown.lines().all(|line| line.chars().count() < 160), "{shown}");
        let caret = shown.lines().nth(3).unwrap().find('^').unwrap();
        assert_eq!(shown.lines().nth(2).unwrap().get(caret..), Some("wrong"));
    }
}
