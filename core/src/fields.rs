//! Fields: which rules concern the value that is being read, and how a field is called in a message.
//!
//! A [`Matcher`] walks along with the events of some arguments and tells which [`FieldRule`]s name the value that just
//! started; a [`Trail`] walks along and says where that value is. Both have fixed room: [`MAX_RULES`] rules, of
//! [`MAX_SEGMENTS`] segments each.

use core::fmt;

use crate::clamp::ClampFault;
use crate::json::write::must_escape;
use crate::json::{Event, SMALL, Text};
use crate::tool::FieldRule;

/// The most rules that one tool may have for its fields.
pub const MAX_RULES: usize = if SMALL { 8 } else { 64 };
/// The most segments that the path of a rule may have, and that a [`Trail`] shows.
pub const MAX_SEGMENTS: usize = if SMALL { 4 } else { 32 };

/// The most characters of a name that a message shows.
const SHOWN_NAME: usize = 64;

/// What is wrong with a [`FieldRule`]. `Display` says how to mend it.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum FieldFault {
    /// There are more than [`MAX_RULES`] rules.
    TooMany,
    /// The path does not start with `/`.
    NoSlash,
    /// The path has a `~` that is neither `~0` nor `~1`.
    Tilde,
    /// The path has more than [`MAX_SEGMENTS`] segments.
    TooDeep,
    /// The rule does nothing.
    Idle,
    /// The clamp concerns the root, which is an object.
    ClampedRoot,
    /// Two clamps have the same path.
    Duplicate,
    /// The clamp can't be used.
    Clamp(ClampFault),
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => {
                write!(f, "there are more than {MAX_RULES} rules for fields; name a container instead of each field")
            }
            Self::NoSlash => {
                f.write_str("the path must be a JSON Pointer such as `/filter/limit`, which starts with `/`")
            }
            Self::Tilde => f.write_str("in a JSON Pointer `~` is written `~0`, and a `/` within a name `~1`"),
            Self::TooDeep => write!(f, "the path has more than {MAX_SEGMENTS} segments"),
            Self::Idle => f.write_str("the rule does nothing; give it a clamp, or mark the field as secret"),
            Self::ClampedRoot => {
                f.write_str("a clamp needs the path of a field; the empty path is the object of all arguments")
            }
            Self::Duplicate => f.write_str("two clamps have this path; merge them into one"),
            Self::Clamp(fault) => write!(f, "{fault}"),
        }
    }
}

impl core::error::Error for FieldFault {}

impl FieldRule<'_> {
    /// Whether the rule can be used. Hosts ask when a tool is registered; [`check`] asks for all rules of one.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), FieldFault> {
        if !(self.path.is_empty() || self.path.starts_with('/')) {
            return Err(FieldFault::NoSlash);
        }
        let stray = |rest: &[u8]| !matches!(rest, [b'0' | b'1', ..]);
        if self.path.as_bytes().split(|byte| *byte == b'~').skip(1).any(stray) {
            return Err(FieldFault::Tilde);
        }
        if segments(self.path) > MAX_SEGMENTS {
            return Err(FieldFault::TooDeep);
        }
        match &self.clamp {
            None if !self.secret => Err(FieldFault::Idle),
            None => Ok(()),
            Some(_) if self.path.is_empty() => Err(FieldFault::ClampedRoot),
            Some(clamp) => clamp.check().map_err(FieldFault::Clamp),
        }
    }
}

/// Whether a tool's rules can be used.
///
/// # Errors
/// The position of the first faulty rule, and its fault.
pub fn check(rules: &[FieldRule<'_>]) -> Result<(), (usize, FieldFault)> {
    let mut rest = rules;
    let mut position = 0usize;
    while let Some((rule, others)) = rest.split_first() {
        rule.check().map_err(|fault| (position, fault))?;
        let twin = |other: &FieldRule<'_>| other.clamp.is_some() && other.path == rule.path;
        if rule.clamp.is_some() && others.iter().any(twin) {
            return Err((position, FieldFault::Duplicate));
        }
        if position >= MAX_RULES {
            return Err((position, FieldFault::TooMany));
        }
        rest = others;
        position = position.saturating_add(1);
    }
    Ok(())
}

/// Tells, event by event, which rules name the value that starts. Give it every event of the arguments, in order.
///
/// A segment `*` stands for every item of an array and for every member of an object.
#[derive(Clone, Debug)]
pub struct Matcher<'r> {
    rules: &'r [FieldRule<'r>],
    /// Into how many of the open containers each rule leads, from the root's on. Kept so, and not as a set for each container: a stack
    /// is short on a device.
    reached: [u8; MAX_RULES],
    /// For each open container, the root's first: the item that comes next, if it is an array.
    items: [u32; MAX_SEGMENTS],
    /// Which of them are arrays, as bits, the root's lowest.
    arrays: u32,
    /// How many containers are open.
    depth: u32,
    /// The rules that lead into the innermost one.
    leading: Set,
    /// The rules that lead to the member whose key was read last.
    member: Way,
}

