//! Sizes as they are written in a configuration: a whole number and a binary unit, `512B`, `64KiB`, `1MiB`.

use super::duration::split;

const UNITS: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Reads a size in bytes: digits and one of `B`, `KiB`, `MiB`, `GiB`, nothing else.
///
/// # Errors
/// Says what is wrong, without the text.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        // `KB` means 1000 to some and 1024 to others, so nobody's meaning is assumed.
        return Err(match unit {
            "" => "has no unit; it is one of B, KiB, MiB, GiB".into(),
            "K" | "k" | "KB" | "kB" | "kb" | "kib" | "Kib" => "has an unknown unit; 1024 bytes are `KiB`".into(),
            "M" | "m" | "MB" | "mb" | "mib" | "Mib" => "has an unknown unit; 1024 KiB are `MiB`".into(),
            "G" | "g" | "GB" | "gb" | "gib" | "Gib" => "has an unknown unit; 1024 MiB are `GiB`".into(),
            _ => "has an unknown unit; it is one of B, KiB, MiB, GiB".into(),
        });
    };
    number.checked_mul(*factor).ok_or_else(|| "is too large".into())
}

/// Writes a size the way [`parse`] reads it, in the largest unit that is exact.
pub(super) fn write(bytes: u64) -> String {
    let fits = |&&(_, factor): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(factor);
    let (unit, factor) = UNITS.iter().rev().find(fits).copied().unwrap_or(("B", 1));
    format!("{}{unit}", bytes.checked_div(factor).unwrap_or(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_read_as_written() {
        for (text, bytes) in [("0B", 0), ("512B", 512), ("64KiB", 65_536), ("1MiB", 1 << 20), ("2GiB", 2 << 30)] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        let cases = [
            ("64", "no unit"),
            ("64KB", "`KiB`"),
            ("64kib", "`KiB`"),
            ("1.5MiB", "fraction"),
            ("1 MiB", "space"),
            ("-1B", "whole number"),
            ("1TiB", "unknown unit"),
            ("18446744073709551615KiB", "too large"),
        ];
        for (text, reason) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bytes in any::<u64>()) {
            prop_assert_eq!(parse(&write(bytes)), Ok(bytes));
        }
    }
}
