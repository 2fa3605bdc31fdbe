//! A bound of one place, in which faults can be planted that only an order of steps shows.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};

use callgate_core::call::TurnAway;
use loom::sync::{Mutex, MutexGuard};

use crate::slots::Bound;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Looks whether there is a place, lets go, and then takes it.
    LooksThenLetsIn,
    /// Looks whether there is a place, lets go, and then lines up for it.
    LinesUpLate,
}

pub(crate) struct FaultySlots {
    fault: Fault,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: usize,
    closed: bool,
    /// Whoever waits, for a place or for all to be out. All are woken by whatever happens.
    waiting: Vec<Waker>,
}

impl FaultySlots {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { fault, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

pub(crate) struct Place(Arc<FaultySlots>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.change(|state| state.taken -= 1);
    }
}

impl Bound for FaultySlots {
    type Place = Place;

    fn try_take(self: &Arc<Self>) -> Result<Place, TurnAway> {
        let mut state = self.state();
        if state.closed {
            return Err(TurnAway::Shutdown);
        }
        if state.taken > 0 {
            return Err(TurnAway::Overloaded);
        }
        if self.fault == Fault::LooksThenLetsIn {
            drop(state);
            state = self.state();
        }
        state.taken += 1;
        Ok(Place(Arc::clone(self)))
    }

    fn take(self: &Arc<Self>) -> impl Future<Output = Result<Place, TurnAway>> {
        poll_fn(|cx| {
            let free = self.state().taken == 0;
            if free || self.fault != Fault::LinesUpLate {
                let taken = self.try_take();
                if taken.is_ok() || taken.as_ref().is_err_and(|away| matches!(away, TurnAway::Shutdown)) {
                    return Poll::Ready(taken);
                }
            }
            let mut state = self.state();
            if state.taken == 0 && self.fault != Fault::LinesUpLate {
                // It was given back since.
                cx.waker().wake_by_ref();
            }
            state.waiting.push(cx.waker().clone());
            Poll::Pending
        })
    }

    fn close(&self) {
        self.change(|state| state.closed = true);
    }

    fn idle(self: &Arc<Self>) -> impl Future<Output = ()> {
        poll_fn(|cx| {
            let mut state = self.state();
            if state.taken == 0 {
                return Poll::Ready(());
            }
            state.waiting.push(cx.waker().clone());
            Poll::Pending
        })
    }

    fn taken(&self) -> usize {
        self.state().taken
    }
}
