//! Two calls through one whole gate at the same time: one budget, one log.

use std::collections::BTreeSet;
use std::sync::Arc;

use callgate_core::audit::chain::Head;
use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_std::audit::MemoryAudit;
use callgate_std::gate::Gate;
use callgate_std::limiter::{MemoryLimiter, Quota};
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use loom::sync::Mutex;
use serde_json::Value;

use crate::explore::Orders::{self, All, Interrupted};
use crate::explore::{explore, spawn};
use crate::still::Still;

/// What a mutating call costs.
const COST: u32 = 5;

trait Log: Audit + Clone + Send + Sync + 'static {
    fn lines(&self) -> Vec<String>;
}

impl Log for MemoryAudit {
    fn lines(&self) -> Vec<String> {
        Self::lines(self)
    }
}

/// A log that reads its end, lets go, and then appends.
#[derive(Clone)]
struct ForgetsItsEnd(Arc<Mutex<(Head, Vec<String>)>>);

impl Audit for ForgetsItsEnd {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let head = self.0.lock().expect("no panic").0;
        let mut line = String::new();
        let next = head.append(record, &mut line).map_err(|_| AuditFault)?;
        let mut log = self.0.lock().expect("no panic");
        log.0 = next;
        log.1.push(line);
        Ok(())
    }
}

impl Log for ForgetsItsEnd {
    fn lines(&self) -> Vec<String> {
        self.0.lock().expect("no panic").1.clone()
    }
}

/// What came of one of two calls, and which records it has, in their order.
type Came = (String, Vec<String>);

/// Both calls, what came of the luckier one last; and whether the log is one unbroken chain.
fn two_calls<L: Log>(orders: Orders, make: fn() -> L) -> BTreeSet<(Vec<Came>, bool)> {
    let seen = explore(orders, move || {
        let tool = Tool::builder("a").description("Does something").mutating().handler(|_| Ok(Reply::new("done")));
        let registry = Registry::builder().add(tool).build().expect("one good tool");
        let quota = Quota::per_window(COST, 60_000).expect("a good quota");
        let limiter = MemoryLimiter::with(move |_| quota, Arc::new(Still), 9);
        let log = make();
        let gate = Gate::builder(registry)
            .audit(Arc::new(log.clone()))
            .limiter(Arc::new(limiter))
            .clock(Arc::new(Still))
            .build()
            .expect("a good gate");
        let calls = ["one", "other"].map(|id| {
            let gate = gate.clone();
            spawn(move || {
                let request = Request { tool: "a", arguments: b"{}", token: None };
                let outcome = gate.call(&CallContext::cli(id), request);
                (id, outcome.code().map_or("done", |code| code.as_str()).to_owned())
            })
        });
        let came = calls.map(|call| call.join().expect("no panic"));
        let lines = log.lines();
        let unbroken = lines.iter().try_fold(Head::EMPTY, |head, line| head.verify(line)).is_ok();
        let records: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let of = |id: &str| {
            let own = records.iter().filter(|record| record["request_id"] == id);
            own.map(|record| record["kind"].as_str().unwrap_or_default().to_owned()).collect()
        };
        let mut came: Vec<Came> = came.into_iter().map(|(id, code)| (code, of(id))).collect();
        came.sort();
        (came, unbroken)
    });
    println!("{} runs", seen.runs);
    seen.ends
}

/// R2, J1, J2, J6: one budget lets one call pass; each call has one terminal record, the one that ran has its intent before it, and
/// the records of both are one chain.
#[test]
fn j1_two_calls_share_a_budget_and_a_log() {
    let ends = two_calls(All, MemoryAudit::new);
    let kinds = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>();
    let refused = ("RATE_LIMITED".to_owned(), kinds(&["terminal"]));
    let passed = ("done".to_owned(), kinds(&["intent", "terminal"]));
    assert_eq!(ends, [(vec![refused, passed], true)].into());
}

#[test]
fn j6_a_log_that_forgets_its_end_is_noticed() {
    let ends = two_calls(Interrupted(2), || ForgetsItsEnd(Arc::new(Mutex::new((Head::EMPTY, Vec::new())))));
    assert!(ends.iter().any(|(_, unbroken)| !unbroken), "{ends:?}");
}
