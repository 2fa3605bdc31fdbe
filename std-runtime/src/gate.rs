//! The blocking gate: drives core's stages, holds no logic of its own.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::call::{
    Asking, Call, Charge, Closed, Confirm, End, Finished, IssueFault, Issued, Load, Loaded, Lookup, Permit, Ran,
    Requested, StoreFault,
};
use callgate_core::code::{Code, Effect};
use callgate_core::confirm::{By, DEFAULT_TTL_MS, Refusal, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::inspect::{Inspection, Wiring};
use callgate_core::intercept::{Interception, Interceptor as _};
use callgate_core::limit::Allowance;
use callgate_core::policy::{Decision, Subject};
use callgate_core::redact::Redaction;
use callgate_core::request::{DEFAULT_MAX_DEPTH, Request, Settings};
use callgate_core::time::Now;

use crate::cache::ResultCache;
use crate::clock::{SharedClock, SystemClock};
use crate::confirmations::{Binding, Capacity, ConfirmationStore, DecideFault, MemoryConfirmations, PendingRequest};
use crate::contain::contain;
use crate::context::random_request_id;
use crate::entropy::{EntropyError, OsEntropy, SharedEntropy};
use crate::envelope::Envelope;
use crate::failure::{Failure, Stopped};
use crate::interceptors::Interceptors;
use crate::limiter::{DEFAULT_KEYS, MemoryLimiter, Quotas, RateLimiter};
use crate::observer::Observers;
use crate::output::Reply;
use crate::policy::{self, ChannelPolicies, Policy};
use crate::registry::ToolSource;
use crate::reserved;
use crate::tool::{self, Host, NestedCalls, NestedOutcome, Tool};

/// A tool's timeout is held to within a hundredth of it: its start is read from a clock that is cheap to read.
const TIMEOUT_TO_SLACK: u64 = 100;

/// A call's outcome. It borrows what the caller sent; [`Outcome::to_json`] and the like make owned copies.
///
/// [`Outcome::to_json`]: callgate_core::outcome::Outcome::to_json
pub type Outcome<'a> = callgate_core::outcome::Outcome<Box<Envelope<'a>>, Arc<Tool>>;

type Ended<'a> = callgate_core::call::Ended<Box<Envelope<'a>>, Arc<Tool>>;
type Received<'a> = Call<Box<Envelope<'a>>, (), Requested>;

/// The gate that every call passes. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Gate(Arc<Parts>);

mod cells {
    #![expect(clippy::mem_forget, reason = "the macro disarms its own drop guards with it")]

    use self_cell::self_cell;

    type List<'a> = Vec<&'a str>;

    self_cell!(
        /// Names, and the list of them that core takes.
        pub(super) struct Names {
            owner: Vec<String>,
            #[covariant]
            dependent: List,
        }
    );
}

use cells::Names;

struct Parts {
    tools: Arc<dyn ToolSource>,
    policy: Arc<dyn Policy>,
    limiter: Option<Arc<dyn RateLimiter>>,
    confirmations: Arc<dyn ConfirmationStore>,
    interceptors: Interceptors<Reply>,
    cache: Option<Arc<ResultCache>>,
    observers: Observers,
    audit: Option<Arc<dyn Audit + Send + Sync>>,
    clock: SharedClock,
    entropy: SharedEntropy,
    digest_key: DigestKey,
    names: Names,
    digest_all: bool,
    max_depth: u8,
    policy_digest: Option<Digest>,
    confirmation_ttl_ms: u64,
    accept_reserved_argument: bool,
    cancelled: Option<Box<Cancelled>>,
}

/// Tells whether whoever calls is gone.
type Cancelled = dyn Fn() -> bool + Send + Sync;

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("wiring", &self.wiring()).finish_non_exhaustive()
    }
}

/// Builds a [`Gate`]. What is not given has a default that is safe, and none of the defaults widens access.
#[must_use]
pub struct GateBuilder {
    tools: Arc<dyn ToolSource>,
    policy: Option<Arc<dyn Policy>>,
    limiter: Option<Arc<dyn RateLimiter>>,
    unlimited: bool,
    confirmations: Option<Arc<dyn ConfirmationStore>>,
    interceptors: Interceptors<Reply>,
    cache: Option<Arc<ResultCache>>,
    observers: Observers,
    audit: Option<Arc<dyn Audit + Send + Sync>>,
    clock: SharedClock,
    entropy: SharedEntropy,
    digest_key: Option<[u8; 32]>,
    redacted_names: Vec<String>,
    digest_all: bool,
    max_depth: u8,
    policy_digest: Option<Digest>,
    confirmation_ttl_ms: u64,
    accept_reserved_argument: bool,
    approvers: bool,
    cancelled: Option<Box<Cancelled>>,
}