/// Rules as bits, the first rule's lowest.
type Set = u64;

impl<'r> Matcher<'r> {
    /// A matcher before the first event.
    ///
    /// # Errors
    /// [`FieldFault::TooMany`] for more than [`MAX_RULES`] rules, which [`check`] refuses when a tool is registered.
    pub fn new(rules: &'r [FieldRule<'r>]) -> Result<Self, FieldFault> {
        if rules.len() > MAX_RULES {
            return Err(FieldFault::TooMany);
        }
        let (reached, items) = ([0; MAX_RULES], [0; MAX_SEGMENTS]);
        Ok(Self { rules, reached, items, arrays: 0, depth: 0, leading: 0, member: Way::default() })
    }

    /// Takes the next event. When a value starts with it, gives the rules that name this value; else none.
    pub fn step(&mut self, event: &Event<'_>) -> Matches<'r> {
        let ending = match event {
            Event::Key(key) => {
                self.member = self.follow(|rest| names_member(rest, *key));
                0
            }
            Event::EndArray | Event::EndObject => {
                self.depth = self.depth.saturating_sub(1);
                self.close();
                0
            }
            value => {
                let Way { leading, ending } = self.way();
                match value {
                    Event::StartArray => self.open(leading, true),
                    Event::StartObject => self.open(leading, false),
                    _ => {}
                }
                ending
            }
        };
        Matches { rules: self.rules, set: ending }
    }

    /// Opens a container into which these rules lead. Deeper than a path can be long, none does.
    fn open(&mut self, leading: Set, array: bool) {
        let level = self.depth;
        self.depth = level.saturating_add(1);
        self.leading = 0;
        let Some(item) = self.items.get_mut(level as usize) else { return };
        *item = 0;
        let bit = 1u32.checked_shl(level).unwrap_or_default();
        self.arrays = if array { self.arrays | bit } else { self.arrays & !bit };
        if leading != 0 {
            self.leading = leading;
            let depth = reach(self.depth);
            for (position, (reached, _)) in self.reached.iter_mut().zip(self.rules).enumerate() {
                if leading >> position & 1 == 1 {
                    *reached = depth;
                }
            }
        }
    }

    /// Forgets what led into the container that ends here: the innermost one is now the one around it.
    fn close(&mut self) {
        let depth = reach(self.depth);
        self.leading = 0;
        for (position, (reached, _)) in self.reached.iter_mut().zip(self.rules).enumerate() {
            *reached = (*reached).min(depth);
            if *reached == depth && depth > 0 {
                self.leading |= 1 << position;
            }
        }
    }

    /// The item that comes next in the innermost container, which is counted with that; none in an object.
    fn next_item(&mut self) -> Option<u32> {
        let level = self.depth.checked_sub(1)?;
        let is_array = self.arrays.checked_shr(level)? & 1 == 1;
        let item = self.items.get_mut(level as usize).filter(|_| is_array)?;
        let next = *item;
        *item = next.saturating_add(1);
        Some(next)
    }

    /// The rules that lead to the value that starts now.
    fn way(&mut self) -> Way {
        if self.depth == 0 {
            let mut way = Way::default();
            for (bit, rule) in each(self.rules, Set::MAX) {
                way.add(bit, rule.path.is_empty());
            }
            return way;
        }
        match self.next_item() {
            Some(item) => self.follow(|rest| names_item(rest, item)),
            None => core::mem::take(&mut self.member),
        }
    }

    /// How those that lead into the innermost container go on whose next segment fits. `fits` gets the path from that segment on, and
    /// tells what is left of it behind the segment.
    fn follow(&self, fits: impl Fn(&'r [u8]) -> Option<&'r [u8]>) -> Way {
        let mut way = Way::default();
        if self.leading != 0 {
            for (bit, rule) in each(self.rules, self.leading) {
                if let Some(rest) = from_segment(rule.path, self.depth as usize).and_then(&fits) {
                    way.add(bit, rest.is_empty());
                }
            }
        }
        way
    }
}

/// So many open containers, as the matcher counts those that a rule leads into.
fn reach(depth: u32) -> u8 {
    depth.try_into().unwrap_or(u8::MAX)
}

/// The rules that lead to a value, or into it.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Those that go on within it.
    leading: Set,
    /// Those that name it.
    ending: Set,
}

impl Way {
    const fn add(&mut self, bit: Set, ends: bool) {
        if ends {
            self.ending |= bit;
        } else {
            self.leading |= bit;
        }
    }
}

