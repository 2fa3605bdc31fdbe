//! What tools tell on their way, to whoever follows a call.

use std::future::pending;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use callgate_core::code::{Code, Effect};
use callgate_core::context::CallContext;
use callgate_std::output::Reply;
use callgate_std::tool::ToolBuilder;
use callgate_std::update::{PENDING_UPDATES, Progress, Update};
use serde_json::json;

use crate::world::{World, json_of, line, request, tool, world};

/// More than wait for their consumer.
const MANY: usize = 3 * PENDING_UPDATES;

/// Both kinds of bodies telling `MANY` things; `told` counts them before they are told.
fn telling(told: &Arc<AtomicUsize>) -> [ToolBuilder; 2] {
    let (blocks, waits) = (told.clone(), told.clone());
    [
        tool("blocks").handler(move |call| {
            for n in 0..MANY {
                blocks.fetch_add(1, Ordering::SeqCst);
                if n.is_multiple_of(2) { call.progress(Progress::count(n as u64)) } else { call.chunk(n)? }
            }
            Ok(Reply::new("told"))
        }),
        tool("waits").async_handler(move |call| {
            let told = waits.clone();
            async move {
                for n in 0..MANY {
                    told.fetch_add(1, Ordering::SeqCst);
                    if n.is_multiple_of(2) {
                        call.progress(Progress::count(n as u64)).await;
                    } else {
                        call.chunk(n).await?;
                    }
                }
                Ok(Reply::new("told"))
            }
        }),
    ]
}

fn nth(n: usize) -> Update {
    if n.is_multiple_of(2) { Update::Progress(Progress::count(n as u64)) } else { Update::Chunk(json!(n)) }
}

fn follow(world: &World, tool: &str, take: impl FnMut(Update) -> ControlFlow<()> + Send) -> (Option<Code>, Effect) {
    let outcome = world.gate.call_following(&CallContext::cli(tool), request(tool), take);
    (outcome.code(), outcome.effect())
}

// X6: all come, in order, and no body is ahead of its follower by more than what may wait.
#[test]
fn x6_a_follower_hears_all_in_order_and_holds_the_body_back() {
    for name in ["blocks", "waits"] {
        let told = Arc::new(AtomicUsize::new(0));
        let world = world(telling(&told));
        let (mut heard, mut ahead) = (Vec::new(), 0);
        let ended = follow(&world, name, |update| {
            ahead = ahead.max(told.load(Ordering::SeqCst) - heard.len());
            heard.push(update);
            ControlFlow::Continue(())
        });
        assert_eq!(ended, (None, Effect::Done));
        assert!(heard.into_iter().eq((0..MANY).map(nth)), "{name}");
        // Those that wait, the one that is handed over, and the one for which there is no room.
        let most = if name == "blocks" { 1 } else { PENDING_UPDATES + 2 };
        assert!(ahead <= most, "{name} is {ahead} ahead");
    }
}

// N1: with a follower or without one, a call ends the same and leaves the same bytes.
#[test]
fn n1_a_follower_changes_neither_outcome_nor_record() {
    for name in ["blocks", "waits"] {
        let run = |followed: bool| {
            let world = world(telling(&Arc::default()));
            let caller = CallContext::cli("r1");
            let outcome = if followed {
                world.gate.call_following(&caller, request(name), |_| ControlFlow::Continue(()))
            } else {
                world.gate.call(&caller, request(name))
            };
            (json_of(&outcome), world.audit.lines())
        };
        assert_eq!(run(true), run(false));
    }
}

