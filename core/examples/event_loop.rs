//! Calls in an event loop, as on a device with interrupts: each is parked in a slot as a [`Step`] while something is slow, and goes on when the
//! interrupt says that it is done. `cargo run -p callgate-core --example event_loop`
#![expect(clippy::print_stdout, reason = "an example")]

mod shared;

use callgate_core::call::{Executing, Ran};
use callgate_core::intercept::Interception;
use callgate_core::json::KeySlot;
use callgate_core::limit::Allowance;
use callgate_core::step::Step;
use callgate_core::typed::Failed;
use shared::{Carried, LIMITER_TICKS, LOCK_TICKS, Place, RECORD_TICKS, Tool, check, told};

/// What a slot holds of a call.
enum Slot<'a> {
    /// Goes on at once.
    Ready(Step<Carried<'a>, &'static Tool>),
    /// Has to be given what it asked for at that tick.
    Slow(Step<Carried<'a>, &'static Tool>, u64),
    /// The lock opens until that tick.
    Opening(Executing<Carried<'a>, &'static Tool>, Ran<u32, Failed<&'static str>, &'static str>, u64),
    /// The answer.
    Done(callgate_core::fixed::Buffer<512>),
}

impl Slot<'_> {
    /// Goes on until something is slow.
    fn turn(mut self, place: &Place) -> Self {
        loop {
            self = match self {
                Self::Ready(step) => match next(step, place) {
                    parked @ (Self::Slow(..) | Self::Opening(..) | Self::Done(_)) => return parked,
                    ready => ready,
                },
                Self::Slow(step, due) if due <= place.ticks() => Self::Ready(given(step, place)),
                Self::Opening(executing, ran, due) if due <= place.ticks() => {
                    Self::Ready(Step::Close(executing.finished(ran.after(LOCK_TICKS * 1_000_000))))
                }
                waiting => return waiting,
            };
        }
    }
}

/// Begins what a step asks for, or does it, where it is quick.
fn next<'a>(step: Step<Carried<'a>, &'static Tool>, place: &Place) -> Slot<'a> {
    let in_ticks = |ticks| place.ticks() + ticks;
    match step {
        slow @ Step::Charge(_) => Slot::Slow(slow, in_ticks(LIMITER_TICKS)),
        slow @ Step::Intent(_) => Slot::Slow(slow, in_ticks(RECORD_TICKS)),
        Step::Execute(call) => {
            let mut executing = call.begin();
            let ran = executing.permit().map_or(Ran::Cancelled, |permit| place.run(permit));
            Slot::Opening(executing, ran, in_ticks(LOCK_TICKS))
        }
        Step::Done(outcome) => Slot::Done(told(&outcome)),
        quick => Slot::Ready(given(quick, place)),
    }
}

/// Gives a step what it asks for.
fn given<'a>(step: Step<Carried<'a>, &'static Tool>, place: &Place) -> Step<Carried<'a>, &'static Tool> {
    match step {
        Step::Find(call) => {
            let found = place.find(call.asked().tool);
            call.found(found)
        }
        Step::Load(loading) => loading.answer(Ok(None)),
        Step::Authorize(call) => {
            let decision = place.decide(&call.subject());
            call.answer(decision)
        }
        Step::Charge(call) => {
            let charged = call.charge().map_or(Allowance::Unlimited, |charge| place.charge(&charge));
            call.answer(Ok(charged))
        }
        Step::Recall(operating) => Step::Close(operating.unsupported()),
        Step::Claim(operating) => Step::Close(operating.unsupported()),
        Step::Issue(asking) => Step::Close(asking.no_approver()),
        Step::Redeem(redeeming) => redeeming.answer(Ok(Err(callgate_core::confirm::Refusal::Unknown))),
        Step::Intercept(call) => call.answer(Interception::Continue),
        Step::Intent(mut call) => {
            let recorded = call.intent().map_or(Ok(()), |intent| place.record(&intent));
            call.answer(recorded)
        }
        Step::Close(ended) => ended.answer(place.now()),
        Step::Settle(closed) => closed.settled(None),
        Step::Record(closed) => {
            let recorded = place.record(&closed.record());
            closed.recorded(recorded)
        }
        other @ (Step::Execute(_) | Step::Done(_)) => other,
    }
}

fn main() {
    let place = Place::new();
    let mut keys = [[KeySlot::default(); 8]; 2];
    let [first, second] = &mut keys;
    let started = [("r-1", "lock.open", first), ("r-2", "door.open", second)];
    let mut slots =
        started.map(|(id, tool, keys)| Some(Slot::Ready(Step::start(place.envelope(id, tool, keys), place.now()))));
    // The event loop: go on with whatever can go on, then sleep until the next interrupt.
    while !slots.iter().all(|slot| matches!(slot, Some(Slot::Done(_)))) {
        for slot in &mut slots {
            *slot = slot.take().map(|slot| slot.turn(&place));
        }
        place.tick();
    }
    let answers = slots.each_ref().map(|slot| match slot {
        Some(Slot::Done(answer)) => answer.as_str(),
        _ => "",
    });
    check(answers, &place);
    println!("{}\n{}", answers[0], answers[1]);
}

#[test]
fn the_event_loop_answers_two_calls_at_once() {
    main();
}
