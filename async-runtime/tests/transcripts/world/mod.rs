//! A gate of each front-end over the same tools, the same parts, the same clock and the same randomness, and a transcript of
//! everything that is asked and answered.

pub(crate) mod desk;
pub(crate) mod log;
pub(crate) mod runtime;
pub(crate) mod script;
mod seams;
pub(crate) mod time;
mod tools;
pub(crate) mod waiting;

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callgate_async::gate::{CallOptions, Gate as AsyncGate, Outcome as AsyncOutcome};
use callgate_async::interceptors::Interceptors as AsyncInterceptors;
use callgate_async::policy::RuledPolicies;
use callgate_async::runtime::{Runtime, Smol, Tokio};
use callgate_async::seam::{Blocking, Immediate, Waiting};
use callgate_core::call::End;
use callgate_core::confirm::{Token, Verdict};
use callgate_core::digest::Digest;
use callgate_core::limit::Quota;
use callgate_core::policy::ChannelPolicy;
use callgate_core::request::{Context, Request};
use callgate_std::batch::{BatchCall, BatchOptions, Delivery};
use callgate_std::cache::ResultCache;
use callgate_std::cancellation::Cancellation;
use callgate_std::confirmations::{Capacity, MemoryConfirmations};
use callgate_std::entropy::{SeededEntropy, SharedEntropy};
use callgate_std::gate::{
    CallOptions as BlockingOptions, GRACE, Gate as BlockingGate, Outcome as BlockingOutcome, Shutdown,
};
use callgate_std::interceptors::Interceptors;
use callgate_std::journal::{JournalLimits, MemoryJournal};
use callgate_std::limiter::{DEFAULT_KEYS, MemoryLimiter, QuotaScope, Quotas};
use callgate_std::observer::{Event, Observers};
use callgate_std::policy::ChannelPolicies;
use callgate_std::registry::ToolSource;
use callgate_std::task::Completion;
use callgate_std::update::Update;
use callgate_std::view::View;
use futures_lite::StreamExt as _;

use self::log::Log;
use self::runtime::{Busy, Driven, Jobs, Own, Polls, Timed};
use self::script::{Brings, Calling, Step};
use self::seams::{Judge, Rules, STAGE_LIMIT, Sink, Spy};
use self::time::{Pause, Time};
use self::tools::Stage;
use self::waiting::{Decides, Patient, Pauses};

/// How the async gate reaches what it asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seams {
    Immediate,
    Blocking,
    Waiting(Pauses),
}

/// A front-end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Front {
    Blocking,
    Tokio(Seams),
    Smol(Seams),
    Own(Seams, Jobs, Polls),
}

enum Gate {
    Blocking(BlockingGate),
    Async(AsyncGate),
}

/// What drives the futures of an async gate.
enum Executor {
    None,
    Tokio(Arc<Busy>),
    Smol(Arc<Busy>),
    Own(Own),
}

/// What happens to a call that is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaving {
    /// It is dropped.
    Dropped,
    /// It is dropped, and its executor goes down.
    DroppedThenDown,
    /// Its executor goes down, and it is dropped.
    DownThenDropped,
    /// Its executor goes down, and it is polled on.
    Down,
}

/// A gate and everything around it.
pub(crate) struct World {
    pub(crate) log: Log,
    pub(crate) time: Time,
    stage: Stage,
    gate: Gate,
    executor: Executor,
    asked: Vec<(Token, Digest)>,
    granted: Vec<Digest>,
    calls: usize,
}

/// What a script comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Transcript {
    pub(crate) lines: Vec<String>,
    pub(crate) answers: Vec<String>,
    pub(crate) completions: Vec<String>,
}

/// The parts of a gate that do not depend on the front-end.
struct Parts {
    stage: Stage,
    entropy: SharedEntropy,
    source: Arc<dyn ToolSource>,
    cache: Arc<ResultCache>,
}

fn tokio() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap())
}

impl Parts {
    fn new() -> Self {
        let (log, time) = (Log::default(), Time::new());
        let stage = Stage::new(log, time.clone());
        let all = tools::registry();
        let shown = View::of(all, "shown").with_all().only_if(|tool, _| tool.name() != "absent.one");
        let seen = View::of(shown, "seen").with_all().only_if(|tool, _| tool.name() != "hidden.one").admitting();
        let cache = Arc::new(ResultCache::new(30_000, 100, time.shared()));
        Self { stage, entropy: SeededEntropy::shared(7), source: Arc::new(seen), cache }
    }

