//! Text for a terminal, with colours when somebody asks for them.

use std::fmt;

use callgate_core::code::Effect;
use callgate_core::json::{Kind, Text, Value};
use callgate_core::outcome::OutcomeType;

use super::value::{
    Label, OneLine, OneLineOf, Words, actions, pagination, read, warnings, write_block, write_inline, write_item,
    write_member,
};
use super::{Renderer, View};

const WORDS: Words = Words { null: "none", yes: "yes", no: "no" };
const RULE: &str = "----------------------------------------";

/// Text for a terminal, for the channels `cli` and `tui`.
///
/// The only control characters in it are line breaks, tabs inside of texts, and the colours of the renderer itself when they
/// are switched on. Whether the terminal wants colours (`NO_COLOR`, a pipe) is for the host to find out.
#[derive(Clone, Copy, Debug, Default)]
pub struct TerminalRenderer {
    colours: bool,
}

impl TerminalRenderer {
    /// The renderer, without colours.
    #[must_use]
    pub const fn new() -> Self {
        Self { colours: false }
    }

    /// The same with colours, or without.
    #[must_use]
    pub const fn with_colours(mut self, colours: bool) -> Self {
        self.colours = colours;
        self
    }

    const fn paint<D: fmt::Display>(self, colour: &'static str, text: D) -> Painted<D> {
        Painted { colour: if self.colours { Some(colour) } else { None }, text }
    }
}

const GREEN: &str = "32";
const RED: &str = "31";
const YELLOW: &str = "33";
const BOLD: &str = "1";

/// A text in a colour (ECMA-48, SGR).
struct Painted<D> {
    colour: Option<&'static str>,
    text: D,
}

impl<D: fmt::Display> fmt::Display for Painted<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.colour {
            Some(colour) => write!(f, "\u{1b}[{colour}m{}\u{1b}[0m", self.text),
            None => self.text.fmt(f),
        }
    }
}

impl Renderer for TerminalRenderer {
    fn supports(&self, channel: &str) -> bool {
        matches!(channel, "cli" | "tui")
    }

    fn render(&self, view: &View, out: &mut dyn fmt::Write) -> fmt::Result {
        let (data, meta) = (read(&view.data), read(&view.meta));
        let data = data.as_ref().map(|data| data.value());
        let meta = meta.as_ref().map(|meta| meta.value());
        match (view.kind, data) {
            (OutcomeType::Confirmation, Some(data)) => self.confirmation(view, data, out)?,
            (OutcomeType::Blocked, _) => {
                writeln!(out, "{}", self.paint(RED, "BLOCKED"))?;
                self.failure(view, meta, out)?;
            }
            (OutcomeType::Error, _) => self.failure(view, meta, out)?,
            (_, None) => {
                self.done(view, out)?;
                writeln!(out, "{}", OneLine(&view.data))?;
            }
            (_, Some(data)) => {
                let kind = meta.and_then(|meta| meta.get("type")?.as_text());
                let is = |name| kind.is_some_and(|kind| kind.eq_str(name));
                match (data.kind(), meta) {
                    (Kind::Array, Some(meta)) if is("list") => self.list(view, data, meta, out)?,
                    (Kind::Object, Some(meta)) if is("detail") => self.detail(view, data, meta, out)?,
                    _ => {
                        self.done(view, out)?;
                        write_value(data, out)?;
                    }
                }
            }
        }
        for warning in meta.map(warnings).into_iter().flatten() {
            writeln!(out, "{} {warning}", self.paint(YELLOW, "!"))?;
        }
        Ok(())
    }
}

impl TerminalRenderer {
    fn done(self, view: &View, out: &mut dyn fmt::Write) -> fmt::Result {
        let message = view.message.as_deref().unwrap_or("done");
        let mut lines = message.splitn(2, '\n');
        writeln!(out, "{} {}", self.paint(GREEN, "✓"), OneLine(lines.next().unwrap_or_default()))?;
        lines.next().map_or(Ok(()), |rest| write_block(rest, "  ", out))
    }

    fn failure(self, view: &View, meta: Option<Value<'_>>, out: &mut dyn fmt::Write) -> fmt::Result {
        let error = OneLine(view.error.as_deref().unwrap_or("unknown error"));
        write!(out, "{} {error}", self.paint(RED, "✗"))?;
        match view.code {
            Some(code) => writeln!(out, " ({code})")?,
            None => out.write_char('\n')?,
        }
        if let Some(suggestion) = meta.and_then(|meta| meta.get("suggestion")?.as_text()) {
            writeln!(out, "  Suggestion: {}", OneLineOf(suggestion))?;
        }
        match view.effect {
            Effect::None => writeln!(out, "  Nothing was changed."),
            Effect::Done => writeln!(out, "  {}", self.paint(YELLOW, "The tool ran, and took effect.")),
            Effect::Unknown => writeln!(out, "  {}", self.paint(YELLOW, "Whether it took effect is not known.")),
        }
    }

