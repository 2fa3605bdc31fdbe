//! The one place where the tokens of numbers are taken apart: for the scan, which refuses, and for what reads checked text
//! afterwards.

use super::decimal::{self, Decimal};
use super::limits::SMALL;
use super::number::{Number, Unfit};

/// The token of a number: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?` (RFC 8259 section 6).
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    /// The token without its sign.
    unsigned: &'a [u8],
    negative: bool,
    /// All digits before the exponent, as one integer modulo 2^64.
    digits: u64,
    /// How many there are.
    count: usize,
    /// How many of them stand behind the point.
    behind: usize,
    exponent: Option<i32>,
}

impl<'a> Token<'a> {
    /// The token at the start of `bytes`; on an error, the offset of the first byte that does not fit the grammar.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, usize> {
        let (negative, rest) = match bytes.split_first() {
            Some((b'-', rest)) => (true, rest),
            _ => (false, bytes),
        };
        let sign = usize::from(negative);
        let mut digits = 0;
        let whole = add_digits(rest, 0, &mut digits);
        match rest {
            _ if whole == 0 => return Err(sign),
            [b'0', ..] if whole > 1 => return Err(sign + 1),
            _ => {}
        }
        let mut end = whole;
        if rest.get(end) == Some(&b'.') {
            let from = end + 1;
            end = add_digits(rest, from, &mut digits);
            if end == from {
                return Err(sign + end);
            }
        }
        let behind = (end - whole).saturating_sub(1);
        let mut exponent = None;
        if let Some(b'e' | b'E') = rest.get(end) {
            end += 1;
            let below_zero = rest.get(end) == Some(&b'-');
            end += usize::from(matches!(rest.get(end), Some(b'+' | b'-')));
            let from = end;
            let mut magnitude = 0_i32;
            while let Some(digit) = digit(rest, end) {
                magnitude = magnitude.saturating_mul(10).saturating_add(digit as i32);
                end += 1;
            }
            if end == from {
                return Err(sign + end);
            }
            exponent = Some(if below_zero { -magnitude } else { magnitude });
        }
        let unsigned = rest.get(..end).unwrap_or_default();
        Ok(Self { unsigned, negative, digits, count: whole + behind, behind, exponent })
    }

    pub(super) const fn len(&self) -> usize {
        self.unsigned.len() + self.negative as usize
    }

    /// The number that the token stands for. `checked`, if the token was accepted before: then its exactness is not proved
    /// again.
    pub(super) fn number(&self, checked: bool) -> Result<Number, Unfit> {
        if self.behind > 0 || self.exponent.is_some() {
            return self.decimal(checked).map(Number::F64);
        }
        let magnitude = match self.count {
            ..=19 => self.digits,
            20 => self.twenty_digits().ok_or(Unfit::OutOfRange)?,
            _ => return Err(Unfit::OutOfRange),
        };
        match (self.negative, magnitude) {
            (false, _) | (true, 0) => Ok(Number::U64(magnitude)),
            (true, 1..=0x8000_0000_0000_0000) => Ok(Number::I64(0_i64.wrapping_sub_unsigned(magnitude))),
            (true, _) => Err(Unfit::OutOfRange),
        }
    }

    /// The value of a whole number of 20 digits, if it fits.
    fn twenty_digits(&self) -> Option<u64> {
        let (last, head) = self.unsigned.split_last()?;
        let head = head.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(10).wrapping_add(value_of(*byte)));
        head.checked_mul(10)?.checked_add(value_of(*last))
    }

    #[inline]
    fn decimal(&self, checked: bool) -> Result<f64, Unfit> {
        if SMALL {
            return Err(Unfit::Inexact);
        }
        let magnitude = match self.exponent {
            // Most decimals: no proof needed, see there.
            None if self.count <= 15 => decimal::fraction(self.digits, self.behind),
            _ => None,
        };
        let magnitude = match magnitude {
            Some(magnitude) => magnitude,
            None => self.parts()?.to_f64(checked)?,
        };
        // Not `-magnitude` for 0: `-0.0` is 0.
        Ok(if self.negative && magnitude != 0.0 { -magnitude } else { magnitude })
    }

    /// The decimal that the token stands for, without its sign.
    pub(super) fn parts(&self) -> Result<Decimal, Unfit> {
        let mut exponent = self.exponent.unwrap_or(0).saturating_sub(self.behind as i32);
        let mut digits = self.digits;
        if self.count > 19 {
            let mut seen = 0_u32;
            digits = 0;
            for byte in
                self.unsigned.iter().take_while(|byte| !matches!(byte, b'e' | b'E')).filter(|byte| **byte != b'.')
            {
                seen += u32::from(seen > 0 || *byte != b'0');
                if seen <= 19 {
                    digits = digits.wrapping_mul(10).wrapping_add(value_of(*byte));
                } else if *byte == b'0' {
                    exponent = exponent.saturating_add(1);
                } else {
                    return Err(Unfit::Inexact);
                }
            }
        }
        Ok(Decimal::new(digits, exponent))
    }
}

