//! Arguments that were read: checked text and the clamps that apply to it.

use core::fmt;

use serde::Deserialize;

use crate::digest::{ARGS_DOMAIN, Digest, DigestKey};
use crate::json::{
    DeError, Event, Events, KeySlot, KeysFull, Kind, Limits, Members, Nobody, ReadError, ReadErrorKind, Scanned, Value,
    Watch, scan_text, scan_watched,
};
pub use crate::json::{Edit, Edits, Full, MAX_CLAMPS, Replacement};

/// The arguments of a call: a JSON object that passed the strict reader, with its clamps applied wherever it is looked
/// at (invariant K4: nothing behind the clamp stage sees what was sent instead).
///
/// Made by [`read`](Self::read) alone. `Debug` shows nothing of the content (invariant L1).
///
/// ```
/// use callgate_core::args::Args;
/// use callgate_core::json::{KeySlot, Limits};
/// let mut keys = [KeySlot::default(); 8];
/// let args = Args::read(br#"{"path": "notes.txt", "max": 10}"#, &mut keys, &Limits::DEFAULT)?;
/// assert_eq!(args.get("path").and_then(|path| path.as_text()).unwrap(), "notes.txt");
/// assert_eq!(args.get("max").and_then(|max| max.as_number()?.as_u64()), Some(10));
/// # Ok::<(), callgate_core::json::ReadError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Args<'a> {
    scanned: Scanned<'a>,
    edits: &'a [Edit],
}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Args(..)")
    }
}

impl<'a> Args<'a> {
    /// No arguments: the object `{}`.
    pub const EMPTY: Self = Self { scanned: Scanned::EMPTY_OBJECT, edits: &[] };

    /// Reads the text of a call's arguments. A text without anything but white space stands for `{}`, as models send it
    /// for tools without parameters; `null` and every other value that is not an object is refused.
    ///
    /// `keys` is scratch, see [`scan`](crate::json::scan).
    ///
    /// # Errors
    /// Says where and why the text was refused.
    pub fn read(text: &'a [u8], keys: &mut [KeySlot], limits: &Limits) -> Result<Self, ReadError> {
        Self::read_watched(text, None, keys, limits, &mut Nobody)
    }

