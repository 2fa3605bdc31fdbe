//! What a parked call costs (design 5): at most 1 KiB beyond the handler's own future, and 100,000 of them in one process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that prints what it measures"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate_async::gate::Gate;
use callgate_async::runtime::Tokio;
use callgate_async::seam::Immediate;
use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use peak_alloc::PeakAlloc;
use tokio::sync::{Barrier, Notify};

#[global_allocator]
static HELD: PeakAlloc = PeakAlloc;

/// Counts the terminal records.
struct Counts(AtomicUsize);

impl Audit for Counts {
    fn record(&self, _: &Record<'_>) -> Result<(), AuditFault> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

const CALLS: usize = 100_000;

#[tokio::test]
async fn x6_a_hundred_thousand_parked_calls_fit_and_each_costs_at_most_a_kibibyte() {
    let (gate_open, arrived) = (Arc::new(Notify::new()), Arc::new(Barrier::new(CALLS + 1)));
    let (opens, arrives) = (Arc::clone(&gate_open), Arc::clone(&arrived));
    let waits =
        Tool::builder("wait").description("Waits").timeout(Duration::from_secs(3_600)).async_handler(move |_call| {
            let (opens, arrives) = (Arc::clone(&opens), Arc::clone(&arrives));
            async move {
                let open = opens.notified();
                arrives.wait().await;
                open.await;
                Ok(Reply::new(1))
            }
        });
    let registry = Registry::builder().add(waits).build().unwrap();
    let counts = Arc::new(Counts(AtomicUsize::new(0)));
    let gate = Gate::builder(registry, Tokio::current().unwrap())
        .in_flight(CALLS, 0, Duration::ZERO)
        .unlimited()
        .audit(Immediate(Arc::clone(&counts)))
        .build()
        .unwrap();
    let caller = CallContext::cli("request-0000001");
    let request = Request { tool: "wait", arguments: br#"{"path":"notes/a.txt","max":10}"#, token: None };
    let future = size_of_val(&gate.call(&caller, request));
    println!("the future of a call: {future} bytes");
    let before = HELD.current_usage();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        calls.spawn(gate.call(&caller, request));
    }
    arrived.wait().await;
    let each = (HELD.current_usage() - before) / CALLS;
    println!("{CALLS} parked calls: {each} bytes each, task and body included");
    gate_open.notify_waiters();
    let outcomes = calls.join_all().await;
    assert!(outcomes.iter().all(callgate_async::gate::Outcome::success));
    assert_eq!(outcomes.len(), CALLS);
    assert_eq!(
        counts.0.load(Ordering::Relaxed),
        CALLS + 1,
        "J1: one terminal record each, and one for the call that was only measured"
    );
}
