//! A bound on how much is in flight: so many run, so many wait in line, and whoever comes then is turned away at once
//! (invariant X6).

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use callgate_core::call::TurnAway;

use crate::lock::{Mutex, lock};

/// So many places, and a line of waiters of bounded length. First come, first served: a place that is given back goes to the
/// first in line, and nobody overtakes.
pub struct Slots {
    places: usize,
    line: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: usize,
    /// Who waits, the oldest first, by ascending number.
    waiting: VecDeque<(u64, Waker)>,
    /// Who was given a place and has not come for it yet.
    given: Vec<u64>,
    /// The number of whoever lines up next. 64 bits do not run out.
    next: u64,
    closed: bool,
    /// Who waits for the last place to be given back.
    idle: Vec<Waker>,
}

impl State {
    fn place_in_line(&self, ticket: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&ticket, |(number, _)| *number).ok()
    }

    fn waker_of(&mut self, ticket: u64) -> Option<&mut Waker> {
        let at = self.place_in_line(ticket)?;
        self.waiting.get_mut(at).map(|(_, waker)| waker)
    }

    /// Whether `ticket` was given a place; it is no longer afterwards.
    fn redeem(&mut self, ticket: u64) -> bool {
        let at = self.given.iter().position(|given| *given == ticket);
        at.is_some_and(|at| self.given.swap_remove(at) == ticket)
    }
}

impl Slots {
    /// `places` that can be taken at once, at least one, and a line of at most `line` waiters.
    #[must_use]
    pub fn new(places: usize, line: usize) -> Self {
        Self { places: places.max(1), line, state: Mutex::default() }
    }

    /// Takes a place, without waiting.
    ///
    /// # Errors
    /// There is none, or somebody waits already, or the slots are closed.
    pub fn try_take(self: &Arc<Self>) -> Result<Slot, TurnAway> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(TurnAway::Shutdown);
        }
        if state.taken >= self.places || !state.waiting.is_empty() {
            return Err(TurnAway::Overloaded);
        }
        state.taken = state.taken.saturating_add(1);
        Ok(Slot(Arc::clone(self)))
    }

    /// Takes a place as soon as there is one, in line behind those who came before. The future takes its place in line when it
    /// is first polled, and leaves the line when it is dropped. It fails at once when the line is full.
    pub fn take(self: &Arc<Self>) -> Take {
        Take { slots: Arc::clone(self), ticket: None }
    }

    /// Lets nobody in any more; whoever waits in line is turned away.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Whether nobody is let in any more.
    pub fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// How many places are taken.
    pub fn taken(&self) -> usize {
        lock(&self.state).taken
    }

    /// Waits until no place is taken.
    pub fn idle(self: &Arc<Self>) -> impl Future<Output = ()> + Send + 'static {
        let slots = Arc::clone(self);
        std::future::poll_fn(move |cx| {
            let mut state = lock(&slots.state);
            if state.taken == 0 {
                return Poll::Ready(());
            }
            if !state.idle.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.idle.push(cx.waker().clone());
            }
            Poll::Pending
        })
    }

    fn give_back(&self) {
        let mut state = lock(&self.state);
        if !state.closed
            && let Some((ticket, waker)) = state.waiting.pop_front()
        {
            // The place stays taken: it is the waiter's now.
            state.given.push(ticket);
            drop(state);
            return waker.wake();
        }
        state.taken = state.taken.saturating_sub(1);
        if state.taken == 0 {
            let idle = std::mem::take(&mut state.idle);
            drop(state);
            idle.into_iter().for_each(Waker::wake);
        }
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("Slots")
            .field("places", &self.places)
            .field("taken", &state.taken)
            .field("waiting", &state.waiting.len())
            .field("closed", &state.closed)
            .finish_non_exhaustive()
    }
}

/// A place that is taken until this is dropped.
#[must_use = "a place is given back when this is dropped"]
pub struct Slot(Arc<Slots>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}

/// Waits for a place; see [`Slots::take`].
#[must_use = "futures do nothing unless they are polled"]
pub struct Take {
    slots: Arc<Slots>,
    /// The number in line, once there is one.
    ticket: Option<u64>,
}

