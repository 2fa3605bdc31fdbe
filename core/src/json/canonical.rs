//! A value in its canonical order: each container with its count first, the members of objects sorted by key.

use core::fmt;

use super::edit::{self, Edit, Replacement};
use super::keys::{self, KeySlot};
use super::lex;
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
/// [`MAX_DEPTH`](super::limits::MAX_DEPTH) walks of the text and the sorting of each object.
pub(crate) fn visit<'a>(
    value: Value<'a>,
    keys: &mut [KeySlot],
    visit: &mut dyn FnMut(Item<'a>),
) -> Result<(), KeysFull> {
    let (text, mut at, edits) = value.parts();
    let mut walk = Walk { text, edits, keys, used: 0, depth: 0, objects: 0 };
    loop {
        let next = match walk.value(at, visit)? {
            Went::Into(first) => Some(first),
            Went::Past(end) => walk.next_value(end, visit),
        };
        match next {
            Some(next) => at = next,
            None => return Ok(()),
        }
    }
}

/// Where a value led to.
enum Went {
    /// Into a container, to the first value within it.
    Into(usize),
    /// Behind the value.
    Past(usize),
}

/// A walk keeps one bit for each open container: stacks are short on a device. All else stands in the key table, which holds the members
/// of each open object that are still to come, the next one last. Their tags, which the sorting is done with, are 0; that of the member
/// that comes last is where the object ends.
struct Walk<'a, 'k> {
    text: &'a str,
    edits: &'a [Edit],
    keys: &'k mut [KeySlot],
    used: usize,
    depth: u32,
    /// For each open container, whether it is an object; the innermost is the lowest bit.
    objects: u64,
}

impl<'a> Walk<'a, '_> {
    /// Goes behind white space, commas and colons.
    fn token(&self, mut at: usize) -> usize {
        while let Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') = self.text.as_bytes().get(at) {
            at += 1;
        }
        at
    }

    /// Visits the scalar at `at`, or opens the container there.
    fn value(&mut self, at: usize, visit: &mut dyn FnMut(Item<'a>)) -> Result<Went, KeysFull> {
        let bytes = self.text.as_bytes();
        let (item, end) = match bytes.get(at) {
            Some(b'{') => return self.open_object(at, visit),
            Some(b'[') => return Ok(self.open_array(at, visit)),
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
        Ok(Went::Past(end))
    }

    fn open_array(&mut self, at: usize, visit: &mut dyn FnMut(Item<'a>)) -> Went {
        let bytes = self.text.as_bytes();
        let first = self.token(at + 1);
        let mut end = first;
        let mut count = 0;
        while bytes.get(end).is_some_and(|byte| *byte != b']') {
            count += 1;
            end = self.token(lex::checked_value(bytes, end));
        }
        visit(Item::Array(count));
        if count == 0 {
            return Went::Past(end + 1);
        }
        self.open(false);
        Went::Into(first)
    }

    fn open_object(&mut self, at: usize, visit: &mut dyn FnMut(Item<'a>)) -> Result<Went, KeysFull> {
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
        end += 1;
        let text = self.text;
        let slots = self.keys.get_mut(base..self.used).unwrap_or_default();
        keys::sort(slots, |a, b| b.tag.cmp(&a.tag).then_with(|| keys::compare(text, b.at, a.at)));
        visit(Item::Object(slots.len() as u32));
        let Some((last, others)) = slots.split_first_mut() else { return Ok(Went::Past(end)) };
        last.tag = end as u32;
        others.iter_mut().for_each(|other| other.tag = 0);
        self.open(true);
        Ok(self.member(visit).map_or(Went::Past(end), Went::Into))
    }

    fn open(&mut self, object: bool) {
        self.depth += 1;
        self.objects = self.objects << 1 | u64::from(object);
    }

    /// Visits the key of the next member, and says where its value is.
    fn member(&self, visit: &mut dyn FnMut(Item<'a>)) -> Option<usize> {
        let next = self.keys.get(self.used.checked_sub(1)?)?;
        let (key, behind) = Text::at(self.text, next.at as usize);
        visit(Item::Key(key));
        Some(self.token(behind))
    }

    /// Behind a value that ends at `end`: ends the containers that have nothing left, and says where the next value is; visits its key
    /// first.
    fn next_value(&mut self, mut end: usize, visit: &mut dyn FnMut(Item<'a>)) -> Option<usize> {
        while let Some(around) = self.depth.checked_sub(1) {
            if self.objects & 1 == 0 {
                let next = self.token(end);
                if self.text.as_bytes().get(next).is_some_and(|byte| *byte != b']') {
                    return Some(next);
                }
                end = next + 1;
            } else {
                self.used = self.used.checked_sub(1)?;
                match self.keys.get(self.used)?.tag {
                    0 => return self.member(visit),
                    behind => end = behind as usize,
                }
            }
            self.depth = around;
            self.objects >>= 1;
        }
        None
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
