//! The time of a store that several processes share.

use callgate_core::confirm::MAX_SKEW_MS;
use callgate_core::time::Timestamp;

/// What a store takes for the time that outlives its process: the wall clock's, and never earlier than the latest time that any
/// process has left in the store (invariant C2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WallTime {
    /// The time of this step, and the latest from here on.
    pub now: Timestamp,
    /// The wall clock was set back by more than a few seconds. Everything that waits is forgotten then rather than given a longer
    /// life (invariant C4).
    pub set_back: bool,
}

impl WallTime {
    /// The time of a step that finds `seen` in the store and `wall` on the clock.
    #[must_use]
    pub fn after(seen: Timestamp, wall: Timestamp) -> Self {
        let set_back = wall.saturating_add_millis(MAX_SKEW_MS) < seen;
        Self { now: if set_back { wall } else { seen.max(wall) }, set_back }
    }
}