impl fmt::Debug for GateBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateBuilder").finish_non_exhaustive()
    }
}

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
    /// The built-in policy could not be built.
    #[error(transparent)]
    Policy(#[from] policy::PolicyError),
}

impl GateBuilder {
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

    /// Says that approvers answer through [`Gate::decide`]. Without it a call that needs an approver is refused at once: nobody
    /// would ever answer. For the built-in store; a store given by [`GateBuilder::confirmations`] knows by itself.
    pub const fn with_approvers(mut self) -> Self {
        self.approvers = true;
        self
    }

    /// Asks this whether whoever calls is gone, for programs that serve one caller: before a tool starts, in which case it
    /// doesn't, and for bodies that [ask](crate::tool::ToolCall::is_cancelled) while they run. A body that does not ask is
    /// not stopped.
    pub fn cancelled_when(mut self, cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.cancelled = Some(Box::new(cancelled));
        self
    }

    /// Asks these interceptors.
    pub fn interceptors(mut self, interceptors: Interceptors<Reply>) -> Self {
        self.interceptors = interceptors;
        self
    }

    /// Serves results of tools that change nothing from this cache, and keeps them in it. An interceptor that vetoes is
    /// heard before the cache answers.
    pub fn cache(mut self, cache: Arc<ResultCache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Tells these observers.
    pub fn observers(mut self, observers: Observers) -> Self {
        self.observers = observers;
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

    /// Draws tokens and keys from here instead of from the system.
    pub fn entropy(mut self, entropy: SharedEntropy) -> Self {
        self.entropy = entropy;
        self
    }

    /// Digests arguments under this key instead of a random one. Records of two processes can be compared, and confirmations
    /// redeemed, only under the same key.
    pub const fn digest_key(mut self, key: [u8; 32]) -> Self {
        self.digest_key = Some(key);
        self
    }

    /// Treats values under these names as secrets too.
    pub fn redact<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.redacted_names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Digests arguments only where something needs the digest (confirmations and mutating tools), not for every record.
    pub const fn digest_when_needed(mut self) -> Self {
        self.digest_all = false;
        self
    }

    /// Allows this many calls above a call (8 by default).
    pub const fn max_depth(mut self, depth: u8) -> Self {
        self.max_depth = depth;
        self
    }

    /// Names the policy in force in every record.
    pub const fn policy_digest(mut self, digest: Digest) -> Self {
        self.policy_digest = Some(digest);
        self
    }

    /// How long a confirmation can be redeemed, in milliseconds (60,000 by default).
    pub const fn confirmation_ttl_ms(mut self, ttl_ms: u64) -> Self {
        self.confirmation_ttl_ms = ttl_ms;
        self
    }

    /// Also accepts a token in the reserved argument `confirm_token`, taken out before validation; for callers that cannot
    /// send it beside the arguments.
    pub const fn accept_reserved_argument(mut self) -> Self {
        self.accept_reserved_argument = true;
        self
    }

    /// Builds the gate.
    ///
    /// # Errors
    /// Something that it cannot work with.
    pub fn build(self) -> Result<Gate, GateError> {
        if self.confirmation_ttl_ms == 0 {
            return Err(GateError::ZeroTtl);
        }
        let key = match self.digest_key {
            Some(key) => key,
            None => {
                let mut key = [0; 32];
                self.entropy.fill(&mut key)?;
                key
            }
        };
        let policy = match self.policy {
            Some(policy) => policy,
            None => Arc::new(ChannelPolicies::builder().build()?),
        };
        let limiter = match (self.limiter, self.unlimited) {
            (_, true) => None,
            (Some(limiter), false) => Some(limiter),
            (None, false) => {
                let quotas = Quotas::default();
                let limiter = MemoryLimiter::with(move |key| quotas.of(key), self.clock.clone(), DEFAULT_KEYS);
                Some(Arc::new(limiter) as Arc<dyn RateLimiter>)
            }
        };
        let confirmations = self.confirmations.unwrap_or_else(|| {
            let store = MemoryConfirmations::with(Capacity::default(), self.clock.clone(), self.entropy.clone());
            store.attach_approvers(self.approvers);
            Arc::new(store)
        });
        Ok(Gate(Arc::new(Parts {
            tools: self.tools,
            policy,
            limiter,
            confirmations,
            interceptors: self.interceptors,
            cache: self.cache,
            observers: self.observers,
            audit: self.audit,
            clock: self.clock,
            entropy: self.entropy,
            digest_key: DigestKey::new(key),
            names: Names::new(self.redacted_names, |names| names.iter().map(String::as_str).collect()),
            digest_all: self.digest_all,
            max_depth: self.max_depth,
            policy_digest: self.policy_digest,
            confirmation_ttl_ms: self.confirmation_ttl_ms,
            accept_reserved_argument: self.accept_reserved_argument,
            cancelled: self.cancelled,
        })))
    }
}

impl Gate {
    /// A gate over these tools.
    pub fn builder(tools: impl ToolSource + 'static) -> GateBuilder {
        GateBuilder {
            tools: Arc::new(tools),
            policy: None,
            limiter: None,
            unlimited: false,
            confirmations: None,
            interceptors: Interceptors::new(),
            cache: None,
            observers: Observers::new(),
            audit: None,
            clock: SystemClock::shared(),
            entropy: OsEntropy::shared(),
            digest_key: None,
            redacted_names: Vec::new(),
            digest_all: true,
            max_depth: DEFAULT_MAX_DEPTH,
            policy_digest: None,
            confirmation_ttl_ms: DEFAULT_TTL_MS,
            accept_reserved_argument: false,
            approvers: false,
            cancelled: None,
        }
    }

    /// Passes one call through the gate and gives its outcome. Never panics because of a tool or a plug-in; blocks for as
    /// long as the tool does.
    pub fn call<'a>(&'a self, caller: &CallContext<'a>, request: Request<'a>) -> Outcome<'a> {
        self.0.call(caller, request)
    }

