//! What the gates of all front-ends share: what they are set to, and the answers of a host that never have to wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callgate_core::call::{Call, Closed, End, Finished, Lookup, Ran, Requested, StoreFault, TaskId};
use callgate_core::confirm::DEFAULT_TTL_MS;
use callgate_core::context::CallContext;
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::inspect::{Inspection, Wiring};
use callgate_core::limit::Allowance;
use callgate_core::policy::{PolicyGate, Subject};
use callgate_core::request::{Context, DEFAULT_MAX_DEPTH};
use callgate_core::time::{Instant, Now};
use callgate_core::tool::ToolSpec;

use crate::cache::{CacheKey, ResultCache};
use crate::cancellation::Cancellation;
use crate::clock::SharedClock;
use crate::confirmations::{ConfirmationStore, FinishError, Guarantee};
use crate::contain::contain;
use crate::entropy::{EntropyError, OsEntropy, SharedEntropy};
use crate::failure::{Failure, Stopped};
use crate::journal::{self, Journal, JournalAnswer, KeptReply, OperationRefusal};
use crate::limiter::RateLimiter;
use crate::observer::Observers;
use crate::output::Reply;
use crate::policy::PolicyError;
use crate::registry::ToolSource;
use crate::settings::GateSettings;
use crate::slots::Slots;
use crate::task::{Completion, Tasks};
use crate::tool::Tool;

/// How many calls are in flight at once where a host says nothing else.
pub const DEFAULT_IN_FLIGHT: usize = 1_024;
/// How many calls wait for others to end where a host says nothing else.
pub const DEFAULT_LINE: usize = 1_024;
/// How long a call waits for others to end where a host says nothing else.
pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(5);

/// Why a gate was not built (invariant F7).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// The source of randomness failed, so no digest key could be made.
    #[error("no random key for the argument digests: {0}; give one with `digest_key`")]
    Entropy(#[from] EntropyError),
    /// Confirmations that live for no time at all.
    #[error("a confirmation must live for at least 1 ms; the default is {DEFAULT_TTL_MS} ms")]
    ZeroTtl,
    /// A gate that lets nobody in.
    #[error("a gate must let in at least 1 call at once; the default is {DEFAULT_IN_FLIGHT}")]
    NoPlaces,
    /// The built-in policy could not be built.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// A tool's timeout is held to within a hundredth of it: its start is read from a clock that is cheap to read.
const TIMEOUT_TO_SLACK: u64 = 100;

/// The time that a run has.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Term {
    pub started: Instant,
    pub deadline: Instant,
}

impl Term {
    /// The time of a run of the tool of `spec` that starts at `started`.
    #[must_use]
    pub const fn new(started: Instant, spec: &ToolSpec<'_>) -> Self {
        let limit = spec.deadline_ms().saturating_mul(1_000_000);
        Self { started, deadline: started.saturating_add_nanos(limit) }
    }
}

/// What all gates are built from. The methods of the builders are made by [`common_options!`](crate::common_options).
#[doc(hidden)]
#[must_use]
pub struct CommonBuilder {
    pub tools: Arc<dyn ToolSource>,
    pub cache: Option<Arc<ResultCache>>,
    pub observers: Observers,
    pub entropy: SharedEntropy,
    pub digest_key: Option<[u8; 32]>,
    pub redacted_names: Vec<String>,
    pub digest_all: bool,
    pub max_depth: u8,
    pub policy_digest: Option<Digest>,
    pub confirmation_ttl_ms: u64,
    pub accept_reserved_argument: bool,
    pub approvers: bool,
    pub irreversible_bar: Guarantee,
    pub in_flight: usize,
    pub line: usize,
    pub max_wait: Duration,
    pub on_completion: Option<Box<OnCompletion>>,
}

/// Is told of runs that went on in the background and are over.
pub(crate) type OnCompletion = dyn Fn(Completion) + Send + Sync;

