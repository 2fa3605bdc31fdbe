//! Clocks: the system's, and one that tests step by hand.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use callgate_core::time::{Clock, Instant, Now, Timestamp};

use crate::lock::lock;

/// A clock that several parts of a gate share.
pub type SharedClock = Arc<dyn Clock + Send + Sync>;

/// The system's clocks.
///
/// `monotonic` counts from the first reading in this process, so two of these agree, and instants of two processes must
/// not be compared. It stands still while the machine sleeps where the system's monotonic clock does (Linux); `wall` does
/// not.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemClock;

impl SystemClock {
    /// The system's clocks, to be shared.
    #[must_use]
    pub fn shared() -> SharedClock {
        Arc::new(Self)
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> Instant {
        static START: OnceLock<std::time::Instant> = OnceLock::new();
        let now = std::time::Instant::now();
        Instant::from_nanos(nanos(now.saturating_duration_since(*START.get_or_init(|| now))))
    }

    fn now(&self) -> Now {
        // A wall clock before 1970 is wrong in any case; 0 makes everything that expires look far from it, which the high-water
        // marks of the stores keep from reviving anything (invariant C2).
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { monotonic: self.monotonic(), wall: Timestamp::from_unix_millis(millis(wall)) }
    }
}

/// A clock that moves only when it is told to. Clones show the same time: keep one, inject the other.
///
/// ```
/// use std::time::Duration;
/// use callgate_std::clock::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let injected = clock.clone();
/// let before = injected.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(injected.now().monotonic.nanos_since(before.monotonic), 60_000_000_000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<Now>>);

impl ManualClock {
    /// A clock at 2026-01-01T00:00:00Z whose monotonic side shows one hour.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Now {
            monotonic: Instant::from_nanos(3_600_000_000_000),
            wall: Timestamp::from_unix_millis(1_767_225_600_000),
        })
    }

    /// A clock that shows `now`.
    #[must_use]
    pub fn at(now: Now) -> Self {
        Self(Arc::new(Mutex::new(now)))
    }

    /// The same clock, to be injected.
    #[must_use]
    pub fn shared(&self) -> SharedClock {
        Arc::new(self.clone())
    }

    /// Time passes: both sides move.
    pub fn advance(&self, by: Duration) {
        let mut now = lock(&self.0);
        now.monotonic = now.monotonic.saturating_add_nanos(nanos(by));
        now.wall = now.wall.saturating_add_millis(millis(by));
    }

    /// Moves the monotonic side alone.
    pub fn advance_monotonic(&self, by: Duration) {
        let mut now = lock(&self.0);
        now.monotonic = now.monotonic.saturating_add_nanos(nanos(by));
    }

    /// Steps the wall clock by so many milliseconds, either way, as an operator or NTP would; the monotonic side stays.
    pub fn step_wall(&self, by_ms: i64) {
        let mut now = lock(&self.0);
        now.wall = Timestamp::from_unix_millis(now.wall.as_unix_millis().saturating_add_signed(by_ms));
    }

    /// Shows `now` from here on. Only a test of a broken clock moves the monotonic side back.
    pub fn set(&self, now: Now) {
        *lock(&self.0) = now;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        *lock(&self.0)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c1_two_system_clocks_share_one_monotonic_line() {
        let (one, other) = (SystemClock, SystemClock);
        let readings = [one.now(), other.now(), one.now(), other.now()].map(|now| now.monotonic);
        assert!(readings.is_sorted());
        assert!(one.now().wall > Timestamp::from_unix_millis(1_700_000_000_000));
    }

    #[test]
    fn a_manual_clock_steps_each_side_alone_and_is_shared_by_its_clones() {
        let clock = ManualClock::new();
        let shared = clock.shared();
        let start = shared.now();
        clock.step_wall(-3_600_000);
        clock.advance_monotonic(Duration::from_nanos(5));
        let now = shared.now();
        assert_eq!(now.monotonic.nanos_since(start.monotonic), 5);
        assert_eq!(start.wall.as_unix_millis() - now.wall.as_unix_millis(), 3_600_000);
        clock.step_wall(i64::MIN);
        assert_eq!(shared.now().wall, Timestamp::from_unix_millis(0));
    }
}
