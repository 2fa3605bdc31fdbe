//! What surrounds a gate: tools with scripted bodies, stores and a log in memory, a clock that stands still, all of it watched.

use std::sync::Arc;
use std::time::Duration;

use callgate_core::args::Args;
use callgate_core::audit::{Audit, AuditFault, Kind, Record};
use callgate_core::call::{Charge, ChargeMode, Finish, IssueFault, Issued, Refund, StoreFault};
use callgate_core::clamp::{Bound, Clamp};
use callgate_core::confirm::{By, Decided, FinishError, Presented, ReconcileError, Refusal, Verdict};
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::digest::Digest;
use callgate_core::limit::{Allowance, LimitKey, Quota};
use callgate_core::request::Request;
use callgate_core::tool::ConfirmBy;
use callgate_std::batch::{BatchCall, BatchOptions, Delivery};
use callgate_std::confirmations::{
    Capacity, ConfirmationStore, DecideFault, Loaded, MemoryConfirmations, PendingApproval, PendingRequest, Resolution,
};
use callgate_std::entropy::{SeededEntropy, SharedEntropy};
use callgate_std::failure::Failure;
use callgate_std::journal::{
    FinishOperation, Journal, JournalAnswer, JournalLimits, KeptReply, MemoryJournal, OperationRequest, OperationView,
    PresentedOperation, SettleError,
};
use callgate_std::limiter::{DEFAULT_KEYS, MemoryLimiter, Quotas, RateLimiter};
use callgate_std::output::Reply;
use callgate_std::registry::{Registry, RegistryBuilder, SharedRegistry};
use callgate_std::tool::{Tool, ToolBuilder};

use super::judges::{Judge, WatchedPolicy};
use super::time::Time;
use super::watched::{Watch, panics, value};
use crate::event::{self, Event, Mark, Outcome, Point, Seen};
use crate::subject::SubjectFault;
use crate::world::{self, Body, Confirm, World};

/// The same after a restart: a token is bound to what the key digests.
pub(super) const DIGEST_KEY: [u8; 32] = [7; 32];

/// Everything around a gate. Outlives the gate, which can be killed.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) world: World,
    pub(super) watch: Watch,
    pub(super) time: Time,
    pub(super) entropy: SharedEntropyBox,
    pub(super) tools: Arc<SharedRegistry>,
    pub(super) policy: Arc<WatchedPolicy>,
    pub(super) limiter: Arc<WatchedLimiter>,
    pub(super) store: Arc<WatchedStore>,
    pub(super) sink: Arc<Sink>,
    pub(super) journal: Option<Arc<WatchedJournal>>,
    bodies: Bodies,
}

/// Where a world keeps what outlives a gate.
pub(super) struct Stores {
    pub(super) confirmations: Arc<dyn ConfirmationStore>,
    pub(super) limiter: Arc<dyn RateLimiter>,
    /// A log that records are written to before they are shown.
    pub(super) log: Option<Arc<dyn Audit + Send + Sync>>,
    /// Where operations are kept, in worlds that have such a place.
    pub(super) journal: Option<Arc<dyn Journal>>,
}

/// The journal of a world, in memory; `None` where it has none.
fn journal(world: &World, time: &Time) -> Option<Arc<dyn Journal>> {
    let result_bytes = world.journal?.max_result.map_or(JournalLimits::DEFAULT.result_bytes, |bytes| bytes as usize);
    let limits = JournalLimits { result_bytes, ..JournalLimits::DEFAULT };
    Some(Arc::new(MemoryJournal::with(limits, time.shared())))
}

/// The budgets of a world.
pub(super) fn quotas(world: &World) -> Result<Quotas, String> {
    let quota = |quota: Option<world::Quota>| match quota {
        Some(quota) => Quota::per_window(quota.limit, quota.window_ms).map_err(refused),
        None => Ok(Quota::DEFAULT),
    };
    Ok(Quotas::new(quota(world.quota)?).with_attempts(quota(world.attempts)?))
}

/// How the body of a tool is given to its builder.
type Bodies = fn(ToolBuilder, world::Tool, Watch, Time) -> ToolBuilder;

