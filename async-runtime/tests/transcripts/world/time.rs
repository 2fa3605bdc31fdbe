//! Time that passes when it is told to: a clock, and timers that go off by it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use callgate_core::time::{Clock as _, Instant, Now};
use callgate_std::clock::{ManualClock, SharedClock};

#[derive(Clone, Default)]
pub(crate) struct Time {
    clock: ManualClock,
    timers: Arc<Mutex<Vec<(Instant, Waker)>>>,
}

impl Time {
    pub(crate) fn new() -> Self {
        Self { clock: ManualClock::new(), timers: Arc::default() }
    }

    pub(crate) fn shared(&self) -> SharedClock {
        self.clock.shared()
    }

    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    fn timers(&self) -> MutexGuard<'_, Vec<(Instant, Waker)>> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time passes: timers that are due go off.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
        let now = self.now().monotonic;
        let mut timers = self.timers();
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut *timers).into_iter().partition(|(at, _)| *at <= now);
        *timers = later;
        drop(timers);
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Steps the wall clock alone.
    pub(crate) fn step_wall(&self, by_ms: i64) {
        self.clock.step_wall(by_ms);
    }

    /// The time runs from this call on.
    pub(crate) fn sleep(&self, duration: Duration) -> Sleep {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Sleep { until: self.now().monotonic.saturating_add_nanos(nanos), time: self.clone() }
    }
}

pub(crate) struct Sleep {
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

/// Waits for one poll more.
#[derive(Default)]
pub(crate) struct Pause(bool);

impl Future for Pause {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
