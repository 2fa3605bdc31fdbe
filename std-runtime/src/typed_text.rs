//! The JSON text of a typed result, written straight from its type, without a value in between.

use std::fmt;
use std::io;

use callgate_core::json::write::escape;
use callgate_core::json::{KeySlot, Limits, MAX_DEPTH, key_capacity, scan};
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CharEscape, Formatter};

/// How much is set aside for a text at first; most results are shorter.
const USUAL: usize = 128;
/// How many keys are looked at without the heap.
const FEW_KEYS: usize = 16;

/// The compact JSON text of `value`, escaped as the gate escapes. `None` for what needs a closer look as a value: what nests too
/// deep, names a member twice, or brings JSON text of its own.
///
/// Fails where JSON has no such value.
pub(crate) fn typed_text<T: Serialize + ?Sized>(value: &T) -> Result<Option<String>, serde_json::Error> {
    let mut text = Vec::with_capacity(USUAL);
    let mut shape = Shape::default();
    let written = value.serialize(&mut Serializer::with_formatter(&mut text, &mut shape));
    if shape.odd {
        return Ok(None);
    }
    written?;
    let Ok(text) = String::from_utf8(text) else { return Ok(None) };
    let alone = !shape.pairs || names_once(&text);
    Ok(alone.then_some(text))
}

/// Whether no object of the text names a member twice, as flattened structs and hand-written maps can.
fn names_once(text: &str) -> bool {
    let limits = Limits { bytes: u32::MAX, nodes: u32::MAX, members: u32::MAX, key_bytes: u32::MAX, ..Limits::DEFAULT };
    let bytes = text.as_bytes();
    let capacity = key_capacity(bytes);
    if capacity <= FEW_KEYS {
        scan(bytes, &mut [KeySlot::default(); FEW_KEYS], &limits).is_ok()
    } else {
        scan(bytes, &mut vec![KeySlot::default(); capacity], &limits).is_ok()
    }
}

/// Writes as the gate writes, and notes what the text has in it.
#[derive(Default)]
struct Shape {
    depth: u16,
    /// Some object has more than one member.
    pairs: bool,
    /// Something that is not written here.
    odd: bool,
}

impl Shape {
    fn refuse<T>(&mut self) -> io::Result<T> {
        self.odd = true;
        Err(io::ErrorKind::Unsupported.into())
    }

    fn enter(&mut self) -> io::Result<()> {
        if self.depth >= MAX_DEPTH {
            return self.refuse();
        }
        self.depth += 1;
        Ok(())
    }
}

impl Formatter for &mut Shape {
    fn write_u128<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: u128) -> io::Result<()> {
        match u64::try_from(value) {
            Ok(value) => self.write_u64(writer, value),
            Err(_) => self.refuse(),
        }
    }

    fn write_i128<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: i128) -> io::Result<()> {
        match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => self.write_u64(writer, value),
            (_, Ok(value)) => self.write_i64(writer, value),
            _ => self.refuse(),
        }
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut out = Bytes { writer, result: Ok(()) };
        // The adapter fails only where it has noted why.
        let _ = escape(fragment, &mut out);
        out.result
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, writer: &mut W, escaped: CharEscape) -> io::Result<()> {
        let byte = match escaped {
            CharEscape::Quote => b'"',
            CharEscape::ReverseSolidus => b'\\',
            CharEscape::Solidus => b'/',
            CharEscape::Backspace => 0x08,
            CharEscape::FormFeed => 0x0c,
            CharEscape::LineFeed => b'\n',
            CharEscape::CarriageReturn => b'\r',
            CharEscape::Tab => b'\t',
            CharEscape::AsciiControl(byte) => byte,
        };
        self.write_string_fragment(writer, char::from(byte).encode_utf8(&mut [0; 4]))
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first {
            return Ok(());
        }
        self.pairs = true;
        writer.write_all(b",")
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(&mut self, _writer: &mut W, _fragment: &str) -> io::Result<()> {
        self.refuse()
    }
}

/// Takes what the core writes to where `serde_json` writes.
struct Bytes<'w, W: ?Sized> {
    writer: &'w mut W,
    result: io::Result<()>,
}

impl<W: ?Sized + io::Write> fmt::Write for Bytes<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.result = self.writer.write_all(text.as_bytes());
        if self.result.is_ok() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value_text::write_value;
    use proptest::prelude::*;
    use serde_json::Value;
    use std::collections::BTreeMap;

    fn by_value<T: Serialize>(value: &T) -> String {
        let mut text = String::new();
        write_value(&serde_json::to_value(value).unwrap(), &mut text).unwrap();
        text
    }

    #[derive(Debug, Serialize)]
    struct Row {
        a_name: String,
        b_size: Option<i64>,
        c_rate: f64,
        d_kind: Kind,
        e_more: BTreeMap<String, (bool, char)>,
    }

    #[derive(Clone, Debug, Serialize)]
    enum Kind {
        Plain,
        Of(u64),
        With { text: String },
    }

    fn rows() -> impl Strategy<Value = Row> {
        let text = || prop_oneof![any::<String>(), "[\u{0}-\u{1f}\"\\\\\u{7f}\u{2028}\u{202e}\u{e0001}a]{0,12}"];
        let kind = prop_oneof![
            Just(Kind::Plain),
            any::<u64>().prop_map(Kind::Of),
            text().prop_map(|text| Kind::With { text })
        ];
        let more = prop::collection::btree_map(text(), any::<(bool, char)>(), 0..20);
        (text(), any::<Option<i64>>(), any::<f64>(), kind, more)
            .prop_map(|(a_name, b_size, c_rate, d_kind, e_more)| Row { a_name, b_size, c_rate, d_kind, e_more })
    }

    proptest! {
        /// D5, N1: the short way writes what the way through a value does, byte for byte, where both keep the same order.
        #[test]
        fn d5_both_ways_write_alike(rows in prop::collection::vec(rows(), 0..4)) {
            // Members of a value are in the order of their names, unless somebody asked `serde_json` for another.
            prop_assert_eq!(typed_text(&rows).unwrap(), Some(by_value(&rows)));
        }
    }

    #[test]
    fn what_needs_a_closer_look_gets_it() {
        #[derive(Serialize)]
        struct Twice {
            a: u8,
            #[serde(flatten)]
            rest: BTreeMap<&'static str, u8>,
        }
        let twice = |name| typed_text(&Twice { a: 1, rest: BTreeMap::from([(name, 2)]) }).unwrap();
        assert_eq!(twice("a"), None);
        assert_eq!(twice("b").as_deref(), Some(r#"{"a":1,"b":2}"#));
        let nested = |depth| (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        assert!(typed_text(&nested(MAX_DEPTH)).unwrap().is_some());
        assert_eq!(typed_text(&nested(MAX_DEPTH + 1)).unwrap(), None);
        assert_eq!(typed_text(&u128::MAX).unwrap(), None);
        assert_eq!(typed_text(&i128::from(i64::MIN)).unwrap().as_deref(), Some("-9223372036854775808"));
        assert!(typed_text(&BTreeMap::from([((1, 2), 3)])).is_err());
    }
}
