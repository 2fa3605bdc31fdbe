//! Decimals to `f64` and back, exactly or not at all, without a panicking path.
//!
//! The parser and the printer of the standard library cannot be used here: both contain bounds checks and assertions that
//! stay in the linked program. `ryu` prints the shortest decimal that names an `f64`. Reading goes the same way: an
//! `f64` near the token's value is computed with 128 bits, and the token is accepted if the shortest decimal of that
//! `f64` is the token's value. So each accepted value has exactly one `f64` and each `f64` exactly one accepted value.
//! (Where two shortest decimals are equally near to an `f64`, the one with the even last digit is its notation, as in
//! ECMAScript and Python.)

use super::number::Unfit;
use super::token::Token;

/// The shortest notation of an `f64` has at most 17 significant digits.
const MAX_DIGITS: u64 = 10_u64.pow(17) - 1;
/// Up to 15 significant digits, each decimal in the normal range of `f64` is the shortest notation of the
/// nearest `f64` (`f64::DIGITS`).
const SAFE_DIGITS: u64 = 10_u64.pow(15) - 1;

/// Powers of ten that an `f64` holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// A decimal without its sign: `digits` times ten to the power of `exponent`, where `digits` does not end in 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decimal {
    digits: u64,
    exponent: i32,
}

/// `digits`, at most 15 of them, with so many of them behind the point.
pub(super) fn fraction(digits: u64, behind: usize) -> Option<f64> {
    // As in `to_f64`, and just as well with zeros at the end: both operands are exact.
    Some(digits as f64 / EXACT_POWERS.get(behind)?)
}

/// Whether the shortest notations of a finite `f64` and of an `f32` are the same decimal.
pub(super) fn same_notation(long: f64, short: f32) -> bool {
    let mut buffer = ryu::Buffer::new();
    short.is_finite()
        && (long < 0.0) == (short < 0.0)
        && Decimal::of_notation(buffer.format_finite(short.abs())) == Decimal::shortest(long.abs())
}

impl Decimal {
    pub(super) const fn new(mut digits: u64, mut exponent: i32) -> Self {
        if digits == 0 {
            return Self { digits: 0, exponent: 0 };
        }
        while digits.is_multiple_of(10) {
            digits /= 10;
            exponent = exponent.saturating_add(1);
        }
        Self { digits, exponent }
    }

    /// The shortest decimal that names a finite `f64` that is not negative.
    fn shortest(value: f64) -> Option<Self> {
        Self::of_notation(ryu::Buffer::new().format_finite(value))
    }

    fn of_notation(token: &str) -> Option<Self> {
        Token::read(token.as_bytes()).ok()?.parts().ok()
    }

    /// The `f64` that this decimal is the shortest notation of. Where the decimal is known to be one (`checked`), that is
    /// not verified again.
    pub(super) fn to_f64(self, checked: bool) -> Result<f64, Unfit> {
        if self.digits <= SAFE_DIGITS {
            // Both operands are exact, so the one rounding gives the nearest f64, and with so few digits its shortest
            // notation is this decimal.
            let power = EXACT_POWERS.get(usize::try_from(self.exponent.unsigned_abs()).unwrap_or(usize::MAX));
            if let Some(power) = power {
                let digits = self.digits as f64;
                return Ok(if self.exponent < 0 { digits / power } else { digits * power });
            }
        }
        if self.digits == 0 {
            return Ok(0.0);
        }
        // From 10^310 on, and below 10^-330, since there are 1 to 20 digits.
        if self.exponent > 310 {
            return Err(Unfit::OutOfRange);
        }
        if self.exponent < -350 || self.digits > MAX_DIGITS {
            return Err(Unfit::Inexact);
        }
        let wide = Wide::of(self.digits, self.exponent);
        match wide.nearest() {
            Some(nearest) if checked || self.is_shortest(wide, nearest) => Ok(f64::from_bits(nearest.bits)),
            _ => self.search(wide.floor_bits()),
        }
    }

