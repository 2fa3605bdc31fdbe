//! What a tool accepts: a schema as a constant, checked while the arguments are read past once.
//!
//! A [`Schema`] is built by `const` functions, borrows everything and needs no heap, so it lies in flash beside the code:
//!
//! ```
//! use callgate_core::schema::{Property, Schema};
//!
//! const SEARCH: Schema<'static> = Schema::object(&[
//!     Property::required("pattern", Schema::string().min_length(1).max_length(200)),
//!     Property::optional("max", Schema::integer().minimum(1).maximum(100).describe("how many hits to give back")),
//!     Property::optional("order", Schema::choice(&["name", "date"]).nullable()),
//! ]);
//! const _: () = assert!(SEARCH.check().is_ok());
//!
//! let mut text = String::new();
//! SEARCH.write_json_schema(&mut text).unwrap();
//! assert!(text.contains(r#""additionalProperties":false"#));
//! ```
//!
//! # What the words mean
//!
//! Every keyword means what JSON Schema 2020-12 says, and [`Schema::write_json_schema`] writes exactly what
//! [`Schema::validate`] checks: a bound on numbers says nothing about a string, a required property says nothing about an
//! array, `1.0` is an integer and equals `1`, lengths count Unicode code points. Two things are stricter by default, and
//! are written out in the exported text too: an object built from properties is closed (invariant S8), and an integer lies
//! within 53 bits, where every reader of JSON keeps it exactly (invariant S4).
//!
//! Nothing is coerced or filled in (invariant S9): `"1"` is no number and a default is only advertised.
//!
//! The same text can be written while the program is compiled: [`json_schema!`](crate::json_schema).
//!
//! A schema can also carry what is no matter of JSON Schema: the [clamps](Schema::clamped) of its fields and which of them
//! are [secrets](Schema::secret). [`Schema::rules`] makes the tool's [`FieldRule`](crate::tool::FieldRule)s of them, which
//! are what the gate goes by.
//!
//! # Limits
//!
//! [`Schema::check`] refuses what can't be checked within fixed memory: objects of more than [`MAX_PROPERTIES`] properties,
//! nesting beyond [`MAX_DEPTH`], more than [`MAX_NODES`] nodes (invariants S5, S6). A schema that was never checked refuses
//! every argument where it hits such a limit (invariant F5).

mod check;
mod constant;
mod export;
mod fit;
mod literal;
mod mark;
pub(crate) mod number;
mod reason;
mod tagged;
mod types;
mod validate;

pub use check::{SchemaError, SchemaFault};
pub use constant::JsonText;
pub use literal::Literal;
pub use mark::Rules;
pub use types::Types;
pub(crate) use validate::{Frame, SHALLOW, Walk, has_chars};

use crate::clamp::Clamp;
use crate::json::Number;

/// The most properties that one object may declare; which of them came is kept in one 128-bit word.
pub const MAX_PROPERTIES: usize = 128;
/// The deepest nesting of schemas, the root counted.
pub const MAX_DEPTH: u8 = if crate::json::SMALL { 4 } else { 32 };
/// The most schemas within a schema, itself counted.
pub const MAX_NODES: u32 = 1024;
/// The most values that an enumeration may list.
pub const MAX_CHOICES: usize = 256;
/// The greatest integer that every reader of JSON keeps exactly, 2^53 - 1. Its negative is the least.
pub const SAFE_INTEGER: i64 = (1 << 53) - 1;

/// A description of JSON values; see the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a> {
    types: Types,
    width: Width,
    choices: Choices<'a>,
    minimum: Option<Limit>,
    maximum: Option<Limit>,
    min_length: Option<u32>,
    max_length: Option<u32>,
    items: Option<&'a Schema<'a>>,
    min_items: Option<u32>,
    max_items: Option<u32>,
    properties: &'a [Property<'a>],
    additional: Additional<'a>,
    /// Whether an object holds one of its properties, and no second one.
    tagged: bool,
    clamp: Option<&'a Clamp>,
    secret: bool,
    description: Option<&'a str>,
    default: Option<Literal<'a>>,
    /// Nesting and size, counted while the schema is built. They can only be counted of finished parts, and so no schema
    /// can be within itself.
    depth: u8,
    nodes: u32,
}

