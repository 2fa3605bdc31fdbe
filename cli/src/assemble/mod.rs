//! From a configuration to a gate: tools with their adjustments, policy, and the files in which the command keeps what has to
//! outlive it.

pub(crate) mod checkpoints;
mod error;
mod exec;
mod later;
mod policy;
#[cfg(feature = "mcp")]
mod served;
mod signed;
mod state;
mod stores;
mod tools;
mod upkeep;
#[cfg(feature = "mcp")]
pub(crate) mod upstreams;

use std::path::PathBuf;
use std::sync::Arc;

use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::call::{Charge, Finish, IssueFault, Issued, Loaded, Refund, StoreFault};
use callgate_core::confirm::{By, Decided, FinishError, Presented, Refusal, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::limit::{Allowance, LimitKey};
use callgate_std::audit::SharedAudit;
use callgate_std::confirmations::{ConfirmationStore, DecideFault, PendingApproval, PendingRequest, Snapshot};
use callgate_std::gate::{Gate, GateBuilder};
use callgate_std::limiter::RateLimiter;
use callgate_std::registry::Registry;

pub(crate) use error::AssembleError;
#[cfg(feature = "mcp")]
pub(crate) use served::Served;
pub(crate) use state::StateFiles;
pub(crate) use upkeep::{Found, Upkeep};

use crate::config::Config;
use later::Later;

/// What a configuration comes to, with nothing opened and nothing written: enough to list, to inspect and to check.
pub(crate) struct Plan<'c> {
    config: &'c Config,
    files: StateFiles,
    registry: Registry,
    /// What tools ask that are listed before it is opened.
    waiting: Arc<Later>,
    policy: callgate_std::policy::ChannelPolicies,
}

impl<'c> Plan<'c> {
    /// Puts the configuration together.
    ///
    /// # Errors
    /// Everything that is wrong with it (invariant F7).
    pub(crate) fn of(config: &'c Config) -> Result<Self, AssembleError> {
        let files = StateFiles::of(config);
        let waiting = Arc::new(Later::default());
        let registry = tools::registry(config, &files, &waiting)?;
        let policy = policy::policy(config)?;
        Ok(Self { config, files, registry, waiting, policy })
    }

    /// The tools.
    pub(crate) const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Where the command keeps what has to outlive it.
    pub(crate) const fn files(&self) -> &StateFiles {
        &self.files
    }

    /// A gate that can be looked at and lets nothing pass: none of its stores answers.
    ///
    /// # Errors
    /// The gate can't be built.
    pub(crate) fn closed_gate(self) -> Result<Gate, AssembleError> {
        let closed = Arc::new(Closed);
        let builder =
            self.builder().limiter(closed.clone()).confirmations(closed.clone()).audit(closed).digest_key([0; 32]);
        Ok(builder.build()?)
    }

    /// A gate that keeps nothing, for plans: its digests are those of the gate with its files, where there is a key for them.
    ///
    /// # Errors
    /// The gate can't be built, or the key can't be read.
    pub(crate) fn replaying_gate(self, audit: SharedAudit) -> Result<Gate, AssembleError> {
        let key_file = self.files.digest_key.clone();
        let builder = self.builder().audit(audit);
        let builder = if key_file.exists() {
            builder.digest_key(callgate_std::digest_key::load_or_make(
                &key_file,
                &callgate_std::entropy::OsEntropy::default(),
            )?)
        } else {
            builder
        };
        Ok(builder.build()?)
    }

    /// The gate, with its files opened.
    ///
    /// # Errors
    /// A file can't be used; nothing passes then (invariant F1).
    pub(crate) fn open(self, extra: Option<SharedAudit>) -> Result<Open, AssembleError> {
        let stores = state::open(self.config, &self.files, extra)?;
        self.waiting.set(stores.waiting.store());
        let builder = self
            .builder()
            .limiter(stores.budgets.limiter())
            .confirmations(stores.waiting.store())
            .audit(stores.audit.clone())
            .digest_key(stores.digest_key)
            .cancelled_when(crate::interrupt::happened);
        let builder = match stores.waiting.journal() {
            Some(journal) => builder.journal(journal),
            None => builder,
        };
        Ok(Open { gate: builder.build()?, stores })
    }

    /// The same on an executor, for callers that come at the same time.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    #[cfg(feature = "mcp")]
    pub(crate) fn open_async(
        self,
        runtime: impl callgate_async::runtime::Runtime,
        extra: Option<SharedAudit>,
    ) -> Result<OpenAsync, AssembleError> {
        let registry = self.registry.clone();
        self.open_async_over(registry, runtime, extra)
    }

