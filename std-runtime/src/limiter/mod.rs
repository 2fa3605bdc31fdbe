//! Rate limiters: who keeps the buckets of [`callgate_core::limit`].

mod file;
mod memory;
mod quotas;

pub use file::{FILE_KEYS, FileLimiter, LimitFileError};
pub use memory::{DEFAULT_KEYS, MemoryLimiter};
pub use quotas::{QuotaScope, Quotas};

pub use callgate_core::call::{Charge, ChargeMode, Refund, StoreFault};
pub use callgate_core::limit::{Allowance, LimitKey, Purpose, Quota, QuotaError, Receipt};

use std::sync::Arc;

/// A blocking limiter. Every method is one atomic step.
pub trait RateLimiter: Send + Sync {
    /// Takes a charge, or only says whether it could be taken ([`ChargeMode::Probe`], which leaves nothing behind: invariants
    /// R4, R5).
    ///
    /// # Errors
    /// The limiter failed; the call must not run.
    fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault>;

    /// Gives a part of a charge back. A receipt is settled once.
    ///
    /// # Errors
    /// The limiter failed; whether the units came back is unknown, which costs the caller at most those units.
    fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault>;

    /// Charges 1 for a call that was refused for what its caller sent or is (invariant R3).
    ///
    /// # Errors
    /// The limiter failed; the attempts then count as used up.
    fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault>;
}

impl<L: RateLimiter + ?Sized> RateLimiter for Arc<L> {
    fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        (**self).charge(charge)
    }

    fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault> {
        (**self).refund(refund)
    }

    fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        (**self).attempt(key)
    }
}
