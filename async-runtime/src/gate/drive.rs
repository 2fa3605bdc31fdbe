//! The driver: core's stages in a row.
#![expect(clippy::result_large_err, reason = "an ended call is a value of the pipeline, moved once")]

use std::future::{Future, pending};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use callgate_core::audit::AuditFault;
use callgate_core::call::{
    Admitted, Announced, Asking, Authorized, Call, Cleared, Confirm, Confirmed, Covered, End, IssueFault, Issued, Live,
    Load, Loaded, Loading, Lookup, Operate, Operating, Redeeming, StoreFault, TurnAway, Validated,
};
use callgate_core::confirm::{By, Refusal};
use callgate_core::context::CallContext;
use callgate_core::intercept::Interception;
use callgate_core::limit::Allowance;
use callgate_core::policy::Decision;
use callgate_core::request::Request;
use callgate_core::time::Now;
use callgate_std::cache::CacheKey;
use callgate_std::captured::CapturedContext;
use callgate_std::common::Common;
use callgate_std::confirmations::PendingRequest;
use callgate_std::contain::{contain, contained};
use callgate_std::envelope::OwnedEnvelope;
use callgate_std::future::BoxFuture;
use callgate_std::interceptors::{LIMIT_TO_SLACK, weigh};
use callgate_std::journal::{self, JournalAnswer, OperationRefusal, OperationRequest};
use callgate_std::output::Reply;
use callgate_std::policy;
use callgate_std::slots::Slots;
use callgate_std::tool::Tool;
use futures_lite::future::or;

use super::execute::{Execution, start};
use super::parked::{Carried, Ended, Fork, Over, Parked, Passage, Received};
use super::{CallOptions, Gate, Outcome};
use crate::audit::Entry;
use crate::journal::JournalSeam;
use crate::seam::Seam;

type At<S> = Parked<Call<Carried, Arc<Tool>, S>>;

/// Puts a question about a call to whoever a seam leads to, in the way that the seam asks for, and gives the answer: `None` when it
/// panicked, took too long or got lost. `$of` gives what the question is about, while the call is held.
macro_rules! ask {
    ($gate:ident, $call:ident, $seam:expr, |$asked:ident, $stage:ident| $of:expr => |$about:ident| $question:expr) => {
        match $seam {
            Seam::Immediate($asked) => {
                let $stage = $call.stage();
                contain(|| {
                    let $about = $of?;
                    Some($question)
                })
                .ok()
                .flatten()
            }
            Seam::Waiting($asked) => {
                let $stage = $call.stage();
                let question = Box::pin(async {
                    let $about = $of?;
                    Some($question.await)
                });
                $crate::gate::drive::within(&$gate, question).await.flatten()
            }
            Seam::Blocking($asked) => {
                let $asked = Arc::clone($asked);
                let (back, answer) = $crate::gate::drive::offload_with(&$gate, $call, move |call| {
                    let $stage = call.stage();
                    contain(|| {
                        let $about = $of?;
                        Some($question)
                    })
                    .ok()
                    .flatten()
                })
                .await;
                $call = back;
                answer.flatten()
            }
        }
    };
}
pub(super) use ask;

/// Waits for an answer, contained and not for longer than a stage may take.
pub(super) async fn within<F: Future + Unpin>(gate: &Gate, question: F) -> Option<F::Output> {
    let limit = gate.0.runtime.sleep(gate.0.stage_limit);
    or(async { contained(question).await.ok() }, async {
        limit.await;
        None
    })
    .await
}

/// Takes a call to a thread where work may block, and back. The work is not done, and the call comes back, when the executor goes
/// down before.
pub(super) async fn offload_with<T: Send + 'static, R: Send + 'static>(
    gate: &Gate,
    value: T,
    work: impl FnOnce(&mut T) -> R + Send + 'static,
) -> (T, Option<R>) {
    let (sender, receiver) = async_channel::bounded(1);
    let mut job = Job { value: Some(value), sender };
    gate.0.runtime.spawn_blocking(Box::new(move || {
        let answer = job.value.as_mut().and_then(|value| contain(|| work(value)).ok());
        job.hand_back(answer);
    }));
    match receiver.recv().await {
        Ok(back) => back,
        // A job hands its value back even when it is dropped.
        Err(_) => pending().await,
    }
}

/// A value on its way. When nobody waits for it any more, it is dropped, and so given up.
struct Job<T, R> {
    value: Option<T>,
    sender: async_channel::Sender<(T, Option<R>)>,
}

