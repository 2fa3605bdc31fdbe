//! The async gate: drives core's stages, holds no logic of its own.

mod approvals;
mod background;
mod batch;
mod builder;
mod desk;
mod drive;
mod execute;
mod finish;
mod follow;
mod operations;
mod parked;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use callgate_core::confirm::{Token, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::inspect::{Inspection, Wiring};
use callgate_core::request::Request;
use callgate_std::cancellation::Cancellation;
use callgate_std::captured::CapturedContext;
use callgate_std::common::Common;
pub use callgate_std::common::{DEFAULT_IN_FLIGHT, DEFAULT_LINE, DEFAULT_MAX_WAIT, GateError};
use callgate_std::confirmations::{DecideFault, Decided, StoreFault};
use callgate_std::contain::contain;
use callgate_std::desk::Desk as _;
pub use callgate_std::gate::{DecisionFault, GRACE, GrantFault, Shutdown};
use callgate_std::listing::Listing;
use callgate_std::registry::ToolSource;
use callgate_std::task::TaskId;
use callgate_std::tool::Tool;
use callgate_std::update::Update;
use futures_lite::future::or;

pub use approvals::Approvals;
pub use batch::Batch;
pub use builder::GateBuilder;
pub use follow::{Followed, Following};
pub use operations::Operations;

use self::desk::{Front, put};
use self::drive::within;
use crate::audit::AuditSeam;
use crate::confirmations::ConfirmationSeam;
use crate::interceptors::Interceptors;
use crate::journal::JournalSeam;
use crate::limiter::LimiterSeam;
use crate::policy::PolicySeam;
use crate::runtime::Runtime;
use crate::seam::Seam;

/// A call's outcome. It owns what the call carried.
pub type Outcome = callgate_std::task::TaskOutcome;

/// How long one question to a policy, a limiter, a store or a sink that waits may take where a host says nothing else.
pub const DEFAULT_STAGE_LIMIT: Duration = Duration::from_secs(10);

/// The gate that every call passes. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Gate(Arc<Parts>);

struct Parts {
    common: Common,
    runtime: Arc<dyn Runtime>,
    policy: PolicySeam,
    limiter: Option<LimiterSeam>,
    confirmations: ConfirmationSeam,
    journal: Option<JournalSeam>,
    interceptors: Interceptors,
    audit: Option<AuditSeam>,
    stage_limit: Duration,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("wiring", &self.wiring()).finish_non_exhaustive()
    }
}

/// What else a call can be given.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Cancels the call: before its tool starts it ends without effect, and afterwards with an unknown one.
    pub cancellation: Option<Cancellation>,
    /// Takes what the tool tells on its way. The tool waits while it is full; a receiver that is gone makes the tool's next chunk
    /// fail.
    pub updates: Option<async_channel::Sender<Update>>,
    /// The id of the operation that the call is to be one of: under it, it takes effect at most once. A call that comes again has the
    /// result of the one that ran, is refused while that is under way, and hears where it is not known what became of it
    /// ([`callgate_std::journal`]). Refused where the gate has no journal.
    pub operation: Option<Arc<str>>,
}

impl CallOptions {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, cancelled by this.
    #[must_use]
    pub fn cancelled_by(mut self, cancellation: Cancellation) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// The same, for a call of this operation.
    #[must_use]
    pub fn of_operation(mut self, operation: impl Into<Arc<str>>) -> Self {
        self.operation = Some(operation.into());
        self
    }

    /// The same, telling updates here.
    #[must_use]
    pub fn with_updates(mut self, updates: async_channel::Sender<Update>) -> Self {
        self.updates = Some(updates);
        self
    }
}

impl Gate {
    /// A gate over these tools, on this executor.
    pub fn builder(tools: impl ToolSource + 'static, runtime: impl Runtime) -> GateBuilder {
        GateBuilder::new(tools, Arc::new(runtime))
    }

    /// Passes one call through the gate and gives its outcome. Never panics because of a tool or a plug-in.
    ///
    /// The call is received now, and what it carries is copied: the future borrows nothing. It starts when it is polled. Dropping
    /// it cancels the call wherever it is (invariant X4): before its tool started it ends without effect, and afterwards with an
    /// unknown one; either way it gets its one terminal record, even if it was never polled (invariant J1).
    pub fn call(&self, caller: &CallContext<'_>, request: Request<'_>) -> impl Future<Output = Outcome> + Send + use<> {
        self.call_with(caller, request, CallOptions::default())
    }

    /// The same with options.
    pub fn call_with(
        &self,
        caller: &CallContext<'_>,
        request: Request<'_>,
        options: CallOptions,
    ) -> impl Future<Output = Outcome> + Send + use<> {
        drive::drive(self.receive(caller, request, options))
    }

    /// Explains the pipeline of `tool` for `caller`, running nothing. `None` when the caller knows no such tool, or the policy
    /// is one of the host's own that cannot be looked into.
    pub fn inspect<R>(
        &self,
        tool: &str,
        caller: &CallContext<'_>,
        look: impl FnOnce(&Inspection<'_, Tool>) -> R,
    ) -> Option<R> {
        self.0.common.inspect(tool, caller, self.0.policy.gate()?, self.wiring(), look)
    }

    /// What approvers do at this gate, with a record of each decision.
    #[must_use]
    pub const fn approvals(&self) -> Approvals<'_> {
        Approvals::new(self)
    }