    /// Explains the pipeline of `tool` for `caller`, running nothing. `None` when the caller knows no such tool, or the policy
    /// is one of the host's own that cannot be looked into.
    pub fn inspect<R>(
        &self,
        tool: &str,
        caller: &CallContext<'_>,
        look: impl FnOnce(&Inspection<'_, Tool>) -> R,
    ) -> Option<R> {
        let Lookup::Found(tool) = contain(|| self.0.tools.find(tool, caller)).ok()? else { return None };
        let gate = self.0.policy.gate()?;
        Some(look(&Inspection { tool: &*tool, caller: *caller, gate, wiring: self.wiring() }))
    }

    /// Takes an approver's decision on a pending call, by the ticket that its question named as `approval_id`.
    ///
    /// # Errors
    /// Says why the decision does not count.
    pub fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<(), DecideFault> {
        contain(|| self.0.confirmations.decide(ticket, verdict, approver)).unwrap_or(Err(DecideFault::Store))
    }

    /// What is wired.
    #[must_use]
    pub fn wiring(&self) -> Wiring {
        Wiring {
            rate_limiter: self.0.limiter.is_some(),
            interceptors: !self.0.interceptors.is_empty() || self.0.cache.is_some(),
            rule_provider: self.0.policy.has_rules(),
            audit: self.0.audit.is_some(),
        }
    }

    /// The source of the gate's tools.
    #[must_use]
    pub fn tools(&self) -> &dyn ToolSource {
        &*self.0.tools
    }

    /// The policy of the gate.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        &*self.0.policy
    }
}

