//! Cancelling: no child is missed, and nobody who waits is forgotten.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use callgate_std::cancellation::Cancellation;
use loom::future::block_on;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicBool, Ordering};

use crate::explore::Orders::{self, All, Interrupted};
use crate::explore::{explore, spawn, waits_for_ever};

fn ends<O: Ord + Send + 'static>(orders: Orders, scenario: impl Fn() -> O + Send + Sync + 'static) -> BTreeSet<O> {
    let seen = explore(orders, scenario);
    println!("{} runs", seen.runs);
    seen.ends
}

/// A child is cancelled with its parent, whether it comes before, after or between.
#[test]
fn no_child_is_missed() {
    let cancelled = ends(All, || {
        let whole = Cancellation::new();
        let parent = whole.clone();
        let birth = spawn(move || parent.child());
        let cancels = spawn(move || whole.cancel());
        cancels.join().expect("no panic");
        birth.join().expect("no panic").is_cancelled()
    });
    assert_eq!(cancelled, [true].into());
}

/// Whoever waits for a child's cancellation is told of its parent's, and of one by two threads at the same time.
#[test]
fn whoever_waits_is_told() {
    ends(All, || {
        let whole = Cancellation::new();
        let child = whole.child();
        let waiter = spawn(move || block_on(child.cancelled()));
        whole.cancel();
        waiter.join().expect("no panic");
    });
    ends(Interrupted(2), || {
        let whole = Cancellation::new();
        let (waits, other) = (whole.clone(), whole.clone());
        let waiter = spawn(move || block_on(waits.child().cancelled()));
        let cancels = spawn(move || other.cancel());
        whole.cancel();
        waiter.join().expect("no panic");
        cancels.join().expect("no panic");
    });
}

/// What a cancellation must not be.
#[derive(Default)]
struct Faulty {
    cancelled: AtomicBool,
    children: Mutex<Vec<Arc<Self>>>,
    waiting: Mutex<Vec<Waker>>,
}

impl Faulty {
    fn cancel(&self) {
        if self.cancelled.swap(true, Ordering::SeqCst) {
            return;
        }
        let waiting = std::mem::take(&mut *self.waiting.lock().expect("no panic"));
        waiting.into_iter().for_each(Waker::wake);
        let children = std::mem::take(&mut *self.children.lock().expect("no panic"));
        children.iter().for_each(|child| child.cancel());
    }

    /// Looks before it takes the lock that `cancel` takes.
    fn child(&self) -> Arc<Self> {
        let child = Arc::new(Self::default());
        if self.cancelled.load(Ordering::SeqCst) {
            child.cancel();
        } else {
            self.children.lock().expect("no panic").push(Arc::clone(&child));
        }
        child
    }

    /// Does not look again after it has lined up.
    async fn cancelled(&self) {
        poll_fn(|cx| {
            if self.cancelled.load(Ordering::SeqCst) {
                return Poll::Ready(());
            }
            self.waiting.lock().expect("no panic").push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

#[test]
fn a_child_that_looks_and_then_enters_itself_is_noticed() {
    let cancelled = ends(All, || {
        let whole = Arc::new(Faulty::default());
        let parent = Arc::clone(&whole);
        let birth = spawn(move || parent.child());
        whole.cancel();
        birth.join().expect("no panic").cancelled.load(Ordering::SeqCst)
    });
    assert_eq!(cancelled, [false, true].into());
}

#[test]
fn a_waiter_that_does_not_look_again_is_noticed() {
    waits_for_ever("cancellation::a_waiter_that_does_not_look_again_is_noticed", || {
        ends(All, || {
            let whole = Arc::new(Faulty::default());
            let waits = Arc::clone(&whole);
            let waiter = spawn(move || block_on(waits.cancelled()));
            whole.cancel();
            waiter.join().expect("no panic");
        });
    });
}