    fn spy<T>(&self, part: T) -> Spy<T> {
        Spy { part, log: self.stage.log.clone(), time: self.stage.time.clone() }
    }

    fn patient<T>(&self, part: T, pauses: Pauses) -> Patient<T> {
        Patient { spy: Arc::new(self.spy(part)), pauses }
    }

    fn channels() -> callgate_std::policy::PolicyBuilder {
        let web = ChannelPolicy::new("");
        // Whoever is known may call what changes nothing from anywhere.
        ChannelPolicies::builder().channel("web", web)
    }

    fn policy(&self) -> Spy<ChannelPolicies> {
        let channels = Self::channels().rule_provider(self.spy(Rules)).build().unwrap();
        self.spy(channels)
    }

    fn waiting_policy(&self, pauses: Pauses) -> Decides<RuledPolicies<Patient<Rules>>> {
        let channels = Self::channels().build().unwrap();
        Decides { inner: RuledPolicies::new(channels, self.patient(Rules, pauses)), spy: self.spy(()), pauses }
    }

    fn limiter(&self) -> MemoryLimiter {
        let poor = QuotaScope::all().of_principal("poor");
        let quotas = Quotas::new(Quota::DEFAULT)
            .with(poor, Quota::per_window(6, 60_000).unwrap())
            .with_attempts(Quota::per_window(2, 60_000).unwrap());
        MemoryLimiter::with(move |key| quotas.of(key), self.stage.time.shared(), DEFAULT_KEYS)
    }

    fn store(&self) -> MemoryConfirmations {
        let store = MemoryConfirmations::with(Capacity::default(), self.stage.time.shared(), self.entropy.clone());
        store.attach_approvers(true);
        store
    }

    fn journal(&self) -> MemoryJournal {
        MemoryJournal::with(JournalLimits::DEFAULT, self.stage.time.shared())
    }

    fn observers(&self) -> Observers {
        let log = self.stage.log.clone();
        Observers::new().on("tool.*", move |event: &Event<'_>| log.line(format!("tell {event:?}"))).unwrap()
    }

    fn told(&self) -> impl Fn(Completion) + Send + Sync + 'static {
        let log = self.stage.log.clone();
        move |Completion { task, outcome, updates, missed, .. }| {
            log.completed(format!("{task} {} {updates:?} {missed}", outcome.to_json().unwrap()));
        }
    }
}

/// What both builders are told.
macro_rules! common {
    ($builder:expr, $parts:expr) => {
        $builder
            .cache(Arc::clone(&$parts.cache))
            .observers($parts.observers())
            .entropy($parts.entropy.clone())
            .digest_key([7; 32])
            .policy_digest(Digest::from_bytes([9; 32]))
            .on_completion($parts.told())
            .in_flight(64, 0, Duration::ZERO)
    };
}

fn blocking(parts: &Parts) -> BlockingGate {
    let interceptors = Interceptors::with(parts.stage.time.shared(), 1_000)
        .and("first", parts.spy(Judge("first")))
        .and("second", parts.spy(Judge("second")));
    common!(BlockingGate::builder(Arc::clone(&parts.source)), parts)
        .policy(parts.policy())
        .limiter(Arc::new(parts.spy(parts.limiter())))
        .confirmations(Arc::new(parts.spy(parts.store())))
        .journal(Arc::new(parts.spy(parts.journal())))
        .interceptors(interceptors)
        .audit(Arc::new(parts.spy(Sink)))
        .clock(parts.stage.time.shared())
        .build()
        .unwrap()
}

/// An async gate whose parts are given in this wrapper.
macro_rules! wrapped {
    ($wrapper:ident, $builder:expr, $parts:expr) => {{
        let interceptors = AsyncInterceptors::with_limit(Duration::from_secs(1))
            .and("first", $wrapper($parts.spy(Judge("first"))))
            .and("second", $wrapper($parts.spy(Judge("second"))));
        $builder
            .policy($wrapper($parts.policy()))
            .limiter($wrapper($parts.spy($parts.limiter())))
            .confirmations($wrapper($parts.spy($parts.store())))
            .journal($wrapper($parts.spy($parts.journal())))
            .interceptors(interceptors)
            .audit($wrapper($parts.spy(Sink)))
    }};
}