/// Bodies that block.
fn blocks(builder: ToolBuilder, script: world::Tool, watch: Watch, time: Time) -> ToolBuilder {
    builder.handler(move |call| match perform(&script, &watch, &time, call.args()) {
        Performed::Done(reply) => Ok(reply),
        Performed::Failed(failure) => Err(failure),
        Performed::Late => Err(Failure::timed_out()),
    })
}

/// A source of randomness that can be shown.
#[derive(Clone)]
pub(super) struct SharedEntropyBox(pub(super) SharedEntropy);

impl std::fmt::Debug for SharedEntropyBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}

pub(super) fn gave_up(error: impl std::fmt::Display) -> SubjectFault {
    SubjectFault::GaveUp(error.to_string())
}

/// An event came before any world.
pub(super) fn no_world() -> SubjectFault {
    gave_up("there is no world")
}

fn refused(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Surroundings {
    /// A world whose tools have bodies that block, or why it is refused.
    pub(super) fn new(world: &World, seed: u64) -> Result<Self, String> {
        Self::with_bodies(world, seed, blocks)
    }

    /// A world whose tools have bodies of this kind, or why it is refused.
    pub(super) fn with_bodies(world: &World, seed: u64, bodies: Bodies) -> Result<Self, String> {
        let (watch, time, entropy) = (Watch::default(), Time::new(), SeededEntropy::shared(seed));
        let store = MemoryConfirmations::with(Capacity::default(), time.shared(), entropy.clone());
        store.attach_approvers(world.approvers);
        let quotas = quotas(world)?;
        let limiter = MemoryLimiter::with(move |key| quotas.of(key), time.shared(), DEFAULT_KEYS);
        let journal = journal(world, &time);
        let stores = Stores { confirmations: Arc::new(store), limiter: Arc::new(limiter), log: None, journal };
        let around = Self::with_stores(world, watch, time, entropy, stores)?;
        let mut around = Self { bodies, ..around };
        around.publish()?;
        Ok(around)
    }

    /// A world with these stores, whose tools have bodies that block.
    pub(super) fn with_stores(
        world: &World,
        watch: Watch,
        time: Time,
        entropy: SharedEntropy,
        stores: Stores,
    ) -> Result<Self, String> {
        let Stores { confirmations, limiter, log, journal } = stores;
        let mut surroundings = Self {
            world: world.clone(),
            policy: Arc::new(WatchedPolicy::new(world, watch.clone()).map_err(refused)?),
            limiter: Arc::new(WatchedLimiter::new(world, watch.clone(), limiter)),
            store: Arc::new(WatchedStore { store: confirmations, watch: watch.clone() }),
            sink: Arc::new(Sink { watch: watch.clone(), log }),
            journal: journal.map(|journal| Arc::new(WatchedJournal { journal, watch: watch.clone() })),
            tools: Arc::new(SharedRegistry::new(Registry::builder().build().map_err(refused)?)),
            entropy: SharedEntropyBox(entropy),
            time,
            watch,
            bodies: blocks,
        };
        surroundings.publish()?;
        Ok(surroundings)
    }

    /// The same with another journal, made of the one that it has.
    pub(super) fn with_journal(mut self, made: impl FnOnce(Arc<dyn Journal>) -> Arc<dyn Journal>) -> Self {
        if let Some(watched) = self.journal.take() {
            let journal = made(Arc::clone(&watched.journal));
            self.journal = Some(Arc::new(WatchedJournal { journal, watch: self.watch.clone() }));
        }
        self
    }

    /// Puts the tools of the world where the gate looks for them.
    fn publish(&mut self) -> Result<(), String> {
        let builders = self.world.tools.iter().map(|tool| self.builder(tool));
        let registry = builders.fold(Registry::builder(), RegistryBuilder::add).build().map_err(refused)?;
        drop(self.tools.swap(registry));
        Ok(())
    }

    fn builder(&self, tool: &world::Tool) -> ToolBuilder {
        let mut builder = Tool::builder(tool.name.as_str())
            .description("A tool under test")
            .timeout(Duration::from_millis(tool.timeout_ms()))
            .confirm(match tool.confirm {
                Confirm::Nobody => ConfirmBy::Nobody,
                Confirm::Caller => ConfirmBy::Caller,
                Confirm::Approver => ConfirmBy::Approver { scope: tool.approver_scope() },
            });
        if !tool.scopes.is_empty() {
            builder = builder.scopes(&tool.scopes);
        }
        if let Some(version) = &tool.version {
            builder = builder.version(version.as_str());
        }
        if let Some(schema) = &tool.schema {
            builder = builder.json_schema(schema.clone());
        }
        if let Some(schema) = &tool.output_schema {
            builder = builder.output_schema(schema.clone());
        }
        if tool.mutating {
            builder = builder.mutating();
        }
        for world::Clamp { field, min, max, max_length } in &tool.clamps {
            let clamp = Clamp { min: min.map(Bound::Integer), max: max.map(Bound::Integer), max_length: *max_length };
            builder = builder.clamp(format!("/{field}"), clamp);
        }
        if let Some(cap) = tool.output_cap {
            builder = builder.max_output(cap as usize);
        }
        for secret in &tool.secrets {
            // Ways are written as names with `/` between them, as a JSON Pointer without its first.
            builder = builder.secret(format!("/{secret}"));
        }
        (self.bodies)(builder, tool.clone(), self.watch.clone(), self.time.clone())
    }

    /// The interceptors, in their order.
    pub(super) fn judges(&self) -> impl Iterator<Item = Judge> {
        let judge = |script: &world::Interceptor| Judge {
            watch: self.watch.clone(),
            time: self.time.clone(),
            script: script.clone(),
        };
        self.world.interceptors.iter().map(judge)
    }

    /// Has something happen beside calls and decisions.
    pub(super) fn happen(&mut self, event: &Event) -> Result<(), SubjectFault> {
        match event {
            Event::Advance(ms) => self.time.advance(Duration::from_millis(*ms)),
            Event::Rewind(ms) => self.time.rewind(*ms),
            Event::Rule(rule) => {
                self.policy.add(rule).map_err(gave_up)?;
                self.world.rules.push(rule.clone());
            }
            Event::Define(tool) => {
                self.world.tools.retain(|old| old.name != tool.name);
                self.world.tools.push((**tool).clone());
                self.publish().map_err(SubjectFault::GaveUp)?;
            }
            Event::Fault(fault) => self.watch.plant(*fault),
            Event::Kill(kill) if kill.at.is_some() => self.watch.plant_kill(*kill),
            Event::Kill(_)
            | Event::Call(_)
            | Event::Batch(_)
            | Event::Decide(_)
            | Event::Show(_)
            | Event::Inspect(_) => {}
        }
        Ok(())
    }

    /// Takes an approver's decision to `decide`, and says whether it was taken.
    pub(super) fn decided(
        decide: &event::Decide,
        by: impl FnOnce(Digest, Verdict, &CallContext<'_>) -> Result<Decided, DecideFault>,
    ) -> bool {
        let Some((ticket, verdict)) = Self::decision(decide) else { return false };
        let scopes = decide.approver.scopes.join(" ");
        by(ticket, verdict, &Self::approver(decide, &scopes)).is_ok()
    }

    /// What is decided; `None` when there can be no such question.
    pub(super) fn decision(decide: &event::Decide) -> Option<(Digest, Verdict)> {
        let verdict = match decide.verdict {
            event::Verdict::Approve => Verdict::Approve,
            event::Verdict::Deny => Verdict::Deny,
        };
        Some((decide.approval.parse::<Digest>().ok()?, verdict))
    }

    /// Who decides.
    pub(super) fn approver<'a>(decide: &'a event::Decide, scopes: &'a str) -> CallContext<'a> {
        context(&decide.approver, scopes, "a-decision", event::Mode::Execute)
    }

    /// An event at a core that has no gate around it: calls go through `drive`.
    pub(super) fn driven(
        around: Option<&mut Self>,
        event: &Event,
        drive: impl Fn(&Self, &event::Call) -> Result<String, std::fmt::Error>,
    ) -> Result<Seen, SubjectFault> {
        let around = around.ok_or_else(no_world)?;
        match event {
            Event::Call(call) => {
                let outcome = drive(around, call).map_err(gave_up)?;
                around.seen(Some(outcome))
            }
            Event::Batch(batch) => {
                let outcomes = batch.calls.iter().map(|call| drive(around, call)).collect::<Result<Vec<_>, _>>();
                around.seen_of_batch(&outcomes.map_err(gave_up)?)
            }
            Event::Show(show) => around.shown(show),
            Event::Decide(decide) => {
                let taken = Self::decided(decide, |ticket, verdict, by| around.store.decide(ticket, verdict, by));
                Ok(Seen { decided: Some(taken), ..around.seen(None)? })
            }
            other => {
                around.happen(other)?;
                around.seen(None)
            }
        }
    }

    /// What was seen, with this outcome of a call.
    pub(super) fn seen(&self, outcome: Option<String>) -> Result<Seen, SubjectFault> {
        let mut seen = self.watch.take();
        // Of one that was killed nobody hears anything.
        if let Some(outcome) = outcome.filter(|_| !seen.killed) {
            let outcome: Outcome = serde_json::from_str(&outcome).map_err(gave_up)?;
            seen.outcome = Some(outcome);
        }
        Ok(seen)
    }

    /// What was seen, with these outcomes of a batch.
    pub(super) fn seen_of_batch(&self, outcomes: &[String]) -> Result<Seen, SubjectFault> {
        let outcomes = outcomes.iter().map(|outcome| serde_json::from_str(outcome));
        Ok(Seen { outcomes: outcomes.collect::<Result<Vec<Outcome>, _>>().map_err(gave_up)?, ..self.watch.take() })
    }

    /// What an approver is shown of a request, if it may see it.
    pub(super) fn shown(&self, show: &event::Show) -> Result<Seen, SubjectFault> {
        let scopes = show.approver.scopes.join(" ");
        let approver = context(&show.approver, &scopes, "a-look", event::Mode::Execute);
        let pending = self.store.pending(&approver, usize::MAX).map_err(gave_up)?;
        let asked = pending.into_iter().find(|pending| pending.ticket.to_string() == show.approval);
        Ok(Seen { shown: asked.map(|pending| pending.summary), ..self.watch.take() })
    }
}

/// The scopes of the callers of a batch, as contexts hold them.
pub(super) fn scopes(batch: &event::Batch) -> Vec<String> {
    batch.calls.iter().map(|call| call.caller.scopes.join(" ")).collect()
}

/// A batch as gates take it.
pub(super) fn batched<'a>(batch: &'a event::Batch, scopes: &'a [String]) -> (Vec<BatchCall<'a>>, BatchOptions) {
    let calls = batch.calls.iter().zip(scopes).map(|(call, scopes)| BatchCall {
        id: &call.id,
        caller: context(&call.caller, scopes, &call.id, call.mode),
        request: Request { tool: &call.tool, arguments: call.arguments.as_bytes(), token: call.token.as_deref() },
        operation: call.operation.as_deref(),
    });
    (calls.collect(), BatchOptions { at_once: batch.at_once as usize, delivery: Delivery::Ordered })
}

/// The context of a call.
pub(super) fn context<'a>(
    caller: &'a world::Caller,
    scopes: &'a str,
    request_id: &'a str,
    mode: event::Mode,
) -> CallContext<'a> {
    let mut context = CallContext::new(&caller.channel, request_id).with_scopes(Scopes::new(scopes));
    context.principal = caller.principal.as_deref();
    context.tenant = caller.tenant.as_deref();
    context.session = caller.session.as_deref();
    context.mode = match mode {
        event::Mode::Execute => Mode::Execute,
        event::Mode::Plan => Mode::Plan,
    };
    context
}

