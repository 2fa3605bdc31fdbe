//! Operations of the database that fail, for tests.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::{Error, ffi};

use crate::database::lock;

/// The status of a process that a fault has ended.
pub(crate) const ENDED: i32 = 77;

/// Where an operation fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mode {
    /// It does nothing, and fails.
    #[default]
    Before,
    /// It does what it should, and is told to have failed.
    After,
    /// The process ends before it, as if it were killed.
    EndsBefore,
    /// The process ends when it is done.
    EndsAfter,
}

/// Which operations fail. None by itself.
#[derive(Default)]
pub(crate) struct Faults {
    pub(crate) mode: Mutex<Mode>,
    /// How many operations there were.
    pub(crate) count: AtomicUsize,
    /// How many transactions were to be committed.
    pub(crate) commits: AtomicUsize,
    /// The number of the operation that fails, from 1.
    pub(crate) fails: AtomicUsize,
    /// How many after it fail, too.
    pub(crate) more: AtomicUsize,
}

impl Faults {
    pub(crate) fn set(&self, mode: Mode, fails: usize, more: usize) {
        *lock(&self.mode) = mode;
        self.count.store(0, Ordering::Relaxed);
        self.more.store(more, Ordering::Relaxed);
        self.fails.store(fails, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) -> usize {
        self.fails.store(0, Ordering::Relaxed);
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn around<R>(&self, operation: impl FnOnce() -> rusqlite::Result<R>) -> rusqlite::Result<R> {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let first = self.fails.load(Ordering::Relaxed);
        if first == 0 || number < first || number > first + self.more.load(Ordering::Relaxed) {
            return operation();
        }
        let mode = *lock(&self.mode);
        if matches!(mode, Mode::After | Mode::EndsAfter) {
            let done = operation();
            if mode == Mode::EndsAfter {
                // Before anything of it is dropped: a transaction that is dropped is rolled back.
                std::process::exit(ENDED);
            }
            drop(done);
        } else if mode == Mode::EndsBefore {
            std::process::exit(ENDED);
        }
        Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR), None))
    }
}
