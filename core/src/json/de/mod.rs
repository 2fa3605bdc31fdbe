//! Typed values out of checked text: a serde deserializer with clamps applied.
//!
//! It reads only text that passed the scan, so it meets no malformed token; what it refuses is what the asked type does
//! not take. It recurses through serde's visitors, at most as deep as the text nests.
//!
//! Numbers are handed on exactly or refused (invariant S4): `1.0` fits an integer type and `1.5` does not; an integer fits
//! `f64` when it has at most 53 significant bits, `f32` with at most 24. Types that buffer a value before they look at it
//! (serde's `untagged` and `flatten`) do their own conversions, of which this module knows nothing.

mod access;
mod error;
mod key;
mod scratch;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Unexpected, Visitor};

pub use error::{DeError, DeErrorKind};

use self::access::{Enum, Map, Seq, UnitVariant};
use self::error::Fault;
#[cfg(feature = "alloc")]
use self::scratch::Heap;
use self::scratch::{Lent, Scratch};
use super::edit::{self, Edit, Replacement};
use super::lex;
use super::limits::SMALL;
use super::number::Number;
use super::text::Text;
use super::token;
use super::value::Value;

/// Makes a `T` of `value`; strings with escapes go into `room`.
pub(crate) fn from_value_in<'a, T: Deserialize<'a>>(value: Value<'a>, room: &'a mut [u8]) -> Result<T, DeError> {
    Reader::run(value, Lent(room))
}

/// Makes a `T` of `value`; strings with escapes are given to `T` as owned.
#[cfg(feature = "alloc")]
pub(crate) fn from_value<'a, T: Deserialize<'a>>(value: Value<'a>) -> Result<T, DeError> {
    Reader::run(value, Heap::default())
}

struct Reader<'de, S> {
    /// The text up to the end of the value.
    text: &'de str,
    at: usize,
    edits: &'de [Edit],
    scratch: S,
}

impl<'de, S: Scratch<'de>> Reader<'de, S> {
    fn run<T: Deserialize<'de>>(value: Value<'de>, scratch: S) -> Result<T, DeError> {
        let (text, at, edits) = value.parts();
        let mut reader = Self { text, at, edits, scratch };
        T::deserialize(&mut reader).map_err(|fault| DeError::new(fault.or_at(at), value))
    }

    /// Goes to the next token behind white space, commas and colons, and says which it is. 0 at the end, which no type
    /// asks for.
    fn token(&mut self) -> u8 {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') => self.at += 1,
                Some(byte) => return *byte,
                None => return 0,
            }
        }
    }

    /// Skips the value that starts here.
    fn skip(&mut self) {
        self.at = lex::checked_value(self.text.as_bytes(), self.at);
    }

    /// What a clamp puts in the place of the value that starts here.
    fn replacement(&self) -> Option<Replacement> {
        if self.edits.is_empty() { None } else { edit::at(self.edits, self.at) }
    }

    /// Reads the string that starts here, a key or a value.
    fn string(&mut self) -> Text<'de> {
        let (text, end) = Text::at(self.text, self.at);
        self.at = end;
        text
    }

    /// Reads the string value that starts here.
    fn string_value(&mut self) -> Text<'de> {
        let replacement = self.replacement();
        let text = self.string();
        match replacement {
            Some(Replacement::Cut { chars }) => text.cut(chars),
            _ => text,
        }
    }

    /// Reads the number that starts here.
    fn number(&mut self) -> Number {
        let replacement = self.replacement();
        let (number, len) = token::checked(self.text.as_bytes().get(self.at..).unwrap_or_default());
        self.at += len;
        match replacement {
            Some(Replacement::Number(clamped)) => clamped,
            _ => number,
        }
    }

    /// Says that `visitor` expects something else than the value that starts here.
    #[cold]
    fn wrong<V: Visitor<'de>>(&mut self, visitor: &V) -> Fault {
        let at = self.at;
        let unexpected = match self.token() {
            b'"' => Unexpected::Str(""),
            b'{' => Unexpected::Map,
            b'[' => Unexpected::Seq,
            b't' | b'f' => Unexpected::Bool(false),
            b'n' => Unexpected::Unit,
            _ => match self.number() {
                Number::F64(value) if !SMALL => Unexpected::Float(value),
                _ => Unexpected::Unsigned(0),
            },
        };
        Fault::invalid_type(unexpected, visitor).or_at(at)
    }

    fn visit_number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        match self.number() {
            Number::U64(value) => visitor.visit_u64(value),
            Number::I64(value) => visitor.visit_i64(value),
            Number::F64(_) if SMALL => Err(Fault::new(DeErrorKind::Inexact)),
            Number::F64(value) => visitor.visit_f64(value),
        }
    }

    /// For types that ask for an integer: a decimal without fraction is one.
    fn visit_integer<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        let (b'-' | b'0'..=b'9') = self.token() else { return Err(self.wrong(&visitor)) };
        let at = self.at;
        let number = self.number();
        let visited: Result<_, Fault> = match number {
            Number::U64(value) => visitor.visit_u64(value),
            Number::I64(value) => visitor.visit_i64(value),
            Number::F64(_) if SMALL => Err(Fault::new(DeErrorKind::Inexact)),
            Number::F64(value) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                (None, None) => visitor.visit_f64(value),
            },
        };
        visited.map_err(|fault| fault.or_at(at))
    }

    fn visit_array<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        self.at += 1;
        let value = visitor.visit_seq(Seq { reader: self })?;
        self.end(b']', value)
    }

    fn visit_object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        self.at += 1;
        let value = visitor.visit_map(Map::new(self))?;
        self.end(b'}', value)
    }

    /// Gives `value`, if all of the array or object was taken.
    fn end<T>(&mut self, bracket: u8, value: T) -> Result<T, Fault> {
        if self.token() == bracket {
            self.at += 1;
            Ok(value)
        } else {
            Err(Fault::new(DeErrorKind::Length))
        }
    }
}