impl<T, R> Job<T, R> {
    fn hand_back(&mut self, answer: Option<R>) {
        if let Some(value) = self.value.take() {
            drop(self.sender.try_send((value, answer)));
        }
    }
}

impl<T, R> Drop for Job<T, R> {
    fn drop(&mut self) {
        self.hand_back(None);
    }
}

impl Gate {
    pub(super) fn receive(
        &self,
        caller: &CallContext<'_>,
        request: Request<'_>,
        options: CallOptions,
    ) -> Parked<Received> {
        let common = &self.0.common;
        let received = common.now();
        let caller = CapturedContext::from(caller);
        let settings = Arc::clone(&common.settings);
        let envelope = OwnedEnvelope::captured(caller.clone(), request, settings, common.accept_reserved_argument)
            .of_operation(options.operation);
        let mut passage = Passage::new(self.clone(), caller, &envelope, received);
        passage.updates = options.updates;
        if let Some(cancellation) = &options.cancellation {
            passage.cancellation.cancel_with(cancellation);
        }
        Parked::new(Call::request(Box::new(envelope), received), passage)
    }
}

/// A call on its way to its outcome. Each part of the way has its memory only while it lasts: a call is parked for the longest time
/// while its tool runs, and holds little then.
pub(super) struct Driving(Way);

enum Way {
    Approaching(BoxFuture<'static, Result<At<Announced>, Over>>),
    Executing(Box<Execution>, Option<Box<CacheKey>>),
    Finishing(BoxFuture<'static, Outcome>),
    Through,
}

/// Takes a call to its outcome.
pub(super) fn drive(call: Parked<Received>) -> Driving {
    Driving(Way::Approaching(Box::pin(approach(call))))
}

/// Ends a call that nobody waits for any more before anything was done for it.
pub(super) fn never_started(call: Parked<Received>) -> Driving {
    let over = call.end(|call| call.lost(false));
    Driving(Way::Finishing(Box::pin(over.finish(None))))
}

impl Future for Driving {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            let next = match &mut self.0 {
                // Polled after its end.
                Way::Through => return Poll::Pending,
                Way::Approaching(approach) => match ready!(approach.as_mut().poll(cx)) {
                    Err(over) => match finish(over, None) {
                        ControlFlow::Break(outcome) => return self.through(outcome),
                        ControlFlow::Continue(way) => way,
                    },
                    Ok(call) if call.stage().spec().background_ms.is_some() => {
                        Way::Finishing(Box::pin(super::background::accept(call)))
                    }
                    Ok(call) => {
                        let common = &call.passage().gate.0.common;
                        let kept_as = common.cache.as_ref().and_then(|_| common.cache_key(&call.stage().subject()));
                        Way::Executing(Box::new(Execution::new(start(call))), kept_as.map(Box::new))
                    }
                },
                Way::Executing(execution, kept_as) => {
                    let (over, at) = ready!(Pin::new(&mut **execution).poll(cx));
                    let common = &over.passage.gate.0.common;
                    if let End::Done(reply) = over.ended.end() {
                        common.keep(kept_as.as_deref().copied(), reply);
                    }
                    let ends_the_call = over.ended.spec().is_some_and(|spec| common.ends_with_its_run(spec));
                    match finish(over, ends_the_call.then_some(at)) {
                        ControlFlow::Break(outcome) => return self.through(outcome),
                        ControlFlow::Continue(way) => way,
                    }
                }
                Way::Finishing(finish) => {
                    let outcome = ready!(finish.as_mut().poll(cx));
                    return self.through(outcome);
                }
            };
            self.0 = next;
        }
    }
}

impl Driving {
    fn through(&mut self, outcome: Outcome) -> Poll<Outcome> {
        self.0 = Way::Through;
        Poll::Ready(outcome)
    }
}

/// The outcome where nothing of the last stage waits, and the way to it where something does.
fn finish(over: Over, at: Option<Now>) -> ControlFlow<Outcome, Way> {
    match over.finish_now(at) {
        Ok(outcome) => ControlFlow::Break(outcome),
        Err(closing) => ControlFlow::Continue(Way::Finishing(Box::pin(closing.answered()))),
    }
}