/// A property that an object declares.
#[derive(Clone, Copy, Debug)]
pub struct Property<'a> {
    name: &'a str,
    schema: Schema<'a>,
    required: bool,
}

/// Which integers `integer` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Width {
    /// Within 53 bits.
    Safe,
    /// What fits into an `i64` or a `u64`.
    Full,
    /// Every number without a fraction.
    Any,
}

/// The values to choose from.
#[derive(Clone, Copy, Debug)]
enum Choices<'a> {
    Free,
    /// One of these texts; or null, where the types have it.
    Texts(&'a [&'a str]),
    /// One of these values.
    Values(&'a [Literal<'a>]),
    /// This very value.
    Only(Literal<'a>),
}

/// A bound of numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Limit {
    at: Number,
    /// Whether the bound itself is outside.
    exclusive: bool,
}

/// What holds for members that an object does not declare.
#[derive(Clone, Copy, Debug)]
enum Additional<'a> {
    Allowed,
    Refused,
    Each(&'a Schema<'a>),
}

impl<'a> Property<'a> {
    /// A property that must be there.
    #[must_use]
    pub const fn required(name: &'a str, schema: Schema<'a>) -> Self {
        Self { name, schema, required: true }
    }

    /// A property that must be there if `required` says so.
    #[must_use]
    pub const fn new(name: &'a str, schema: Schema<'a>, required: bool) -> Self {
        Self { name, schema, required }
    }

    /// A property that may be left out.
    #[must_use]
    pub const fn optional(name: &'a str, schema: Schema<'a>) -> Self {
        Self { name, schema, required: false }
    }

    /// The name, as it stands in the JSON text once its escapes are resolved.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// What its value must be.
    #[must_use]
    pub const fn schema(&self) -> &Schema<'a> {
        &self.schema
    }

    /// Whether it must be there.
    #[must_use]
    pub const fn is_required(&self) -> bool {
        self.required
    }
}

/// Where a schema starts.
impl<'a> Schema<'a> {
    /// Values of any of these types.
    #[must_use]
    pub const fn of(types: Types) -> Self {
        Self {
            types,
            width: Width::Safe,
            choices: Choices::Free,
            minimum: None,
            maximum: None,
            min_length: None,
            max_length: None,
            items: None,
            min_items: None,
            max_items: None,
            properties: &[],
            additional: Additional::Allowed,
            tagged: false,
            clamp: None,
            secret: false,
            description: None,
            default: None,
            depth: 1,
            nodes: 1,
        }
    }

    /// Any value at all, of any size that the reader admits.
    #[must_use]
    pub const fn any() -> Self {
        Self::of(Types::ANY)
    }

    /// `null`.
    #[must_use]
    pub const fn null() -> Self {
        Self::of(Types::NULL)
    }

    /// `true` or `false`.
    #[must_use]
    pub const fn boolean() -> Self {
        Self::of(Types::BOOLEAN)
    }

    /// A number without a fraction (`1` and `1.0` alike) within [`SAFE_INTEGER`] on both sides.
    #[must_use]
    pub const fn integer() -> Self {
        Self::of(Types::INTEGER)
    }

    /// A number without a fraction from -2^63 to 2^64 - 1; see [`Self::with_64_bits`].
    #[must_use]
    pub const fn integer64() -> Self {
        Self::integer().with_64_bits()
    }

    /// A number.
    #[must_use]
    pub const fn number() -> Self {
        Self::of(Types::NUMBER)
    }

