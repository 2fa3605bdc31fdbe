//! The stores on a database that fails: every operation in turn, before it took effect and after (invariants F1, A5, J1, J8).

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{
    By, Capacity, ConfirmationStore, DecideError, DecideFault, Decided, IssueFault, Refusal, StoreFault, TicketState,
    Verdict,
};
use callgate_std::entropy::SeededEntropy;

use crate::bench::{BOB, TTL, approval, presented, request};
use crate::driven::{Case, drive};
use crate::faults::Mode;
use crate::{Database, SqliteAudit, SqliteConfirmations};
use callgate_core::audit::{Audit, AuditFault, Kind, Record};

/// What a store was asked and what it answered, kept to be held against what it says when it works again.
struct Told {
    claimed: Result<Result<By, Refusal>, StoreFault>,
    ticket: callgate_core::digest::Digest,
    /// What else a claim may find, apart from what it was told.
    by: By,
}

/// Goes through every method with operation `fails` and `more` after it failing in this `mode`. Gives how many operations there were.
fn redeem(mode: Mode, fails: usize, more: usize) -> usize {
    let what = format!("{mode:?} at operation {fails} and {more} more");
    let directory = tempfile::tempdir().expect("a directory");
    let database = Arc::new(Database::open(directory.path().join("gate.db")).expect("new"));
    let clock = ManualClock::new();
    let store =
        SqliteConfirmations::with(Arc::clone(&database), Capacity::DEFAULT, clock.shared(), SeededEntropy::shared(7));
    store.attach_approvers(true);
    // Known to be there, whatever fails afterwards.
    let own = store.issue(&request(1), TTL).expect("room").token.hash();
    let burnt = store.issue(&request(1), TTL).expect("room").token.hash();
    let withdrawn = store.issue(&request(1), TTL).expect("room").token.hash();
    let asked = store.issue(&approval(1), TTL).expect("room").token.hash();
    let denied = store.issue(&approval(1), TTL).expect("room").token.hash();

    database.faults.set(mode, fails, more);
    let issued = store.issue(&request(1), TTL);
    let loaded = store.load(own);
    let own_told = Told { claimed: store.claim(own, &presented(1)), ticket: own, by: By::Caller };
    let burnt_told = store.claim(burnt, &presented(2));
    let withdrawn_told = store.withdraw(withdrawn);
    let seen = store.pending(&BOB, 10);
    let denied_told = store.decide(denied, Verdict::Deny, &BOB);
    let asked_told = store.decide(asked, Verdict::Approve, &BOB);
    let asked_claim = Told { claimed: store.claim(asked, &presented(1)), ticket: asked, by: By::Approver };
    let operations = database.faults.clear();

    // A fault is told, and nothing else than the truth besides.
    assert!(matches!(issued, Ok(_) | Err(IssueFault::Store)), "{what}: {issued:?}");
    assert!(loaded.is_err() || loaded.is_ok_and(|found| found.is_some_and(|found| found.usable.is_ok())), "{what}");
    assert!(seen.is_err() || seen.is_ok_and(|seen| seen.len() == 2), "{what}");
    if let Ok(issued) = issued {
        assert_eq!(
            store.claim(issued.token.hash(), &presented(1)),
            Ok(Ok(By::Caller)),
            "{what}: an issued ticket is kept"
        );
    }
    // A decision that was told to be taken stands, and one that nobody knows of is taken or not, but never turned round.
    assert!(matches!(denied_told, Ok(Decided::Denied) | Err(DecideFault::Store)), "{what}: {denied_told:?}");
    let again = store.decide(denied, Verdict::Deny, &BOB);
    let stands = again == Err(DecideFault::Refused(DecideError::Settled(TicketState::Denied)));
    assert!(stands || denied_told.is_err() && again == Ok(Decided::Denied), "{what}: {denied_told:?}, then {again:?}");
    assert_eq!(store.claim(denied, &presented(1)), Ok(Err(Refusal::Denied)), "{what}");
    if asked_told.is_err() {
        assert_eq!(asked_told, Err(DecideFault::Store), "{what}");
        assert!(matches!(asked_claim.claimed, Err(StoreFault) | Ok(_)), "{what}");
        let _ = store.decide(asked, Verdict::Approve, &BOB);
    }
    for Told { claimed, ticket, by } in [own_told, asked_claim] {
        let then = store.claim(ticket, &presented(1)).expect("the database works again");
        match claimed {
            Ok(Ok(_)) => assert_eq!(then, Err(Refusal::Used), "{what}: claimed twice"),
            Ok(Err(refusal)) => {
                assert_eq!((refusal, asked_told.is_err(), then), (Refusal::Undecided, true, Ok(by)), "{what}");
            }
            Err(StoreFault) => assert!(then == Ok(by) || then == Err(Refusal::Used), "{what}: {then:?}"),
        }
        assert_eq!(store.claim(ticket, &presented(1)), Ok(Err(Refusal::Used)), "{what}");
    }
    match burnt_told {
        Ok(answer) => assert!(answer.is_err_and(Refusal::is_mismatch), "{what}"),
        Err(StoreFault) => assert!(store.claim(burnt, &presented(2)).expect("answers").is_err(), "{what}"),
    }
    assert_eq!(store.claim(burnt, &presented(1)), Ok(Err(Refusal::Cancelled)), "{what}");
    if withdrawn_told.is_err() {
        store.withdraw(withdrawn).expect("the database works again");
    }
    assert_eq!(store.claim(withdrawn, &presented(1)), Ok(Err(Refusal::Cancelled)), "{what}");
    assert!(operations < fails || database.last_error().is_some(), "{what}: nobody was told");
    operations
}

