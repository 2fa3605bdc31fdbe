//! The strict check of a whole JSON text (RFC 8259).

use super::error::{ReadError, ReadErrorKind};
use super::event::Event;
use super::keys::{self, KeySlot};
use super::lex::{self, StringSpan};
use super::limits::{Limits, MAX_DEPTH, SMALL};
use super::number::Unfit;
use super::text::Text;
use super::token::{self, Token};
use super::value::Value;

/// A JSON text that passed [`scan`]. There is no other way to make one, so whatever reads a `Scanned` reads checked text.
#[derive(Clone, Copy)]
pub struct Scanned<'a> {
    text: &'a str,
}

impl<'a> Scanned<'a> {
    /// The text `{}`.
    pub(crate) const EMPTY_OBJECT: Self = Self { text: "{}" };

    /// A text that passed [`scan`] before. For this crate's stages, which keep the text elsewhere in between.
    pub(crate) const fn reread(text: &'a str) -> Self {
        Self { text }
    }

    /// The text, as it was given.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.text
    }

    /// The value that the text stands for.
    #[must_use]
    pub fn value(self) -> Value<'a> {
        Value::root(self, &[])
    }
}

impl core::fmt::Debug for Scanned<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Scanned(..)")
    }
}

/// Checks one whole JSON text: grammar, UTF-8, escapes, numbers, duplicate keys and limits, everywhere in the text
/// (invariants S1, S2, S4, S5). Iterative; allocates nothing; the work is proportional to the text, times at most the
/// logarithm of the members of one object.
///
/// `keys` is scratch: [`key_capacity`](super::key_capacity) says how much always suffices; its content before and after
/// means nothing.
///
/// ```
/// use callgate_core::json::{self, KeySlot, Limits, ReadErrorKind};
/// let mut keys = [KeySlot::default(); 8];
/// assert!(json::scan(br#"{"a": [1, 2.5, "x"]}"#, &mut keys, &Limits::DEFAULT).is_ok());
/// let refused = json::scan(br#"{"a": 1, "\u0061": 2}"#, &mut keys, &Limits::DEFAULT).unwrap_err();
/// assert_eq!((refused.at, refused.kind), (9, ReadErrorKind::DuplicateKey));
/// ```
///
/// # Errors
/// Says where and why the text was refused. Reaching a limit refuses it too (invariant F5).
pub fn scan<'a>(text: &'a [u8], keys: &mut [KeySlot], limits: &Limits) -> Result<Scanned<'a>, ReadError> {
    if SMALL {
        return scan_watched(text, keys, limits, &mut Seen(None));
    }
    scan_watched(text, keys, limits, &mut Nobody)
}

/// Sees the tokens of a text while it is scanned, so that what can be told from them needs no second walk. What follows may
/// turn out to be malformed yet: nothing that was seen counts before the scan has passed.
pub(crate) trait Watch<'a> {
    /// Whether anything is looked at. Where it is false, no event is made.
    const LOOKS: bool = true;

    /// Sees the token at `at`: the events are those that [`Events`](super::Events) gives afterwards, without clamps.
    fn see(&mut self, at: u32, event: Event<'a>);
}

/// Looks at nothing.
pub(crate) struct Nobody;

impl Watch<'_> for Nobody {
    const LOOKS: bool = false;

    fn see(&mut self, _at: u32, _event: Event<'_>) {}
}

/// Somebody or nobody, as a value: so that a small gate has one scanner, and not one for each who watches.
pub(crate) struct Seen<'s, 'a>(pub(crate) Option<&'s mut dyn FnMut(u32, Event<'a>)>);

impl<'a> Watch<'a> for Seen<'_, 'a> {
    fn see(&mut self, at: u32, event: Event<'a>) {
        if let Some(see) = &mut self.0 {
            see(at, event);
        }
    }
}

/// As [`scan`], with somebody who watches.
pub(crate) fn scan_watched<'a, W: Watch<'a>>(
    text: &'a [u8],
    keys: &mut [KeySlot],
    limits: &Limits,
    watch: &mut W,
) -> Result<Scanned<'a>, ReadError> {
    check_length(text, limits)?;
    match core::str::from_utf8(text) {
        Ok(text) => scan_text(text, keys, limits, watch),
        Err(error) => Err(ReadError { at: error.valid_up_to() as u32, kind: ReadErrorKind::NotUtf8 }),
    }
}