fn waiting(parts: &Parts, runtime: impl Runtime, seams: Seams) -> AsyncGate {
    let builder = common!(AsyncGate::builder(Arc::clone(&parts.source), runtime), parts).stage_limit(STAGE_LIMIT);
    let builder = match seams {
        Seams::Immediate => wrapped!(Immediate, builder, parts),
        Seams::Blocking => wrapped!(Blocking, builder, parts),
        Seams::Waiting(pauses) => {
            let interceptors = AsyncInterceptors::with_limit(Duration::from_secs(1))
                .and("first", Waiting(parts.patient(Judge("first"), pauses)))
                .and("second", Waiting(parts.patient(Judge("second"), pauses)));
            builder
                .policy(Waiting(parts.waiting_policy(pauses)))
                .limiter(Waiting(parts.patient(parts.limiter(), pauses)))
                .confirmations(Waiting(parts.patient(parts.store(), pauses)))
                .journal(Waiting(parts.patient(parts.journal(), pauses)))
                .interceptors(interceptors)
                .audit(Waiting(parts.patient(Sink, pauses)))
        }
    };
    builder.build().unwrap()
}

/// An outcome, as far as a script goes on from it.
fn told<C: Context<Text = Arc<str>>>(
    outcome: &callgate_core::outcome::Outcome<C, Arc<callgate_std::tool::Tool>>,
) -> (String, Option<Token>) {
    let token = match outcome.end() {
        End::Asked { token, .. } => Some(*token),
        _ => None,
    };
    (outcome.to_json().unwrap(), token)
}

impl World {
    pub(crate) fn new(front: Front) -> Self {
        callgate_std::contain::quiet_contained_panics();
        let parts = Parts::new();
        let time = parts.stage.time.clone();
        let (gate, executor) = match front {
            Front::Blocking => (Gate::Blocking(blocking(&parts)), Executor::None),
            Front::Tokio(seams) => {
                let (runtime, busy) = Timed::new(Tokio::new(tokio().handle().clone()), time.clone());
                (Gate::Async(waiting(&parts, runtime, seams)), Executor::Tokio(busy))
            }
            Front::Smol(seams) => {
                let (runtime, busy) = Timed::new(Smol::new(), time.clone());
                (Gate::Async(waiting(&parts, runtime, seams)), Executor::Smol(busy))
            }
            Front::Own(seams, jobs, polls) => {
                let own = Own::new(time.clone(), jobs, polls);
                (Gate::Async(waiting(&parts, own.clone(), seams)), Executor::Own(own))
            }
        };
        Self {
            log: parts.stage.log.clone(),
            time,
            stage: parts.stage,
            gate,
            executor,
            asked: Vec::new(),
            granted: Vec::new(),
            calls: 0,
        }
    }

    /// Waits for a future of the gate on its executor, and for all that it left to do.
    fn wait<F: Future>(&self, future: F) -> F::Output {
        match &self.executor {
            Executor::None => callgate_std::future::block_on(future),
            Executor::Tokio(busy) => {
                let output = tokio().block_on(future);
                busy.wait();
                output
            }
            Executor::Smol(busy) => {
                let output = smol::block_on(future);
                busy.wait();
                output
            }
            Executor::Own(own) => {
                let output = own.drive(future);
                own.run();
                output
            }
        }
    }

    pub(crate) fn own(&self) -> &Own {
        match &self.executor {
            Executor::Own(own) => own,
            _ => panic!("it has no executor of its own"),
        }
    }

    pub(crate) fn gate(&self) -> &AsyncGate {
        match &self.gate {
            Gate::Async(gate) => gate,
            Gate::Blocking(_) => panic!("it is a blocking gate"),
        }
    }

    /// The token that a call brings along, as text.
    fn token(&self, brings: Brings) -> Option<String> {
        match brings {
            Brings::Nothing => None,
            Brings::Token(at) => self.asked.get(at).map(|(token, _)| token.to_string()),
            Brings::Made => Some(Token::from_random([3; 16]).to_string()),
            Brings::Garbage => Some("no token".to_owned()),
        }
    }