/// Everything before the tool.
async fn approach(mut call: Parked<Received>) -> Result<At<Announced>, Over> {
    let gate = call.passage().gate.clone();
    let common = &gate.0.common;
    let slots = Arc::clone(common.slots_for(&call.stage().caller()));
    if let Err(why) = take(&mut call, &slots).await {
        return Err(turn_away(call, why));
    }
    let found = common.find(call.stage());
    if let Lookup::Found(tool) = &found
        && let Some(slots) = tool.slots()
        && let Err(why) = take(&mut call, slots).await
    {
        return Err(turn_away(call, why));
    }
    let call = match resolve(call, found)? {
        Loads::Fresh(call) => call,
        Loads::Stored(loading) => gate.load(loading).await?,
    };
    let call = call.step(Call::validate)?;
    let call = gate.authorize(call).await?;
    let call = gate.charge(call).await?;
    let call = call.step(Call::unless_planning)?;
    // Before a token is asked for or used up.
    let call = unless_cancelled(call)?;
    let call = match operate(call, Call::recall)? {
        Operates::NotNeeded(call) => call,
        Operates::Ask(operating) => gate.recall(operating).await?,
    };
    let call = match confirm(call)? {
        Confirms::NotNeeded(call) => call,
        Confirms::Ask(asking) => gate.ask(asking).await?,
        Confirms::Redeem(redeeming) => gate.claim(redeeming).await?,
    };
    let call = gate.intercept(call).await?;
    let call = unless_cancelled(call)?;
    let call = match operate(call, Call::claim)? {
        Operates::NotNeeded(call) => call,
        Operates::Ask(operating) => gate.claim_operation(operating).await?,
    };
    let call = gate.announce(call).await?;
    if !common.observers.is_empty() {
        common.executing(&call.stage().subject());
    }
    Ok(call)
}

/// Why a call was not let in.
#[derive(Clone, Copy)]
enum NotLetIn {
    Turned(TurnAway),
    Cancelled,
}

/// Takes a place for a call, waiting in line if that is allowed.
async fn take(call: &mut Parked<Received>, slots: &Arc<Slots>) -> Result<(), NotLetIn> {
    let slot = match slots.try_take() {
        Err(TurnAway::Overloaded) if call.stage().with_caller(Common::waits) => {
            let gate = call.passage().gate.clone();
            let limit = gate.0.runtime.sleep(gate.0.common.max_wait);
            let cancellation = call.passage().cancellation.clone();
            let turn = async { slots.take().await.map_err(NotLetIn::Turned) };
            let vain = async {
                limit.await;
                Err(NotLetIn::Turned(TurnAway::Overloaded))
            };
            let gone = async {
                cancellation.cancelled().await;
                // A gate that goes down cancels everything, and whoever waits in line is told so.
                let down = gate.0.common.stop.is_cancelled();
                Err(if down { NotLetIn::Turned(TurnAway::Shutdown) } else { NotLetIn::Cancelled })
            };
            or(turn, or(gone, vain)).await?
        }
        taken => taken.map_err(NotLetIn::Turned)?,
    };
    if let Some(free) = call.passage_mut().places.iter_mut().find(|place| place.is_none()) {
        *free = Some(slot);
    }
    Ok(())
}

fn turn_away(call: Parked<Received>, why: NotLetIn) -> Over {
    call.end(|call| match why {
        NotLetIn::Turned(why) => call.turn_away(why),
        NotLetIn::Cancelled => call.lost(false),
    })
}

fn unless_cancelled<S: Send>(call: At<S>) -> Result<At<S>, Over> {
    let cancelled = call.passage().cancellation.is_cancelled();
    call.step(|call| if cancelled { Err(call.cancel()) } else { Ok(call) })
}

/// [`Load`], parked.
enum Loads {
    Fresh(At<callgate_core::call::Resolved>),
    Stored(Parked<Loading<Carried, Arc<Tool>>>),
}

fn resolve(call: Parked<Received>, found: Lookup<Arc<Tool>>) -> Result<Loads, Over> {
    let load = call.step(|call| call.resolve(found).map(Fork))?;
    Ok(match load.fork() {
        (Load::Fresh(call), passage) => Loads::Fresh(Parked::new(call, passage)),
        (Load::Stored(loading), passage) => Loads::Stored(Parked::new(loading, passage)),
    })
}

/// [`Confirm`], parked.
enum Confirms {
    NotNeeded(At<Confirmed>),
    Ask(Parked<Asking<Carried, Arc<Tool>>>),
    Redeem(Parked<Redeeming<Carried, Arc<Tool>>>),
}

fn confirm(call: At<Live>) -> Result<Confirms, Over> {
    let confirm = call.step(|call| call.confirm().map(Fork))?;
    Ok(match confirm.fork() {
        (Confirm::NotNeeded(call), passage) => Confirms::NotNeeded(Parked::new(call, passage)),
        (Confirm::Ask(asking), passage) => Confirms::Ask(Parked::new(asking, passage)),
        (Confirm::Redeem(redeeming), passage) => Confirms::Redeem(Parked::new(redeeming, passage)),
    })
}

