//! The time of a model.

use std::sync::Arc;

use callgate_core::time::{Instant, Timestamp};
use callgate_std::clock::{Clock, ManualClock, Now, SharedClock};

/// When every model starts.
pub(crate) const START: Now =
    Now { monotonic: Instant::from_nanos(3_600_000_000_000), wall: Timestamp::from_unix_millis(1_000_000) };

/// A clock that nobody moves, and whose reading is no step that others could come between: those would only multiply the
/// orders.
pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> Now {
        START
    }
}

/// A clock to be injected, and where it `moves` the same one to move it by.
pub(crate) fn clock(moves: bool) -> (SharedClock, Option<ManualClock>) {
    let manual = moves.then(|| ManualClock::at(START));
    (manual.as_ref().map_or_else(|| Arc::new(Still) as SharedClock, ManualClock::shared), manual)
}
