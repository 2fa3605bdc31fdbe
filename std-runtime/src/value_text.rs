//! The JSON text of a value: how it is written, how long it is, and what is left when it is too long.

use std::fmt::{self, Write as _};

use callgate_core::digest::Digest;
use callgate_core::json::MAX_DEPTH;
use callgate_core::json::write::{Writer, must_escape};
use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

/// Writes a value as compact JSON that is safe in a terminal and in a line of a log, members in the order of the map.
///
/// Fails for a value that nests deeper than [`MAX_DEPTH`], and where `out` does.
pub(crate) fn write_value(value: &Value, out: &mut dyn fmt::Write) -> fmt::Result {
    write_into(&mut Writer::new(out), value)
}

/// Calls itself for what is within; the writer ends it at its greatest depth.
fn write_into(json: &mut Writer<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Null => json.null(),
        Value::Bool(value) => json.bool(*value),
        // As it stands, so that no digit is lost whatever the features of `serde_json` are (invariants S4, N5).
        Value::Number(number) => json.raw(|out| write!(out, "{number}")),
        Value::String(text) => json.string(text),
        Value::Array(items) => {
            json.start_array()?;
            items.iter().try_for_each(|item| write_into(json, item))?;
            json.end_array()
        }
        Value::Object(members) => {
            json.start_object()?;
            for (key, value) in members {
                json.key(key)?;
                write_into(json, value)?;
            }
            json.end_object()
        }
    }
}

/// The JSON text of a value with the members of its objects sorted, whatever order the map keeps them in.
///
/// Fails for a value that nests deeper than [`MAX_DEPTH`].
pub(crate) fn sorted_text(value: &Value) -> Result<String, fmt::Error> {
    fn write(json: &mut Writer<'_>, value: &Value) -> fmt::Result {
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(key, _)| *key);
                json.start_object()?;
                for (key, value) in members {
                    json.key(key)?;
                    write(json, value)?;
                }
                json.end_object()
            }
            Value::Array(items) => {
                json.start_array()?;
                items.iter().try_for_each(|item| write(json, item))?;
                json.end_array()
            }
            leaf => write_into(json, leaf),
        }
    }
    let mut text = String::new();
    write(&mut Writer::new(&mut text), value)?;
    Ok(text)
}

/// How long the JSON text of something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// At most as long as asked.
    Within,
    /// Longer.
    Beyond,
    /// It can't be written: it nests deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// How long `value` is. Most values are far from the cap, and then nothing is written to find out.
pub(crate) fn size(value: &Value, cap: usize) -> Size {
    let mut left = cap;
    if estimate(value, MAX_DEPTH, &mut left).is_ok() {
        return Size::Within;
    }
    measure(cap, |out| write_value(value, out))
}

/// How long an object of these members is.
pub(crate) fn size_of_members(members: &Map<String, Value>, cap: usize) -> Size {
    let mut left = cap;
    if members.iter().try_for_each(|member| estimate_member(member, MAX_DEPTH, &mut left)).is_ok() {
        return Size::Within;
    }
    measure(cap, |out| {
        let mut json = Writer::new(out);
        json.start_object()?;
        for (key, value) in members {
            json.key(key)?;
            json.raw(|out| write_value(value, out))?;
        }
        json.end_object()
    })
}

/// How many bytes the JSON text of `value` has; as far as it can be written.
pub(crate) fn exact_size(value: &Value) -> usize {
    let mut count = Count(0);
    // Counting takes everything; what is too deep was found out before.
    let _ = write_value(value, &mut count);
    count.0
}

fn measure(cap: usize, write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> Size {
    let mut count = Count(0);
    match write(&mut count) {
        Err(fmt::Error) => Size::TooDeep,
        Ok(()) if count.0 > cap => Size::Beyond,
        Ok(()) => Size::Within,
    }
}

/// The text may be too long, or is too deep.
struct Doubt;

/// Takes no less from `left` than the text of `value` has bytes.
fn estimate(value: &Value, depth: u16, left: &mut usize) -> Result<(), Doubt> {
    match value {
        Value::Null | Value::Bool(_) => take(left, 6),
        Value::Number(number) => take(left, number_bytes(number)),
        Value::String(text) => take_text(left, text),
        Value::Array(items) => {
            take(left, 3)?;
            let depth = depth.checked_sub(1).ok_or(Doubt)?;
            items.iter().try_for_each(|item| estimate(item, depth, left))
        }
        Value::Object(members) => {
            take(left, 3)?;
            let depth = depth.checked_sub(1).ok_or(Doubt)?;
            members.iter().try_for_each(|member| estimate_member(member, depth, left))
        }
    }
}

fn estimate_member((key, value): (&String, &Value), depth: u16, left: &mut usize) -> Result<(), Doubt> {
    take_text(left, key)?;
    estimate(value, depth, left)
}

fn take(left: &mut usize, bytes: usize) -> Result<(), Doubt> {
    *left = left.checked_sub(bytes).ok_or(Doubt)?;
    Ok(())
}

/// No byte of a text takes more than six in JSON; quotes and a comma or a colon come on top.
fn take_text(left: &mut usize, text: &str) -> Result<(), Doubt> {
    take(left, text.len().saturating_mul(6).saturating_add(3))
}

fn number_bytes(number: &Number) -> usize {
    if number.is_u64() || number.is_i64() {
        return 21;
    }
    let mut count = Count(1);
    let _ = write!(count, "{number}");
    count.0
}

/// Counts bytes.
struct Count(usize);

impl fmt::Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.saturating_add(text.len());
        Ok(())
    }
}