    /// A text.
    #[must_use]
    pub const fn string() -> Self {
        Self::of(Types::STRING)
    }

    /// One of these texts.
    #[must_use]
    pub const fn choice(texts: &'a [&'a str]) -> Self {
        Self { choices: Choices::Texts(texts), ..Self::string() }
    }

    /// An array whose items all are `items`.
    #[must_use]
    pub const fn array(items: &'a Schema<'a>) -> Self {
        Self::of(Types::ARRAY).items(items)
    }

    /// An object of these properties and no others; see [`Self::open`].
    #[must_use]
    pub const fn object(properties: &'a [Property<'a>]) -> Self {
        Self::of(Types::OBJECT).properties(properties).closed()
    }

    /// An object of members with any names, each of which is `values`.
    #[must_use]
    pub const fn map(values: &'a Schema<'a>) -> Self {
        Self::of(Types::OBJECT).open_to(values)
    }
}

/// What narrows or widens a schema. As in JSON Schema each keyword concerns values of its own type only, and where it is
/// given twice the later one counts.
impl<'a> Schema<'a> {
    /// The same, or `null`. An enumeration of values must list [`Literal::Null`] too; one of texts need not.
    #[must_use]
    pub const fn nullable(mut self) -> Self {
        self.types = self.types.or(Types::NULL);
        self
    }

    /// Integers from -2^63 to 2^64 - 1 instead of those within 53 bits. For callers that keep such numbers exactly: many
    /// round them. Beyond 2^53 they must be written without a point or an exponent, so that a typed handler and the
    /// schema agree on which integer it is.
    #[must_use]
    pub const fn with_64_bits(mut self) -> Self {
        self.width = Width::Full;
        self
    }

    /// Integers however great, which is what `integer` means in JSON Schema. No integer type of Rust holds them all, so
    /// this is for schemas that came from elsewhere.
    #[must_use]
    pub const fn with_any_size(mut self) -> Self {
        self.width = Width::Any;
        self
    }