    /// Whether this decimal is surely the shortest notation of its nearest `f64`. False where 128 bits do not tell.
    ///
    /// It is, if no decimal with fewer digits names the same `f64`, and no other decimal with as many digits is as near.
    fn is_shortest(self, wide: Wide, nearest: Nearest) -> bool {
        // The gap below a power of two is half of the gap above, and that among the smallest f64 is wide.
        if nearest.bits & ((1 << 52) - 1) == 0 || nearest.bits >> 52 == 0 {
            return false;
        }
        if self.digits <= SAFE_DIGITS {
            return true;
        }
        // What follows counts in 2^-64 of the gap between two f64, as `distance` does. First the worth of one unit of the
        // last digit: at most 2^67, as there are at least 16 digits.
        let unit = (wide.mantissa >> Wide::BELOW_DISTANCE).checked_div(u128::from(self.digits));
        let Some(unit) = unit.and_then(|unit| i128::try_from(unit).ok()) else { return false };
        let half = 1_i128 << 63;
        let distance = i128::from(nearest.distance);
        // The error of `unit` is below 2, so that of ten of them below 20; that of `distance` is below 2.
        let margin = i128::from(Nearest::MARGIN);
        let last = i128::from(self.digits % 10);
        let (shorter_below, shorter_above) = (distance - last * unit, distance + (10 - last) * unit);
        let no_shorter = shorter_below + margin < -half && shorter_above - margin > half;
        let nearest_of_its_length = 2 * distance.abs() + margin < unit;
        no_shorter && nearest_of_its_length
    }

    /// Finds the `f64` that this decimal is the shortest notation of, around the one with the bits `below`.
    #[cold]
    fn search(self, below: u64) -> Result<f64, Unfit> {
        // The two neighbours of the value; one of them is the nearest. The third and fourth make up for the error of the
        // product, which is far below one step.
        for bits in [below, below + 1, below.saturating_sub(1), below + 2] {
            let candidate = f64::from_bits(bits);
            if candidate.is_finite() && Self::shortest(candidate) == Some(self) {
                return Ok(candidate);
            }
        }
        // Between the greatest f64 and infinity.
        if f64::from_bits(below + 1).is_infinite() { Err(Unfit::OutOfRange) } else { Err(Unfit::Inexact) }
    }
}

/// A positive number with 128 significant bits: `mantissa` times two to the power of `exponent`, the top bit of
/// `mantissa` set.
#[derive(Clone, Copy)]
struct Wide {
    mantissa: u128,
    exponent: i32,
}

impl Wide {
    /// Ten to the power of 19, the greatest power of ten in a `u64`.
    const TEN_19: u64 = 10_u64.pow(19);
    /// Ten to the power of -19: the 128 first bits of the binary fraction, rounded down, and its exponent.
    const TEN_MINUS_19: Self = Self { mantissa: 0xec1e_4a7d_b695_61a5_2b31_e9e3_d06c_32e5, exponent: -191 };

    /// `digits` (not 0) times ten to the power of `exponent`, with a relative error below 2^-115 for the exponents that
    /// `f64` reaches: no step of at most 20 loses more than two of the last bits.
    fn of(digits: u64, exponent: i32) -> Self {
        let magnitude = exponent.unsigned_abs();
        let (steps, rest) = if exponent < 0 {
            let steps = magnitude.div_ceil(19);
            (steps, steps * 19 - magnitude)
        } else {
            (magnitude / 19, magnitude % 19)
        };
        let step = if exponent < 0 { Self::TEN_MINUS_19 } else { Self::integer(u128::from(Self::TEN_19)) };
        let rest = 10_u64.wrapping_pow(rest);
        let mut product = Self::integer(u128::from(digits) * u128::from(rest));
        for _ in 0..steps {
            product = product.times(step);
        }
        product
    }

    /// An integer that is not 0.
    fn integer(value: u128) -> Self {
        let shift = value.leading_zeros();
        Self { mantissa: value.wrapping_shl(shift), exponent: -(shift as i32) }
    }

    fn times(self, other: Self) -> Self {
        let high = high_product(self.mantissa, other.mantissa);
        // Both factors have their top bit, so the product lacks at most one.
        let shift = high.leading_zeros();
        Self { mantissa: high.wrapping_shl(shift), exponent: self.exponent + other.exponent + 128 - shift as i32 }
    }

    /// How many bits of the mantissa lie below those that a normal `f64` has.
    const BELOW_F64: u32 = 75;
    /// How many of those lie below what [`Nearest`] tells.
    const BELOW_DISTANCE: u32 = Self::BELOW_F64 - 64;

    /// The nearest `f64`. `None` where the error of this number leaves a doubt, and outside of the normal range.
    fn nearest(self) -> Option<Nearest> {
        let top = self.exponent + 127;
        if !(-1022..=1022).contains(&top) {
            return None;
        }
        // As a signed number, a rest of more than half is the distance down from the next.
        let distance = ((self.mantissa >> Self::BELOW_DISTANCE) as u64).cast_signed();
        if distance.unsigned_abs() >= (1 << 63) - Nearest::MARGIN {
            return None;
        }
        Some(Nearest { bits: self.floor_bits() + u64::from(distance < 0), distance })
    }

