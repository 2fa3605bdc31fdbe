//! The key table: scratch that the caller lends for duplicate detection and key sorting.

use core::cmp::Ordering;

use super::text::Text;

/// One entry of the caller's key table. Its content means nothing between two calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeySlot {
    /// A number by which two keys can be told apart quickly: a hash, or the first bytes.
    pub(super) tag: u32,
    /// The offset of the key's opening quote.
    pub(super) at: u32,
}

/// How many [`KeySlot`]s suffice for `text`: the count of its colons. (A text may need fewer: colons inside strings count
/// here, and the keys of an object are dropped when it ends.)
#[must_use]
pub fn key_capacity(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b':').count()
}

/// A 32-bit hash of a key's unescaped bytes. It only narrows the search: equal hashes lead to a comparison of the keys,
/// and the cost of that is bounded whatever the keys are, so the hash need not withstand an adversary.
pub(super) fn hash_plain(key: &[u8]) -> u32 {
    let (words, rest) = key.as_chunks::<8>();
    let mut state = key.len() as u64;
    for word in words {
        state = mix(state, u64::from_le_bytes(*word));
    }
    let mut last = 0;
    for byte in rest {
        last = last << 8 | u64::from(*byte);
    }
    fold(mix(state, last))
}

/// The same hash for bytes that arrive one by one; `len` is their number.
pub(super) fn hash_bytes(len: usize, bytes: impl Iterator<Item = u8>) -> u32 {
    let mut state = len as u64;
    let (mut word, mut held) = (0_u64, 0);
    for byte in bytes {
        word = word << 8 | u64::from(byte);
        held += 1;
        if held == 8 {
            state = mix(state, word.swap_bytes());
            (word, held) = (0, 0);
        }
    }
    fold(mix(state, word))
}

