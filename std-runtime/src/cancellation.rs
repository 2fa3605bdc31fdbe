//! Telling a call that nobody waits for it any more.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::lock::{AtomicBool, Event, Mutex, Ordering, lock};

/// Says, once and for good, that a call is to stop. Clones are the same one.
///
/// A body looks at it ([`is_cancelled`](Self::is_cancelled)) or waits for it ([`cancelled`](Self::cancelled)). Nothing stops by
/// itself: a body that does neither runs on, and its outcome then counts as unknown.
///
/// ```
/// use callgate_std::cancellation::Cancellation;
/// let whole = Cancellation::new();
/// let part = whole.child();
/// whole.cancel();
/// assert!(part.is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct Cancellation(Arc<State>);

#[derive(Default)]
struct State {
    cancelled: AtomicBool,
    event: Event,
    children: Mutex<Vec<Weak<State>>>,
}

impl Cancellation {
    /// One that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that is cancelled with this one, and can be cancelled alone.
    #[must_use]
    pub fn child(&self) -> Self {
        let child = Self::new();
        child.cancel_with(self);
        child
    }

    /// Has this one cancelled with `other` too.
    pub fn cancel_with(&self, other: &Self) {
        let mut children = lock(&other.0.children);
        // Looked at under the lock that `cancel` takes, so that no child is missed.
        if other.is_cancelled() {
            drop(children);
            return self.cancel();
        }
        if children.len() == children.capacity() {
            children.retain(|child| child.strong_count() > 0);
        }
        children.push(Arc::downgrade(&self.0));
    }

    /// Cancels this one and its children. Does nothing the second time.
    pub fn cancel(&self) {
        if self.0.cancelled.swap(true, Ordering::SeqCst) {
            return;
        }
        self.0.event.notify(usize::MAX);
        let children = std::mem::take(&mut *lock(&self.0.children));
        for child in children.iter().filter_map(Weak::upgrade) {
            Self(child).cancel();
        }
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Waits until it is cancelled. Needs no particular executor.
    pub async fn cancelled(&self) {
        while !self.is_cancelled() {
            let listener = self.0.event.listen();
            // What was cancelled before the listener was there does not notify it.
            if self.is_cancelled() {
                return;
            }
            listener.await;
        }
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancellation").field(&self.is_cancelled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::future::block_on;

    #[test]
    fn a_child_is_cancelled_with_its_parent_and_never_the_other_way() {
        let whole = Cancellation::new();
        let (one, other) = (whole.child(), whole.child());
        one.cancel();
        assert!(one.is_cancelled() && !whole.is_cancelled() && !other.is_cancelled());
        whole.cancel();
        assert!(other.is_cancelled());
        assert!(whole.child().is_cancelled(), "a child of what was cancelled is born cancelled");
    }

    #[test]
    fn whoever_waits_is_told() {
        let whole = Cancellation::new();
        let child = whole.child();
        std::thread::scope(|scope| {
            scope.spawn(|| block_on(child.cancelled()));
            whole.cancel();
        });
        block_on(whole.cancelled());
    }

    #[test]
    fn x6_children_that_are_gone_take_no_room() {
        let whole = Cancellation::new();
        for _ in 0..10_000 {
            drop(whole.child());
        }
        assert!(lock(&whole.0.children).len() < 16);
    }
}
