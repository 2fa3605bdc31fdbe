//! Durations as they are written in a configuration: a whole number and a unit, `500ms`, `30s`, `5m`, `1h`.

use std::time::Duration;

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Reads a duration: digits and one of `ms`, `s`, `m`, `h`, nothing else.
///
/// # Errors
/// Says what is wrong, without the text.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(match unit {
            "" => "has no unit; it is one of ms, s, m, h".into(),
            "sec" | "secs" | "second" | "seconds" => "has an unknown unit; seconds are `s`".into(),
            "min" | "mins" | "minute" | "minutes" => "has an unknown unit; minutes are `m`".into(),
            "d" | "day" | "days" => "has an unknown unit; days are written in hours, `24h`".into(),
            _ => "has an unknown unit; it is one of ms, s, m, h".into(),
        });
    };
    number.checked_mul(*factor).map(Duration::from_millis).ok_or_else(|| "is too long".into())
}

/// Writes a duration the way [`parse`] reads it, in the largest unit that is exact.
pub(super) fn write(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let fits = |&&(_, factor): &&(&str, u64)| millis > 0 && millis.is_multiple_of(factor);
    let (unit, factor) = UNITS.iter().rev().find(fits).copied().unwrap_or(("ms", 1));
    format!("{}{unit}", millis.checked_div(factor).unwrap_or(millis))
}

/// The digits and what follows them.
pub(super) fn split(text: &str) -> Result<(u64, &str), String> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end).unwrap_or((text, ""));
    if digits.is_empty() {
        return Err("does not start with a whole number".into());
    }
    if unit.starts_with(['.', ',']) {
        return Err("is not a whole number; take a smaller unit instead of a fraction".into());
    }
    if unit.starts_with(char::is_whitespace) {
        return Err("has a space between number and unit".into());
    }
    let number = digits.parse().map_err(|_| String::from("is too large a number"))?;
    Ok((number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_read_as_written() {
        for (text, millis) in [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("1h", 3_600_000), ("0s", 0)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        let cases = [
            ("30", "no unit"),
            ("", "whole number"),
            ("s", "whole number"),
            ("-5s", "whole number"),
            ("+5s", "whole number"),
            (" 5s", "whole number"),
            ("5 s", "space"),
            ("1.5s", "fraction"),
            ("5S", "unknown unit"),
            ("5s ", "unknown unit"),
            ("1h30m", "unknown unit"),
            ("1d", "24h"),
            ("10min", "`m`"),
            ("5\u{b5}s", "unknown unit"),
            ("\u{664}s", "whole number"),
            ("99999999999999999999s", "too large"),
            ("18446744073709551615h", "too long"),
        ];
        for (text, reason) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(millis in 0..u64::MAX) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&write(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            drop(parse(&text));
        }
    }
}
