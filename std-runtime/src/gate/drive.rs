//! The driver: core's stages in a row.

use std::ops::ControlFlow;
use std::sync::Arc;

use callgate_core::audit::{AuditFault, Record};
use callgate_core::call::{
    Asking, Call, Charge, Cleared, Confirm, Covered, End, Executing, Finished, IssueFault, Issued, Live, Load, Loaded,
    Lookup, Operate, Operating, Permit, Requested, StoreFault, TurnAway,
};
use callgate_core::code::{Code, Effect};
use callgate_core::confirm::{By, Refusal};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::intercept::Interception;
use callgate_core::limit::Allowance;
use callgate_core::policy::{Decision, Subject};
use callgate_core::request::{Context, Request};
use callgate_core::time::Now;

use super::options::Follow;
use super::{Gate, Outcome, Parts};
use crate::cancellation::Cancellation;
use crate::common::{self, Common};
use crate::confirmations::{PendingRequest, Presented};
use crate::contain::contain;
use crate::context::random_request_id;
use crate::envelope::{Envelope, OwnedEnvelope};
use crate::failure::Failure;
use crate::future::{BoxFuture, block_on_until};
use crate::journal::{self, Journal, JournalAnswer, OperationRefusal, OperationRequest};
use crate::lock::{AtomicBool, Mutex, Ordering, lock};
use crate::output::Reply;
use crate::policy;
use crate::reserved;
use crate::slots::{Lent, Slot, Slots};
use crate::task::TaskId;
use crate::tool::{self, AsyncNestedCalls, Host, NestedCalls, NestedOutcome, OwnedHost, Tool};
use crate::update::{Gone, Update};

type Ended<'a> = callgate_core::call::Ended<Box<Envelope<'a>>, Arc<Tool>>;
type Received<'a> = Call<Box<Envelope<'a>>, (), Requested>;

