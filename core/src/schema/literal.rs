//! Values that a schema names.

use core::cmp::Ordering;

use super::Types;
use super::number;
use crate::json::{Event, Number};

/// A value that a schema names: in an enumeration, as a constant, as a default.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Literal<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; a floating-point one must be finite.
    Number(Number),
    /// A text.
    Text(&'a str),
}

impl Literal<'_> {
    /// An integer.
    #[must_use]
    pub const fn integer(value: i64) -> Self {
        Self::Number(number::from_i64(value))
    }

    /// A floating-point number, which must be finite.
    #[must_use]
    pub const fn float(value: f64) -> Self {
        Self::Number(number::canonical(Number::F64(value)))
    }

    /// The least set of types that the value is of.
    #[must_use]
    pub const fn types(self) -> Types {
        match self {
            Self::Null => Types::NULL,
            Self::Bool(_) => Types::BOOLEAN,
            Self::Number(value) if number::is_integral(value) => Types::INTEGER,
            Self::Number(_) => Types::NUMBER,
            Self::Text(_) => Types::STRING,
        }
    }

    /// Whether the value that starts with `event` is this one.
    pub(super) fn matches(self, event: &Event<'_>) -> bool {
        match (self, event) {
            (Self::Null, Event::Null) => true,
            (Self::Bool(this), Event::Bool(that)) => this == *that,
            (Self::Number(this), Event::Number(that)) => number::compare(this, *that) == Ordering::Equal,
            (Self::Text(this), Event::String(that)) => that.eq_str(this),
            _ => false,
        }
    }
}