/// What a body came to, unless it panicked.
pub(super) enum Performed {
    Done(Reply),
    Failed(Failure),
    Late,
}

/// Does what the script of a tool says.
pub(super) fn perform(tool: &world::Tool, watch: &Watch, time: &Time, args: Args<'_>) -> Performed {
    if !watch.started(args) {
        return Performed::Failed(Failure::new("the gate was killed"));
    }
    match &tool.body {
        Body::Echo => Performed::Done(Reply::new(value(args))),
        Body::Return(value) => Performed::Done(Reply::new(value.clone())),
        Body::Fail(text) => Performed::Failed(Failure::new(text.as_str())),
        Body::Refuse(text) => Performed::Failed(Failure::new(text.as_str()).without_effect()),
        Body::Panic(text) => panics(text),
        Body::Hang(ms) => {
            time.advance(Duration::from_millis(*ms.min(&tool.timeout_ms())));
            if *ms >= tool.timeout_ms() { Performed::Late } else { Performed::Done(Reply::new(value(args))) }
        }
    }
}

/// The limiter of a world.
pub(super) struct WatchedLimiter {
    limiter: Arc<dyn RateLimiter>,
    watch: Watch,
    limits: bool,
    limits_attempts: bool,
}

impl std::fmt::Debug for WatchedLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedLimiter").finish_non_exhaustive()
    }
}

