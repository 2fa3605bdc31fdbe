//! Batches: each call for itself, under a bound, in the order that was asked for, and not beyond a break.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use callgate_core::code::{Code, Effect};
use callgate_core::context::CallContext;
use callgate_core::tool::ConfirmBy;
use callgate_std::batch::{BatchCall, BatchError, BatchOptions, Delivery};
use callgate_std::failure::Failure;
use callgate_std::gate::Outcome;
use callgate_std::output::Reply;
use proptest::prelude::*;

use crate::world::{Signal, World, line, request, tool, world};

const BOTH: [Delivery; 2] = [Delivery::Ordered, Delivery::AsCompleted];

fn batch<'a>(calls: &[(&'a str, &'a str)]) -> Vec<BatchCall<'a>> {
    let call = |(id, tool): &(&'a str, &'a str)| BatchCall {
        id,
        caller: CallContext::cli(id),
        request: request(tool),
        operation: None,
    };
    calls.iter().map(call).collect()
}

const fn at_once(at_once: usize, delivery: Delivery) -> BatchOptions {
    BatchOptions { at_once, delivery }
}

/// Runs it, breaks after so many outcomes, and gives those that were delivered, in order.
fn run(
    world: &World,
    calls: &[(&str, &str)],
    options: BatchOptions,
    break_after: usize,
) -> Vec<(String, Option<Code>)> {
    let mut delivered = Vec::new();
    let deliver = |id: &str, outcome: Outcome<'_>| {
        delivered.push((id.to_owned(), outcome.code()));
        if delivered.len() == break_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    world.gate.batch(&batch(calls), options, deliver).expect("a batch");
    delivered
}

/// Tools that end in many ways.
fn mixed() -> World {
    world([
        tool("fine").handler(|_| Ok(Reply::new(1))),
        tool("waits").async_handler(|_| async { Ok(Reply::new(2)) }),
        tool("fails").handler(|_| Err(Failure::not_found("there is none"))),
        tool("panics").handler(|_| panic!("planted")),
        tool("asks").mutating().confirm(ConfirmBy::Caller).handler(|_| Ok(Reply::empty())),
        tool("goes_on").background(std::time::Duration::from_secs(1)).handler(|_| Ok(Reply::empty())),
    ])
}

const MIXED: [&str; 7] = ["fine", "waits", "fails", "panics", "asks", "goes_on", "no_such_tool"];

