//! Numbers, kept exactly or refused (invariant S4).

use core::cmp::Ordering;
use core::fmt;

use super::decimal;
use super::limits::SMALL;

/// A number of a JSON text.
///
/// A token without fraction and exponent is an integer and must fit `u64` or `i64`. Any other token is a decimal: it is
/// kept as the `f64` whose shortest decimal notation is the token's value, and refused where there is none. `1.0` is
/// `F64(1.0)`, not `U64(1)`: [`cmp_value`](Self::cmp_value) compares by value, `==` also by kind.
#[derive(Clone, Copy, PartialEq, Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the three kinds are what the reader promises; a fourth breaks every reader of it"
)]
pub enum Number {
    /// An integer from 0 to 2^64 - 1. `-0` is 0.
    U64(u64),
    /// An integer from -2^63 to -1, never another.
    I64(i64),
    /// A decimal: finite, never `-0.0`.
    F64(f64),
}

/// Why a number that fits the grammar is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unfit {
    OutOfRange,
    Inexact,
}

/// The greatest integer up to which each `f64` without a fraction stands for itself alone: 2^53.
const MAX_EXACT: u64 = 1 << 53;

impl Number {
    /// The number `value`; `None` when it is not finite, and always in a [small](crate::json#small-devices) gate.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        // Adding 0.0 makes 0.0 of -0.0 and changes nothing else.
        (!SMALL && value.is_finite()).then_some(Self::F64(value + 0.0))
    }

    /// The value, if it is an integer from 0 to 2^64 - 1. A decimal without fraction (`1.0`) counts up to 2^53: beyond,
    /// an `f64` does not stand for one integer alone.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        self.as_i128().and_then(|value| u64::try_from(value).ok())
    }

    /// The value, if it is an integer from -2^63 to 2^63 - 1, with decimals as in [`as_u64`](Self::as_u64).
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        self.as_i128().and_then(|value| i64::try_from(value).ok())
    }

    /// The value, if it is an integer, with decimals as in [`as_u64`](Self::as_u64).
    #[must_use]
    pub fn as_i128(self) -> Option<i128> {
        match self {
            Self::U64(value) => Some(i128::from(value)),
            Self::I64(value) => Some(i128::from(value)),
            Self::F64(_) if SMALL => None,
            Self::F64(value) => {
                let whole = value as i64;
                (whole.unsigned_abs() <= MAX_EXACT && whole as f64 == value).then_some(i128::from(whole))
            }
        }
    }

    /// The value as `f64`, if it can be one exactly: a decimal always, an integer with at most 53 significant bits.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::U64(value) => fits_bits(value, 53).then_some(value as f64),
            Self::I64(value) => fits_bits(value.unsigned_abs(), 53).then_some(value as f64),
            Self::F64(value) => Some(value),
        }
    }

    /// The value as `f32`, if it can be one exactly: an integer with at most 24 significant bits, or a decimal whose
    /// notation is also the shortest notation of that `f32`.
    #[must_use]
    pub fn as_f32(self) -> Option<f32> {
        match self {
            Self::U64(value) => fits_bits(value, 24).then_some(value as f32),
            Self::I64(value) => fits_bits(value.unsigned_abs(), 24).then_some(value as f32),
            Self::F64(_) if SMALL => None,
            Self::F64(value) => {
                let short = value as f32;
                (f64::from(short) == value || decimal::same_notation(value, short)).then_some(short)
            }
        }
    }

    /// Whether the value has no fraction, as JSON Schema understands `integer`: `1.0` and `1e300` have none.
    #[must_use]
    pub fn is_whole(self) -> bool {
        match self {
            Self::U64(_) | Self::I64(_) => true,
            Self::F64(_) if SMALL => false,
            // From 2^53 on no f64 has a fraction.
            Self::F64(value) => value.abs() >= MAX_EXACT as f64 || (value as i64) as f64 == value,
        }
    }

    /// Compares two numbers by value, exactly and whatever their kinds: `1` equals `1.0`, 2^53 + 1 is greater than the
    /// `f64` 2^53.
    #[must_use]
    pub fn cmp_value(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::U64(a), Self::U64(b)) => a.cmp(&b),
            (Self::I64(a), Self::I64(b)) => a.cmp(&b),
            // By value and not by kind: a bound that somebody wrote as `I64(51)` is no reader's number, and still means 51.
            (Self::U64(a), Self::I64(b)) => i128::from(a).cmp(&i128::from(b)),
            (Self::I64(a), Self::U64(b)) => i128::from(a).cmp(&i128::from(b)),
            (Self::F64(_), _) | (_, Self::F64(_)) if SMALL => Ordering::Equal,
            // Both are finite, so they can be compared.
            (Self::F64(a), Self::F64(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (Self::F64(a), Self::U64(b)) => cmp_integer(i128::from(b), a).reverse(),
            (Self::F64(a), Self::I64(b)) => cmp_integer(i128::from(b), a).reverse(),
            (Self::U64(a), Self::F64(b)) => cmp_integer(i128::from(a), b),
            (Self::I64(a), Self::F64(b)) => cmp_integer(i128::from(a), b),
        }
    }
}

