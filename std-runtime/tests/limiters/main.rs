//! The limiter in a file of text passes the suite of every limiter that outlives its process.
#![cfg(test)]

mod suite;

use std::path::Path;

use callgate_std::clock::ManualClock;
use callgate_std::limiter::{FileLimiter, Quota, RateLimiter};

fn open(path: &Path, quota: Quota, keys: usize, clock: &ManualClock) -> Box<dyn RateLimiter> {
    Box::new(FileLimiter::open_with(path, move |_| quota, clock.shared(), keys).expect("new, or whole"))
}

suite::every_shared_limiter!(file: open);
