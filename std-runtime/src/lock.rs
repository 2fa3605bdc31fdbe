//! What threads of this crate meet at: locks that a panic elsewhere cannot take away (invariant X3), atomics, and a pointer that
//! is replaced. Under `--cfg callgate_model` they are `loom`'s, whose every order of steps the tests in `tests/models`
//! run through. [`Arc`](std::sync::Arc) is the standard library's in both: who counts references is no part of the models.

use std::sync::PoisonError;

#[cfg(not(callgate_model))]
mod primitives {
    pub(crate) use arc_swap::ArcSwap;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard};
}

#[cfg(callgate_model)]
mod primitives {
    pub(crate) use super::modelled::ArcSwap;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
}

pub(crate) use primitives::{ArcSwap, AtomicBool, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};

/// Locks, whether or not a thread panicked while it held the lock. Every critical section in this crate leaves its value
/// whole at each point at which it could unwind, so a poisoned lock says nothing about the value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(callgate_model)]
mod modelled {
    use std::sync::{Arc, Mutex, PoisonError};

    use loom::sync::atomic::{AtomicUsize, Ordering};

    /// The `arc-swap` of a model: what its documentation promises, and no more. Its own protocol of debts and hazards is not
    /// looked into.
    ///
    /// A load is one acquiring read that may show what was replaced, as long as nothing tells the reader of the swap; a swap
    /// is one read-modify-write. `arc-swap` promises a total order of both, so whatever holds here holds there.
    pub(crate) struct ArcSwap<T> {
        /// All values that there ever were. Not seen by the model: a lock of it would order what the atomic does not.
        values: Mutex<Vec<Arc<T>>>,
        current: AtomicUsize,
    }

    impl<T> ArcSwap<T> {
        pub(crate) fn new(value: Arc<T>) -> Self {
            Self { values: Mutex::new(vec![value]), current: AtomicUsize::new(0) }
        }

        pub(crate) fn load(&self) -> Arc<T> {
            self.value(self.current.load(Ordering::Acquire))
        }

        pub(crate) fn load_full(&self) -> Arc<T> {
            self.load()
        }

        pub(crate) fn swap(&self, value: Arc<T>) -> Arc<T> {
            let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            values.push(value);
            let fresh = values.len().saturating_sub(1);
            drop(values);
            self.value(self.current.swap(fresh, Ordering::AcqRel))
        }

        fn value(&self, index: usize) -> Arc<T> {
            let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            #[expect(clippy::indexing_slicing, reason = "only indices of values are stored, and no value is taken out")]
            Arc::clone(&values[index])
        }
    }
}
