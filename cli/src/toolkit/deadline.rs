//! How long a tool may go on.

use std::fmt;
use std::time::Duration;

use callgate_core::time::{Clock, Instant};

use super::error::{Fault, ToolError};

/// When one call has to stop: at a point of an injected clock, or as soon as its caller is gone.
///
/// Long work asks [`Deadline::check`] again and again, at least once for each file, directory entry or 64 KiB, and stops
/// with what it returns.
#[derive(Clone, Copy)]
pub struct Deadline<'a> {
    clock: &'a dyn Clock,
    at: Option<Instant>,
    cancelled: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Deadline<'a> {
    /// Stops at `at`.
    #[must_use]
    pub const fn at(clock: &'a dyn Clock, at: Instant) -> Self {
        Self { clock, at: Some(at), cancelled: None }
    }

    /// Stops `timeout` from now.
    #[must_use]
    pub fn within(clock: &'a dyn Clock, timeout: Duration) -> Self {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        Self::at(clock, clock.now().monotonic.saturating_add_nanos(nanos))
    }

    /// Never stops by itself.
    #[must_use]
    pub const fn never(clock: &'a dyn Clock) -> Self {
        Self { clock, at: None, cancelled: None }
    }

    /// The same deadline; stops also when `cancelled` says so.
    #[must_use]
    pub const fn or_when(self, cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { cancelled: Some(cancelled), ..self }
    }

    /// The same deadline, or `timeout` from now when that is earlier.
    #[must_use]
    pub fn at_most(self, timeout: Duration) -> Self {
        let own = Self::within(self.clock, timeout).at;
        let at = match (self.at, own) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { at, ..self }
    }

    /// The clock that the deadline is measured by.
    #[must_use]
    pub const fn clock(&self) -> &'a dyn Clock {
        self.clock
    }

    /// How much time is left; `None` when there is no end.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        let now = self.clock.now().monotonic;
        self.at.map(|at| Duration::from_nanos(at.nanos_since(now)))
    }

    /// Whether the work may go on.
    ///
    /// # Errors
    ///
    /// [`Fault::Cancelled`] when the caller is gone, [`Fault::TimedOut`] from the very instant of the deadline on.
    pub fn check(&self) -> Result<(), ToolError> {
        let stop = |fault, message: &str| Err(ToolError { fault, message: message.to_owned(), detail: None });
        if self.cancelled.is_some_and(|cancelled| cancelled()) {
            return stop(Fault::Cancelled, "the call was cancelled");
        }
        match self.left() {
            Some(Duration::ZERO) => stop(Fault::TimedOut, "the call took longer than it may"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Deadline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline").field("at", &self.at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use callgate_core::time::Now;

    use super::*;

    struct Hand(Cell<u64>);

    impl Clock for Hand {
        fn now(&self) -> Now {
            Now { monotonic: Instant::from_nanos(self.0.get()), ..Now::default() }
        }
    }

    #[test]
    fn x2_the_deadline_itself_is_too_late() {
        let clock = Hand(Cell::new(0));
        let deadline = Deadline::within(&clock, Duration::from_nanos(10));
        for (now, fault) in [(0, None), (9, None), (10, Some(Fault::TimedOut)), (11, Some(Fault::TimedOut))] {
            clock.0.set(now);
            assert_eq!(deadline.check().err().map(|error| error.fault), fault, "at {now}");
        }
    }

    #[test]
    fn a_cancelled_call_stops_before_its_deadline() {
        let clock = Hand(Cell::new(0));
        let gone = Cell::new(false);
        let is_gone = || gone.get();
        let deadline = Deadline::never(&clock).or_when(&is_gone);
        assert_eq!(deadline.check(), Ok(()));
        gone.set(true);
        assert_eq!(deadline.check().unwrap_err().fault, Fault::Cancelled);
    }

    #[test]
    fn the_earlier_of_two_deadlines_counts() {
        let clock = Hand(Cell::new(0));
        let long = Deadline::within(&clock, Duration::from_secs(5));
        assert_eq!(long.at_most(Duration::from_secs(1)).left(), Some(Duration::from_secs(1)));
        assert_eq!(long.at_most(Duration::from_secs(9)).left(), Some(Duration::from_secs(5)));
        assert_eq!(Deadline::never(&clock).at_most(Duration::from_secs(1)).left(), Some(Duration::from_secs(1)));
    }
}
