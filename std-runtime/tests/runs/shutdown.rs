//! A gate that goes down: nobody is let in, those who are in are waited for, and then told to stop.

use std::future::pending;
use std::thread;
use std::time::Duration;

use callgate_core::code::{Code, Effect};
use callgate_std::gate::Shutdown;
use callgate_std::output::Reply;
use callgate_std::tool::ToolBuilder;

use crate::world::{Signal, World, line, tool, world};

const FOR_LONG: Duration = Duration::from_secs(3_600);
const NOTHING_LEFT: Shutdown = Shutdown { cancelled: 0, running: 0 };

/// Ends when `end` is given, and gives `started`.
fn held(name: &str, started: &Signal, end: &Signal) -> ToolBuilder {
    let (started, end) = (started.clone(), end.clone());
    tool(name).handler(move |_| {
        started.give();
        end.wait();
        Ok(Reply::empty())
    })
}

fn for_ever(name: &str, started: &Signal) -> ToolBuilder {
    let started = started.clone();
    tool(name).async_handler(move |_| {
        started.give();
        pending()
    })
}

/// Calls until the gate says that it goes down.
fn until_down(world: &World) {
    while world.call("fine", "knocks").code() != Some(Code::Shutdown) {
        thread::yield_now();
    }
}

fn fine() -> ToolBuilder {
    tool("fine").handler(|_| Ok(Reply::empty()))
}

#[test]
fn a_gate_that_went_down_stays_down() {
    let world = world([fine()]);
    assert_eq!(world.gate.shutdown(FOR_LONG), NOTHING_LEFT);
    for id in ["r1", "r2"] {
        let outcome = world.call("fine", id);
        assert_eq!((outcome.code(), outcome.effect()), (Some(Code::Shutdown), Effect::None));
    }
    assert_eq!(world.gate.shutdown(Duration::ZERO), NOTHING_LEFT);
    assert_eq!(world.lines(), ["r1", "r2"].map(|id| line(id, "terminal", "shutdown", "none")));
}

#[test]
fn calls_in_flight_are_waited_for() {
    let (started, end) = (Signal::default(), Signal::default());
    let world = world([held("held", &started, &end), fine()]);
    thread::scope(|scope| {
        let call = scope.spawn(|| world.call("held", "r1").success());
        started.wait();
        let down = scope.spawn(|| world.gate.shutdown(FOR_LONG));
        until_down(&world);
        assert!(!down.is_finished());
        end.give();
        assert!(call.join().expect("no panic"));
        assert_eq!(down.join().expect("no panic"), NOTHING_LEFT);
    });
}

// X4: what does not end in time is cancelled and recorded before the gate is down.
#[test]
fn x4_calls_that_take_too_long_are_cancelled_and_recorded() {
    let started = Signal::default();
    let world = world([for_ever("for_ever", &started)]);
    thread::scope(|scope| {
        let call = scope.spawn(|| {
            let outcome = world.call("for_ever", "r1");
            (outcome.code(), outcome.effect())
        });
        started.wait();
        assert_eq!(world.gate.shutdown(Duration::ZERO), Shutdown { cancelled: 1, running: 0 });
        assert_eq!(world.lines(), [line("r1", "terminal", "cancelled", "unknown")]);
        assert_eq!(call.join().expect("no panic"), (Some(Code::Cancelled), Effect::Unknown));
    });
}

#[test]
fn what_does_not_stop_is_told_of_and_recorded_when_it_ends() {
    let (started, end) = (Signal::default(), Signal::default());
    let world = world([held("held", &started, &end)]);
    thread::scope(|scope| {
        scope.spawn(|| assert!(world.call("held", "r1").success()));
        started.wait();
        assert_eq!(world.gate.shutdown(Duration::ZERO), Shutdown { cancelled: 1, running: 1 });
        assert_eq!(world.lines(), []);
        end.give();
    });
    assert_eq!(world.lines(), [line("r1", "terminal", "done", "done")]);
}

/// `outer` has another tool go on in the background.
fn outer() -> ToolBuilder {
    tool("outer").handler(|call| {
        assert_eq!(call.call("inner", b"")?.code, None);
        Ok(Reply::empty())
    })
}

// J1: runs in the background are waited for, also those that a tool has started.
#[test]
fn j1_runs_in_the_background_are_waited_for() {
    for name in ["inner", "outer"] {
        let (started, end) = (Signal::default(), Signal::default());
        let world = world([held("inner", &started, &end).background(FOR_LONG), outer(), fine()]);
        assert!(world.call(name, "r1").success());
        started.wait();
        thread::scope(|scope| {
            let down = scope.spawn(|| world.gate.shutdown(FOR_LONG));
            until_down(&world);
            assert!(!down.is_finished());
            end.give();
            assert_eq!(down.join().expect("no panic"), NOTHING_LEFT);
        });
        let ends: Vec<_> = world.lines().into_iter().filter(|line| line.kind == "completion").collect();
        assert_eq!(ends.iter().map(|line| line.end.as_str()).collect::<Vec<_>>(), ["done"], "{name}");
    }
}

#[test]
fn j1_runs_in_the_background_are_cancelled_and_recorded() {
    for name in ["inner", "outer"] {
        let started = Signal::default();
        let world = world([for_ever("inner", &started).background(FOR_LONG), outer()]);
        assert!(world.call(name, "r1").success());
        started.wait();
        assert_eq!(world.gate.shutdown(Duration::ZERO), Shutdown { cancelled: 1, running: 0 }, "{name}");
        let last = world.lines().pop().expect("it is recorded");
        assert_eq!((&*last.kind, &*last.end), ("completion", "cancelled"));
    }
}

// A run that calls tools while the gate waits for it still gets through.
#[test]
fn a_tool_may_call_others_while_it_is_waited_for() {
    let (started, end) = (Signal::default(), Signal::default());
    let (starts, ends) = (started.clone(), end.clone());
    let outer = tool("outer").handler(move |call| {
        starts.give();
        ends.wait();
        assert_eq!(call.call("fine", b"")?.code, None);
        Ok(Reply::empty())
    });
    let world = world([outer, fine()]);
    thread::scope(|scope| {
        let call = scope.spawn(|| world.call("outer", "r1").success());
        started.wait();
        let down = scope.spawn(|| world.gate.shutdown(FOR_LONG));
        until_down(&world);
        end.give();
        assert!(call.join().expect("no panic"));
        assert_eq!(down.join().expect("no panic"), NOTHING_LEFT);
    });
}
