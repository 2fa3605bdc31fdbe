//! What a call can be given beside its request, all of it at once, alone and in a batch.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate_core::code::{Code, Effect};
use callgate_core::context::CallContext;
use callgate_std::batch::{BatchCall, BatchOptions, Delivery};
use callgate_std::cancellation::Cancellation;
use callgate_std::gate::CallOptions;
use callgate_std::journal::{JournalLimits, MemoryJournal};
use callgate_std::output::Reply;
use callgate_std::tool::ToolBuilder;
use callgate_std::update::{Progress, Update};
use serde_json::json;

use crate::world::{World, json_of, line, request, tool, world, world_with};

fn alice(request_id: &str) -> CallContext<'_> {
    CallContext::cli(request_id).with_principal("alice")
}

/// One that tells how far it is, and how often it ran.
fn telling(runs: &Arc<AtomicUsize>) -> ToolBuilder {
    let runs = Arc::clone(runs);
    tool("tells").mutating().handler(move |call| {
        call.progress(Progress::percent(50));
        call.chunk("a part")?;
        Ok(Reply::new(runs.fetch_add(1, Ordering::SeqCst)))
    })
}

fn journaled(tools: impl IntoIterator<Item = ToolBuilder>) -> World {
    world_with(tools, |gate| gate.journal(Arc::new(MemoryJournal::new(JournalLimits::DEFAULT))))
}

/// N1: a call of an operation is followed as any other, and its replay, which runs nothing, has nothing to tell.
#[test]
fn n1_a_call_of_an_operation_is_followed() {
    let runs = Arc::default();
    let world = journaled([telling(&runs)]);
    let told = |request_id: &str| {
        let mut updates = Vec::<Update>::new();
        let take = |update| {
            updates.push(update);
            ControlFlow::Continue(())
        };
        let options = CallOptions::new().of_operation("op-1").followed_by(take);
        let outcome = world.gate.call_with(&alice(request_id), request("tells"), options);
        let told = (json_of(&outcome)["data"].clone(), outcome.replayed());
        (told, updates.len())
    };
    assert_eq!(told("r1"), ((json!(0), false), 2));
    assert_eq!(told("r2"), ((json!(0), true), 0));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// X4: what a call is cancelled by concerns no other one, and its operation is in doubt once its tool was started.
#[test]
fn x4_a_call_is_cancelled_by_itself() {
    let runs = Arc::default();
    let stops = Cancellation::new();
    let itself = stops.clone();
    let waits = tool("waits").mutating().async_handler(move |_| {
        itself.cancel();
        std::future::pending()
    });
    let world = journaled([telling(&runs), waits]);
    let call = |request_id: &str, tool: &str, cancellation: &Cancellation| {
        let options = CallOptions::new().of_operation(tool).cancelled_by(cancellation);
        let outcome = world.gate.call_with(&alice(request_id), request(tool), options);
        (outcome.code(), outcome.effect())
    };
    assert_eq!(call("r1", "waits", &stops), (Some(Code::Cancelled), Effect::Unknown));
    assert_eq!(call("r2", "waits", &Cancellation::new()), (Some(Code::UnknownOutcome), Effect::Unknown));
    // Nothing is started for a caller who is gone, and its operation can be asked for again.
    assert_eq!(call("r3", "tells", &stops), (Some(Code::Cancelled), Effect::None));
    assert_eq!(call("r4", "tells", &Cancellation::new()), (None, Effect::Done));
    let terminals: Vec<_> = world.lines().into_iter().filter(|line| line.kind == "terminal").collect();
    assert_eq!(
        terminals,
        [
            line("r1", "terminal", "cancelled", "unknown"),
            line("r2", "terminal", "operation_refused", "none"),
            line("r3", "terminal", "cancelled", "none"),
            line("r4", "terminal", "done", "done")
        ]
    );
}

/// R1, A5: calls of a batch are of operations as calls by themselves are; two of one have one effect, at once and one after the other.
#[test]
fn r1_calls_of_a_batch_are_of_operations() {
    for at_once in [1, 3] {
        let runs = Arc::default();
        let world = journaled([telling(&runs)]);
        let call = |id, operation| BatchCall { id, caller: alice(id), request: request("tells"), operation };
        let calls = [call("1", Some("op-1")), call("2", Some("op-1")), call("3", None)];
        let mut told = Vec::new();
        let options = BatchOptions { at_once, delivery: Delivery::Ordered };
        let begun = world.gate.batch(&calls, options, |id, outcome| {
            told.push((id.to_owned(), outcome.replayed() || outcome.code() == Some(Code::OperationInProgress)));
            ControlFlow::Continue(())
        });
        begun.expect("a batch");
        // Which of the two is ahead is left to chance where they are under way at once.
        let again = told.iter().filter(|(_, again)| *again).count();
        assert_eq!((told.len(), again, runs.load(Ordering::SeqCst)), (3, 1, 2), "{at_once} at once: {told:?}");
        let operations = world.records().iter().filter(|record| record["operation"] == "op-1").count();
        assert!(operations >= 2, "its records name it");
    }
}

/// J7: so do the records of those that a consumer who left did not wait for.
#[test]
fn j7_a_call_of_a_batch_that_was_not_started_says_which_operation_it_was_of() {
    let runs = Arc::default();
    let world = journaled([telling(&runs)]);
    let call = |id| BatchCall { id, caller: alice(id), request: request("tells"), operation: Some(id) };
    let options = BatchOptions { at_once: 1, delivery: Delivery::Ordered };
    world.gate.batch(&[call("1"), call("2")], options, |_, _| ControlFlow::Break(())).expect("a batch");
    let last = world.records().pop().expect("a record");
    assert_eq!((&last["end"], &last["operation"]), (&json!("cancelled"), &json!("2")));
    assert!(world.gate.call_operation(&alice("3"), "2", request("tells")).success());
}

/// F6: options change nothing where there is no journal.
#[test]
fn f6_without_a_journal_a_followed_call_of_an_operation_is_refused() {
    let runs = Arc::default();
    let world = world([telling(&runs)]);
    let options = CallOptions::new().of_operation("op-1").followed_by(|_| ControlFlow::Continue(()));
    let outcome = world.gate.call_with(&alice("r1"), request("tells"), options);
    assert_eq!((outcome.code(), runs.load(Ordering::SeqCst)), (Some(Code::OperationUnsupported), 0));
}

/// L1
#[test]
fn l1_debug_shows_who_follows_and_no_more() {
    let options = CallOptions::new().of_operation("op-1").followed_by(|_| ControlFlow::Continue(()));
    assert_eq!(
        format!("{options:?}"),
        r#"CallOptions { operation: Some("op-1"), cancellation: None, followed: true }"#
    );
}
