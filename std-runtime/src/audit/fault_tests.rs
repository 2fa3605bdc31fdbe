//! The log on a disk that fails: every operation in turn, before it took effect, half way and after (invariants F1, J1, J8).

#[path = "../../tests/calls/driven.rs"]
mod driven;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use callgate_core::audit::{Audit, AuditFault, Kind, Record};

use super::disk::faults::{Faults, Mode};
use super::{Durability, JsonlAudit, JsonlOptions, verify_file};
use driven::{CASES, Case, drive};

/// What a call was told of its records.
#[derive(Default)]
struct Told(RefCell<HashMap<(String, &'static str), bool>>);

/// A sink that notes what the log answered.
struct Watch<'a> {
    log: &'a JsonlAudit,
    told: &'a Told,
}

impl Audit for Watch<'_> {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let answer = self.log.record(record);
        let key = (record.caller.request_id.to_owned(), record.kind.as_str());
        assert_eq!(self.told.0.borrow_mut().insert(key, answer.is_ok()), None);
        answer
    }
}

/// Four calls on a disk whose operation `fails` and `more` after it fail in this `mode`. Gives how many operations there were.
fn run(path: &Path, durability: Durability, fails: usize, more: usize, mode: Mode) -> usize {
    let mut options = JsonlOptions::new();
    options.durability = durability;
    let log = JsonlAudit::open_with(path, options.clone()).expect("new");
    let faults: Arc<Faults> = log.faults();
    *faults.mode.lock().expect("no panic") = Some(mode);
    faults.count.store(0, Ordering::Relaxed);
    faults.fails.store(fails, Ordering::Relaxed);
    faults.more.store(more, Ordering::Relaxed);
    let told = Told::default();
    let watch = Watch { log: &log, told: &told };
    for (i, mutating) in [true, false, false, true].into_iter().enumerate() {
        // F1: a call whose intent was not written ends without an effect; `drive` checks it.
        let _ = drive(Case { end: "done", mutating }, &format!("r{i}"), &watch);
    }
    let operations = faults.count.load(Ordering::Relaxed);
    faults.fails.store(0, Ordering::Relaxed);
    log.flush().expect("the disk works again");
    assert_eq!((log.spooled(), log.lost()), (0, 0));
    drop(log);
    drop(JsonlAudit::open_with(path, options).expect("as it was left"));
    let what = format!("{durability:?}, {mode:?} at operation {fails} and {more} more");
    let report = verify_file(path, None).expect("readable");
    assert!(report.is_intact(), "{what}: {report:?}");
    let text = std::fs::read_to_string(path).expect("text");
    for ((request_id, kind), written) in told.0.borrow().iter() {
        let id = format!("\"request_id\":\"{request_id}\"");
        let kind_text = format!("\"kind\":\"{kind}\"");
        let count = text.lines().filter(|line| line.contains(&id) && line.contains(&kind_text)).count();
        if *kind == Kind::Terminal.as_str() {
            // J1, J8: told or not, in the end there is exactly one.
            assert_eq!(count, 1, "{what}: {request_id} {kind}\n{text}");
        } else if *written {
            assert_eq!(count, 1, "{what}: {request_id} {kind}\n{text}");
        } else {
            assert_eq!(count, 0, "{what}: {request_id} {kind} was told to be not written\n{text}");
        }
    }
    operations
}

#[test]
fn j8_every_operation_of_the_disk_may_fail() {
    let directory = tempfile::tempdir().expect("a directory");
    for durability in [Durability::All, Durability::Intents] {
        for mode in [Mode::Before, Mode::HalfWay, Mode::After] {
            for more in [0, 2] {
                let mut fails = 1;
                loop {
                    let path = directory.path().join(format!("{durability:?}.{mode:?}.{more}.{fails}"));
                    if run(&path, durability, fails, more, mode) < fails {
                        break;
                    }
                    fails += 1;
                }
                assert!(fails > 8, "the loop saw {fails} operations");
            }
        }
    }
}

/// Three calls, two of which change something, and one that is announced and not heard of.
fn with_an_open_call(path: &Path) -> JsonlAudit {
    struct Deaf<'a>(&'a JsonlAudit);
    impl Audit for Deaf<'_> {
        fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
            if record.kind == Kind::Intent { self.0.record(record) } else { Ok(()) }
        }
    }
    let log = JsonlAudit::open(path).expect("new");
    let call = |name: &str, mutating, sink: &dyn Audit| drive(Case { end: "done", mutating }, name, sink);
    call("r1", true, &log).expect("written");
    call("open", true, &Deaf(&log)).expect("written");
    call("r2", false, &log).expect("written");
    call("r3", true, &log).expect("written");
    log
}

