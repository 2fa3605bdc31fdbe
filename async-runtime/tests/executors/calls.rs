//! Deadlines, cancellation, load and shutdown.

use std::future::pending;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use callgate_async::gate::{CallOptions, Shutdown};
use callgate_async::seam::Immediate;
use callgate_core::code::{Code, Effect};
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_std::cancellation::Cancellation;
use callgate_std::output::Reply;
use futures_lite::future::{poll_once, zip};

use crate::world::{Dropped, LONG, PATIENCE, SHORT, Signal, end, on_each, said, tool, world, world_with};

const AT_ONCE: Shutdown = Shutdown { cancelled: 0, running: 0 };

#[test]
fn x2_a_deadline_drops_the_body_where_it_waits() {
    on_each(async |runtime| {
        let (dropped, told) = (Signal::default(), Signal::default());
        let (drops, tells) = (dropped.clone(), told.clone());
        let late = tool("late").timeout(SHORT).mutating().async_handler(move |call| {
            let guard = Dropped(drops.clone());
            let (cancellation, tells) = (call.cancellation().clone(), tells.clone());
            // What a body left behind is told as well.
            std::thread::spawn(move || {
                callgate_std::future::block_on(cancellation.cancelled());
                tells.give();
            });
            async move {
                let _guard = guard;
                pending().await
            }
        });
        let world = world(&runtime, [late]);
        let outcome = world.call("late", "r1").await;
        assert_eq!(said(&outcome), (Some(Code::Timeout), Effect::Unknown));
        assert!(dropped.is_given(), "the body is gone before anybody learns of it");
        told.given().await;
        assert_eq!(world.ends("r1"), end("timed_out", "unknown"));
        assert_eq!(world.gate.shutdown(PATIENCE).await, AT_ONCE);
    });
}

#[test]
fn x2_x6_a_body_that_blocks_beyond_its_deadline_is_left_behind_and_keeps_its_place() {
    on_each(async |runtime| {
        let (go, gone) = (Signal::default(), Signal::default());
        let (waits, goes) = (go.clone(), gone.clone());
        let late = tool("late").timeout(SHORT).handler(move |_| {
            waits.wait();
            goes.give();
            Ok(Reply::new("too late"))
        });
        let quick = tool("quick").handler(|_| Ok(Reply::new(1)));
        let world = world_with(&runtime, [late, quick], |builder, audit| {
            builder.audit(Immediate(Arc::new(audit))).in_flight(1, 1, PATIENCE)
        });
        let outcome = world.call("late", "r1").await;
        assert_eq!(said(&outcome), (Some(Code::Timeout), Effect::Unknown), "without waiting for the thread");
        assert!(!gone.is_given());
        let mut next = Box::pin(world.call("quick", "r2"));
        assert!(poll_once(&mut next).await.is_none(), "the thread has the place");
        let turned_away = world.call("quick", "r3").await;
        assert_eq!(said(&turned_away), (Some(Code::Overloaded), Effect::None), "and another waits for it");
        go.give();
        assert!(next.await.success(), "the thread has given its place back");
        assert!(gone.is_given());
        assert_eq!(world.ends("r1"), end("timed_out", "unknown"), "J1: what comes too late is not recorded again");
        assert_eq!(world.gate.shutdown(PATIENCE).await, AT_ONCE);
    });
}

#[test]
fn x4_a_call_that_is_dropped_takes_its_body_along_and_says_that_its_effect_is_unknown() {
    on_each(async |runtime| {
        let (started, dropped) = (Signal::default(), Signal::default());
        let (starts, drops) = (started.clone(), dropped.clone());
        let waits = tool("waits").mutating().async_handler(move |_| {
            let guard = Dropped(drops.clone());
            starts.give();
            async move {
                let _guard = guard;
                pending().await
            }
        });
        let world = world(&runtime, [waits]);
        let mut call = Box::pin(world.call("waits", "r1"));
        assert!(poll_once(&mut call).await.is_none());
        started.given().await;
        drop(call);
        assert!(dropped.is_given());
        drop(world.call("waits", "r2"));
        assert_eq!(world.ends("r1"), end("cancelled", "unknown"));
        assert_eq!(world.ends("r2"), end("cancelled", "none"), "it was never polled");
        assert_eq!(world.gate.shutdown(Duration::ZERO).await, AT_ONCE);
    });
}

