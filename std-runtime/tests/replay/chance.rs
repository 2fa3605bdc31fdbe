//! Chance from a seed.

use std::sync::atomic::{AtomicU64, Ordering};

/// A sequence that a seed fixes (`SplitMix64`). Shared by what draws while a call is under way, on one thread.
pub(crate) struct Chance(AtomicU64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).expect("small")).expect("small")
    }

    /// Once in `n` times.
    pub(crate) fn once_in(&self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn one<T: Clone>(&self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}
