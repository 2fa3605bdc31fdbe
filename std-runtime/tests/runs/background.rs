//! Runs that go on after their call was answered.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use callgate_core::code::{Code, Effect};
use callgate_core::context::CallContext;
use callgate_core::outcome::OutcomeType;
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_std::audit::{JsonlAudit, MemoryAudit, verify_file};
use callgate_std::clock::ManualClock;
use callgate_std::gate::{Gate, GateBuilder};
use callgate_std::observer::{Event, Observers};
use callgate_std::output::Reply;
use callgate_std::task::{Completion, MAX_COLLECTED};
use callgate_std::tool::ToolBuilder;
use callgate_std::update::{Progress, Update};
use serde_json::json;

use crate::world::{OnDrop, Signal, World, json_of, line, one_turn, request, tool, world_with};

const LIMIT: Duration = Duration::from_secs(60);

struct Background {
    world: World,
    completions: mpsc::Receiver<Completion>,
}

impl Background {
    /// The next completion. It is recorded by then.
    fn completion(&self) -> Completion {
        self.completions.recv().expect("the gate is alive")
    }
}

/// A gate that hands completions over.
fn background(
    tools: impl IntoIterator<Item = ToolBuilder>,
    change: impl FnOnce(GateBuilder) -> GateBuilder,
) -> Background {
    let (sender, completions) = mpsc::channel();
    let told = move |completion| drop(sender.send(completion));
    Background { world: world_with(tools, |gate| change(gate).on_completion(told)), completions }
}

/// A tool that goes on until it is told to end.
fn held(name: &str, end: &Signal) -> ToolBuilder {
    let end = end.clone();
    tool(name).background(LIMIT).async_handler(move |_| {
        let end = end.clone();
        async move {
            end.given().await;
            Ok(Reply::new("made"))
        }
    })
}

// J1: the call has its terminal record before its answer, and its run one of its own when it is over.
#[test]
fn j1_a_call_is_accepted_at_once_and_its_run_recorded_when_it_is_over() {
    let end = Signal::default();
    let there = background([held("make", &end)], |gate| gate);
    let outcome = there.world.call("make", "r1");
    let task = outcome.task().expect("it goes on");
    assert_eq!((outcome.success(), outcome.effect()), (true, Effect::Unknown));
    assert_eq!(outcome.kind(), OutcomeType::Accepted);
    let json = json_of(&outcome);
    assert_eq!(json["data"], json!({"status": "accepted", "task_id": task.to_string()}));
    assert_eq!((&json["meta"]["type"], &json["meta"]["effect"]), (&json!("accepted"), &json!("unknown")));
    let accepted = line("r1", "terminal", "accepted", "unknown");
    assert_eq!(there.world.lines(), std::slice::from_ref(&accepted));
    assert_eq!(there.world.gate.running_tasks(), [task]);
    end.give();
    let Completion { task: completed, outcome, updates, missed, .. } = there.completion();
    assert_eq!((completed, outcome.task(), updates.len(), missed), (task, Some(task), 0, 0));
    assert_eq!(outcome.output().map(Reply::data), Some(&json!("made")));
    assert_eq!(there.world.lines(), [accepted, line("r1", "completion", "done", "done")]);
    assert!(there.world.records().iter().all(|record| record["task"] == json!(task.to_string())));
    assert!(there.world.gate.running_tasks().is_empty() && !there.world.gate.cancel_task(task));
}

