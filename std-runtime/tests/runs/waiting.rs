//! Bodies that wait, on the thread of their call.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_core::code::{Code, Effect};
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_std::clock::ManualClock;
use callgate_std::failure::Failure;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::OwnedCall;
use serde_json::json;

use crate::world::{OnDrop, Signal, line, one_turn, tool, world, world_with};

const LIMIT: Duration = Duration::from_secs(3);

#[derive(serde::Deserialize)]
struct Sum {
    a: u8,
    b: u8,
}

const SUM: &[Property<'static>] =
    &[Property::required("a", Schema::integer()), Property::required("b", Schema::integer())];

#[test]
fn a_body_that_waits_gets_typed_arguments_and_gives_a_result() {
    let sum = tool("sum").const_schema(Schema::object(SUM)).async_typed(|call: OwnedCall, sum: Sum| async move {
        one_turn().await;
        Ok(Reply::new(format!("{} for {}", sum.a + sum.b, call.caller().request_id)))
    });
    let world = world([sum]);
    let call = |arguments: &'static str| {
        let request = Request { tool: "sum", arguments: arguments.as_bytes(), token: None };
        world.gate.call(&CallContext::cli("r1"), request)
    };
    assert_eq!(call(r#"{"a": 1, "b": 2}"#).output().map(Reply::data), Some(&json!("3 for r1")));
    let ill_typed = call(r#"{"a": 1, "b": 1000}"#);
    assert_eq!((ill_typed.code(), ill_typed.effect()), (Some(Code::ValidationError), Effect::None));
}

#[test]
fn a_body_that_waits_may_fail() {
    let world = world([tool("fails").async_handler(|_| async {
        one_turn().await;
        Err(Failure::not_found("there is none").public().without_effect())
    })]);
    let outcome = world.call("fails", "r1");
    assert_eq!((outcome.code(), outcome.effect()), (Some(Code::NotFound), Effect::None));
    assert_eq!(world.lines(), [line("r1", "terminal", "failed", "none")]);
}

// X3: in the body itself, in the first poll of its future, and later.
#[test]
fn x3_a_body_that_waits_may_panic_at_any_time() {
    let world = world([
        tool("at_once").async_handler(|_| -> std::future::Ready<_> { panic!("planted") }),
        tool("first").async_handler(|_| async { panic!("planted") }),
        tool("later").async_handler(|_| async {
            one_turn().await;
            panic!("planted")
        }),
        tool("fine").async_handler(|_| async { Ok(Reply::empty()) }),
    ]);
    for name in ["at_once", "first", "later"] {
        let outcome = world.call(name, name);
        assert_eq!((outcome.code(), outcome.effect()), (Some(Code::InternalError), Effect::Unknown), "{name}");
        assert!(world.call("fine", "r").success());
        assert!(world.lines().contains(&line(name, "terminal", "panicked", "unknown")));
    }
}

// X2: at the deadline, not before it, and whatever the body waits for. What it holds is dropped, and what it gave away learns
// that it is over.
#[test]
fn x2_a_body_that_waits_is_stopped_at_its_deadline() {
    for (late, over) in [(Duration::ZERO, true), (Duration::from_nanos(1), false)] {
        let (clock, dropped, kept) = (ManualClock::new(), Signal::default(), Arc::new(Mutex::new(None)));
        let (body_clock, body_dropped, body_kept) = (clock.clone(), dropped.clone(), kept.clone());
        let waits = tool("waits").timeout(LIMIT).async_handler(move |call| {
            let clock = body_clock.clone();
            let held = OnDrop(body_dropped.clone());
            *body_kept.lock().unwrap() = Some(call);
            async move {
                clock.advance(LIMIT - late);
                one_turn().await;
                one_turn().await;
                drop(held);
                Ok(Reply::empty())
            }
        });
        let world = world_with([waits], |gate| gate.clock(clock.shared()));
        let outcome = world.call("waits", "r1");
        dropped.wait();
        let kept: Option<OwnedCall> = kept.lock().unwrap().take();
        assert!(kept.expect("it was called").is_cancelled());
        if over {
            assert_eq!((outcome.code(), outcome.effect()), (Some(Code::Timeout), Effect::Unknown));
            assert_eq!(world.lines(), [line("r1", "terminal", "timed_out", "unknown")]);
        } else {
            assert!(outcome.success());
        }
    }
}

// X4: the caller goes away while the body waits.
#[test]
fn x4_a_body_that_waits_is_stopped_when_its_caller_is_gone() {
    let (gone, dropped) = (Arc::new(AtomicBool::new(false)), Signal::default());
    let (leaves, held) = (gone.clone(), dropped.clone());
    let waits = tool("waits").async_handler(move |_| {
        let held = OnDrop(held.clone());
        leaves.store(true, Ordering::SeqCst);
        async move {
            let _held = held;
            pending().await
        }
    });
    let world = world_with([waits], |gate| gate.cancelled_when(move || gone.load(Ordering::SeqCst)));
    let outcome = world.call("waits", "r1");
    assert_eq!((outcome.code(), outcome.effect()), (Some(Code::Cancelled), Effect::Unknown));
    dropped.wait();
    // Nothing starts for a caller who is gone already.
    assert_eq!(world.call("waits", "r2").effect(), Effect::None);
    assert_eq!(
        world.lines(),
        [line("r1", "terminal", "cancelled", "unknown"), line("r2", "terminal", "cancelled", "none")]
    );
}

// G8: a body that waits calls other tools as one that blocks does.
#[test]
fn g8_a_body_that_waits_calls_other_tools() {
    let world = world([
        tool("outer").async_handler(|call| async move {
            let nested = call.call("inner", b"").await?;
            Ok(Reply::new(nested.reply.map_or(json!(null), |reply| reply.data().clone())))
        }),
        tool("inner")
            .async_handler(|call| async move { Ok(Reply::new(call.caller().parent.unwrap_or("-").to_owned())) }),
    ]);
    assert_eq!(world.call("outer", "r1").output().map(Reply::data), Some(&json!("r1")));
    assert_eq!(world.lines().len(), 2);
}

// F1: a host that cannot run such a body says so, and nothing has happened.
#[test]
fn f1_a_host_without_a_place_for_bodies_that_wait_runs_none() {
    let registry = Registry::builder().add(tool("waits").async_handler(|_| async { Ok(Reply::empty()) })).build();
    let outcome = crate::drive::call(&registry.expect("a tool"), "waits", "{}");
    assert_eq!((&outcome["meta"]["code"], &outcome["meta"]["effect"]), (&json!("INTERNAL_ERROR"), &json!("none")));
}
