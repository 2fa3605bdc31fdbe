//! Where the command writes: how wide it is, whether it shows colours, and whether anybody still reads.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use callgate_core::json::write::must_escape;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The width of whatever is no terminal: text for a file or a pipe is laid out the same wherever it is made.
const PIPED_WIDTH: usize = 100;
/// What is narrower is laid out as if it had this width.
const NARROWEST: usize = 60;
/// Longer lines are hard to read.
const WIDEST: usize = 160;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();

/// Standard output and standard error.
pub(crate) struct Terminal {
    pub(crate) out: Stream,
    pub(crate) err: Stream,
}

impl Terminal {
    /// Those of this process. Colours as `choice` says; where it leaves it open, on a terminal only, and as `NO_COLOR`,
    /// `CLICOLOR` and `CLICOLOR_FORCE` say.
    pub(crate) fn of_process(choice: ColorChoice) -> Self {
        choice.write_global();
        let (out, err) = (io::stdout(), io::stderr());
        Self {
            out: Stream::new(AutoStream::choice(&out), out.is_terminal(), terminal_size::terminal_size_of(&out), out),
            err: Stream::new(AutoStream::choice(&err), err.is_terminal(), terminal_size::terminal_size_of(&err), err),
        }
    }
}

type Size = (terminal_size::Width, terminal_size::Height);

/// One of the two. What can't be written is remembered, and what is written after it is dropped: the command's work does
/// not depend on who reads about it.
pub(crate) struct Stream {
    sink: Box<dyn Write>,
    colour: bool,
    width: usize,
    is_terminal: bool,
    fault: Option<io::Error>,
}

impl Stream {
    fn new(choice: ColorChoice, is_terminal: bool, size: Option<Size>, sink: impl Write + 'static) -> Self {
        let width = match size {
            Some((terminal_size::Width(width), _)) if is_terminal => usize::from(width).clamp(NARROWEST, WIDEST),
            _ => PIPED_WIDTH,
        };
        Self { sink: Box::new(sink), colour: choice != ColorChoice::Never, width, is_terminal, fault: None }
    }

    /// How many columns there are.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// How many columns a result may take. What goes to a file or a pipe is never cut.
    pub(crate) const fn view_width(&self) -> usize {
        if self.is_terminal { self.width } else { usize::MAX }
    }

    /// Whether somebody watches.
    pub(crate) const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// How to paint on this stream.
    pub(crate) const fn brush(&self) -> Brush {
        Brush { colour: self.colour }
    }

    /// Writes the text and hands it on.
    pub(crate) fn print(&mut self, text: &str) {
        if self.fault.is_none() {
            let written = self.sink.write_all(text.as_bytes()).and_then(|()| self.sink.flush());
            self.fault = written.err();
        }
    }

    /// Writes the text and a line break.
    pub(crate) fn line(&mut self, text: impl fmt::Display) {
        self.print(&format!("{text}\n"));
    }

    /// Whether writing is of no use any more.
    pub(crate) const fn is_broken(&self) -> bool {
        self.fault.is_some()
    }

    /// Why something was lost. That nobody reads on (`callgate ... | head`) is no fault.
    pub(crate) fn fault(&self) -> Option<&io::Error> {
        self.fault.as_ref().filter(|fault| fault.kind() != io::ErrorKind::BrokenPipe)
    }
}

/// Paints, or doesn't.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brush {
    colour: bool,
}

impl Brush {
    /// Never paints.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { colour: false };

    /// The text in a style.
    pub(crate) const fn paint<T: fmt::Display>(self, style: Style, text: T) -> Painted<T> {
        Painted { style: if self.colour { style } else { Style::new() }, text }
    }
}

/// A text in a style.
pub(crate) struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Padding counts letters, not what paints them.
        write!(f, "{}", self.style.render())?;
        self.text.fmt(f)?;
        write!(f, "{}", self.style.render_reset())
    }
}

/// The text with nothing in it that a terminal acts on or hides (invariant O3); on one line.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        push_visible(&mut shown, c);
    }
    shown
}

/// A path as people read it: from the current directory, where it lies below it.
pub(crate) fn shown_path(path: &std::path::Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.and_then(|here| path.strip_prefix(here).ok()).filter(|below| !below.as_os_str().is_empty());
    visible(&below.unwrap_or(path).display().to_string())
}

/// As [`visible`]; line breaks and tabs stay.
pub(crate) fn visible_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            _ => push_visible(&mut shown, c),
        }
    }
    shown
}

fn push_visible(shown: &mut String, c: char) {
    match c {
        '"' | '\\' => shown.push(c),
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        _ if must_escape(c) => shown.extend(c.escape_unicode()),
        _ => shown.push(c),
    }
}

/// How many columns a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The text in at most `width` columns, with three dots where it was longer.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(3);
    let mut shown: String = text
        .chars()
        .take_while(|c| {
            let wide = c.width().unwrap_or(0);
            let fits = wide <= room;
            room = room.saturating_sub(wide);
            fits
        })
        .collect();
    shown.push_str("...");
    shown
}

/// The text in lines of at most `width` columns, broken at spaces where there are some. Never empty.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let gap = usize::from(!line.is_empty());
            if columns(&line).saturating_add(gap).saturating_add(columns(word)) <= width {
                line.extend(std::iter::repeat_n(' ', gap));
                line.push_str(word);
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            for c in word.chars() {
                if columns(&line).saturating_add(c.width().unwrap_or(0)) > width {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(c);
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o3_a_text_cannot_act_on_the_terminal() {
        assert_eq!(visible("a\u{1b}[2J\u{202e}b\r\n\t\"c\\"), "a\\u{1b}[2J\\u{202e}b\\r\\n\\t\"c\\");
        assert_eq!(visible_lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
    }

    #[test]
    fn texts_are_brought_into_columns() {
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit("longer", 5), "lo...");
        assert_eq!(columns(&fit("世界世界世界", 8)), 7);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
    }

    #[test]
    fn a_plain_brush_leaves_a_text_as_it_is() {
        assert_eq!(Brush::PLAIN.paint(BAD, "x").to_string(), "x");
        assert_eq!(format!("{:<3}|", Brush::PLAIN.paint(BAD, "x")), "x  |");
        assert_ne!(Brush { colour: true }.paint(BAD, "x").to_string(), "x");
    }
}
