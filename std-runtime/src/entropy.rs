//! Sources of randomness: the operating system's, and one for tests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callgate_core::digest::DigestBuilder;
pub use callgate_core::entropy::{Entropy, EntropyError};

/// A source that several parts of a gate share.
pub type SharedEntropy = Arc<dyn Entropy + Send + Sync>;

/// The operating system's source: `getrandom(2)` and its like.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OsEntropy;

impl OsEntropy {
    /// The operating system's source, to be shared.
    #[must_use]
    pub fn shared() -> SharedEntropy {
        Arc::new(Self)
    }
}

impl Entropy for OsEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        getrandom::fill(bytes).map_err(|_| EntropyError)
    }
}

/// Bytes that follow from a seed, the same in every run. **For tests only**: whoever knows the seed knows every token.
///
/// Threads that share one get different bytes, in an order that depends on who comes first.
pub struct SeededEntropy {
    seed: u64,
    next: AtomicU64,
}

impl SeededEntropy {
    /// The bytes of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, next: AtomicU64::new(0) }
    }

    /// The bytes of this seed, to be shared.
    #[must_use]
    pub fn shared(seed: u64) -> SharedEntropy {
        Arc::new(Self::new(seed))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for chunk in bytes.chunks_mut(32) {
            let mut block = DigestBuilder::new("test/entropy/v1");
            block.u64(self.seed).u64(self.next.fetch_add(1, Ordering::Relaxed));
            for (byte, random) in chunk.iter_mut().zip(block.finish().as_bytes()) {
                *byte = *random;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for SeededEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeededEntropy(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(source: &dyn Entropy) -> [u8; 80] {
        let mut bytes = [0; 80];
        source.fill(&mut bytes).expect("it never fails");
        bytes
    }

    #[test]
    fn seeded_bytes_repeat_by_seed_and_never_within_one() {
        let (one, same, other) = (SeededEntropy::new(1), SeededEntropy::new(1), SeededEntropy::new(2));
        let first = bytes(&one);
        assert_eq!(first, bytes(&same));
        assert_ne!(first, bytes(&other));
        assert_ne!(first, bytes(&one));
        assert_ne!(first[..32], first[32..64]);
    }

    #[test]
    fn a11_the_systems_bytes_differ() {
        let tokens: std::collections::HashSet<_> =
            (0..1_000).map(|_| OsEntropy.token().expect("a system has randomness").to_string()).collect();
        assert_eq!(tokens.len(), 1_000);
    }
}