const fn mix(state: u64, word: u64) -> u64 {
    (state.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

const fn fold(state: u64) -> u32 {
    (state >> 32) as u32
}

/// Compares two keys by their unescaped bytes, given the offsets of their opening quotes in checked text.
pub(super) fn compare(text: &str, a: u32, b: u32) -> Ordering {
    let inside = |at: u32| text.as_bytes().get(at as usize + 1..).unwrap_or_default();
    let differing = inside(a).iter().zip(inside(b)).find(|(a, b)| a != b || matches!(**a, b'"' | b'\\'));
    match differing {
        Some((b'\\', _) | (_, b'\\')) | None => Text::at(text, a as usize).0.cmp(&Text::at(text, b as usize).0),
        Some((b'"', b'"')) => Ordering::Equal,
        // The shorter key ends here.
        Some((b'"', _)) => Ordering::Less,
        Some((_, b'"')) => Ordering::Greater,
        Some((a, b)) => a.cmp(b),
    }
}

/// Sorts `slots` by their tags, those with the same tag by `order`. For tags that are spread evenly, as hashes are: their
/// first bits put most slots next to where they belong. For others it costs what [`sort`] costs.
pub(super) fn sort_spread(slots: &mut [KeySlot], mut order: impl FnMut(&KeySlot, &KeySlot) -> Ordering) {
    const BITS: u32 = 6;
    const BUCKETS: usize = 1 << BITS;
    let bucket = |slot: &KeySlot| (slot.tag >> (u32::BITS - BITS)) as usize;
    let mut ends = [0_usize; BUCKETS];
    for slot in &*slots {
        if let Some(count) = ends.get_mut(bucket(slot)) {
            *count += 1;
        }
    }
    let mut heads = [0_usize; BUCKETS];
    let mut sum = 0;
    for (head, end) in heads.iter_mut().zip(&mut ends) {
        *head = sum;
        sum += *end;
        *end = sum;
    }
    for (this, end) in ends.iter().enumerate() {
        // Every turn puts one slot into its bucket, so this ends.
        while let Some(head) = heads.get(this).copied().filter(|head| head < end) {
            let Some(slot) = slots.get(head).copied() else { return };
            let to = bucket(&slot);
            let Some(free) = heads.get_mut(to) else { return };
            if to != this {
                let Some(other) = slots.get_mut(*free) else { return };
                let other = core::mem::replace(other, slot);
                if let Some(here) = slots.get_mut(head) {
                    *here = other;
                }
            }
            *free += 1;
        }
    }
    let mut start = 0;
    for end in ends {
        let bucket = slots.get_mut(start..end).unwrap_or_default();
        sort(bucket, |a, b| a.tag.cmp(&b.tag).then_with(|| order(a, b)));
        start = end;
    }
}

/// Sorts `slots` in place. Heapsort beyond a few entries: at most about `2 n log2 n` comparisons whatever the order is, no
/// allocation, and no panicking path (the library's sorts have one for orders that contradict themselves).
pub(super) fn sort(slots: &mut [KeySlot], mut order: impl FnMut(&KeySlot, &KeySlot) -> Ordering) {
    let len = slots.len();
    if len <= 20 {
        insertion_sort(slots, &mut order);
        return;
    }
    for root in (0..len / 2).rev() {
        sift_down(slots, root, &mut order);
    }
    for end in (1..len).rev() {
        let Some(heap) = slots.get_mut(..=end) else { return };
        if let [first, .., last] = heap {
            core::mem::swap(first, last);
        }
        let Some(heap) = slots.get_mut(..end) else { return };
        sift_down(heap, 0, &mut order);
    }
}

fn insertion_sort(slots: &mut [KeySlot], order: &mut impl FnMut(&KeySlot, &KeySlot) -> Ordering) {
    for end in 2..=slots.len() {
        let Some([sorted @ .., last]) = slots.get_mut(..end) else {
            return;
        };
        let moving = *last;
        let mut hole = last;
        for slot in sorted.iter_mut().rev() {
            if order(slot, &moving).is_le() {
                break;
            }
            *hole = *slot;
            hole = slot;
        }
        *hole = moving;
    }
}

fn sift_down(heap: &mut [KeySlot], mut root: usize, order: &mut impl FnMut(&KeySlot, &KeySlot) -> Ordering) {
    let Some(moving) = heap.get(root).copied() else {
        return;
    };
    loop {
        let left = 2 * root + 1;
        let (child, greater) = match (heap.get(left).copied(), heap.get(left + 1).copied()) {
            (Some(l), Some(r)) if order(&l, &r).is_lt() => (left + 1, r),
            (Some(l), _) => (left, l),
            (None, _) => break,
        };
        if order(&moving, &greater).is_ge() {
            break;
        }
        if let Some(slot) = heap.get_mut(root) {
            *slot = greater;
        }
        root = child;
    }
    if let Some(slot) = heap.get_mut(root) {
        *slot = moving;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    // S5: sorted, with a number of comparisons that is bounded whatever the order was.
    #[test]
    fn s5_sorting_is_bounded_for_every_order() {
        let orders: [fn(u32, u32) -> u32; 6] = [
            |nth, _| nth,
            |nth, len| len - nth,
            |_, _| 7,
            |nth, _| nth.wrapping_mul(0x9e37_79b9) >> 7,
            |nth, _| nth % 2,
            |nth, len| if nth < len / 2 { nth } else { len - nth },
        ];
        for len in [0, 1, 2, 3, 11, 12, 13, 14, 31, 32, 33, 100, 1_000, 4_096] {
            for order in orders {
                let mut slots: Vec<_> = (0..len).map(|nth| KeySlot { tag: order(nth, len), at: nth }).collect();
                let mut expected = slots.clone();
                expected.sort_by_key(|slot| (slot.tag, slot.at));
                let mut comparisons = 0;
                sort(&mut slots, |a, b| {
                    comparisons += 1;
                    (a.tag, a.at).cmp(&(b.tag, b.at))
                });
                assert!(slots == expected, "{len}");
                let log = len.checked_ilog2().unwrap_or(0) + 1;
                assert!(comparisons <= 2 * len * log + 190, "{comparisons} comparisons for {len}");
                // The same by buckets, also when all fall into one.
                for shift in [0, 10, 20] {
                    let mut slots: Vec<_> =
                        (0..len).map(|nth| KeySlot { tag: order(nth, len) << shift, at: nth }).collect();
                    let mut expected = slots.clone();
                    expected.sort_by_key(|slot| (slot.tag, slot.at));
                    sort_spread(&mut slots, |a, b| a.at.cmp(&b.at));
                    assert!(slots == expected, "{len} {shift}");
                }
            }
        }
    }

    #[test]
    fn both_hashes_are_the_same() {
        for len in 0..40 {
            let key: Vec<u8> = (0..len).map(|nth: u8| nth.wrapping_mul(37)).collect();
            assert_eq!(hash_plain(&key), hash_bytes(key.len(), key.iter().copied()));
        }
        assert_ne!(hash_plain(b"a"), hash_plain(b"a\0"));
    }
}