// X4: nothing is told after a break, and the call is cancelled as far as its body lets itself be.
#[test]
fn x4_a_follower_that_breaks_cancels_the_call() {
    let world = world(telling(&Arc::default()).into_iter().chain([
        tool("for_ever").async_handler(|call| async move {
            call.progress(Progress::count(0)).await;
            call.progress(Progress::count(1)).await;
            pending().await
        }),
        tool("heedless").handler(|call| {
            for n in 0..MANY {
                call.progress(Progress::count(n as u64));
                drop(call.chunk(n));
            }
            Ok(Reply::empty())
        }),
    ]));
    let cancelled = (Some(Code::Cancelled), Effect::Unknown);
    for (name, after, expected) in [
        ("blocks", 1, cancelled),
        ("waits", 1, cancelled),
        ("blocks", PENDING_UPDATES + 1, cancelled),
        ("waits", PENDING_UPDATES + 1, cancelled),
        ("for_ever", 1, cancelled),
        ("heedless", 1, (None, Effect::Done)),
    ] {
        let mut heard = 0;
        let ended = follow(&world, name, |_| {
            heard += 1;
            if heard == after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((ended, heard), (expected, after), "{name}");
    }
}

// The same from several threads of one body.
#[test]
fn x4_no_thread_of_a_body_is_heard_after_a_break() {
    let world = world([tool("threads").handler(|call| {
        let together = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    together.wait();
                    call.progress(Progress::count(1));
                });
            }
        });
        Ok(Reply::empty())
    })]);
    for _ in 0..100 {
        let mut heard = 0;
        follow(&world, "threads", |_| {
            heard += 1;
            std::thread::yield_now();
            ControlFlow::Break(())
        });
        assert_eq!(heard, 1);
    }
}

// X3: the follower's panic is its own.
#[test]
fn x3_a_follower_that_panics_counts_as_gone() {
    let world = world(telling(&Arc::default()));
    for name in ["blocks", "waits"] {
        let mut heard = 0;
        let ended = follow(&world, name, |_| {
            heard += 1;
            panic!("planted")
        });
        assert_eq!((ended, heard), ((Some(Code::Cancelled), Effect::Unknown), 1));
        assert!(world.call(name, "after").success());
        assert!(world.lines().contains(&line(name, "terminal", "cancelled", "unknown")));
    }
}

// O2, X6: chunks are bounded together, whether or not anybody follows.
#[test]
fn x6_all_chunks_together_are_bounded_as_a_result_is() {
    let text = "x".repeat(30);
    let (blocks, waits) = (text.clone(), text);
    let world = world([
        tool("blocks").max_output(100).handler(move |call| {
            for _ in 0..3 {
                call.chunk(blocks.as_str())?;
            }
            call.chunk("and more")?;
            Ok(Reply::empty())
        }),
        tool("waits").max_output(100).async_handler(move |call| {
            let text = waits.clone();
            async move {
                for _ in 0..3 {
                    call.chunk(text.as_str()).await?;
                }
                call.chunk("and more").await?;
                Ok(Reply::empty())
            }
        }),
        tool("too_deep").handler(|call| {
            let deep = (0..200).fold(json!(null), |inner, _| json!([inner]));
            call.chunk(deep)?;
            Ok(Reply::empty())
        }),
    ]);
    for (name, fit) in [("blocks", 3), ("waits", 3), ("too_deep", 0)] {
        let mut heard = 0;
        let ended = follow(&world, name, |_| {
            heard += 1;
            ControlFlow::Continue(())
        });
        assert_eq!((ended, heard), ((Some(Code::InternalError), Effect::Unknown), fit), "{name}");
        let alone = world.call(name, "alone");
        assert_eq!((alone.code(), alone.effect()), ended, "{name}");
    }
}

// What a body told before it panicked was told.
#[test]
fn x3_what_was_told_before_a_panic_is_heard() {
    let world = world([
        tool("blocks").handler(|call| {
            call.progress(Progress::percent(40));
            panic!("planted")
        }),
        tool("waits").async_handler(|call| async move {
            call.progress(Progress::percent(40)).await;
            panic!("planted")
        }),
    ]);
    for name in ["blocks", "waits"] {
        let mut heard = Vec::new();
        let ended = follow(&world, name, |update| {
            heard.push(update);
            ControlFlow::Continue(())
        });
        assert_eq!(ended, (Some(Code::InternalError), Effect::Unknown));
        assert_eq!(heard, [Update::Progress(Progress::percent(40))], "{name}");
    }
}