/// J6, J10: whoever is killed at a step of a rotation, before or after it took effect, leaves a log that verifies, that is written on,
/// rotated and reaped, and in which nothing is lost or twice.
#[test]
fn j10_any_step_of_a_rotation_may_be_the_last() {
    let directory = tempfile::tempdir().expect("a directory");
    for rotated_before in [false, true] {
        for mode in [Mode::Before, Mode::HalfWay, Mode::After] {
            let mut fails = 1;
            loop {
                let path = directory.path().join(format!("{rotated_before}.{mode:?}.{fails}"));
                let what = format!("{mode:?} at operation {fails}, rotated before: {rotated_before}");
                let log = with_an_open_call(&path);
                if rotated_before {
                    assert!(log.rotate().expect("usable").is_some());
                    drive(Case { end: "done", mutating: false }, "r4", &log).expect("written");
                }
                let head = log.head();
                let faults: Arc<Faults> = log.faults();
                *faults.mode.lock().expect("no panic") = Some(mode);
                faults.count.store(0, Ordering::Relaxed);
                faults.fails.store(fails, Ordering::Relaxed);
                // Nothing works any more: the process is dead.
                faults.more.store(usize::MAX / 2, Ordering::Relaxed);
                drop(log.rotate());
                let operations = faults.count.load(Ordering::Relaxed);
                Box::leak(Box::new(log));
                let report = verify_file(&path, Some(head)).expect("readable");
                assert!(report.is_intact(), "{what}: {report:?}");
                let report = verify_file(&path, None).expect("readable");
                assert!(report.is_intact(), "{what}: {report:?}");
                let log = JsonlAudit::open(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
                drive(Case { end: "done", mutating: true }, "r5", &log).expect("written");
                let end = log.head();
                assert_eq!(log.rotate().expect("usable"), Some(end), "{what}");
                let report = verify_file(&path, None).expect("readable");
                assert!(report.is_intact(), "{what}: {report:?}");
                assert_eq!((report.intents, report.open_intent_count), (4, 1), "{what}");
                assert_eq!(report.terminals, 4 + u64::from(rotated_before), "{what}");
                assert_eq!(report.lines, log.head().seq, "{what}");
                let lost = log.reap(callgate_core::time::Timestamp::from_unix_millis(u64::MAX)).expect("usable");
                assert_eq!(lost.len(), 1, "{what}");
                drop(log);
                assert!(verify_file(&path, None).expect("readable").is_intact(), "{what}");
                if operations < fails {
                    break;
                }
                fails += 1;
            }
            assert!(fails > 8, "the loop saw {fails} operations");
        }
    }
}

/// J1: a record that could be neither made durable nor cut off, and that another process then built on, is not written again.
#[test]
fn j1_a_record_that_others_built_on_is_not_doubled() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let (one, other) = (JsonlAudit::open(&path).expect("new"), JsonlAudit::open(&path).expect("shared"));
    let faults = one.faults();
    *faults.mode.lock().expect("no panic") = Some(Mode::Before);
    faults.count.store(0, Ordering::Relaxed);
    // The line is appended; then neither waiting for it nor cutting it off works.
    faults.fails.store(2, Ordering::Relaxed);
    faults.more.store(1, Ordering::Relaxed);
    let read = Case { end: "done", mutating: false };
    assert_eq!(drive(read, "r1", &one), Err(AuditFault));
    assert_eq!(one.spooled(), 1);
    drive(read, "r2", &other).expect("written");
    drive(read, "r3", &one).expect("written");
    assert_eq!(one.spooled(), 0);
    let text = std::fs::read_to_string(&path).expect("text");
    for call in ["r1", "r2", "r3"] {
        assert_eq!(text.matches(&format!("\"request_id\":\"{call}\"")).count(), 1, "{call}\n{text}");
    }
    assert!(verify_file(&path, None).expect("readable").is_intact());
}

/// J2: an intent that did not get to the disk is not acknowledged, whatever else is durable or not.
#[test]
fn j2_an_intent_waits_for_the_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    for (durability, waits) in [(Durability::All, true), (Durability::Intents, false)] {
        let mut options = JsonlOptions::new();
        options.durability = durability;
        let log = JsonlAudit::open_with(directory.path().join(format!("{durability:?}")), options).expect("new");
        let faults = log.faults();
        *faults.mode.lock().expect("no panic") = Some(Mode::Before);
        let told = Told::default();
        for (call, mutating) in [("changes", true), ("reads", false)] {
            faults.count.store(0, Ordering::Relaxed);
            // The first operation of a record appends it, the second waits for the disk.
            faults.fails.store(2, Ordering::Relaxed);
            let _ = drive(Case { end: "done", mutating }, call, &Watch { log: &log, told: &told });
        }
        let told = told.0.borrow();
        let written = |call: &str, kind| told.get(&(call.to_owned(), kind)).copied();
        assert_eq!(written("changes", "intent"), Some(false), "{durability:?}");
        assert_eq!(written("reads", "terminal"), Some(!waits), "{durability:?}");
    }
}

/// The spool is bounded; what goes beyond is counted, and every call still ends with its outcome.
#[test]
fn x6_a_disk_that_stays_broken_costs_bounded_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = JsonlAudit::open(directory.path().join("log")).expect("new");
    let faults = log.faults();
    *faults.mode.lock().expect("no panic") = Some(Mode::Before);
    faults.fails.store(1, Ordering::Relaxed);
    faults.more.store(usize::MAX / 2, Ordering::Relaxed);
    for i in 0..1_100 {
        assert_eq!(drive(Case { end: "done", mutating: false }, &format!("r{i}"), &log), Err(AuditFault));
    }
    assert_eq!((log.spooled(), log.lost()), (1_000, 100));
    faults.fails.store(0, Ordering::Relaxed);
    log.flush().expect("the disk works again");
    assert_eq!((log.spooled(), log.head().seq), (0, 1_000));
}

#[test]
fn the_suite_of_calls_is_whole() {
    assert!(CASES.len() > 20 && driven::ARGUMENTS.contains(driven::CANARY));
}
