//! How many calls are in flight: bounded, fair, and turned away at once when all is full (invariant X6).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use callgate_core::code::{Code, Effect};
use callgate_std::clock::ManualClock;
use callgate_std::gate::{GateBuilder, Shutdown};
use callgate_std::output::Reply;
use callgate_std::tool::ToolBuilder;
use serde_json::json;

use crate::world::{Signal, World, line, tool, world, world_with};

const FOR_LONG: Duration = Duration::from_secs(3_600);

/// `held` runs until the test ends it, and says when it has started.
struct Held {
    world: World,
    started: Signal,
    end: Signal,
}

fn held(change_tool: fn(ToolBuilder) -> ToolBuilder, change: impl FnOnce(GateBuilder) -> GateBuilder) -> Held {
    let (started, end) = (Signal::default(), Signal::default());
    let (starts, ends) = (started.clone(), end.clone());
    let held = change_tool(tool("held")).handler(move |_| {
        starts.give();
        ends.wait();
        Ok(Reply::empty())
    });
    Held { world: world_with([held, tool("fine").handler(|_| Ok(Reply::empty()))], change), started, end }
}

const fn as_it_is(tool: ToolBuilder) -> ToolBuilder {
    tool
}

#[test]
fn x6_a_call_is_turned_away_at_once_when_all_is_full() {
    let Held { world, started, end } = held(as_it_is, |gate| gate.in_flight(1, 0, FOR_LONG));
    thread::scope(|scope| {
        scope.spawn(|| assert!(world.call("held", "r1").success()));
        started.wait();
        let outcome = world.call("fine", "r2");
        end.give();
        assert_eq!((outcome.code(), outcome.effect()), (Some(Code::Overloaded), Effect::None));
    });
    assert!(world.call("fine", "r3").success(), "the place was given back");
    assert_eq!(world.lines()[0], line("r2", "terminal", "overloaded", "none"));
}

#[test]
fn x6_a_call_in_line_gets_the_place_that_is_given_back() {
    let Held { world, started, end } = held(as_it_is, |gate| gate.in_flight(1, 8, FOR_LONG));
    thread::scope(|scope| {
        scope.spawn(|| assert!(world.call("held", "r1").success()));
        started.wait();
        let waiting: Vec<_> = (0..8).map(|_| scope.spawn(|| world.call("fine", "r2").code())).collect();
        end.give();
        for call in waiting {
            assert_eq!(call.join().expect("no panic"), None);
        }
    });
}

// By the gate's clock (C1).
#[test]
fn x6_a_call_does_not_wait_for_ever() {
    let clock = ManualClock::new();
    let Held { world, started, end } =
        held(as_it_is, |gate| gate.in_flight(1, 1, Duration::from_secs(5)).clock(clock.shared()));
    thread::scope(|scope| {
        scope.spawn(|| assert!(world.call("held", "r1").success()));
        started.wait();
        let waiting = scope.spawn(|| world.call("fine", "r2").code());
        while !waiting.is_finished() {
            clock.advance(Duration::from_secs(5));
            thread::yield_now();
        }
        end.give();
        assert_eq!(waiting.join().expect("no panic"), Some(Code::Overloaded));
    });
}

#[test]
fn x6_a_tool_has_a_bound_of_its_own() {
    let Held { world, started, end } = held(|tool| tool.concurrency(1, 0), |gate| gate);
    thread::scope(|scope| {
        scope.spawn(|| assert!(world.call("held", "r1").success()));
        started.wait();
        let (held, fine) = (world.call("held", "r2").code(), world.call("fine", "r3").code());
        end.give();
        assert_eq!((held, fine), (Some(Code::Overloaded), None));
    });
    assert!(world.call("held", "r4").success());
}

