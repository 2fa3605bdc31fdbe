//! What the gate costs, as ratios to the same work without it in the same run, and as exact counts of allocations.
//!
//! `cargo run --release -p callgate-benches` prints the table. Times are medians of rounds in which baseline and subject take
//! turns, so that a busy machine slows both; still, read the ratios and not the times. `--quick` takes fewer rounds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::context::CallContext;
use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::json::{KeySlot, Limits, key_capacity, scan};
use callgate_core::policy::{Effect, Subject};
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_std::gate::Gate;
use callgate_std::interceptors::Interceptors;
use callgate_std::limiter::{MemoryLimiter, Quota};
use callgate_std::output::Reply;
use callgate_std::policy::{ChannelPolicies, OwnedRule};
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use serde::{Deserialize, Serialize};

/// The system's allocator, counted.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[expect(unsafe_code, reason = "an allocator cannot be counted without being one; this is a program that measures")]
// SAFETY: every method passes its arguments on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    work();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// Nanoseconds per turn of baseline and subject: medians of rounds in which the two take turns.
fn compare(rounds: usize, turns: u32, mut baseline: impl FnMut(), mut subject: impl FnMut()) -> (f64, f64) {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..turns {
            work();
        }
        start.elapsed().as_nanos() as f64 / f64::from(turns)
    };
    for _ in 0..turns {
        baseline();
        subject();
    }
    let (mut base, mut sub) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        base.push(time(&mut baseline));
        sub.push(time(&mut subject));
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    (median(&mut base), median(&mut sub))
}

fn row(what: &str, (base, subject): (f64, f64), goal: &str, note: &str) {
    println!("| {what} | {base:.0} ns | {subject:.0} ns | {:.2}x | {goal} | {note} |", subject / base);
}

#[derive(Deserialize)]
struct Terms {
    path: String,
    max: i64,
}

#[derive(Serialize)]
struct Found {
    hits: i64,
}

fn body(terms: &Terms) -> Found {
    Found { hits: terms.max + terms.path.len() as i64 }
}

const ARGUMENTS: &[u8] = br#"{"path":"src/main.rs","max":40}"#;

const PROPERTIES: &[Property<'static>] =
    &[Property::required("path", Schema::string()), Property::required("max", Schema::integer())];

fn tool(name: &str) -> Tool {
    Tool::builder(name)
        .description("Finds")
        .const_schema(Schema::object(PROPERTIES))
        .clamp("/max", 1..=1000)
        .typed(|_call, terms: Terms| Reply::of(&body(&terms)))
        .build()
        .expect("a good tool")
}

struct Pass;

impl Interceptor<Reply, Arc<str>> for Pass {
    fn judge(&self, _: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        Interception::Continue
    }
}

struct Null;

impl Audit for Null {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        black_box(record);
        Ok(())
    }
}

/// A gate with every stage on: limiter, one rule, one interceptor, audit to a sink that drops everything.
fn gate(tools: usize) -> Gate {
    let registry = Registry::builder().add_all((0..tools).map(|at| tool(&format!("tool-{at}.x")))).build();
    let rule = OwnedRule { channel: Some(Arc::from("web")), ..OwnedRule::new(1, Effect::Deny, Vec::new()) };
    Gate::builder(registry.expect("good tools"))
        .policy(ChannelPolicies::builder().rules([rule]).build().expect("a policy"))
        .limiter(Arc::new(MemoryLimiter::with(
            |_| Quota::new(u32::MAX, 1, u32::MAX).expect("a quota"),
            callgate_std::clock::SystemClock::shared(),
            1_000,
        )))
        .interceptors(Interceptors::new().and("pass", Pass))
        .audit(Arc::new(Null))
        .digest_when_needed()
        .build()
        .expect("a gate")
}

fn call(gate: &Gate, name: &str) {
    let request = Request { tool: name, arguments: ARGUMENTS, token: None };
    let outcome = gate.call(&CallContext::cli("request-1"), request);
    let mut text = String::with_capacity(256);
    outcome.write_data(&mut text).expect("a string takes all");
    black_box(text);
}

fn bare() {
    let terms: Terms = serde_json::from_slice(black_box(ARGUMENTS)).expect("good arguments");
    let text = serde_json::to_string(&body(&terms)).expect("it can be written");
    black_box(text);
}

fn text_of(bytes: usize) -> Vec<u8> {
    let mut items = Vec::new();
    let mut size = 2;
    let mut at = 0;
    while size < bytes {
        let item =
            format!(r#"{{"id":{at},"name":"row number {at}","price":{}.25,"tags":["a","bc"],"open":true}}"#, at % 97);
        size += item.len() + 1;
        items.push(item);
        at += 1;
    }
    format!(r#"{{"rows":[{}]}}"#, items.join(",")).into_bytes()
}

fn reader(rounds: usize) {
    for (name, bytes, turns) in [("100 B", 60, 20_000), ("4 KiB", 4_000, 1_000), ("256 KiB", 262_000, 20)] {
        let text = text_of(bytes);
        let mut keys = vec![KeySlot::default(); key_capacity(&text)];
        let pair = compare(
            rounds,
            turns,
            || {
                black_box(serde_json::from_slice::<serde_json::Value>(black_box(&text)).expect("good text"));
            },
            || {
                let scanned = scan(black_box(&text), &mut keys, &Limits::DEFAULT).expect("good text");
                black_box(scanned.value().parse::<serde_json::Value>().expect("a value"));
            },
        );
        row(&format!("read {name} into a value"), pair, "1.5x", "serde_json::from_slice into the same value");
        let pair = compare(
            rounds,
            turns,
            || {
                black_box(serde_json::from_slice::<serde::de::IgnoredAny>(black_box(&text)).expect("good text"));
            },
            || {
                black_box(scan(black_box(&text), &mut keys, &Limits::DEFAULT).expect("good text"));
            },
        );
        row(&format!("check {name} whole"), pair, "1.5x", "serde_json into IgnoredAny, which checks less");
    }
}

fn threads(gate: &Gate, turns: u32) -> f64 {
    let run = |count: usize| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for at in 0..count {
                let name = if at == 0 { "tool-0.x" } else { "tool-1.x" };
                scope.spawn(move || (0..turns).for_each(|_| call(gate, name)));
            }
        });
        f64::from(turns) * count as f64 / start.elapsed().as_secs_f64()
    };
    run(1);
    let mut ratios: Vec<_> = (0..9)
        .map(|_| {
            let one = run(1);
            run(2) / one
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if quick { 11 } else { 51 };
    let (ten, many) = (gate(10), gate(100_000));
    println!("| what | baseline | callgate | ratio | goal | baseline is |");
    println!("|---|---|---|---|---|---|");
    row(
        "a call, every stage on",
        compare(rounds, 5_000, bare, || call(&ten, "tool-0.x")),
        "3x",
        "serde_json into a struct, call, serialize",
    );
    row(
        "the same with 100,000 tools",
        compare(rounds, 5_000, || call(&ten, "tool-0.x"), || call(&many, "tool-54321.x")),
        "1.2x",
        "the same with 10 tools",
    );
    reader(rounds);
    bare();
    call(&ten, "tool-0.x");
    let (base, gated) = (allocations(bare), allocations(|| call(&ten, "tool-0.x")));
    println!(
        "| allocations of a call | {base} | {gated} | {:+} | +2 | the same bare work |",
        gated as i64 - base as i64
    );
    println!(
        "| two threads | 1 thread | 2 threads | {:.2}x | 1.8x | calls per second |",
        threads(&ten, if quick { 5_000 } else { 50_000 })
    );
}
