//! The time of a store that several processes share.

use callgate_core::confirm::MAX_SKEW_MS;
use callgate_core::time::{Now, StoreTime, Timestamp};

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
    /// By how many milliseconds then; 0 otherwise. What is held is held until so much earlier, by the clock that was set (invariant J4).
    pub back_ms: u64,
}

impl WallTime {
    /// The time of a step that finds `seen` in the store and `wall` on the clock.
    #[must_use]
    pub fn after(seen: Timestamp, wall: Timestamp) -> Self {
        let set_back = wall.saturating_add_millis(MAX_SKEW_MS) < seen;
        let back_ms = if set_back { seen.as_unix_millis().saturating_sub(wall.as_unix_millis()) } else { 0 };
        Self { now: if set_back { wall } else { seen.max(wall) }, set_back, back_ms }
    }
}

/// The same as one process sees it from step to step: what passed by its monotonic clock since its last step has passed, whatever the wall
/// clock says (invariant C2). What passed between two processes only the wall clock knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessTime(Option<StoreTime>);

impl ProcessTime {
    /// The time of a step that finds `seen` in the store and this reading on the clock.
    pub fn step(&mut self, seen: Timestamp, reading: Now) -> WallTime {
        let mut time = self.0.unwrap_or(StoreTime::start(reading));
        let passed = time.advance(reading);
        let step = WallTime::after(seen.max(passed), reading.wall);
        // On from here where another process was ahead, or the clock was set back for good.
        let on = if step.now == passed { time } else { StoreTime::start(Now { wall: step.now, ..reading }) };
        self.0 = Some(on);
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate_core::time::Instant;

    fn reading(monotonic_ms: u64, wall_ms: u64) -> Now {
        let monotonic = Instant::from_nanos(monotonic_ms * 1_000_000);
        Now { monotonic, wall: Timestamp::from_unix_millis(wall_ms) }
    }

    /// C2, C4: what a step sees, by what it finds in the store and on both clocks.
    #[test]
    fn c2_time_passes_by_whichever_clock_is_ahead() {
        let mut time = ProcessTime::default();
        let mut step = |seen, now| {
            let WallTime { now, set_back, .. } = time.step(Timestamp::from_unix_millis(seen), now);
            (now.as_unix_millis(), set_back)
        };
        assert_eq!(step(0, reading(0, 100_000)), (100_000, false));
        assert_eq!(step(0, reading(1_000, 101_000)), (101_000, false));
        // A small step back: on by the monotonic clock.
        assert_eq!(step(0, reading(3_000, 100_500)), (103_000, false));
        assert_eq!(step(0, reading(3_500, 101_000)), (103_500, false));
        // Another process is ahead, and stays so.
        assert_eq!(step(104_000, reading(3_600, 101_100)), (104_000, false));
        assert_eq!(step(0, reading(4_600, 102_100)), (105_000, false));
        // Ten minutes pass and are taken back, unseen.
        assert_eq!(step(0, reading(604_600, 102_100)), (102_100, true));
        assert_eq!(step(0, reading(605_600, 103_100)), (103_100, false), "from then on by the clock that was set");
        // The machine slept: the wall clock alone went on.
        assert_eq!(step(0, reading(605_600, 4_000_000)), (4_000_000, false));
    }
}
