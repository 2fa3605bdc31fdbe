//! Batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate_async::seam::Immediate;
use callgate_core::context::CallContext;
use callgate_core::policy::{Decision, Subject};
use callgate_core::tool::ConfirmBy;
use callgate_std::batch::{BatchCall, BatchError, BatchOptions, Delivery};
use callgate_std::failure::Failure;
use callgate_std::journal::{JournalLimits, MemoryJournal};
use callgate_std::output::Reply;
use callgate_std::policy::Policy;
use callgate_std::tool::ToolBuilder;
use futures_lite::StreamExt as _;
use proptest::prelude::*;
use smol::block_on;

use crate::world::{World, request, tool, world, world_with};

const ORDERED: BatchOptions = BatchOptions { at_once: 4, delivery: Delivery::Ordered };

/// One tool for each way in which a call can end, two of which tell nothing to the others.
fn tools() -> [ToolBuilder; 5] {
    [
        tool("ok").handler(|_| Ok(Reply::new("ok"))),
        tool("waits").async_handler(|_| async {
            smol::future::yield_now().await;
            Ok(Reply::new("waits"))
        }),
        tool("fails").handler(|_| Err(Failure::new("no"))),
        tool("panics").async_handler(|_| async { panic!("no") }),
        tool("asks").mutating().confirm(ConfirmBy::Caller).handler(|_| Ok(Reply::new("asked"))),
    ]
}

const NAMES: [&str; 6] = ["ok", "waits", "fails", "panics", "asks", "unknown"];

/// How a call of the tool ends.
fn end(name: &str) -> &'static str {
    match name {
        "ok" | "waits" => "done",
        "fails" => "failed",
        "panics" => "panicked",
        "asks" => "asked",
        _ => "not_found",
    }
}

fn run(world: &World, names: &[&str], options: BatchOptions) -> Vec<(String, &'static str)> {
    let ids: Vec<_> = (0..names.len()).map(|number| format!("c{number}")).collect();
    let calls: Vec<_> = ids
        .iter()
        .zip(names)
        .map(|(id, name)| BatchCall { id, caller: CallContext::cli(id), request: request(name), operation: None })
        .collect();
    let outcomes: Vec<_> = block_on(world.gate.batch(&calls, options).unwrap().collect());
    outcomes.iter().map(|(id, outcome)| (id.to_string(), outcome.end().name())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    // R1: N calls, N runs of the gate, N outcomes, each under its id, whatever becomes of the others.
    #[test]
    fn r1_every_call_has_its_one_outcome(
        picks in prop::collection::vec(0..NAMES.len(), 0..12),
        at_once in 1..5_usize,
        ordered: bool,
    ) {
        let names: Vec<_> = picks.iter().map(|pick| NAMES[*pick]).collect();
        let delivery = if ordered { Delivery::Ordered } else { Delivery::AsCompleted };
        let world = world(tools());
        let mut delivered = run(&world, &names, BatchOptions { at_once, delivery });
        if !ordered {
            delivered.sort_by_key(|(id, _)| id.get(1..).unwrap().parse::<usize>().unwrap());
        }
        let expected: Vec<_> = names.iter().enumerate().map(|(at, name)| (format!("c{at}"), end(name))).collect();
        prop_assert_eq!(delivered, expected);
        prop_assert_eq!(world.lines().iter().filter(|line| line.contains(" terminal ")).count(), names.len());
    }
}

#[test]
fn what_is_over_first_is_delivered_first_where_that_is_asked_for() {
    let (sender, receiver) = async_channel::bounded::<()>(1);
    let late = tool("late").async_handler(move |_| {
        let receiver = receiver.clone();
        async move {
            receiver.recv().await?;
            Ok(Reply::new("late"))
        }
    });
    let early = tool("early").async_handler(move |_| {
        let sender = sender.clone();
        async move {
            sender.send(()).await?;
            Ok(Reply::new("early"))
        }
    });
    let world = world([late, early]);
    let ids = |delivery| -> Vec<_> {
        let delivered = run(&world, &["late", "early"], BatchOptions { at_once: 2, delivery });
        delivered.into_iter().map(|(id, _)| id).collect()
    };
    assert_eq!(ids(Delivery::Ordered), ["c0", "c1"]);
    assert_eq!(ids(Delivery::AsCompleted), ["c1", "c0"]);
}

/// X6
#[test]
fn x6_no_more_than_the_bound_are_under_way() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, seen) = (Arc::clone(&now), Arc::clone(&most));
    let counts = tool("counts").async_handler(move |_| {
        let (now, most) = (Arc::clone(&running), Arc::clone(&seen));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..4 {
                smol::future::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(Reply::new(()))
        }
    });
    let world = world([counts]);
    run(&world, &["counts"; 20], BatchOptions { at_once: 3, delivery: Delivery::AsCompleted });
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

