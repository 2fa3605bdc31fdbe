//! The suite of every log that closes what a dead process left open (invariants J1, J4).

use std::cell::RefCell;
use std::path::Path;

use callgate_core::audit::{Audit, AuditFault, Kind, Record};
use callgate_core::time::Timestamp;
use callgate_std::audit::{LostCall, Report};
use serde_json::Value;

use crate::driven::{Case, drive};

const CHANGES: Case = Case { end: "done", mutating: true };
const READS: Case = Case { end: "done", mutating: false };

/// A log that is reaped.
pub(crate) trait Reaped: Audit + Sized {
    /// The log in this directory, made if there is none; several may be open at once, as in several processes.
    fn open(directory: &Path) -> Self;
    fn reap(&self, now: Timestamp) -> Vec<LostCall>;
    fn verify(&self) -> Report;
    /// The lines.
    fn text(&self) -> String;
}

/// Takes the beginnings of calls and not their ends: their process dies meanwhile.
pub(crate) struct Deaf<'a, L>(pub(crate) &'a L);

impl<L: Audit> Audit for Deaf<'_, L> {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        if record.kind == Kind::Intent { self.0.record(record) } else { Ok(()) }
    }
}

/// Takes the ends of calls and not their beginnings: those were told before.
pub(crate) struct Slow<'a, L>(pub(crate) &'a L);

impl<L: Audit> Audit for Slow<'_, L> {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        if record.kind == Kind::Intent { Ok(()) } else { self.0.record(record) }
    }
}

fn intent(log: &impl Reaped, call: &str) -> Value {
    let text = log.text();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut intents = lines.filter(|line| line["kind"] == "intent" && line["request_id"] == call);
    intents.next().expect("it is there")
}

/// When the lease of the first call of this name is over.
fn over(log: &impl Reaped, call: &str) -> u64 {
    let intent = intent(log, call);
    let at: Timestamp = intent["at"].as_str().expect("a time").parse().expect("a time");
    at.as_unix_millis() + intent["lease_ms"].as_u64().expect("a lease")
}

const fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

fn names(lost: &[LostCall]) -> Vec<&str> {
    lost.iter().map(|call| call.request_id.as_str()).collect()
}

fn counts(log: &impl Reaped) -> [u64; 4] {
    let report = log.verify();
    assert!(report.is_intact(), "{report:?}");
    [report.intents, report.terminals, report.open_intent_count, report.late]
}

/// J1: what was announced and not heard of is closed, once and when its time is over; what is heard of it afterwards is late, and no
/// second end.
fn j1_what_is_lost_is_closed_once<L: Reaped>() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = L::open(directory.path());
    drive(CHANGES, "told", &log).expect("written");
    drive(CHANGES, "lost", &Deaf(&log)).expect("written");
    drive(CHANGES, "lost too", &Deaf(&log)).expect("written");
    assert_eq!(counts(&log), [3, 1, 2, 0]);
    let over = over(&log, "lost");
    assert_eq!(log.reap(at(over - 1)), [], "its time is not over");
    let lost = log.reap(at(over));
    assert_eq!(names(&lost), ["lost", "lost too"]);
    assert_eq!(lost[0].line, intent(&log, "lost")["seq"].as_u64().expect("a number"));
    assert_eq!(log.reap(at(over)), [], "once");
    assert_eq!(counts(&log), [3, 3, 0, 0]);
    let text = log.text();
    let closed = text.lines().find(|line| line.contains("\"end\":\"lost\"")).expect("it is there");
    let closed: Value = serde_json::from_str(closed).expect("JSON");
    for name in ["request_id", "tool", "principal", "channel", "tool_digest", "args_digest"] {
        assert_eq!(closed[name], intent(&log, "lost")[name], "{name}");
    }
    assert_eq!(closed["effect"], "unknown");
    // One of them was only slow.
    drive(CHANGES, "lost", &Slow(&log)).expect("written");
    // The next call of that name is a call like any other.
    drive(CHANGES, "lost", &log).expect("written");
    assert_eq!(counts(&log), [4, 4, 0, 1]);
}

