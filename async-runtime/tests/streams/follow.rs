//! Following a call.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use callgate_async::gate::{CallOptions, Followed, Following};
use callgate_async::seam::Immediate;
use callgate_core::context::CallContext;
use callgate_std::journal::{JournalLimits, MemoryJournal};
use callgate_std::output::Reply;
use callgate_std::update::{PENDING_UPDATES, Progress, Update};
use futures_core::Stream;
use futures_lite::StreamExt as _;
use smol::block_on;

use crate::world::{request, tool, world, world_with};

fn texts(followed: Vec<Followed>) -> Vec<String> {
    let text = |followed| match followed {
        Followed::Update(Update::Progress(progress)) => progress.to_string(),
        Followed::Update(Update::Chunk(chunk)) => chunk.to_string(),
        Followed::Outcome(outcome) => outcome.to_json().unwrap(),
    };
    followed.into_iter().map(text).collect()
}

fn caller() -> CallContext<'static> {
    CallContext::cli("r1")
}

#[test]
fn updates_come_in_order_and_the_outcome_comes_last_and_once() {
    let waits = tool("waits").async_handler(|call| async move {
        call.progress(Progress::percent(50).with_message("half")).await;
        call.chunk("a part").await?;
        Ok(Reply::new("all"))
    });
    let blocks = tool("blocks").handler(|call| {
        call.progress(Progress::percent(50).with_message("half"));
        call.chunk("a part")?;
        Ok(Reply::new("all"))
    });
    let world = world([waits, blocks]);
    for name in ["waits", "blocks"] {
        let told = texts(block_on(world.gate.follow(&caller(), request(name)).collect()));
        assert_eq!(told[..2], ["50 of 100: half", "\"a part\""], "{name}");
        assert!(told[2].contains("\"data\":\"all\""), "{name}: {told:?}");
        assert_eq!(told.len(), 3, "{name}");
    }
    // Nobody has to follow for a call to end the same.
    assert!(block_on(world.gate.call(&caller(), request("waits"))).success());
    assert_eq!(world.lines(), ["r1 terminal done done"; 3]);
}

/// X6: a tool that tells more than its consumer takes waits for it.
#[test]
fn x6_a_tool_waits_for_a_slow_consumer() {
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let chatty = tool("chatty").async_handler(move |call| {
        let count = Arc::clone(&count);
        async move {
            for number in 0..1_000_u64 {
                call.chunk(number).await?;
                count.fetch_add(1, Ordering::SeqCst);
            }
            Ok(Reply::new(()))
        }
    });
    let world = world([chatty]);
    let mut following = pin!(world.gate.follow(&caller(), request("chatty")));
    let mut cx = Context::from_waker(Waker::noop());
    let mut poll = || following.as_mut().poll_next(&mut cx);
    assert!(matches!(poll(), Poll::Ready(Some(Followed::Update(Update::Chunk(_))))));
    // The tool ran until nothing more could wait, and no further.
    assert!(sent.load(Ordering::SeqCst) <= PENDING_UPDATES as u64);
    let mut taken = 1;
    while let Poll::Ready(Some(Followed::Update(_))) = poll() {
        taken += 1;
        assert!(sent.load(Ordering::SeqCst) <= taken + PENDING_UPDATES as u64);
    }
    assert_eq!(sent.load(Ordering::SeqCst), 1_000);
}

/// X4: who stops following cancels the call, whose end is on record all the same.
#[test]
fn x4_a_consumer_that_goes_away_cancels() {
    struct Told(Arc<AtomicU64>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&dropped);
    let endless = tool("endless").async_handler(move |call| {
        let held = Told(Arc::clone(&told));
        async move {
            let _held = held;
            loop {
                call.chunk(1).await?;
                smol::future::yield_now().await;
            }
        }
    });
    let world = world([endless]);
    let mut following: Following = world.gate.follow(&caller(), request("endless"));
    assert!(matches!(block_on(following.next()), Some(Followed::Update(_))));
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    drop(following);
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "the body is stopped where it waits");
    assert_eq!(world.lines(), ["r1 terminal cancelled unknown"]);
    // One that was never polled never started.
    drop(world.gate.follow(&caller(), request("endless")));
    assert_eq!(world.lines(), ["r1 terminal cancelled unknown", "r1 terminal cancelled none"]);
}

/// O2: all chunks together are no larger than a result may be, on every front-end alike.
#[test]
fn o2_chunks_are_bounded_whether_or_not_anybody_follows() {
    let large = tool("large").max_output(10).async_handler(|call| async move {
        call.chunk("12345").await?;
        call.chunk("12345").await?;
        Ok(Reply::new(()))
    });
    let world = world([large]);
    let told = texts(block_on(world.gate.follow(&caller(), request("large")).collect()));
    assert_eq!(told[0], "\"12345\"");
    assert!(told[1].contains("INTERNAL_ERROR"), "{told:?}");
    assert!(!block_on(world.gate.call(&caller(), request("large"))).success());
    assert_eq!(world.lines(), ["r1 terminal failed unknown"; 2]);
}

/// N1: a call of an operation is followed as any other, and its replay, which runs nothing, has nothing to tell.
#[test]
fn n1_a_call_of_an_operation_is_followed() {
    let tells = tool("tells").mutating().handler(|call| {
        call.chunk("a part")?;
        Ok(Reply::new("all"))
    });
    let journal = Immediate(MemoryJournal::new(JournalLimits::DEFAULT));
    let world = world_with([tells], |gate| gate.journal(journal));
    let caller = caller().with_principal("alice");
    let followed = || {
        let options = CallOptions::new().of_operation("op-1");
        texts(block_on(world.gate.follow_with(&caller, request("tells"), options).collect()))
    };
    let [part, first] = &*followed() else { panic!("a part and the outcome") };
    let [again] = &*followed() else { panic!("the outcome alone") };
    assert_eq!(part, "\"a part\"");
    assert!(first.contains("\"attempt\":1") && again.contains("\"replayed\":true"), "{first}, {again}");
}