/// Whether `value` has at most `bits` bits from its first to its last one.
const fn fits_bits(value: u64, bits: u32) -> bool {
    value == 0 || 64 - value.leading_zeros() - value.trailing_zeros() <= bits
}

/// Compares an integer of at most 65 bits with a finite `f64`.
fn cmp_integer(integer: i128, float: f64) -> Ordering {
    // The cast drops the fraction and saturates far beyond 65 bits, so the whole part is exact wherever it matters.
    let whole = float as i128;
    integer.cmp(&whole).then_with(|| {
        let fraction = float - whole as f64;
        0.0.partial_cmp(&fraction).unwrap_or(Ordering::Equal)
    })
}

/// The number as a JSON token; read again, it is the same number of the same kind.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U64(value) => value.fmt(f),
            Self::I64(value) => value.fmt(f),
            // Nothing of a small gate makes one. Better no outcome than a wrong one.
            Self::F64(_) if SMALL => Err(fmt::Error),
            Self::F64(value) => f.write_str(ryu::Buffer::new().format_finite(*value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Limits, scan};
    use proptest::prelude::*;
    use std::string::ToString;

    const TWO_53: u64 = 1 << 53;

    // S4
    #[test]
    fn s4_numbers_compare_by_value() {
        use Ordering::{Equal, Greater, Less};
        let cases = [
            (Number::U64(1), Number::F64(1.0), Equal),
            (Number::U64(1), Number::F64(1.5), Less),
            (Number::I64(-1), Number::F64(-1.5), Greater),
            (Number::I64(-2), Number::F64(-1.5), Less),
            (Number::U64(0), Number::F64(5e-324), Less),
            (Number::U64(0), Number::F64(-5e-324), Greater),
            (Number::U64(0), Number::I64(-1), Greater),
            (Number::U64(TWO_53 + 1), Number::F64(TWO_53 as f64), Greater),
            (Number::U64(TWO_53), Number::F64(TWO_53 as f64), Equal),
            (Number::U64(u64::MAX), Number::F64(18_446_744_073_709_551_616.0), Less),
            (Number::I64(i64::MIN), Number::F64(-9_223_372_036_854_775_808.0), Equal),
            (Number::I64(i64::MIN + 1), Number::F64(-9_223_372_036_854_775_808.0), Greater),
            (Number::U64(u64::MAX), Number::F64(1e300), Less),
            (Number::I64(i64::MIN), Number::F64(-1e300), Greater),
            (Number::F64(0.1), Number::F64(0.2), Less),
        ];
        for (a, b, expected) in cases {
            assert_eq!(a.cmp_value(b), expected, "{a:?} {b:?}");
            assert_eq!(b.cmp_value(a), expected.reverse(), "{b:?} {a:?}");
        }
    }

    // S4: a conversion gives the value or nothing.
    #[test]
    fn s4_conversions_are_exact() {
        assert_eq!(Number::F64(1.0).as_u64(), Some(1));
        assert_eq!(Number::F64(-1.0).as_i64(), Some(-1));
        assert_eq!(Number::F64(-1.0).as_u64(), None);
        assert_eq!(Number::F64(1.5).as_i128(), None);
        assert_eq!(Number::F64(TWO_53 as f64).as_u64(), Some(TWO_53));
        assert_eq!(Number::F64((TWO_53 + 2) as f64).as_u64(), None);
        assert_eq!(Number::F64(-((TWO_53 + 2) as f64)).as_i64(), None);
        assert_eq!(Number::F64(1e300).as_i128(), None);
        assert_eq!(Number::U64(u64::MAX).as_i64(), None);
        assert_eq!(Number::U64(TWO_53 + 1).as_f64(), None);
        assert_eq!(Number::U64(TWO_53 + 2).as_f64(), Some((TWO_53 + 2) as f64));
        assert_eq!(Number::U64(u64::MAX).as_f64(), None);
        assert_eq!(Number::I64(i64::MIN).as_f64(), Some(i64::MIN as f64));
        assert_eq!(Number::I64(i64::MIN + 1).as_f64(), None);
        assert_eq!(Number::U64((1 << 24) + 1).as_f32(), None);
        assert_eq!(Number::U64((1 << 24) + 2).as_f32(), Some(16_777_218.0));
        assert_eq!(Number::F64(0.1).as_f32(), Some(0.1));
        assert_eq!(Number::F64(-0.1).as_f32(), Some(-0.1));
        assert_eq!(Number::F64(0.100_000_001).as_f32(), None);
        assert_eq!(Number::F64(1e39).as_f32(), None);
        assert_eq!(Number::from_f64(-0.0).map(Number::as_f64), Some(Some(0.0)));
        assert_eq!(Number::from_f64(f64::NAN), None);
        assert_eq!(Number::from_f64(f64::NEG_INFINITY), None);
        for (number, whole) in
            [(1.0, true), (1.5, false), (1e300, true), (5e-324, false), (-4_503_599_627_370_495.5, false)]
        {
            assert_eq!(Number::F64(number).is_whole(), whole, "{number}");
        }
    }

    /// A bound is compared by what it says, also where it is of a kind that the reader would not have given it.
    #[test]
    fn f5_a_bound_of_an_unusual_kind_means_what_it_says() {
        let bound = Number::I64(51);
        for (value, order) in [(50, Ordering::Less), (51, Ordering::Equal), (52, Ordering::Greater)] {
            assert_eq!(Number::U64(value).cmp_value(bound), order);
            assert_eq!(bound.cmp_value(Number::U64(value)), order.reverse());
        }
        assert_eq!(Number::I64(-1).cmp_value(Number::U64(0)), Ordering::Less);
        assert_eq!(Number::I64(i64::MIN).cmp_value(Number::U64(u64::MAX)), Ordering::Less);
    }

    fn numbers() -> impl Strategy<Value = Number> {
        prop_oneof![
            any::<u64>().prop_map(Number::U64),
            (i64::MIN..0).prop_map(Number::I64),
            any::<f64>().prop_filter_map("finite", Number::from_f64),
            (-1_000_000..1_000_000_i64).prop_map(|value| Number::F64(value as f64 / 4.0)),
        ]
    }

    proptest! {
        // S4: printed and read again, a number is the same number of the same kind.
        #[test]
        fn s4_a_printed_number_reads_back(number in numbers()) {
            let text = number.to_string();
            let scanned = scan(text.as_bytes(), &mut [], &Limits::DEFAULT).expect("a JSON number");
            prop_assert_eq!(scanned.value().as_number(), Some(number));
        }

        #[test]
        fn the_order_of_values_is_an_order(a in numbers(), b in numbers(), c in numbers()) {
            prop_assert_eq!(a.cmp_value(b), b.cmp_value(a).reverse());
            prop_assert_eq!(a.cmp_value(a), Ordering::Equal);
            if a.cmp_value(b).is_le() && b.cmp_value(c).is_le() {
                prop_assert!(a.cmp_value(c).is_le());
            }
            if let (Some(a_float), Some(b_float)) = (a.as_f64(), b.as_f64()) {
                prop_assert_eq!(Some(a.cmp_value(b)), a_float.partial_cmp(&b_float));
            }
            if let (Some(a_int), Some(b_int)) = (a.as_i128(), b.as_i128()) {
                prop_assert_eq!(a.cmp_value(b), a_int.cmp(&b_int));
            }
        }
    }
}
