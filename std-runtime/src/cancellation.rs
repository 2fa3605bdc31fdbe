//! Telling a call that nobody waits for it any more.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use crate::lock::{AtomicBool, Mutex, Ordering, lock};

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
    others: Mutex<Others>,
}

/// Who is to be told. Every call has one of these, and most have at most one who waits: it is kept small.
#[derive(Default)]
struct Others {
    /// The first who waits, under the number 0.
    first: Option<Waker>,
    more: Option<Box<More>>,
}

#[derive(Default)]
struct More {
    children: Vec<Weak<State>>,
    /// Who else waits, under numbers of their own.
    waits: Vec<(usize, Waker)>,
    last: usize,
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
        let mut others = lock(&other.0.others);
        // Looked at under the lock that `cancel` takes, so that no child is missed.
        if other.is_cancelled() {
            drop(others);
            return self.cancel();
        }
        let children = &mut others.more.get_or_insert_default().children;
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
        let Others { first, more } = std::mem::take(&mut *lock(&self.0.others));
        first.into_iter().for_each(Waker::wake);
        let Some(more) = more else { return };
        more.waits.into_iter().for_each(|(_, waker)| waker.wake());
        more.children.iter().filter_map(Weak::upgrade).for_each(|child| Self(child).cancel());
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Waits until it is cancelled. Needs no particular executor.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { of: self.clone(), number: None }
    }
}

/// Waits until a [`Cancellation`] is cancelled.
#[must_use = "futures do nothing unless they are polled"]
pub struct Cancelled {
    of: Cancellation,
    /// Under which its waker is kept.
    number: Option<usize>,
}

impl Others {
    fn waker(&mut self, number: usize) -> Option<&mut Waker> {
        if number == 0 {
            return self.first.as_mut();
        }
        let waits = &mut self.more.as_mut()?.waits;
        waits.iter_mut().find(|(held, _)| *held == number).map(|(_, waker)| waker)
    }

    fn add(&mut self, waker: Waker) -> usize {
        if self.first.is_none() {
            self.first = Some(waker);
            return 0;
        }
        let more = self.more.get_or_insert_default();
        more.last = more.last.wrapping_add(1).max(1);
        more.waits.push((more.last, waker));
        more.last
    }

    fn remove(&mut self, number: usize) {
        if number == 0 {
            self.first = None;
        } else if let Some(more) = &mut self.more {
            more.waits.retain(|(held, _)| *held != number);
        }
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut others = lock(&this.of.0.others);
        // Looked at under the lock that `cancel` takes, so that nobody is left waiting.
        if this.of.is_cancelled() {
            return Poll::Ready(());
        }
        match this.number.and_then(|number| others.waker(number)) {
            Some(waker) => waker.clone_from(cx.waker()),
            None => this.number = Some(others.add(cx.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            lock(&self.of.0.others).remove(number);
        }
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled").finish_non_exhaustive()
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
        assert!(lock(&whole.0.others).more.as_ref().unwrap().children.len() < 16);
        for _ in 0..10_000 {
            let mut waits = whole.cancelled();
            assert!(Pin::new(&mut waits).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert!(lock(&whole.0.others).more.as_ref().unwrap().waits.is_empty() && lock(&whole.0.others).first.is_none());
    }
}
