//! Time that passes when it is told to: a clock, and timers that go off by it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use callgate_core::time::{Clock, Instant, Now};
use callgate_std::clock::{ManualClock, SharedClock};

/// The time of a world. Clones show the same time.
#[derive(Clone, Debug)]
pub(super) struct Time {
    clock: ManualClock,
    timers: Arc<Mutex<Vec<(Instant, Waker)>>>,
}

impl Time {
    pub(super) fn new() -> Self {
        Self { clock: ManualClock::new(), timers: Arc::default() }
    }

    /// Shows this time from here on.
    pub(super) fn set(&self, now: Now) {
        self.clock.set(now);
    }

    pub(super) fn shared(&self) -> SharedClock {
        self.clock.shared()
    }

    /// Sets the clock on the wall back.
    pub(super) fn rewind(&self, ms: u64) {
        self.clock.step_wall(i64::try_from(ms).unwrap_or(i64::MAX).saturating_neg());
    }

    pub(super) fn now(&self) -> Now {
        self.clock.now()
    }

    fn timers(&self) -> MutexGuard<'_, Vec<(Instant, Waker)>> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time passes: timers that are due go off.
    pub(super) fn advance(&self, by: Duration) {
        self.clock.advance(by);
        let now = self.now().monotonic;
        let mut timers = self.timers();
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut *timers).into_iter().partition(|(at, _)| *at <= now);
        *timers = later;
        drop(timers);
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

#[cfg(feature = "executors")]
mod waits {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use callgate_core::time::Instant;

    use super::Time;

    impl Time {
        fn after(&self, by: Duration) -> Instant {
            self.now().monotonic.saturating_add_nanos(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX))
        }

        /// Waits until somebody else has moved the time so far.
        pub(in super::super) fn sleep(&self, by: Duration) -> Sleep {
            Sleep { until: self.after(by), time: self.clone() }
        }

        /// Waits, and has the time pass on the way: to the next timer that goes off, and so on, and at last to its own end. Whoever
        /// set a timer that goes off before comes first.
        pub(in super::super) fn hang(&self, by: Duration) -> Hang {
            Hang { until: self.after(by), time: self.clone(), begun: false }
        }

        /// The next moment at which a timer goes off, at most `latest`.
        fn next(&self, latest: Instant) -> Instant {
            self.timers().iter().map(|(at, _)| *at).fold(latest, Instant::min)
        }
    }

    /// See [`Time::sleep`].
    #[derive(Debug)]
    pub(in super::super) struct Sleep {
        until: Instant,
        time: Time,
    }

    impl Future for Sleep {
        type Output = ();

        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            // Under the lock that `advance` takes after it moved the clock, so that no timer is missed.
            let mut timers = self.time.timers();
            if self.time.now().monotonic >= self.until {
                return Poll::Ready(());
            }
            timers.retain(|(at, waker)| *at != self.until || !waker.will_wake(cx.waker()));
            timers.push((self.until, cx.waker().clone()));
            Poll::Pending
        }
    }

    /// See [`Time::hang`].
    #[derive(Debug)]
    pub(in super::super) struct Hang {
        until: Instant,
        time: Time,
        begun: bool,
    }

    impl Future for Hang {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            let now = self.time.now().monotonic;
            if now >= self.until {
                return Poll::Ready(());
            }
            // Whoever waits for this sets its timers when this has been polled once.
            if std::mem::replace(&mut self.begun, true) {
                let next = self.time.next(self.until);
                self.time.advance(Duration::from_nanos(next.nanos_since(now)));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }
}
