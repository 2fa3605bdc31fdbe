//! How a blocking gate is built.

use std::fmt;
use std::sync::Arc;

use callgate_core::audit::Audit;

use super::{Cancelled, Gate, Parts};
use crate::clock::{SharedClock, SystemClock};
use crate::common::{CommonBuilder, GateError};
use crate::confirmations::{Capacity, ConfirmationStore, MemoryConfirmations};
use crate::interceptors::Interceptors;
use crate::journal::Journal;
use crate::limiter::{DEFAULT_KEYS, MemoryLimiter, Quotas, RateLimiter};
use crate::output::Reply;
use crate::policy::{ChannelPolicies, Policy};
use crate::registry::ToolSource;

/// Builds a [`Gate`]. What is not given has a default that is safe, and none of the defaults widens access.
#[must_use]
pub struct GateBuilder {
    common: CommonBuilder,
    policy: Option<Arc<dyn Policy>>,
    limiter: Option<Arc<dyn RateLimiter>>,
    unlimited: bool,
    confirmations: Option<Arc<dyn ConfirmationStore>>,
    journal: Option<Arc<dyn Journal>>,
    interceptors: Interceptors<Reply>,
    audit: Option<Arc<dyn Audit + Send + Sync>>,
    clock: SharedClock,
    cancelled: Option<Box<Cancelled>>,
}

impl fmt::Debug for GateBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateBuilder").finish_non_exhaustive()
    }
}

impl GateBuilder {
    pub(super) fn new(tools: impl ToolSource + 'static) -> Self {
        Self {
            common: CommonBuilder::new(Arc::new(tools)),
            policy: None,
            limiter: None,
            unlimited: false,
            confirmations: None,
            journal: None,
            interceptors: Interceptors::new(),
            audit: None,
            clock: SystemClock::shared(),
            cancelled: None,
        }
    }

    crate::common_options!();

    /// Decides with this policy instead of the built-in channels.
    pub fn policy(mut self, policy: impl Policy + 'static) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Limits with this limiter instead of the built-in one (100 units per 60 s for each channel, principal and tool).
    pub fn limiter(mut self, limiter: Arc<dyn RateLimiter>) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Limits nothing.
    pub const fn unlimited(mut self) -> Self {
        self.unlimited = true;
        self
    }

    /// Keeps pending confirmations in this store instead of in memory.
    pub fn confirmations(mut self, store: Arc<dyn ConfirmationStore>) -> Self {
        self.confirmations = Some(store);
        self
    }

    /// Keeps operations in this journal. Without one, calls that carry the id of an operation are refused: there is none by default,
    /// because one in memory would forget with the process what its callers rely on.
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Asks these interceptors.
    pub fn interceptors(mut self, interceptors: Interceptors<Reply>) -> Self {
        self.interceptors = interceptors;
        self
    }

    /// Records to this sink. Without one the gate records through `tracing` only.
    pub fn audit(mut self, audit: Arc<dyn Audit + Send + Sync>) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Reads this clock instead of the system's.
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = clock;
        self
    }

    /// Asks this whether whoever calls is gone, for programs that serve one caller: before a tool starts, in which case it
    /// doesn't, and for bodies that [ask](crate::tool::ToolCall::is_cancelled) while they run. A body that blocks and does not ask
    /// is not stopped.
    pub fn cancelled_when(mut self, cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.cancelled = Some(Box::new(cancelled));
        self
    }

    /// Builds the gate.
    ///
    /// # Errors
    /// Something that it cannot work with.
    pub fn build(self) -> Result<Gate, GateError> {
        let approvers = self.common.approvers;
        let common = self.common.build(self.clock)?;
        let policy = match self.policy {
            Some(policy) => policy,
            None => Arc::new(ChannelPolicies::builder().build()?),
        };
        let limiter = match (self.limiter, self.unlimited) {
            (_, true) => None,
            (Some(limiter), false) => Some(limiter),
            (None, false) => Some(default_limiter(&common.clock)),
        };
        let confirmations = self.confirmations.unwrap_or_else(|| {
            let store = MemoryConfirmations::with(Capacity::default(), common.clock.clone(), common.entropy.clone());
            store.attach_approvers(approvers);
            Arc::new(store)
        });
        Ok(Gate(Arc::new(Parts {
            common,
            policy,
            limiter,
            confirmations,
            journal: self.journal,
            interceptors: self.interceptors,
            audit: self.audit,
            cancelled: self.cancelled,
        })))
    }
}

/// The limiter of a gate that is given none.
#[doc(hidden)]
#[must_use]
pub fn default_limiter(clock: &SharedClock) -> Arc<dyn RateLimiter> {
    let quotas = Quotas::default();
    Arc::new(MemoryLimiter::with(move |key| quotas.of(key), clock.clone(), DEFAULT_KEYS))
}
