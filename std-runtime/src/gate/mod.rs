//! The blocking gate: drives core's stages, holds no logic of its own.

mod approvals;
mod background;
mod batch;
mod builder;
mod drive;
mod operations;
mod options;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_core::audit::Audit;
use callgate_core::confirm::Verdict;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::inspect::{Inspection, Wiring};
use callgate_core::request::Request;

use crate::common::Common;
use crate::confirmations::{ConfirmationStore, DecideFault, Decided};
use crate::contain::contain;
use crate::envelope::Envelope;
use crate::future::block_on_until;
use crate::interceptors::Interceptors;
use crate::journal::Journal;
use crate::limiter::RateLimiter;
use crate::output::Reply;
use crate::policy::Policy;
use crate::registry::ToolSource;
use crate::task::TaskId;
use crate::tool::Tool;
use crate::update::Update;

pub use crate::common::{DEFAULT_IN_FLIGHT, DEFAULT_LINE, DEFAULT_MAX_WAIT, GateError};
pub use approvals::{Approvals, DecisionFault, GrantFault};
pub use builder::{GateBuilder, default_limiter};
pub use operations::Operations;
pub use options::CallOptions;

/// A call's outcome. It borrows what the caller sent; [`Outcome::to_json`] and the like make owned copies.
///
/// [`Outcome::to_json`]: callgate_core::outcome::Outcome::to_json
pub type Outcome<'a> = callgate_core::outcome::Outcome<Box<Envelope<'a>>, Arc<Tool>>;

/// The gate that every call passes. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Gate(Arc<Parts>);

struct Parts {
    common: Common,
    policy: Arc<dyn Policy>,
    limiter: Option<Arc<dyn RateLimiter>>,
    confirmations: Arc<dyn ConfirmationStore>,
    journal: Option<Arc<dyn Journal>>,
    interceptors: Interceptors<Reply>,
    audit: Option<Arc<dyn Audit + Send + Sync>>,
    cancelled: Option<Box<Cancelled>>,
}

/// Tells whether whoever calls is gone.
type Cancelled = dyn Fn() -> bool + Send + Sync;

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("wiring", &self.wiring()).finish_non_exhaustive()
    }
}

/// How a gate went down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "what still runs when a program ends is lost"]
pub struct Shutdown {
    /// How many calls and runs were told to stop because time was up.
    pub cancelled: usize,
    /// How many of them had not stopped when the gate gave up on them. They are recorded if they ever end; if the process ends
    /// first, those of mutating tools are open intents in the log.
    pub running: usize,
}

/// How long a gate that goes down waits for what it told to stop.
pub const GRACE: Duration = Duration::from_millis(500);

impl Gate {
    /// A gate over these tools.
    pub fn builder(tools: impl ToolSource + 'static) -> GateBuilder {
        GateBuilder::new(tools)
    }

    /// Passes one call through the gate and gives its outcome. Never panics because of a tool or a plug-in; blocks for as
    /// long as the tool does.
    pub fn call<'a>(&'a self, caller: &CallContext<'a>, request: Request<'a>) -> Outcome<'a> {
        self.drive_call(caller, None, request, None)
    }

    /// Passes one call of an operation through the gate: under this id of its caller's it takes effect at most once. A call that comes
    /// again has the result of the one that ran, is refused while that is under way, and hears where it is not known what became of it
    /// ([`journal`](crate::journal)). Refused where the gate has no journal.
    pub fn call_operation<'a>(
        &'a self,
        caller: &CallContext<'a>,
        operation: &'a str,
        request: Request<'a>,
    ) -> Outcome<'a> {
        self.drive_call(caller, Some(operation), request, None)
    }

    /// As [`call`](Self::call), and `follow` is given what the tool tells on its way: on the thread on which the tool runs, which waits. When it
    /// breaks, the caller counts as gone: the call is cancelled, as far as its tool lets itself be.
    pub fn call_following<'a>(
        &'a self,
        caller: &CallContext<'a>,
        request: Request<'a>,
        follow: impl FnMut(Update) -> ControlFlow<()> + Send,
    ) -> Outcome<'a> {
        self.call_with(caller, request, CallOptions::new().followed_by(follow))
    }

    /// As [`call`](Self::call), with any of these options.
    pub fn call_with<'a>(
        &'a self,
        caller: &CallContext<'a>,
        request: Request<'a>,
        mut options: CallOptions<'a, '_>,
    ) -> Outcome<'a> {
        let follower = options.follower();
        self.drive_call(caller, options.operation, request, follower.as_ref())
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
    pub fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        contain(|| self.0.confirmations.decide(ticket, verdict, approver)).unwrap_or(Err(DecideFault::Store))
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

    /// The policy of the gate.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        &*self.0.policy
    }

    /// Stops a run that goes on in the background, as far as its tool lets itself be. Says whether it was running.
    pub fn cancel_task(&self, task: TaskId) -> bool {
        self.0.common.tasks.cancel(task)
    }

    /// The runs that go on in the background.
    #[must_use]
    pub fn running_tasks(&self) -> Vec<TaskId> {
        self.0.common.tasks.running()
    }

    /// Goes down: lets nobody in any more (whoever comes is told `SHUTDOWN`), waits for at most `within` until the calls that are in
    /// flight and the runs in the background have ended, then tells the rest to stop and waits [`GRACE`] longer. Blocks
    /// meanwhile. A gate that went down stays down.
    pub fn shutdown(&self, within: Duration) -> Shutdown {
        let common = &self.0.common;
        common.slots.close();
        let wait = |within: Duration| {
            let begun = Instant::now();
            block_on_until(common.idle(), || (begun.elapsed() >= within).then_some(()))
        };
        let cancelled = match wait(within) {
            Ok(()) => 0,
            Err(()) => common.in_flight(),
        };
        // Until here tools could call others.
        common.nested.close();
        common.stop.cancel();
        let running = match wait(if cancelled == 0 { Duration::ZERO } else { GRACE }) {
            Ok(()) => 0,
            Err(()) => common.in_flight(),
        };
        Shutdown { cancelled, running }
    }
}