    fn confirmation(self, view: &View, data: Value<'_>, out: &mut dyn fmt::Write) -> fmt::Result {
        let text = |key| data.get(key).and_then(Value::as_text);
        writeln!(out, "{}", self.paint(YELLOW, "CONFIRMATION NEEDED"))?;
        writeln!(out, "  {}", OneLine(view.message.as_deref().unwrap_or_default()))?;
        writeln!(out, "  Nothing has run yet.")?;
        if let (Some(scope), Some(id)) = (text("approver_scope"), text("approval_id")) {
            writeln!(out, "  Somebody else with the scope {} has to approve {}.", OneLineOf(scope), OneLineOf(id))?;
        }
        if let (Some(token), Some(until)) = (text("confirm_token"), text("expires_at")) {
            let token = self.paint(BOLD, OneLineOf(token));
            writeln!(out, "  To go on, repeat the call with the token {token} before {}.", OneLineOf(until))?;
        }
        Ok(())
    }

    fn list(self, view: &View, data: Value<'_>, meta: Value<'_>, out: &mut dyn fmt::Write) -> fmt::Result {
        writeln!(out, "{}", self.paint(BOLD, OneLine(view.message.as_deref().unwrap_or("Results"))))?;
        writeln!(out, "{RULE}")?;
        let mut empty = true;
        for (i, item) in data.items().enumerate() {
            empty = false;
            let mark = match item.get("available").and_then(Value::as_bool) {
                Some(true) => "[OK] ",
                Some(false) => "[--] ",
                None => "",
            };
            write!(out, "  {mark}")?;
            write_item(item, i.saturating_add(1), WORDS, out)?;
            out.write_char('\n')?;
        }
        if empty {
            writeln!(out, "  No results.")?;
        }
        match pagination(meta) {
            Some([page, pages, items]) => writeln!(out, "Page {page}/{pages} ({items} items in all)"),
            None => Ok(()),
        }
    }

    fn detail(self, view: &View, data: Value<'_>, meta: Value<'_>, out: &mut dyn fmt::Write) -> fmt::Result {
        let entity = meta.get("entity").and_then(Value::as_text);
        match (entity, view.message.as_deref()) {
            (Some(entity), Some(message)) => {
                writeln!(out, "{} - {}", self.paint(BOLD, OneLineOf(entity)), OneLine(message))?;
            }
            (Some(entity), None) => writeln!(out, "{}", self.paint(BOLD, OneLineOf(entity)))?,
            (None, message) => writeln!(out, "{}", self.paint(BOLD, OneLine(message.unwrap_or("Details"))))?,
        }
        writeln!(out, "{RULE}")?;
        write_value(data, out)?;
        let mut heading = "Actions:\n";
        for (label, action) in actions(meta) {
            write!(out, "{heading}  ")?;
            heading = "";
            if let Some(label) = label {
                write_inline(label, WORDS, out)?;
                out.write_str(": ")?;
            }
            write_inline(action, WORDS, out)?;
            out.write_char('\n')?;
        }
        Ok(())
    }
}

fn write_value(data: Value<'_>, out: &mut dyn fmt::Write) -> fmt::Result {
    match data.kind() {
        Kind::Null => Ok(()),
        Kind::Object => data.members().try_for_each(|(key, value)| write_member("  ", &Label(key), value, WORDS, out)),
        Kind::Array => data.items().enumerate().try_for_each(|(i, item)| {
            out.write_str("  ")?;
            if item.kind() == Kind::Object {
                write_item(item, i.saturating_add(1), WORDS, out)?;
            } else {
                out.write_str("- ")?;
                write_inline(item, WORDS, out)?;
            }
            out.write_char('\n')
        }),
        Kind::String => {
            let text: String = data.as_text().into_iter().flat_map(Text::chars).collect();
            write_block(text.strip_suffix('\n').unwrap_or(&text), "  | ", out)
        }
        Kind::Bool | Kind::Number => {
            out.write_str("  ")?;
            write_inline(data, WORDS, out)?;
            out.write_char('\n')
        }
    }
}
