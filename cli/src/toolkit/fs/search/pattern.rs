//! What a search looks for, and where it is in a text.

use std::ops::ControlFlow;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;

use crate::toolkit::deadline::Deadline;
use crate::toolkit::error::ToolError;

/// The most characters of a line that are shown.
const SHOWN_CHARS: usize = 400;
/// How many of them come before the match, where a line has to be cut.
const SHOWN_BEFORE: usize = 100;
/// The longest encoding of a character in UTF-8.
const MAX_CHAR_BYTES: usize = 4;
/// How much of a line a regular expression sees, in bytes; also how much text is matched between two looks at the deadline.
///
/// Matching takes time in proportion to the text times the compiled expression. With the worst expression that
/// [`REGEX_BYTES`] admits, this much text took 1.4 seconds where it was measured, so a deadline is overrun by about
/// twice that at most.
const REGEX_LINE_BYTES: usize = 1 << 15;
/// The most memory that a compiled regular expression may take, in bytes. `\b\w{1,10}\b` takes half of it.
const REGEX_BYTES: usize = 1 << 19;
/// How deep groups and repetitions may be nested.
const REGEX_NESTING: u32 = 50;

/// A pattern, compiled.
pub(super) struct Pattern {
    regex: Regex,
    literal: bool,
}

/// The first place in a line that holds the pattern.
pub(super) struct Found {
    /// From 1.
    pub line: u64,
    /// In characters, from 1.
    pub column: u64,
    /// The line, or a part of it.
    pub text: String,
    /// Whether it is only a part.
    pub cut: bool,
}

impl Pattern {
    pub(super) fn new(pattern: &str, is_regex: bool, case_insensitive: bool) -> Result<Self, ToolError> {
        if pattern.is_empty() {
            return Err(ToolError::refused("pattern: is empty"));
        }
        if pattern.contains('\n') && !is_regex {
            return Err(ToolError::refused("pattern: holds a line break; a search looks at one line at a time"));
        }
        let source = if is_regex { pattern.to_owned() } else { regex::escape(pattern) };
        let regex = RegexBuilder::new(&source)
            .case_insensitive(case_insensitive)
            .size_limit(REGEX_BYTES)
            .dfa_size_limit(2 * REGEX_BYTES)
            .nest_limit(REGEX_NESTING)
            .build()
            .map_err(|error| refusal(&source, &error))?;
        Ok(Self { regex, literal: !is_regex })
    }

    /// Hands `found` each line of `text` that holds the pattern, until it breaks. Also tells whether there was a line of which
    /// only a part was looked at.
    pub(super) fn search(
        &self,
        text: &[u8],
        deadline: Deadline<'_>,
        mut found: impl FnMut(Found) -> ControlFlow<()>,
    ) -> Result<(ControlFlow<()>, bool), ToolError> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        // A literal holds no line break, so a text without it has no line with it. That is most of all files.
        if self.literal && !self.regex.is_match(text) {
            return Ok((ControlFlow::Continue(()), false));
        }
        let mut long_line = false;
        let mut unchecked = 0_usize;
        for (line, number) in text.split_inclusive(|byte| *byte == b'\n').zip(1_u64..) {
            unchecked = unchecked.saturating_add(line.len());
            if unchecked >= REGEX_LINE_BYTES {
                deadline.check()?;
                unchecked = 0;
            }
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let seen = if self.literal { line } else { line.get(..REGEX_LINE_BYTES).unwrap_or(line) };
            let Some(hit) = self.regex.find(seen) else {
                long_line |= seen.len() < line.len();
                continue;
            };
            let (before, from) = line.split_at_checked(hit.start()).unwrap_or((line, &[]));
            let (text, cut) = window(before, from);
            let column = chars(before).saturating_add(1);
            if found(Found { line: number, column, text, cut }).is_break() {
                return Ok((ControlFlow::Break(()), long_line));
            }
        }
        Ok((ControlFlow::Continue(()), long_line))
    }
}

