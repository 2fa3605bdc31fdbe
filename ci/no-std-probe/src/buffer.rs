//! A text of bounded length in place of a string on the heap.

use core::fmt;

/// A text of at most `N` bytes. Writing more is an error, and leaves what was there.
pub(crate) struct Buffer<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Buffer<N> {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// Whether `needle` stands in the text. By windows of bytes: the search of `str` has panicking paths.
    pub(crate) fn has(&self, needle: &str) -> bool {
        has(self.as_str(), needle)
    }
}

impl<const N: usize> fmt::Write for Buffer<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len.checked_add(text.len()).ok_or(fmt::Error)?;
        let room = self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?;
        for (to, from) in room.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        self.len = end;
        Ok(())
    }
}

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
