//! A value in its canonical order: each container with its count first, the members of objects sorted by key.

use core::fmt;

use super::edit::{self, Edit, Replacement};
use super::keys::{self, KeySlot};
use super::lex;
use super::limits::MAX_DEPTH;
use super::number::Number;
use super::text::Text;
use super::token;
use super::value::Value;

/// One step through a value in canonical order. What a container holds follows it; its count says where it ends.
#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    Null,
    Bool(bool),
    Number(Number),
    String(Text<'a>),
    /// An array of this many items.
    Array(u32),
    /// An object of this many members, each a `Key` and its value.
    Object(u32),
    Key(Text<'a>),
}

/// The caller's key table is too small for the value; see [`key_capacity`](super::key_capacity).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeysFull;

impl fmt::Display for KeysFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value has more keys than the key table has room for")
    }
}

impl core::error::Error for KeysFull {}

/// Shows `value` to `visit`, clamps applied, members sorted by the UTF-8 bytes of their unescaped keys.
///
/// Iterative. Each container is walked once for each container around it, to count what it holds, so the work is at most
/// [`MAX_DEPTH`] walks of the text and the sorting of each object.
pub(crate) fn visit<'a>(
    value: Value<'a>,
    keys: &mut [KeySlot],
    visit: &mut dyn FnMut(Item<'a>),
) -> Result<(), KeysFull> {
    let (text, mut at, edits) = value.parts();
    let mut walk = Walk { text, edits, keys, used: 0, frames: [Frame::NONE; MAX_DEPTH as usize], depth: 0 };
    loop {
        walk.value(at, visit)?;
        match walk.next_value(visit) {
            Some(next) => at = next,
            None => return Ok(()),
        }
    }
}

/// An open container.
#[derive(Clone, Copy)]
struct Frame {
    object: bool,
    /// How many items or members are still to come.
    left: u32,
    /// Array: behind the last value that was visited. Object: the key table's entry of the next member.
    next: u32,
    /// Where the container's keys start in the key table.
    base: u32,
    /// Behind the closing bracket.
    end: u32,
}

impl Frame {
    const NONE: Self = Self { object: false, left: 0, next: 0, base: 0, end: 0 };
}

struct Walk<'a, 'k> {
    text: &'a str,
    edits: &'a [Edit],
    keys: &'k mut [KeySlot],
    used: usize,
    frames: [Frame; MAX_DEPTH as usize],
    depth: usize,
}

impl<'a> Walk<'a, '_> {
    fn top(&mut self) -> Option<&mut Frame> {
        self.frames.get_mut(..self.depth)?.last_mut()
    }

    /// Goes behind white space, commas and colons.
    fn token(&self, mut at: usize) -> usize {
        while let Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') = self.text.as_bytes().get(at) {
            at += 1;
        }
        at
    }

    /// Visits the scalar at `at`, or opens the container there.
    fn value(&mut self, at: usize, visit: &mut dyn FnMut(Item<'a>)) -> Result<(), KeysFull> {
        let bytes = self.text.as_bytes();
        let (item, end) = match bytes.get(at) {
            Some(b'{') => return self.open_object(at, visit),
            Some(b'[') => {
                self.open_array(at, visit);
                return Ok(());
            }
            Some(b'"') => {
                let (text, end) = Text::at(self.text, at);
                let cut = match edit::at(self.edits, at) {
                    Some(Replacement::Cut { chars }) => text.cut(chars),
                    _ => text,
                };
                (Item::String(cut), end)
            }
            Some(b't') => (Item::Bool(true), at + 4),
            Some(b'f') => (Item::Bool(false), at + 5),
            Some(b'n') => (Item::Null, at + 4),
            _ => {
                let (number, len) = token::checked(bytes.get(at..).unwrap_or_default());
                let clamped = match edit::at(self.edits, at) {
                    Some(Replacement::Number(clamped)) => clamped,
                    _ => number,
                };
                (Item::Number(clamped), at + len)
            }
        };
        visit(item);
        self.went_to(end);
        Ok(())
    }

    /// Tells the innermost container that one of its values ends at `end`.
    fn went_to(&mut self, end: usize) {
        if let Some(frame) = self.top()
            && !frame.object
        {
            frame.next = end as u32;
        }
    }

    fn open_array(&mut self, at: usize, visit: &mut dyn FnMut(Item<'a>)) {
        let bytes = self.text.as_bytes();
        let mut end = self.token(at + 1);
        let mut left = 0;
        while bytes.get(end).is_some_and(|byte| *byte != b']') {
            left += 1;
            end = self.token(lex::checked_value(bytes, end));
        }
        visit(Item::Array(left));
        self.push(Frame { object: false, left, next: (at + 1) as u32, base: self.used as u32, end: (end + 1) as u32 });
    }

    fn open_object(&mut self, at: usize, visit: &mut dyn FnMut(Item<'a>)) -> Result<(), KeysFull> {
        let bytes = self.text.as_bytes();
        let base = self.used;
        let mut end = self.token(at + 1);
        while bytes.get(end).is_some_and(|byte| *byte != b'}') {
            let slot = self.keys.get_mut(self.used).ok_or(KeysFull)?;
            let (key, behind) = Text::at(self.text, end);
            *slot = KeySlot { tag: first_bytes(key), at: end as u32 };
            self.used += 1;
            end = self.token(lex::checked_value(bytes, self.token(behind)));
        }
        let text = self.text;
        let slots = self.keys.get_mut(base..self.used).unwrap_or_default();
        keys::sort(slots, |a, b| a.tag.cmp(&b.tag).then_with(|| keys::compare(text, a.at, b.at)));
        let left = slots.len() as u32;
        visit(Item::Object(left));
        self.push(Frame { object: true, left, next: base as u32, base: base as u32, end: (end + 1) as u32 });
        Ok(())
    }

    fn push(&mut self, frame: Frame) {
        // Checked text is never deeper than the stack.
        if let Some(free) = self.frames.get_mut(self.depth) {
            *free = frame;
            self.depth += 1;
        }
    }

    /// Ends the containers that have nothing left, and says where the next value is; visits its key first.
    fn next_value(&mut self, visit: &mut dyn FnMut(Item<'a>)) -> Option<usize> {
        loop {
            let frame = self.top()?;
            if let Some(left) = frame.left.checked_sub(1) {
                frame.left = left;
                let next = frame.next as usize;
                if !frame.object {
                    return Some(self.token(next));
                }
                frame.next += 1;
                let at = self.keys.get(next)?.at as usize;
                let (key, behind) = Text::at(self.text, at);
                visit(Item::Key(key));
                return Some(self.token(behind));
            }
            let Frame { base, end, .. } = *frame;
            self.used = base as usize;
            self.depth = self.depth.saturating_sub(1);
            self.went_to(end as usize);
        }
    }
}

/// The first four bytes of a key, as a number whose order agrees with the order of the keys.
fn first_bytes(key: Text<'_>) -> u32 {
    if let Some(first) = key.as_plain().and_then(|key| key.as_bytes().first_chunk()) {
        return u32::from_be_bytes(*first);
    }
    let mut bytes = key.bytes();
    (0..4).fold(0, |sum, _| sum << 8 | u32::from(bytes.next().unwrap_or(0)))
}
