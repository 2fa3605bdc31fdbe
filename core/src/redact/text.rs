//! Secrets in a free text.

use core::fmt;

use super::known::{Known, MAX_KNOWN, Needle};
use super::pairs::Word;
use super::spans::{Span, Spans};
use super::units::{Bounds, Cursor, Unit};
use super::{REPLACEMENT, Redaction, shapes, urls};
use crate::json::Text;

/// How many characters may be read for each byte of a text. Far more than an honest text needs; a text that was built to need
/// more is replaced as a whole.
const READS_PER_BYTE: u32 = 32;

/// Writes `text` without its secrets to `out`.
pub(super) fn write(
    text: Text<'_>,
    redaction: &Redaction<'_>,
    known: &Known<'_>,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    let length = length(text);
    let visible = length.min(redaction.text_limit);
    let search = Search { text, visible, cut: length > visible, key: false, known };
    (redaction.way.search)(search, redaction, Some(out)).map(drop)
}

/// Whether the key of a member is not written as it is.
pub(super) fn key_holds_secrets(text: Text<'_>, redaction: &Redaction<'_>, known: &Known<'_>) -> bool {
    // The usual key: a short word, which only a known secret can be.
    let is_word = |plain: &str| {
        plain.len() < shapes::SHORTEST as usize
            && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if known.is_empty() && text.as_plain().is_some_and(is_word) {
        return false;
    }
    let length = length(text);
    length > redaction.text_limit
        || (redaction.way.search)(Search { text, visible: length, cut: false, key: true, known }, redaction, None)
            .unwrap_or(true)
}

fn length(text: Text<'_>) -> u32 {
    u32::try_from(text.byte_count()).unwrap_or(u32::MAX)
}

/// Writes what is visible of a text, without these stretches, and says where it was cut.
pub(super) fn write_without(search: Search<'_>, spans: &[Span], out: &mut dyn fmt::Write) -> fmt::Result {
    let Search { text, visible, cut, .. } = search;
    match text.as_plain() {
        Some(plain) => write_plain(plain, visible, spans, out)?,
        None => write_chars(text, visible, spans, out)?,
    }
    if cut {
        write!(out, "[cut: {} bytes in all]", length(text))?;
    }
    Ok(())
}

fn write_plain(text: &str, visible: u32, spans: &[Span], out: &mut dyn fmt::Write) -> fmt::Result {
    // From one character boundary to the next; a stretch begins and ends at one.
    let part = |from: u32, to: u32| {
        let (from, mut to) = (from as usize, to as usize);
        while !text.is_char_boundary(to) {
            to = to.saturating_sub(1);
        }
        text.get(from..to).unwrap_or_default()
    };
    let mut at = 0;
    for span in spans {
        out.write_str(part(at, span.start))?;
        out.write_str(REPLACEMENT)?;
        at = span.end;
    }
    out.write_str(part(at, visible))
}

fn write_chars(text: Text<'_>, visible: u32, spans: &[Span], out: &mut dyn fmt::Write) -> fmt::Result {
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
    Ok(())
}

/// What is searched for secrets.
#[derive(Clone, Copy)]
pub(super) struct Search<'s> {
    pub(super) text: Text<'s>,
    /// How many of its first bytes are visible.
    pub(super) visible: u32,
    /// Whether the text goes on behind them.
    pub(super) cut: bool,
    /// Whether it is the key of a member, whose name gives no secret away.
    pub(super) key: bool,
    pub(super) known: &'s Known<'s>,
}