/// The driver: core's stages in a row, and a host's answer to each. No branch here decides anything.
impl Gate {
    pub(super) fn drive_call<'a>(
        &'a self,
        caller: &CallContext<'a>,
        operation: Option<&'a str>,
        request: Request<'a>,
        follower: Option<&Follower<'_>>,
    ) -> Outcome<'a> {
        let received = self.0.common.now();
        let mut guard = Guard { gate: self, caller, operation, request, received, done: false };
        let mut places = Places::default();
        let driven = self.drive(self.receive(caller, operation, request, received), &mut places, follower);
        let (ended, over, run) = match driven {
            Err(ended) => (ended, None, None),
            Ok(Driven::Ended(ended, over)) => (ended, over, None),
            Ok(Driven::Accepted(ended, task, run)) => (ended, None, Some((task, run))),
        };
        let outcome = self.finish(ended, over);
        guard.done = true;
        if let Some((task, run)) = run {
            self.go_on(task, run, places.keep());
        }
        outcome
    }

    /// Ends a call that nobody waits for any more before anything was done for it.
    pub(super) fn never_started<'a>(
        &'a self,
        caller: &CallContext<'a>,
        operation: Option<&'a str>,
        request: Request<'a>,
    ) -> Outcome<'a> {
        let call = self.receive(caller, operation, request, self.0.common.now());
        self.finish(call.lost(false), None)
    }

    fn receive<'a>(
        &'a self,
        caller: &CallContext<'a>,
        operation: Option<&'a str>,
        request: Request<'a>,
        received: Now,
    ) -> Received<'a> {
        // Made where it stays: it is no small thing to move.
        let envelope = Envelope::new(caller, operation, request, &self.0.common.settings);
        let mut envelope = Box::write(Box::new_uninit(), envelope);
        if self.0.common.accept_reserved_argument
            && let Some(reserved) = reserved::take(request)
        {
            envelope.take_reserved(reserved);
        }
        Call::request(envelope, received)
    }

    fn drive<'a>(
        &'a self,
        call: Received<'a>,
        places: &mut Places<'a>,
        follower: Option<&Follower<'_>>,
    ) -> Result<Driven<'a>, Ended<'a>> {
        let common = &self.0.common;
        let waits = call.with_caller(Common::waits);
        let gone = || self.is_cancelled(follower);
        if let Err(why) = places.take_of_gate(common, waits, gone) {
            return Err(why.end(call));
        }
        let found = common.find(&call);
        if let Lookup::Found(tool) = &found
            && let Some(slots) = tool.slots()
            && let Err(why) = places.take_of_tool(common, slots, waits, gone)
        {
            return Err(why.end(call));
        }
        let call = match call.resolve(found)? {
            Load::Fresh(call) => call,
            Load::Stored(loading) => {
                let found = self.load(loading.ticket());
                loading.loaded(found)?
            }
        };
        let call = call.validate()?;
        let decision = self.authorize(&call.subject());
        let call = call.authorize(decision)?;
        let allowance = self.charge(call.charge());
        let call = call.admit(allowance)?.unless_planning()?;
        // Before a token is asked for or used up.
        if self.is_cancelled(follower) {
            return Err(call.cancel());
        }
        let call = match call.recall()? {
            Operate::NotNeeded(call) => call,
            Operate::Ask(operating) => {
                let recalled = self.recall(&operating);
                operating.recalled(recalled)?
            }
        };
        let call = match call.confirm()? {
            Confirm::NotNeeded(call) => call,
            Confirm::Ask(asking) if !common.trusts(self.0.confirmations.guarantee(), asking.call().spec()) => {
                return Err(asking.asked(Err(IssueFault::Store)));
            }
            Confirm::Ask(asking) => match self.covered(&asking) {
                Ok(Some(covered)) => asking.granted(covered),
                Ok(None) => {
                    let issued = self.issue(&asking);
                    return Err(asking.asked(issued));
                }
                Err(StoreFault) => return Err(asking.asked(Err(IssueFault::Store))),
            },
            Confirm::Redeem(redeeming) => {
                let claimed = self.claim(redeeming.ticket(), &redeeming.presented());
                redeeming.redeemed(claimed)?
            }
        };
        let verdict = self.judge(&call.subject());
        let call = call.intercept(verdict)?;
        if self.is_cancelled(follower) {
            return Err(call.cancel());
        }
        let mut call = match call.claim()? {
            Operate::NotNeeded(call) => call,
            Operate::Ask(operating) => {
                let claimed = self.claim_operation(&operating);
                operating.claimed(claimed)?
            }
        };
        let recorded = call.intent().map_or(Ok(()), |intent| self.record(&intent));
        let call = call.announce(recorded)?;
        if !common.observers.is_empty() {
            common.executing(&call.subject());
        }
        if call.spec().background_ms.is_some() {
            let Ok(task) = common.task_id() else { return Err(call.cancel()) };
            let (ended, run) = call.begin().accept(task)?;
            return Ok(Driven::Accepted(ended, task, run));
        }
        let kept_as = if common.cache.is_some() { common.cache_key(&call.subject()) } else { None };
        let mut over = None;
        let ended = call.execute(|permit| {
            let ends_the_call = common.ends_with_its_run(permit.spec());
            let (finished, at) = self.run(permit, follower);
            over = ends_the_call.then_some(at);
            finished
        });
        if let End::Done(reply) = ended.end() {
            common.keep(kept_as, reply);
        }
        Ok(Driven::Ended(ended, over))
    }

    pub(super) fn finish<C: Context<Text = Arc<str>>>(
        &self,
        ended: callgate_core::call::Ended<C, Arc<Tool>>,
        over: Option<Now>,
    ) -> callgate_core::outcome::Outcome<C, Arc<Tool>> {
        let mut closed = ended.close(over.unwrap_or_else(|| self.0.common.now()));
        common::settle(&mut closed, self.0.limiter.as_deref(), &*self.0.confirmations, self.0.journal.as_deref());
        let record = closed.record();
        let recorded = self.record(&record);
        self.0.common.observers.ended(&record);
        closed.audited(recorded)
    }

    fn load(&self, ticket: Option<Digest>) -> Result<Option<Loaded<Arc<[u8]>>>, StoreFault> {
        match ticket {
            Some(ticket) => contain(|| self.0.confirmations.load(ticket)).unwrap_or(Err(StoreFault)),
            None => Ok(None),
        }
    }

    fn authorize(&self, subject: &Subject<'_>) -> Decision<Arc<str>> {
        contain(|| self.0.policy.decide(subject)).unwrap_or_else(|_| policy::fault())
    }

    fn charge(&self, charge: Option<Charge<'_>>) -> Result<Allowance, StoreFault> {
        match (&self.0.limiter, charge) {
            (Some(limiter), Some(charge)) => contain(|| limiter.charge(&charge)).unwrap_or(Err(StoreFault)),
            _ => Ok(Allowance::Unlimited),
        }
    }

    fn issue(&self, asking: &Asking<Box<Envelope<'_>>, Arc<Tool>>) -> Result<Issued, IssueFault> {
        contain(|| self.0.confirmations.issue(&PendingRequest::of(asking), self.0.common.confirmation_ttl_ms))
            .unwrap_or(Err(IssueFault::Store))
    }

    fn covered(&self, asking: &Asking<Box<Envelope<'_>>, Arc<Tool>>) -> Result<Option<Covered>, StoreFault> {
        contain(|| self.0.confirmations.covered(asking)).unwrap_or(Err(StoreFault))
    }

    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        contain(|| self.0.confirmations.claim(ticket, presented)).unwrap_or(Err(StoreFault))
    }

    fn recall(&self, operating: &Operating<Box<Envelope<'_>>, Arc<Tool>, Live>) -> JournalAnswer<Reply> {
        let spec = operating.call().spec();
        let journal = match self.0.common.journal_for(self.0.journal.as_deref(), Journal::guarantee, spec) {
            Ok(journal) => journal,
            Err(told) => return told,
        };
        journal::delivered(contain(|| journal.recall(&operating.presented())).unwrap_or(Err(StoreFault)))
    }

    fn claim_operation(&self, operating: &Operating<Box<Envelope<'_>>, Arc<Tool>, Cleared>) -> JournalAnswer<Reply> {
        let Some(journal) = &self.0.journal else { return Ok(Err(OperationRefusal::Unsupported)) };
        let claimed = contain(|| journal.claim(&OperationRequest::of(operating)));
        journal::delivered(claimed.unwrap_or(Err(StoreFault)))
    }

    fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        // They are contained one by one.
        let verdict = self.0.interceptors.judge(subject);
        match &self.0.common.cache {
            Some(cache) => contain(|| cache.after(subject, verdict)).unwrap_or_else(Interception::Failed),
            None => verdict,
        }
    }

    pub(super) fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        match &self.0.audit {
            Some(audit) => contain(|| audit.record(record)).unwrap_or(Err(AuditFault)),
            None => Ok(()),
        }
    }

    fn run(
        &self,
        permit: Permit<'_, Box<Envelope<'_>>, Arc<Tool>>,
        follower: Option<&Follower<'_>>,
    ) -> (Finished<Reply, Failure, Arc<str>>, Now) {
        let common = &self.0.common;
        let term = common.term(permit.spec());
        let cancelled = || self.is_cancelled(follower);
        let follow = |update: Update| follower.map_or(Ok(()), |follower| follower.take(update));
        let owned = || {
            OwnedHost::new(common.clock.clone(), term.started)
                .with_nested(Arc::clone(&self.0) as Arc<dyn AsyncNestedCalls>)
        };
        let mut host =
            Host::new(&*common.clock, term.started).with_nested(self).with_owned(&owned).with_cancelled(&cancelled);
        if follower.is_some_and(|follower| follower.follow.is_some()) {
            host = host.with_updates(&follow);
        }
        let result = contain(|| tool::run(permit, host));
        common.ran(result, term, cancelled())
    }

    fn is_cancelled(&self, follower: Option<&Follower<'_>>) -> bool {
        self.0.common.stop.is_cancelled()
            || self.0.cancelled.as_ref().is_some_and(|cancelled| cancelled())
            || follower.is_some_and(Follower::is_gone)
    }
}

