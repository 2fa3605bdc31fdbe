//! Lines of a bounded length, put together from bytes.

/// A line of at most `N` bytes.
pub struct Line<const N: usize> {
    bytes: [u8; N],
    len: usize,
    over: bool,
}

/// What a byte came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// The line goes on.
    More,
    /// The line is whole, and there until the next byte.
    Whole,
    /// The line is whole, and was too long: there is nothing of it.
    TooLong,
}

impl<const N: usize> Line<N> {
    /// No line.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0, over: false }
    }

    /// Takes one byte. Carriage returns are left out.
    pub fn push(&mut self, byte: u8) -> Pushed {
        match byte {
            b'\n' if self.over => {
                self.clear();
                Pushed::TooLong
            }
            b'\n' => Pushed::Whole,
            b'\r' => Pushed::More,
            byte => {
                match self.bytes.get_mut(self.len) {
                    Some(place) => {
                        *place = byte;
                        self.len = self.len.saturating_add(1);
                    }
                    None => self.over = true,
                }
                Pushed::More
            }
        }
    }

    /// The line.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Begins the next one.
    pub const fn clear(&mut self) {
        (self.len, self.over) = (0, false);
    }
}

impl<const N: usize> Default for Line<N> {
    fn default() -> Self {
        Self::new()
    }
}