    /// The same over other tools than those of the configuration.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    #[cfg(feature = "mcp")]
    pub(crate) fn open_async_over(
        self,
        tools: impl callgate_std::registry::ToolSource + 'static,
        runtime: impl callgate_async::runtime::Runtime,
        extra: Option<SharedAudit>,
    ) -> Result<OpenAsync, AssembleError> {
        use callgate_async::seam::{Blocking, Immediate};

        let stores = state::open(self.config, &self.files, extra)?;
        self.waiting.set(stores.waiting.store());
        let Self { config, policy, .. } = self;
        let gate = callgate_async::gate::Gate::builder(tools, runtime)
            .policy(Immediate(policy))
            .redact(&config.redacted_fields)
            .policy_digest(config.digest())
            .confirmation_ttl_ms(ttl_ms(config))
            // A model has no other place for a token.
            .accept_reserved_argument()
            .limiter(Blocking(stores.budgets.limiter()))
            .confirmations(Blocking(stores.waiting.store()))
            .audit(Blocking(stores.audit.clone()))
            .digest_key(stores.digest_key)
            .with_approvers();
        let gate = match stores.waiting.journal() {
            Some(journal) => gate.journal(Blocking(journal)),
            None => gate,
        };
        let gate = gate.build()?;
        Ok(OpenAsync { gate, stores })
    }

    fn builder(self) -> GateBuilder {
        let Self { config, registry, policy, .. } = self;
        let builder = Gate::builder(registry)
            .policy(policy)
            .redact(&config.redacted_fields)
            .policy_digest(config.digest())
            .confirmation_ttl_ms(ttl_ms(config));
        if config.confirmation.accept_reserved_argument { builder.accept_reserved_argument() } else { builder }
    }
}

fn ttl_ms(config: &Config) -> u64 {
    u64::try_from(config.confirmation.ttl.as_millis()).unwrap_or(u64::MAX)
}

/// A gate on an executor with its files.
#[cfg(feature = "mcp")]
pub(crate) struct OpenAsync {
    pub(crate) gate: callgate_async::gate::Gate,
    pub(crate) stores: state::Stores,
}

#[cfg(feature = "mcp")]
impl OpenAsync {
    /// As for [`Open::close`].
    pub(crate) fn close(self) -> Option<String> {
        self.stores.log.flush()
    }
}

/// A gate with its files.
pub(crate) struct Open {
    pub(crate) gate: Gate,
    pub(crate) stores: state::Stores,
}

impl Open {
    /// What the stores ran into, for people: the gate itself says only that one did not answer.
    pub(crate) fn last_errors(&self) -> Vec<String> {
        let state::Stores { budgets, waiting, log, .. } = &self.stores;
        let mut errors: Vec<_> =
            [budgets.last_error(), waiting.last_error(), log.last_error()].into_iter().flatten().collect();
        // One database may serve both.
        errors.dedup();
        errors
    }

    /// Writes what is still to be written. A call whose record could not be written was told so already.
    pub(crate) fn close(self) -> Option<String> {
        self.stores.log.flush()
    }
}

/// The configuration that a command works with.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn load(named: Option<&std::path::Path>) -> Result<Config, AssembleError> {
    let start = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let environment = std::env::var_os(crate::config::ENVIRONMENT_VARIABLE);
    Ok(Config::discover(&start, named, environment.as_deref())?)
}

/// A store that never answers.
struct Closed;

impl Audit for Closed {
    fn record(&self, _: &Record<'_>) -> Result<(), AuditFault> {
        Err(AuditFault)
    }
}

impl RateLimiter for Closed {
    fn charge(&self, _: &Charge<'_>) -> Result<Allowance, StoreFault> {
        Err(StoreFault)
    }

    fn refund(&self, _: &Refund<'_>) -> Result<(), StoreFault> {
        Err(StoreFault)
    }

    fn attempt(&self, _: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        Err(StoreFault)
    }
}

impl ConfirmationStore for Closed {
    fn issue(&self, _: &PendingRequest<'_>, _: u64) -> Result<Issued, IssueFault> {
        Err(IssueFault::Store)
    }

    fn load(&self, _: Digest) -> Result<Option<Loaded<Snapshot>>, StoreFault> {
        Err(StoreFault)
    }

    fn claim(&self, _: Digest, _: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        Err(StoreFault)
    }

    fn finish(&self, _: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        Err(StoreFault)
    }

    fn withdraw(&self, _: Digest) -> Result<(), StoreFault> {
        Err(StoreFault)
    }

    fn decide(&self, _: Digest, _: Verdict, _: &CallContext<'_>) -> Result<Decided, DecideFault> {
        Err(DecideFault::Store)
    }

    fn pending(&self, _: &CallContext<'_>, _: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        Err(StoreFault)
    }
}
