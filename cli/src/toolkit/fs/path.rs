//! Paths as callers write them, and names as callers see them.

use std::ffi::OsStr;
use std::path::{Component, Path};

use crate::toolkit::error::ToolError;

/// The most bytes in a path. Linux allows 4,096 with the final NUL.
pub const MAX_PATH_BYTES: usize = 4_095;
/// The most directories that a path may go through, and that a walk goes down.
pub const MAX_DEPTH: usize = 64;

/// A path below the root, in one spelling: components joined by `/`, no `.` among them, or `.` alone for the root itself.
///
/// `..` is refused even where it would stay below the root, so that a policy may judge a path by how it begins:
/// `public/../private/key` does not lie in `public`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelPath(String);

impl RelPath {
    /// Reads the path in the argument `field`.
    ///
    /// # Errors
    ///
    /// Refuses what is empty, longer than [`MAX_PATH_BYTES`], deeper than [`MAX_DEPTH`], absolute, holds a NUL or goes up.
    pub fn parse(field: &str, text: &str) -> Result<Self, ToolError> {
        let refuse = |reason: &str| Err(ToolError::refused(format!("{field}: {reason}")));
        if text.is_empty() {
            return refuse("is empty; the root is `.`");
        }
        if text.len() > MAX_PATH_BYTES {
            return refuse("is longer than 4095 bytes");
        }
        if text.contains('\0') {
            return refuse("holds a NUL character");
        }
        let mut parts = Vec::new();
        for component in Path::new(text).components() {
            match component {
                Component::Prefix(_) | Component::RootDir => {
                    return refuse("is absolute; paths are relative to the root of the file tools");
                }
                Component::ParentDir => {
                    return refuse("holds `..`; name the file from the root down");
                }
                Component::CurDir => {}
                // Always UTF-8: it is a part of `text`.
                Component::Normal(part) => parts.push(part.to_string_lossy()),
            }
        }
        if parts.len() > MAX_DEPTH {
            return refuse("goes through more than 64 directories");
        }
        Ok(Self(if parts.is_empty() { ".".to_owned() } else { parts.join("/") }))
    }

    /// The path in its one spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the root itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0 == "."
    }

    /// The directory it lies in, and its last component; `None` for the root itself.
    #[must_use]
    pub fn split(&self) -> Option<(&str, &str)> {
        match self.0.rsplit_once('/') {
            Some(parts) => Some(parts),
            None if self.is_root() => None,
            None => Some((".", &self.0)),
        }
    }
}

impl AsRef<Path> for RelPath {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// A file name as a caller sees it, and whether it had to be escaped.
///
/// A name that is UTF-8 is shown as it is. In any other, each byte that is not UTF-8 is written as `\xNN` and each backslash as
/// `\\`, so that two names never look the same among the escaped ones.
pub(super) fn shown(name: &OsStr) -> (String, bool) {
    if let Some(text) = name.to_str() {
        return (text.to_owned(), false);
    }
    let mut text = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        for byte in chunk.invalid() {
            text.push_str(&format!(r"\x{byte:02x}"));
        }
    }
    (text, true)
}

/// The path of `name` in the directory shown as `parent`.
pub(super) fn join(parent: &str, name: &str) -> String {
    if parent == "." { name.to_owned() } else { format!("{parent}/{name}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_spelling_for_each_path() {
        for (text, path) in [
            ("a", "a"),
            ("./a//b/./c/", "a/b/c"),
            (".", "."),
            ("./", "."),
            ("./.", "."),
            ("a\\b", "a\\b"),
            ("...", "..."),
        ] {
            assert_eq!(RelPath::parse("path", text).unwrap().as_str(), path, "{text:?}");
        }
    }

    #[test]
    fn s7_no_way_up_or_out() {
        for text in ["", "/", "/etc/passwd", "//a", "..", "../a", "a/..", "a/../b", "./../a", "a\0b", "\0"] {
            assert!(RelPath::parse("path", text).is_err(), "{text:?}");
        }
        assert!(RelPath::parse("path", &"a/".repeat(64)).is_ok());
        assert!(RelPath::parse("path", &"a/".repeat(65)).is_err());
        assert!(RelPath::parse("path", &"a".repeat(4_096)).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn names_that_are_not_text_are_escaped_without_ambiguity() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(shown(OsStr::new("plain\\name")), ("plain\\name".to_owned(), false));
        assert_eq!(shown(OsStr::from_bytes(b"a\xffb")), (r"a\xffb".to_owned(), true));
        assert_eq!(shown(OsStr::from_bytes(b"a\xff\\xff")), (r"a\xff\\xff".to_owned(), true));
    }

    proptest! {
        // S7: whatever is accepted stays below the root, and says so in one spelling.
        #[test]
        fn s7_accepted_paths_are_plain(text in "[./a\\\\\u{e9}]{0,12}") {
            if let Ok(path) = RelPath::parse("path", &text) {
                prop_assert!(path.is_root() || path.as_str().split('/').all(|part| !matches!(part, "" | "." | "..")));
                prop_assert_eq!(RelPath::parse("path", path.as_str()).unwrap(), path);
            }
        }
    }
}