    /// As [`read`](Self::read), with somebody who watches the tokens pass. What was seen counts only when this succeeds. `utf8` is
    /// the same text, if the host knows that it is UTF-8.
    pub(crate) fn read_watched<W: Watch<'a>>(
        text: &'a [u8],
        utf8: Option<&'a str>,
        keys: &mut [KeySlot],
        limits: &Limits,
        watch: &mut W,
    ) -> Result<Self, ReadError> {
        if is_blank(text, limits) {
            watch.see(0, Event::StartObject);
            watch.see(1, Event::EndObject);
            return Ok(Self::EMPTY);
        }
        Self::of_scan(match utf8 {
            Some(utf8) if core::ptr::eq(utf8.as_bytes(), text) => scan_text(utf8, keys, limits, watch)?,
            _ => scan_watched(text, keys, limits, watch)?,
        })
    }

    #[cfg_attr(not(callgate_small), inline)]
    fn of_scan(scanned: Scanned<'a>) -> Result<Self, ReadError> {
        let root = scanned.value();
        if root.kind() == Kind::Object {
            Ok(Self { scanned, edits: &[] })
        } else {
            Err(ReadError { at: root.offset(), kind: ReadErrorKind::NotAnObject })
        }
    }

    /// The arguments of a call that passed [`Args::read`] before, read again from where the call keeps them. A context that
    /// gives another text than it gave then gets nonsense, and neither a panic nor a way around a check that comes later.
    #[cfg_attr(not(callgate_small), inline)]
    pub(crate) fn reread(text: Option<&'a str>, edits: &'a Edits) -> Self {
        match text {
            Some(text) if text.bytes().any(|byte| byte == b'{') => {
                Self { scanned: Scanned::reread(text), edits: edits.as_slice() }
            }
            _ => Self::EMPTY,
        }
    }

    /// The same arguments with `edits` in place of the present ones, as if the clamp stage had made them.
    #[cfg(test)]
    pub(crate) fn with_edits(self, edits: &'a Edits) -> Self {
        Self { scanned: self.scanned, edits: edits.as_slice() }
    }

    /// The arguments as one value, an object.
    #[must_use]
    pub fn value(self) -> Value<'a> {
        Value::root(self.scanned, self.edits)
    }

    /// The events of the arguments, from `StartObject` to `EndObject`, each with the offset of its token.
    #[must_use]
    pub fn events(self) -> Events<'a> {
        self.value().events()
    }

    /// The top-level member `key`.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        self.value().get(key)
    }

    /// The top-level members in the order of the text.
    #[must_use]
    pub fn members(self) -> Members<'a> {
        self.value().members()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.members().next().is_none()
    }

    /// The text as it was sent, before any clamp. For keeping a call that has to wait; what judges, shows or runs a call
    /// reads the clamped value instead.
    #[must_use]
    pub const fn sent(self) -> &'a str {
        self.scanned.as_str()
    }

    /// The clamps that apply, in the order of their places in the text.
    #[must_use]
    pub fn clamps(self) -> Clamps<'a> {
        Clamps { sent: Self { scanned: self.scanned, edits: &[] }.events(), clamped: self.events(), left: self.edits }
    }

    /// Makes a `T` of the clamped arguments. Nothing is coerced: a string is no number, and numbers are kept exactly or
    /// refused (invariant S4). Whether unknown fields are refused is up to `T` (and to the tool's schema, before).
    ///
    /// Strings with escapes are unescaped into `room` and can be borrowed from there; the length of the text always
    /// suffices, and nothing is needed while there are none.
    ///
    /// # Errors
    /// Says which field the type does not take, and why, and never its value (invariant L4).
    pub fn deserialize<T: Deserialize<'a>>(self, room: &'a mut [u8]) -> Result<T, DeError> {
        self.value().deserialize(room)
    }

    /// Makes a `T` of the clamped arguments, as [`deserialize`](Self::deserialize) does, without room to lend. Strings with
    /// escapes are given to `T` as owned; a `&str` field does not take them.
    ///
    /// # Errors
    /// Says which field the type does not take, and why, and never its value (invariant L4).
    #[cfg(feature = "alloc")]
    pub fn parse<T: Deserialize<'a>>(self) -> Result<T, DeError> {
        self.value().parse()
    }

    /// The digest of the clamped arguments under `key` (invariants K4, L3), in the domain
    /// [`ARGS_DOMAIN`].
    ///
    /// `keys` is scratch, as for [`read`](Self::read).
    ///
    /// # Errors
    /// `keys` is too small; what sufficed to read the arguments may not, what [`key_capacity`](crate::json::key_capacity)
    /// says does.
    pub fn digest(self, key: &DigestKey, keys: &mut [KeySlot]) -> Result<Digest, KeysFull> {
        key.digest(ARGS_DOMAIN, self.value(), keys)
    }

    /// Writes the clamped arguments as compact JSON, members in the order they were sent.
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_json(self, out: &mut dyn fmt::Write) -> fmt::Result {
        self.value().write_json(out)
    }
}

/// Whether a text stands for `{}`.
#[cfg_attr(not(callgate_small), inline)]
fn is_blank(text: &[u8], limits: &Limits) -> bool {
    text.iter().all(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) && text.len() <= limits.bytes as usize
}

/// One value that was clamped. Holds the value itself: not for a record without redaction.
#[derive(Clone, Copy, Debug)]
pub struct Clamped<'a> {
    /// The offset of the value in the text.
    pub at: u32,
    /// What was sent: a `Number` or a `String`.
    pub from: Event<'a>,
    /// What stands there now.
    pub to: Event<'a>,
}