/// The driver: core's stages in a row, and a host's answer to each. No branch here decides anything.
impl Parts {
    fn call<'a>(&'a self, caller: &CallContext<'a>, request: Request<'a>) -> Outcome<'a> {
        let received = self.now();
        let mut guard = Guard { parts: self, caller: *caller, request, received, done: false };
        let ran_until = Cell::new(None);
        let driven = self.drive(self.receive(caller, request, received), &ran_until);
        let outcome = self.finish(driven, ran_until.get());
        guard.done = true;
        outcome
    }

    fn now(&self) -> Now {
        self.clock.now()
    }

    fn settings(&self) -> Settings<'_> {
        Settings {
            digest_key: &self.digest_key,
            redaction: Redaction::DEFAULT.with_names(self.names.borrow_dependent()),
            digest_all: self.digest_all,
            max_depth: self.max_depth,
            policy: self.policy_digest,
        }
    }

    fn receive<'a>(&'a self, caller: &CallContext<'a>, request: Request<'a>, received: Now) -> Received<'a> {
        let mut envelope = Envelope::new(*caller, request, self.settings());
        if self.accept_reserved_argument
            && let Some(reserved) = reserved::take(request)
        {
            envelope = envelope.with_reserved(reserved);
        }
        Call::request(Box::new(envelope), received)
    }

    #[expect(clippy::result_large_err, reason = "an ended call is a value of the pipeline, moved once")]
    fn drive<'a>(&'a self, call: Received<'a>, ran_until: &Cell<Option<Now>>) -> Result<Ended<'a>, Ended<'a>> {
        let found = self.find(&call);
        let call = match call.resolve(found)? {
            Load::Fresh(call) => call,
            Load::Stored(loading) => {
                let found = self.load(loading.ticket());
                loading.loaded(found)?
            }
        };
        let call = call.validate()?;
        let decision = self.decide(&call.subject());
        let call = call.authorize(decision)?;
        let allowance = self.charge(call.charge());
        let call = call.admit(allowance)?.unless_planning()?;
        // Before a token is asked for or used up.
        if self.is_cancelled() {
            return Err(call.cancel());
        }
        let call = match call.confirm()? {
            Confirm::NotNeeded(call) => call,
            Confirm::Ask(asking) => {
                let issued = self.issue(&asking);
                return Err(asking.asked(issued));
            }
            Confirm::Redeem(redeeming) => {
                let claimed = self.claim(redeeming.ticket(), &redeeming.binding());
                redeeming.redeemed(claimed)?
            }
        };
        let verdict = self.judge(&call.subject());
        let mut call = call.intercept(verdict)?;
        if self.is_cancelled() {
            return Err(call.cancel());
        }
        let recorded = call.intent().map_or(Ok(()), |intent| self.record(&intent));
        let call = call.announce(recorded)?;
        if !self.observers.is_empty() {
            self.observers.executing(&call.subject(), self.settings().redaction, self.now());
        }
        let kept_as = self.cache.as_ref().and_then(|cache| cache.key(&call.subject()));
        let ended = call.execute(|permit| self.run(permit, ran_until));
        if let (Some(cache), Some(key), End::Done(reply)) = (&self.cache, kept_as, ended.end()) {
            cache.keep(key, reply);
        }
        Ok(ended)
    }

    fn finish<'a>(&'a self, driven: Result<Ended<'a>, Ended<'a>>, ran_until: Option<Now>) -> Outcome<'a> {
        let (Ok(ended) | Err(ended)) = driven;
        let mut closed = ended.close(ran_until.unwrap_or_else(|| self.now()));
        self.settle(&mut closed);
        let record = closed.record();
        let recorded = self.record(&record);
        self.observers.ended(&record);
        closed.audited(recorded)
    }

    fn find(&self, call: &Received<'_>) -> Lookup<Arc<Tool>> {
        contain(|| self.tools.find(call.asked().tool, &call.caller())).unwrap_or(Lookup::Unknown)
    }

    fn load(&self, ticket: Option<Digest>) -> Result<Option<Loaded<Arc<[u8]>>>, StoreFault> {
        match ticket {
            Some(ticket) => contain(|| self.confirmations.load(ticket)).unwrap_or(Err(StoreFault)),
            None => Ok(None),
        }
    }

    fn decide(&self, subject: &Subject<'_>) -> Decision<Arc<str>> {
        contain(|| self.policy.decide(subject)).unwrap_or_else(|_| policy::fault())
    }

    fn charge(&self, charge: Option<Charge<'_>>) -> Result<Allowance, StoreFault> {
        match (&self.limiter, charge) {
            (Some(limiter), Some(charge)) => contain(|| limiter.charge(&charge)).unwrap_or(Err(StoreFault)),
            _ => Ok(Allowance::Unlimited),
        }
    }

    fn issue(&self, asking: &Asking<Box<Envelope<'_>>, Arc<Tool>>) -> Result<Issued, IssueFault> {
        contain(|| self.confirmations.issue(&PendingRequest::of(asking), self.confirmation_ttl_ms))
            .unwrap_or(Err(IssueFault::Store))
    }

    fn claim(&self, ticket: Digest, presented: &Binding) -> Result<Result<By, Refusal>, StoreFault> {
        contain(|| self.confirmations.claim(ticket, presented)).unwrap_or(Err(StoreFault))
    }

    fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        let asked = contain(|| match &self.cache {
            Some(cache) => match cache.judge(subject) {
                Interception::Continue => self.interceptors.judge(subject),
                answer => match self.interceptors.judge(subject) {
                    // Whoever objects is heard before the cache is.
                    Interception::Continue | Interception::Answer(_) => answer,
                    objection => objection,
                },
            },
            None => self.interceptors.judge(subject),
        });
        asked.unwrap_or_else(Interception::Failed)
    }

    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        match &self.audit {
            Some(audit) => contain(|| audit.record(record)).unwrap_or(Err(AuditFault)),
            None => Ok(()),
        }
    }

    /// Runs the body, and notes in `ran_until` when it was over, where nothing that takes time comes between that and the
    /// call's end.
    fn run(
        &self,
        permit: Permit<'_, Box<Envelope<'_>>, Arc<Tool>>,
        ran_until: &Cell<Option<Now>>,
    ) -> Finished<Reply, Failure, Arc<str>> {
        let timeout = permit.spec().timeout_ms.saturating_mul(1_000_000);
        let checks_output = permit.spec().output_schema.is_some();
        let started = self.clock.monotonic_within(timeout / TIMEOUT_TO_SLACK);
        let deadline = started.saturating_add_nanos(timeout);
        let mut host = Host::new(&*self.clock, started).with_nested(self);
        if let Some(cancelled) = &self.cancelled {
            host = host.with_cancelled(&**cancelled);
        }
        let ran = match contain(|| tool::run(permit, host)) {
            Ok(Ok(reply)) => Ran::Done(reply),
            Ok(Err(failure)) => match failure.stopped() {
                // What a body says of why it stopped counts where the gate sees the same.
                Some(Stopped::Late) if self.clock.monotonic() >= deadline => Ran::TimedOut,
                Some(Stopped::Cancelled) if self.is_cancelled() => Ran::Cancelled,
                _ => Ran::Failed(failure),
            },
            Err(text) => Ran::Panicked(text),
        };
        let now = self.now();
        if !checks_output && self.cache.is_none() {
            ran_until.set(Some(now));
        }
        ran.after(now.monotonic.nanos_since(started))
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled())
    }

    fn settle(&self, closed: &mut Closed<Box<Envelope<'_>>, Arc<Tool>>) {
        let settlement = closed.settlement();
        if settlement.is_empty() {
            return;
        }
        if let (Some(refund), Some(limiter)) = (settlement.refund, &self.limiter)
            && contain(|| limiter.refund(&refund)).unwrap_or(Err(StoreFault)).is_err()
        {
            tracing::warn!("a refund was lost: the rate limiter did not answer");
        }
        if let Some(ticket) = settlement.withdraw
            && contain(|| self.confirmations.withdraw(ticket)).unwrap_or(Err(StoreFault)).is_err()
        {
            tracing::warn!("a confirmation that was presented for another call could not be withdrawn");
        }
        let attempts = match (settlement.attempt, &self.limiter) {
            (Some(key), Some(limiter)) => contain(|| limiter.attempt(&key)).unwrap_or(Err(StoreFault)),
            _ => Ok(Allowance::Unlimited),
        };
        closed.settle(attempts);
    }
}