#[test]
fn x4_a_body_that_blocks_is_told_that_its_call_was_dropped() {
    on_each(async |runtime| {
        let (started, look, seen) = (Signal::default(), Signal::default(), Signal::default());
        let (starts, looks, sees) = (started.clone(), look.clone(), seen.clone());
        let blocks = tool("blocks").handler(move |call| {
            starts.give();
            looks.wait();
            assert!(call.is_cancelled());
            sees.give();
            Ok(Reply::new(1))
        });
        let world = world(&runtime, [blocks]);
        let mut call = Box::pin(world.call("blocks", "r1"));
        assert!(poll_once(&mut call).await.is_none());
        started.given().await;
        drop(call);
        look.give();
        assert_eq!(world.gate.shutdown(PATIENCE).await, AT_ONCE, "when the thread is through");
        assert!(seen.is_given());
        assert_eq!(world.ends("r1"), end("cancelled", "unknown"));
    });
}

/// J1: what a body that blocks did is recorded before a shutdown is over, even if nobody has polled its call since.
#[test]
fn j1_a_gate_is_not_down_before_the_last_record() {
    on_each(async |runtime| {
        let go = Signal::default();
        let waits = go.clone();
        let blocks = tool("blocks").handler(move |_| {
            waits.wait();
            Ok(Reply::new(1))
        });
        let world = world(&runtime, [blocks]);
        let (woken, mut call) = (Signal::default(), Box::pin(world.call("blocks", "r1")));
        let waker = Waker::from(Arc::new(woken.clone()));
        assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        go.give();
        woken.given().await;
        let mut down = Box::pin(world.gate.shutdown(PATIENCE));
        assert!(poll_once(&mut down).await.is_none(), "its thread is through, and its call is not recorded");
        assert!(call.await.success());
        assert_eq!(down.await, AT_ONCE);
        assert_eq!(world.ends("r1"), end("done", "done"));
    });
}

#[test]
fn a_caller_that_is_gone_is_answered_at_once_and_a_body_that_blocks_can_see_it() {
    on_each(async |runtime| {
        let (started, look, seen) = (Signal::default(), Signal::default(), Signal::default());
        let (starts, looks, sees) = (started.clone(), look.clone(), seen.clone());
        let blocks = tool("blocks").handler(move |call| {
            assert!(!call.is_cancelled());
            starts.give();
            looks.wait();
            if call.is_cancelled() {
                sees.give();
            }
            Ok(Reply::new(1))
        });
        let world = world(&runtime, [blocks]);
        let caller = Cancellation::new();
        let request = Request { tool: "blocks", arguments: b"", token: None };
        let options = CallOptions::new().cancelled_by(caller.clone());
        let call = world.spawn(world.gate.call_with(&CallContext::cli("r1"), request, options));
        started.given().await;
        caller.cancel();
        assert_eq!(said(&call.over().await), (Some(Code::Cancelled), Effect::Unknown));
        look.give();
        seen.given().await;
        assert_eq!(world.ends("r1"), end("cancelled", "unknown"));
        assert_eq!(world.gate.shutdown(PATIENCE).await, AT_ONCE, "the thread gives its place back");
    });
}