/// The values that were clamped.
#[derive(Clone, Debug)]
pub struct Clamps<'a> {
    sent: Events<'a>,
    clamped: Events<'a>,
    left: &'a [Edit],
}

impl<'a> Iterator for Clamps<'a> {
    type Item = Clamped<'a>;

    fn next(&mut self) -> Option<Clamped<'a>> {
        let (edit, left) = self.left.split_first()?;
        self.left = left;
        let (_, from) = self.sent.find(|(at, _)| *at == edit.at)?;
        let (at, to) = self.clamped.find(|(at, _)| *at == edit.at)?;
        Some(Clamped { at, from, to })
    }
}

/// Arguments that own their text, for a body that outlives the call's own memory. Cheap to clone.
///
/// Made of [`Args`] alone, so what it holds has passed the reader, and its clamps come along (invariant K4).
#[cfg(feature = "alloc")]
#[derive(Clone)]
pub struct SharedArgs {
    text: alloc::sync::Arc<str>,
    /// `None` where nothing was clamped, which is most calls.
    edits: Option<alloc::sync::Arc<[Edit]>>,
}

#[cfg(feature = "alloc")]
impl SharedArgs {
    /// The arguments.
    #[must_use]
    pub fn borrow(&self) -> Args<'_> {
        Args { scanned: Scanned::reread(&self.text), edits: self.edits.as_deref().unwrap_or_default() }
    }
}

#[cfg(feature = "alloc")]
impl From<Args<'_>> for SharedArgs {
    fn from(args: Args<'_>) -> Self {
        Self::with_text(args, args.sent().into())
    }
}

#[cfg(feature = "alloc")]
impl SharedArgs {
    /// The same, sharing `kept` where that is the very text that the arguments were read from.
    #[must_use]
    pub fn sharing(args: Args<'_>, kept: &alloc::sync::Arc<str>) -> Self {
        if core::ptr::eq::<str>(args.sent(), &**kept) {
            Self::with_text(args, alloc::sync::Arc::clone(kept))
        } else {
            args.into()
        }
    }

    fn with_text(args: Args<'_>, text: alloc::sync::Arc<str>) -> Self {
        Self { text, edits: (!args.edits.is_empty()).then(|| args.edits.into()) }
    }
}

/// Shows nothing of the content (invariant L1).
#[cfg(feature = "alloc")]
impl fmt::Debug for SharedArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedArgs(..)")
    }
}

#[cfg(test)]
#[path = "../tests/json_reader/model.rs"]
mod model;

#[cfg(test)]
mod tests {
    use super::model::{self, Json};
    use super::*;
    use crate::json::{Number, key_capacity};
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    fn read<R>(text: &str, look: impl FnOnce(Args<'_>, &mut [KeySlot]) -> R) -> R {
        let mut keys = std::vec![KeySlot::default(); key_capacity(text.as_bytes())];
        let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("good text");
        look(args, &mut keys)
    }

    /// The scalars that a clamp can concern, in the order of the text.
    fn scalars<'v>(value: &'v mut Json, found: &mut Vec<&'v mut Json>) {
        match value {
            Json::Integer(_) | Json::Decimal(_) | Json::Text(_) => found.push(value),
            Json::Array(items) => items.iter_mut().for_each(|item| scalars(item, found)),
            Json::Object(members) => members.iter_mut().for_each(|(_, value)| scalars(value, found)),
            Json::Null | Json::Bool(_) => {}
        }
    }

    fn same(a: Value<'_>, b: Value<'_>) -> bool {
        a.kind() == b.kind()
            && a.as_number() == b.as_number()
            && a.as_text() == b.as_text()
            && a.as_bool() == b.as_bool()
            && a.items().count() == b.items().count()
            && a.items().zip(b.items()).all(|(a, b)| same(a, b))
            && a.members().count() == b.members().count()
            && a.members().zip(b.members()).all(|((key_a, a), (key_b, b))| key_a == key_b && same(a, b))
    }

