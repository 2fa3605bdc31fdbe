//! Many calls of one model turn: what is handed in, and in which order outcomes come back.

use std::collections::HashSet;
use std::ops::ControlFlow;

use callgate_core::context::CallContext;
use callgate_core::request::Request;

/// The most calls of one batch (invariant X6).
pub const MAX_CALLS: usize = 1_024;

/// One call of a batch.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "whoever calls makes it")]
pub struct BatchCall<'a> {
    /// Names the call within its batch, such as the id that the model gave it. Its outcome comes back under it.
    pub id: &'a str,
    /// Who asks. The request id is the call's own, as for every call: records go by it.
    pub caller: CallContext<'a>,
    /// What for.
    pub request: Request<'a>,
    /// The id of the operation that it is to be one of, as for a call by itself. Two calls of one batch may have the same one.
    pub operation: Option<&'a str>,
}

/// In which order outcomes are delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::exhaustive_enums, reason = "a gate does one or the other")]
pub enum Delivery {
    /// In the order of the calls. What is over before its turn waits for it, so up to the whole batch is kept.
    #[default]
    Ordered,
    /// As they are over.
    AsCompleted,
}

/// How a batch is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "whoever calls makes it")]
pub struct BatchOptions {
    /// How many of its calls are under way at once, at least 1. Beside this bound each call passes those of its gate and of its
    /// tool.
    pub at_once: usize,
    /// In which order outcomes come.
    pub delivery: Delivery,
}

/// Why a batch was not begun. No call of it was received, and none has a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Two calls have the same id, so an outcome could not be told from the other one's (invariant R1).
    #[error("two calls of the batch have the same id")]
    DuplicateId,
    /// None may be under way.
    #[error("a batch must run at least 1 call at once")]
    NothingAtOnce,
    /// It is too long.
    #[error("a batch has at most {MAX_CALLS} calls")]
    TooMany,
}

/// Whether a batch can be run. A batch without calls can.
///
/// # Errors
/// Says what is wrong with it.
pub fn check(calls: &[BatchCall<'_>], options: &BatchOptions) -> Result<(), BatchError> {
    if options.at_once == 0 {
        return Err(BatchError::NothingAtOnce);
    }
    if calls.len() > MAX_CALLS {
        return Err(BatchError::TooMany);
    }
    let mut ids = HashSet::with_capacity(calls.len());
    if calls.iter().all(|call| ids.insert(call.id)) { Ok(()) } else { Err(BatchError::DuplicateId) }
}

/// Brings what is over into the order of its delivery, and stops for good when its consumer breaks. `T` is an outcome.
#[doc(hidden)]
#[derive(Debug)]
pub struct Deliveries<T> {
    delivery: Delivery,
    /// Whose turn it is, when they are delivered in order.
    next: usize,
    /// What is over before its turn, by its place in the batch.
    early: Vec<Option<T>>,
    broken: bool,
}

impl<T> Deliveries<T> {
    /// For a batch of so many calls.
    #[must_use]
    pub fn new(delivery: Delivery, calls: usize) -> Self {
        let early = if delivery == Delivery::Ordered { calls } else { 0 };
        Self { delivery, next: 0, early: std::iter::repeat_with(|| None).take(early).collect(), broken: false }
    }

    /// Takes the outcome of the call at this place, and delivers what can be delivered now. Breaks once the consumer broke:
    /// nothing is delivered any more then.
    pub fn over(
        &mut self,
        at: usize,
        outcome: T,
        mut deliver: impl FnMut(usize, T) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.broken {
            return ControlFlow::Break(());
        }
        let mut hand_over = |at, outcome| {
            let flow = deliver(at, outcome);
            self.broken = flow.is_break();
            flow
        };
        if self.delivery == Delivery::AsCompleted {
            return hand_over(at, outcome);
        }
        if let Some(place) = self.early.get_mut(at) {
            *place = Some(outcome);
        }
        while let Some(outcome) = self.early.get_mut(self.next).and_then(Option::take) {
            let at = self.next;
            self.next = at.saturating_add(1);
            hand_over(at, outcome)?;
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn deliver_all(delivery: Delivery, over: &[usize], break_after: Option<usize>) -> Vec<usize> {
        let mut deliveries = Deliveries::new(delivery, over.len());
        let mut delivered = Vec::new();
        for at in over {
            let flow = deliveries.over(*at, *at, |at, outcome| {
                assert_eq!(at, outcome);
                delivered.push(at);
                if break_after == Some(delivered.len()) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(flow.is_break(), break_after.is_some_and(|after| delivered.len() >= after));
        }
        delivered
    }

    proptest! {
        // R1: each once, whatever is over first; nothing after the break.
        #[test]
        fn r1_each_is_delivered_once_and_nothing_after_a_break(
            over in (0..20_usize).prop_flat_map(|n| Just((0..n).collect::<Vec<_>>()).prop_shuffle()),
            break_after in prop::option::of(1..20_usize),
        ) {
            let most = break_after.map_or(over.len(), |after| after.min(over.len()));
            let in_order: Vec<_> = (0..most).collect();
            prop_assert_eq!(deliver_all(Delivery::Ordered, &over, break_after), in_order);
            prop_assert_eq!(&*deliver_all(Delivery::AsCompleted, &over, break_after), &over[..most]);
        }
    }

    #[test]
    fn f7_a_batch_that_cannot_be_run_is_refused() {
        let ids: Vec<_> = (0..=MAX_CALLS).map(|n| n.to_string()).collect();
        let request = Request { tool: "t", arguments: b"", token: None };
        let calls: Vec<_> =
            ids.iter().map(|id| BatchCall { id, caller: CallContext::cli(id), request, operation: None }).collect();
        let options = |at_once| BatchOptions { at_once, delivery: Delivery::Ordered };
        assert_eq!(check(&[], &options(1)), Ok(()));
        assert_eq!(check(&calls[..MAX_CALLS], &options(1)), Ok(()));
        assert_eq!(check(&calls, &options(1)), Err(BatchError::TooMany));
        assert_eq!(check(&calls[..1], &options(0)), Err(BatchError::NothingAtOnce));
        assert_eq!(check(&[calls[0], calls[1], calls[0]], &options(1)), Err(BatchError::DuplicateId));
    }

    // L1
    #[test]
    fn l1_debug_shows_no_argument() {
        let request = Request { tool: "t", arguments: b"CANARY", token: Some("CANARY") };
        let call = BatchCall { id: "1", caller: CallContext::cli("r1"), request, operation: None };
        assert!(!format!("{call:?}").contains("CANARY"));
    }
}