/// The rules in a set, each with its bit.
fn each<'r>(rules: &'r [FieldRule<'r>], set: Set) -> impl Iterator<Item = (Set, &'r FieldRule<'r>)> + Clone {
    let mut rest = set;
    core::iter::from_fn(move || {
        let position = usize::try_from(rest.trailing_zeros()).ok()?;
        let bit = rest & rest.wrapping_neg();
        rest &= !bit;
        rules.get(position).filter(|_| bit != 0).map(|rule| (bit, rule))
    })
}

/// The rules that name one value.
#[derive(Clone, Copy, Debug)]
pub struct Matches<'r> {
    rules: &'r [FieldRule<'r>],
    set: Set,
}

impl<'r> Matches<'r> {
    /// The rules, in the order in which the tool declares them.
    pub fn iter(self) -> impl Iterator<Item = &'r FieldRule<'r>> + Clone {
        each(self.rules, self.set).map(|(_, rule)| rule)
    }

    /// Whether no rule names the value.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.set == 0
    }

    /// Whether the value is a secret, and all within it. The events within it tell nothing of that.
    #[must_use]
    pub fn secret(self) -> bool {
        self.iter().any(|rule| rule.secret)
    }
}

// Paths are taken apart as bytes: `str::split` leaves a way to panic in the program.

/// How many segments a path has.
fn segments(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

/// Whether a path names members of the root alone.
pub(crate) fn is_top_level(path: &str) -> bool {
    segments(path) == 1
}

/// Whether a path names this member of the root.
#[cfg_attr(not(callgate_small), inline)]
pub(crate) fn names_top_level(path: &str, key: Text<'_>) -> bool {
    // Most keys differ in their first byte from what is looked for.
    if let [b'/', first, rest @ ..] = path.as_bytes()
        && !matches!(first, b'*' | b'~' | b'/')
        && let Some([start, others @ ..]) = key.as_plain().map(str::as_bytes)
    {
        if start != first {
            return false;
        }
        // Of one length: what differs is another name, unless the path says it by an escape.
        if rest.len() == others.len() && !rest.iter().any(|byte| matches!(byte, b'~' | b'/')) {
            return rest == others;
        }
    }
    from_segment(path, 1).and_then(|rest| names_member(rest, key)).is_some_and(<[u8]>::is_empty)
}

/// The path from its `nth` segment on, counted from 1; none when it has fewer.
fn from_segment(path: &str, nth: usize) -> Option<&[u8]> {
    let mut rest = path.as_bytes();
    for _ in 0..nth {
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        (_, rest) = rest.split_at_checked(slash.saturating_add(1))?;
    }
    Some(rest)
}

/// The first segment of what is left of a path, and what is left behind it: nothing, or a slash and more.
fn first_segment(rest: &[u8]) -> (&[u8], &[u8]) {
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    rest.split_at_checked(end).unwrap_or((rest, &[]))
}

/// What is left behind the first segment, if that names the member.
fn names_member<'r>(rest: &'r [u8], key: Text<'_>) -> Option<&'r [u8]> {
    // Most keys differ in their first byte from what is looked for.
    if let (Some(plain), Some(first)) = (key.as_plain(), rest.first())
        && !matches!(first, b'*' | b'~' | b'/')
        && plain.as_bytes().first() != Some(first)
    {
        return None;
    }
    let (segment, behind) = first_segment(rest);
    let fits = segment == b"*"
        || match key.as_plain() {
            Some(plain) if !segment.contains(&b'~') => plain.as_bytes() == segment,
            _ => unescaped(segment).eq(key.bytes()),
        };
    fits.then_some(behind)
}

/// What is left behind the first segment, if that names the item.
fn names_item(rest: &[u8], item: u32) -> Option<&[u8]> {
    let (segment, behind) = first_segment(rest);
    // As RFC 6901 has it: digits alone, no leading zero.
    let number = segment.iter().try_fold(0u32, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { number.checked_mul(10)?.checked_add(u32::from(digit)) }
    });
    let fits = segment == b"*" || number == Some(item) && (segment.len() == 1 || !matches!(segment, [] | [b'0', ..]));
    fits.then_some(behind)
}

/// A segment of a JSON Pointer with its escapes resolved. A `~` that starts none stands for itself.
fn unescaped(segment: &[u8]) -> impl Iterator<Item = u8> {
    // By hand: the adapter that looks ahead leaves a way to panic in a small program.
    let mut rest = segment;
    core::iter::from_fn(move || {
        let (byte, behind) = match rest {
            [b'~', b'0', behind @ ..] => (b'~', behind),
            [b'~', b'1', behind @ ..] => (b'/', behind),
            [byte, behind @ ..] => (*byte, behind),
            [] => return None,
        };
        rest = behind;
        Some(byte)
    })
}

