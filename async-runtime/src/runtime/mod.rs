//! What the gate needs of an executor: four functions.

#[cfg(feature = "smol")]
mod smol;
#[cfg(feature = "tokio")]
mod tokio;

#[cfg(feature = "smol")]
pub use self::smol::Smol;
#[cfg(feature = "tokio")]
pub use self::tokio::{NoTokio, Tokio};

use std::sync::Arc;
use std::time::Duration;

use callgate_core::time::{Clock, Instant, Now};
use callgate_std::clock::SharedClock;
pub use callgate_std::future::BoxFuture;

/// An executor, as the gate uses it. Implement it for any other; nothing of it decides anything.
///
/// Work that is handed over may be dropped without being run, by an executor that goes down: the gate then ends the calls that it
/// belonged to.
pub trait Runtime: Send + Sync + 'static {
    /// The time. The gate reads no other clock; [`clock`] gives it to stores that need one.
    fn now(&self) -> Now;

    /// The monotonic side of [`now`](Self::now), or what it was at most `slack` nanoseconds ago where that costs less; see
    /// [`Clock::monotonic_within`].
    fn monotonic_within(&self, slack: u64) -> Instant {
        let _ = slack;
        self.now().monotonic
    }

    /// Waits. The time runs from this call on, on the clock of [`now`](Self::now).
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Runs a future to its end, whoever waits for it.
    fn spawn(&self, future: BoxFuture<'static, ()>);

    /// Runs work that blocks its thread, on a thread where that may be.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);
}

/// The clock of a runtime, for the limiters and stores that a gate on it uses.
#[must_use]
pub fn clock(runtime: &Arc<dyn Runtime>) -> SharedClock {
    Arc::new(RuntimeClock(Arc::clone(runtime)))
}

struct RuntimeClock(Arc<dyn Runtime>);

impl Clock for RuntimeClock {
    fn now(&self) -> Now {
        self.0.now()
    }

    fn monotonic(&self) -> Instant {
        self.0.monotonic_within(0)
    }

    fn monotonic_within(&self, slack: u64) -> Instant {
        self.0.monotonic_within(slack)
    }
}