impl CommonBuilder {
    /// The safe defaults over these tools.
    pub fn new(tools: Arc<dyn ToolSource>) -> Self {
        Self {
            tools,
            cache: None,
            observers: Observers::new(),
            entropy: OsEntropy::shared(),
            digest_key: None,
            redacted_names: Vec::new(),
            digest_all: true,
            max_depth: DEFAULT_MAX_DEPTH,
            policy_digest: None,
            confirmation_ttl_ms: DEFAULT_TTL_MS,
            accept_reserved_argument: false,
            approvers: false,
            irreversible_bar: Guarantee::NONE,
            in_flight: DEFAULT_IN_FLIGHT,
            line: DEFAULT_LINE,
            max_wait: DEFAULT_MAX_WAIT,
            on_completion: None,
        }
    }

    /// Checks and builds.
    ///
    /// # Errors
    /// Something that no gate can work with.
    pub fn build(self, clock: SharedClock) -> Result<Common, GateError> {
        if self.confirmation_ttl_ms == 0 {
            return Err(GateError::ZeroTtl);
        }
        if self.in_flight == 0 {
            return Err(GateError::NoPlaces);
        }
        let key = match self.digest_key {
            Some(key) => key,
            None => {
                let mut key = [0; 32];
                self.entropy.fill(&mut key)?;
                key
            }
        };
        let settings = GateSettings::new(DigestKey::new(key))
            .redacting(self.redacted_names)
            .digesting_all(self.digest_all)
            .with_max_depth(self.max_depth)
            .with_policy(self.policy_digest);
        Ok(Common {
            tools: self.tools,
            cache: self.cache,
            observers: self.observers,
            clock,
            entropy: self.entropy,
            settings: Arc::new(settings),
            confirmation_ttl_ms: self.confirmation_ttl_ms,
            accept_reserved_argument: self.accept_reserved_argument,
            irreversible_bar: self.irreversible_bar,
            slots: Arc::new(Slots::new(self.in_flight, self.line)),
            nested: Arc::new(Slots::new(self.in_flight, 0)),
            max_wait: self.max_wait,
            stop: Cancellation::new(),
            tasks: Tasks::default(),
            on_completion: self.on_completion,
        })
    }
}

impl fmt::Debug for CommonBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommonBuilder").finish_non_exhaustive()
    }
}

/// What all gates share.
#[doc(hidden)]
pub struct Common {
    pub tools: Arc<dyn ToolSource>,
    pub cache: Option<Arc<ResultCache>>,
    pub observers: Observers,
    pub clock: SharedClock,
    pub entropy: SharedEntropy,
    pub settings: Arc<GateSettings>,
    pub confirmation_ttl_ms: u64,
    pub accept_reserved_argument: bool,
    pub irreversible_bar: Guarantee,
    /// For calls from outside.
    pub slots: Arc<Slots>,
    /// For calls that tools make. They never wait for a place: whoever holds the places could be waiting for them.
    pub nested: Arc<Slots>,
    pub max_wait: Duration,
    /// Cancels everything that is in flight.
    pub stop: Cancellation,
    pub tasks: Tasks,
    pub on_completion: Option<Box<OnCompletion>>,
}

impl Common {
    /// Whether a store of this guarantee may hold the confirmation or the operation of a call of the tool of `spec`.
    pub fn trusts(&self, store: Guarantee, spec: &ToolSpec<'_>) -> bool {
        let good = !spec.dangerous || store.meets(self.irreversible_bar);
        if !good {
            tracing::error!(tool = spec.name, "a store vouches for less than an irreversible tool needs");
        }
        good
    }

    /// The time.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Whether a call of this caller waits in line for a place. One that a tool makes does not: who holds the places could be
    /// waiting for it.
    pub const fn waits(caller: &CallContext<'_>) -> bool {
        caller.depth == 0
    }

