//! Rate limiters that may wait.

use async_trait::async_trait;
use callgate_std::limiter::RateLimiter as BlockingLimiter;
pub use callgate_std::limiter::{Allowance, Charge, ChargeMode, LimitKey, Refund, StoreFault};

use crate::seam::{Seam, seams};

/// A limiter. Every method is one atomic step; the future of one that is dropped may or may not have taken it. See
/// [`callgate_std::limiter::RateLimiter`].
#[async_trait]
pub trait RateLimiter: Send + Sync {
    /// Takes a charge, or only says whether it could be taken ([`ChargeMode::Probe`], which leaves nothing behind).
    ///
    /// # Errors
    /// The limiter failed; the call must not run.
    async fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault>;

    /// Gives a part of a charge back. A receipt is settled once.
    ///
    /// # Errors
    /// The limiter failed; whether the units came back is unknown.
    async fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault>;

    /// Charges 1 for a call that was refused for what its caller sent or is (invariant R3).
    ///
    /// # Errors
    /// The limiter failed; the attempts then count as used up.
    async fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault>;
}

/// How the gate reaches its limiter.
pub type LimiterSeam = Seam<dyn RateLimiter, dyn BlockingLimiter>;
seams!(LimiterSeam, RateLimiter, BlockingLimiter);