/// [`Operate`], parked.
enum Operates<S: Send> {
    NotNeeded(At<S>),
    Ask(Parked<Operating<Carried, Arc<Tool>, S>>),
}

fn operate<S: Send>(
    call: At<S>,
    asks: impl FnOnce(Call<Carried, Arc<Tool>, S>) -> Result<Operate<Carried, Arc<Tool>, S>, Ended>,
) -> Result<Operates<S>, Over> {
    let operate = call.step(|call| asks(call).map(Fork))?;
    Ok(match operate.fork() {
        (Operate::NotNeeded(call), passage) => Operates::NotNeeded(Parked::new(call, passage)),
        (Operate::Ask(operating), passage) => Operates::Ask(Parked::new(operating, passage)),
    })
}

impl Gate {
    async fn recall(&self, mut call: Parked<Operating<Carried, Arc<Tool>, Live>>) -> Result<At<Live>, Over> {
        let (journal, spec) = (self.0.journal.as_ref(), call.stage().call().spec());
        let recalled = match self.0.common.journal_for(journal, JournalSeam::guarantee, spec) {
            Err(told) => told,
            Ok(journal) => {
                let asked: Option<JournalAnswer> = ask!(self, call, journal, |journal, operating| Some(operating.presented()) => |presented| {
                    journal.recall(&presented)
                });
                journal::delivered(asked.unwrap_or(Err(StoreFault)))
            }
        };
        call.step(|operating| operating.recalled(recalled))
    }

    async fn claim_operation(
        &self,
        mut call: Parked<Operating<Carried, Arc<Tool>, Cleared>>,
    ) -> Result<At<Cleared>, Over> {
        let claimed = match &self.0.journal {
            None => Ok(Err(OperationRefusal::Unsupported)),
            Some(journal) => {
                let asked: Option<JournalAnswer> = ask!(self, call, journal, |journal, operating| Some(OperationRequest::of(operating)) => |request| {
                    journal.claim(&request)
                });
                journal::delivered(asked.unwrap_or(Err(StoreFault)))
            }
        };
        call.step(|operating| operating.claimed(claimed))
    }

    async fn load(
        &self,
        mut call: Parked<Loading<Carried, Arc<Tool>>>,
    ) -> Result<At<callgate_core::call::Resolved>, Over> {
        let found: Result<Option<Loaded<Arc<[u8]>>>, StoreFault> = match call.stage().ticket() {
            Some(_) => {
                let store = &self.0.confirmations;
                ask!(self, call, store, |store, loading| loading.ticket() => |ticket| store.load(ticket))
                    .unwrap_or(Err(StoreFault))
            }
            None => Ok(None),
        };
        call.step(|loading| loading.loaded(found))
    }

    async fn authorize(&self, mut call: At<Validated>) -> Result<At<Authorized>, Over> {
        let decision: Option<Decision<Arc<str>>> =
            ask!(self, call, &self.0.policy, |policy, call| Some(call.subject()) => |subject| policy.decide(&subject));
        call.step(|call| call.authorize(decision.unwrap_or_else(policy::fault)))
    }

    async fn charge(&self, mut call: At<Authorized>) -> Result<At<Admitted>, Over> {
        let allowance = match self.0.limiter.as_ref().filter(|_| call.stage().charge().is_some()) {
            Some(limiter) => {
                ask!(self, call, limiter, |limiter, call| call.charge() => |charge| limiter.charge(&charge))
                    .unwrap_or(Err(StoreFault))
            }
            None => Ok(Allowance::Unlimited),
        };
        call.step(|call| call.admit(allowance))
    }

    /// Goes on where a standing grant covers the call, and asks otherwise.
    async fn ask(&self, mut call: Parked<Asking<Carried, Arc<Tool>>>) -> Result<At<Confirmed>, Over> {
        let store = &self.0.confirmations;
        let guarantee = match store {
            Seam::Waiting(store) => store.guarantee(),
            Seam::Immediate(store) | Seam::Blocking(store) => store.guarantee(),
        };
        if !self.0.common.trusts(guarantee, call.stage().call().spec()) {
            return Err(call.end(|asking| asking.asked(Err(IssueFault::Store))));
        }
        let covered: Option<Result<Option<Covered>, StoreFault>> =
            ask!(self, call, store, |store, asking| Some(asking) => |asking| store.covered(asking));
        match covered.unwrap_or(Err(StoreFault)) {
            Ok(None) => Err(self.issue(call).await),
            Ok(Some(covered)) => call.step(|asking| Ok(asking.granted(covered))),
            Err(StoreFault) => Err(call.end(|asking| asking.asked(Err(IssueFault::Store)))),
        }
    }