    proptest! {
        // K4: arguments with clamps are, to everyone who looks, the arguments that have the clamped values in their text.
        #[test]
        fn k4_clamps_in_place_equal_clamped_text(
            value in model::objects(),
            seed in any::<u64>(),
            choices in proptest::collection::vec((any::<prop::sample::Index>(), any::<i64>(), 0..10_u32), 0..MAX_CLAMPS),
        ) {
            let text = value.to_text(Some(seed));
            let mut clamped = value;
            let mut edits = Edits::new();
            read(&text, |args, _| {
                let places: Vec<u32> = args
                    .events()
                    .filter(|(_, event)| matches!(event, Event::Number(_) | Event::String(_)))
                    .map(|(at, _)| at)
                    .collect();
                let mut scalars_of_clamped = Vec::new();
                scalars(&mut clamped, &mut scalars_of_clamped);
                prop_assert_eq!(places.len(), scalars_of_clamped.len());
                for (choice, number, chars) in &choices {
                    if places.is_empty() {
                        break;
                    }
                    let place = choice.index(places.len());
                    let to = match &mut *scalars_of_clamped[place] {
                        Json::Text(text) => {
                            *text = text.chars().take(*chars as usize).collect();
                            Replacement::Cut { chars: *chars }
                        }
                        other => {
                            *other = Json::Integer((*number).into());
                            let number = u64::try_from(*number).map_or(Number::I64(*number), Number::U64);
                            Replacement::Number(number)
                        }
                    };
                    // The last clamp of a place counts; a string cut twice is as short as the shorter cut.
                    let to = match (to, edits.as_slice().iter().find(|edit| edit.at == places[place])) {
                        (Replacement::Cut { chars: a }, Some(Edit { to: Replacement::Cut { chars: b }, .. })) => {
                            Replacement::Cut { chars: a.min(*b) }
                        }
                        (to, _) => to,
                    };
                    edits.push(Edit { at: places[place], to }).expect("no more clamps than there is room");
                }
                Ok(())
            })?;
            let expected = clamped.to_text(None);
            let key = DigestKey::new([1; 32]);
            read(&text, |args, keys| read(&expected, |expected_args, expected_keys| {
                let args = args.with_edits(&edits);
                let expected_digest = expected_args.digest(&key, expected_keys);
                prop_assert_eq!(args.digest(&key, keys), expected_digest);
                prop_assert!(same(args.value(), expected_args.value()));
                let (mut room, mut expected_room) = (std::vec![0; text.len()], std::vec![0; expected.len()]);
                let typed: serde_json::Value = args.deserialize(&mut room).expect("any value is one");
                let expected_typed: serde_json::Value = expected_args.deserialize(&mut expected_room).expect("any value");
                prop_assert_eq!(typed, expected_typed);
                let mut written = String::new();
                args.write_json(&mut written).expect("a string takes all");
                read(&written, |again, keys| {
                    prop_assert_eq!(again.digest(&key, keys), expected_digest);
                    Ok(())
                })?;
                // K3: each clamp can be seen.
                let clamps: Vec<_> = args.clamps().map(|clamp| clamp.at).collect();
                prop_assert_eq!(clamps, edits.as_slice().iter().map(|edit| edit.at).collect::<Vec<_>>());
                Ok(())
            }))?;
        }
    }