/// R1: cancelled calls have their outcomes, too, and those that were not started do nothing.
#[test]
fn r1_a_cancelled_batch_delivers_an_outcome_for_every_call() {
    let endless = tool("endless").async_handler(|_| std::future::pending());
    let world = world([endless, tool("ok").handler(|_| Ok(Reply::new(1)))]);
    let calls = ["a", "b", "c"].map(|id| BatchCall {
        id,
        caller: CallContext::cli(id),
        request: request("endless"),
        operation: None,
    });
    let batch = world.gate.batch(&calls, BatchOptions { at_once: 2, delivery: Delivery::Ordered }).unwrap();
    let cancellation = batch.cancellation().clone();
    let delivered: Vec<_> = block_on(futures_lite::future::zip(batch.collect::<Vec<_>>(), async {
        smol::future::yield_now().await;
        cancellation.cancel();
    }))
    .0;
    let short: Vec<_> = delivered
        .iter()
        .map(|(id, outcome)| (&**id, outcome.code().unwrap().as_str(), outcome.effect().as_str()))
        .collect();
    assert_eq!(short, [("a", "CANCELLED", "unknown"), ("b", "CANCELLED", "unknown"), ("c", "CANCELLED", "none")]);
    assert_eq!(
        world.sorted_lines(),
        ["a terminal cancelled unknown", "b terminal cancelled unknown", "c terminal cancelled none"]
    );
}

/// Counts what it is asked, and allows nothing.
struct Asked(Arc<AtomicUsize>);

impl Policy for Asked {
    fn decide(&self, _: &Subject<'_>) -> Decision<Arc<str>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        callgate_std::policy::fault()
    }
}

#[test]
fn nobody_is_asked_about_a_call_that_was_cancelled_before_it_was_started() {
    let asked = Arc::new(AtomicUsize::new(0));
    let policy = Immediate(Asked(Arc::clone(&asked)));
    let world = world_with(tools(), |builder| builder.policy(policy));
    let calls =
        ["a", "b"].map(|id| BatchCall { id, caller: CallContext::cli(id), request: request("ok"), operation: None });
    let batch = world.gate.batch(&calls, ORDERED).unwrap();
    batch.cancel();
    assert_eq!(block_on(batch.collect::<Vec<_>>()).len(), 2);
    assert_eq!(world.sorted_lines(), ["a terminal cancelled none", "b terminal cancelled none"]);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

/// J1, X4: so have those of a batch that is dropped.
#[test]
fn j1_a_dropped_batch_is_recorded_whole() {
    let endless = tool("endless").async_handler(|_| std::future::pending());
    let world = world([endless]);
    let calls = ["a", "b", "c"].map(|id| BatchCall {
        id,
        caller: CallContext::cli(id),
        request: request("endless"),
        operation: None,
    });
    let mut batch = world.gate.batch(&calls, BatchOptions { at_once: 1, delivery: Delivery::Ordered }).unwrap();
    assert!(block_on(futures_lite::future::poll_once(batch.next())).is_none());
    drop(batch);
    assert_eq!(
        world.sorted_lines(),
        ["a terminal cancelled unknown", "b terminal cancelled none", "c terminal cancelled none"]
    );
    assert_eq!(block_on(world.gate.shutdown(Duration::ZERO)).cancelled, 0, "every place was given back");
}

#[test]
fn f7_a_batch_that_cannot_be_told_apart_is_refused_before_any_call() {
    let world = world(tools());
    let calls =
        ["a", "a"].map(|id| BatchCall { id, caller: CallContext::cli(id), request: request("ok"), operation: None });
    assert_eq!(world.gate.batch(&calls, ORDERED).err(), Some(BatchError::DuplicateId));
    assert!(world.lines().is_empty());
}

/// A batch that is larger than its gate lets in: the rest waits in line, and whoever has no place there is told so.
#[test]
fn x6_a_batch_passes_the_bounds_of_its_gate() {
    let world = world_with(tools(), |builder| builder.in_flight(1, 1, Duration::from_secs(60)));
    let delivered = run(&world, &["waits"; 4], BatchOptions { at_once: 4, delivery: Delivery::Ordered });
    let ends: Vec<_> = delivered.iter().map(|(_, end)| *end).collect();
    assert_eq!(ends, ["done", "done", "overloaded", "overloaded"]);
}

/// R1, A5: calls of a batch are of operations as calls by themselves are; and one that is not started still says so in its record.
#[test]
fn r1_calls_of_a_batch_are_of_operations() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let counts = tool("counts").mutating().async_handler(move |_| {
        let run = count.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Reply::new(run)) }
    });
    let journal = Immediate(MemoryJournal::new(JournalLimits::DEFAULT));
    let world = world_with([counts], |gate| gate.journal(journal));
    let call = |id| BatchCall {
        id,
        caller: CallContext::cli(id).with_principal("alice"),
        request: request("counts"),
        operation: Some("op-1"),
    };
    let options = BatchOptions { at_once: 1, delivery: Delivery::Ordered };
    let outcomes: Vec<_> = block_on(world.gate.batch(&[call("a"), call("b")], options).unwrap().collect());
    assert_eq!(outcomes.iter().map(|(_, outcome)| outcome.replayed()).collect::<Vec<_>>(), [false, true]);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    drop(world.gate.batch(&[call("c")], options).unwrap());
    assert_eq!(world.of_operation("op-1"), ["a intent", "a terminal", "b terminal", "c terminal"]);
}
