//! Grammars of names (invariant S3): fixed, ASCII, byte-exact. Nothing is trimmed, folded or normalized.

use core::fmt;

/// The longest tool name, in bytes.
pub const MAX_TOOL_NAME: usize = 128;
/// The longest channel, scope, tenant or session name, in bytes.
pub const MAX_NAME: usize = 128;
/// The longest principal or request id, in bytes.
pub const MAX_PRINCIPAL: usize = 256;

/// Why a name was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NameError {
    /// The name has no characters.
    Empty,
    /// The name is longer than `max` bytes.
    TooLong {
        /// The most bytes this kind of name may have.
        max: usize,
    },
    /// The byte at `at` is outside the grammar.
    Character {
        /// Where the first such byte stands, from 0.
        at: usize,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::TooLong { max } => write!(f, "is longer than {max} bytes"),
            Self::Character { at } => write!(f, "has a character at byte {at} that such a name may not have"),
        }
    }
}

impl core::error::Error for NameError {}

/// The bytes that each kind of name may have, looked up instead of computed: every name of every call is checked.
const TOOL: u8 = 1;
const LABEL: u8 = 2;
const SCOPE: u8 = 4;
const PRINCIPAL: u8 = 8;

static KINDS: [u8; 256] = kinds();

const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let mut rest: &mut [u8] = &mut kinds;
    let mut byte = 0_u8;
    while let Some((kind, behind)) = rest.split_first_mut() {
        let word = byte.is_ascii_alphanumeric();
        if word || matches!(byte, b'_' | b'.' | b'-') {
            *kind |= TOOL;
        }
        if word || matches!(byte, b'_' | b'.' | b':' | b'/' | b'-') {
            *kind |= LABEL;
        }
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b',') {
            *kind |= SCOPE;
        }
        if byte.is_ascii_graphic() || byte == b' ' {
            *kind |= PRINCIPAL;
        }
        byte = byte.wrapping_add(1);
        rest = behind;
    }
    kinds
}

fn check(name: &str, max: usize, kind: u8) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > max {
        return Err(NameError::TooLong { max });
    }
    let kinds = |byte: u8| KINDS.get(usize::from(byte)).copied().unwrap_or(0);
    // Without a branch for each byte: nearly all names are good.
    if name.bytes().fold(kind, |kind, byte| kind & kinds(byte)) != 0 {
        return Ok(());
    }
    let at = name.bytes().position(|byte| kinds(byte) & kind == 0).unwrap_or_default();
    Err(NameError::Character { at })
}

/// A tool name: 1 to 128 of `A-Z a-z 0-9 _ . -` (design 4.1).
///
/// # Errors
/// Says what is wrong with the name.
pub fn check_tool_name(name: &str) -> Result<(), NameError> {
    check(name, MAX_TOOL_NAME, TOOL)
}

/// A channel, tenant or session: 1 to 128 of `A-Z a-z 0-9 _ . : / -`.
///
/// # Errors
/// Says what is wrong with the name.
pub fn check_label(name: &str) -> Result<(), NameError> {
    check(name, MAX_NAME, LABEL)
}

/// A scope: 1 to 128 printable ASCII characters except space, `"`, `\` and `,` (the scope token of RFC 6749, less the comma
/// that configuration files and denials use as a separator).
///
/// # Errors
/// Says what is wrong with the scope.
pub fn check_scope(scope: &str) -> Result<(), NameError> {
    check(scope, MAX_NAME, SCOPE)
}

/// The id of an operation: 1 to 128 printable ASCII characters except space, `"`, `\` and `,`, as of a scope.
///
/// # Errors
/// Says what is wrong with the id.
pub fn check_operation(operation: &str) -> Result<(), NameError> {
    check(operation, MAX_NAME, SCOPE)
}

/// A principal or a request id: 1 to 256 printable ASCII characters (space allowed inside).
///
/// # Errors
/// Says what is wrong with the principal.
pub fn check_principal(principal: &str) -> Result<(), NameError> {
    check(principal, MAX_PRINCIPAL, PRINCIPAL)
}

/// What a tool name looks like: the skeleton of UTS 39 (revision 31, section 4), then in lower case.
///
/// Within the grammar of tool names the confusables table of Unicode maps four characters: `0` to `O`, `1` and `I` to `l`,
/// `m` to `rn`. Lower case on top makes `READ0` and `reado` alike, too: which capitals a reader remembers is chance.
pub fn skeleton(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(|c| {
        let (first, second) = match c {
            '0' => ('o', None),
            '1' | 'I' => ('l', None),
            'm' => ('r', Some('n')),
            other => (other.to_ascii_lowercase(), None),
        };
        core::iter::once(first).chain(second)
    })
}

/// Whether a reader could take one tool name for the other: they are equal, equal but for case, or look alike (invariant G3).
#[must_use]
pub fn look_alike(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || skeleton(one).eq(skeleton(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    /// V18: what may never be a tool name.
    #[test]
    fn s3_tool_names_outside_the_grammar_are_refused() {
        for bad in ["", "delete_file\n", "a b", "\u{ff44}elete", "a\0", "a/b", "tool:x", "\u{202e}a"] {
            assert!(check_tool_name(bad).is_err(), "{bad:?}");
        }
        assert_eq!(check_tool_name(&"a".repeat(129)), Err(NameError::TooLong { max: 128 }));
        for good in ["a", "fs.read", "constructor", "__proto__", "Delete_File", "0"] {
            assert_eq!(check_tool_name(good), Ok(()), "{good}");
        }
        assert_eq!(check_tool_name(&"a".repeat(128)), Ok(()));
    }

    #[test]
    fn s3_principals_and_scopes_hold_no_controls() {
        for byte in 0..=u8::MAX {
            let text = String::from(char::from(byte));
            let printable = byte == b' ' || byte.is_ascii_graphic();
            assert_eq!(check_principal(&text).is_ok(), printable, "{byte}");
            if byte.is_ascii_control() || !byte.is_ascii() {
                assert!(check_scope(&text).is_err() && check_label(&text).is_err(), "{byte}");
            }
        }
    }

    #[test]
    fn s3_each_kind_of_name_has_exactly_its_characters() {
        let allowed = |check: fn(&str) -> Result<(), NameError>| {
            (0..=u8::MAX)
                .map(|byte| String::from(char::from(byte)))
                .filter(|text| check(text).is_ok())
                .collect::<String>()
        };
        let words = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let sorted = |more: &str| {
            let mut all: std::vec::Vec<char> = words.chars().chain(more.chars()).collect();
            all.sort_unstable();
            all.into_iter().collect::<String>()
        };
        assert_eq!(allowed(check_tool_name), sorted("_.-"));
        assert_eq!(allowed(check_label), sorted("_.:/-"));
        assert_eq!(allowed(check_principal), sorted(r##" !"#$%&'()*+,-./:;<=>?@[\]^_`{|}~"##));
        assert_eq!(allowed(check_scope), sorted(r##"!#$%&'()*+-./:;<=>?@[]^_`{|}~"##));
    }
}
