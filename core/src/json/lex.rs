//! Steps over tokens that the scanner and the readers of checked text share.

/// The number of bytes at the start of `bytes` before the first that ends a run of plain characters in a string: a quote,
/// a backslash or a control character (U+0000 to U+001F).
#[cfg_attr(not(callgate_small), inline)]
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    // Most keys end in their first word.
    if let Some(word) = bytes.first_chunk() {
        let hits = special_bytes(u64::from_le_bytes(*word));
        if hits != 0 {
            return (hits.trailing_zeros() / 8) as usize;
        }
    }
    longer_run(bytes)
}

fn longer_run(bytes: &[u8]) -> usize {
    // Most strings are short: the first words one by one, then blocks of 32 bytes, which are compiled to vector
    // instructions where there are any, and words again for what is left.
    let (first, rest) = bytes.split_at_checked(16).unwrap_or((bytes, &[]));
    let mut at = words_run(first);
    if at < first.len() || rest.is_empty() {
        return at;
    }
    let (blocks, _) = rest.as_chunks::<32>();
    let plain = |block: &&[u8; 32]| !block.iter().fold(false, |found, byte| found | is_special(*byte));
    at += 32 * blocks.iter().take_while(plain).count();
    at + words_run(bytes.get(at..).unwrap_or_default())
}

/// As [`plain_run`], word by word.
#[inline]
fn words_run(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let hits = special_bytes(u64::from_le_bytes(*word));
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + tail.iter().take_while(|byte| !is_special(**byte)).count()
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Sets the top bit of each byte of `word` that is special. Bytes above the lowest such byte may be marked falsely,
/// because a borrow runs upwards; the lowest mark is always right.
const fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let control = word.wrapping_sub(ONES * 0x20);
    let quote = (word ^ (ONES * 0x22)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * 0x5c)).wrapping_sub(ONES);
    (control | quote | backslash) & !word & TOPS
}

/// The number of bytes at the start of `bytes` that are printable ASCII and neither a quote nor a backslash.
pub(super) fn printable_ascii_run(bytes: &[u8]) -> usize {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    let (blocks, _) = bytes.as_chunks::<16>();
    let blocks =
        blocks.iter().take_while(|block| block.iter().fold(true, |plain, byte| plain & is_plain(byte))).count();
    let at = blocks * 16;
    at + bytes.get(at..).unwrap_or_default().iter().take_while(|byte| is_plain(byte)).count()
}

/// Where the white space that starts at `at` ends.
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The inside of a string of checked text.
#[derive(Clone, Copy)]
pub(super) struct StringSpan {
    /// Where the inside starts: the byte after the opening quote.
    pub(super) start: usize,
    /// Where it ends: the closing quote.
    pub(super) end: usize,
    /// Whether it holds an escape.
    pub(super) escaped: bool,
}

/// The string whose opening quote stands at `at`. The text was checked, so each backslash starts a complete escape.
pub(super) fn checked_string(bytes: &[u8], at: usize) -> StringSpan {
    let start = at + 1;
    let mut end = start + plain_run(bytes.get(start..).unwrap_or_default());
    let escaped = bytes.get(end) == Some(&b'\\');
    while bytes.get(end) == Some(&b'\\') {
        end += 2;
        end += plain_run(bytes.get(end..).unwrap_or_default());
    }
    StringSpan { start, end, escaped }
}

/// Where the number, `true`, `false` or `null` that starts at `at` ends, in checked text.
pub(super) fn checked_word(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b'0'..=b'9' | b'a'..=b'z' | b'E' | b'.' | b'+' | b'-') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Where the value of a whole checked text ends: before the white space at its end.
pub(super) fn end_of_text(bytes: &[u8]) -> usize {
    let trailing = bytes.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
    bytes.len() - trailing.count()
}

/// Where the value that starts at `at` ends, in checked text.
pub(super) fn checked_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_u32;
    loop {
        match bytes.get(at) {
            Some(b'"') => at = checked_string(bytes, at).end + 1,
            Some(b'{' | b'[') => {
                depth += 1;
                at += 1;
                continue;
            }
            Some(b'}' | b']') => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') => {
                at += 1;
                continue;
            }
            Some(_) => at = checked_word(bytes, at + 1),
            None => return at,
        }
        if depth == 0 {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_runs_end_at_each_special_byte_at_each_place() {
        for len in 0..40 {
            for place in 0..=len {
                for special in (0..=0x1f_u8).chain([b'"', b'\\']) {
                    for filler in [b'a', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                        let mut bytes = std::vec![filler; len];
                        bytes.insert(place, special);
                        assert_eq!(plain_run(&bytes), place);
                        assert_eq!(plain_run(&bytes[..place]), place);
                    }
                }
            }
        }
    }
}
