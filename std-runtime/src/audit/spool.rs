//! Records that could not be written when they were made: kept until they can (invariant J8).

use std::collections::VecDeque;

/// The most records that are kept, and the most bytes of them.
const MAX_RECORDS: usize = 1_000;
const MAX_BYTES: usize = 4 << 20;

/// Records as JSON texts, the oldest first: at most 1,000 of them, and 4 MiB.
#[derive(Debug, Default)]
pub struct Spool {
    records: VecDeque<String>,
    bytes: usize,
}

impl Spool {
    /// Keeps a record.
    ///
    /// # Errors
    /// At the bounds it is given back.
    pub fn push(&mut self, record: String) -> Result<(), String> {
        if self.records.len() >= MAX_RECORDS || self.bytes.saturating_add(record.len()) > MAX_BYTES {
            return Err(record);
        }
        self.bytes = self.bytes.saturating_add(record.len());
        self.records.push_back(record);
        Ok(())
    }

    /// The records, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.records.iter().map(String::as_str)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The first `count` of them were written after all.
    pub fn drop_first(&mut self, count: usize) {
        self.records.drain(..count.min(self.records.len()));
        self.bytes = self.records.iter().map(String::len).sum();
    }

    /// All of it was written.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x6_the_spool_is_bounded_by_count_and_by_bytes() {
        let mut spool = Spool::default();
        assert_eq!((0..2_000).filter(|_| spool.push("{}".into()).is_ok()).count(), MAX_RECORDS);
        assert_eq!(spool.push("{\"n\":1}".into()), Err("{\"n\":1}".into()));
        spool.clear();
        assert_eq!((0..10).filter(|_| spool.push("x".repeat(1 << 20)).is_ok()).count(), 4);
        assert_eq!((spool.len(), spool.iter().count()), (4, 4));
    }
}
