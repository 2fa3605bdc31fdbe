//! A text of bounded length, in place of a string on the heap.

use core::fmt;

use super::put;

/// A text of at most `N` bytes. What does not fit is an error and changes nothing.
///
/// ```
/// use callgate_core::fixed::Buffer;
/// use core::fmt::Write;
/// let mut line = Buffer::<8>::new();
/// assert!(line.write_str("valve 7").is_ok() && line.write_str("ab").is_err());
/// assert_eq!(line.as_str(), "valve 7");
/// ```
#[derive(Clone)]
pub struct Buffer<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Buffer<N> {
    /// No text.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    /// Forgets the text.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The text's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// How many bytes there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no text.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Cuts the text back to its first `len` bytes; does nothing where that is no boundary of a character.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len && self.as_str().is_char_boundary(len) {
            self.len = len;
        }
    }
}

impl<const N: usize> fmt::Write for Buffer<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        put(text.as_bytes(), room).ok_or(fmt::Error)?;
        self.len = self.len.saturating_add(text.len());
        Ok(())
    }
}

impl<const N: usize> Default for Buffer<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Tells the length alone: what a host keeps in it may hold secrets (invariant L1).
impl<const N: usize> fmt::Debug for Buffer<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} of {N} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write as _;

    #[test]
    fn f5_what_does_not_fit_changes_nothing() {
        let mut buffer = Buffer::<5>::new();
        assert!(buffer.write_str("süß").is_ok() && buffer.write_str("x").is_err());
        assert_eq!((buffer.as_str(), buffer.len()), ("süß", 5));
        buffer.truncate(2);
        assert_eq!(buffer.as_str(), "süß", "not within a character");
        buffer.truncate(3);
        assert_eq!(buffer.as_str(), "sü");
        assert!(buffer.write_str("").is_ok() && buffer.write_str("ab").is_ok());
        assert_eq!(buffer.as_str(), "süab");
        buffer.clear();
        assert!(buffer.is_empty());
        assert!(Buffer::<0>::new().write_str("a").is_err());
    }
}
