//! Locks that a panic elsewhere cannot take away (invariant X3).

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, whether or not a thread panicked while it held the lock. Every critical section in this crate leaves its value
/// whole at each point at which it could unwind, so a poisoned lock says nothing about the value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
