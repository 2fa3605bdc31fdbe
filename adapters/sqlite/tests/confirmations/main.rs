//! The store of confirmations in SQLite passes the suite of every store.
#![cfg(test)]

#[path = "../../../../std-runtime/tests/confirmations/bench.rs"]
mod bench;
#[path = "../../../../std-runtime/tests/confirmations/clocks.rs"]
mod clocks;
#[path = "../../../../std-runtime/tests/confirmations/grants.rs"]
mod grants;
#[path = "../../../../std-runtime/tests/confirmations/model.rs"]
mod model;
mod on_disk;
#[path = "../../../../std-runtime/tests/confirmations/races.rs"]
mod races;
#[path = "../../../../std-runtime/tests/confirmations/reopened.rs"]
mod reopened;
#[path = "../../../../std-runtime/tests/confirmations/suite.rs"]
mod suite;

use std::path::Path;
use std::sync::Arc;

use callgate_sqlite::{Database, SqliteConfirmations};
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{Capacity, ConfirmationStore};
use callgate_std::entropy::SeededEntropy;

use bench::Bench;
use grants::every_store_of_grants;
use reopened::every_shared_store;
use suite::every_store;

fn open(path: &Path, capacity: Capacity, clock: &ManualClock, seed: u64) -> SqliteConfirmations {
    let database = Arc::new(Database::open(path).expect("new, or whole"));
    SqliteConfirmations::with(database, capacity, clock.shared(), SeededEntropy::shared(seed))
}

fn sqlite(capacity: Capacity) -> Bench {
    let clock = ManualClock::new();
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("gate.db"), capacity, &clock, 7);
    Bench { _keep: Some(directory), ..Bench::new(store, clock, SqliteConfirmations::attach_approvers) }
}

/// The store as another process would open it.
fn at(path: &Path, clock: &ManualClock, seed: u64) -> Box<dyn ConfirmationStore> {
    let store = open(path, Capacity::DEFAULT, clock, seed);
    store.attach_approvers(true);
    Box::new(store)
}

/// The store that the processes of [`races`] meet at.
fn shared(path: &Path) -> Box<dyn ConfirmationStore> {
    Box::new(SqliteConfirmations::open(path).expect("new, or whole"))
}

every_store!(sqlite);
every_store_of_grants!(sqlite);
every_shared_store!(sqlite: at);

mod clock {
    crate::clocks::every_clock!(sqlite: sqlite, at);
}

#[test]
fn n2_sqlite_refines_the_model() {
    model::refines(&sqlite, 12, false, model::SetBack::GivesUp);
}

#[test]
fn c2_sqlite_refines_the_model_while_the_clock_steps() {
    model::refines(&sqlite, 12, true, model::SetBack::GivesUp);
}

#[test]
fn a5_one_claim_among_processes() {
    races::a5_one_claim_among_processes(2, 200);
}

#[test]
fn j3_a_killed_process_loses_and_doubles_nothing() {
    races::j3_a_killed_process_loses_and_doubles_nothing();
}
