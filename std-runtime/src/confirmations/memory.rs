//! Confirmations in memory: for programs that live as long as their callers wait.

use std::fmt;

use callgate_core::confirm::{Binding, By, Refusal, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::{Instant, Now, Timestamp};

use super::table::{Capacity, Table};
use super::{ConfirmationStore, DecideFault, IssueFault, Issued, Loaded, PendingApproval, PendingRequest, StoreFault};
use crate::clock::{SharedClock, SystemClock};
use crate::entropy::{OsEntropy, SharedEntropy};
use crate::guarantee::Guarantee;
use crate::lock::{AtomicBool, Mutex, MutexGuard, Ordering, lock};

/// A store in memory. Lost with the process, and with it every token: nothing can be redeemed after a restart.
///
/// Its time is the wall clock's, except that it never goes back and never stands still: while the wall clock is behind, it
/// goes on by the monotonic clock. A clock that is set back makes no token live longer (invariant C2), and a machine that slept wakes
/// with its tokens expired.
pub struct MemoryConfirmations {
    clock: SharedClock,
    entropy: SharedEntropy,
    approvers: AtomicBool,
    shelf: Mutex<Shelf>,
}

struct Shelf {
    table: Table,
    time: StoreTime,
}

impl MemoryConfirmations {
    /// A store with the system's clock and randomness.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        Self::with(capacity, SystemClock::shared(), OsEntropy::shared())
    }

    /// A store with this clock and this source of tokens.
    #[must_use]
    pub fn with(capacity: Capacity, clock: SharedClock, entropy: SharedEntropy) -> Self {
        let time = StoreTime::start(clock.now());
        let shelf = Mutex::new(Shelf { table: Table::new(capacity), time });
        Self { clock, entropy, approvers: AtomicBool::new(false), shelf }
    }

    /// Says whether approvers can be reached. As long as they can't, which is how a store starts, a call that needs one
    /// is refused at once instead of waiting for nobody.
    pub fn attach_approvers(&self, attached: bool) {
        self.approvers.store(attached, Ordering::Release);
    }

    /// How many tickets are kept, settled and expired ones that were not swept yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.shelf).table.len()
    }

    /// Whether no ticket is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes the store counts as in use; see [`Capacity::bytes`].
    #[must_use]
    pub fn bytes(&self) -> usize {
        lock(&self.shelf).table.bytes()
    }

    /// The shelf, the time by it, and the wall clock's.
    fn open(&self) -> (MutexGuard<'_, Shelf>, Timestamp, Timestamp) {
        // The clock is a host's: it is read before the lock is held.
        let reading = self.clock.now();
        let mut shelf = lock(&self.shelf);
        let now = shelf.time.advance(reading);
        (shelf, now, reading.wall)
    }
}

impl Default for MemoryConfirmations {
    fn default() -> Self {
        Self::new(Capacity::DEFAULT)
    }
}

impl fmt::Debug for MemoryConfirmations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryConfirmations").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl ConfirmationStore for MemoryConfirmations {
    fn guarantee(&self) -> Guarantee {
        Guarantee { atomic_claim: true, ..Guarantee::NONE }
    }

    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        if request.by == By::Approver && !self.approvers.load(Ordering::Acquire) {
            return Err(IssueFault::NoApprover);
        }
        let token = self.entropy.token().map_err(|_| IssueFault::Store)?;
        let (mut shelf, now, wall) = self.open();
        shelf.table.issue(token.hash(), request, ttl_ms, now)?;
        // Whoever reads the answer has the wall clock to compare it with.
        Ok(Issued { token, expires_at: wall.saturating_add_millis(ttl_ms) })
    }

    fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        let (shelf, now, _) = self.open();
        Ok(shelf.table.load(ticket, now))
    }

    fn claim(&self, ticket: Digest, presented: &Binding) -> Result<Result<By, Refusal>, StoreFault> {
        let (mut shelf, now, _) = self.open();
        Ok(shelf.table.claim(ticket, presented, now))
    }

    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        let (mut shelf, ..) = self.open();
        shelf.table.withdraw(ticket);
        Ok(())
    }

    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<(), DecideFault> {
        let (mut shelf, now, _) = self.open();
        shelf.table.decide(ticket, verdict, approver, now)
    }

    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        let (shelf, now, _) = self.open();
        Ok(shelf.table.pending(approver, max, now))
    }
}

/// Time that neither goes back nor stands still.
struct StoreTime {
    /// The latest reading of the wall clock that was ahead of everything before, and when it was taken.
    base: Timestamp,
    at: Instant,
    /// The latest time given out (invariant C2).
    mark: Timestamp,
}

impl StoreTime {
    fn start(reading: Now) -> Self {
        Self { base: reading.wall, at: reading.monotonic, mark: reading.wall }
    }

    fn advance(&mut self, reading: Now) -> Timestamp {
        let steady = self.base.saturating_add_millis(reading.monotonic.nanos_since(self.at) / 1_000_000);
        if reading.wall > steady {
            self.base = reading.wall;
            self.at = reading.monotonic;
        }
        self.mark = self.mark.max(steady).max(reading.wall);
        self.mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, ManualClock};
    use proptest::prelude::*;
    use std::time::Duration;

    proptest! {
        /// C2: whatever the clocks do, the store's time goes on at least as fast as the monotonic clock and never back.
        #[test]
        fn c2_store_time_never_goes_back_nor_stands_still(steps in prop::collection::vec((0_u64..5_000, -9_000_i64..9_000), 1..50)) {
            let clock = ManualClock::new();
            let mut time = StoreTime::start(clock.now());
            let (mut last, mut lowest) = (clock.now().wall, clock.now().wall);
            for (pass, step) in steps {
                clock.advance_monotonic(Duration::from_millis(pass));
                clock.step_wall(step);
                lowest = lowest.saturating_add_millis(pass);
                let now = time.advance(clock.now());
                prop_assert!(now >= last && now >= clock.now().wall && now >= lowest);
                last = now;
            }
        }
    }

    #[test]
    fn c2_time_adds_up_from_readings_closer_than_a_millisecond() {
        let clock = ManualClock::new();
        let mut time = StoreTime::start(clock.now());
        let start = time.advance(clock.now());
        for _ in 0..10 {
            clock.advance_monotonic(Duration::from_micros(300));
            time.advance(clock.now());
        }
        assert_eq!(time.advance(clock.now()), start.saturating_add_millis(3));
        // Even a monotonic clock that goes back, which is broken, turns no time back.
        clock.step_wall(-10);
        clock.set(Now { monotonic: Instant::from_nanos(0), ..clock.now() });
        assert_eq!(time.advance(clock.now()), start.saturating_add_millis(3));
    }
}
