//! A store against a model that never forgets: whatever operations come, in whatever order, with whatever clock.

use callgate_core::confirm::{Ticket, Verdict};
use callgate_std::clock::Clock;
use callgate_std::confirmations::{Capacity, Refusal};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::bench::{BOB, Bench, approval, binding, request};

#[derive(Clone, Debug)]
enum Operation {
    Issue { approver: bool, ttl: u64 },
    Load(usize),
    Claim(usize),
    Present(usize),
    Decide(usize, Verdict),
    Withdraw(usize),
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
        1 => which.prop_map(Operation::Withdraw),
        3 => prop_oneof![0..50_u64, 0..15_000_u64].prop_map(Operation::Pass),
        1 => wall.prop_map(Operation::StepWall),
    ]
}

/// What a store takes for the time, of the readings of its clock that it has seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// The wall clock's, and while that is behind, on by the monotonic clock.
    Steady,
    /// The latest that the wall clock has shown.
    Latest,
}

/// N2: a store accepts nothing that the model refuses (A1, A5, A6, A9, A10, C2, C3), and refuses nothing that the model
/// accepts, except where it gives up what waits because the wall clock stepped.
pub(crate) fn refines(make: &dyn Fn(Capacity) -> Bench, cases: u32, steps: bool, time: Time) {
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let operations = prop::collection::vec(operation(steps), 1..60);
    runner
        .run(&operations, |operations| {
            check(&make(Capacity::DEFAULT), &operations, steps, time);
            Ok(())
        })
        .expect("the store refines the model");
}

fn check(bench: &Bench, operations: &[Operation], steps: bool, time: Time) {
    let mut model = Vec::new();
    // A clock that went ahead and back again between two operations of the store was seen by nobody.
    let mut seen = bench.clock.now();
    let mut now = seen.wall;
    let may_refuse_more = steps && time == Time::Latest;
    let compare = |store: bool, model: bool, what: &Operation| {
        assert!(model || !store, "the store accepted {what:?}, the model did not");
        assert!(may_refuse_more || store == model, "the store refused {what:?}, the model did not");
    };
    for operation in operations {
        let asks = match operation {
            Operation::Pass(_) | Operation::StepWall(_) => false,
            Operation::Issue { .. } => true,
            _ => !model.is_empty(),
        };
        if asks {
            let reading = bench.clock.now();
            if time == Time::Steady {
                now = now.saturating_add_millis(reading.monotonic.nanos_since(seen.monotonic) / 1_000_000);
            }
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
                let presented = binding(if matches!(operation, Operation::Claim(_)) { 1 } else { 2 });
                let claimed = bench.store.claim(*id, &presented).expect("answers");
                compare(claimed.is_ok(), ticket.claim(&presented, now).is_ok(), operation);
                assert_ne!(claimed, Err(Refusal::Malformed));
            }
            Operation::Decide(i, verdict) => {
                let Some((id, ticket)) = model.get_mut(at(i)) else { continue };
                let decided = bench.store.decide(*id, *verdict, &BOB);
                compare(decided.is_ok(), ticket.decide(*verdict, &BOB, None, "approve", now).is_ok(), operation);
            }
            Operation::Withdraw(i) => {
                let Some((id, ticket)) = model.get_mut(at(i)) else { continue };
                bench.store.withdraw(*id).expect("answers");
                ticket.cancel();
            }
        }
    }
}