fn expected(tool: &str) -> (Option<Code>, &'static str) {
    match tool {
        "fails" => (Some(Code::NotFound), "failed"),
        "panics" => (Some(Code::InternalError), "panicked"),
        "asks" => (None, "asked"),
        "goes_on" => (None, "accepted"),
        "no_such_tool" => (Some(Code::ToolNotFound), "not_found"),
        _ => (None, "done"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    // R1: N calls, N outcomes, N terminal records, 1:1 by id, whatever the order and the bound; none touches another.
    #[test]
    fn r1_each_call_ends_in_one_outcome_under_its_id(
        tools in prop::collection::vec(prop::sample::select(&MIXED[..]), 0..20),
        bound in 1..6_usize,
        delivery in prop::sample::select(&BOTH[..]),
    ) {
        let world = mixed();
        let ids: Vec<_> = (0..tools.len()).map(|n| format!("call-{n}")).collect();
        let calls: Vec<_> = ids.iter().map(String::as_str).zip(tools.iter().copied()).collect();
        let delivered = run(&world, &calls, at_once(bound, delivery), usize::MAX);
        if delivery == Delivery::Ordered {
            prop_assert!(delivered.iter().map(|(id, _)| id).eq(&ids));
        }
        let delivered: BTreeMap<_, _> = delivered.into_iter().collect();
        prop_assert_eq!(delivered.len(), calls.len());
        let mut terminals: Vec<_> = world.lines().into_iter().filter(|line| line.kind == "terminal").collect();
        terminals.sort();
        prop_assert_eq!(terminals.len(), calls.len());
        for (id, tool) in calls {
            let (code, end) = expected(tool);
            prop_assert_eq!(delivered[id], code);
            let found = terminals.iter().filter(|line| line.request_id == id).map(|line| line.end.as_str());
            prop_assert_eq!(found.collect::<Vec<_>>(), [end]);
        }
    }
}

#[test]
fn r1_outcomes_come_in_the_order_that_was_asked_for() {
    for (delivery, order) in [(Delivery::Ordered, ["1", "2"]), (Delivery::AsCompleted, ["2", "1"])] {
        // The first one is over only when the second one is; where it can be, when that was delivered.
        let over = Signal::default();
        let (waits_for, tells) = (over.clone(), over.clone());
        let world = world([
            tool("first").handler(move |_| {
                waits_for.wait();
                Ok(Reply::empty())
            }),
            tool("second").handler(move |_| {
                if delivery == Delivery::Ordered {
                    tells.give();
                }
                Ok(Reply::empty())
            }),
        ]);
        let mut delivered = Vec::new();
        let deliver = |id: &str, _: Outcome<'_>| {
            delivered.push(id.to_owned());
            over.give();
            ControlFlow::Continue(())
        };
        let calls = batch(&[("1", "first"), ("2", "second")]);
        world.gate.batch(&calls, at_once(2, delivery), deliver).expect("a batch");
        assert_eq!(delivered, order);
    }
}

// X6: as many as were asked for are under way at once, and never more.
#[test]
fn x6_calls_are_under_way_up_to_the_bound() {
    for bound in [1, 2, 4] {
        let (together, running, most) = (Barrier::new(bound), AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&most);
        let world = world([tool("t").handler(move |_| {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(now, Ordering::SeqCst);
            together.wait();
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(Reply::empty())
        })]);
        let ids: Vec<_> = (0..3 * bound).map(|n| n.to_string()).collect();
        let calls: Vec<_> = ids.iter().map(|id| (id.as_str(), "t")).collect();
        assert_eq!(run(&world, &calls, at_once(bound, Delivery::AsCompleted), usize::MAX).len(), calls.len());
        assert_eq!(most.load(Ordering::SeqCst), bound);
    }
}

// J1, R1: whoever breaks gets nothing more, and every call still has its one record; those not started did nothing, whatever
// they were to do.
#[test]
fn j1_calls_that_nobody_waits_for_end_as_cancelled() {
    for delivery in BOTH {
        let world = mixed();
        let calls = [("1", "fine"), ("2", "fine"), ("3", "asks"), ("4", "no_such_tool"), ("5", "goes_on")];
        assert_eq!(run(&world, &calls, at_once(1, delivery), 1), [("1".to_owned(), None)]);
        let cancelled = |id| line(id, "terminal", "cancelled", "none");
        let first = line("1", "terminal", "done", "done");
        assert_eq!(world.lines(), [first, cancelled("2"), cancelled("3"), cancelled("4"), cancelled("5")]);
        assert_eq!(world.records()[1]["code"], "CANCELLED");
    }
}

// X4: those under way are cancelled too, and what they did is unknown.
#[test]
fn x4_calls_that_are_under_way_are_cancelled_by_a_break() {
    let started = Signal::default();
    let is_started = started.clone();
    let world = world([
        tool("fine").handler(move |_| {
            is_started.wait();
            Ok(Reply::empty())
        }),
        tool("for_ever").async_handler(move |_| {
            started.give();
            std::future::pending()
        }),
    ]);
    let calls = [("1", "fine"), ("2", "for_ever"), ("3", "fine")];
    assert_eq!(run(&world, &calls, at_once(2, Delivery::AsCompleted), 1), [("1".to_owned(), None)]);
    let mut lines = world.lines();
    lines.sort();
    let expected = [
        line("1", "terminal", "done", "done"),
        line("2", "terminal", "cancelled", "unknown"),
        line("3", "terminal", "cancelled", "none"),
    ];
    assert_eq!(lines, expected);
}

// A consumer that panics is one that breaks.
#[test]
fn j1_a_consumer_that_panics_breaks() {
    let world = mixed();
    let mut delivered = 0;
    let deliver = |_: &str, _: Outcome<'_>| {
        delivered += 1;
        panic!("planted")
    };
    let calls = batch(&[("1", "fine"), ("2", "fine"), ("3", "fine")]);
    world.gate.batch(&calls, at_once(1, Delivery::AsCompleted), deliver).expect("a batch");
    assert_eq!(delivered, 1);
    assert_eq!(
        world.lines().iter().map(|line| line.end.as_str()).collect::<Vec<_>>(),
        ["done", "cancelled", "cancelled"]
    );
    assert_eq!(world.call("fine", "4").effect(), Effect::Done, "the gate goes on");
}

#[test]
fn f7_a_batch_that_cannot_be_run_leaves_nothing_behind() {
    let world = mixed();
    let calls = batch(&[("1", "fine"), ("1", "fine")]);
    let deliver = |_: &str, _: Outcome<'_>| panic!("nothing to deliver");
    let refused = world.gate.batch(&calls, at_once(1, Delivery::Ordered), deliver);
    assert_eq!(refused, Err(BatchError::DuplicateId));
    assert_eq!(world.lines(), []);
}