    // K3, K4: what was clamped is visible as a clamp, and nothing else of the arguments changes.
    #[test]
    fn k4_edits_are_seen_by_every_reader() {
        let text = br#" {"n": 5000, "rows": [{"n": 1.5}, "h\u00e9llo"], "n2": 7} "#;
        let at = |needle: &[u8]| text.windows(needle.len()).position(|w| w == needle).expect("it is there") as u32;
        let mut keys = [KeySlot::default(); 8];
        let args = Args::read(text, &mut keys, &Limits::DEFAULT).expect("good text");
        let mut edits = Edits::new();
        edits.push(Edit { at: at(br#""h\u"#), to: Replacement::Cut { chars: 2 } }).expect("room");
        edits.push(Edit { at: at(b"5000"), to: Replacement::Number(Number::U64(100)) }).expect("room");
        let args = args.with_edits(&edits);
        let mut json = String::new();
        args.write_json(&mut json).expect("a string takes all");
        assert_eq!(json, r#"{"n":100,"rows":[{"n":1.5},"hé"],"n2":7}"#);
        assert_eq!(args.get("n").and_then(Value::as_number), Some(Number::U64(100)));
        let rows = args.get("rows").expect("a member");
        assert_eq!(rows.items().nth(1).and_then(Value::as_text), Some("hé".into()));
        assert_eq!(args.get("n2").and_then(Value::as_number), Some(Number::U64(7)));
        let clamped: Vec<_> = args.clamps().collect();
        assert_eq!(clamped.len(), 2);
        assert_eq!(
            (clamped[0].from, clamped[0].to),
            (Event::Number(Number::U64(5000)), Event::Number(Number::U64(100)))
        );
        assert_eq!((clamped[1].from, clamped[1].to), (Event::String("héllo".into()), Event::String("hé".into())));
        // Bytes are those of the clamped text, too.
        struct Bytes(Vec<u8>);
        impl<'de> Deserialize<'de> for Bytes {
            fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
                struct Take;
                impl serde::de::Visitor<'_> for Take {
                    type Value = Bytes;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("bytes")
                    }
                    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                        Ok(Bytes(bytes.to_vec()))
                    }
                }
                source.deserialize_bytes(Take)
            }
        }
        #[derive(Deserialize)]
        struct Rows {
            rows: (serde::de::IgnoredAny, Bytes),
        }
        let rows: Rows = args.deserialize(&mut [0; 8]).expect("two rows");
        assert_eq!(rows.rows.1.0, "hé".as_bytes());
        #[cfg(feature = "alloc")]
        {
            let kept: alloc::sync::Arc<str> = args.sent().into();
            for shared in [SharedArgs::from(args), SharedArgs::sharing(args, &kept)] {
                let mut again = String::new();
                shared.borrow().write_json(&mut again).expect("a string takes all");
                assert_eq!((again, shared.borrow().clamps().count()), (json.clone(), 2));
            }
            let own = Args { scanned: Scanned::reread(&kept), edits: args.edits };
            assert!(core::ptr::eq(SharedArgs::sharing(own, &kept).borrow().sent(), &*kept), "no copy is made");
            assert!(!core::ptr::eq(SharedArgs::sharing(args, &kept).borrow().sent(), &*kept));
        }
    }

    // S2: a member is found by its key, however that is spelled, and by no other.
    #[test]
    fn s2_members_are_found_by_their_unescaped_keys() {
        read(r#"{"\u0061": 1, "ab": {"a": 2}, "A": 3}"#, |args, _| {
            let number = |value: Option<Value<'_>>| value.and_then(Value::as_number);
            assert_eq!(number(args.get("a")), Some(Number::U64(1)));
            assert_eq!(number(args.get("A")), Some(Number::U64(3)));
            assert_eq!(number(args.get("ab").and_then(|ab| ab.get("a"))), Some(Number::U64(2)));
            assert!(args.get("\\u0061").is_none() && args.get("").is_none() && args.get("b").is_none());
        });
    }

    // V4
    #[test]
    fn v4_no_text_is_the_empty_object_and_null_is_not() {
        let read = |text: &str| Args::read(text.as_bytes(), &mut [], &Limits::DEFAULT).map(Args::is_empty);
        for blank in ["", " ", "\n\t\r ", "{}", " { } "] {
            assert_eq!(read(blank), Ok(true), "{blank:?}");
        }
        for (other, at) in [("null", 0), (" []", 1), ("\"x\"", 0), ("0", 0), ("true", 0)] {
            assert_eq!(read(other), Err(ReadError { at, kind: ReadErrorKind::NotAnObject }), "{other:?}");
        }
    }
}
