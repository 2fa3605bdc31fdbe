//! Calls in an executor of a few lines that needs no heap: the stages in a row, and an `.await` wherever something is slow.
//! `cargo run -p callgate-core --example executor`
#![expect(clippy::print_stdout, reason = "an example")]

mod shared;

use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};

use callgate_core::call::{Call, Confirm, Ended, Load, Ran};
use callgate_core::fixed::Buffer;
use callgate_core::intercept::Interception;
use callgate_core::json::KeySlot;
use callgate_core::limit::Allowance;
use shared::{Carried, LIMITER_TICKS, LOCK_TICKS, Place, RECORD_TICKS, Tool, check, told};

/// Waits for so many ticks of the timer.
async fn pass(place: &Place, ticks: u64) {
    let due = place.ticks() + ticks;
    poll_fn(|_| if place.ticks() >= due { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// A call from its start to its answer.
async fn call(place: &Place, carried: Carried<'_>) -> Buffer<512> {
    let (Ok(ended) | Err(ended)) = stages(place, carried).await;
    let closed = ended.close(place.now());
    // This gate has no attempts to charge and gives nothing back: see `callgate_core::call::Settlement` for what else there is.
    let recorded = place.record(&closed.record());
    told(&closed.audited(recorded))
}

type Ends<'a> = Ended<Carried<'a>, &'static Tool>;

async fn stages<'a>(place: &Place, carried: Carried<'a>) -> Result<Ends<'a>, Ends<'a>> {
    let call = Call::request(carried, place.now());
    let found = place.find(call.asked().tool);
    let call = match call.resolve(found)? {
        Load::Fresh(call) => call,
        Load::Stored(loading) => loading.unknown()?,
    };
    let call = call.validate()?;
    let decision = place.decide(&call.subject());
    let call = call.authorize(decision)?;
    pass(place, LIMITER_TICKS).await;
    let charged = call.charge().map_or(Allowance::Unlimited, |charge| place.charge(&charge));
    let call = call.admit(Ok(charged))?.unless_planning()?;
    let call = match call.confirm()? {
        Confirm::NotNeeded(call) => call,
        Confirm::Ask(asking) => return Err(asking.no_approver()),
        Confirm::Redeem(redeeming) => redeeming.unknown()?,
    };
    let mut call = call.intercept(Interception::Continue)?;
    pass(place, RECORD_TICKS).await;
    let recorded = call.intent().map_or(Ok(()), |intent| place.record(&intent));
    let mut executing = call.announce(recorded)?.begin();
    let ran = executing.permit().map_or(Ran::Cancelled, |permit| place.run(permit));
    pass(place, LOCK_TICKS).await;
    Ok(executing.finished(ran.after(LOCK_TICKS * 1_000_000)))
}

/// Runs futures to their ends, all at once: whoever can go on goes on, then `sleep` waits for the next interrupt. No heap, no queue, and no
/// wakers, because after an interrupt everybody is asked.
fn run<F: Future, const N: usize>(mut futures: [Pin<&mut F>; N], mut sleep: impl FnMut()) -> [F::Output; N] {
    let mut outputs = [const { None }; N];
    let mut context = Context::from_waker(Waker::noop());
    loop {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(done) = future.as_mut().poll(&mut context)
            {
                *output = Some(done);
            }
        }
        if outputs.iter().all(Option::is_some) {
            return outputs.map(Option::unwrap);
        }
        sleep();
    }
}

fn main() {
    let place = Place::new();
    let mut keys = [[KeySlot::default(); 8]; 2];
    let [first, second] = &mut keys;
    let lock = pin!(call(&place, place.envelope("r-1", "lock.open", first)));
    let door = pin!(call(&place, place.envelope("r-2", "door.open", second)));
    let answers = run([lock, door], || place.tick());
    let answers = answers.each_ref().map(Buffer::as_str);
    check(answers, &place);
    println!("{}\n{}", answers[0], answers[1]);
}

#[test]
fn the_executor_answers_two_calls_at_once() {
    main();
}
