//! Batches, on threads of their own.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;

use super::drive::Follower;
use super::{Gate, Outcome};
use crate::batch::{BatchCall, BatchError, BatchOptions, Deliveries, check};
use crate::contain::contain;
use crate::lock::{AtomicUsize, Ordering};

impl Gate {
    /// Passes many calls through the gate, some of them at the same time, and gives each one's outcome to `deliver`, on this thread,
    /// under the id that the call has in the batch. Blocks until all are over.
    ///
    /// Each is a call of its own: it passes every stage, ends in one outcome and has its own records, and what becomes of it
    /// touches none of the others (invariant R1). Calls are started in order; which of them is ahead of another is left to chance
    /// unless `at_once` is 1. A `deliver` that takes its time holds the others up.
    ///
    /// When `deliver` breaks, the caller counts as gone: calls that are under way are cancelled as far as their tools let
    /// themselves be, those not started end as `CANCELLED`, all of them are recorded, and nothing is delivered any more. A panic
    /// of `deliver` breaks, too.
    ///
    /// # Errors
    /// Says why the batch was not begun.
    pub fn batch<'a>(
        &'a self,
        batch: &[BatchCall<'a>],
        options: BatchOptions,
        mut deliver: impl FnMut(&'a str, Outcome<'a>) -> ControlFlow<()>,
    ) -> Result<(), BatchError> {
        check(batch, &options)?;
        let (next, consumer) = (AtomicUsize::new(0), Follower::of_outcomes());
        let turn = || {
            let at = next.fetch_add(1, Ordering::Relaxed);
            batch.get(at).map(|call| (at, self.batched(call, &consumer)))
        };
        let mut deliveries = Deliveries::new(options.delivery, batch.len());
        let mut over = |(at, outcome): (usize, Outcome<'a>)| {
            let flow = deliveries.over(at, outcome, |at, outcome| {
                let Some(call) = batch.get(at) else { return ControlFlow::Continue(()) };
                contain(|| deliver(call.id, outcome)).unwrap_or(ControlFlow::Break(()))
            });
            if flow.is_break() {
                consumer.leave();
            }
        };
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(0);
            let turn = &turn;
            let calls = || {
                let sender = sender.clone();
                move || {
                    let (taken, is_taken) = mpsc::sync_channel(1);
                    // The next one waits until the consumer has taken this one: it is not started if that breaks.
                    while let Some(ended) = turn()
                        && sender.send((ended, taken.clone())).is_ok()
                        && is_taken.recv().is_ok()
                    {}
                }
            };
            // One at a time needs no other thread.
            let threads = if options.at_once == 1 { 0 } else { options.at_once.min(batch.len()) };
            let spawn = || thread::Builder::new().name("batch".to_owned()).spawn_scoped(scope, calls());
            let threads = (0..threads).take_while(|_| spawn().is_ok()).count();
            drop(sender);
            for (ended, taken) in receiver {
                over(ended);
                let _ = taken.send(());
            }
            // Where there is no thread to be had, they run here.
            if threads == 0 {
                std::iter::from_fn(turn).for_each(&mut over);
            }
        });
        Ok(())
    }

    fn batched<'a>(&'a self, call: &BatchCall<'a>, consumer: &Follower<'_>) -> Outcome<'a> {
        if consumer.is_gone() {
            return self.never_started(&call.caller, call.operation, call.request);
        }
        self.drive_call(&call.caller, call.operation, call.request, Some(consumer))
    }
}
