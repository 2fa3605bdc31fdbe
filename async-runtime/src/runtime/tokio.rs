//! tokio.

use std::time::Duration;

use callgate_core::time::{Clock, Instant, Now};
use callgate_std::clock::SystemClock;
use tokio::runtime::Handle;
use tokio::time::Instant as TokioInstant;

use super::{BoxFuture, Runtime};

/// A tokio runtime, with its timers enabled. Time that is paused or advanced in it (`tokio::time::pause`) moves the monotonic side
/// of the gate's clock too; the wall clock is always the system's.
#[derive(Clone, Debug)]
pub struct Tokio {
    handle: Handle,
    /// Two readings of the same moment.
    origin: (TokioInstant, Instant),
}

/// There is no tokio runtime here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no tokio runtime here; call this from within one, or give its handle to `Tokio::new`")]
pub struct NoTokio;

impl Tokio {
    /// The runtime of this handle.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        let origin = {
            let _entered = handle.enter();
            (TokioInstant::now(), SystemClock::default().monotonic())
        };
        Self { handle, origin }
    }

    /// The runtime that this is called in.
    ///
    /// # Errors
    /// There is none.
    pub fn current() -> Result<Self, NoTokio> {
        Handle::try_current().map(Self::new).map_err(|_| NoTokio)
    }
}

impl Runtime for Tokio {
    fn now(&self) -> Now {
        let _entered = self.handle.enter();
        let (begun, origin) = self.origin;
        let since = TokioInstant::now().saturating_duration_since(begun);
        let since = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Now { monotonic: origin.saturating_add_nanos(since), ..SystemClock::default().now() }
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let _entered = self.handle.enter();
        Box::pin(tokio::time::sleep(duration))
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) {
        drop(self.handle.spawn(future));
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        drop(self.handle.spawn_blocking(work));
    }
}
