//! Secrets in a free text.

use core::cell::Cell;
use core::fmt;

use super::known::Known;
use super::pairs::{self, Before};
use super::spans::{Span, Spans};
use super::units::{Cursor, Unit};
use super::{REPLACEMENT, Redaction, shapes, urls};
use crate::json::Text;

/// How many steps may be taken for each byte of a text. Far more than an honest text needs; a text that was built to need
/// more is replaced as a whole.
const STEPS_PER_BYTE: u32 = 64;

/// Writes `text` without its secrets to `out`.
pub(super) fn write(text: Text<'_>, redaction: &Redaction<'_>, known: &Known, out: &mut dyn fmt::Write) -> fmt::Result {
    let length = u32::try_from(text.byte_count()).unwrap_or(u32::MAX);
    let visible = length.min(redaction.text_limit);
    let cut = length > visible;
    let Some(spans) = secrets(text, visible, cut, redaction, known) else {
        return out.write_str(REPLACEMENT);
    };
    let mut at = 0_u32;
    let mut spans = spans.iter().peekable();
    let mut inside = false;
    for c in text.chars() {
        let end = u32::try_from(c.len_utf8()).ok().and_then(|len| at.checked_add(len)).unwrap_or(u32::MAX);
        if end > visible {
            break;
        }
        while spans.next_if(|span| span.end <= at).is_some() {
            inside = false;
        }
        if spans.peek().is_some_and(|span| span.start < end) {
            if !inside {
                out.write_str(REPLACEMENT)?;
                inside = true;
            }
        } else {
            out.write_char(c)?;
        }
        at = end;
    }
    if cut {
        write!(out, "[cut: {length} bytes in all]")?;
    }
    Ok(())
}

/// Whether `text` is not written as it is.
pub(super) fn holds_secrets(text: Text<'_>, redaction: &Redaction<'_>, known: &Known) -> bool {
    let length = u32::try_from(text.byte_count()).unwrap_or(u32::MAX);
    length > redaction.text_limit
        || secrets(text, length, false, redaction, known).is_none_or(|spans| spans.iter().next().is_some())
}

/// Where the secrets are in the first `visible` bytes of `text`; `None` when that could not be found out within bounds.
fn secrets(text: Text<'_>, visible: u32, cut: bool, redaction: &Redaction<'_>, known: &Known) -> Option<Spans> {
    let mut spans = Spans::default();
    let work = Cell::new(visible.saturating_add(64).saturating_mul(STEPS_PER_BYTE));
    let mut cursor = Cursor::new(text.chars(), visible, &work);
    let mut before: Option<Unit> = None;
    // A value with an end of its own: what begins in it does not reach beyond it.
    let mut closed = Span::default();
    let mut path = false;
    let mut words = Neighbours::default();
    loop {
        let here = cursor.clone();
        let Some(unit) = cursor.next() else { break };
        if before.is_none_or(|unit| unit.is_space() || unit.is_quote() || matches!(unit.c, '(' | '=')) {
            path = matches!(unit.c, '/' | '\\' | '.' | '~');
        }
        words.step(&here, before, unit);
        if !closed.contains(unit.start) {
            if let Some(span) = shapes::secret(&here, before, cut) {
                spans.add(span);
            }
            if let Some(span) = urls::user_info(&here, before, cut) {
                spans.add(span);
            }
            if unit.is_name() && !before.is_some_and(Unit::is_name) {
                let context = Before { unit: before, word: words.previous.as_ref(), path };
                if let Some(value) = pairs::pair(&here, context, redaction) {
                    spans.add(value.span);
                    if value.closed {
                        closed = value.span;
                    }
                }
            }
        }
        before = Some(unit);
    }
    known.find(text, visible, &mut spans)?;
    (work.get() > 0 && !spans.overflowed()).then_some(spans)
}

/// The word that is being read, and the one that stands a single space before it.
#[derive(Default)]
struct Neighbours<'t> {
    current: Option<Cursor<'t>>,
    previous: Option<Cursor<'t>>,
}

impl<'t> Neighbours<'t> {
    fn step(&mut self, here: &Cursor<'t>, before: Option<Unit>, unit: Unit) {
        let after_name = before.is_some_and(Unit::is_name);
        if unit.is_name() {
            if !after_name {
                self.current = Some(here.clone());
            }
        } else if unit.c == ' ' && after_name {
            self.previous = self.current.take();
        } else {
            self.previous = None;
        }
    }
}