#[test]
fn a_gate_that_goes_down_waits_for_those_who_are_in_it_and_lets_nobody_in() {
    on_each(async |runtime| {
        let (go, started, behind) = (Signal::default(), Signal::default(), Signal::default());
        let (waits, blocks, starts, runs) = (go.clone(), go.clone(), started.clone(), behind.clone());
        let world = world(
            &runtime,
            [
                tool("waits").async_handler(move |_| {
                    let waits = waits.clone();
                    starts.give();
                    async move {
                        waits.given().await;
                        Ok(Reply::new(1))
                    }
                }),
                tool("behind").background(LONG).handler(move |_| {
                    runs.give();
                    blocks.wait();
                    Ok(Reply::new(2))
                }),
            ],
        );
        let call = world.spawn(world.call("waits", "r1"));
        assert!(world.call("behind", "r2").await.task().is_some());
        started.given().await;
        behind.given().await;
        let mut down = Box::pin(world.gate.shutdown(PATIENCE));
        assert!(poll_once(&mut down).await.is_none());
        assert_eq!(world.call("waits", "r3").await.code(), Some(Code::Shutdown));
        go.give();
        let (down, outcome) = zip(down, call.over()).await;
        assert_eq!(down, AT_ONCE);
        assert!(outcome.success());
        assert_eq!(world.ends("r1"), end("done", "done"));
        let [accepted, done] = [end("accepted", "unknown"), end("done", "done")];
        assert_eq!(world.ends("r2"), [accepted, done].concat());
        assert_eq!(world.ends("r3"), end("shutdown", "none"));
    });
}

#[test]
fn a_gate_that_has_no_time_cancels_who_is_in_it_and_records_them() {
    on_each(async |runtime| {
        let waits = |name| tool(name).async_handler(|_| pending());
        let started = Signal::default();
        let starts = started.clone();
        let behind = tool("behind").background(LONG).async_handler(move |_| {
            starts.give();
            pending()
        });
        let world = world(&runtime, [waits("waits"), behind]);
        let mut call = Box::pin(world.call("waits", "r1"));
        assert!(poll_once(&mut call).await.is_none());
        assert!(world.call("behind", "r2").await.success());
        started.given().await;
        let (down, outcome) = zip(world.gate.shutdown(Duration::ZERO), call).await;
        assert_eq!(down, Shutdown { cancelled: 2, running: 0 });
        assert_eq!(said(&outcome), (Some(Code::Cancelled), Effect::Unknown));
        assert_eq!(world.ends("r1"), end("cancelled", "unknown"));
        assert_eq!(world.ends("r2"), [end("accepted", "unknown"), end("cancelled", "unknown")].concat());
    });
}

#[test]
fn a_run_in_the_background_can_be_cancelled_from_its_answer_on() {
    on_each(async |runtime| {
        let behind = tool("behind").background(LONG).async_handler(|_| pending());
        let world = world(&runtime, [behind]);
        let task = world.call("behind", "r1").await.task().unwrap();
        assert!(world.gate.cancel_task(task));
        assert_eq!(world.gate.shutdown(PATIENCE).await, AT_ONCE);
        assert_eq!(world.ends("r1"), [end("accepted", "unknown"), end("cancelled", "unknown")].concat());
        assert!(!world.gate.cancel_task(task));
    });
}

#[test]
fn x6_a_gate_that_is_full_turns_away_at_once() {
    on_each(async |runtime| {
        let waits = tool("waits").async_handler(|_| pending());
        let world = world_with(&runtime, [waits], |builder, audit| {
            builder.audit(Immediate(Arc::new(audit))).in_flight(2, 0, LONG)
        });
        let mut calls = ["r1", "r2"].map(|id| Box::pin(world.call("waits", id)));
        for call in &mut calls {
            assert!(poll_once(call).await.is_none());
        }
        let over = poll_once(world.call("waits", "r3")).await.expect("without waiting for anything");
        assert_eq!(said(&over), (Some(Code::Overloaded), Effect::None));
        let [first, _second] = calls;
        drop(first);
        let mut next = Box::pin(world.call("waits", "r4"));
        assert!(poll_once(&mut next).await.is_none(), "there is room again");
    });
}
