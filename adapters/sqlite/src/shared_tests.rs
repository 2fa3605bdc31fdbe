//! Steps that share a transaction: what each is told is so on the disk, and a failure is everybody's whom it concerns (invariants F1,
//! A5, J3, X3).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use callgate_core::digest::Digest;
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{Capacity, ConfirmationStore, Refusal, StoreFault};
use callgate_std::entropy::SeededEntropy;

use crate::bench::{TTL, presented, request};
use crate::database::lock;
use crate::driven::{Case, drive};
use crate::error::DatabaseError;
use crate::faults::Mode;
use crate::turn::MAX_STEPS;
use crate::{Database, SqliteAudit, SqliteConfirmations};

/// So that no busy machine plays a part.
const WAIT: Duration = Duration::from_secs(600);

/// A file, as this process has it open and as another one does.
struct Shop {
    _directory: tempfile::TempDir,
    database: Arc<Database>,
    other: Database,
}

impl Shop {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let open = |path: &Path| Database::open_with(path, WAIT).expect("new");
        let path = directory.path().join("gate.db");
        Self { database: Arc::new(open(&path)), other: open(&path), _directory: directory }
    }

    /// As the same file is found by whoever opens it next.
    fn store_of(database: &Arc<Database>) -> SqliteConfirmations {
        let clock = ManualClock::new();
        SqliteConfirmations::with(Arc::clone(database), Capacity::DEFAULT, clock.shared(), SeededEntropy::shared(7))
    }

    fn reopened(&self) -> SqliteConfirmations {
        Self::store_of(&Arc::new(Database::open_with(self.database.path(), WAIT).expect("whole")))
    }

    /// What these give who come in this order while another process has the file: the first waits for that one, and the others for the
    /// first.
    fn together<R: Send>(&self, callers: Vec<Box<dyn FnOnce() -> R + Send + '_>>) -> Vec<R> {
        thread::scope(|scope| {
            let held = self.other.step(|_| {
                let mut threads = Vec::new();
                for caller in callers {
                    threads.push(scope.spawn(caller));
                    // Who fails at once does not wait.
                    let gone = || threads.iter().filter(|thread| thread.is_finished()).count();
                    while self.database.in_line() + gone() < threads.len() {
                        thread::yield_now();
                    }
                }
                Ok(threads)
            });
            let threads = held.expect("the other process has no trouble");
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }
}

type Claimed = Result<Result<callgate_std::confirmations::By, Refusal>, StoreFault>;

/// Four tickets, and five who claim one, the last two the same.
fn claims(shop: &Shop, mode: Mode, fails: usize, more: usize) -> (Vec<Digest>, Vec<Claimed>, usize, usize) {
    let store = Shop::store_of(&shop.database);
    let tickets: Vec<_> = (0..4).map(|_| store.issue(&request(1), TTL).expect("room").token.hash()).collect();
    let commits = || shop.database.faults.commits.load(Ordering::Relaxed);
    let before = commits();
    shop.database.faults.set(mode, fails, more);
    let store = &store;
    let callers = [0, 1, 2, 3, 3].map(|at| {
        let ticket = tickets[at];
        Box::new(move || store.claim(ticket, &presented(1))) as Box<dyn FnOnce() -> Claimed + Send>
    });
    let claimed = shop.together(callers.into());
    let operations = shop.database.faults.clear();
    (tickets, claimed, operations, commits() - before)
}

#[test]
fn a5_steps_that_wait_share_one_commit() {
    let shop = Shop::new();
    let (tickets, claimed, _, commits) = claims(&shop, Mode::Before, 0, 0);
    assert_eq!(commits, 1);
    assert!(claimed[..4].iter().all(|claimed| claimed.is_ok_and(|claimed| claimed.is_ok())), "{claimed:?}");
    assert_eq!(claimed[4], Ok(Err(Refusal::Used)), "A5: one of them, also within a transaction");
    for ticket in tickets {
        assert_eq!(shop.reopened().claim(ticket, &presented(1)), Ok(Err(Refusal::Used)));
    }
}

/// F1, J3: whatever operation fails, nobody is told of what is not on the disk, and nothing is claimed twice.
#[test]
fn f1_every_operation_of_a_shared_transaction_may_fail() {
    for mode in [Mode::Before, Mode::After] {
        for more in [0, 2] {
            let mut seen = 0;
            for fails in 1.. {
                let what = format!("{mode:?} at operation {fails} and {more} more");
                let shop = Shop::new();
                let (tickets, claimed, operations, _) = claims(&shop, mode, fails, more);
                let store = shop.reopened();
                for (at, ticket) in tickets.iter().enumerate() {
                    let told = &claimed[at..if at == 3 { 5 } else { at + 1 }];
                    let won = told.iter().filter(|told| matches!(told, Ok(Ok(_)))).count();
                    assert!(won <= 1, "{what}: claimed twice: {claimed:?}");
                    let then = store.claim(*ticket, &presented(1)).expect("the database works again");
                    let unknown = told.contains(&Err(StoreFault));
                    let is_so = match then {
                        Err(refusal) => refusal == Refusal::Used && (won == 1 || unknown),
                        Ok(_) => won == 0 && unknown,
                    };
                    assert!(is_so, "{what}: {at} was told {told:?}, and is {then:?}");
                    assert_eq!(store.claim(*ticket, &presented(1)), Ok(Err(Refusal::Used)), "{what}");
                }
                if fails <= operations {
                    assert!(claimed.contains(&Err(StoreFault)), "{what}: nobody was told");
                    assert!(shop.database.last_error().is_some(), "{what}: nobody was told");
                } else {
                    seen = operations;
                    break;
                }
            }
            assert!(seen > 20, "the loop saw {seen} operations");
        }
    }
}

/// F1: the error of a commit is everybody's who had a part in it. The commit is the last operation.
#[test]
fn f1_an_error_of_a_commit_reaches_every_caller() {
    let (_, _, last, _) = claims(&Shop::new(), Mode::Before, 0, 0);
    for mode in [Mode::Before, Mode::After] {
        let shop = Shop::new();
        let (_, claimed, _, commits) = claims(&shop, mode, last, 0);
        assert_eq!((commits, claimed), (1, vec![Err(StoreFault); 5]), "{mode:?}");
    }
}

fn mark(shop: &Shop, ms: i64, more: impl FnOnce() -> Result<(), DatabaseError>) -> Result<(), DatabaseError> {
    shop.database.step(|link| {
        link.execute("UPDATE confirmations SET time_ms = time_ms + ?1", [ms])?;
        more()
    })
}

fn marked(shop: &Shop) -> i64 {
    shop.other.step(|link| link.one("SELECT time_ms FROM confirmations", [], |row| row.get(0))).expect("readable")
}

/// Steps that add 1, 10, 100 and so on, of which one, by its place, ends as `odd` says.
fn steps(shop: &Shop, at: usize, odd: fn(&Database) -> Result<(), DatabaseError>) -> Vec<Option<bool>> {
    let callers = (0..4).map(|place| {
        let ms = 10_i64.pow(place);
        let more = move || if place as usize == at { odd(&shop.database) } else { Ok(()) };
        let caller = move || catch_unwind(AssertUnwindSafe(|| mark(shop, ms, more).is_ok())).ok();
        Box::new(caller) as Box<dyn FnOnce() -> Option<bool> + Send>
    });
    shop.together(callers.collect())
}

/// F1: a step that fails by itself leaves nothing behind, and the others alone.
#[test]
fn f1_a_step_that_fails_leaves_the_others_alone() {
    for at in 0..4 {
        let shop = Shop::new();
        let told = steps(&shop, at, |database| Err(database.damaged("a planted fault")));
        let expected: Vec<_> = (0..4).map(|place| Some(place != at)).collect();
        assert_eq!(told, expected, "{at}");
        assert_eq!(marked(&shop), 1_111 - 10_i64.pow(u32::try_from(at).expect("small")), "{at}");
        assert_eq!(shop.database.in_line(), 0);
    }
}

/// X3, F1: a panic in a step takes away no lock and no turn, and whoever shared its transaction is told that it failed.
#[test]
fn x3_a_panic_fails_the_transaction_and_nothing_after_it() {
    for at in 0..4 {
        let shop = Shop::new();
        let told = steps(&shop, at, |_| panic!("a planted panic"));
        let expected: Vec<_> = (0..4).map(|place| if place == at { None } else { Some(place > at) }).collect();
        assert_eq!(told, expected, "{at}");
        let after: i64 = (at + 1..4).map(|place| 10_i64.pow(u32::try_from(place).expect("small"))).sum();
        assert_eq!(marked(&shop), after, "{at}");
        mark(&shop, 1, || Ok(())).expect("it goes on");
        assert_eq!(shop.database.in_line(), 0);
    }
}

/// J3: nobody is answered before the commit. Steps are taken in the order in which they came, a bounded number in a transaction.
#[test]
fn j3_nobody_is_answered_before_the_commit() {
    let shop = Shop::new();
    let (answered, order) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let commits = || shop.database.faults.commits.load(Ordering::Relaxed);
    let before = commits();
    let callers = (0..=MAX_STEPS + 1).map(|place| {
        let (shop, answered, order) = (&shop, &answered, &order);
        let caller = move || {
            let result = mark(shop, 1, || {
                // Of the first transaction; of the second nobody can tell.
                assert!(place > MAX_STEPS || answered.load(Ordering::SeqCst) == 0, "{place}");
                lock(order).push(place);
                Ok(())
            });
            answered.fetch_add(1, Ordering::SeqCst);
            result.is_ok()
        };
        Box::new(caller) as Box<dyn FnOnce() -> bool + Send>
    });
    assert!(shop.together(callers.collect()).into_iter().all(|told| told));
    assert_eq!(*lock(&order), (0..=MAX_STEPS + 1).collect::<Vec<_>>());
    assert_eq!(commits() - before, 2);
    assert_eq!(marked(&shop), i64::try_from(MAX_STEPS).expect("small") + 2);
}

/// J3: every commit is on the disk before it is answered, also after the file was opened again.
#[test]
fn j3_every_connection_waits_for_the_disk() {
    let shop = Shop::new();
    let asked = || {
        shop.database.step(|link| {
            let full: i64 = link.one("PRAGMA synchronous", [], |row| row.get(0))?;
            let mode: String = link.one("PRAGMA journal_mode", [], |row| row.get(0))?;
            Ok((full, mode))
        })
    };
    let expected = (2, "wal".to_owned());
    assert_eq!(asked().expect("readable"), expected);
    shop.database.faults.set(Mode::Before, 1, 0);
    assert!(asked().is_err());
    shop.database.faults.clear();
    assert_eq!(asked().expect("readable"), expected);
}

/// J1, J8: the log and the confirmations share transactions, and each keeps its own rules where one fails.
#[test]
fn j8_the_log_loses_nothing_where_it_shares_a_transaction_that_fails() {
    let (_, _, last, _) = claims(&Shop::new(), Mode::Before, 0, 0);
    for mode in [Mode::Before, Mode::After] {
        for fails in 1..=last {
            let what = format!("{mode:?} at operation {fails}");
            let shop = Shop::new();
            let log = SqliteAudit::on(Arc::clone(&shop.database)).expect("new");
            let store = Shop::store_of(&shop.database);
            let ticket = store.issue(&request(1), TTL).expect("room").token.hash();
            shop.database.faults.set(mode, fails, 0);
            let (log, store) = (&log, &store);
            let told = shop.together(vec![
                Box::new(move || store.claim(ticket, &presented(1)).is_ok()) as Box<dyn FnOnce() -> bool + Send>,
                Box::new(move || drive(Case { end: "done", mutating: false }, "r1", log).is_ok()),
                Box::new(move || store.load(ticket).is_ok()),
            ]);
            shop.database.faults.clear();
            log.flush().expect("the database works again");
            let report = log.verify(None).expect("readable");
            assert!(report.is_intact() && report.terminals == 1 && log.lost() == 0, "{what}: {told:?} {report:?}");
        }
    }
}