/// The length of the token at the start of `bytes`, if it is one whose exactness needs no proof: an integer of at most 18
/// digits, or at most 15 digits with a point and without exponent. `None` also for what is no token at all.
pub(super) fn len_of_common(bytes: &[u8]) -> Option<usize> {
    let start = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits_end(bytes, start);
    let (end, most) = match bytes.get(whole) {
        Some(b'.') if SMALL => return None,
        Some(b'.') => (digits_end(bytes, whole + 1), 16),
        _ => (whole, 18),
    };
    let leading_zero = bytes.get(start) == Some(&b'0') && whole - start > 1;
    let common = whole > start && end - whole != 1 && end - start <= most && !leading_zero;
    (common && !matches!(bytes.get(end), Some(b'e' | b'E'))).then_some(end)
}

#[inline]
fn digits_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The number at the start of `bytes`, in checked text, and the length of its token.
pub(super) fn checked(bytes: &[u8]) -> (Number, usize) {
    common(bytes).unwrap_or_else(|| rare(bytes))
}

#[cold]
fn rare(bytes: &[u8]) -> (Number, usize) {
    match Token::read(bytes) {
        Ok(token) => (token.number(true).unwrap_or(Number::U64(0)), token.len()),
        Err(_) => (Number::U64(0), bytes.len()),
    }
}

/// As [`checked`], for what numbers usually are: at most 15 digits, with or without a point, without exponent.
#[inline]
fn common(bytes: &[u8]) -> Option<(Number, usize)> {
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut sum = 0;
    let whole = add_digits(bytes, start, &mut sum);
    let end = if bytes.get(whole) == Some(&b'.') { add_digits(bytes, whole + 1, &mut sum) } else { whole };
    if end - start > 16 || matches!(bytes.get(end), Some(b'e' | b'E')) {
        return None;
    }
    let negative = start > 0 && sum > 0;
    let number = if end > whole {
        if SMALL {
            return None;
        }
        let magnitude = decimal::fraction(sum, end - whole - 1)?;
        Number::F64(if negative { -magnitude } else { magnitude })
    } else if negative {
        Number::I64(0_i64.wrapping_sub_unsigned(sum))
    } else {
        Number::U64(sum)
    };
    Some((number, end))
}

/// Appends the decimal digits from `at` on to `sum`, and says where they end.
#[inline]
fn add_digits(bytes: &[u8], mut at: usize, sum: &mut u64) -> usize {
    while let Some(digit) = digit(bytes, at) {
        *sum = sum.wrapping_mul(10).wrapping_add(digit);
        at += 1;
    }
    at
}

#[inline]
fn digit(bytes: &[u8], at: usize) -> Option<u64> {
    match bytes.get(at) {
        Some(byte @ b'0'..=b'9') => Some(value_of(*byte)),
        _ => None,
    }
}

const fn value_of(digit: u8) -> u64 {
    digit.wrapping_sub(b'0') as u64
}