fn check_length(text: &[u8], limits: &Limits) -> Result<(), ReadError> {
    if text.len() <= limits.bytes as usize {
        return Ok(());
    }
    Err(ReadError { at: limits.bytes, kind: ReadErrorKind::TooLong { max: limits.bytes } })
}

/// As [`scan_watched`], for bytes that are known to be UTF-8.
pub(crate) fn scan_text<'a, W: Watch<'a>>(
    text: &'a str,
    keys: &mut [KeySlot],
    limits: &Limits,
    watch: &mut W,
) -> Result<Scanned<'a>, ReadError> {
    check_length(text.as_bytes(), limits)?;
    let refuse = |at, kind| Err(ReadError { at, kind });
    if text.starts_with('\u{feff}') {
        return refuse(0, ReadErrorKind::ByteOrderMark);
    }
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        keys,
        used: 0,
        nodes: 0,
        depth: 0,
        objects: 0,
        base: 0,
        bases: [0; MAX_DEPTH as usize],
        limits,
        watch,
    };
    match scanner.run() {
        Ok(()) => Ok(Scanned { text }),
        Err(kind) => refuse(scanner.at as u32, kind),
    }
}

/// Up to this number of members, a new key is compared with each earlier key of its object. Larger objects are sorted
/// when they end.
const FEW_MEMBERS: usize = 16;

struct Scanner<'a, 'k, W> {
    text: &'a str,
    bytes: &'a [u8],
    /// The next byte; when an error is returned, the byte it concerns.
    at: usize,
    keys: &'k mut [KeySlot],
    /// How many of `keys` hold the keys of open objects, outermost first.
    used: usize,
    nodes: u32,
    /// How many arrays and objects are open.
    depth: u16,
    /// For each of them, whether it is an object; the innermost is the lowest bit.
    objects: u64,
    /// Where the keys of the innermost start in `keys`.
    base: usize,
    /// For each of them, where the keys of the one around it start.
    bases: [u32; MAX_DEPTH as usize],
    limits: &'k Limits,
    watch: &'k mut W,
}

/// Whether a value was read to its end, or an array or object was opened in which a value must follow.
enum Progress {
    Ended,
    Opened,
}

type Check<T = ()> = Result<T, ReadErrorKind>;

impl<'a, W: Watch<'a>> Scanner<'a, '_, W> {
    /// Shows a token to whoever watches.
    #[inline(always)]
    fn show(&mut self, at: usize, event: impl FnOnce(&Self) -> Event<'a>) {
        if W::LOOKS {
            let event = event(self);
            self.watch.see(at as u32, event);
        }
    }

