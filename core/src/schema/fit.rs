//! Bounds that meet: what a constant's parts say together, as far as the compiler has to know it.

use core::cmp::Ordering;

use super::check::same_text;
use super::{Choices, Limit, Literal, Schema, Types, number};
use crate::clamp::{Bound, Clamp};
use crate::json::Number;

impl Schema<'_> {
    /// Numbers not below `least`, nor below what the schema said before: of two bounds the tighter one counts.
    #[must_use]
    pub const fn at_least(self, least: i64) -> Self {
        self.not_below(number::from_i64(least))
    }

    /// As [`at_least`](Self::at_least), for a bound that has a fraction. It must be finite.
    #[must_use]
    pub const fn at_least_f64(self, least: f64) -> Self {
        self.not_below(number::canonical(Number::F64(least)))
    }

    /// Numbers not above `greatest`, nor above what the schema said before.
    #[must_use]
    pub const fn at_most(self, greatest: i64) -> Self {
        self.not_beyond(number::from_i64(greatest))
    }

    /// As [`at_most`](Self::at_most), for a bound that has a fraction. It must be finite.
    #[must_use]
    pub const fn at_most_f64(self, greatest: f64) -> Self {
        self.not_beyond(number::canonical(Number::F64(greatest)))
    }

    const fn not_below(mut self, least: Number) -> Self {
        match self.minimum {
            Some(Limit { at, .. }) if !number::compare(least, at).is_gt() => {}
            _ => self.minimum = Some(Limit { at: least, exclusive: false }),
        }
        self
    }

    const fn not_beyond(mut self, greatest: Number) -> Self {
        match self.maximum {
            Some(Limit { at, .. }) if !number::compare(greatest, at).is_lt() => {}
            _ => self.maximum = Some(Limit { at: greatest, exclusive: false }),
        }
        self
    }

    /// The bounds of numbers: the narrower of what is declared and of what the integer's width says.
    pub(super) const fn bounds(&self) -> (Option<Limit>, Option<Limit>) {
        let integer = self.types.contains(Types::INTEGER) && !self.types.contains(Types::NUMBER);
        let (least, greatest) = if integer { self.width.bounds() } else { (None, None) };
        let lower = match (self.minimum, least) {
            (Some(limit), Some(least)) if number::compare(limit.at, least).is_ge() => Some(limit),
            (_, Some(least)) => Some(Limit { at: least, exclusive: false }),
            (limit, None) => limit,
        };
        let upper = match (self.maximum, greatest) {
            (Some(limit), Some(greatest)) if number::compare(limit.at, greatest).is_le() => Some(limit),
            (_, Some(greatest)) => Some(Limit { at: greatest, exclusive: false }),
            (limit, None) => limit,
        };
        (lower, upper)
    }

    /// Whether `value` fits as it is: no refusal, no clamp.
    pub(super) const fn takes(&self, value: Literal<'_>) -> bool {
        self.types.contains(value.types())
            && self.offers(value)
            && match value {
                Literal::Null | Literal::Bool(_) => true,
                Literal::Number(value) => self.holds(value),
                Literal::Text(text) => self.measures(text),
            }
    }

    const fn offers(&self, value: Literal<'_>) -> bool {
        match self.choices {
            Choices::Free => true,
            Choices::Only(only) => same(only, value),
            Choices::Texts(texts) => {
                let Literal::Text(text) = value else { return true };
                let mut rest = texts;
                while let Some((choice, others)) = rest.split_first() {
                    if same_text(choice, text) {
                        return true;
                    }
                    rest = others;
                }
                false
            }
            Choices::Values(values) => {
                let mut rest = values;
                while let Some((choice, others)) = rest.split_first() {
                    if same(*choice, value) {
                        return true;
                    }
                    rest = others;
                }
                false
            }
        }
    }

    const fn holds(&self, value: Number) -> bool {
        if !number::is_finite(value) {
            return false;
        }
        let (least, greatest) = if self.types.contains(Types::NUMBER) { (None, None) } else { self.width.bounds() };
        let (min, max) = match self.clamp {
            Some(clamp) => (bound(clamp.min), bound(clamp.max)),
            None => (None, None),
        };
        !(below(value, least)
            || below(value, min)
            || beyond(value, greatest)
            || beyond(value, max)
            || match self.minimum {
                Some(limit) => below(value, Some(limit.at)) || limit.excludes(value),
                None => false,
            }
            || match self.maximum {
                Some(limit) => beyond(value, Some(limit.at)) || limit.excludes(value),
                None => false,
            })
    }

    const fn measures(&self, text: &str) -> bool {
        let chars = char_count(text);
        let clamped = match self.clamp {
            Some(Clamp { max_length: Some(most), .. }) => chars > *most,
            _ => false,
        };
        let short = matches!(self.min_length, Some(least) if chars < least);
        let long = matches!(self.max_length, Some(most) if chars > most);
        !(clamped || short || long)
    }
}

/// A clamp's bound as a number.
pub(super) const fn bound(bound: Option<Bound>) -> Option<Number> {
    match bound {
        Some(Bound::Integer(value)) => Some(number::from_i64(value)),
        Some(Bound::Float(value)) => Some(number::canonical(Number::F64(value))),
        None => None,
    }
}

const fn below(value: Number, least: Option<Number>) -> bool {
    matches!(least, Some(least) if matches!(number::compare(value, least), Ordering::Less))
}

const fn beyond(value: Number, greatest: Option<Number>) -> bool {
    matches!(greatest, Some(greatest) if matches!(number::compare(value, greatest), Ordering::Greater))
}