impl WatchedLimiter {
    fn new(world: &World, watch: Watch, limiter: Arc<dyn RateLimiter>) -> Self {
        Self { limiter, watch, limits: world.quota.is_some(), limits_attempts: world.attempts.is_some() }
    }
}

impl RateLimiter for WatchedLimiter {
    fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        match charge.mode {
            _ if !self.limits => Ok(Allowance::Unlimited),
            // Nothing is taken for a plan: that is no charge.
            ChargeMode::Probe => self.limiter.charge(charge),
            ChargeMode::Take => {
                let mark = Mark { cost: Some(charge.cost), ..Mark::at(Point::Charge) };
                self.watch.ask(mark, || self.limiter.charge(charge), || Err(StoreFault))
            }
        }
    }

    fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault> {
        self.watch.unseen(|| self.limiter.refund(refund), || Err(StoreFault))
    }

    fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        if !self.limits_attempts {
            return Ok(Allowance::Unlimited);
        }
        self.watch.unseen(|| self.limiter.attempt(key), || Err(StoreFault))
    }
}

/// The store of confirmations of a world.
pub(super) struct WatchedStore {
    store: Arc<dyn ConfirmationStore>,
    watch: Watch,
}

impl std::fmt::Debug for WatchedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedStore").finish_non_exhaustive()
    }
}