    /// The slots that a call has to pass: those for nested calls never wait.
    pub fn slots_for(&self, caller: &CallContext<'_>) -> &Arc<Slots> {
        self.slots_for_depth(Self::waits(caller))
    }

    /// The same, told whether the call waits.
    pub(crate) const fn slots_for_depth(&self, waits: bool) -> &Arc<Slots> {
        if waits { &self.slots } else { &self.nested }
    }

    /// How many calls and runs are in flight, those that tools made included.
    pub fn in_flight(&self) -> usize {
        self.slots.taken().saturating_add(self.nested.taken())
    }

    /// Waits until nothing is in flight. In this order: once no call from outside is left, only calls that tools made, and runs that
    /// those began, can make further ones.
    pub async fn idle(&self) {
        self.slots.idle().await;
        self.nested.idle().await;
    }

    /// Looks the name of a call up.
    pub fn find<C: Context>(&self, call: &Call<C, (), Requested>) -> Lookup<Arc<Tool>> {
        contain(|| call.with_caller(|caller| self.tools.find(call.asked().tool, caller))).unwrap_or(Lookup::Unknown)
    }

    /// Explains the pipeline of a tool, if the caller knows it.
    pub fn inspect<R>(
        &self,
        tool: &str,
        caller: &CallContext<'_>,
        gate: PolicyGate<'_>,
        wiring: Wiring,
        look: impl FnOnce(&Inspection<'_, Tool>) -> R,
    ) -> Option<R> {
        let Lookup::Found(tool) = contain(|| self.tools.find(tool, caller)).ok()? else { return None };
        Some(look(&Inspection { tool: &*tool, caller: *caller, gate, wiring }))
    }

    /// Tells the observers that a tool is about to start.
    pub fn executing(&self, subject: &Subject<'_>) {
        if !self.observers.is_empty() {
            self.observers.executing(subject, self.settings.borrow().redaction, self.now());
        }
    }

    /// Under what the result of a call is kept, if it is.
    pub fn cache_key(&self, subject: &Subject<'_>) -> Option<CacheKey> {
        self.cache.as_ref().and_then(|cache| cache.key(subject))
    }

    /// Keeps a result.
    pub fn keep(&self, key: Option<CacheKey>, reply: &Reply) {
        if let (Some(cache), Some(key)) = (&self.cache, key) {
            cache.keep(key, reply);
        }
    }

    /// An id for a run in the background.
    ///
    /// # Errors
    /// The source of randomness failed.
    pub fn task_id(&self) -> Result<TaskId, EntropyError> {
        let mut bits = [0; 16];
        self.entropy.fill(&mut bits)?;
        Ok(TaskId::new(bits))
    }

    /// When a run of the tool of `spec` starts, and when it is to be done.
    pub fn term(&self, spec: &ToolSpec<'_>) -> Term {
        let limit = spec.deadline_ms().saturating_mul(1_000_000);
        Term::new(self.clock.monotonic_within(limit / TIMEOUT_TO_SLACK), spec)
    }

    /// What became of a run. What a body says of why it stopped counts where the gate sees the same. Also gives when the run was
    /// over.
    pub fn ran(
        &self,
        result: Result<Result<Reply, Failure>, Arc<str>>,
        Term { started, deadline }: Term,
        cancelled: bool,
    ) -> (Finished<Reply, Failure, Arc<str>>, Now) {
        let end = self.now();
        let now = end.monotonic;
        let ran = match result {
            Ok(Ok(reply)) => Ran::Done(reply),
            Ok(Err(failure)) => match failure.stopped() {
                Some(Stopped::Late) if now >= deadline => Ran::TimedOut,
                Some(Stopped::Cancelled) if cancelled => Ran::Cancelled,
                _ => Ran::Failed(failure),
            },
            Err(text) => Ran::Panicked(text),
        };
        (ran.after(now.nanos_since(started)), end)
    }

    /// Whether `journal` may be asked about a call of the tool of `spec`; what a gate says where it may not.
    ///
    /// # Errors
    /// There is no journal, or it vouches for too little.
    pub fn journal_for<'j, J: ?Sized>(
        &self,
        journal: Option<&'j J>,
        guarantee: impl FnOnce(&J) -> Guarantee,
        spec: &ToolSpec<'_>,
    ) -> Result<&'j J, JournalAnswer<Reply>> {
        match journal {
            None => Err(Ok(Err(OperationRefusal::Unsupported))),
            Some(journal) if !self.trusts(guarantee(journal), spec) => Err(Err(StoreFault)),
            Some(journal) => Ok(journal),
        }
    }

    /// Whether the end of a run is as good as the end of its call, because nothing that takes time comes between the two.
    pub const fn ends_with_its_run(&self, spec: &ToolSpec<'_>) -> bool {
        spec.output_schema.is_none() && self.cache.is_none()
    }
}

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Common").field("slots", &self.slots).field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Settles a call that ended, at a limiter and a store that do not wait.
#[doc(hidden)]
pub fn settle<C: Context>(
    closed: &mut Closed<C, Arc<Tool>>,
    limiter: Option<&dyn RateLimiter>,
    confirmations: &dyn ConfirmationStore,
    journal: Option<&dyn Journal>,
) {
    let settlement = closed.settlement();
    if settlement.is_empty() {
        return;
    }
    if let (Some(refund), Some(limiter)) = (settlement.refund, limiter)
        && contain(|| limiter.refund(&refund)).unwrap_or(Err(StoreFault)).is_err()
    {
        refund_lost();
    }
    if let Some(ticket) = settlement.withdraw
        && contain(|| confirmations.withdraw(ticket)).unwrap_or(Err(StoreFault)).is_err()
    {
        not_withdrawn();
    }
    if let Some(finish) = settlement.finish {
        finish_told(contain(|| confirmations.finish(&finish)).unwrap_or(Err(StoreFault)));
    }
    let attempts = match (settlement.attempt, limiter) {
        (Some(key), Some(limiter)) => contain(|| limiter.attempt(&key)).unwrap_or(Err(StoreFault)),
        _ => Ok(Allowance::Unlimited),
    };
    let kept = match (settlement.operation, journal) {
        (Some(finish), Some(journal)) => {
            let told = contain(|| journal.finish(&finish, kept_result(closed).as_ref())).unwrap_or(Err(StoreFault));
            journal::finish_told(told, finish.effect)
        }
        _ => Ok(()),
    };
    closed.kept(kept);
    closed.settle(attempts);
}

