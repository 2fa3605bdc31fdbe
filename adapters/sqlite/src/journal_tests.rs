//! The journal on a database that fails: every operation in turn, before it took effect and after (invariants F1, A5, J3, J5).

use std::sync::Arc;
use std::time::Duration;

use callgate_core::code::Effect;
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::Resolution;
use callgate_std::journal::{
    Journal, JournalLimits, OperationRefusal, OperationRequest, OperationState, Recalled, StoreFault,
};

use self::bench::{ALICE, HOST, LEASE, attempt, end, request, result};
use crate::faults::Mode;
use crate::{Database, SqliteJournal};

#[path = "../../../std-runtime/tests/journal/bench.rs"]
#[expect(dead_code, reason = "the suite of every journal uses the rest")]
mod bench;

/// Goes through every method with operation `fails` and `more` after it failing in this `mode`. Gives how many operations there were.
fn operate(mode: Mode, fails: usize, more: usize) -> usize {
    let what = format!("{mode:?} at operation {fails} and {more} more");
    let directory = tempfile::tempdir().expect("a directory");
    let database = Arc::new(Database::open(directory.path().join("gate.db")).expect("new"));
    let clock = ManualClock::new();
    let journal = SqliteJournal::with(Arc::clone(&database), JournalLimits::DEFAULT, clock.shared());
    let [done, opened, lost] = ["done", "opened", "lost"].map(|id| request(ALICE, id, 1));

    database.faults.set(mode, fails, more);
    let claims = [&done, &opened, &lost].map(|op| journal.claim(op));
    let kept = result("kept");
    let ends = [
        journal.finish(&end(&done, 1, Effect::Done), Some(&kept)),
        journal.finish(&end(&opened, 1, Effect::None), None),
    ];
    let recalled = journal.recall(&done.presented);
    clock.advance(Duration::from_millis(LEASE));
    let reaped = journal.reap(10);
    let settled = journal.reconcile(lost.presented.key, &Resolution { effect: Effect::Done, proof: "seen", by: HOST });
    let operations = database.faults.clear();

    // What was told is so, whoever opens the file next.
    let again = SqliteJournal::with(
        Arc::new(Database::open(database.path()).expect("whole")),
        JournalLimits::DEFAULT,
        clock.shared(),
    );
    let now = |op: &OperationRequest<'_>| again.recall(&op.presented).expect("the database works again");
    for (op, claim) in [&done, &opened, &lost].into_iter().zip(&claims) {
        assert!(matches!(claim, Ok(Ok(Recalled::Free(_))) | Err(StoreFault)), "{what}: {claim:?}");
        // A5, J3: a claim that was told is never given again, unless its call told that it had no effect.
        let free = matches!(now(op), Ok(Recalled::Free(_)));
        assert!(!free || claim.is_err() || op.operation == "opened", "{what}: {} is free again", op.operation);
    }
    match (&claims[0], &ends[0]) {
        (Ok(_), Ok(told)) => {
            assert_eq!(*told, Ok(()), "{what}");
            assert_eq!(now(&done), Ok(Recalled::Completed(kept.clone())), "{what}: a result that was kept is gone");
        }
        // Whether it was kept is not known; if it was, then whole, and if not, it is in doubt.
        _ => assert!(
            matches!(now(&done), Ok(Recalled::Free(_)) | Err(OperationRefusal::InDoubt))
                || now(&done) == Ok(Recalled::Completed(kept.clone())),
            "{what}: {:?}",
            now(&done)
        ),
    }
    if let Ok(told) = recalled {
        let expected =
            [Ok(Recalled::Completed(kept)), Err(OperationRefusal::InProgress), Ok(Recalled::Free(attempt(1)))];
        assert!(expected.contains(&told), "{what}: {told:?}");
    }
    if let (Ok(_), Ok(Ok(()))) = (&claims[1], &ends[1]) {
        assert_eq!(now(&opened), Ok(Recalled::Free(attempt(2))), "{what}");
    }
    // J5: what was settled is, and what was not can be.
    match settled {
        Ok(Ok(view)) => assert_eq!(view.state, OperationState::Completed, "{what}"),
        Ok(Err(_)) | Err(StoreFault) if claims[2].is_ok() => {
            let resolution = Resolution { effect: Effect::Done, proof: "seen", by: HOST };
            let then = again.reconcile(lost.presented.key, &resolution).expect("the database works again");
            assert!(then.is_ok() || now(&lost) == Err(OperationRefusal::NotKept), "{what}: {then:?}");
        }
        _ => {}
    }
    if claims[2].is_ok() {
        assert_eq!(now(&lost), Err(OperationRefusal::NotKept), "{what}");
    }
    assert!(reaped.is_err() || reaped.is_ok_and(|reaped| reaped.len() <= 3), "{what}");
    assert!(operations < fails || database.last_error().is_some(), "{what}: nobody was told");
    // The counts are still those of what is there.
    assert!(again.operations(&HOST, 10).expect("the database works again").len() <= 3, "{what}");
    operations
}

#[test]
fn f1_every_operation_of_the_journal_may_fail() {
    for (mode, more) in [(Mode::Before, 0), (Mode::After, 0)] {
        let mut fails = 1;
        while operate(mode, fails, more) >= fails {
            fails += 1;
        }
        assert!(fails > 40, "the loop saw {fails} operations");
    }
}
