//! A store against a model that never forgets: whatever operations come, in whatever order, with whatever clock.

use std::iter::{Empty, empty};

use callgate_core::confirm::{Asked, Ticket, TicketState, Verdict};
use callgate_std::clock::Clock;
use callgate_std::confirmations::{Capacity, Effect, Finish, Refusal, Resolution};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::bench::{BOB, Bench, STEWARD, approval, presented, request};

/// What is asked of approvers: one of them.
const ASKED: Asked<'static, Empty<&str>> = Asked { tenant: None, scope: "approve", approved_by: empty() };

#[derive(Clone, Debug)]
enum Operation {
    Issue { approver: bool, ttl: u64 },
    Load(usize),
    Claim(usize),
    Present(usize),
    Decide(usize, Verdict),
    Withdraw(usize),
    Finish(usize, Effect),
    Reap,
    Settle(usize),
    Pass(u64),
    StepWall(i64),
}

fn operation(steps: bool) -> impl Strategy<Value = Operation> {
    let which = 0..8_usize;
    let wall = if steps { -20_000..20_000_i64 } else { 0..1_i64 };
    prop_oneof![
        3 => (any::<bool>(), prop_oneof![Just(0), 1..20_000_u64, Just(u64::MAX)])
            .prop_map(|(approver, ttl)| Operation::Issue { approver, ttl }),
        2 => which.clone().prop_map(Operation::Load),
        4 => which.clone().prop_map(Operation::Claim),
        1 => which.clone().prop_map(Operation::Present),
        3 => (which.clone(), any::<bool>())
            .prop_map(|(i, yes)| Operation::Decide(i, if yes { Verdict::Approve } else { Verdict::Deny })),
        1 => which.clone().prop_map(Operation::Withdraw),
        2 => (which.clone(), prop_oneof![Just(Effect::None), Just(Effect::Done), Just(Effect::Unknown)])
            .prop_map(|(i, effect)| Operation::Finish(i, effect)),
        2 => Just(Operation::Reap),
        1 => which.prop_map(Operation::Settle),
        3 => prop_oneof![0..50_u64, 0..15_000_u64].prop_map(Operation::Pass),
        1 => wall.prop_map(Operation::StepWall),
    ]
}

/// What a store does about a clock that was set back. What has passed by either clock has passed for each of them (invariant C2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetBack {
    /// It goes on by the monotonic clock.
    GoesOn,
    /// It may give up what waits, and goes on by the clock that was set.
    GivesUp,
}

/// N2: a store accepts nothing that the model refuses (A1, A5, A6, A9, A10, C2, C3), and refuses nothing that the model
/// accepts, except where it gives up what waits because the wall clock stepped.
pub(crate) fn refines(make: &dyn Fn(Capacity) -> Bench, cases: u32, steps: bool, set_back: SetBack) {
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let operations = prop::collection::vec(operation(steps), 1..60);
    runner
        .run(&operations, |operations| {
            check(&make(Capacity::DEFAULT), &operations, steps, set_back);
            Ok(())
        })
        .expect("the store refines the model");
}

fn check(bench: &Bench, operations: &[Operation], steps: bool, set_back: SetBack) {
    let mut model = Vec::new();
    // A clock that went ahead and back again between two operations of the store was seen by nobody.
    let mut seen = bench.clock.now();
    let mut now = seen.wall;
    let may_refuse_more = steps && set_back != SetBack::GoesOn;
    let compare = |store: bool, model: bool, what: &Operation| {
        assert!(model || !store, "the store accepted {what:?}, the model did not");
        assert!(may_refuse_more || store == model, "the store refused {what:?}, the model did not");
    };
    for operation in operations {
        let asks = match operation {
            Operation::Pass(_) | Operation::StepWall(_) => false,
            Operation::Issue { .. } | Operation::Reap => true,
            _ => !model.is_empty(),
        };
        if asks {
            let reading = bench.clock.now();
            now = now.saturating_add_millis(reading.monotonic.nanos_since(seen.monotonic) / 1_000_000);
            now = now.max(reading.wall);
            seen = reading;
        }
        let count = model.len().max(1);
        let at = |i: &usize| i % count;
        match operation {
            Operation::Issue { approver, ttl } => {
                let request = if *approver { approval(1) } else { request(1) };
                let token = bench.store.issue(&request, *ttl).expect("room").token;
                model.push((token.hash(), Ticket::issue(request.binding, request.by, now, *ttl)));
            }
            Operation::Pass(ms) => bench.pass(*ms),
            Operation::StepWall(ms) => bench.clock.step_wall(*ms),
            Operation::Load(i) => {
                let Some((id, ticket)) = model.get(at(i)) else { continue };
                let usable = bench.store.load(*id).expect("answers").is_some_and(|found| found.usable.is_ok());
                compare(usable, ticket.usable(now).is_ok(), operation);
            }
            Operation::Claim(i) | Operation::Present(i) => {
                let Some((id, ticket)) = model.get_mut(at(i)) else { continue };
                let presented = presented(if matches!(operation, Operation::Claim(_)) { 1 } else { 2 });
                let claimed = bench.store.claim(*id, &presented).expect("answers");
                compare(claimed.is_ok(), ticket.claim(&presented, now).is_ok(), operation);
                assert_ne!(claimed, Err(Refusal::Malformed));
            }
            Operation::Decide(i, verdict) => {
                let Some((id, ticket)) = model.get_mut(at(i)) else { continue };
                let decided = bench.store.decide(*id, *verdict, &BOB);
                compare(decided.is_ok(), ticket.decide(*verdict, &BOB, &ASKED, now).is_ok(), operation);
            }
            Operation::Withdraw(i) => {
                let Some((id, ticket)) = model.get_mut(at(i)) else { continue };
                bench.store.withdraw(*id).expect("answers");
                ticket.cancel();
            }
            Operation::Finish(i, effect) => {
                let Some((id, ticket)) = model.get_mut(at(i)) else { continue };
                let finish = Finish { ticket: *id, call: presented(1).call, effect: *effect };
                let finished = bench.store.finish(&finish).expect("answers");
                compare(finished.is_ok(), ticket.finish(finish.call, *effect).is_ok(), operation);
            }
            // J4: what is lost by the rules alone is what the reaper tells.
            Operation::Reap => {
                let told = bench.store.reap(usize::MAX).expect("answers");
                for (id, ticket) in &mut model {
                    let mut after = *ticket;
                    let lost = after.reap(now);
                    let is_told = told.iter().any(|view| view.ticket == *id);
                    // A store whose clock went back counts from there.
                    assert!(may_refuse_more || lost == is_told, "{ticket:?}: {is_told}");
                    if is_told {
                        assert!(matches!(ticket.state, TicketState::Reserved { .. }), "{ticket:?}");
                        ticket.state = TicketState::InDoubt;
                    }
                }
            }
            Operation::Settle(i) => {
                let Some((id, ticket)) = model.get_mut(at(i)) else { continue };
                let resolution = Resolution { effect: Effect::Done, proof: "seen", by: STEWARD };
                let settled = bench.store.reconcile(*id, &resolution).expect("answers");
                compare(settled.is_ok(), ticket.reconcile(Effect::Done, "seen", &STEWARD, None).is_ok(), operation);
            }
        }
    }
}
