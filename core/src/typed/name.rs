//! Names that a type declares: of its fields, of its variants.

use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, Visitor};

/// Reads the name of a field, and gives its position among the declared ones.
#[derive(Clone, Copy, Debug)]
pub struct FieldName(
    /// The declared names.
    pub &'static [&'static str],
);

/// Reads the name of a variant, and gives its position among the declared ones.
#[derive(Clone, Copy, Debug)]
pub struct VariantName(
    /// The declared names.
    pub &'static [&'static str],
);

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<usize, D::Error> {
        source.deserialize_identifier(self)
    }
}

impl<'de> DeserializeSeed<'de> for VariantName {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<usize, D::Error> {
        source.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        position(self.0, name).ok_or_else(|| E::unknown_field(name, self.0))
    }
}

impl Visitor<'_> for VariantName {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a variant")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        position(self.0, name).ok_or_else(|| E::unknown_variant(name, self.0))
    }
}

fn position(names: &[&str], name: &str) -> Option<usize> {
    names.iter().position(|declared| *declared == name)
}