/// How secrets are looked for in texts. Functions and no flag: what a way that is not used needs is not linked.
pub(super) struct Way {
    /// Looks for the secrets in a text, writes it without them where there is an `out`, and tells whether it holds any.
    pub(super) search: Finder,
    /// Lends room for the known secrets of a call.
    pub(super) room: fn(&mut Borrower<'_>) -> fmt::Result,
}

type Finder = fn(Search<'_>, &Redaction<'_>, Option<&mut dyn fmt::Write>) -> Result<bool, fmt::Error>;
/// What is done with the room.
type Borrower<'b> = dyn FnMut(&mut [Needle]) -> fmt::Result + 'b;

/// The fine way: each secret where it is; the whole text when that could not be found out within bounds.
pub(super) const FINE: Way = Way { search: fine, room: |lend| lend(&mut [Needle::NONE; MAX_KNOWN]) };

fn fine(search: Search<'_>, redaction: &Redaction<'_>, out: Option<&mut dyn fmt::Write>) -> Result<bool, fmt::Error> {
    let Search { text, visible, cut, known, .. } = search;
    let bounds = Bounds::new(visible, cut, visible.saturating_add(64).saturating_mul(READS_PER_BYTE));
    let mut spans = Spans::default();
    find(Cursor::new(text.chars(), &bounds), redaction, &mut spans);
    let found = known.find(text, visible, &mut spans);
    let all = found.is_none() || bounds.is_used_up() || spans.overflowed();
    match out {
        Some(out) if all => out.write_str(REPLACEMENT)?,
        Some(out) => write_without(search, spans.as_slice(), out)?,
        None => {}
    }
    Ok(all || !spans.as_slice().is_empty())
}

/// Finds what names and shapes tell, word by word.
fn find(mut cursor: Cursor<'_>, redaction: &Redaction<'_>, spans: &mut Spans) {
    let mut before: Option<Unit> = None;
    let mut path = false;
    let mut searched = 0;
    // Where the last two words begin that are apart by single spaces, the last one first, and where it ends.
    let mut previous: [Option<Cursor<'_>>; 2] = [None, None];
    let mut previous_end = 0;
    while let Some(unit) = cursor.peek() {
        if before.is_none_or(|unit| unit.is_space() || unit.is_quote() || matches!(unit.c, '(' | '=')) {
            path = matches!(unit.c, '/' | '\\' | '.' | '~');
        }
        if !unit.is_name() {
            if unit.c == '/'
                && let Some(span) = urls::user_info(&cursor, before, &mut searched)
            {
                spans.add(span);
            }
            before = cursor.next();
            continue;
        }
        let start = cursor.clone();
        let mut last = unit;
        let mut length = 0_u32;
        let mut dotted = false;
        while let Some(unit) = cursor.next_if(Unit::is_name) {
            last = unit;
            length = length.saturating_add(1);
            dotted |= unit.c == '.';
        }
        if !before.is_some_and(|unit| unit.c == ' ' && unit.start == previous_end) {
            previous = [None, None];
        }
        let word = Word { start: &start, behind: &cursor, last, dotted, previous: &previous, before, path };
        let shaped = if length >= shapes::SHORTEST || cursor.is_cut() { word.shapes(spans) } else { 0 };
        if let Some(span) = shapes::credentials(&start) {
            spans.add(span);
        }
        let value = word.value(redaction);
        previous_end = last.end;
        let [one, _] = previous;
        previous = [Some(start), one];
        before = Some(last);
        cursor.pass_to(shaped);
        if let Some(value) = value {
            spans.add(value.span);
            // What begins in a value with an end of its own does not reach beyond it.
            if value.closed {
                cursor.pass_to(value.span.end);
                before = None;
            }
        }
    }
}

impl Word<'_, '_> {
    /// Adds the secrets that begin in the word because of their shape, and tells where the last of them ends.
    fn shapes(&self, spans: &mut Spans) -> u32 {
        let mut here = self.start.clone();
        let mut before = self.before;
        let mut end = 0;
        // To the end of the word, or to where no more may be read.
        while here.peek().is_some_and(|unit| unit.start < self.behind.at()) {
            if let Some(span) = shapes::secret(&here, before, self.dotted || self.behind.is_cut()) {
                spans.add(span);
                end = span.end;
                here.pass_to(end);
                before = None;
            } else {
                before = here.next();
            }
        }
        end
    }
}