    /// The string that was read.
    fn text_of(&self, span: StringSpan) -> Text<'a> {
        Text::new(self.text.get(span.start..span.end).unwrap_or_default(), span.escaped)
    }

    fn run(&mut self) -> Check {
        loop {
            if matches!(self.value()?, Progress::Opened) {
                continue;
            }
            if !self.next_value()? {
                return Ok(());
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        self.at = lex::skip_space(self.bytes, self.at);
    }

    /// `kind`, or that the text ends here.
    fn expected(&self, kind: ReadErrorKind) -> ReadErrorKind {
        if self.at < self.bytes.len() { kind } else { ReadErrorKind::UnexpectedEnd }
    }

    /// Reads the value that must start here, or the start of it.
    fn value(&mut self) -> Check<Progress> {
        self.skip_space();
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > self.limits.nodes {
            return Err(ReadErrorKind::TooManyNodes { max: self.limits.nodes });
        }
        let at = self.at;
        match self.peek() {
            Some(b'"') => {
                let span = self.string()?;
                self.show(at, |scanner| Event::String(scanner.text_of(span)));
            }
            Some(b'{') => {
                self.open(true)?;
                if self.peek() != Some(b'}') {
                    self.key()?;
                    return Ok(Progress::Opened);
                }
                self.close()?;
            }
            Some(b'[') => {
                self.open(false)?;
                if self.peek() != Some(b']') {
                    return Ok(Progress::Opened);
                }
                self.close()?;
            }
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                self.show(at, |scanner| Event::Number(token::checked(scanner.bytes.get(at..).unwrap_or_default()).0));
            }
            Some(b't') => {
                self.word(b"true")?;
                self.show(at, |_| Event::Bool(true));
            }
            Some(b'f') => {
                self.word(b"false")?;
                self.show(at, |_| Event::Bool(false));
            }
            Some(b'n') => {
                self.word(b"null")?;
                self.show(at, |_| Event::Null);
            }
            _ => return Err(self.expected(ReadErrorKind::ExpectedValue)),
        }
        Ok(Progress::Ended)
    }

    /// After a value: ends arrays and objects, until one goes on with another value (true) or the text ends (false).
    fn next_value(&mut self) -> Check<bool> {
        loop {
            self.skip_space();
            if self.depth == 0 {
                return if self.at < self.bytes.len() { Err(ReadErrorKind::TrailingBytes) } else { Ok(false) };
            }
            let in_object = self.objects & 1 != 0;
            match (self.peek(), in_object) {
                (Some(b','), false) => {
                    self.at += 1;
                    return Ok(true);
                }
                (Some(b','), true) => {
                    self.at += 1;
                    self.skip_space();
                    self.key()?;
                    return Ok(true);
                }
                (Some(b'}'), true) | (Some(b']'), false) => self.close()?,
                _ => return Err(self.expected(ReadErrorKind::ExpectedCommaOrEnd)),
            }
        }
    }

    /// Opens an array or object and goes to what it holds first.
    fn open(&mut self, object: bool) -> Check {
        let max = self.limits.depth.min(MAX_DEPTH);
        match self.bases.get_mut(usize::from(self.depth)) {
            Some(around) if self.depth < max => *around = self.base as u32,
            _ => return Err(ReadErrorKind::TooDeep { max }),
        }
        self.base = self.used;
        self.depth += 1;
        self.objects = self.objects << 1 | u64::from(object);
        self.show(self.at, |_| if object { Event::StartObject } else { Event::StartArray });
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    /// Ends the innermost array or object, at its closing bracket.
    fn close(&mut self) -> Check {
        if self.used > self.base + FEW_MEMBERS {
            self.check_many_keys()?;
        }
        self.used = self.base;
        self.depth = self.depth.saturating_sub(1);
        self.base = self.bases.get(usize::from(self.depth)).map_or(0, |around| *around as usize);
        self.show(self.at, |scanner| if scanner.objects & 1 != 0 { Event::EndObject } else { Event::EndArray });
        self.objects >>= 1;
        self.at += 1;
        Ok(())
    }

    /// Reads a key and the colon behind it.
    fn key(&mut self) -> Check {
        let at = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.expected(ReadErrorKind::ExpectedKey));
        }
        let span = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.expected(ReadErrorKind::ExpectedColon));
        }
        self.at += 1;
        // Behind the colon, so that a text with fewer colons than keys is not taken for one with too many keys.
        self.note_key(at, span).inspect_err(|_| self.at = at)?;
        self.show(at, |scanner| Event::Key(scanner.text_of(span)));
        Ok(())
    }

    /// Notes the key of the innermost object whose opening quote stands at `at`, and compares it with the earlier ones
    /// while they are few.
    fn note_key(&mut self, at: usize, span: StringSpan) -> Check {
        let inside = self.bytes.get(span.start..span.end).unwrap_or_default();
        let (len, tag) = if span.escaped {
            let (text, _) = Text::at(self.text, at);
            let len = text.byte_count();
            (len, keys::hash_bytes(len, text.bytes()))
        } else {
            (inside.len(), keys::hash_plain(inside))
        };
        if len > self.limits.key_bytes as usize {
            return Err(ReadErrorKind::KeyTooLong { max: self.limits.key_bytes });
        }
        let earlier = self.keys.get(self.base..self.used).unwrap_or_default();
        if earlier.len() >= self.limits.members as usize {
            return Err(ReadErrorKind::TooManyMembers { max: self.limits.members });
        }
        if earlier.len() < FEW_MEMBERS {
            for slot in earlier {
                if slot.tag == tag && keys::compare(self.text, slot.at, at as u32).is_eq() {
                    return Err(ReadErrorKind::DuplicateKey);
                }
            }
        }
        match self.keys.get_mut(self.used) {
            Some(slot) => *slot = KeySlot { tag, at: at as u32 },
            None => return Err(ReadErrorKind::NoRoomForKeys),
        }
        self.used += 1;
        Ok(())
    }

    /// Looks for duplicates among the keys of an object that ends. Sorted, equal keys are neighbours; the order falls back
    /// on the keys themselves, so keys made to share a hash cost no more than one comparison more each time.
    #[cold]
    #[inline(never)]
    fn check_many_keys(&mut self) -> Check {
        let text = self.text;
        let slots = self.keys.get_mut(self.base..self.used).unwrap_or_default();
        keys::sort_spread(slots, |a, b| keys::compare(text, a.at, b.at).then(a.at.cmp(&b.at)));
        // The first repetition in the text, so that the error does not depend on the hash.
        let repeated = slots.array_windows().filter_map(|[a, b]| {
            let same = a.tag == b.tag && keys::compare(text, a.at, b.at).is_eq();
            same.then_some(b.at)
        });
        match repeated.min() {
            None => Ok(()),
            Some(at) => {
                self.at = at as usize;
                Err(ReadErrorKind::DuplicateKey)
            }
        }
    }

    /// Reads the string whose opening quote stands here.
    fn string(&mut self) -> Check<StringSpan> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += lex::plain_run(self.bytes.get(self.at..).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(StringSpan { start, end, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(ReadErrorKind::ControlCharacter),
                None => return Err(ReadErrorKind::UnexpectedEnd),
            }
        }
    }

    /// Reads the escape whose backslash stands here. On an error, `at` stays at the backslash.
    fn escape(&mut self) -> Check {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let len = match rest {
            [_, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            [_, b'u', rest @ ..] => match hex4(rest)? {
                0xd800..=0xdbff => match rest.get(4..) {
                    Some([b'\\', b'u', low @ ..]) if matches!(hex4(low)?, 0xdc00..=0xdfff) => 12,
                    Some([] | [b'\\']) => return Err(ReadErrorKind::UnexpectedEnd),
                    _ => return Err(ReadErrorKind::LoneSurrogate),
                },
                0xdc00..=0xdfff => return Err(ReadErrorKind::LoneSurrogate),
                _ => 6,
            },
            [_] => return Err(ReadErrorKind::UnexpectedEnd),
            _ => return Err(ReadErrorKind::InvalidEscape),
        };
        self.at += len;
        Ok(())
    }

    /// Reads the number that starts here.
    fn number(&mut self) -> Check {
        match token::len_of_common(self.bytes.get(self.at..).unwrap_or_default()) {
            Some(len) if len <= self.limits.number_bytes as usize => {
                self.at += len;
                Ok(())
            }
            _ => self.rare_number(),
        }
    }

    #[cold]
    fn rare_number(&mut self) -> Check {
        let token = match Token::read(self.bytes.get(self.at..).unwrap_or_default()) {
            Ok(token) => token,
            Err(flaw) => {
                self.at += flaw;
                return Err(self.expected(ReadErrorKind::InvalidNumber));
            }
        };
        if token.len() > self.limits.number_bytes as usize {
            return Err(ReadErrorKind::NumberTooLong { max: self.limits.number_bytes });
        }
        match token.number(false) {
            Ok(_) => {
                self.at += token.len();
                Ok(())
            }
            Err(Unfit::OutOfRange) => Err(ReadErrorKind::NumberOutOfRange),
            Err(Unfit::Inexact) => Err(ReadErrorKind::NumberInexact),
        }
    }

    fn word(&mut self, word: &[u8]) -> Check {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.at += word.len();
            Ok(())
        } else if word.starts_with(rest) {
            self.at = self.bytes.len();
            Err(ReadErrorKind::UnexpectedEnd)
        } else {
            Err(ReadErrorKind::ExpectedValue)
        }
    }
}

/// The UTF-16 unit that the first four bytes give in hexadecimal.
fn hex4(bytes: &[u8]) -> Check<u32> {
    let Some(digits) = bytes.first_chunk::<4>() else {
        let all_hex = bytes.iter().all(u8::is_ascii_hexdigit);
        return Err(if all_hex { ReadErrorKind::UnexpectedEnd } else { ReadErrorKind::InvalidEscape });
    };
    digits.iter().try_fold(0, |unit, byte| match char::from(*byte).to_digit(16) {
        Some(digit) => Ok(unit << 4 | digit),
        None => Err(ReadErrorKind::InvalidEscape),
    })
}