const fn same(a: Literal<'_>, b: Literal<'_>) -> bool {
    match (a, b) {
        (Literal::Null, Literal::Null) => true,
        (Literal::Bool(a), Literal::Bool(b)) => a == b,
        (Literal::Number(a), Literal::Number(b)) => matches!(number::compare(a, b), Ordering::Equal),
        (Literal::Text(a), Literal::Text(b)) => same_text(a, b),
        _ => false,
    }
}

/// The code points of a text, which are the bytes that do not continue one.
const fn char_count(text: &str) -> u32 {
    let mut bytes = text.as_bytes();
    let mut count = 0u32;
    while let Some((byte, rest)) = bytes.split_first() {
        if *byte & 0b1100_0000 != 0b1000_0000 {
            count = count.saturating_add(1);
        }
        bytes = rest;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::super::{Property, SchemaFault};
    use super::*;

    #[test]
    fn the_tighter_bound_counts() {
        let byte = Schema::integer().minimum(0).maximum(255);
        let narrowed = byte.at_least(3).at_most(1_000);
        assert_eq!(narrowed.minimum.unwrap().at, Number::U64(3));
        assert_eq!(narrowed.maximum.unwrap().at, Number::U64(255));
        assert_eq!(byte.at_least(-1).minimum.unwrap().at, Number::U64(0));
        // A bound that is excluded stays so beside the same one that is not.
        assert!(Schema::number().above(3).at_least_f64(3.0).minimum.unwrap().exclusive);
    }

    /// A default that the schema refuses would make a model send what is refused.
    #[test]
    fn s6_a_default_has_to_fit() {
        const PAGE: Clamp = Clamp::range(1, 100);
        const SHORT: Clamp = Clamp::max_length(2);
        let text = Literal::Text("abc");
        for (schema, default, fits) in [
            (Schema::integer().minimum(1), Literal::integer(0), false),
            (Schema::integer().maximum(5), Literal::integer(5), true),
            (Schema::number().below(5), Literal::integer(5), false),
            (Schema::integer(), Literal::integer(1 << 53), false),
            (Schema::integer64(), Literal::integer(1 << 53), true),
            (Schema::integer().clamped(&PAGE), Literal::integer(500), false),
            (Schema::integer().clamped(&PAGE), Literal::integer(100), true),
            (Schema::string().max_length(2), text, false),
            (Schema::string().min_length(4), text, false),
            (Schema::string().clamped(&SHORT), text, false),
            (Schema::string().max_length(3), Literal::Text("\u{1f600}bc"), true),
            (Schema::choice(&["abc", "d"]), text, true),
            (Schema::choice(&["ab", "d"]), text, false),
            (Schema::choice(&["ab"]).nullable(), Literal::Null, true),
            (Schema::integer().one_of(&[Literal::integer(3)]), Literal::float(3.0), true),
            (Schema::integer().one_of(&[Literal::integer(3)]), Literal::integer(4), false),
            (Schema::boolean().constant(Literal::Bool(true)), Literal::Bool(false), false),
            (Schema::boolean().constant(Literal::Bool(true)), Literal::Bool(true), true),
            (Schema::string().constant(text), text, true),
            (Schema::string().constant(text), Literal::Text("abd"), false),
            (Schema::string().one_of(&[Literal::Text("x"), text]), text, true),
            (Schema::string().clamped(&SHORT), Literal::Text("ab"), true),
        ] {
            let schema = schema.default_value(default);
            let checked = schema.check().map_err(|error| error.fault());
            let expected = if fits { Ok(()) } else { Err(SchemaFault::Default(default)) };
            assert_eq!(checked, expected, "{schema:?}");
        }
        assert_eq!(
            Schema::null().default_value(Literal::Null).constant(Literal::Null).check().map_err(|error| error.fault()),
            Ok(())
        );
        let inner = [Property::optional("a", Schema::integer().minimum(1).default_value(Literal::integer(0)))];
        assert!(Schema::object(&inner).check().is_err());
    }

    /// Of two bounds the tighter one counts, whichever came first, and of a bound and a width likewise.
    #[test]
    fn s6_the_tighter_of_two_bounds_counts() {
        let at = |limit: Option<Limit>| limit.map(|limit| (limit.at, limit.exclusive));
        for (first, second) in [(2, 5), (5, 2), (5, 5)] {
            let (low, high) = (Some((Number::U64(5), false)), Some((Number::U64(first.min(second) as u64), false)));
            assert_eq!(at(Schema::integer().at_least(first).at_least(second).minimum), low);
            assert_eq!(at(Schema::number().at_least_f64(first as f64).at_least_f64(second as f64).minimum), low);
            assert_eq!(at(Schema::integer().at_most(first).at_most(second).maximum), high);
            assert_eq!(at(Schema::number().at_most_f64(first as f64).at_most_f64(second as f64).maximum), high);
        }
        assert_eq!(at(Schema::integer().above(5).at_least(5).minimum), Some((Number::U64(5), true)), "it is as tight");
        let safe = number::from_i64(super::super::SAFE_INTEGER);
        let (lower, upper) = Schema::integer().bounds();
        assert_eq!(
            (at(lower).map(|(at, _)| at), at(upper)),
            (Some(number::from_i64(-super::super::SAFE_INTEGER)), Some((safe, false)))
        );
        let (lower, upper) = Schema::integer().minimum(3).maximum(4).bounds();
        assert_eq!((at(lower), at(upper)), (Some((Number::U64(3), false)), Some((Number::U64(4), false))));
        // What `check` refuses is told as the width has it.
        let (lower, upper) = Schema::integer().minimum_f64(-1e300).maximum_f64(1e300).bounds();
        assert_eq!(
            (at(lower).map(|(at, _)| at), at(upper)),
            (Some(number::from_i64(-super::super::SAFE_INTEGER)), Some((safe, false)))
        );
        let (lower, upper) = Schema::number().bounds();
        assert!(lower.is_none() && upper.is_none());
    }
}
