//! Why arguments did not become a typed value.

use core::fmt::{self, Write as _};

use serde::de::{self, Expected, Unexpected};

use crate::fields::Trail;
use crate::json::Value;

/// Arguments that the asked type cannot take: which field, and why. Never holds a value (invariant L4): what a type says
/// about a value in its own words is left out.
///
/// `Display` prints `filter.limit: expected u8, found a number that does not fit`.
#[derive(Clone, Copy)]
pub struct DeError {
    fault: Fault,
    field: Short<55>,
}

/// What is wrong, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DeErrorKind {
    /// A value of another type is asked for.
    Type {
        /// What stands there, such as `a string`.
        found: &'static str,
    },
    /// The type fits and the value does not, such as 300 for a `u8`.
    Value {
        /// What stands there, such as `a number`.
        found: &'static str,
    },
    /// An array has too few or too many items.
    Length,
    /// A field is missing.
    MissingField(&'static str),
    /// A field that the type does not have; these are the ones it has.
    UnknownField(&'static [&'static str]),
    /// A field that the type takes once, under whatever names, is there twice.
    DuplicateField(&'static str),
    /// A variant that the type does not have; these are the ones it has.
    UnknownVariant(&'static [&'static str]),
    /// The asked floating-point type does not hold this number exactly (invariant S4).
    Inexact,
    /// The scratch for strings with escapes is too small.
    NoRoom,
    /// The type refuses the value for a reason of its own.
    Refused,
}

impl DeError {
    /// Places `fault` among the fields of `value`.
    #[cold]
    pub(super) fn new(fault: Fault, value: Value<'_>) -> Self {
        let mut trail = Trail::default();
        for (at, event) in value.events().take_while(|(at, _)| *at <= fault.at) {
            // Behind the place nothing is told apart: a fault at an end bracket concerns the container.
            if !matches!(event, crate::json::Event::EndArray | crate::json::Event::EndObject) || at < fault.at {
                trail.step(&event);
            }
        }
        let mut field = Short::new();
        // A path that is too long is shown without its end.
        let _ = write!(field, "{trail}");
        Self { fault, field }
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> DeErrorKind {
        self.fault.kind
    }

    /// The field, as a path such as `filter.limit` or `rows[3]`; empty for the whole value.
    #[must_use]
    pub fn field(&self) -> &str {
        self.field.as_str()
    }

    /// The offset of the value concerned, in the text of the arguments.
    #[must_use]
    pub const fn at(&self) -> u32 {
        self.fault.at
    }

    /// What is wrong and what would be right, without the field.
    #[must_use]
    pub const fn reason(&self) -> &(dyn fmt::Display + '_) {
        &self.fault
    }
}

impl fmt::Display for DeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field() {
            "" => write!(f, "{}", self.fault),
            field => write!(f, "{field}: {}", self.fault),
        }
    }
}

impl fmt::Debug for DeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeError({self})")
    }
}

impl core::error::Error for DeError {}

/// The error that serde sees: small, because every step of a visitor hands one on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    kind: DeErrorKind,
    /// Where the value is; `u32::MAX` while that is not known.
    at: u32,
    /// What the type expects, in its words. Those are of the type and not of the value.
    expected: Short<35>,
}

impl Fault {
    #[cold]
    pub(super) const fn new(kind: DeErrorKind) -> Self {
        Self { kind, at: u32::MAX, expected: Short::new() }
    }

    #[cold]
    fn expecting(kind: DeErrorKind, expected: &dyn Expected) -> Self {
        let mut fault = Self::new(kind);
        let _ = write!(fault.expected, "{expected}");
        fault
    }

