//! Typed arguments and results: Rust types that say themselves what they are on the wire.
//!
//! A type that is a [`Parameter`] has one constant, its [`Schema`], from which everything else is made: the JSON Schema that
//! is advertised, the check of what comes, and the rules for its fields ([`Arguments::FIELDS`]: clamps and secrets). It
//! [reads](Read) itself straight from the arguments' text, without a tree in between, and without a heap where its fields
//! need none. A type that is an [`Output`] says so of results.
//!
//! Structs and enums derive all of it (`callgate-macros`); this module holds the traits, and the types of the language.
//!
//! # What the types are
//!
//! | type | what is accepted |
//! |---|---|
//! | `bool` | a boolean |
//! | `u8` to `u32`, `i8` to `i32` | an integer that the type holds |
//! | `u64`, `i64`, `usize`, `isize` | an integer that the type holds, beyond 53 bits too (invariant S4) |
//! | `f32`, `f64` | a number |
//! | `char` | a text of one code point |
//! | `&str`, `String`, `Cow<str>` | a text |
//! | `Option<T>` | what `T` is, `null`, or nothing |
//! | `[T; N]`, `Vec<T>` | an array |
//! | `BTreeMap<String, T>` | an object with any names |
//! | `Box<T>` | what `T` is |
//!
//! `&str` borrows from the text, or, for a text with escapes, from the room that is lent to [`read`]; without such room a
//! text with escapes is refused, and `Cow<str>` takes it.

mod bare;
mod input;
mod name;
mod output;

use core::marker::PhantomData;

use serde::de::value::{BoolDeserializer, BorrowedStrDeserializer, F64Deserializer, I64Deserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error};

pub use self::bare::{BareTool, Failed, Never};
pub use self::name::{FieldName, VariantName};
use crate::args::Args;
use crate::json::DeError;
use crate::schema::{Schema, SchemaFault};
use crate::tool::FieldRule;

#[doc(hidden)]
pub use serde;

/// A type that a field of a tool's arguments can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a parameter of a tool",
    label = "not a parameter",
    note = "parameters are bool, integers up to 64 bits, f32, f64, char, &str, String, Cow<str>, Option, Vec, arrays, BTreeMap<String, _>",
    note = "derive `Arguments` on a struct or an enum of your own"
)]
pub trait Parameter {
    /// What is accepted, with the clamps and secrets within.
    const SCHEMA: Schema<'static>;
    /// Whether a field of this type may be left out.
    const OPTIONAL: bool = false;
}

/// A parameter that reads itself from what a caller sent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be read from what a caller sends",
    label = "does not read itself",
    note = "derive `Arguments` on a struct or an enum of your own; an array of a fixed length needs items that have a `Default`"
)]
pub trait Read<'de>: Parameter + Sized {
    /// The value.
    ///
    /// # Errors
    /// Those of `source`, for what the type does not take. What the schema accepts the type takes, but for numbers that a
    /// floating-point type does not hold exactly (invariant S4).
    fn read<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error>;

    /// What a field is that was left out; `None` where it must be there.
    #[must_use]
    fn absent() -> Option<Self> {
        None
    }
}

/// All the arguments of a tool: a struct with named fields.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the arguments of a tool",
    label = "not the arguments of a tool",
    note = "derive `Arguments` on a struct with named fields"
)]
pub trait Arguments: Parameter {
    /// The clamps and secrets of all fields, nested ones too: [`Schema::rules`] of the schema.
    const FIELDS: &'static [FieldRule<'static>];
}

/// A type that a tool's result can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the result of a tool",
    label = "has no output schema",
    note = "derive `Output` beside serde's `Serialize` on a struct or an enum of your own",
    note = "a body that returns a `Reply` needs none, and has no output schema"
)]
pub trait Output {
    /// What serde writes for the type.
    const SCHEMA: Schema<'static>;
}

/// A [`Read`] type as one of serde: `Typed<T>` deserializes as `T` reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Typed<T>(
    /// The value.
    pub T,
);

impl<'de, T: Read<'de>> Deserialize<'de> for Typed<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        T::read(source).map(Self)
    }
}

/// Reads clamped arguments. Texts with escapes are unescaped into `room`, of which the length of the arguments' text always
/// suffices.
///
/// # Errors
/// Says which field the type does not take, and why, and never its value (invariant L4).
pub fn read<'a, T: Read<'a>>(args: Args<'a>, room: &'a mut [u8]) -> Result<T, DeError> {
    args.deserialize(room).map(|Typed(value)| value)
}

/// Reads clamped arguments, as [`read`] does, without room to lend: a `&str` does not take a text with escapes.
///
/// # Errors
/// Says which field the type does not take, and why, and never its value (invariant L4).
#[cfg(feature = "alloc")]
pub fn parse<'a, T: Read<'a>>(args: Args<'a>) -> Result<T, DeError> {
    args.parse().map(|Typed(value)| value)
}

