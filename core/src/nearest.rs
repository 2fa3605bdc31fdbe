//! What somebody most likely meant who wrote a name that does not exist.

/// Longer names are compared by their first so many characters.
const COMPARED: usize = 48;

/// The declared name that is nearest to `given`, when one is near enough to be meant: a slip or two of the pen, other
/// capitals, or `camelCase` for `snake_case`. The earlier of two equally near ones.
///
/// Offer only names that the reader of the message may know of; a hidden tool's name is a hidden tool's secret.
///
/// ```
/// use callgate_core::nearest::nearest;
/// assert_eq!(nearest("vault_dirr".chars(), ["path", "vault_dir"]), Some("vault_dir"));
/// assert_eq!(nearest("maxLenght".chars(), ["minLength", "maxLength"]), Some("maxLength"));
/// assert_eq!(nearest("evil".chars(), ["path", "vault_dir"]), None);
/// ```
pub fn nearest<'n>(given: impl Iterator<Item = char>, declared: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let given = Folded::new(given);
    let mut best: Option<(u8, &str)> = None;
    for name in declared {
        let folded = Folded::new(name.chars());
        let distance = given.distance(&folded);
        let length = given.len.min(folded.len);
        let near = distance == 0 || (usize::from(distance) < length && distance <= length_allowance(length));
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// How many slips a name of so many characters may hold.
fn length_allowance(length: usize) -> u8 {
    match length {
        0..=3 => 1,
        4..=6 => 2,
        _ => 3,
    }
}

/// A name without what people vary: capitals, underscores and hyphens.
struct Folded {
    chars: [char; COMPARED],
    len: usize,
}

impl Folded {
    fn new(name: impl Iterator<Item = char>) -> Self {
        let mut folded = Self { chars: ['\0'; COMPARED], len: 0 };
        let kept = name.filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase());
        for (slot, c) in folded.chars.iter_mut().zip(kept) {
            *slot = c;
            folded.len += 1;
        }
        folded
    }

    fn chars(&self) -> impl Iterator<Item = char> {
        self.chars.iter().take(self.len).copied()
    }

    /// The Levenshtein distance: how many characters to insert, remove or replace.
    fn distance(&self, other: &Self) -> u8 {
        // Row by row of the usual table, of which one row is kept: cell n is the distance to the first n + 1 characters.
        let mut row = [0u8; COMPARED];
        for (cell, n) in row.iter_mut().zip(1u8..) {
            *cell = n;
        }
        let mut result = u8::try_from(other.len).unwrap_or(u8::MAX);
        for (i, a) in (0u8..).zip(self.chars()) {
            let (mut diagonal, mut left) = (i, i.saturating_add(1));
            for (cell, b) in row.iter_mut().zip(other.chars()) {
                let replaced = diagonal.saturating_add(u8::from(a != b));
                diagonal = *cell;
                left = replaced.min(left.saturating_add(1)).min(cell.saturating_add(1));
                *cell = left;
            }
            result = left;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    fn distance(a: &str, b: &str) -> u8 {
        Folded::new(a.chars()).distance(&Folded::new(b.chars()))
    }

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("Max_Len", "maxlen", 0)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn what_is_far_is_not_suggested() {
        assert_eq!(nearest("x".chars(), ["y"]), None);
        assert_eq!(nearest("".chars(), ["y", "name"]), None);
        assert_eq!(nearest("nmae".chars(), ["id", "name"]), Some("name"));
        assert_eq!(nearest("vaultDir".chars(), ["vault", "vault_dir"]), Some("vault_dir"));
        assert_eq!(nearest("path".chars(), []), None);
        // The nearest, wherever it stands; of two that are as near, the first.
        assert_eq!(nearest("abcdefgh".chars(), ["abcdexyh", "abcdefgx", "abcdefxh"]), Some("abcdefgx"));
        // One slip in three characters, two in six, three in more.
        for (given, near, far) in [
            ("abc", "abx", "axy"),
            ("abcd", "abxy", "axyz"),
            ("abcdef", "abcdxy", "abcxyz"),
            ("abcdefg", "abcdxyz", "abcwxyz"),
        ] {
            assert_eq!(nearest(given.chars(), [near]), Some(near));
            assert_eq!(nearest(given.chars(), [far]), None, "{far}");
        }
    }

    proptest! {
        /// The one-row table against the definition.
        #[test]
        fn distance_is_the_recursive_one(a in "[abc]{0,6}", b in "[abc]{0,6}") {
            fn slow(a: &[char], b: &[char]) -> u8 {
                match (a.split_last(), b.split_last()) {
                    (None, _) => b.len() as u8,
                    (_, None) => a.len() as u8,
                    (Some((x, shorter_a)), Some((y, shorter_b))) => (slow(shorter_a, shorter_b) + u8::from(x != y))
                        .min(slow(shorter_a, b) + 1)
                        .min(slow(a, shorter_b) + 1),
                }
            }
            let (chars_a, chars_b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            prop_assert_eq!(distance(&a, &b), slow(&chars_a, &chars_b));
        }

        #[test]
        fn any_name_is_compared(a in any::<String>(), b in "\\PC{0,80}") {
            prop_assert_eq!(nearest(a.chars(), [a.as_str()]), Some(a.as_str()));
            nearest(a.chars(), [b.as_str(), a.as_str()]).unwrap();
        }
    }
}