#[test]
fn f1_every_operation_of_the_confirmations_may_fail() {
    for mode in [Mode::Before, Mode::After] {
        for more in [0, 2] {
            let mut fails = 1;
            while redeem(mode, fails, more) >= fails {
                fails += 1;
            }
            assert!(fails > 40, "the loop saw {fails} operations");
        }
    }
}

/// J6, J10: whoever is killed at a step of a rotation or of a removal leaves a log that verifies, that is written on and rotated, and in
/// which nothing is lost or twice.
#[test]
fn j10_any_step_of_a_rotation_may_be_the_last() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = callgate_core::time::Timestamp::from_unix_millis(u64::MAX / 2);
    let all = callgate_std::audit::Retention::new(Some(0), None);
    let intact = |log: &SqliteAudit, what: &str| {
        let report = log.verify(None).expect("readable");
        assert!(report.is_intact(), "{what}: {report:?}");
        report
    };
    for mode in [Mode::Before, Mode::After] {
        let mut fails = 1;
        loop {
            let what = format!("{mode:?} at operation {fails}");
            let path = directory.path().join(format!("{mode:?}.{fails}")).join("gate.db");
            let log = SqliteAudit::open(&path).expect("new");
            let call = |name: &str, log: &SqliteAudit| drive(Case { end: "done", mutating: true }, name, log);
            call("r1", &log).expect("written");
            call("r2", &log).expect("written");
            log.rotate(now).expect("usable");
            call("r3", &log).expect("written");
            let head = log.head();
            log.database().faults.set(mode, fails, usize::MAX / 2);
            drop(log.rotate(now));
            drop(log.retain(all, now));
            let operations = log.database().faults.clear();
            drop(log);
            let log = SqliteAudit::open(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
            intact(&log, &what);
            let kept = log.verify(Some(head)).expect("readable");
            assert!(kept.is_intact() || kept.removed.is_some(), "{what}: {kept:?}");
            call("r4", &log).expect("written");
            log.rotate(now).expect("usable");
            let report = intact(&log, &what);
            assert!(report.removed.is_some() || report.intents == 4, "{what}: {report:?}");
            log.retain(all, now).expect("usable");
            assert_eq!(intact(&log, &what).parts.len(), 1, "{what}");
            if operations < fails {
                break;
            }
            fails += 1;
        }
        assert!(fails > 15, "the loop saw {fails} operations");
    }
}