impl Future for Take {
    type Output = Result<Slot, TurnAway>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut state = lock(&this.slots.state);
        if let Some(ticket) = this.ticket {
            if let Some(waker) = state.waker_of(ticket) {
                waker.clone_from(cx.waker());
                return Poll::Pending;
            }
            this.ticket = None;
            // Whoever is out of the line was given a place, unless the line was closed.
            let given = state.redeem(ticket);
            drop(state);
            return Poll::Ready(if given { Ok(Slot(Arc::clone(&this.slots))) } else { Err(TurnAway::Shutdown) });
        }
        if state.closed {
            return Poll::Ready(Err(TurnAway::Shutdown));
        }
        if state.taken < this.slots.places && state.waiting.is_empty() {
            state.taken = state.taken.saturating_add(1);
            return Poll::Ready(Ok(Slot(Arc::clone(&this.slots))));
        }
        if state.waiting.len() >= this.slots.line {
            return Poll::Ready(Err(TurnAway::Overloaded));
        }
        let ticket = state.next;
        state.next = state.next.wrapping_add(1);
        state.waiting.push_back((ticket, cx.waker().clone()));
        this.ticket = Some(ticket);
        Poll::Pending
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = lock(&self.slots.state);
        if let Some(at) = state.place_in_line(ticket) {
            drop(state.waiting.remove(at));
        } else if state.redeem(ticket) {
            drop(state);
            self.slots.give_back();
        }
    }
}

impl fmt::Debug for Take {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Take").field("in_line", &self.ticket.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn poll(take: &mut Take) -> Poll<Result<Slot, TurnAway>> {
        Pin::new(take).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn x6_whoever_comes_when_all_is_full_is_turned_away_at_once() {
        let slots = Arc::new(Slots::new(1, 1));
        let held = slots.try_take().unwrap();
        let mut first = slots.take();
        assert!(poll(&mut first).is_pending());
        let mut second = slots.take();
        assert!(matches!(poll(&mut second), Poll::Ready(Err(TurnAway::Overloaded))));
        assert!(matches!(slots.try_take(), Err(TurnAway::Overloaded)));
        drop(held);
        assert!(matches!(slots.try_take(), Err(TurnAway::Overloaded)), "nobody overtakes who waits");
        assert!(matches!(poll(&mut first), Poll::Ready(Ok(_))));
    }

    #[test]
    fn closing_turns_away_who_waits_and_leaves_those_who_were_let_in() {
        let slots = Arc::new(Slots::new(1, 2));
        let held = slots.try_take().unwrap();
        let (mut given, mut waits) = (slots.take(), slots.take());
        assert!(poll(&mut given).is_pending() && poll(&mut waits).is_pending());
        drop(held);
        slots.close();
        assert!(matches!(poll(&mut waits), Poll::Ready(Err(TurnAway::Shutdown))));
        assert!(matches!(slots.try_take(), Err(TurnAway::Shutdown)));
        let Poll::Ready(Ok(slot)) = poll(&mut given) else { panic!("it was let in before") };
        assert_eq!(slots.taken(), 1);
        drop(slot);
        crate::future::block_on(slots.idle());
    }

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Come,
        Look(usize),
        Leave(usize),
        GiveBack(usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            Just(Act::Come),
            (0..8_usize).prop_map(Act::Look),
            (0..8_usize).prop_map(Act::Leave),
            (0..8_usize).prop_map(Act::GiveBack),
        ]
    }

    proptest! {
        // Never more than the places, nobody overtakes, no place is lost.
        #[test]
        fn x6_places_are_bounded_fair_and_never_lost(places in 1..4_usize, line in 0..4_usize, acts in prop::collection::vec(act(), 0..60)) {
            let slots = Arc::new(Slots::new(places, line));
            let (mut waiting, mut held, mut number) = (Vec::<(u32, Take)>::new(), Vec::<Slot>::new(), 0);
            let mut last = 0;
            for act in acts {
                match act {
                    Act::Come => {
                        number += 1;
                        let mut take = slots.take();
                        match poll(&mut take) {
                            Poll::Pending => waiting.push((number, take)),
                            Poll::Ready(Ok(slot)) => held.push(slot),
                            Poll::Ready(Err(_)) => prop_assert!(waiting.len() >= line),
                        }
                    }
                    Act::Look(at) if at < waiting.len() => {
                        if let Poll::Ready(result) = poll(&mut waiting[at].1) {
                            held.push(result.unwrap());
                            drop(waiting.remove(at));
                        }
                    }
                    Act::Leave(at) if at < waiting.len() => drop(waiting.remove(at)),
                    Act::GiveBack(at) if at < held.len() => drop(held.swap_remove(at)),
                    _ => {}
                }
                prop_assert!(held.len() <= places);
            }
            held.clear();
            // All who still wait get their turn, in their order.
            for (number, mut take) in waiting {
                let Poll::Ready(Ok(slot)) = poll(&mut take) else { panic!("{number} waits for ever") };
                prop_assert!(number > last);
                last = number;
                drop(slot);
            }
            prop_assert_eq!(slots.taken(), 0);
        }
    }
}