    /// The same fault, at `at` unless its place is known already.
    #[cold]
    pub(super) const fn or_at(mut self, at: usize) -> Self {
        if self.at == u32::MAX {
            self.at = at as u32;
        }
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            DeErrorKind::Type { found } => write!(f, "expected {}, found {found}", self.expected.as_str()),
            DeErrorKind::Value { found } => {
                write!(f, "expected {}, found {found} that does not fit", self.expected.as_str())
            }
            DeErrorKind::Length if self.expected.as_str().is_empty() => f.write_str("too many items"),
            DeErrorKind::Length => write!(f, "expected {}, found another number of items", self.expected.as_str()),
            DeErrorKind::MissingField(name) => write!(f, "the field `{name}` is missing"),
            DeErrorKind::UnknownField(names) => {
                f.write_str("unknown field, ")?;
                one_of(names, f)
            }
            DeErrorKind::DuplicateField(name) => write!(f, "the field `{name}` is given twice"),
            DeErrorKind::UnknownVariant(names) => {
                f.write_str("unknown variant, ")?;
                one_of(names, f)
            }
            DeErrorKind::Inexact => f.write_str("the number cannot be kept exactly; send one with fewer digits"),
            DeErrorKind::NoRoom => f.write_str("too many characters in strings with escapes"),
            DeErrorKind::Refused => f.write_str("the value is not acceptable"),
        }
    }
}

fn one_of(names: &[&str], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some((first, others)) = names.split_first() else { return f.write_str("none is expected") };
    write!(f, "expected `{first}`")?;
    others.iter().try_for_each(|name| write!(f, ", `{name}`"))
}

impl core::error::Error for Fault {}

impl de::Error for Fault {
    #[cold]
    fn custom<T: fmt::Display>(_message: T) -> Self {
        // The message may hold the value.
        Self::new(DeErrorKind::Refused)
    }

    #[cold]
    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expecting(DeErrorKind::Type { found: name(unexpected) }, expected)
    }

    #[cold]
    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expecting(DeErrorKind::Value { found: name(unexpected) }, expected)
    }

    #[cold]
    fn invalid_length(_len: usize, expected: &dyn Expected) -> Self {
        Self::expecting(DeErrorKind::Length, expected)
    }

    #[cold]
    fn unknown_variant(_variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(DeErrorKind::UnknownVariant(expected))
    }

    #[cold]
    fn unknown_field(_field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(DeErrorKind::UnknownField(expected))
    }

    #[cold]
    fn missing_field(field: &'static str) -> Self {
        Self::new(DeErrorKind::MissingField(field))
    }

    #[cold]
    fn duplicate_field(field: &'static str) -> Self {
        Self::new(DeErrorKind::DuplicateField(field))
    }
}

/// What stands there, without its value.
const fn name(unexpected: Unexpected<'_>) -> &'static str {
    match unexpected {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a decimal",
        Unexpected::Char(_) | Unexpected::Str(_) | Unexpected::Bytes(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "an array",
        Unexpected::Map | Unexpected::NewtypeStruct => "an object",
        Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant => "another kind of variant",
        Unexpected::Other(_) => "another value",
    }
}

/// A text of at most `N` bytes; what does not fit is left out.
#[derive(Clone, Copy)]
struct Short<const N: usize> {
    len: u8,
    bytes: [u8; N],
}

impl<const N: usize> Short<N> {
    const fn new() -> Self {
        Self { len: 0, bytes: [0; N] }
    }

    fn as_str(&self) -> &str {
        self.bytes.get(..usize::from(self.len)).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Write for Short<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            let mut utf8 = [0; 4];
            let encoded = c.encode_utf8(&mut utf8).as_bytes();
            let end = usize::from(self.len) + encoded.len();
            let Some(free) = self.bytes.get_mut(usize::from(self.len)..end) else { return Err(fmt::Error) };
            for (to, from) in free.iter_mut().zip(encoded) {
                *to = *from;
            }
            self.len = end as u8;
        }
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for Short<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

// They travel by value, through every frame of a visitor.
const _: () = assert!(size_of::<DeError>() <= 120 && size_of::<Fault>() <= 64);
