//! Looking for a text in another.

use callgate_core::fixed::Buffer;

/// Looking into what was written.
pub(crate) trait Has {
    /// Whether `needle` stands in it.
    fn has(&self, needle: &str) -> bool;
}

impl<const N: usize> Has for Buffer<N> {
    fn has(&self, needle: &str) -> bool {
        has(self.as_str(), needle)
    }
}

/// By windows of bytes: the search of `str` has panicking paths.
pub(crate) fn has(text: &str, needle: &str) -> bool {
    let mut rest = text.as_bytes();
    loop {
        if rest.starts_with(needle.as_bytes()) {
            return true;
        }
        match rest.split_first() {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
}
