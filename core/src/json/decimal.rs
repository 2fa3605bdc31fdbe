//! Decimals to `f64` and back, exactly or not at all, without a panicking path.
//!
//! The parser and the printer of the standard library cannot be used here: both contain bounds checks and assertions that
//! stay in the linked program. `ryu` prints the shortest decimal that names an `f64`. Reading goes the same way: an
//! `f64` near the token's value is computed with 128 bits, and the token is accepted if the shortest decimal of that
//! `f64` is the token's value. So each accepted value has exactly one `f64` and each `f64` exactly one accepted value.
//! (Where two shortest decimals are equally near to an `f64`, the one with the even last digit is its notation, as in
//! ECMAScript and Python.)

use super::number::Unfit;

/// The most significant digits that the shortest notation of an `f64` can have.
const MAX_DIGITS: u32 = 17;
/// Up to this number of significant digits, each decimal in the normal range of `f64` is the shortest notation of the
/// nearest `f64` (`f64::DIGITS`).
const SAFE_DIGITS: u32 = 15;

/// Powers of ten that an `f64` holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// A decimal without its sign: `digits` times ten to the power of `exponent`, where `digits` does not end in 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decimal {
    digits: u64,
    /// How many digits `digits` has; 0 for the value 0.
    count: u32,
    exponent: i32,
}

/// Reads a decimal token without its sign. The token fits the grammar of RFC 8259.
pub(super) fn read(negative: bool, token: &[u8]) -> Result<f64, Unfit> {
    let decimal = Decimal::of_token(token)?;
    let magnitude = decimal.to_f64()?;
    // Not `-magnitude` for 0: `-0.0` is 0.
    Ok(if negative && magnitude != 0.0 { -magnitude } else { magnitude })
}

/// Whether the shortest notations of a finite `f64` and of an `f32` are the same decimal.
pub(super) fn same_notation(long: f64, short: f32) -> bool {
    let mut buffer = ryu::Buffer::new();
    short.is_finite()
        && (long < 0.0) == (short < 0.0)
        && Decimal::of_token(buffer.format_finite(short.abs()).as_bytes()) == Decimal::shortest(long.abs())
}

impl Decimal {
    /// The shortest decimal that names a finite `f64` that is not negative.
    fn shortest(value: f64) -> Result<Self, Unfit> {
        Self::of_token(ryu::Buffer::new().format_finite(value).as_bytes())
    }

    /// The decimal that a token without sign stands for.
    fn of_token(token: &[u8]) -> Result<Self, Unfit> {
        let (mut digits, mut count, mut exponent) = (0_u64, 0_u32, 0_i32);
        // Zeros since the last digit other than 0: they count only when another such digit follows.
        let mut zeros = 0_u32;
        let mut in_fraction = false;
        let mut rest = token.iter();
        for byte in rest.by_ref() {
            match byte {
                b'.' => in_fraction = true,
                b'0'..=b'9' => {
                    exponent = exponent.saturating_sub(i32::from(in_fraction));
                    if *byte == b'0' {
                        zeros = zeros.saturating_add(u32::from(count > 0));
                        continue;
                    }
                    count = count.saturating_add(zeros).saturating_add(1);
                    if count > MAX_DIGITS {
                        return Err(Unfit::Inexact);
                    }
                    for _ in 0..=zeros {
                        digits = digits.wrapping_mul(10);
                    }
                    digits = digits.wrapping_add(u64::from(byte - b'0'));
                    zeros = 0;
                }
                _ => break,
            }
        }
        if count == 0 {
            return Ok(Self { digits: 0, count: 0, exponent: 0 });
        }
        let zeros = i32::try_from(zeros).unwrap_or(i32::MAX);
        let exponent = exponent.saturating_add(zeros).saturating_add(exponent_of(rest.as_slice()));
        Ok(Self { digits, count, exponent })
    }

    fn to_f64(self) -> Result<f64, Unfit> {
        if self.count <= SAFE_DIGITS {
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
        // The value is in [10^(scale - 1), 10^scale).
        let scale = self.exponent.saturating_add(self.count as i32);
        if scale > 310 {
            return Err(Unfit::OutOfRange);
        }
        if scale < -330 {
            return Err(Unfit::Inexact);
        }
        self.search()
    }

    /// Finds the `f64` that this decimal is the shortest notation of.
    fn search(self) -> Result<f64, Unfit> {
        let below = Wide::of(self.digits, self.exponent).floor_bits();
        // The two neighbours of the value; one of them is the nearest. The third and fourth make up for the error of the
        // product, which is far below one step.
        for bits in [below, below + 1, below.saturating_sub(1), below + 2] {
            let candidate = f64::from_bits(bits);
            if candidate.is_finite() && Self::shortest(candidate) == Ok(self) {
                return Ok(candidate);
            }
        }
        // Between the greatest f64 and infinity.
        if f64::from_bits(below + 1).is_infinite() { Err(Unfit::OutOfRange) } else { Err(Unfit::Inexact) }
    }
}

/// The exponent that `rest` of a token gives: an optional sign and digits, or nothing.
fn exponent_of(rest: &[u8]) -> i32 {
    let (negative, digits) = match rest.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, rest),
    };
    let magnitude = digits
        .iter()
        .fold(0_i32, |sum, byte| sum.saturating_mul(10).saturating_add(i32::from(byte.wrapping_sub(b'0'))));
    if negative { -magnitude } else { magnitude }
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

    /// The bits of the greatest `f64` that is not above the number.
    fn floor_bits(self) -> u64 {
        // The number is in [2^top, 2^(top + 1)).
        let top = self.exponent + 127;
        if top > 1023 {
            return f64::MAX.to_bits();
        }
        let fraction_bits = if top < -1022 { 52 + top + 1022 } else { 52 };
        if fraction_bits < 0 {
            return 0;
        }
        let fraction = (self.mantissa >> (127 - fraction_bits)) as u64;
        // The top bit of a normal number is not stored: added, it raises the exponent by one instead.
        let exponent = (top + 1022).max(0) as u64;
        (exponent << 52).saturating_add(fraction)
    }
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
    use std::format;
    use std::string::String;

    fn read_str(token: &str) -> Result<f64, Unfit> {
        match token.strip_prefix('-') {
            Some(digits) => read(true, digits.as_bytes()),
            None => read(false, token.as_bytes()),
        }
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
        let cases: [(&str, Result<f64, Unfit>); 24] = [
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
