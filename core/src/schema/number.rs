//! Arithmetic on numbers as JSON has them: exact, whatever mixture of integers and floating point (invariant S4).

use core::cmp::Ordering;

use crate::json::{Number, SMALL};

/// 2^64, 2^63 and 2^53 as floating point, all exact.
const TWO_64: f64 = 18_446_744_073_709_551_616.0;
const TWO_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_53: f64 = 9_007_199_254_740_992.0;

/// The number `value`.
pub(crate) const fn from_i64(value: i64) -> Number {
    if value < 0 { Number::I64(value) } else { Number::U64(value.unsigned_abs()) }
}

/// The same number, as an integer where it is one that fits, so that it is written without a fraction.
pub(crate) const fn canonical(value: Number) -> Number {
    match value {
        Number::I64(value) => from_i64(value),
        Number::F64(_) if SMALL => value,
        Number::F64(float) if is_integral(value) && float >= 0.0 && float < TWO_64 => Number::U64(float as u64),
        Number::F64(float) if is_integral(value) && float < 0.0 && float >= -TWO_63 => Number::I64(float as i64),
        other => other,
    }
}

/// Whether the number has no fraction. False for what is not finite.
pub(crate) const fn is_integral(value: Number) -> bool {
    match value {
        Number::U64(_) | Number::I64(_) => true,
        Number::F64(_) if SMALL => false,
        // From 2^53 on there is no room for a fraction.
        Number::F64(float) => {
            float.is_finite() && (float >= TWO_53 || float <= -TWO_53 || float as i64 as f64 == float)
        }
    }
}

/// Whether the number is above 2^53 or below -2^53, where an `f64` no longer stands for one integer alone.
pub(crate) const fn is_beyond_53_bits(value: Number) -> bool {
    compare(value, Number::F64(TWO_53)).is_gt() || compare(value, Number::F64(-TWO_53)).is_lt()
}

/// Whether the number is one. In a small gate no decimal is.
pub(crate) const fn is_finite(value: Number) -> bool {
    !matches!(value, Number::F64(float) if SMALL || !float.is_finite())
}

/// Which of two numbers is the greater, exactly. What is not a number is equal to anything, so ask [`is_finite`] first.
pub(crate) const fn compare(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (Number::F64(_), _) | (_, Number::F64(_)) if SMALL => Ordering::Equal,
        (Number::F64(a), Number::F64(b)) => {
            if a < b {
                Ordering::Less
            } else if a > b {
                Ordering::Greater
            } else {
                Ordering::Equal
            }
        }
        (Number::F64(a), b) => compare_float(a, b),
        (a, Number::F64(b)) => compare_float(b, a).reverse(),
        (Number::U64(a), Number::U64(b)) => compare_u64(a, b),
        (Number::I64(a), Number::I64(b)) => {
            if a < b {
                Ordering::Less
            } else if a > b {
                Ordering::Greater
            } else {
                Ordering::Equal
            }
        }
        (Number::U64(a), Number::I64(b)) => {
            if b < 0 {
                Ordering::Greater
            } else {
                compare_u64(a, b.unsigned_abs())
            }
        }
        (Number::I64(a), Number::U64(b)) => {
            if a < 0 {
                Ordering::Less
            } else {
                compare_u64(a.unsigned_abs(), b)
            }
        }
    }
}

/// The least integer not below the number.
pub(crate) const fn ceil(value: Number) -> Number {
    match canonical(value) {
        // Beyond 2^53 there is no fraction.
        Number::F64(float) if !SMALL && float > -TWO_53 && float < TWO_53 => {
            let towards_zero = float as i64;
            from_i64(if (towards_zero as f64) < float { towards_zero.saturating_add(1) } else { towards_zero })
        }
        whole => whole,
    }
}

/// The greatest integer not above the number.
pub(crate) const fn floor(value: Number) -> Number {
    match canonical(value) {
        Number::F64(float) if !SMALL && float > -TWO_53 && float < TWO_53 => {
            let towards_zero = float as i64;
            from_i64(if (towards_zero as f64) > float { towards_zero.saturating_sub(1) } else { towards_zero })
        }
        whole => whole,
    }
}

