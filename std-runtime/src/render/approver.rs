//! What an approver is shown of a call: every value that would run, in an alphabet in which nothing can hide.
//!
//! ```text
//! fs.write
//!   path = "notes/a.txt"
//!   content = "first line\n"
//!     "second line"
//!   options.mode = "append"
//! clamped options.max from 5000 to 1000
//! arguments 3fa1...
//! ```
//!
//! A line of the gate begins at the margin, a line of a value does not. Each value that has no parts is a line of its own behind its path.
//! There is nothing but printable ASCII: any other character of a value is written as its number, `\u{202e}`, so that neither
//! a direction mark, nor a zero-width letter, nor a letter that looks like another one passes for something else (invariant D5). Two
//! values that differ are shown differently (invariant D3); secrets are the exception, and the digest of the arguments covers them.

use std::fmt::{self, Write};

use callgate_core::digest::Digest;
use callgate_core::json::{Kind, Text, Value};

use super::value::read;

/// The most bytes that one text is shown in. A longer one is named with its length and SHA-256 instead (invariant D2).
pub const MAX_TEXT_SHOWN: usize = 16 << 10;
/// The most bytes that all values of a call are shown in.
pub const MAX_SHOWN: usize = 64 << 10;
/// The most characters of a text that an agent has worded about its own request (invariant D6).
pub const MAX_AGENT_TEXT: usize = 200;

/// What the view of a call begins with of which not everything is shown. No tool has such a name.
const NOT_WHOLE: &str = "NOT SHOWN WHOLE: ";
const ARGUMENTS: &str = "arguments ";

/// A text in printable ASCII: quotes, backslashes and whatever is beyond is escaped, a line break too.
#[derive(Clone, Copy)]
pub struct Strict<'a>(pub &'a str);

impl fmt::Display for Strict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| put(c, f))
    }
}

/// Tells no content (invariant L1).
impl fmt::Debug for Strict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Strict(..)")
    }
}

/// A text that an agent has worded: in printable ASCII, cut visibly behind [`MAX_AGENT_TEXT`] characters. Whoever shows it says whose
/// words they are, and keeps it apart from what the gate says (invariant D6).
#[derive(Clone, Copy)]
pub struct AgentText<'a>(pub &'a str);

impl fmt::Display for AgentText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        f.write_char('"')?;
        chars.by_ref().take(MAX_AGENT_TEXT).try_for_each(|c| put(c, f))?;
        f.write_char('"')?;
        match chars.count() {
            0 => Ok(()),
            more => write!(f, " and {more} more characters"),
        }
    }
}

/// Tells no content (invariant L1).
impl fmt::Debug for AgentText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentText(..)")
    }
}

fn put(c: char, out: &mut dyn Write) -> fmt::Result {
    match c {
        '"' => out.write_str("\\\""),
        '\\' => out.write_str("\\\\"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        ' '..='~' => out.write_char(c),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)),
    }
}

/// The view of a call of `tool` with these arguments, which are the JSON text of an object; `clamped` says each value that was changed,
/// `said` is what the agent worded about its request, each with what it is about, and `digest` is that of the arguments as they would run.
///
/// Where a text is too long, or all of it, the view says so in its first line, with the bytes that are there and their digest.
#[must_use]
pub fn view(tool: &str, arguments: &str, clamped: &[String], said: &[(&str, &str)], digest: Digest) -> String {
    let mut fields = Fields::default();
    let scanned = read(arguments);
    match &scanned {
        Some(scanned) => fields.value(scanned.value()),
        // The gate wrote it, so it can be read; should it ever not be, nothing of it is guessed at.
        None => fields.hidden("", arguments.len(), &Digest::of_bytes(arguments.as_bytes())),
    }
    if fields.text.len() > MAX_SHOWN {
        fields = Fields { hidden: fields.hidden, ..Fields::default() };
        fields.hidden("", arguments.len(), &Digest::of_bytes(arguments.as_bytes()));
    }
    let mut text = String::new();
    if fields.hidden > 0 {
        text.push_str(NOT_WHOLE);
        text.push_str("what is too long to be read here is named by its length and its SHA-256\n");
    }
    // A string takes everything.
    let _ = writeln!(text, "{}", Strict(tool));
    text.push_str(&fields.text);
    for change in clamped {
        let _ = writeln!(text, "clamped {}", Strict(change));
    }
    for (about, words) in said {
        let _ = writeln!(text, "the agent says, unchecked: {about} {}", AgentText(words));
    }
    let _ = writeln!(text, "{ARGUMENTS}{digest}");
    text
}

