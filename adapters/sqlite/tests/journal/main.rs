//! The journal in SQLite passes the suite of every journal.
#![cfg(test)]

#[path = "../../../../std-runtime/tests/journal/bench.rs"]
mod bench;
#[path = "../../../../std-runtime/tests/journal/model.rs"]
mod model;
#[path = "../../../../std-runtime/tests/journal/suite.rs"]
mod suite;

use std::path::Path;
use std::sync::Arc;

use callgate_core::code::Effect;
use callgate_sqlite::{Database, SqliteJournal};
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::Guarantee;
use callgate_std::journal::{Journal, JournalLimits, OperationRefusal, Recalled};

use bench::{ALICE, Bench, CANARY, LEASE, attempt, end, request, result};
use suite::every_journal;

fn open(path: &Path, limits: JournalLimits, clock: &ManualClock) -> SqliteJournal {
    let database = Arc::new(Database::open(path).expect("new, or whole"));
    SqliteJournal::with(database, limits, clock.shared())
}

fn sqlite(limits: JournalLimits) -> Bench {
    let clock = ManualClock::new();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gate.db");
    let journal = open(&path, limits, &clock);
    let again = clock.clone();
    let reopen = Box::new(move || Box::new(open(&path, limits, &again)) as Box<dyn Journal>);
    Bench { _keep: Some(directory), reopen: Some(reopen), cases: 12, ..Bench::new(journal, clock) }
}

every_journal!(sqlite);

/// J3, J4: what was answered is there for whoever opens the file; a claim whose process is gone is in doubt when its lease is over.
#[test]
fn j3_what_was_answered_outlives_the_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gate.db");
    let clock = ManualClock::new();
    let (done, lost) = (request(ALICE, "done", 1), request(ALICE, "lost", 1));
    {
        let journal = open(&path, JournalLimits::DEFAULT, &clock);
        assert_eq!(journal.guarantee(), Guarantee::ALL);
        assert_eq!(journal.claim(&done), Ok(Ok(Recalled::Free(attempt(1)))));
        assert_eq!(journal.finish(&end(&done, 1, Effect::Done), Some(&result("kept"))), Ok(Ok(())));
        assert_eq!(journal.claim(&lost), Ok(Ok(Recalled::Free(attempt(1)))));
    }
    let journal = open(&path, JournalLimits::DEFAULT, &clock);
    let other = open(&path, JournalLimits::DEFAULT, &clock);
    assert_eq!(journal.claim(&done), Ok(Ok(Recalled::Completed(result("kept")))));
    for journal in [&journal, &other] {
        assert_eq!(journal.claim(&lost), Ok(Err(OperationRefusal::InProgress)));
    }
    clock.advance(std::time::Duration::from_millis(LEASE));
    // C2: whose clock is behind sees the time that another one left in the file.
    assert_eq!(journal.reap(10).map(|reaped| reaped.len()), Ok(1));
    clock.step_wall(-60_000);
    let behind = open(&path, JournalLimits::DEFAULT, &clock);
    assert_eq!(behind.claim(&lost), Ok(Err(OperationRefusal::InDoubt)));
}

/// A file that is gone, or of which somebody made something else, is a fault and no answer.
#[test]
fn f1_a_damaged_journal_answers_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gate.db");
    let journal = open(&path, JournalLimits::DEFAULT, &ManualClock::new());
    let op = request(ALICE, "op", 1);
    assert_eq!(journal.claim(&op), Ok(Ok(Recalled::Free(attempt(1)))));
    std::fs::rename(&path, directory.path().join("away")).expect("renamed");
    assert!(journal.claim(&op).is_err() && journal.recall(&op.presented).is_err());
    assert!(journal.finish(&end(&op, 1, Effect::Done), None).is_err());
    assert!(!format!("{journal:?}").contains(CANARY));
}

/// C2, J4: a clock that is set back for good neither holds what a lost call holds, nor gives back time that passed, in this process or in
/// another one.
#[test]
fn c2_leases_end_under_a_clock_that_was_set_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gate.db");
    let clock = ManualClock::new();
    clock.step_wall(10 * 3_600_000);
    let lost = request(ALICE, "lost", 1);
    let journal = open(&path, JournalLimits::DEFAULT, &clock);
    assert_eq!(journal.claim(&lost), Ok(Ok(Recalled::Free(attempt(1)))));
    clock.step_wall(-9 * 3_600_000);
    let other = open(&path, JournalLimits::DEFAULT, &clock);
    for journal in [&journal, &other] {
        assert_eq!(journal.claim(&lost), Ok(Err(OperationRefusal::InProgress)));
    }
    clock.advance(std::time::Duration::from_millis(LEASE));
    for journal in [&journal, &other] {
        assert_eq!(journal.claim(&lost), Ok(Err(OperationRefusal::InDoubt)));
    }
}