impl ConfirmationStore for WatchedStore {
    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        let issue = || self.store.issue(request, ttl_ms);
        self.watch.ask(Mark::at(Point::Issue), issue, || Err(IssueFault::Store))
    }

    fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        self.watch.unseen(|| self.store.load(ticket), || Err(StoreFault))
    }

    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        self.watch.ask(Mark::at(Point::Redeem), || self.store.claim(ticket, presented), || Err(StoreFault))
    }

    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        self.watch.unseen(|| self.store.finish(finish), || Err(StoreFault))
    }

    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        self.watch.unseen(|| self.store.withdraw(ticket), || Err(StoreFault))
    }

    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        self.store.decide(ticket, verdict, approver)
    }

    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        self.store.pending(approver, max)
    }
}

/// The journal of a world. What it is asked is not seen, only what becomes of it.
pub(super) struct WatchedJournal {
    journal: Arc<dyn Journal>,
    watch: Watch,
}

impl std::fmt::Debug for WatchedJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedJournal").finish_non_exhaustive()
    }
}

impl Journal for WatchedJournal {
    fn recall(&self, presented: &PresentedOperation) -> JournalAnswer {
        self.watch.unseen(|| self.journal.recall(presented), || Err(StoreFault))
    }

    fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer {
        self.watch.unseen(|| self.journal.claim(request), || Err(StoreFault))
    }

    fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault> {
        self.watch.unseen(|| self.journal.finish(finish, result), || Err(StoreFault))
    }

    fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.journal.reap(max)
    }

    fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        self.journal.reconcile(key, resolution)
    }

    fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.journal.operations(viewer, max)
    }
}

/// The log of a world.
pub(super) struct Sink {
    watch: Watch,
    log: Option<Arc<dyn Audit + Send + Sync>>,
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}

impl Sink {
    /// Takes one record, which `text` gives when it is as good as written.
    pub(super) fn write(
        &self,
        intent: bool,
        text: impl FnOnce() -> Result<String, AuditFault>,
    ) -> Result<(), AuditFault> {
        let point = if intent { Point::Intent } else { Point::Record };
        let write = || {
            self.watch.recorded(serde_json::from_str(&text()?).map_err(|_| AuditFault)?);
            Ok(())
        };
        self.watch.ask(Mark::at(point), write, || Err(AuditFault))
    }
}

impl Audit for Sink {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        self.write(record.kind == Kind::Intent, || {
            let mut text = String::new();
            record.write_json(&mut text).map_err(|_| AuditFault)?;
            self.log.as_ref().map_or(Ok(()), |log| log.record(record))?;
            Ok(text)
        })
    }
}