/// The beginning of a value that is too long, and the length and the SHA-256 of its whole JSON text. The beginning of a
/// text is its own; of any other value it is that of the JSON text. As a JSON string it has at most `cap` bytes.
pub(crate) fn cut(value: &Value, cap: usize) -> (String, usize, Digest) {
    let mut whole =
        Whole { hash: Sha256::new(), bytes: 0, kept: Kept { text: String::new(), room: cap.saturating_sub(2) } };
    if let Value::String(text) = value {
        whole.kept.push(text);
        whole.kept.room = 0;
    }
    // A hash takes everything; what is too deep was found out before.
    let _ = write_value(value, &mut whole);
    (whole.kept.text, whole.bytes, Digest::from_bytes(whole.hash.finalize().into()))
}

/// The same of the JSON text of a value that is no text.
pub(crate) fn cut_text_of_json(text: &str, cap: usize) -> (String, usize, Digest) {
    let mut kept = Kept { text: String::new(), room: cap.saturating_sub(2) };
    kept.push(text);
    (kept.text, text.len(), Digest::of_bytes(text.as_bytes()))
}

struct Whole {
    hash: Sha256,
    bytes: usize,
    kept: Kept,
}

impl fmt::Write for Whole {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.hash.update(text.as_bytes());
        self.bytes = self.bytes.saturating_add(text.len());
        self.kept.push(text);
        Ok(())
    }
}

/// As much of a text as fits when it is written as a JSON string.
struct Kept {
    text: String,
    room: usize,
}

impl Kept {
    fn push(&mut self, text: &str) {
        for c in text.chars() {
            let bytes = if must_escape(c) { 6 * c.len_utf16() } else { c.len_utf8() };
            let Some(room) = self.room.checked_sub(bytes) else {
                self.room = 0;
                return;
            };
            self.room = room;
            self.text.push(c);
        }
    }
}

/// Drops a value level by level, because dropping a deep one at once takes as much stack as it is deep.
pub(crate) fn dismantle(value: Value) {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => rest.extend(members.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate_core::json::{KeySlot, Limits, key_capacity, scan};
    use proptest::prelude::*;
    use serde_json::json;

    fn text(value: &Value) -> String {
        let mut text = String::new();
        write_value(value, &mut text).unwrap();
        text
    }

    /// Reads it back, refusing what is no JSON. The reader of `serde_json` may be off by a bit in the last place.
    fn read(text: &str) -> Value {
        let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
        scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap().value().parse().unwrap()
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]))
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            proptest::num::f64::NORMAL.prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\u{0}-\u{1f}\"\\\\\u{2028}\u{e0001}a]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    // V1, S4: what a tool gives is what is written, digit by digit.
    #[test]
    fn v1_numbers_are_written_exactly() {
        let value = json!([9_007_199_254_740_993_u64, u64::MAX, i64::MIN, 0.1, 1.0]);
        assert_eq!(text(&value), "[9007199254740993,18446744073709551615,-9223372036854775808,0.1,1.0]");
    }

    #[test]
    fn depth_is_bounded_and_deep_values_are_dropped_without_stack() {
        assert_eq!(size(&nested(usize::from(MAX_DEPTH)), 1 << 20), Size::Within);
        assert_eq!(size(&nested(usize::from(MAX_DEPTH) + 1), 1 << 20), Size::TooDeep);
        let mut deep = Value::Null;
        for _ in 0..1_000_000 {
            deep = Value::Array(vec![deep]);
        }
        assert_eq!(size(&deep, 1 << 20), Size::TooDeep);
        dismantle(deep);
    }

    proptest! {
        /// The estimate is never below the true length, so no text is longer than the cap that it was found within.
        #[test]
        fn o2_sizes_are_exact_at_the_cap(value in any_value()) {
            let length = text(&value).len();
            prop_assert_eq!(size(&value, length), Size::Within);
            prop_assert_eq!(exact_size(&value), length);
            if let Some(less) = length.checked_sub(1) {
                prop_assert_eq!(size(&value, less), Size::Beyond);
            }
            prop_assert_eq!(read(&text(&value)), value);
        }

        /// O2: what is left fits into the cap, and is the beginning of what it was.
        #[test]
        fn o2_a_cut_fits_and_begins_as_the_whole(value in any_value(), cap in 2usize..64) {
            let whole = text(&value);
            let (kept, bytes, digest) = cut(&value, cap);
            prop_assert_eq!(bytes, whole.len());
            prop_assert_eq!(digest, Digest::of_bytes(whole.as_bytes()));
            let begins = value.as_str().unwrap_or(&whole).starts_with(&kept);
            prop_assert!(begins);
            prop_assert!(text(&Value::from(kept)).len() <= cap);
        }
    }
}
