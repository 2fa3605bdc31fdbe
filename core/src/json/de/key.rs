//! Keys of objects, for map types whose keys are not strings.

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::access::NoContent;
use super::error::{DeErrorKind, Fault};
use super::scratch::Scratch;
use crate::json::number::Number;
use crate::json::{Limits, Text, scan};

/// A key: a string, or what its characters say when a number or a boolean is asked for.
pub(super) struct Key<'k, 'de, S> {
    pub(super) text: Text<'de>,
    pub(super) scratch: &'k mut S,
}

impl<'de, S: Scratch<'de>> Key<'_, 'de, S> {
    /// The number that the key is, written as JSON writes it and nothing else.
    fn number(&self) -> Option<Number> {
        let plain = self.text.as_plain()?;
        // Only a number both starts and ends so.
        if !plain.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
            || !plain.ends_with(|c: char| c.is_ascii_digit())
        {
            return None;
        }
        scan(plain.as_bytes(), &mut [], &Limits::DEFAULT).ok()?.value().as_number()
    }

    fn visit_integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.number() {
            Some(Number::U64(value)) => visitor.visit_u64(value),
            Some(Number::I64(value)) => visitor.visit_i64(value),
            _ => self.deserialize_any(visitor),
        }
    }
}

macro_rules! deserialize_integer {
    ($($name:ident)+) => {
        $(fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.visit_integer(visitor)
        })+
    };
}

impl<'de, S: Scratch<'de>> Deserializer<'de> for Key<'_, 'de, S> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.scratch.visit(self.text, visitor)
    }

    deserialize_integer! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.number() {
            Some(number) => visitor.visit_f64(number.as_f64().ok_or(Fault::new(DeErrorKind::Inexact))?),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.number() {
            Some(number) => visitor.visit_f32(number.as_f32().ok_or(Fault::new(DeErrorKind::Inexact))?),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text.as_plain() {
            Some("true") => visitor.visit_bool(true),
            Some("false") => visitor.visit_bool(false),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.scratch.visit_bytes(self.text, visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.scratch.visit_bytes(self.text, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        char str string unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

impl<'de, S: Scratch<'de>> EnumAccess<'de> for Key<'_, 'de, S> {
    type Error = Fault;
    type Variant = NoContent;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, NoContent), Fault> {
        Ok((seed.deserialize(self)?, NoContent))
    }
}