/// One method of [`Deserializer`]: for the tokens named, calls the method of `self`; otherwise says what was expected.
macro_rules! deserialize {
    ($($name:ident: $($token:pat => $read:ident),+;)+) => {
        $(fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let token = self.token();
            let at = self.at;
            match token {
                $($token => self.$read(visitor),)+
                _ => Err(self.wrong(&visitor)),
            }
            .map_err(|fault| fault.or_at(at))
        })+
    };
}

macro_rules! deserialize_integer {
    ($($name:ident)+) => {
        $(fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.visit_integer(visitor)
        })+
    };
}

impl<'de, S: Scratch<'de>> Reader<'de, S> {
    fn visit_text<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        if let Some(Replacement::Cut { chars }) = self.replacement() {
            let text = self.string().cut(chars);
            return self.scratch.visit(text, visitor);
        }
        self.at += 1;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let run = lex::plain_run(rest.as_bytes());
        match rest.split_at_checked(run) {
            Some((plain, behind)) if behind.starts_with('"') => {
                self.at += run + 1;
                visitor.visit_borrowed_str(plain)
            }
            _ => self.scratch.visit_escaped(self.text, &mut self.at, visitor),
        }
    }

    fn visit_text_bytes<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        let text = self.string_value();
        self.scratch.visit_bytes(text, visitor)
    }

    fn visit_true<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        self.at += 4;
        visitor.visit_bool(true)
    }

    fn visit_false<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        self.at += 5;
        visitor.visit_bool(false)
    }

    fn visit_null<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        self.at += 4;
        visitor.visit_unit()
    }

    fn visit_exact_f64<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_f64(self.number().as_f64().ok_or(Fault::new(DeErrorKind::Inexact))?)
    }

    fn visit_exact_f32<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_f32(self.number().as_f32().ok_or(Fault::new(DeErrorKind::Inexact))?)
    }

    fn visit_variant_name<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_enum(UnitVariant { reader: self })
    }

    fn visit_variant<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        self.at += 1;
        if self.token() != b'"' {
            return Err(Fault::invalid_value(Unexpected::Map, &"an object with one member"));
        }
        let value = visitor.visit_enum(Enum { reader: self })?;
        self.end(b'}', value)
    }
}

impl<'de, S: Scratch<'de>> Deserializer<'de> for &mut Reader<'de, S> {
    type Error = Fault;

    deserialize! {
        deserialize_any:
            b'"' => visit_text,
            b'{' => visit_object,
            b'[' => visit_array,
            b't' => visit_true,
            b'f' => visit_false,
            b'n' => visit_null,
            b'-' | b'0'..=b'9' => visit_number;
        deserialize_bool: b't' => visit_true, b'f' => visit_false;
        deserialize_f32: b'-' | b'0'..=b'9' => visit_exact_f32;
        deserialize_f64: b'-' | b'0'..=b'9' => visit_exact_f64;
        deserialize_char: b'"' => visit_text;
        deserialize_str: b'"' => visit_text;
        deserialize_string: b'"' => visit_text;
        deserialize_identifier: b'"' => visit_text;
        deserialize_bytes: b'"' => visit_text_bytes, b'[' => visit_array;
        deserialize_byte_buf: b'"' => visit_text_bytes, b'[' => visit_array;
        deserialize_unit: b'n' => visit_null;
        deserialize_seq: b'[' => visit_array;
        deserialize_map: b'{' => visit_object;
    }

    deserialize_integer! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.token() == b'n' {
            self.at += 4;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        self.token();
        let at = self.at;
        visitor.visit_newtype_struct(self).map_err(|fault| fault.or_at(at))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    /// An object. (`serde_json` takes an array, too; a schema that describes the fields by name does not.)
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let token = self.token();
        let at = self.at;
        match token {
            b'"' => self.visit_variant_name(visitor),
            b'{' => self.visit_variant(visitor),
            _ => Err(self.wrong(&visitor)),
        }
        .map_err(|fault| fault.or_at(at))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.token();
        self.skip();
        visitor.visit_unit()
    }
}
