//! Stretches of a text that are replaced.

/// The most separate stretches of one text. With more, the whole text is replaced.
pub(super) const MAX_SPANS: usize = 32;

/// A stretch of a text, as byte offsets into its unescaped form; `end` is not part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// The stretches found so far: sorted, apart from each other, none empty.
#[derive(Debug, Default)]
pub(super) struct Spans {
    spans: [Span; MAX_SPANS],
    len: usize,
    overflow: bool,
}

impl Spans {
    /// Adds a stretch. Those that it overlaps or touches become one with it.
    pub(super) fn add(&mut self, new: Span) {
        if new.start >= new.end {
            return;
        }
        let mut merged = new;
        let mut kept = Self { overflow: self.overflow, ..Self::default() };
        let mut placed = false;
        for old in self.iter() {
            if old.end < merged.start {
                kept.push(old);
            } else if old.start <= merged.end {
                merged = Span { start: old.start.min(merged.start), end: old.end.max(merged.end) };
            } else {
                if !placed {
                    kept.push(merged);
                    placed = true;
                }
                kept.push(old);
            }
        }
        if !placed {
            kept.push(merged);
        }
        *self = kept;
    }

    fn push(&mut self, span: Span) {
        match self.spans.get_mut(self.len) {
            Some(room) => {
                *room = span;
                self.len = self.len.saturating_add(1);
            }
            None => self.overflow = true,
        }
    }

    pub(super) fn as_slice(&self) -> &[Span] {
        self.spans.get(..self.len).unwrap_or_default()
    }

    fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.as_slice().iter().copied()
    }

    /// Whether a stretch came that had no room, so that what is here is not all.
    pub(super) const fn overflowed(&self) -> bool {
        self.overflow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    proptest! {
        /// Case R4: whatever overlaps, every place of every stretch is covered, and no other place is.
        #[test]
        fn spans_cover_exactly_what_was_added(adds in proptest::collection::vec((0_u32..200, 0_u32..20), 0..60)) {
            let mut spans = Spans::default();
            for (start, len) in &adds {
                spans.add(Span { start: *start, end: start + len });
            }
            let covered = |at: u32| adds.iter().any(|(start, len)| (*start..start + len).contains(&at));
            if !spans.overflowed() {
                for at in 0..230 {
                    let found = spans.iter().any(|span| (span.start..span.end).contains(&at));
                    prop_assert_eq!(found, covered(at));
                }
            }
            let list: Vec<Span> = spans.iter().collect();
            prop_assert!(list.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }

    /// F5: a bound that is met is told.
    #[test]
    fn f5_more_spans_than_there_is_room_for_are_told() {
        let mut spans = Spans::default();
        for nth in 0..MAX_SPANS {
            spans.add(Span { start: nth as u32 * 3, end: nth as u32 * 3 + 1 });
        }
        assert!(!spans.overflowed());
        spans.add(Span { start: 10_000, end: 10_001 });
        assert!(spans.overflowed());
        spans.add(Span { start: 0, end: 10_001 });
        assert!(spans.overflowed(), "what was lost stays lost");
    }
}