/// Reads a `T` where serde asks for a seed.
#[derive(Clone, Copy, Debug)]
pub struct Seed<T>(PhantomData<fn() -> T>);

impl<T> Seed<T> {
    /// The seed.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Seed<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'de, T: Read<'de>> DeserializeSeed<'de> for Seed<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<T, D::Error> {
        T::read(source)
    }
}

// What derived code is made of beside serde.

/// The value of a field that came, or what it is when it did not.
///
/// # Errors
/// The field must be there.
pub fn present<'de, T: Read<'de>, E: Error>(came: Option<T>, name: &'static str) -> Result<T, E> {
    came.or_else(T::absent).ok_or_else(|| E::missing_field(name))
}

/// The default of a field, as it stands in the schema.
///
/// # Errors
/// The type does not take it.
pub fn default_text<'de, T: Read<'de>, E: Error>(text: &'static str) -> Result<T, E> {
    T::read(BorrowedStrDeserializer::new(text))
}

/// As [`default_text`].
///
/// # Errors
/// The type does not take it.
pub fn default_integer<'de, T: Read<'de>, E: Error>(value: i64) -> Result<T, E> {
    T::read(I64Deserializer::new(value))
}

/// As [`default_text`].
///
/// # Errors
/// The type does not take it.
pub fn default_float<'de, T: Read<'de>, E: Error>(value: f64) -> Result<T, E> {
    T::read(F64Deserializer::new(value))
}

/// As [`default_text`].
///
/// # Errors
/// The type does not take it.
pub fn default_bool<'de, T: Read<'de>, E: Error>(value: bool) -> Result<T, E> {
    T::read(BoolDeserializer::new(value))
}

/// Stops the compiler where a schema can't be used, and says why.
///
/// # Panics
/// When the schema can't be used. For constants alone: `const _: () = demand(&SCHEMA);`.
#[expect(clippy::panic, reason = "it is what stops the compiler, and nobody calls it at run time")]
pub const fn demand(schema: &Schema<'_>) {
    let Err(error) = schema.check() else { return };
    match error.fault() {
        SchemaFault::NamedValue(_) => {
            panic!("a default or a choice is not of the field's type; write a value of that type")
        }
        SchemaFault::Default(_) => {
            panic!("the default is outside of what the field takes; write a default within the bounds")
        }
        SchemaFault::Idle { keyword, kind } => match (keyword.as_bytes(), kind.as_bytes()) {
            (_, b"number") => {
                panic!("bounds of numbers on a field that is no number; remove them, or write `length` or `items`")
            }
            (_, b"string") => {
                panic!("bounds of a length on a field that is no text; remove them, or write `range` or `items`")
            }
            (_, b"array") => {
                panic!("bounds of a count on a field that is no list; remove them, or write `range` or `length`")
            }
            _ => panic!("a rule for properties on a field that is no object; remove it"),
        },
        SchemaFault::EmptyRange => panic!("no number lies within the bounds; check whether they are swapped"),
        SchemaFault::BeyondWidth => {
            panic!("a bound is beyond the integers that the field takes; bring it within the type")
        }
        SchemaFault::EmptyLength { .. } => {
            panic!("the least length is above the greatest; check whether they are swapped")
        }
        SchemaFault::Clamp(_) => panic!("the clamp can't be used; its bounds have to be finite and in order"),
        SchemaFault::Duplicate(_) => panic!("two fields have the same name on the wire; rename one"),
        SchemaFault::TooManyProperties => panic!("more than 128 fields; group them into nested structs"),
        SchemaFault::TooDeep | SchemaFault::TooLarge => {
            panic!("the types nest too deep or are too many; make them flatter")
        }
        SchemaFault::TooManyChoices => panic!("an enumeration of more than 256 values; check longer lists in the tool"),
        SchemaFault::NoChoice | SchemaFault::NoType => panic!("no value fits; an enum needs a variant"),
        SchemaFault::NullNotListed => panic!("the field is optional, and null is not among the values to choose from"),
        SchemaFault::NotFinite => panic!("a bound is not finite; JSON has no such number"),
        SchemaFault::LongName(_) => panic!("a name of more than 256 bytes; the reader would refuse it"),
    }
}

/// A constant as a bound of a schema.
///
/// # Panics
/// Beyond `i64`. For constants alone.
#[must_use]
#[expect(clippy::panic, reason = "it is what stops the compiler, and nobody calls it at run time")]
pub const fn bound(value: i128) -> i64 {
    if value < i64::MIN as i128 || value > i64::MAX as i128 {
        panic!("a bound is beyond i64; leave it out if it is the type's own");
    }
    value as i64
}

/// A constant as a length in a schema.
///
/// # Panics
/// Beyond `u32`. For constants alone.
#[must_use]
#[expect(clippy::panic, reason = "it is what stops the compiler, and nobody calls it at run time")]
pub const fn length(value: usize) -> u32 {
    if value > u32::MAX as usize {
        panic!("a length is beyond u32");
    }
    value as u32
}
