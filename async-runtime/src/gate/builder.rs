//! How an async gate is built.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callgate_std::common::{CommonBuilder, GateError};
use callgate_std::confirmations::{Capacity, MemoryConfirmations};
use callgate_std::gate::default_limiter;
use callgate_std::policy::ChannelPolicies;
use callgate_std::registry::ToolSource;

use super::{DEFAULT_STAGE_LIMIT, Gate, Parts};
use crate::audit::AuditSeam;
use crate::confirmations::ConfirmationSeam;
use crate::interceptors::Interceptors;
use crate::journal::JournalSeam;
use crate::limiter::LimiterSeam;
use crate::policy::PolicySeam;
use crate::runtime::{self, Runtime};
use crate::seam::{Immediate, Seam};

/// Builds a [`Gate`]. What is not given has a default that is safe, and none of the defaults widens access.
///
/// Whatever may wait is given in one of three wrappers, which say how it is run: [`Waiting`](crate::seam::Waiting),
/// [`Blocking`](crate::seam::Blocking), [`Immediate`].
#[must_use]
pub struct GateBuilder {
    common: CommonBuilder,
    runtime: Arc<dyn Runtime>,
    policy: Option<PolicySeam>,
    limiter: Option<LimiterSeam>,
    unlimited: bool,
    confirmations: Option<ConfirmationSeam>,
    journal: Option<JournalSeam>,
    interceptors: Interceptors,
    audit: Option<AuditSeam>,
    stage_limit: Duration,
}

impl fmt::Debug for GateBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateBuilder").finish_non_exhaustive()
    }
}

impl GateBuilder {
    pub(super) fn new(tools: impl ToolSource + 'static, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            common: CommonBuilder::new(Arc::new(tools)),
            runtime,
            policy: None,
            limiter: None,
            unlimited: false,
            confirmations: None,
            journal: None,
            interceptors: Interceptors::new(),
            audit: None,
            stage_limit: DEFAULT_STAGE_LIMIT,
        }
    }

    callgate_std::common_options!();

    /// Decides with this policy instead of the built-in channels.
    pub fn policy(mut self, policy: impl Into<PolicySeam>) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// Limits with this limiter instead of the built-in one (100 units per 60 s for each channel, principal and tool).
    pub fn limiter(mut self, limiter: impl Into<LimiterSeam>) -> Self {
        self.limiter = Some(limiter.into());
        self
    }

    /// Limits nothing.
    pub const fn unlimited(mut self) -> Self {
        self.unlimited = true;
        self
    }

    /// Keeps pending confirmations in this store instead of in memory.
    pub fn confirmations(mut self, store: impl Into<ConfirmationSeam>) -> Self {
        self.confirmations = Some(store.into());
        self
    }

    /// Keeps operations in this journal. Without one, calls that carry the id of an operation are refused: there is none by default,
    /// because one in memory would forget with the process what its callers rely on.
    pub fn journal(mut self, journal: impl Into<JournalSeam>) -> Self {
        self.journal = Some(journal.into());
        self
    }

    /// Asks these interceptors.
    pub fn interceptors(mut self, interceptors: Interceptors) -> Self {
        self.interceptors = interceptors;
        self
    }

    /// Records to this sink.
    pub fn audit(mut self, audit: impl Into<AuditSeam>) -> Self {
        self.audit = Some(audit.into());
        self
    }

    /// Gives each question to a policy, a limiter, a store or a sink that [waits](crate::seam::Waiting) this long (10 s by default).
    /// One that takes longer is dropped, and counts as failed (invariant F1). Those that block are not stopped.
    pub const fn stage_limit(mut self, limit: Duration) -> Self {
        self.stage_limit = limit;
        self
    }

    /// Builds the gate.
    ///
    /// # Errors
    /// Something that it cannot work with.
    pub fn build(self) -> Result<Gate, GateError> {
        let approvers = self.common.approvers;
        let common = self.common.build(runtime::clock(&self.runtime))?;
        let policy = match self.policy {
            Some(policy) => policy,
            None => Immediate(ChannelPolicies::builder().build()?).into(),
        };
        let limiter = match (self.limiter, self.unlimited) {
            (_, true) => None,
            (Some(limiter), false) => Some(limiter),
            (None, false) => Some(Seam::Immediate(default_limiter(&common.clock))),
        };
        let confirmations = self.confirmations.unwrap_or_else(|| {
            let store = MemoryConfirmations::with(Capacity::default(), common.clock.clone(), common.entropy.clone());
            store.attach_approvers(approvers);
            Immediate(store).into()
        });
        Ok(Gate(Arc::new(Parts {
            common,
            runtime: self.runtime,
            policy,
            limiter,
            confirmations,
            journal: self.journal,
            interceptors: self.interceptors,
            audit: self.audit,
            stage_limit: self.stage_limit,
        })))
    }
}
