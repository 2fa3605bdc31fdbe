//! The limiter in SQLite passes the suite of every limiter that outlives its process.
#![cfg(test)]

#[path = "../../../../std-runtime/tests/limiters/suite.rs"]
mod suite;

use std::path::Path;
use std::sync::Arc;

use callgate_sqlite::{Database, SqliteLimiter};
use callgate_std::clock::ManualClock;
use callgate_std::limiter::{Quota, RateLimiter};

fn open(path: &Path, quota: Quota, keys: usize, clock: &ManualClock) -> Box<dyn RateLimiter> {
    let database = Arc::new(Database::open(path).expect("new, or whole"));
    Box::new(SqliteLimiter::with(database, move |_| quota, clock.shared(), keys).expect("new, or whole"))
}

suite::every_shared_limiter!(sqlite: open);
