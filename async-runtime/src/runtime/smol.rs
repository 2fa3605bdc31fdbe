//! smol.

use std::time::Duration;

use callgate_core::time::{Clock, Instant, Now};
use callgate_std::clock::SystemClock;

use super::{BoxFuture, Runtime};

/// smol's global executor, its timers and its pool of threads.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Smol;

impl Smol {
    /// The global executor.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Runtime for Smol {
    fn now(&self) -> Now {
        SystemClock::default().now()
    }

    fn monotonic_within(&self, slack: u64) -> Instant {
        SystemClock::default().monotonic_within(slack)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let timer = smol::Timer::after(duration);
        Box::pin(async move {
            timer.await;
        })
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) {
        smol::spawn(future).detach();
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        smol::unblock(work).detach();
    }
}
