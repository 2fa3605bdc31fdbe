//! Text without any markup: chats, logs, files.

use std::fmt;

use callgate_core::code::Effect;
use callgate_core::json::{Kind, Text, Value};
use callgate_core::outcome::OutcomeType;

use super::value::{
    Label, OneLine, Words, actions, pagination, read, warnings, write_block, write_inline, write_item, write_member,
};
use super::{Renderer, View};

const WORDS: Words = Words { null: "-", yes: "true", no: "false" };

/// Text without any markup, for every channel.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PlainRenderer;

impl PlainRenderer {
    /// The renderer.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Renderer for PlainRenderer {
    fn supports(&self, _: &str) -> bool {
        true
    }

    fn render(&self, view: &View, out: &mut dyn fmt::Write) -> fmt::Result {
        let meta = read(&view.meta);
        let meta = meta.as_ref().map(|meta| meta.value());
        if view.success {
            let done = if view.kind == OutcomeType::Confirmation { "Nothing has run yet." } else { "Done." };
            let mut lines = view.message.as_deref().unwrap_or(done).splitn(2, '\n');
            writeln!(out, "{}", OneLine(lines.next().unwrap_or_default()))?;
            lines.next().map_or(Ok(()), |rest| write_block(rest, "  ", out))?;
            write_data(view, meta, out)?;
        } else {
            writeln!(out, "Error: {}", OneLine(view.error.as_deref().unwrap_or("unknown")))?;
            if let Some(suggestion) = meta.and_then(|meta| meta.get("suggestion")?.as_text()) {
                let suggestion: String = suggestion.chars().collect();
                writeln!(out, "Suggestion: {}", OneLine(&suggestion))?;
            }
            if view.effect == Effect::Unknown {
                writeln!(out, "Whether it took effect is not known.")?;
            }
        }
        meta.map(warnings).into_iter().flatten().try_for_each(|warning| writeln!(out, "Note: {warning}"))
    }
}

fn write_data(view: &View, meta: Option<Value<'_>>, out: &mut dyn fmt::Write) -> fmt::Result {
    let Some(data) = read(&view.data) else {
        return writeln!(out, "\n{}", OneLine(&view.data));
    };
    let data = data.value();
    let of_type = |name: &str| meta.and_then(|meta| meta.get("type")?.as_text()).is_some_and(|kind| kind.eq_str(name));
    match data.kind() {
        Kind::Null => {}
        Kind::Object if data.members().next().is_none() => {}
        Kind::Object => {
            out.write_char('\n')?;
            data.members().try_for_each(|(key, value)| write_member("- ", &Label(key), value, WORDS, out))?;
        }
        Kind::Array => {
            out.write_char('\n')?;
            let mut empty = true;
            for (i, item) in data.items().enumerate() {
                empty = false;
                if of_type("list") || item.kind() == Kind::Object {
                    write_item(item, i.saturating_add(1), WORDS, out)?;
                } else {
                    out.write_str("- ")?;
                    write_inline(item, WORDS, out)?;
                }
                out.write_char('\n')?;
            }
            if empty {
                out.write_str("No results.\n")?;
            }
        }
        Kind::String => {
            out.write_char('\n')?;
            let text: String = data.as_text().into_iter().flat_map(Text::chars).collect();
            write_block(text.strip_suffix('\n').unwrap_or(&text), "  ", out)?;
        }
        Kind::Bool | Kind::Number => {
            out.write_char('\n')?;
            write_inline(data, WORDS, out)?;
            out.write_char('\n')?;
        }
    }
    let Some(meta) = meta else { return Ok(()) };
    if let Some([page, pages, items]) = pagination(meta) {
        writeln!(out, "\nPage {page} of {pages} ({items} items in all)")?;
    }
    for (label, action) in actions(meta) {
        out.write_str("> ")?;
        if let Some(label) = label {
            write_inline(label, WORDS, out)?;
            out.write_str(": ")?;
        }
        write_inline(action, WORDS, out)?;
        out.write_char('\n')?;
    }
    Ok(())
}