/// Whether a view shows every value whole. One that does not is not to be approved unread (invariant D2).
#[must_use]
pub fn is_whole(view: &str) -> bool {
    !view.starts_with(NOT_WHOLE)
}

/// The digest of the arguments that a view names.
#[must_use]
pub fn digest_of(view: &str) -> Option<Digest> {
    view.lines().next_back()?.strip_prefix(ARGUMENTS)?.parse().ok()
}

/// Lines of values.
#[derive(Default)]
struct Fields {
    text: String,
    path: String,
    /// How many values are not shown.
    hidden: usize,
}

impl Fields {
    fn value(&mut self, value: Value<'_>) {
        match value.kind() {
            Kind::Object => {
                let mut empty = true;
                for (key, member) in value.members() {
                    empty = false;
                    self.below(member, |path| push_key(path, key));
                }
                if empty {
                    self.leaf("{}");
                }
            }
            Kind::Array => {
                let mut empty = true;
                for (at, item) in value.items().enumerate() {
                    empty = false;
                    self.below(item, |path| {
                        let _ = write!(path, "[{at}]");
                    });
                }
                if empty {
                    self.leaf("[]");
                }
            }
            Kind::String => {
                if let Some(text) = value.as_text() {
                    self.string(text);
                }
            }
            Kind::Null | Kind::Bool | Kind::Number => {
                let mut text = String::new();
                let _ = value.write_json(&mut text);
                self.leaf(&text);
            }
        }
    }

    fn below(&mut self, value: Value<'_>, step: impl FnOnce(&mut String)) {
        let before = self.path.len();
        step(&mut self.path);
        self.value(value);
        self.path.truncate(before);
    }

    fn leaf(&mut self, text: &str) {
        // What is beyond is not kept: all of it will be named by its length alone.
        if self.text.len() > MAX_SHOWN {
            return;
        }
        let Self { text: lines, path, .. } = self;
        let path = if path.is_empty() { "(all)" } else { path };
        let _ = writeln!(lines, "  {path} = {text}");
    }

    fn string(&mut self, text: Text<'_>) {
        let mut shown = String::from("\"");
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let _ = put(c, &mut shown);
            // A text of several lines is one line below the other, each in quotes of its own.
            if c == '\n' && chars.peek().is_some() {
                shown.push_str("\"\n    \"");
            }
            if shown.len() > MAX_TEXT_SHOWN {
                let text: String = text.chars().collect();
                let path = std::mem::take(&mut self.path);
                self.hidden(&path, text.len(), &Digest::of_bytes(text.as_bytes()));
                self.path = path;
                return;
            }
        }
        shown.push('"');
        self.leaf(&shown);
    }

    fn hidden(&mut self, path: &str, bytes: usize, digest: &Digest) {
        self.hidden = self.hidden.saturating_add(1);
        let path = if path.is_empty() { "(all)" } else { path };
        let _ = writeln!(self.text, "  {path} is not shown: {bytes} bytes, SHA-256 {digest}");
    }
}

/// A key as a step of a path: as it is where it is a plain word, else in quotes.
fn push_key(path: &mut String, key: Text<'_>) {
    if !path.is_empty() {
        path.push('.');
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(word) {
        path.extend(key.chars());
    } else {
        path.push('"');
        for c in key.chars() {
            let _ = put(c, path);
        }
        path.push('"');
    }
}
