//! Why a text was refused.

use core::fmt;

/// A text that the reader refused: where, and why. Never holds a part of the text (invariant L4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// The offset of the byte at which the text is known to be wrong, from 0.
    pub at: u32,
    /// What is wrong.
    pub kind: ReadErrorKind,
}

/// What is wrong with a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The text ends inside a value (or holds none).
    UnexpectedEnd,
    /// The text starts with a byte order mark.
    ByteOrderMark,
    /// The text is not UTF-8.
    NotUtf8,
    /// Something other than white space follows the value.
    TrailingBytes,
    /// Something other than a JSON value stands where a value must stand.
    ExpectedValue,
    /// Something other than a string stands where the key of a member must stand.
    ExpectedKey,
    /// No colon follows a key.
    ExpectedColon,
    /// Neither a comma nor the end of the array or object follows a value.
    ExpectedCommaOrEnd,
    /// A backslash that RFC 8259 gives no meaning.
    InvalidEscape,
    /// A control character (U+0000 to U+001F) stands unescaped in a string.
    ControlCharacter,
    /// An escape for one half of a surrogate pair without the other: no character has it.
    LoneSurrogate,
    /// A number outside the grammar of RFC 8259, such as `01`, `+1`, `1.` or `.5`.
    InvalidNumber,
    /// An integer outside `i64` and `u64`, or a number beyond the greatest `f64`.
    NumberOutOfRange,
    /// A decimal that no `f64` stands for exactly: kept, it would be rounded (invariant S4).
    NumberInexact,
    /// A key that its object already has, compared after unescaping (invariant S2).
    DuplicateKey,
    /// More bytes than allowed.
    TooLong {
        /// The most bytes of a text.
        max: u32,
    },
    /// More arrays and objects open at once than allowed.
    TooDeep {
        /// The most open at once.
        max: u16,
    },
    /// More values than allowed.
    TooManyNodes {
        /// The most values of a text.
        max: u32,
    },
    /// More members in one object than allowed.
    TooManyMembers {
        /// The most members of an object.
        max: u32,
    },
    /// A key longer than allowed.
    KeyTooLong {
        /// The most bytes of a key.
        max: u32,
    },
    /// A number longer than allowed.
    NumberTooLong {
        /// The most characters of a number.
        max: u32,
    },
    /// The caller's key table is too small for this text; see [`key_capacity`](super::key_capacity).
    NoRoomForKeys,
    /// The text is not a JSON object, and arguments must be one.
    NotAnObject,
}

impl ReadErrorKind {
    /// A stable name for programs, such as `duplicate_key` or `number_out_of_range`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::UnexpectedEnd => "unexpected_end",
            Self::ByteOrderMark => "byte_order_mark",
            Self::NotUtf8 => "not_utf8",
            Self::TrailingBytes => "trailing_bytes",
            Self::ExpectedValue => "expected_value",
            Self::ExpectedKey => "expected_key",
            Self::ExpectedColon => "expected_colon",
            Self::ExpectedCommaOrEnd => "expected_comma_or_end",
            Self::InvalidEscape => "invalid_escape",
            Self::ControlCharacter => "control_character",
            Self::LoneSurrogate => "lone_surrogate",
            Self::InvalidNumber => "invalid_number",
            Self::NumberOutOfRange => "number_out_of_range",
            Self::NumberInexact => "number_inexact",
            Self::DuplicateKey => "duplicate_key",
            Self::TooLong { .. } => "max_bytes",
            Self::TooDeep { .. } => "max_depth",
            Self::TooManyNodes { .. } => "max_nodes",
            Self::TooManyMembers { .. } => "max_members",
            Self::KeyTooLong { .. } => "max_key_bytes",
            Self::NumberTooLong { .. } => "max_number_bytes",
            Self::NoRoomForKeys => "no_room_for_keys",
            Self::NotAnObject => "not_an_object",
        }
    }
}

impl fmt::Display for ReadErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::UnexpectedEnd => "the text ends too early; send the whole JSON value",
            Self::ByteOrderMark => "the text starts with a byte order mark; leave it out",
            Self::NotUtf8 => "the text is not UTF-8; encode it as UTF-8",
            Self::TrailingBytes => "something follows the JSON value; send one value and nothing after it",
            Self::ExpectedValue => "a JSON value is missing here",
            Self::ExpectedKey => "a key in double quotes is missing here",
            Self::ExpectedColon => "a colon is missing after the key",
            Self::ExpectedCommaOrEnd => "a comma or the closing bracket is missing here",
            Self::InvalidEscape => "JSON has no such escape; write a backslash as \\\\",
            Self::ControlCharacter => "a control character stands in a string; write it as \\u00XX",
            Self::LoneSurrogate => "half a surrogate pair stands alone; write both halves or the character itself",
            Self::InvalidNumber => "this is not a JSON number",
            Self::NumberOutOfRange => {
                "the number is out of range: integers must fit 64 bits, others must not exceed 1.7976931348623157e308"
            }
            Self::NumberInexact => "the number cannot be kept exactly; send fewer digits, or a string",
            Self::DuplicateKey => "the object already has this key; send each key once",
            Self::NoRoomForKeys => "the text has more keys than the reader has room for",
            Self::NotAnObject => "the arguments must be a JSON object, such as {}",
            Self::TooLong { max } => return write!(f, "the text is longer than {max} bytes"),
            Self::TooDeep { max } => {
                return write!(f, "arrays and objects are nested more than {max} deep");
            }
            Self::TooManyNodes { max } => {
                return write!(f, "the text holds more than {max} values");
            }
            Self::TooManyMembers { max } => {
                return write!(f, "the object has more than {max} members");
            }
            Self::KeyTooLong { max } => return write!(f, "the key is longer than {max} bytes"),
            Self::NumberTooLong { max } => {
                return write!(f, "the number is longer than {max} characters");
            }
        };
        f.write_str(text)
    }
}

/// `at byte 17: the object already has this key; send each key once`.
impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.kind)
    }
}

impl core::error::Error for ReadError {}
