//! What visitors hold while they read an array, an object or a variant.

use serde::de::{Deserialize, DeserializeSeed, Deserializer as _, EnumAccess, Error as _, MapAccess, SeqAccess};
use serde::de::{Unexpected, VariantAccess, Visitor};

use super::Reader;
use super::error::Fault;
use super::key::Key;
use super::scratch::Scratch;

/// The items of an array.
pub(super) struct Seq<'r, 'de, S> {
    pub(super) reader: &'r mut Reader<'de, S>,
}

impl<'de, S: Scratch<'de>> SeqAccess<'de> for Seq<'_, 'de, S> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        if self.reader.token() == b']' {
            return Ok(None);
        }
        take(self.reader, seed).map(Some)
    }
}

/// The members of an object.
pub(super) struct Map<'r, 'de, S> {
    reader: &'r mut Reader<'de, S>,
    /// Whether a key was taken and its value was not.
    value_left: bool,
}

impl<'r, 'de, S> Map<'r, 'de, S> {
    pub(super) const fn new(reader: &'r mut Reader<'de, S>) -> Self {
        Self { reader, value_left: false }
    }
}

impl<'de, S: Scratch<'de>> MapAccess<'de> for Map<'_, 'de, S> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        if core::mem::take(&mut self.value_left) {
            self.reader.token();
            self.reader.skip();
        }
        if self.reader.token() == b'}' {
            return Ok(None);
        }
        self.value_left = true;
        let at = self.reader.at;
        let key = self.reader.string();
        let taken = seed.deserialize(Key { text: key, scratch: &mut self.reader.scratch });
        taken.map(Some).map_err(|fault| fault.or_at(at))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        self.value_left = false;
        self.reader.token();
        take(self.reader, seed)
    }
}

/// Lets `seed` take the value that starts here, and skips it if it was not looked at.
fn take<'de, S: Scratch<'de>, T: DeserializeSeed<'de>>(
    reader: &mut Reader<'de, S>,
    seed: T,
) -> Result<T::Value, Fault> {
    let at = reader.at;
    let value = seed.deserialize(&mut *reader).map_err(|fault| fault.or_at(at))?;
    if reader.at == at {
        reader.skip();
    }
    Ok(value)
}

/// A variant given by its name alone.
pub(super) struct UnitVariant<'r, 'de, S> {
    pub(super) reader: &'r mut Reader<'de, S>,
}

impl<'de, S: Scratch<'de>> EnumAccess<'de> for UnitVariant<'_, 'de, S> {
    type Error = Fault;
    type Variant = NoContent;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, NoContent), Fault> {
        Ok((seed.deserialize(self.reader)?, NoContent))
    }
}

/// The content of a variant that has none.
pub(super) struct NoContent;

impl<'de> VariantAccess<'de> for NoContent {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, Fault> {
        Err(Fault::invalid_type(Unexpected::UnitVariant, &"a variant with a value"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Fault> {
        Err(Fault::invalid_type(Unexpected::UnitVariant, &"a variant with an array"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _fields: &'static [&'static str], _visitor: V) -> Result<V::Value, Fault> {
        Err(Fault::invalid_type(Unexpected::UnitVariant, &"a variant with an object"))
    }
}

/// A variant given as an object with one member: its name and its content.
pub(super) struct Enum<'r, 'de, S> {
    pub(super) reader: &'r mut Reader<'de, S>,
}

impl<'de, S: Scratch<'de>> EnumAccess<'de> for Enum<'_, 'de, S> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let at = self.reader.at;
        let name = self.reader.string();
        let variant = seed.deserialize(Key { text: name, scratch: &mut self.reader.scratch });
        let variant = variant.map_err(|fault| fault.or_at(at))?;
        self.reader.token();
        Ok((variant, self))
    }
}

impl<'de, S: Scratch<'de>> VariantAccess<'de> for Enum<'_, 'de, S> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Deserialize::deserialize(self.reader)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        take(self.reader, seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.reader.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _fields: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        self.reader.deserialize_map(visitor)
    }
}
