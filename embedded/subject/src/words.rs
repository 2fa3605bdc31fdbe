//! Members of an object of the protocol, none of which may be unknown.

use callgate_core::json::{Number, Text, Value};

use crate::Trouble::{self, Error, Unsupported};

/// An object, whose members all have names that are known.
#[derive(Clone, Copy)]
pub(crate) struct Words<'w>(Value<'w>);

impl<'w> Words<'w> {
    pub(crate) fn of(value: Value<'w>, known: &[&str]) -> Result<Self, Trouble> {
        let all = value.members().all(|(name, _)| known.iter().any(|known| name.eq_str(known)));
        if all { Ok(Self(value)) } else { Err(Error("a member is not in the protocol")) }
    }

    pub(crate) const fn value(self) -> Value<'w> {
        self.0
    }

    /// The member, unless it is not there or null.
    pub(crate) fn get(self, name: &str) -> Option<Value<'w>> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(self, name: &str) -> Result<Option<&'w str>, Trouble> {
        self.get(name).map(crate::plain).transpose()
    }

    pub(crate) fn name(self, name: &str) -> Result<&'w str, Trouble> {
        self.text(name)?.ok_or(Error("something has no name"))
    }

    pub(crate) fn number(self, name: &str) -> Result<Option<Number>, Trouble> {
        self.get(name).map(|value| value.as_number().ok_or(Error("a number is none"))).transpose()
    }

    pub(crate) fn count(self, name: &str) -> Result<Option<u64>, Trouble> {
        let count = |number: Number| number.as_u64().ok_or(Error("a count is none"));
        self.number(name)?.map(count).transpose()
    }

    pub(crate) fn integer(self, name: &str) -> Result<Option<i64>, Trouble> {
        let integer = |number: Number| number.as_i64().ok_or(Unsupported("an integer beyond 64 bits"));
        self.number(name)?.map(integer).transpose()
    }

    pub(crate) fn yes(self, name: &str, unless: bool) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(unless)
    }

    pub(crate) fn list(self, name: &str) -> impl Iterator<Item = Value<'w>> {
        self.get(name).into_iter().flat_map(Value::items)
    }
}

/// The text, if the value is one without escapes.
pub(crate) fn text(value: Value<'_>) -> Option<&str> {
    value.as_text().and_then(Text::as_plain)
}