/// The result that a journal keeps of a call.
#[doc(hidden)]
pub fn kept_result<C: Context>(closed: &Closed<C, Arc<Tool>>) -> Option<KeptReply> {
    match closed.end() {
        End::Done(reply) => reply.keep(),
        _ => None,
    }
}

/// Warns of a refund that was lost.
#[doc(hidden)]
pub fn refund_lost() {
    tracing::warn!("a refund was lost: the rate limiter did not answer");
}

/// Warns of a confirmation that is still there.
#[doc(hidden)]
pub fn not_withdrawn() {
    tracing::warn!("a confirmation that was presented for another call could not be withdrawn");
}

/// Warns of a call whose end its confirmation does not know. One whose claim was never answered may have claimed nothing.
#[doc(hidden)]
pub fn finish_told(told: Result<Result<(), FinishError>, StoreFault>) {
    match told {
        Ok(Ok(()) | Err(FinishError::OtherCall | FinishError::Unknown)) => {}
        Ok(Err(_)) => tracing::warn!("a call ended after its confirmation had been left in doubt"),
        Err(StoreFault) => {
            tracing::warn!("a store was not told how a confirmed call ended, and will leave the confirmation in doubt");
        }
    }
}

/// The methods that the builders of all gates have, on a builder with a field `common`.
#[doc(hidden)]
#[macro_export]
macro_rules! common_options {
    () => {
        /// Serves results of tools that change nothing from this cache, and keeps them in it. An interceptor that vetoes is
        /// heard before the cache answers.
        pub fn cache(mut self, cache: ::std::sync::Arc<$crate::cache::ResultCache>) -> Self {
            self.common.cache = Some(cache);
            self
        }

        /// Tells these observers.
        pub fn observers(mut self, observers: $crate::observer::Observers) -> Self {
            self.common.observers = observers;
            self
        }

        /// Draws tokens and keys from here instead of from the system.
        pub fn entropy(mut self, entropy: $crate::entropy::SharedEntropy) -> Self {
            self.common.entropy = entropy;
            self
        }

        /// Digests arguments under this key instead of a random one. Records of two processes can be compared, and
        /// confirmations redeemed, only under the same key.
        pub const fn digest_key(mut self, key: [u8; 32]) -> Self {
            self.common.digest_key = Some(key);
            self
        }

        /// Treats values under these names as secrets too.
        pub fn redact<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
            self.common.redacted_names.extend(names.into_iter().map(Into::into));
            self
        }

        /// Digests arguments only where something needs the digest (confirmations and mutating tools), not for every record.
        pub const fn digest_when_needed(mut self) -> Self {
            self.common.digest_all = false;
            self
        }

        /// Allows this many calls above a call (8 by default).
        pub const fn max_depth(mut self, depth: u8) -> Self {
            self.common.max_depth = depth;
            self
        }

        /// Names the policy in force in every record.
        pub const fn policy_digest(mut self, digest: ::callgate_core::digest::Digest) -> Self {
            self.common.policy_digest = Some(digest);
            self
        }

        /// How long a confirmation can be redeemed, in milliseconds (60,000 by default).
        pub const fn confirmation_ttl_ms(mut self, ttl_ms: u64) -> Self {
            self.common.confirmation_ttl_ms = ttl_ms;
            self
        }

        /// Also accepts a token in the reserved argument `confirm_token`, taken out before validation; for callers that
        /// cannot send it beside the arguments.
        pub const fn accept_reserved_argument(mut self) -> Self {
            self.common.accept_reserved_argument = true;
            self
        }

        /// What the store of confirmations, and the journal, have to vouch for where a tool can do damage that cannot be undone
        /// (`dangerous`): the confirmation of such a call, or a call of an operation, is refused, as `STORE_UNAVAILABLE`, where the
        /// store vouches for less. Nothing by default; a host whose tools move money sets `Guarantee::ALL`.
        pub const fn irreversible_needs(mut self, bar: $crate::confirmations::Guarantee) -> Self {
            self.common.irreversible_bar = bar;
            self
        }

        /// Says that approvers answer through `Gate::decide`. Without it a call that needs an approver is refused at once:
        /// nobody would ever answer. For the built-in store; a store that is given knows by itself.
        pub const fn with_approvers(mut self) -> Self {
            self.common.approvers = true;
            self
        }

        /// Lets in this many calls at once, at least one (1,024 by default), and has as many as `line` wait (1,024 by
        /// default) for at most `max_wait` (5 s by default). Whoever comes when all is full, or waited in vain, is turned away as
        /// `OVERLOADED` (invariant X6). Calls that tools make count apart, up to the same number, and never wait.
        pub const fn in_flight(mut self, at_once: usize, line: usize, max_wait: ::std::time::Duration) -> Self {
            self.common.in_flight = at_once;
            self.common.line = line;
            self.common.max_wait = max_wait;
            self
        }

        /// Is told of every run that went on in the background and is over, after it was recorded. A panic of it is reported
        /// through `tracing` and changes nothing.
        pub fn on_completion(mut self, told: impl Fn($crate::task::Completion) + Send + Sync + 'static) -> Self {
            self.common.on_completion = Some(Box::new(told));
            self
        }
    };
}