/// Calls that a running tool makes go through the same gate, under a request id of their own.
impl NestedCalls for Gate {
    fn call(&self, caller: CallContext<'_>, tool: &str, arguments: &[u8]) -> NestedOutcome {
        let Ok(request_id) = random_request_id(&*self.0.common.entropy) else {
            return NestedOutcome::ended(Some(Code::StoreUnavailable), Effect::None, None);
        };
        let caller = CallContext { request_id: &request_id, ..caller };
        NestedOutcome::of(self.drive_call(&caller, None, Request { tool, arguments, token: None }, None))
    }
}

impl AsyncNestedCalls for Parts {
    fn call(
        self: Arc<Self>,
        caller: CallContext<'_>,
        tool: &str,
        arguments: &[u8],
    ) -> BoxFuture<'static, NestedOutcome> {
        // This gate blocks its thread while a tool runs, and the body that asks runs on it.
        Box::pin(std::future::ready(NestedCalls::call(&Gate(self), caller, tool, arguments)))
    }
}

/// How far a call was driven.
enum Driven<'a> {
    /// It ended, with its run if a time is given.
    Ended(Ended<'a>, Option<Now>),
    /// It was answered, and its tool goes on.
    Accepted(Ended<'a>, TaskId, Executing<Box<OwnedEnvelope>, Arc<Tool>>),
}

/// The places that a call takes, given back when it is over: one of the gate's, and one of its tool's if it has a bound of its own.
#[derive(Default)]
pub(super) struct Places<'a> {
    /// The gate's, where nobody had to wait for it: the gate outlives the call.
    lent: Option<Lent<'a>>,
    own: [Option<Slot>; 2],
}

