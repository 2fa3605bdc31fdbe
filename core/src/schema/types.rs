//! Sets of JSON types.

use core::fmt;

/// A set of the seven types of JSON Schema. `number` includes every integer.
///
/// ```
/// use callgate_core::schema::Types;
/// const ID: Types = Types::INTEGER.or(Types::STRING);
/// assert!(ID.contains(Types::STRING) && !ID.contains(Types::NULL));
/// assert_eq!(ID.to_string(), "integer or string");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Types(u8);

impl Types {
    /// No type: nothing fits.
    pub const NONE: Self = Self(0);
    /// `null`.
    pub const NULL: Self = Self(1);
    /// `true` and `false`.
    pub const BOOLEAN: Self = Self(1 << 1);
    /// Numbers without a fraction.
    pub const INTEGER: Self = Self(1 << 2);
    /// Numbers, integers included.
    pub const NUMBER: Self = Self(1 << 3 | Self::INTEGER.0);
    /// Texts.
    pub const STRING: Self = Self(1 << 4);
    /// Arrays.
    pub const ARRAY: Self = Self(1 << 5);
    /// Objects.
    pub const OBJECT: Self = Self(1 << 6);
    /// All of them.
    pub const ANY: Self = Self(0x7f);

    /// Both sets together.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The seven types with their names as JSON Schema writes them, in a fixed order.
    pub(super) const NAMES: [(Self, &'static str); 7] = [
        (Self::NULL, "null"),
        (Self::BOOLEAN, "boolean"),
        (Self::NUMBER, "number"),
        (Self::INTEGER, "integer"),
        (Self::STRING, "string"),
        (Self::ARRAY, "array"),
        (Self::OBJECT, "object"),
    ];

    /// The names as JSON Schema writes them, in a fixed order. `integer` is not named beside `number`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter_map(move |(kind, name)| self.names_alone(kind).then_some(name))
    }

    /// Whether one of the seven types is in the set, and is not told by another one that is.
    pub(super) const fn names_alone(self, kind: Self) -> bool {
        let covered = kind.0 == Self::INTEGER.0 && self.contains(Self::NUMBER);
        self.contains(kind) && !covered
    }

    /// How many types are named.
    pub(super) const fn count(self) -> u32 {
        self.0.count_ones().saturating_sub(if self.contains(Self::NUMBER) { 1 } else { 0 })
    }
}

/// `string`, or `null or string`; `nothing` for the empty set.
impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        for (nth, name) in self.names().enumerate() {
            if nth > 0 {
                f.write_str(" or ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}