    /// The id of the next call; the caller is there again, unless it is gone.
    fn next(&mut self, calling: &Calling) -> String {
        self.calls += 1;
        let fresh = Cancellation::new();
        if calling.gone {
            fresh.cancel();
        }
        *self.stage.caller.lock().unwrap() = fresh;
        let request_id = format!("request-{}", self.calls);
        self.log.line(format!("call {request_id}"));
        request_id
    }

    fn called(&mut self, json: String, token: Option<Token>, updates: &[Update]) {
        self.log.answer(json);
        if !updates.is_empty() {
            self.log.answer(format!("{updates:?}"));
        }
        self.asked.extend(token.map(|token| (token, token.hash())));
    }

    fn call(&mut self, calling: &Calling) {
        let (request_id, token) = (self.next(calling), self.token(calling.brings));
        let request = Request { tool: calling.tool, arguments: calling.arguments.as_bytes(), token: token.as_deref() };
        let context = calling.context(&request_id, &self.stage.name);
        let mut updates = Vec::new();
        let (json, token) = match &self.gate {
            Gate::Blocking(gate) => {
                let caller = self.stage.caller.lock().unwrap().clone();
                let mut options = BlockingOptions::new().cancelled_by(&caller);
                if calling.followed {
                    options = options.followed_by(|update| {
                        updates.push(update);
                        ControlFlow::Continue(())
                    });
                }
                if let Some(operation) = calling.operation {
                    options = options.of_operation(operation);
                }
                told(&gate.call_with(&context, request, options))
            }
            Gate::Async(_) => {
                let (future, receiver) = self.calling(calling, &request_id, token.as_deref());
                let answer = told(&self.wait(future));
                updates.extend(std::iter::from_fn(|| receiver.try_recv().ok()));
                answer
            }
        };
        self.settle();
        self.called(json, token, &updates);
    }

    /// The threads of the blocking gate are its own; executors say themselves when all is done.
    fn settle(&self) {
        if matches!(self.executor, Executor::None) {
            self.log.settle();
        }
    }