/// Calls that a running tool makes go through the same gate, under a request id of their own.
impl NestedCalls for Parts {
    fn call(&self, caller: CallContext<'_>, tool: &str, arguments: &[u8]) -> NestedOutcome {
        let Ok(request_id) = random_request_id(&*self.entropy) else {
            return NestedOutcome::ended(Some(Code::StoreUnavailable), Effect::None, None);
        };
        let caller = CallContext { request_id: &request_id, ..caller };
        let outcome = self.call(&caller, Request { tool, arguments, token: None });
        let (code, effect) = (outcome.code(), outcome.effect());
        let error = outcome.error().map(|error| error.to_string());
        match outcome.into_output() {
            Some(reply) => NestedOutcome::done(reply),
            None => NestedOutcome::ended(code, effect, error),
        }
    }
}

/// Writes the terminal record of a call that never came to its end because the gate itself panicked (invariant J1).
struct Guard<'g> {
    parts: &'g Parts,
    caller: CallContext<'g>,
    request: Request<'g>,
    received: Now,
    done: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let envelope = Envelope::new(self.caller, self.request, self.parts.settings());
        let ended = Call::request(Box::new(envelope), self.received).lost::<Arc<Tool>>(true);
        let closed = ended.close(self.parts.now());
        if self.parts.record(&closed.record()).is_err() {
            tracing::error!(request_id = self.caller.request_id, "the record of a lost call could not be written");
        }
    }
}