// K4, P3: the run is the same call: its arguments as they were clamped, and its caller.
#[test]
fn k4_the_run_gets_the_arguments_and_the_caller_of_its_call() {
    const N: &[Property<'static>] = &[Property::required("n", Schema::integer())];
    let make = tool("make").const_schema(Schema::object(N)).clamp("/n", 1..=10).background(LIMIT);
    let there = background(
        [make.handler(|call| {
            let args: serde_json::Value = call.arguments()?;
            Ok(Reply::new(json!([args, call.caller().principal, call.caller().request_id])))
        })],
        |gate| gate,
    );
    {
        // What the caller lent is gone while the run goes on.
        let (arguments, id) = (r#"{"n": 5000}"#.to_owned(), "r1".to_owned());
        let request = Request { tool: "make", arguments: arguments.as_bytes(), token: None };
        assert!(there.world.gate.call(&CallContext::cli(&id), request).success());
    }
    let made = there.completion().outcome;
    assert_eq!(made.output().map(Reply::data), Some(&json!([{"n": 10}, "local-shell", "r1"])));
    let digests: Vec<_> = there.world.records().iter().map(|record| record["args_digest"].clone()).collect();
    assert_eq!(digests[0], digests[1]);
}

// X6: what a run tells is kept for its completion, up to a bound.
#[test]
fn x6_updates_are_collected_up_to_a_bound() {
    let there = background(
        [
            tool("blocks").background(LIMIT).handler(|call| {
                for n in 0..MAX_COLLECTED + 7 {
                    call.progress(Progress::count(n as u64));
                }
                Ok(Reply::empty())
            }),
            tool("waits").background(LIMIT).async_handler(|call| async move {
                for n in 0..MAX_COLLECTED + 7 {
                    call.progress(Progress::count(n as u64)).await;
                }
                Ok(Reply::empty())
            }),
            tool("too_much").background(LIMIT).max_output(100).handler(|call| {
                call.chunk("x".repeat(60))?;
                call.chunk("x".repeat(60))?;
                Ok(Reply::empty())
            }),
        ],
        |gate| gate,
    );
    for name in ["blocks", "waits"] {
        assert!(there.world.call(name, name).success());
        let Completion { outcome, updates, missed, .. } = there.completion();
        assert!(outcome.success());
        assert!(
            updates.into_iter().eq((0..MAX_COLLECTED as u64).map(|n| Update::Progress(Progress::count(n)))),
            "{name}"
        );
        assert_eq!(missed, 7, "{name}");
    }
    // O2
    assert!(there.world.call("too_much", "r").success());
    let Completion { outcome, updates, .. } = there.completion();
    assert_eq!((outcome.code(), updates.len()), (Some(Code::InternalError), 1));
}

// X4: whoever has the id of a task can cancel it, from the moment of the answer on.
#[test]
fn x4_a_run_can_be_cancelled() {
    let dropped = Signal::default();
    let held = dropped.clone();
    let there = background(
        [
            tool("waits").background(LIMIT).async_handler(move |_| {
                let held = OnDrop(held.clone());
                async move {
                    let _held = held;
                    pending().await
                }
            }),
            tool("blocks").background(LIMIT).handler(|call| {
                while !call.is_cancelled() {
                    std::thread::yield_now();
                }
                Err(callgate_std::failure::Failure::cancelled())
            }),
        ],
        |gate| gate,
    );
    for name in ["waits", "blocks"] {
        for _ in 0..20 {
            let outcome = there.world.call(name, name);
            assert!(there.world.gate.cancel_task(outcome.task().expect("it goes on")));
            let completed = there.completion().outcome;
            assert_eq!((completed.code(), completed.effect()), (Some(Code::Cancelled), Effect::Unknown));
        }
        assert!(there.world.lines().contains(&line(name, "completion", "cancelled", "unknown")));
    }
}

// X4: and one that was cancelled before it started does not start.
#[test]
fn x4_a_run_that_was_cancelled_before_it_started_does_not_start() {
    let (gate, ran) = (Arc::new(OnceLock::<Gate>::new()), Arc::new(AtomicBool::new(false)));
    let (goes_down, runs) = (gate.clone(), ran.clone());
    let down = move |_: &Event<'_>| {
        let down = goes_down.get().expect("it is set").shutdown(Duration::ZERO);
        assert_eq!((down.cancelled, down.running), (1, 1), "the call itself is in flight");
    };
    let make = tool("make").background(LIMIT).handler(move |_| {
        runs.store(true, Ordering::SeqCst);
        Ok(Reply::empty())
    });
    let observers = Observers::new().on("tool.accepted", down).expect("a pattern");
    let there = background([make], |gate| gate.observers(observers));
    assert!(gate.set(there.world.gate.clone()).is_ok());
    assert!(there.world.call("make", "r1").success());
    assert_eq!(there.completion().outcome.code(), Some(Code::Cancelled));
    assert!(!ran.load(Ordering::SeqCst));
}

// X3: neither a body nor who is told of it brings the gate down.
#[test]
fn x3_a_panic_in_the_background_is_contained() {
    let (sender, completions) = mpsc::channel();
    let told = move |completion: Completion| {
        sender.send(completion.outcome.code()).expect("the test waits");
        panic!("planted");
    };
    let world = world_with(
        [
            tool("blocks").background(LIMIT).handler(|_| panic!("planted")),
            tool("waits").background(LIMIT).async_handler(|call| async move {
                call.progress(Progress::count(1)).await;
                one_turn().await;
                panic!("planted")
            }),
        ],
        |gate| gate.in_flight(1, 1, LIMIT).on_completion(told),
    );
    for name in ["blocks", "waits", "blocks"] {
        assert!(world.call(name, name).success());
        assert_eq!(completions.recv().expect("it is told"), Some(Code::InternalError));
        assert!(world.lines().contains(&line(name, "completion", "panicked", "unknown")));
    }
}

// X2: a run has a time of its own, longer than that of a call that is waited for.
#[test]
fn x2_a_run_has_a_deadline_of_its_own() {
    for (late, code) in [(Duration::ZERO, Some(Code::Timeout)), (Duration::from_nanos(1), None)] {
        let clock = ManualClock::new();
        let passes = clock.clone();
        let make = tool("make").timeout(Duration::from_millis(1)).background(LIMIT).async_handler(move |_| {
            let clock = passes.clone();
            async move {
                clock.advance(LIMIT - late);
                one_turn().await;
                one_turn().await;
                Ok(Reply::empty())
            }
        });
        let there = background([make], |gate| gate.clock(clock.shared()));
        assert!(there.world.call("make", "r1").success());
        let completed = there.completion().outcome;
        assert_eq!(completed.code(), code);
        assert_eq!(completed.effect(), if code.is_some() { Effect::Unknown } else { Effect::Done });
    }
}

// X6: a run keeps the place of its call until it is over.
#[test]
fn x6_a_run_counts_as_in_flight() {
    let end = Signal::default();
    let there = background([held("make", &end), tool("fine").handler(|_| Ok(Reply::empty()))], |gate| {
        gate.in_flight(1, 0, Duration::ZERO)
    });
    assert!(there.world.call("make", "r1").success());
    assert_eq!(there.world.call("fine", "r2").code(), Some(Code::Overloaded));
    end.give();
    drop(there.completion());
}

// J2, J4: a log says what a run that goes on may have done, until its completion is met.
#[test]
fn j2_an_accepted_call_is_open_in_the_log_until_it_is_over() {
    for mutating in [true, false] {
        let place = tempfile::tempdir().expect("a directory");
        let log = place.path().join("audit.jsonl");
        let audit = Arc::new(JsonlAudit::open(&log).expect("a new log"));
        let end = Signal::default();
        let make = if mutating { held("make", &end).mutating() } else { held("make", &end) };
        let there = background([make], |gate| gate.audit(audit));
        assert!(there.world.call("make", "r1").success());
        let report = verify_file(&log, None).expect("readable");
        assert!(report.is_intact(), "{report:?}");
        let intents = u64::from(mutating);
        assert_eq!((report.intents, report.terminals, report.completions), (intents, 1, 0));
        let open: Vec<_> = report.open_intents.iter().map(|open| (open.line, open.request_id.as_str())).collect();
        assert_eq!((report.open_intent_count, &*open), (1, &[(intents + 1, "r1")][..]));
        end.give();
        drop(there.completion());
        let report = verify_file(&log, None).expect("readable");
        assert!(report.is_intact(), "{report:?}");
        assert_eq!((report.intents, report.terminals, report.completions), (intents, 1, 1));
        assert_eq!((report.open_intent_count, report.open_intents.len()), (0, 0));
    }
}

// J8: what cannot be recorded when it is over was still done, and says so.
#[test]
fn j8_a_run_whose_completion_cannot_be_recorded_says_so() {
    let (end, audit) = (Signal::default(), MemoryAudit::new());
    let there = background([held("make", &end)], |gate| gate.audit(Arc::new(audit.clone())));
    assert!(!there.world.call("make", "r1").unrecorded());
    audit.set_down(true);
    end.give();
    let completed = there.completion().outcome;
    assert!(completed.success() && completed.unrecorded());
}

#[test]
fn observers_hear_of_the_call_and_of_the_end_of_its_run() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let observers = Observers::new()
        .on("*.*", move |event: &Event<'_>| hears.lock().unwrap().push(format!("{} {}", event.name(), event.end)))
        .expect("a pattern");
    let end = Signal::default();
    let there = background([held("make", &end)], |gate| gate.observers(observers));
    assert!(there.world.gate.call(&CallContext::cli("r1"), request("make")).success());
    assert_eq!(heard.lock().unwrap()[1..], ["tool.accepted accepted"]);
    end.give();
    drop(there.completion());
    assert_eq!(heard.lock().unwrap()[2..], ["tool.executed done"]);
}