/// Says what is wrong with a regular expression without repeating it.
fn refusal(source: &str, error: &regex::Error) -> ToolError {
    if matches!(error, regex::Error::CompiledTooBig(_)) {
        return ToolError::refused("pattern: the regular expression is too large once its repetitions are written out");
    }
    let parsed = ParserBuilder::new().nest_limit(REGEX_NESTING).utf8(false).build().parse(source);
    let (why, at) = match parsed {
        Err(regex_syntax::Error::Parse(error)) => (error.kind().to_string(), error.span().start.column),
        Err(regex_syntax::Error::Translate(error)) => (error.kind().to_string(), error.span().start.column),
        _ => return ToolError::refused("pattern: not a regular expression that can be used here"),
    };
    ToolError::refused(format!("pattern: not a regular expression: {why} (at character {at})"))
}

/// The characters in `bytes`, each run of bytes that is not UTF-8 counted as one.
fn chars(bytes: &[u8]) -> u64 {
    let count =
        |chunk: std::str::Utf8Chunk<'_>| chunk.valid().chars().count() + usize::from(!chunk.invalid().is_empty());
    bytes.utf8_chunks().map(count).fold(0, |sum, count| sum.saturating_add(u64::try_from(count).unwrap_or(u64::MAX)))
}

/// What is shown of a line in which the match is at the start of `from`: the whole of it, or [`SHOWN_CHARS`] around the match.
fn window(before: &[u8], from: &[u8]) -> (String, bool) {
    // Never more than these bytes are decoded, however long the line.
    let most = SHOWN_CHARS * MAX_CHAR_BYTES;
    let near = before.get(before.len().saturating_sub(most)..).unwrap_or(before);
    let near: &[u8] = if near.len() < before.len() { after_split_char(near) } else { near };
    let head: Vec<char> = String::from_utf8_lossy(near).chars().collect();
    let tail: Vec<char> = String::from_utf8_lossy(from.get(..most).unwrap_or(from)).chars().collect();
    let far = near.len() < before.len() || from.len() > most;
    if !far && head.len() + tail.len() <= SHOWN_CHARS {
        return (head.into_iter().chain(tail).collect(), false);
    }
    // As much before the match as it takes to fill the window, but not more than that unless the line ends soon.
    let wanted = SHOWN_BEFORE.max(SHOWN_CHARS.saturating_sub(tail.len()));
    let skip = head.len().saturating_sub(wanted);
    (head.into_iter().skip(skip).chain(tail).take(SHOWN_CHARS).collect(), true)
}