// X4: whoever goes away while it waits does nothing.
#[test]
fn x4_a_caller_that_is_gone_does_not_wait() {
    let gone = Arc::new(AtomicBool::new(false));
    let looks = gone.clone();
    let Held { world, started, end } =
        held(as_it_is, |gate| gate.in_flight(1, 1, FOR_LONG).cancelled_when(move || looks.load(Ordering::SeqCst)));
    thread::scope(|scope| {
        scope.spawn(|| world.call("held", "r1").effect());
        started.wait();
        let waiting = scope.spawn(|| {
            let outcome = world.call("fine", "r2");
            (outcome.code(), outcome.effect())
        });
        gone.store(true, Ordering::SeqCst);
        assert_eq!(waiting.join().expect("no panic"), (Some(Code::Cancelled), Effect::None));
        end.give();
    });
    assert_eq!(world.lines()[0], line("r2", "terminal", "cancelled", "none"));
}

#[test]
fn whoever_waits_for_a_tool_when_the_gate_goes_down_is_turned_away() {
    // Once the one that runs has started, only the other one asks whether its caller is gone: while it waits.
    let (armed, waits) = (Arc::new(AtomicBool::new(false)), Signal::default());
    let (is_armed, asked) = (armed.clone(), waits.clone());
    let looks = move || {
        if is_armed.load(Ordering::SeqCst) {
            asked.give();
        }
        false
    };
    let Held { world, started, end } = held(|tool| tool.concurrency(1, 1), |gate| gate.cancelled_when(looks));
    thread::scope(|scope| {
        scope.spawn(|| assert!(world.call("held", "r1").success()));
        started.wait();
        armed.store(true, Ordering::SeqCst);
        let waiting = scope.spawn(|| world.call("held", "r2").code());
        waits.wait();
        // The one that runs does not stop; the other one does.
        assert_eq!(world.gate.shutdown(Duration::ZERO), Shutdown { cancelled: 2, running: 1 });
        end.give();
        assert_eq!(waiting.join().expect("no panic"), Some(Code::Shutdown));
    });
}

/// `outer` calls `inner` and says how that ended; a body of each kind.
fn nesting(inner: ToolBuilder) -> [ToolBuilder; 3] {
    let told = |code: Option<Code>| Ok(Reply::new(code.map_or("done", Code::as_str)));
    [
        tool("blocks").concurrency(1, 8).handler(move |call| told(call.call("inner", b"")?.code)),
        tool("waits")
            .concurrency(1, 8)
            .async_handler(move |call| async move { told(call.call("inner", b"").await?.code) }),
        inner,
    ]
}

// G8, X6: a call that a tool makes needs no place of those that calls from outside take, so that it cannot wait for its parent.
#[test]
fn g8_nested_calls_get_through_where_one_call_is_let_in() {
    let inner = tool("inner").handler(|_| Ok(Reply::empty()));
    let world = world_with(nesting(inner), |gate| gate.in_flight(1, 0, FOR_LONG));
    for outer in ["blocks", "waits"] {
        assert_eq!(world.call(outer, outer).output().map(Reply::data), Some(&json!("done")));
    }
}

// And it never waits for the place of a tool that its parent may hold.
#[test]
fn g8_nested_calls_do_not_wait_for_the_place_of_a_tool() {
    for outer in ["blocks", "waits"] {
        let world = world([
            tool("blocks")
                .concurrency(1, 8)
                .handler(|call| Ok(Reply::new(call.call("blocks", b"")?.code.map(Code::as_str)))),
            tool("waits").concurrency(1, 8).async_handler(|call| async move {
                Ok(Reply::new(call.call("waits", b"").await?.code.map(Code::as_str)))
            }),
        ]);
        assert_eq!(world.call(outer, outer).output().map(Reply::data), Some(&json!("OVERLOADED")));
    }
}

// X6: nested calls have a bound, too, whatever depth is allowed.
#[test]
fn x6_nested_calls_are_bounded() {
    let deep = tool("deep").handler(|call| Ok(Reply::new(call.call("deep", b"")?.code.map(Code::as_str))));
    let world = world_with([deep], |gate| gate.in_flight(2, 0, FOR_LONG).max_depth(200));
    assert!(world.call("deep", "r1").success());
    let ends: Vec<_> = world.lines().into_iter().map(|line| line.end).collect();
    assert_eq!(ends, ["overloaded", "done", "done", "done"]);
}
