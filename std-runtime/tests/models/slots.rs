//! The bound on what is in flight: never more than there are places, nobody is forgotten in line, and whoever was told that all
//! are out finds nobody inside (invariant X6).

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use callgate_core::call::TurnAway;
use callgate_std::slots::{Slot, Slots};
use loom::future::block_on;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::explore::Orders::{self, All, Interrupted};
use crate::explore::{explore, spawn, waits_for_ever};
use crate::faulty_slots::{Fault, FaultySlots};

/// What of the bound a call uses, and whoever shuts it.
pub(crate) trait Bound: Send + Sync + Sized + 'static {
    /// Held by whoever is inside.
    type Place: Send + 'static;

    fn try_take(self: &Arc<Self>) -> Result<Self::Place, TurnAway>;
    fn take(self: &Arc<Self>) -> impl Future<Output = Result<Self::Place, TurnAway>>;
    fn close(&self);
    fn idle(self: &Arc<Self>) -> impl Future<Output = ()>;
    fn taken(&self) -> usize;
}

impl Bound for Slots {
    type Place = Slot;

    fn try_take(self: &Arc<Self>) -> Result<Slot, TurnAway> {
        Self::try_take(self)
    }

    fn take(self: &Arc<Self>) -> impl Future<Output = Result<Slot, TurnAway>> {
        Self::take(self)
    }

    fn close(&self) {
        Self::close(self);
    }

    fn idle(self: &Arc<Self>) -> impl Future<Output = ()> {
        Self::idle(self)
    }

    fn taken(&self) -> usize {
        Self::taken(self)
    }
}

/// One place, and room in line for two.
fn one() -> Slots {
    Slots::new(1, 2)
}

fn ends<O: Ord + Send + 'static>(orders: Orders, scenario: impl Fn() -> O + Send + Sync + 'static) -> BTreeSet<O> {
    let seen = explore(orders, scenario);
    println!("{} runs", seen.runs);
    seen.ends
}

/// How many are inside at most, of so many threads that come at the same time, wait for a place, and leave again.
fn crowd<B: Bound>(orders: Orders, threads: usize, make: fn() -> B) -> BTreeSet<usize> {
    ends(orders, move || {
        let bound = Arc::new(make());
        let inside = Arc::new(AtomicUsize::new(0));
        let started: Vec<_> = (0..threads)
            .map(|_| {
                let (bound, inside) = (Arc::clone(&bound), Arc::clone(&inside));
                spawn(move || {
                    let place = block_on(bound.take()).expect("there is room in line");
                    let now = inside.fetch_add(1, Ordering::Relaxed) + 1;
                    inside.fetch_sub(1, Ordering::Relaxed);
                    drop(place);
                    now
                })
            })
            .collect();
        let most = started.into_iter().map(|thread| thread.join().expect("no panic")).max();
        assert_eq!(bound.taken(), 0, "a place was lost");
        most.unwrap_or_default()
    })
}

/// X6: never more than the places; and all come to an end, so nobody was forgotten in line.
#[test]
fn x6_whoever_waits_gets_the_place_and_nobody_shares_it() {
    assert_eq!(crowd(All, 2, one), [1].into());
    assert_eq!(crowd(Interrupted(2), 3, one), [1].into());
}

#[test]
fn x6_a_bound_that_looks_and_then_lets_in_is_noticed() {
    assert!(crowd(All, 2, || FaultySlots::new(Fault::None)) == [1].into());
    assert!(crowd(All, 2, || FaultySlots::new(Fault::LooksThenLetsIn)).contains(&2));
}

#[test]
fn x6_a_waiter_that_lines_up_after_it_looked_is_noticed() {
    waits_for_ever("slots::x6_a_waiter_that_lines_up_after_it_looked_is_noticed", || {
        crowd(All, 2, || FaultySlots::new(Fault::LinesUpLate));
    });
}

/// X6: whoever leaves the line, even with the place that it was just given, holds up nobody behind it.
#[test]
fn x6_leaving_the_line_passes_the_place_on() {
    let left = ends(Interrupted(3), || {
        let bound = Arc::new(one());
        let held = bound.try_take().expect("it is free");
        let gives_back = spawn(move || drop(held));
        let leaves = Arc::clone(&bound);
        let leaver = spawn(move || pin!(leaves.take()).poll(&mut Context::from_waker(Waker::noop())).is_ready());
        let waits = Arc::clone(&bound);
        let waiter = spawn(move || block_on(waits.take()).is_ok());
        gives_back.join().expect("no panic");
        let had_it = leaver.join().expect("no panic");
        assert!(waiter.join().expect("no panic"), "there is room in line");
        assert_eq!(bound.taken(), 0, "a place was lost");
        had_it
    });
    assert_eq!(left, [false, true].into(), "it left with the place and without");
}

/// What a thread that comes while the bound is shut got: a place or not, and whether the other one had already been told that
/// all are out while this one was inside.
fn comes_while_it_shuts<B: Bound>(make: fn() -> B) -> BTreeSet<(bool, bool)> {
    ends(All, move || {
        let bound = Arc::new(make());
        let out = Arc::new(AtomicBool::new(false));
        let (comes, told) = (Arc::clone(&bound), Arc::clone(&out));
        let comer = spawn(move || {
            let place = comes.try_take();
            let late = place.is_ok() && told.load(Ordering::SeqCst);
            (place.is_ok(), late)
        });
        let shuts = spawn(move || {
            bound.close();
            block_on(bound.idle());
            out.store(true, Ordering::SeqCst);
            assert!(bound.try_take().is_err(), "it was shut before");
        });
        shuts.join().expect("no panic");
        comer.join().expect("no panic")
    })
}

/// X6: when all are out, all are out, and nobody comes in.
#[test]
fn x6_nobody_is_inside_after_the_last_was_said_to_be_out() {
    assert_eq!(comes_while_it_shuts(one), [(false, false), (true, false)].into());
}

#[test]
fn x6_a_bound_that_looks_whether_it_is_shut_and_then_lets_in_is_noticed() {
    assert_eq!(comes_while_it_shuts(|| FaultySlots::new(Fault::None)), [(false, false), (true, false)].into());
    assert!(comes_while_it_shuts(|| FaultySlots::new(Fault::LooksThenLetsIn)).contains(&(true, true)));
}

/// Whoever waits in line when the bound is shut, or comes to it then, is turned away and does not wait for ever; whoever was given
/// the place before has it.
#[test]
fn x6_shutting_wakes_the_line() {
    let got = ends(Interrupted(3), || {
        let bound = Arc::new(one());
        let held = bound.try_take().expect("it is free");
        let waits = Arc::clone(&bound);
        let waiter = spawn(move || block_on(waits.take()).err().map(|away| format!("{away:?}")));
        let gives_back = spawn(move || drop(held));
        bound.close();
        block_on(bound.idle());
        gives_back.join().expect("no panic");
        let got = waiter.join().expect("no panic");
        assert_eq!(bound.taken(), 0, "a place was lost");
        got
    });
    assert_eq!(got, [None, Some("Shutdown".to_owned())].into());
}