    /// Only these values. Numbers are equal when they are the same number, as `1` and `1.0`.
    #[must_use]
    pub const fn one_of(mut self, values: &'a [Literal<'a>]) -> Self {
        self.choices = Choices::Values(values);
        self
    }

    /// Of texts only these.
    #[must_use]
    pub const fn texts(mut self, texts: &'a [&'a str]) -> Self {
        self.choices = Choices::Texts(texts);
        self
    }

    /// Only this value.
    #[must_use]
    pub const fn constant(mut self, value: Literal<'a>) -> Self {
        self.choices = Choices::Only(value);
        self
    }

    /// Numbers not below `least`.
    #[must_use]
    pub const fn minimum(self, least: i64) -> Self {
        self.lower(number::from_i64(least), false)
    }

    /// Numbers not above `greatest`.
    #[must_use]
    pub const fn maximum(self, greatest: i64) -> Self {
        self.upper(number::from_i64(greatest), false)
    }

    /// Numbers above `bound`.
    #[must_use]
    pub const fn above(self, bound: i64) -> Self {
        self.lower(number::from_i64(bound), true)
    }

    /// Numbers below `bound`.
    #[must_use]
    pub const fn below(self, bound: i64) -> Self {
        self.upper(number::from_i64(bound), true)
    }

    /// Numbers not below `least`, which must be finite.
    #[must_use]
    pub const fn minimum_f64(self, least: f64) -> Self {
        self.lower(Number::F64(least), false)
    }

    /// Numbers not above `greatest`, which must be finite.
    #[must_use]
    pub const fn maximum_f64(self, greatest: f64) -> Self {
        self.upper(Number::F64(greatest), false)
    }

    /// Numbers above `bound`, which must be finite.
    #[must_use]
    pub const fn above_f64(self, bound: f64) -> Self {
        self.lower(Number::F64(bound), true)
    }

    /// Numbers below `bound`, which must be finite.
    #[must_use]
    pub const fn below_f64(self, bound: f64) -> Self {
        self.upper(Number::F64(bound), true)
    }

    /// Numbers above `at`, or from it on.
    #[must_use]
    pub const fn lower(mut self, at: Number, exclusive: bool) -> Self {
        self.minimum = Some(Limit { at: number::canonical(at), exclusive });
        self
    }

    /// Numbers below `at`, or up to it.
    #[must_use]
    pub const fn upper(mut self, at: Number, exclusive: bool) -> Self {
        self.maximum = Some(Limit { at: number::canonical(at), exclusive });
        self
    }

    /// Texts of at least so many Unicode code points.
    #[must_use]
    pub const fn min_length(mut self, chars: u32) -> Self {
        self.min_length = Some(chars);
        self
    }

    /// Texts of at most so many Unicode code points (up to four bytes each, and several in what a reader sees as one
    /// character).
    #[must_use]
    pub const fn max_length(mut self, chars: u32) -> Self {
        self.max_length = Some(chars);
        self
    }

    /// Arrays whose items all are `items`.
    #[must_use]
    pub const fn items(mut self, items: &'a Schema<'a>) -> Self {
        self.items = Some(items);
        self.contain(items)
    }

    /// Arrays of at least so many items.
    #[must_use]
    pub const fn min_items(mut self, items: u32) -> Self {
        self.min_items = Some(items);
        self
    }

    /// Arrays of at most so many items.
    #[must_use]
    pub const fn max_items(mut self, items: u32) -> Self {
        self.max_items = Some(items);
        self
    }

    /// Objects in which these properties, where they are there, are what they say. Leaves the schema as open or closed as
    /// it is.
    #[must_use]
    pub const fn properties(mut self, properties: &'a [Property<'a>]) -> Self {
        self.properties = properties;
        let mut rest = properties;
        while let Some((property, others)) = rest.split_first() {
            self = self.contain(&property.schema);
            rest = others;
        }
        self
    }

    /// Objects without members that are not declared.
    #[must_use]
    pub const fn closed(mut self) -> Self {
        self.additional = Additional::Refused;
        self
    }

    /// Objects with any other members, too: nobody looks at those, and a misspelt name goes unnoticed.
    #[must_use]
    pub const fn open(mut self) -> Self {
        self.additional = Additional::Allowed;
        self
    }

    /// Objects with other members, too, each of which is `values`.
    #[must_use]
    pub const fn open_to(mut self, values: &'a Schema<'a>) -> Self {
        self.additional = Additional::Each(values);
        self.contain(values)
    }

    /// What the value is for, told to the model.
    #[must_use]
    pub const fn describe(mut self, description: &'a str) -> Self {
        self.description = Some(description);
        self
    }

    /// What stands for a value that was left out, told to the model. The gate never fills it in; the tool does.
    #[must_use]
    pub const fn default_value(mut self, value: Literal<'a>) -> Self {
        self.default = Some(value);
        self
    }

    /// Counts a part.
    const fn contain(mut self, part: &Schema<'_>) -> Self {
        if self.depth <= part.depth {
            self.depth = part.depth.saturating_add(1);
        }
        self.nodes = self.nodes.saturating_add(part.nodes);
        self
    }
}

/// What a schema says.
impl<'a> Schema<'a> {
    /// The types it admits.
    #[must_use]
    pub const fn types(&self) -> Types {
        self.types
    }

    /// The declared properties, in order.
    #[must_use]
    pub const fn declared(&self) -> &'a [Property<'a>] {
        self.properties
    }

    /// The description.
    #[must_use]
    pub const fn description(&self) -> Option<&'a str> {
        self.description
    }

    /// How deep it nests; 1 for a schema without parts.
    #[must_use]
    pub const fn depth(&self) -> u8 {
        self.depth
    }

    /// How many schemas it holds, itself counted. A part that is used twice counts twice.
    #[must_use]
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }
}
