//! A bound on how much is in flight: so many run, so many wait in line, and whoever comes then is turned away at once
//! (invariant X6).

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use callgate_core::call::TurnAway;

use crate::lock::{AtomicUsize, Mutex, MutexGuard, Ordering, lock};

/// So many places, and a line of waiters of bounded length. First come, first served: a place that is given back goes to the
/// first in line, and nobody overtakes.
pub struct Slots {
    places: usize,
    line: usize,
    /// How many places are taken, and [`LOOK`]: as long as there is nothing else to look at, whoever comes and goes changes the
    /// count and needs no lock.
    count: AtomicUsize,
    state: Mutex<State>,
}

/// Set in the count while somebody waits, or the slots are closed, or somebody looks at the state: then the count is changed under
/// the lock alone.
const LOOK: usize = 1 << (usize::BITS - 1);

#[derive(Default)]
struct State {
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
        Self { places: places.clamp(1, LOOK - 1), line, count: AtomicUsize::new(0), state: Mutex::default() }
    }

    /// The state and the count, which nobody else changes while this is held.
    fn hold(&self) -> Held<'_> {
        let state = lock(&self.state);
        let taken = self.count.fetch_or(LOOK, Ordering::AcqRel) & !LOOK;
        Held { count: &self.count, state, taken }
    }

    /// Takes a place, without waiting.
    ///
    /// # Errors
    /// There is none, or somebody waits already, or the slots are closed.
    pub fn try_take(self: &Arc<Self>) -> Result<Slot, TurnAway> {
        self.come_in().map(|()| Slot(Arc::clone(self)))
    }

    /// The same for whoever does not outlive the slots.
    pub(crate) fn try_lend(self: &Arc<Self>) -> Result<Lent<'_>, TurnAway> {
        self.come_in().map(|()| Lent(Some(self)))
    }

    fn come_in(&self) -> Result<(), TurnAway> {
        let mut count = self.count.load(Ordering::Relaxed);
        // With the mark the count is greater than any number of places.
        while count < self.places {
            let more = count.saturating_add(1);
            match self.count.compare_exchange_weak(count, more, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => count = now,
            }
        }
        self.look_and_come_in()
    }

    #[cold]
    fn look_and_come_in(&self) -> Result<(), TurnAway> {
        let mut held = self.hold();
        if held.state.closed {
            return Err(TurnAway::Shutdown);
        }
        if held.taken >= self.places || !held.state.waiting.is_empty() {
            return Err(TurnAway::Overloaded);
        }
        held.taken = held.taken.saturating_add(1);
        Ok(())
    }

    /// Takes a place as soon as there is one, in line behind those who came before. The future takes its place in line when it
    /// is first polled, and leaves the line when it is dropped. It fails at once when the line is full.
    pub fn take(self: &Arc<Self>) -> Take {
        Take { slots: Arc::clone(self), ticket: None }
    }

    /// Lets nobody in any more; whoever waits in line is turned away.
    pub fn close(&self) {
        let mut held = self.hold();
        held.state.closed = true;
        let waiting = std::mem::take(&mut held.state.waiting);
        drop(held);
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Whether nobody is let in any more.
    pub fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// How many places are taken.
    pub fn taken(&self) -> usize {
        self.count.load(Ordering::Acquire) & !LOOK
    }

    /// Waits until no place is taken.
    pub fn idle(self: &Arc<Self>) -> impl Future<Output = ()> + Send + 'static {
        let slots = Arc::clone(self);
        std::future::poll_fn(move |cx| {
            let mut held = slots.hold();
            if held.taken == 0 {
                return Poll::Ready(());
            }
            if !held.state.idle.iter().any(|waker| waker.will_wake(cx.waker())) {
                held.state.idle.push(cx.waker().clone());
            }
            Poll::Pending
        })
    }

    fn give_back(&self) {
        let mut count = self.count.load(Ordering::Relaxed);
        while count & LOOK == 0 {
            let less = count.saturating_sub(1);
            match self.count.compare_exchange_weak(count, less, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => count = now,
            }
        }
        self.look_and_give_back();
    }

    #[cold]
    fn look_and_give_back(&self) {
        let mut held = self.hold();
        if !held.state.closed
            && let Some((ticket, waker)) = held.state.waiting.pop_front()
        {
            // The place stays taken: it is the waiter's now.
            held.state.given.push(ticket);
            drop(held);
            return waker.wake();
        }
        held.taken = held.taken.saturating_sub(1);
        if held.taken == 0 {
            let idle = std::mem::take(&mut held.state.idle);
            drop(held);
            idle.into_iter().for_each(Waker::wake);
        }
    }
}

/// The state under its lock, and the count.
struct Held<'s> {
    count: &'s AtomicUsize,
    state: MutexGuard<'s, State>,
    taken: usize,
}

/// Before the lock is given back.
impl Drop for Held<'_> {
    fn drop(&mut self) {
        let State { waiting, closed, idle, .. } = &*self.state;
        let look = *closed || !waiting.is_empty() || !idle.is_empty();
        self.count.store(if look { self.taken | LOOK } else { self.taken }, Ordering::Release);
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("Slots")
            .field("places", &self.places)
            .field("taken", &self.taken())
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

/// As a [`Slot`], for as long as the slots are there in any case.
pub(crate) struct Lent<'s>(Option<&'s Arc<Slots>>);

impl Lent<'_> {
    /// The place by itself.
    pub(crate) fn keep(mut self) -> Option<Slot> {
        self.0.take().map(|slots| Slot(Arc::clone(slots)))
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(slots) = self.0 {
            slots.give_back();
        }
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
        let mut held = this.slots.hold();
        if let Some(ticket) = this.ticket {
            if let Some(waker) = held.state.waker_of(ticket) {
                waker.clone_from(cx.waker());
                return Poll::Pending;
            }
            this.ticket = None;
            // Whoever is out of the line was given a place, unless the line was closed.
            let given = held.state.redeem(ticket);
            drop(held);
            return Poll::Ready(if given { Ok(Slot(Arc::clone(&this.slots))) } else { Err(TurnAway::Shutdown) });
        }
        if held.state.closed {
            return Poll::Ready(Err(TurnAway::Shutdown));
        }
        if held.taken < this.slots.places && held.state.waiting.is_empty() {
            held.taken = held.taken.saturating_add(1);
            return Poll::Ready(Ok(Slot(Arc::clone(&this.slots))));
        }
        if held.state.waiting.len() >= this.slots.line {
            return Poll::Ready(Err(TurnAway::Overloaded));
        }
        let ticket = held.state.next;
        held.state.next = held.state.next.wrapping_add(1);
        held.state.waiting.push_back((ticket, cx.waker().clone()));
        this.ticket = Some(ticket);
        Poll::Pending
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut held = self.slots.hold();
        if let Some(at) = held.state.place_in_line(ticket) {
            drop(held.state.waiting.remove(at));
        } else if held.state.redeem(ticket) {
            drop(held);
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