/// What a call was told of its records.
#[derive(Default)]
struct Answers(RefCell<HashMap<(String, &'static str), bool>>);

/// A sink that notes what the log answered.
struct Watch<'a> {
    log: &'a SqliteAudit,
    answers: &'a Answers,
}

impl Audit for Watch<'_> {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let answer = self.log.record(record);
        let key = (record.caller.request_id.to_owned(), record.kind.as_str());
        assert_eq!(self.answers.0.borrow_mut().insert(key, answer.is_ok()), None);
        answer
    }
}

/// Four calls with operation `fails` and `more` after it failing in this `mode`. Gives how many operations there were.
fn record(path: &Path, mode: Mode, fails: usize, more: usize) -> usize {
    let what = format!("{mode:?} at operation {fails} and {more} more");
    let database = Arc::new(Database::open(path).expect("new"));
    let log = SqliteAudit::on(Arc::clone(&database)).expect("new");
    let answers = Answers::default();
    let watch = Watch { log: &log, answers: &answers };
    database.faults.set(mode, fails, more);
    for (i, mutating) in [true, false, false, true].into_iter().enumerate() {
        // F1: a call whose intent was not written ends without an effect; `drive` checks it.
        let _ = drive(Case { end: "done", mutating }, &format!("r{i}"), &watch);
    }
    let operations = database.faults.clear();
    log.flush().expect("the database works again");
    assert_eq!((log.spooled(), log.lost()), (0, 0), "{what}");
    drop(log);
    let log = SqliteAudit::open(path).expect("as it was left");
    let report = log.verify(None).expect("readable");
    assert!(report.is_intact(), "{what}: {report:?}");
    let mut text = Vec::new();
    log.export(&mut text).expect("readable");
    let text = String::from_utf8(text).expect("text");
    for ((request_id, kind), written) in answers.0.borrow().iter() {
        let id = format!("\"request_id\":\"{request_id}\"");
        let kind_text = format!("\"kind\":\"{kind}\"");
        let count = text.lines().filter(|line| line.contains(&id) && line.contains(&kind_text)).count();
        // J1, J8: a terminal record is there once, told or not. What was told to be written is, and an intent that was
        // not may be, where nobody knows.
        let unknown = *kind == Kind::Intent.as_str() && !written && mode == Mode::After;
        let expected = usize::from(*written || *kind == Kind::Terminal.as_str());
        assert!(count == expected || unknown && count == 1, "{what}: {request_id} {kind} {count} times\n{text}");
    }
    operations
}

#[test]
fn j8_every_operation_of_the_log_may_fail() {
    let directory = tempfile::tempdir().expect("a directory");
    for mode in [Mode::Before, Mode::After] {
        for more in [0, 2] {
            let mut fails = 1;
            while record(&directory.path().join(format!("{mode:?}.{more}.{fails}")), mode, fails, more) >= fails {
                fails += 1;
            }
            assert!(fails > 30, "the loop saw {fails} operations");
        }
    }
}

/// Records that come while one is being written share one transaction.
#[test]
fn callers_that_wait_share_one_transaction() {
    const CALLERS: usize = 5;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gate.db");
    let (database, other) = (Database::open(&path).expect("new"), Database::open(&path).expect("shared"));
    let database = Arc::new(database);
    let log = SqliteAudit::on(Arc::clone(&database)).expect("new");
    let operations = |calls: &dyn Fn()| {
        database.faults.set(Mode::Before, 0, 0);
        calls();
        database.faults.clear()
    };
    let read = Case { end: "done", mutating: false };
    let alone = operations(&|| drive(read, "alone", &log).expect("written"));
    let together = operations(&|| {
        thread::scope(|scope| {
            // While another process is at it, the first caller waits for it, and the others wait for the first.
            let held = other.step(|_| {
                let callers: Vec<_> = (0..CALLERS)
                    .map(|i| {
                        let log = &log;
                        scope.spawn(move || drive(read, &format!("r{i}"), log).expect("written"))
                    })
                    .collect();
                while log.waiting() < CALLERS - 1 {
                    thread::yield_now();
                }
                Ok(callers)
            });
            drop(held.expect("a free database"));
        });
    });
    assert!(together < 3 * alone, "{CALLERS} records in two transactions: {alone}, {together}");
    assert_eq!(log.head().seq, 1 + CALLERS as u64);
}