/// `bytes` without the rest of a character that was cut in two at its start.
fn after_split_char(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(MAX_CHAR_BYTES - 1).take_while(|byte| **byte & 0xc0 == 0x80).count();
    bytes.get(rest..).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use callgate_core::time::{Clock, Now};
    use proptest::prelude::*;

    use super::*;

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Now {
            Now::default()
        }
    }

    fn all(pattern: &Pattern, text: &[u8]) -> Vec<(u64, u64, String, bool)> {
        let mut found = Vec::new();
        let result = pattern.search(text, Deadline::never(&Still), |hit| {
            found.push((hit.line, hit.column, hit.text, hit.cut));
            ControlFlow::Continue(())
        });
        assert!(result.unwrap().0.is_continue());
        found
    }

    fn literal(pattern: &str) -> Pattern {
        Pattern::new(pattern, false, false).unwrap()
    }

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let found = all(&literal("x"), "x\r\ngrüx\n\nno\nüx".as_bytes());
        let expected = [(1, 1, "x"), (2, 4, "grüx"), (5, 2, "üx")];
        assert_eq!(found, expected.map(|(line, column, text)| (line, column, text.to_owned(), false)));
    }

    #[test]
    fn a_literal_is_no_expression() {
        assert_eq!(all(&literal("a.c(*"), b"abc\na.c(*").len(), 1);
        assert_eq!(all(&Pattern::new("a.c", true, false).unwrap(), b"abc\na.c").len(), 2);
        assert_eq!(all(&Pattern::new("TODO", false, true).unwrap(), b"todo").len(), 1);
        assert_eq!(all(&Pattern::new("ü", false, true).unwrap(), "Ü".as_bytes()).len(), 1);
    }

    #[test]
    fn anchors_are_those_of_a_line() {
        let pattern = Pattern::new("^b$", true, false).unwrap();
        assert_eq!(all(&pattern, b"ab\r\nb\r\nb c\nb").iter().map(|hit| hit.0).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(all(&Pattern::new("^a", true, false).unwrap(), b"\xef\xbb\xbfa").len(), 1);
    }

    #[test]
    fn a_long_line_is_shown_around_the_match() {
        let line = format!("{}NEEDLE{}", "ä".repeat(1_000), "ö".repeat(1_000));
        let found = all(&literal("NEEDLE"), line.as_bytes());
        let [(1, 1_001, text, true)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(text.chars().count(), 400);
        assert_eq!(text.find("NEEDLE"), Some(200));
        let at_the_end = all(&literal("NEEDLE"), format!("{}NEEDLE", "a".repeat(1_000)).as_bytes());
        assert_eq!(at_the_end[0].2, format!("{}NEEDLE", "a".repeat(394)));
    }

    #[test]
    fn x6_what_is_no_usable_expression_is_refused_without_repeating_it() {
        for (pattern, why) in [
            ("CANARY(", "unclosed group (at character 7)"),
            ("(?=CANARY)", "look-around"),
            ("(CANARY)\\1", "backreferences"),
            ("(CANARY{1000}){1000}", "too large"),
            (&format!("{}CANARY{}", "(".repeat(80), ")".repeat(80)), "nest"),
        ] {
            let error = Pattern::new(pattern, true, false).err().unwrap();
            assert!(error.message.contains(why), "{pattern}: {}", error.message);
            assert!(!error.message.contains("CANARY"), "{}", error.message);
        }
    }

    #[test]
    fn x6_a_regex_sees_the_start_of_a_very_long_line_and_says_so() {
        let line = format!("{}NEEDLE", "a".repeat(REGEX_LINE_BYTES));
        let pattern = Pattern::new("NEEDLE|y", true, false).unwrap();
        let (flow, long_line) =
            pattern.search(line.as_bytes(), Deadline::never(&Still), |_| ControlFlow::Break(())).unwrap();
        assert!(flow.is_continue() && long_line);
        assert_eq!(all(&literal("NEEDLE"), line.as_bytes()).len(), 1);
    }

    proptest! {
        // What is found is what a plain look at each line finds.
        #[test]
        fn a_search_agrees_with_a_plain_one(text in "[ab\u{e9}\r\n]{0,60}", pattern in "[ab\u{e9}]{1,3}") {
            let plain: Vec<_> = text
                .split('\n')
                .zip(1_u64..)
                .filter_map(|(line, number)| {
                    let line = line.strip_suffix('\r').unwrap_or(line);
                    let column = line.split_once(&pattern)?.0.chars().count() as u64 + 1;
                    Some((number, column, line.to_owned(), false))
                })
                .collect();
            prop_assert_eq!(&all(&literal(&pattern), text.as_bytes()), &plain);
            prop_assert_eq!(&all(&Pattern::new(&pattern, true, false).unwrap(), text.as_bytes()), &plain);
        }

        // However long the line and whatever its bytes: never more than the limit, and cut only when it is longer.
        #[test]
        fn x6_what_is_shown_is_bounded(before in prop::collection::vec(any::<u8>(), 0..3_000), from in prop::collection::vec(any::<u8>(), 0..3_000)) {
            let (text, cut) = window(&before, &from);
            let whole = String::from_utf8_lossy(&before).into_owned() + &String::from_utf8_lossy(&from);
            prop_assert!(text.chars().count() <= SHOWN_CHARS);
            prop_assert_eq!(cut, whole.chars().count() > SHOWN_CHARS);
            if !cut {
                prop_assert_eq!(text, whole);
            }
        }
    }
}
