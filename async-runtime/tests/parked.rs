//! What a parked call costs (design 5): at most 1 KiB beyond the handler's own future, and 100,000 of them in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate_async::gate::Gate;
use callgate_async::runtime::Tokio;
use callgate_async::seam::Immediate;
use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_std::failure::Failure;
use callgate_std::future::BoxFuture;
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
/// What the gate may hold of a parked call beyond its handler's own future (design 5).
const LIMIT: usize = 1 << 10;

/// What the body of a call does: it arrives, and waits until it is let go.
#[derive(Clone)]
struct Pen {
    arrived: Arc<Barrier>,
    open: Arc<Notify>,
}

impl Pen {
    fn new() -> Self {
        Self { arrived: Arc::new(Barrier::new(CALLS + 1)), open: Arc::default() }
    }

    async fn stay(self) -> Result<Reply, Failure> {
        let open = self.open.notified();
        self.arrived.wait().await;
        open.await;
        Ok(Reply::new(1))
    }
}

/// Bytes that each of so many tasks holds while all are parked.
async fn held(pen: &Pen, task: impl Fn() -> BoxFuture<'static, ()>) -> usize {
    let before = HELD.current_usage();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        tasks.spawn(task());
    }
    pen.arrived.wait().await;
    let each = (HELD.current_usage() - before) / CALLS;
    pen.open.notify_waiters();
    tasks.join_all().await;
    each
}

#[tokio::test]
async fn x6_a_hundred_thousand_parked_calls_fit_and_each_costs_at_most_a_kibibyte() {
    let pen = Pen::new();
    let alone = held(&pen, || {
        let pen = pen.clone();
        Box::pin(async move { assert!(Box::pin(pen.stay()).await.is_ok()) })
    })
    .await;

    let pen = Pen::new();
    let body = pen.clone();
    let waits = Tool::builder("wait")
        .description("Waits")
        .timeout(Duration::from_secs(3_600))
        .async_handler(move |_call| body.clone().stay());
    let counts = Arc::new(Counts(AtomicUsize::new(0)));
    let gate = Gate::builder(Registry::builder().add(waits).build().unwrap(), Tokio::current().unwrap())
        .in_flight(CALLS, 0, Duration::ZERO)
        .unlimited()
        .audit(Immediate(Arc::clone(&counts)))
        .build()
        .unwrap();
    let caller = CallContext::cli("request-0000001");
    let request = Request { tool: "wait", arguments: br#"{"path":"notes/a.txt","max":10}"#, token: None };
    let gated = held(&pen, || {
        let call = gate.call(&caller, request);
        Box::pin(async move { assert!(call.await.success()) })
    })
    .await;
    let beyond = gated - alone;
    println!("{CALLS} parked calls: {gated} bytes each, {beyond} of them beyond a task that runs the handler alone");
    assert_eq!(counts.0.load(Ordering::Relaxed), CALLS, "J1: one terminal record each");
    assert!(beyond <= LIMIT, "{beyond} bytes");
}