/// One step on the way to a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Segment<'a> {
    /// Into the member of this name.
    Member(Text<'a>),
    /// Into this item of an array.
    Item(u32),
}

impl Segment<'_> {
    pub(crate) fn write(self, out: &mut dyn fmt::Write, first: bool) -> fmt::Result {
        match self {
            Self::Member(name) => write_key(out, name.chars(), first),
            Self::Item(item) => write!(out, "[{item}]"),
        }
    }
}

/// Where the value is that started last. `Display` writes the field's path, such as `filter.limit` or `rows[3].price`;
/// nothing for the root, and `...` for what is deeper than [`MAX_SEGMENTS`]. Give it every event of the arguments, in order.
///
/// Names that are not plain are quoted, and what is invisible in them is escaped (invariant D5): `["a b"].x`.
#[derive(Clone, Debug)]
pub struct Trail<'a> {
    segments: [Option<Segment<'a>>; MAX_SEGMENTS],
    /// How many containers are open.
    depth: usize,
    /// Whether the last event started a container, whose own path ends before its first segment.
    entered: bool,
}

impl Default for Trail<'_> {
    fn default() -> Self {
        Self { segments: [None; MAX_SEGMENTS], depth: 0, entered: false }
    }
}

impl<'a> Trail<'a> {
    /// Takes the next event.
    pub fn step(&mut self, event: &Event<'a>) {
        self.entered = false;
        match event {
            Event::Key(key) => self.set(Some(Segment::Member(*key))),
            Event::EndArray | Event::EndObject => {
                self.depth = self.depth.saturating_sub(1);
            }
            value => {
                if let Some(Some(Segment::Item(item))) = self.top() {
                    // Counted from -1, so that the first value gets 0.
                    *item = item.wrapping_add(1);
                }
                if matches!(value, Event::StartArray | Event::StartObject) {
                    self.depth = self.depth.saturating_add(1);
                    self.entered = true;
                    self.set(matches!(value, Event::StartArray).then_some(Segment::Item(u32::MAX)));
                }
            }
        }
    }

    fn top(&mut self) -> Option<&mut Option<Segment<'a>>> {
        self.segments.get_mut(self.depth.checked_sub(1)?)
    }

    fn set(&mut self, segment: Option<Segment<'a>>) {
        if let Some(top) = self.top() {
            *top = segment;
        }
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if self.entered { self.depth.saturating_sub(1) } else { self.depth };
        for (nth, segment) in self.segments.iter().take(shown).flatten().enumerate() {
            segment.write(f, nth == 0)?;
        }
        if shown > MAX_SEGMENTS { f.write_str("...") } else { Ok(()) }
    }
}

/// Writes the step into a member: `.name` (without the point when it comes first), or `["odd name"]`. What is invisible is
/// escaped (invariant D5), and a long name is cut.
///
/// # Errors
/// Those of `out`.
pub fn write_key(
    out: &mut (impl fmt::Write + ?Sized),
    name: impl Iterator<Item = char> + Clone,
    first: bool,
) -> fmt::Result {
    if is_plain(name.clone()) {
        if !first {
            out.write_char('.')?;
        }
        write_cut(out, name)
    } else {
        out.write_char('[')?;
        write_quoted(out, name)?;
        out.write_char(']')
    }
}

/// Writes a name that somebody chose: as it is when it is plain, else quoted. What is invisible is escaped (invariant D5),
/// and a long name is cut.
///
/// # Errors
/// Those of `out`.
pub fn write_name(out: &mut (impl fmt::Write + ?Sized), name: impl Iterator<Item = char> + Clone) -> fmt::Result {
    if is_plain(name.clone()) { write_cut(out, name) } else { write_quoted(out, name) }
}

fn is_plain(mut name: impl Iterator<Item = char> + Clone) -> bool {
    name.clone().next().is_some() && name.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$'))
}

fn write_quoted(out: &mut (impl fmt::Write + ?Sized), name: impl Iterator<Item = char>) -> fmt::Result {
    out.write_char('"')?;
    write_cut(out, name)?;
    out.write_char('"')
}

/// Writes a name, visible to the last character, and no more of it than anybody reads.
fn write_cut(out: &mut (impl fmt::Write + ?Sized), name: impl Iterator<Item = char>) -> fmt::Result {
    for (nth, c) in name.enumerate() {
        if nth == SHOWN_NAME {
            return out.write_str("...");
        }
        match c {
            '"' | '\\' => {
                out.write_char('\\')?;
                out.write_char(c)?;
            }
            other if must_escape(other) => write!(out, "\\u{{{:x}}}", u32::from(other))?,
            other => out.write_char(other)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