    /// What the journal of this gate tells of operations, and how those in doubt are settled, with a record of each.
    #[must_use]
    pub const fn operations(&self) -> Operations<'_> {
        Operations::new(self)
    }

    /// Takes an approver's decision on a pending call, by the ticket that its question named as `approval_id`, and leaves the record
    /// of it to the host: see [`Gate::approvals`].
    ///
    /// # Errors
    /// Says why the decision does not count.
    pub async fn decide(
        &self,
        ticket: Digest,
        verdict: Verdict,
        approver: &CallContext<'_>,
    ) -> Result<Decided, DecideFault> {
        Front(self.clone()).decide(ticket, verdict, &CapturedContext::from(approver)).await
    }

    /// Withdraws the ticket that a question was asked with: nobody can redeem its token any more. For a host that put the question
    /// to the caller itself and was told no. A ticket that is settled or unknown stays as it is.
    ///
    /// # Errors
    /// The store did not answer. Whether the token is still good is not known.
    pub async fn withdraw(&self, token: Token) -> Result<(), StoreFault> {
        let ticket = token.hash();
        let withdrawn = put!(self, &self.0.confirmations, |store| store.withdraw(ticket));
        withdrawn.unwrap_or(Err(StoreFault))
    }

    /// The tools that `caller` is told of: those that it can find and that the policy does not refuse to it before any arguments are
    /// known. Where the policy is one of the host's own that cannot be looked into, those that it can find.
    #[must_use]
    pub fn listing(&self, caller: &CallContext<'_>) -> Listing {
        let listing = Listing::of(self.tools(), caller);
        match self.0.policy.gate() {
            Some(policy) => listing.permitted(&policy, caller),
            None => listing,
        }
    }

    /// What is wired.
    #[must_use]
    pub fn wiring(&self) -> Wiring {
        Wiring {
            rate_limiter: self.0.limiter.is_some(),
            interceptors: !self.0.interceptors.is_empty() || self.0.common.cache.is_some(),
            rule_provider: self.0.policy.has_rules(),
            audit: self.0.audit.is_some(),
        }
    }

    /// The source of the gate's tools.
    #[must_use]
    pub fn tools(&self) -> &dyn ToolSource {
        &*self.0.common.tools
    }

    /// Cancels a run that goes on in the background: it ends with an unknown effect. Says whether it was running.
    pub fn cancel_task(&self, task: TaskId) -> bool {
        self.0.common.tasks.cancel(task)
    }

    /// The runs that go on in the background.
    #[must_use]
    pub fn running_tasks(&self) -> Vec<TaskId> {
        self.0.common.tasks.running()
    }

    /// Goes down: lets nobody in any more (whoever comes is told `SHUTDOWN`), waits for at most `within` until the calls that are in
    /// flight and the runs in the background have ended and are recorded, then cancels the rest and waits [`GRACE`] longer for
    /// their records. A gate that went down stays down.
    pub async fn shutdown(&self, within: Duration) -> Shutdown {
        let common = &self.0.common;
        common.slots.close();
        let cancelled = if self.idle_within(within).await { 0 } else { common.in_flight() };
        // Until here tools could call others.
        common.nested.close();
        common.stop.cancel();
        let grace = if cancelled == 0 { Duration::ZERO } else { GRACE };
        let running = if self.idle_within(grace).await { 0 } else { common.in_flight() };
        Shutdown { cancelled, running }
    }

    async fn idle_within(&self, within: Duration) -> bool {
        let limit = self.0.runtime.sleep(within);
        let idle = async {
            self.0.common.idle().await;
            true
        };
        or(idle, async {
            limit.await;
            false
        })
        .await
    }

    /// Does some work once it is polled, and to its end even when its future is dropped then: where something may wait, on a task of its
    /// own. `unanswered` says what the answer is when the executor goes down.
    fn to_its_end<R, W, U>(&self, work: W, unanswered: U) -> impl Future<Output = R> + Send + use<R, W, U>
    where
        R: Send + 'static,
        W: Future<Output = R> + Send + 'static,
        U: FnOnce() -> R + Send,
    {
        let gate = self.clone();
        async move {
            if gate.finishes_at_once() {
                return work.await;
            }
            let (sender, receiver) = async_channel::bounded(1);
            gate.0.runtime.spawn(Box::pin(async move {
                drop(sender.try_send(work.await));
            }));
            receiver.recv().await.unwrap_or_else(|_| unanswered())
        }
    }

    /// Runs work where it may block. `None` when the work panicked or was never run.
    async fn offload<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
        let (sender, receiver) = async_channel::bounded(1);
        self.0.runtime.spawn_blocking(Box::new(move || {
            if let Ok(result) = contain(work) {
                drop(sender.try_send(result));
            }
        }));
        receiver.recv().await.ok()
    }
}