    /// Makes these calls as a batch, one at a time.
    fn batch(&mut self, callings: &[Calling]) {
        let ids: Vec<_> = callings.iter().map(|calling| (self.next(calling), self.token(calling.brings))).collect();
        let calls: Vec<_> = callings
            .iter()
            .zip(&ids)
            .map(|(calling, (id, token))| BatchCall {
                id,
                caller: calling.context(id, &self.stage.name),
                request: Request {
                    tool: calling.tool,
                    arguments: calling.arguments.as_bytes(),
                    token: token.as_deref(),
                },
                operation: calling.operation,
            })
            .collect();
        let options = BatchOptions { at_once: 1, delivery: Delivery::Ordered };
        let mut answers = Vec::new();
        match &self.gate {
            Gate::Blocking(gate) => {
                let deliver = |id: &str, outcome: BlockingOutcome<'_>| {
                    answers.push((id.to_owned(), told(&outcome)));
                    ControlFlow::Continue(())
                };
                gate.batch(&calls, options, deliver).unwrap();
            }
            Gate::Async(gate) => {
                let outcomes: Vec<_> = self.wait(gate.batch(&calls, options).unwrap().collect());
                answers.extend(outcomes.iter().map(|(id, outcome)| (id.to_string(), told(outcome))));
            }
        }
        self.settle();
        for (id, (json, token)) in answers {
            self.called(format!("{id}: {json}"), token, &[]);
        }
    }

    /// The future of a call, and what takes its updates.
    fn calling(
        &self,
        calling: &Calling,
        request_id: &str,
        token: Option<&str>,
    ) -> (impl Future<Output = AsyncOutcome> + Send + use<>, async_channel::Receiver<Update>) {
        let request = Request { tool: calling.tool, arguments: calling.arguments.as_bytes(), token };
        let (sender, receiver) = async_channel::unbounded();
        let mut options = CallOptions::new().cancelled_by(self.stage.caller.lock().unwrap().clone());
        if calling.followed {
            options = options.with_updates(sender);
        }
        if let Some(operation) = calling.operation {
            options = options.of_operation(operation);
        }
        (self.gate().call_with(&calling.context(request_id, &self.stage.name), request, options), receiver)
    }

    /// Makes a call and leaves it after so many polls; see [`Own::drive_for`]. Gives the id of the call, and whether it came to
    /// its end before.
    pub(crate) fn leave(&mut self, calling: &Calling, polls: usize, late: bool, leaving: Leaving) -> (String, bool) {
        let (request_id, token) = (self.next(calling), self.token(calling.brings));
        let (future, _updates) = self.calling(calling, &request_id, token.as_deref());
        let driven = self.own().drive_for(future, polls, late);
        let ended = match (driven, leaving) {
            (Driven::ToItsEnd(outcome), _) => Some(outcome),
            (Driven::Stopped(future), Leaving::Dropped) => {
                drop(future);
                None
            }
            (Driven::Stopped(future), Leaving::DroppedThenDown) => {
                drop(future);
                self.own().go_down();
                None
            }
            (Driven::Stopped(future), Leaving::DownThenDropped) => {
                self.own().go_down();
                drop(future);
                None
            }
            (Driven::Stopped(future), Leaving::Down) => {
                self.own().go_down();
                self.own().drive(future);
                None
            }
        };
        self.own().run();
        let over = ended.is_some();
        if let Some(outcome) = ended {
            let (json, token) = told(&outcome);
            self.called(json, token, &[]);
        }
        (request_id, over)
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.len()
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Call(calling) => self.call(calling),
            Step::Batch(callings) => self.batch(callings),
            Step::Decide(at, verdict, who) => self.decide(*at, *verdict, *who),
            Step::Desk(act, who) => self.act(*act, *who),
            Step::Advance(ms) => self.time.advance(Duration::from_millis(*ms)),
            Step::SetClock(ms) => self.time.step_wall(*ms),
            Step::Plant(after, way) => self.log.plant(*after, *way),
            Step::Lose(word) => self.log.lose(word),
            Step::Shutdown => {
                let down = self.shutdown();
                self.log.answer(format!("{down:?}"));
            }
        }
    }

    /// The ticket of the question that was asked as the so-manieth, or one that there is not.
    pub(crate) fn ticket(&self, at: usize) -> Digest {
        self.asked.get(at).map_or_else(|| Token::from_random([4; 16]).hash(), |(_, ticket)| *ticket)
    }

    fn decide(&self, at: usize, verdict: Verdict, who: script::Who) {
        let ticket = self.ticket(at);
        let approver = who.context("an approval");
        let decided = match &self.gate {
            Gate::Blocking(gate) => gate.decide(ticket, verdict, &approver),
            Gate::Async(gate) => self.wait(gate.decide(ticket, verdict, &approver)),
        };
        self.log.answer(format!("{decided:?}"));
    }

    /// Goes down, without time for those that are not over.
    pub(crate) fn shutdown(&self) -> Shutdown {
        // Whoever is still in it gets its grace.
        let pass = || self.time.advance(GRACE);
        match &self.gate {
            Gate::Blocking(gate) => {
                // Its last thread may hold its place a moment longer than it takes to tell of its run.
                let down = gate.shutdown(Duration::from_secs(60));
                pass();
                down
            }
            Gate::Async(gate) => {
                let pass = async {
                    Pause::default().await;
                    pass();
                };
                self.wait(futures_lite::future::zip(gate.shutdown(Duration::ZERO), pass)).0
            }
        }
    }

    /// How it went.
    pub(crate) fn transcript(&self) -> Transcript {
        let book = self.log.book();
        Transcript { lines: book.lines.clone(), answers: book.answers.clone(), completions: book.completions.clone() }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stage.clear();
    }
}

impl Transcript {
    /// The first things that differ from what is expected; `None` if nothing does.
    pub(crate) fn difference(&self, expected: &Self) -> Option<String> {
        let parts = [
            ("line", &self.lines, &expected.lines),
            ("answer", &self.answers, &expected.answers),
            ("completion", &self.completions, &expected.completions),
        ];
        parts.into_iter().find_map(|(what, ours, theirs)| {
            let at = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at))?;
            Some(format!("{what} {at} is\n  {:?}\nand was to be\n  {:?}", ours.get(at), theirs.get(at)))
        })
    }
}

/// Runs a script on a front-end, down to the gate's last word.
pub(crate) fn run(front: Front, steps: &[Step]) -> Transcript {
    let mut world = World::new(front);
    steps.iter().for_each(|step| world.step(step));
    world.step(&Step::Shutdown);
    world.transcript()
}
