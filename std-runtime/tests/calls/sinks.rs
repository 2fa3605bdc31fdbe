//! Audit sinks that keep nothing on disk.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use callgate_core::audit::chain::Head;
use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_std::audit::{Fanout, MemoryAudit, SharedAudit, TracingAudit};
use tracing::field::{Field, Visit};
use tracing::span;

use crate::driven::{CANARY, CASES, Case, drive};

#[test]
fn j1_memory_keeps_every_record_in_one_chain() {
    let audit = MemoryAudit::new();
    for (i, case) in CASES.iter().enumerate() {
        drive(*case, &format!("r{i}"), &audit).expect("there is room");
    }
    let lines = audit.lines();
    // A record for each call, and an intent for each mutating one that came so far.
    let intents = CASES.iter().filter(|case| case.mutating).count();
    assert_eq!(lines.len(), CASES.len() + intents);
    let head = lines.iter().try_fold(Head::EMPTY, |head, line| head.verify(line)).expect("an unbroken chain");
    assert_eq!(head, audit.head());
    // L2, R5: on no path does a secret get into the log.
    assert!(lines.iter().all(|line| !line.contains(CANARY)), "{lines:#?}");
}

#[test]
fn f5_a_full_or_failing_memory_log_refuses() {
    let done = Case { end: "done", mutating: false };
    let audit = MemoryAudit::with_max_lines(1);
    assert_eq!(drive(done, "r1", &audit), Ok(()));
    assert_eq!(drive(done, "r2", &audit), Err(AuditFault));
    let audit = MemoryAudit::new();
    audit.set_down(true);
    assert_eq!(drive(done, "r1", &audit), Err(AuditFault));
    audit.set_down(false);
    assert_eq!(drive(done, "r2", &audit), Ok(()));
    assert_eq!((audit.faults(), audit.lines().len()), (1, 1));
}

struct Panics;

impl Audit for Panics {
    fn record(&self, _: &Record<'_>) -> Result<(), AuditFault> {
        panic!("planted")
    }
}

fn down() -> SharedAudit {
    let audit = MemoryAudit::new();
    audit.set_down(true);
    Arc::new(audit)
}

#[test]
fn f1_every_required_sink_must_have_written() {
    let done = Case { end: "done", mutating: false };
    let kept = MemoryAudit::new();
    let keep = || -> SharedAudit { Arc::new(kept.clone()) };
    for bad in [down(), Arc::new(Panics)] {
        let fanout = Fanout::new("bad", Arc::clone(&bad)).and_required("kept", keep());
        assert_eq!(drive(done, "r", &fanout), Err(AuditFault));
        let fanout = Fanout::new("kept", keep()).and_required("bad", Arc::clone(&bad));
        assert_eq!(drive(done, "r", &fanout), Err(AuditFault));
        let fanout = Fanout::new("kept", keep()).and_optional("bad", bad);
        assert_eq!(drive(done, "r", &fanout), Ok(()));
        assert_eq!(fanout.faults().collect::<Vec<_>>(), [("kept", 0), ("bad", 1)]);
    }
    assert_eq!(kept.lines().len(), 6, "what one sink loses, the others still get");
}

/// Collects events as text, one line each.
#[derive(Clone, Default)]
struct Collect(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for Collect {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(format!("{} {}", event.metadata().level(), event.metadata().target()));
        event.record(&mut line);
        self.0.lock().expect("no panic").push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[test]
fn j9_tracing_has_a_field_for_each_part_and_no_text_forges_another() {
    let collect = Collect::default();
    tracing::subscriber::with_default(collect.clone(), || {
        for case in CASES {
            drive(*case, "r1", &TracingAudit::new()).expect("tracing never fails");
        }
    });
    let lines = collect.0.lock().expect("no panic").clone();
    let level_of = |end: &str| {
        let wanted = format!("end={end:?}");
        let line = lines.iter().find(|line| line.contains(&wanted)).expect("each end was recorded");
        line.split(' ').next().expect("a level").to_owned()
    };
    for (end, level) in [
        ("intent", "DEBUG"),
        ("done", "INFO"),
        ("asked", "INFO"),
        ("planned", "INFO"),
        ("denied", "WARN"),
        ("not_found", "WARN"),
        ("store_fault", "ERROR"),
        ("audit_unavailable", "ERROR"),
        ("panicked", "ERROR"),
        ("timed_out", "ERROR"),
    ] {
        assert_eq!(level_of(end), level, "{end}");
    }
    for line in &lines {
        assert!(line.contains(" callgate::audit ") || line.contains(" callgate::audit"), "{line}");
        assert!(!line.contains('\n') && !line.contains('\u{1b}'), "{line}");
        assert!(!line.contains(CANARY), "{line}");
    }
    let done = lines.iter().find(|line| line.contains("end=\"done\"")).expect("recorded");
    for part in
        ["kind=\"terminal\"", "request_id=r1", "principal=alice", "channel=cli", "tool=fs.write", "took_us=5000"]
    {
        assert!(done.contains(part), "{part} in {done}");
    }
    assert!(!done.contains("code="), "what is not there has no field: {done}");
}
