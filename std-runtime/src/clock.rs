//! Clocks: the system's, and one that tests step by hand.

use std::sync::Arc;
use std::time::Duration;

pub use callgate_core::time::{Clock, Instant, Now, Timestamp};

use crate::lock::{Mutex, lock};

/// A clock that several parts of a gate share.
pub type SharedClock = Arc<dyn Clock + Send + Sync>;

/// The system's clocks.
///
/// All of one process agree; instants of two processes must not be compared. `monotonic` stands still while the machine
/// sleeps where the system's monotonic clock does (Linux); `wall` does not. On Linux `wall` is the time of the kernel's last
/// tick, at most 10 ms ago, because reading it costs a fourth of reading the hardware.
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
        system::monotonic()
    }

    fn monotonic_within(&self, slack: u64) -> Instant {
        system::monotonic_within(slack)
    }

    fn now(&self) -> Now {
        Now { monotonic: system::monotonic(), wall: system::wall() }
    }
}

/// Linux tells the time of its last tick without reading the hardware.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use super::{Instant, Timestamp};
    use rustix::time::{ClockId, Timespec, clock_gettime};

    /// The longest time between two ticks of any Linux (`CONFIG_HZ=100`), in nanoseconds.
    const TICK: u64 = 10_000_000;

    pub(super) fn monotonic() -> Instant {
        instant(clock_gettime(ClockId::Monotonic))
    }

    pub(super) fn monotonic_within(slack: u64) -> Instant {
        if slack >= TICK { instant(clock_gettime(ClockId::MonotonicCoarse)) } else { monotonic() }
    }

    pub(super) fn wall() -> Timestamp {
        let (seconds, nanos) = parts(clock_gettime(ClockId::RealtimeCoarse));
        Timestamp::from_unix_millis(seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000))
    }

    fn instant(time: Timespec) -> Instant {
        let (seconds, nanos) = parts(time);
        Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    /// A wall clock before 1970 is wrong in any case; 0 makes everything that expires look far from it, which the high-water marks
    /// of the stores keep from reviving anything (invariant C2).
    fn parts(time: Timespec) -> (u64, u64) {
        match u64::try_from(time.tv_sec) {
            Ok(seconds) => (seconds, time.tv_nsec.unsigned_abs()),
            Err(_) => (0, 0),
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use super::{Instant, Timestamp, millis, nanos};
    use std::sync::OnceLock;
    use std::time::{SystemTime, UNIX_EPOCH};

    pub(super) fn monotonic() -> Instant {
        static START: OnceLock<std::time::Instant> = OnceLock::new();
        let now = std::time::Instant::now();
        Instant::from_nanos(nanos(now.saturating_duration_since(*START.get_or_init(|| now))))
    }

    pub(super) fn monotonic_within(_slack: u64) -> Instant {
        monotonic()
    }

    /// A wall clock before 1970 is wrong in any case; 0 makes everything that expires look far from it, which the high-water marks
    /// of the stores keep from reviving anything (invariant C2).
    pub(super) fn wall() -> Timestamp {
        Timestamp::from_unix_millis(millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()))
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

    /// C1: the rough clock runs on the same line, behind the exact one by no more than was allowed.
    #[test]
    fn c1_a_rough_reading_is_behind_by_no_more_than_its_slack() {
        for slack in [0, 1_000_000, 10_000_000, u64::MAX] {
            let before = SystemClock.monotonic();
            let rough = SystemClock.monotonic_within(slack);
            let after = SystemClock.monotonic();
            assert!(rough <= after, "{slack}");
            assert!(rough.saturating_add_nanos(slack) >= before, "{slack}");
        }
        let manual = ManualClock::new();
        assert_eq!(manual.monotonic_within(u64::MAX), manual.monotonic());
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
