//! What a program writes: a part of it, and the measure of all of it.

use std::collections::VecDeque;

use sha2::{Digest, Sha256};

/// Which part is kept of what is too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keep {
    /// The beginning.
    First,
    /// The end.
    Last,
}

/// A stream as far as it was read.
#[derive(Debug)]
pub(super) struct Captured {
    keep: Keep,
    limit: usize,
    kept: VecDeque<u8>,
    total: u64,
    digest: Sha256,
}

impl Captured {
    pub(super) fn new(keep: Keep, limit: usize) -> Self {
        Self { keep, limit, kept: VecDeque::new(), total: 0, digest: Sha256::new() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        self.total = self.total.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        match self.keep {
            Keep::First => {
                let room = self.limit.saturating_sub(self.kept.len());
                self.kept.extend(bytes.iter().take(room));
            }
            Keep::Last => {
                self.kept.extend(bytes.iter().skip(bytes.len().saturating_sub(self.limit)));
                let over = self.kept.len().saturating_sub(self.limit);
                self.kept.drain(..over);
            }
        }
    }

    /// How many bytes the whole stream had.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// The bytes that were kept, and the SHA-256 digest of all of them, in hexadecimal, when these are not all.
    pub(super) fn into_parts(self) -> (Vec<u8>, Option<String>) {
        let cut = u64::try_from(self.kept.len()).unwrap_or(u64::MAX) < self.total;
        let digest = cut.then(|| self.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        (self.kept.into(), digest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // O2: whatever the pieces, the kept part is bounded and at its end of the whole, and length and digest are the whole's.
        #[test]
        fn o2_what_is_kept_is_bounded_and_the_measure_is_of_all(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..8),
            limit in 0_usize..120,
        ) {
            let whole = pieces.concat();
            let digest: String = Sha256::digest(&whole).iter().map(|byte| format!("{byte:02x}")).collect();
            for keep in [Keep::First, Keep::Last] {
                let mut captured = Captured::new(keep, limit);
                for piece in &pieces {
                    captured.push(piece);
                }
                prop_assert_eq!(captured.total(), whole.len() as u64);
                let (kept, cut) = captured.into_parts();
                let expected = match keep {
                    Keep::First => &whole[..limit.min(whole.len())],
                    Keep::Last => &whole[whole.len().saturating_sub(limit)..],
                };
                prop_assert_eq!(kept.as_slice(), expected);
                prop_assert_eq!(cut, (whole.len() > limit).then(|| digest.clone()));
            }
        }
    }
}