    async fn issue(&self, mut call: Parked<Asking<Carried, Arc<Tool>>>) -> Over {
        let (store, ttl_ms) = (&self.0.confirmations, self.0.common.confirmation_ttl_ms);
        let issued: Option<Result<Issued, IssueFault>> = ask!(self, call, store, |store, asking| Some(PendingRequest::of(asking)) => |pending| {
            store.issue(&pending, ttl_ms)
        });
        call.end(|asking| asking.asked(issued.unwrap_or(Err(IssueFault::Store))))
    }

    async fn claim(&self, mut call: Parked<Redeeming<Carried, Arc<Tool>>>) -> Result<At<Confirmed>, Over> {
        let store = &self.0.confirmations;
        let claimed: Option<Result<Result<By, Refusal>, StoreFault>> = ask!(self, call, store, |store, redeeming| Some((redeeming.ticket(), redeeming.presented())) => |claim| {
            store.claim(claim.0, &claim.1)
        });
        call.step(|redeeming| redeeming.redeemed(claimed.unwrap_or(Err(StoreFault))))
    }

    async fn intercept(&self, mut call: At<Confirmed>) -> Result<At<Cleared>, Over> {
        let mut verdict: Interception<Reply, Arc<str>> = Interception::Continue;
        let limit_ns = u64::try_from(self.0.interceptors.limit.as_nanos()).unwrap_or(u64::MAX);
        let clock = &self.0.common.clock;
        let slack = limit_ns / LIMIT_TO_SLACK;
        for link in &self.0.interceptors.chain {
            let started = clock.monotonic_within(slack);
            let judged: Result<Interception<Reply, Arc<str>>, Arc<str>> = match &link.seam {
                Seam::Immediate(interceptor) => contain(|| interceptor.judge(&call.stage().subject())),
                Seam::Waiting(interceptor) => {
                    let subject = call.stage().subject();
                    let late = self.0.runtime.sleep(self.0.interceptors.limit.saturating_add(Duration::from_nanos(1)));
                    or(contained(interceptor.judge(&subject)), async {
                        late.await;
                        // Too late whatever it would have said: weighing tells.
                        Ok(Interception::Continue)
                    })
                    .await
                }
                Seam::Blocking(interceptor) => {
                    let interceptor = Arc::clone(interceptor);
                    let judge = move |call: &mut At<Confirmed>| contain(|| interceptor.judge(&call.stage().subject()));
                    let (back, judged) = offload_with(self, call, judge).await;
                    call = back;
                    judged.unwrap_or_else(|| Err(Arc::from("it was never run")))
                }
            };
            let took = clock.monotonic_within(slack).nanos_since(started);
            if let ControlFlow::Break(word) = weigh(&link.name, judged, took, limit_ns) {
                verdict = word;
                break;
            }
        }
        if let Some(cache) = &self.0.common.cache {
            verdict = contain(|| cache.after(&call.stage().subject(), verdict)).unwrap_or_else(Interception::Failed);
        }
        call.step(|call| call.intercept(verdict))
    }

    async fn announce(&self, mut call: At<Cleared>) -> Result<At<Announced>, Over> {
        let recorded = match &self.0.audit {
            None => Ok(()),
            Some(Seam::Immediate(sink)) => match call.stage_mut().intent() {
                Some(intent) => contain(|| sink.record(&intent)).unwrap_or(Err(AuditFault)),
                None => Ok(()),
            },
            Some(Seam::Waiting(sink)) => match call.stage_mut().intent().map(|intent| Entry::of(&intent)) {
                Some(Ok(entry)) => within(self, sink.record(entry)).await.unwrap_or(Err(AuditFault)),
                Some(Err(fault)) => Err(fault),
                None => Ok(()),
            },
            Some(Seam::Blocking(_)) if !call.stage().spec().mutating => Ok(()),
            Some(Seam::Blocking(sink)) => {
                let sink = Arc::clone(sink);
                let record = move |call: &mut At<Cleared>| match call.stage_mut().intent() {
                    Some(intent) => contain(|| sink.record(&intent)).unwrap_or(Err(AuditFault)),
                    None => Ok(()),
                };
                let (back, recorded) = offload_with(self, call, record).await;
                call = back;
                recorded.unwrap_or(Err(AuditFault))
            }
        };
        call.step(|call| call.announce(recorded))
    }
}