/// J1: another process closes them, and what the first tells is late there as well, over a restart of both.
fn j1_another_process_closes_them<L: Reaped>() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (L::open(directory.path()), L::open(directory.path()));
    drive(CHANGES, "a", &Deaf(&one)).expect("written");
    drive(CHANGES, "b", &Deaf(&one)).expect("written");
    let over = over(&one, "b");
    assert_eq!(names(&other.reap(at(over))), ["a", "b"]);
    drive(CHANGES, "a", &Slow(&one)).expect("written");
    assert_eq!(counts(&one), [2, 2, 0, 1]);
    drop((one, other));
    let log = L::open(directory.path());
    assert_eq!(log.reap(at(over)), []);
    drive(CHANGES, "b", &Slow(&log)).expect("written");
    assert_eq!(counts(&log), [2, 2, 0, 2]);
}

/// J1: a call that is made again under its name after its process died is a call like any other.
fn j1_a_call_that_is_made_again_is_not_late<L: Reaped>() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = L::open(directory.path());
    drive(CHANGES, "again", &Deaf(&log)).expect("written");
    assert_eq!(log.reap(at(over(&log, "again"))).len(), 1);
    drive(CHANGES, "again", &log).expect("written");
    assert_eq!(counts(&log), [2, 2, 0, 0]);
    // What changed nothing is not what was lost, whatever its name.
    drive(CHANGES, "more", &Deaf(&log)).expect("written");
    assert_eq!(log.reap(at(over(&log, "more"))).len(), 1);
    drive(Case { end: "denied", mutating: true }, "more", &log).expect("written");
    assert_eq!(counts(&log), [3, 4, 0, 0]);
}

/// What was gone through once is not needed again: beyond some hundred lines it is kept which calls are open.
fn j1_a_long_log_is_gone_through_in_parts<L: Reaped>() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = L::open(directory.path());
    drive(CHANGES, "first", &Deaf(&log)).expect("written");
    let over = over(&log, "first");
    for part in 0..3 {
        for call in 0..100 {
            drive(READS, &format!("r{part}.{call}"), &log).expect("written");
        }
        drive(CHANGES, &format!("open{part}"), &Deaf(&log)).expect("written");
        assert_eq!(log.reap(at(over - 1)), []);
        drive(CHANGES, &format!("open{part}"), &Slow(&log)).expect("written");
    }
    drop(log);
    let log = L::open(directory.path());
    assert_eq!(names(&log.reap(at(over))), ["first"]);
    assert_eq!(counts(&log), [4, 304, 0, 0]);
}

/// J1: threads that reap at once close a call once.
fn j1_two_reapers_close_a_call_once<L: Reaped + Sync>() {
    let directory = tempfile::tempdir().expect("a directory");
    let logs = [L::open(directory.path()), L::open(directory.path())];
    let names: Vec<_> = (0..8).map(|call| format!("c{call}")).collect();
    for name in &names {
        drive(CHANGES, name, &Deaf(&logs[0])).expect("written");
    }
    let over = over(&logs[0], "c7");
    let closed = RefCell::new(Vec::new());
    std::thread::scope(|scope| {
        let reapers: Vec<_> = (0..4)
            .map(|n| {
                scope.spawn({
                    let log = &logs[n % 2];
                    move || log.reap(at(over))
                })
            })
            .collect();
        for reaper in reapers {
            closed.borrow_mut().extend(reaper.join().expect("no panic"));
        }
    });
    let mut closed: Vec<_> = closed.into_inner().into_iter().map(|call| call.request_id).collect();
    closed.sort();
    assert_eq!(closed, names);
    assert_eq!(counts(&logs[1]), [8, 8, 0, 0]);
}

/// All of it.
pub(crate) fn all<L: Reaped + Sync>() {
    j1_what_is_lost_is_closed_once::<L>();
    j1_another_process_closes_them::<L>();
    j1_a_call_that_is_made_again_is_not_late::<L>();
    j1_a_long_log_is_gone_through_in_parts::<L>();
    j1_two_reapers_close_a_call_once::<L>();
}