    /// The bits of the greatest `f64` that is not above the number.
    fn floor_bits(self) -> u64 {
        // The number is in [2^top, 2^(top + 1)).
        let top = self.exponent + 127;
        if top > 1023 {
            return f64::MAX.to_bits();
        }
        let missing = (-1022 - top).max(0) as u32;
        let fraction = self.mantissa.checked_shr(Self::BELOW_F64 + missing).unwrap_or(0) as u64;
        // The top bit of a normal number is not stored: added, it raises the exponent by one instead.
        let exponent = (top + 1022).max(0) as u64;
        (exponent << 52).saturating_add(fraction)
    }
}

/// The `f64` nearest to a number, and how far the number is from it.
#[derive(Clone, Copy)]
struct Nearest {
    bits: u64,
    /// The number less the `f64`, in 2^-64 of the gap between two `f64` here.
    distance: i64,
}

impl Nearest {
    /// More than the sum of the errors of a distance and what it is compared with.
    const MARGIN: u64 = 64;
}

/// The upper half of the product of two 128-bit integers.
const fn high_product(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let middle = a1 * b0 + ((a0 * b0) >> 64);
    let other = a0 * b1 + (middle & LOW);
    a1 * b1 + (middle >> 64) + (other >> 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Number, token};
    use std::format;
    use std::string::String;

    fn read_str(text: &str) -> Result<f64, Unfit> {
        let token = Token::read(text.as_bytes()).expect("a token");
        assert_eq!(token.len(), text.len());
        let value = |checked| {
            token.number(checked).map(|number| match number {
                Number::F64(value) => value,
                other => panic!("{text}: {other:?} is no decimal"),
            })
        };
        let first = value(false);
        if first.is_ok() {
            // What is read again is what was read first, by whichever way.
            assert_eq!(value(true), first);
            assert_eq!(token::checked(text.as_bytes()), (Number::F64(first.unwrap_or(0.0)), text.len()), "{text}");
        }
        first
    }

    #[test]
    fn the_constant_is_ten_to_the_minus_19() {
        // mantissa / 2^191 * 10^19 is just below 1: mantissa * 10^19 is just below 2^191.
        let ten = u128::from(Wide::TEN_19) << 64;
        let high = high_product(Wide::TEN_MINUS_19.mantissa, ten);
        let next = high_product(Wide::TEN_MINUS_19.mantissa + 1, ten);
        assert_eq!(high, (1_u128 << 127) - 1);
        assert!(next >= 1_u128 << 127);
    }

    // S4: the product of two integers of 128 bits, by another way: digit by digit, in base 2^32.
    #[test]
    fn s4_the_upper_half_of_a_product_is_exact() {
        let slow = |a: u128, b: u128| {
            let digits = |value: u128| [0, 32, 64, 96].map(|shift| (value >> shift) & 0xffff_ffff);
            let mut sum = [0_u128; 8];
            for (i, x) in digits(a).into_iter().enumerate() {
                let mut carry = 0;
                for (j, y) in digits(b).into_iter().enumerate() {
                    let at = sum[i + j] + x * y + carry;
                    (sum[i + j], carry) = (at & 0xffff_ffff, at >> 32);
                }
                sum[i + 4] += carry;
            }
            sum[4..].iter().rev().fold(0, |value, digit| value << 32 | digit)
        };
        let mut state = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
        for round in 0..2_000 {
            let [a, b] = [17, 64].map(|turn| {
                state = state.wrapping_mul(0xda94_2042_e4dd_58b5).rotate_left(turn) ^ 0x1234_5678_9abc_def1;
                if round % 3 == 0 { state | u128::MAX << 64 >> (round % 90) } else { state }
            });
            assert_eq!(high_product(a, b), slow(a, b), "{a} {b}");
        }
        assert_eq!(high_product(u128::MAX, u128::MAX), u128::MAX - 1);
    }

    // S4
    #[test]
    fn s4_each_double_reads_back_from_its_shortest_notation() {
        let mut bits = 0x1234_5678_9abc_def0_u64;
        for round in 0..200_000_u64 {
            // xorshift, with some numbers of few bits and some at the edges of the exponent
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            let value = f64::from_bits(match round % 4 {
                0 => bits,
                1 => bits & 0xffff_0000_0000_0000,
                2 => bits & 0x000f_ffff_ffff_ffff,
                _ => bits | 0x7fe0_0000_0000_0000,
            });
            if value.is_finite() {
                let text = notation(value);
                assert_eq!(read_str(&text), Ok(value + 0.0), "{text}");
            }
        }
    }

    // S4
    #[test]
    fn s4_edges_of_the_range() {
        let cases: [(&str, Result<f64, Unfit>); 26] = [
            // Halfway between: the even digit is the notation.
            ("201562347225087.62", Ok(201_562_347_225_087.62)),
            ("201562347225087.63", Err(Unfit::Inexact)),
            ("0.0", Ok(0.0)),
            ("-0.0", Ok(0.0)),
            ("0e99999", Ok(0.0)),
            ("0.000e-99999", Ok(0.0)),
            ("1e400", Err(Unfit::OutOfRange)),
            ("-1e400", Err(Unfit::OutOfRange)),
            ("1e99999999999999999999", Err(Unfit::OutOfRange)),
            ("1e-99999999999999999999", Err(Unfit::Inexact)),
            ("1e-400", Err(Unfit::Inexact)),
            ("5e-324", Ok(5e-324)),
            ("4.9e-324", Err(Unfit::Inexact)),
            ("3e-324", Err(Unfit::Inexact)),
            ("2e-324", Err(Unfit::Inexact)),
            ("2.2250738585072014e-308", Ok(f64::MIN_POSITIVE)),
            ("1.7976931348623157e308", Ok(f64::MAX)),
            ("1.7976931348623158e308", Err(Unfit::OutOfRange)),
            ("1.7976931348623159e308", Err(Unfit::OutOfRange)),
            ("1e23", Ok(1e23)),
            // The same f64 as 1e23, which is the shorter notation.
            ("9.999999999999999e22", Err(Unfit::Inexact)),
            ("0.1000000000000000055511151231257827", Err(Unfit::Inexact)),
            ("0.30000000000000004", Ok(0.30000000000000004)),
            ("0.30000000000000005", Err(Unfit::Inexact)),
            ("9007199254740993.0", Err(Unfit::Inexact)),
            ("1.000000000000000000000000000000000000", Ok(1.0)),
        ];
        for (token, expected) in cases {
            assert_eq!(read_str(token), expected, "{token}");
        }
    }

    /// The shortest notation by another printer. Not the standard library's: where two shortest decimals are equally
    /// near, that one takes the upper, and ECMAScript, Python, `ryu` and `serde_json` the even one.
    fn notation(value: f64) -> String {
        serde_json::to_string(&value).expect("a finite number")
    }

    // S4: the rule itself, checked with the standard library's parser and another printer.
    fn exact_by_the_library(token: &str) -> Option<f64> {
        let value: f64 = token.parse().ok().filter(|value: &f64| value.is_finite())?;
        let normal = |text: &str| -> (String, i64) {
            let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
            let mut exponent: i64 = exponent.parse().expect("an exponent");
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            exponent -= fraction.len() as i64;
            let all = format!("{whole}{fraction}");
            let all = all.trim_start_matches('0');
            let short = all.trim_end_matches('0');
            exponent += (all.len() - short.len()) as i64;
            (String::from(short), if short.is_empty() { 0 } else { exponent })
        };
        (normal(token) == normal(&notation(value))).then_some(value)
    }

    // S4: where the gaps between two f64 change, with as many digits as there can be.
    #[test]
    fn s4_around_powers_of_two() {
        for exponent in 1..2047_u64 {
            let text = format!("{:.16e}", f64::from_bits(exponent << 52));
            let (digits, power) = text.split_once('e').expect("an exponent");
            let digits: u64 = digits.replace('.', "").parse().expect("17 digits");
            let power: i32 = power.parse().expect("a number");
            for step in 0..60 {
                let token = format!("{}e{}", digits + step - 30, power - 16);
                assert_eq!(read_str(&token).ok(), exact_by_the_library(&token), "{token}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn s4_kept_exactly_or_refused(whole in "0|[1-9][0-9]{0,19}", fraction in "[0-9]{1,20}", exponent in -345..320_i32) {
            for token in [format!("{whole}.{fraction}"), format!("{whole}.{fraction}e{exponent}"), format!("{whole}e{exponent}")] {
                proptest::prop_assert_eq!(read_str(&token).ok(), exact_by_the_library(&token), "{}", token);
            }
        }

        #[test]
        fn s4_sixteen_and_seventeen_digits(digits in 1_000_000_000_000_000_u64..99_999_999_999_999_999, exponent in -342..294_i32) {
            let token = format!("{digits}e{exponent}");
            proptest::prop_assert_eq!(read_str(&token).ok(), exact_by_the_library(&token), "{}", token);
        }

        #[test]
        fn s4_neighbours_of_a_notation(bits in 1..0x7fef_ffff_ffff_ffff_u64, step in -3..=3_i128) {
            let text = notation(f64::from_bits(bits));
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let fraction = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i64);
            let digits: i128 = digits.replace('.', "").parse().expect("digits");
            let exponent: i64 = exponent.parse().expect("a number");
            let token = format!("{}e{}", (digits + step).max(0), exponent - fraction);
            proptest::prop_assert_eq!(read_str(&token).ok(), exact_by_the_library(&token), "{}", token);
        }
    }
}
