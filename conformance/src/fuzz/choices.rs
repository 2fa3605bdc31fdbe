//! Choices that follow from bytes.

/// Takes one byte after the other, and zeros when there are no more.
pub(super) struct Choices<'d> {
    bytes: &'d [u8],
}

impl<'d> Choices<'d> {
    pub(super) const fn new(bytes: &'d [u8]) -> Self {
        Self { bytes }
    }

    /// What nobody chose by yet.
    pub(super) const fn rest(&self) -> &'d [u8] {
        self.bytes
    }

    pub(super) fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((byte, rest)) => {
                self.bytes = rest;
                *byte
            }
            None => 0,
        }
    }

    /// A number below `end`, which is not zero.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// Whether the one of so many cases comes up; never when there are no more bytes.
    pub(super) fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == cases.saturating_sub(1)
    }

    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(self.below(all.len())).copied()
    }

    /// Eight bytes.
    pub(super) fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }
}