const fn compare_u64(a: u64, b: u64) -> Ordering {
    if a < b {
        Ordering::Less
    } else if a > b {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// Compares a floating-point number with an integer, without rounding the integer.
const fn compare_float(float: f64, integer: Number) -> Ordering {
    if float >= TWO_64 {
        return Ordering::Greater;
    }
    if float < -TWO_63 {
        return Ordering::Less;
    }
    // Both casts are exact after the fraction is dropped, and so is the way back.
    let (whole, back) = if float < 0.0 {
        (from_i64(float as i64), float as i64 as f64)
    } else {
        (Number::U64(float as u64), float as u64 as f64)
    };
    match compare(whole, integer) {
        Ordering::Equal if float > back => Ordering::Greater,
        Ordering::Equal if float < back => Ordering::Less,
        order => order,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_number() -> impl Strategy<Value = Number> {
        let edges = [
            0,
            1,
            (1u64 << 53) - 1,
            1 << 53,
            (1 << 53) + 1,
            (1 << 63) - 1,
            1 << 63,
            (1 << 63) + 1,
            u64::MAX - 1,
            u64::MAX,
        ];
        let near = (proptest::sample::select(edges.to_vec()), any::<bool>());
        prop_oneof![
            any::<u64>().prop_map(Number::U64),
            (i64::MIN..0).prop_map(Number::I64),
            (-50i64..50).prop_map(from_i64),
            (-200i64..200).prop_map(|quarter| Number::F64(quarter as f64 / 4.0)),
            near.clone().prop_map(|(edge, minus)| if minus { from_i64(edge as i64) } else { Number::U64(edge) }),
            near.prop_map(|(edge, minus)| Number::F64(if minus { -(edge as f64) } else { edge as f64 })),
            proptest::num::f64::NORMAL.prop_map(Number::F64),
        ]
    }

    /// The number times 2^2 as an integer, where it is small enough: a second way to compare.
    fn quarters(value: Number) -> Option<i128> {
        match value {
            Number::U64(value) => Some(i128::from(value) * 4),
            Number::I64(value) => Some(i128::from(value) * 4),
            Number::F64(value) if value.abs() < 1e30 && (value * 4.0).fract() == 0.0 => Some((value * 4.0) as i128),
            Number::F64(_) => None,
        }
    }

    proptest! {
        #[test]
        fn s4_numbers_compare_exactly(a in any_number(), b in any_number()) {
            prop_assert_eq!(compare(a, b), compare(b, a).reverse());
            prop_assert_eq!(compare(a, a), Ordering::Equal);
            // The reader's own comparison, which is none that a constant can ask, is of the same opinion.
            prop_assert_eq!(compare(a, b), a.cmp_value(b));
            prop_assert_eq!(is_integral(a), a.is_whole());
            if let (Some(x), Some(y)) = (quarters(a), quarters(b)) {
                prop_assert_eq!(compare(a, b), x.cmp(&y));
            }
        }

        #[test]
        fn s4_the_canonical_form_is_the_same_number(a in any_number()) {
            prop_assert_eq!(compare(canonical(a), a), Ordering::Equal);
            prop_assert_eq!(is_integral(canonical(a)), is_integral(a));
        }

        #[test]
        fn rounding_goes_to_the_next_integer(a in any_number()) {
            let (low, high) = (floor(a), ceil(a));
            prop_assert!(is_integral(low) && is_integral(high));
            prop_assert!(compare(low, a) != Ordering::Greater && compare(high, a) != Ordering::Less);
            if let (Some(x), Some(low), Some(high)) = (quarters(a), quarters(low), quarters(high)) {
                prop_assert!(x - low < 4 && high - x < 4);
            }
        }
    }

    /// A whole number beyond 2^53 equals its neighbour only when it was rounded on the way.
    #[test]
    fn s4_one_above_2_to_53_is_not_2_to_53() {
        let exact = Number::U64((1 << 53) + 1);
        assert_eq!(compare(exact, Number::F64(TWO_53)), Ordering::Greater);
        assert_eq!(compare(Number::F64(TWO_64), Number::U64(u64::MAX)), Ordering::Greater);
        assert_eq!(compare(Number::F64(-TWO_63), Number::I64(i64::MIN)), Ordering::Equal);
        assert_eq!(compare(Number::F64(-0.5), Number::U64(0)), Ordering::Less);
    }

    /// The canonical form is an integer where one fits, and only there.
    #[test]
    fn s4_the_canonical_form_is_an_integer_where_one_fits() {
        for (float, canonical_form) in [
            (3.0, Number::U64(3)),
            (0.0, Number::U64(0)),
            (-0.0, Number::U64(0)),
            (-3.0, Number::I64(-3)),
            (-TWO_63, Number::I64(i64::MIN)),
            (TWO_63, Number::U64(1 << 63)),
            (TWO_64, Number::F64(TWO_64)),
            (-1e19, Number::F64(-1e19)),
            (0.5, Number::F64(0.5)),
            (-0.5, Number::F64(-0.5)),
        ] {
            assert_eq!(canonical(Number::F64(float)), canonical_form, "{float}");
        }
        assert_eq!([canonical(Number::I64(5)), canonical(Number::I64(-5))], [Number::U64(5), Number::I64(-5)]);
        assert_eq!([from_i64(0), from_i64(1), from_i64(-1)], [Number::U64(0), Number::U64(1), Number::I64(-1)]);
        for (a, b) in [(0, 0), (1, 1), (-1, -1), (i64::MAX, i64::MAX)] {
            assert_eq!(compare(Number::I64(a), from_i64(b)), Ordering::Equal);
            assert_eq!(compare(from_i64(b), Number::I64(a)), Ordering::Equal);
        }
        for (value, beyond) in
            [(TWO_53, false), (-TWO_53, false), (TWO_53 + 2.0, true), (-TWO_53 - 2.0, true), (0.0, false)]
        {
            assert_eq!(is_beyond_53_bits(Number::F64(value)), beyond, "{value}");
        }
    }

    #[test]
    fn rounding_of_halves() {
        assert_eq!(ceil(Number::F64(-0.5)), Number::U64(0));
        assert_eq!(floor(Number::F64(-0.5)), Number::I64(-1));
        assert_eq!(ceil(Number::F64(0.5)), Number::U64(1));
        assert_eq!(floor(Number::F64(0.5)), Number::U64(0));
        assert_eq!(floor(Number::F64(1e300)), Number::F64(1e300));
        let nearly = TWO_53 / 2.0 - 0.5;
        assert_eq!(
            [floor(Number::F64(nearly)), ceil(Number::F64(-nearly))],
            [from_i64((1 << 52) - 1), from_i64(1 - (1 << 52))]
        );
        assert_eq!([ceil(Number::F64(nearly)), floor(Number::F64(-nearly))], [from_i64(1 << 52), from_i64(-(1 << 52))]);
    }
}