impl<'a> Places<'a> {
    /// Takes a place of the gate, waiting for it if the call `waits` at all.
    fn take_of_gate(&mut self, common: &'a Common, waits: bool, gone: impl Fn() -> bool) -> Result<(), NoPlace> {
        let slots = common.slots_for_depth(waits);
        match slots.try_lend() {
            Ok(lent) => self.lent = Some(lent),
            Err(TurnAway::Overloaded) if waits => self.own[0] = Some(wait_in_line(common, slots, gone)?),
            Err(why) => return Err(NoPlace::TurnedAway(why)),
        }
        Ok(())
    }

    /// The same of a tool's own bound.
    fn take_of_tool(
        &mut self,
        common: &Common,
        slots: &Arc<Slots>,
        waits: bool,
        gone: impl Fn() -> bool,
    ) -> Result<(), NoPlace> {
        self.own[1] = Some(match slots.try_take() {
            Ok(slot) => slot,
            Err(TurnAway::Overloaded) if waits => wait_in_line(common, slots, gone)?,
            Err(why) => return Err(NoPlace::TurnedAway(why)),
        });
        Ok(())
    }

    /// The places by themselves, for a run that goes on.
    pub(super) fn keep(self) -> [Option<Slot>; 3] {
        let [of_gate, of_tool] = self.own;
        [self.lent.and_then(Lent::keep), of_gate, of_tool]
    }
}

/// Waits for a place until the gate goes down, the caller is gone or the wait was too long.
#[cold]
fn wait_in_line(common: &Common, slots: &Arc<Slots>, gone: impl Fn() -> bool) -> Result<Slot, NoPlace> {
    let begun = common.clock.monotonic();
    let give_up = || {
        if common.stop.is_cancelled() {
            return Some(NoPlace::TurnedAway(TurnAway::Shutdown));
        }
        if gone() {
            return Some(NoPlace::Gone);
        }
        let waited = common.clock.monotonic().nanos_since(begun);
        let late = u128::from(waited) >= common.max_wait.as_nanos();
        late.then_some(NoPlace::TurnedAway(TurnAway::Overloaded))
    };
    block_on_until(slots.take(), give_up)?.map_err(NoPlace::TurnedAway)
}

/// Why a call has no place.
enum NoPlace {
    TurnedAway(TurnAway),
    /// Its caller was gone before there was one.
    Gone,
}

impl NoPlace {
    fn end(self, call: Received<'_>) -> Ended<'_> {
        match self {
            Self::TurnedAway(why) => call.turn_away(why),
            Self::Gone => call.lost(false),
        }
    }
}

/// Whoever waits for a call, may follow it, and may go away.
pub(super) struct Follower<'f> {
    follow: Option<Mutex<Box<Follow<'f>>>>,
    cancellation: Option<&'f Cancellation>,
    left: AtomicBool,
}

impl<'f> Follower<'f> {
    pub(super) fn new(follow: Option<Box<Follow<'f>>>, cancellation: Option<&'f Cancellation>) -> Self {
        Self { follow: follow.map(Mutex::new), cancellation, left: AtomicBool::new(false) }
    }

    /// One who waits for outcomes only.
    pub(super) fn of_outcomes() -> Self {
        Self::new(None, None)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.has_left() || self.cancellation.is_some_and(Cancellation::is_cancelled)
    }

    fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }

    /// Goes away.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
    }

    /// A follower that panics counts as gone: its panic is its own, and not the tool's.
    fn take(&self, update: Update) -> Result<(), Gone> {
        let Some(follow) = &self.follow else { return Ok(()) };
        let mut follow = lock(follow);
        // Looked at under the lock: a body may tell things from several threads, and one of them may have made it break.
        if self.has_left() {
            return Err(Gone);
        }
        match contain(|| (follow)(update)) {
            Ok(ControlFlow::Continue(())) => Ok(()),
            Ok(ControlFlow::Break(())) | Err(_) => {
                self.leave();
                Err(Gone)
            }
        }
    }
}

/// Writes the terminal record of a call that never came to its end because the gate itself panicked (invariant J1).
struct Guard<'g> {
    gate: &'g Gate,
    caller: &'g CallContext<'g>,
    operation: Option<&'g str>,
    request: Request<'g>,
    received: Now,
    done: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let common = &self.gate.0.common;
        let envelope = Envelope::new(self.caller, self.operation, self.request, &common.settings);
        let ended = Call::request(Box::new(envelope), self.received).lost::<Arc<Tool>>(true);
        let closed = ended.close(common.now());
        if self.gate.record(&closed.record()).is_err() {
            tracing::error!(request_id = self.caller.request_id, "the record of a lost call could not be written");
        }
    }
}
