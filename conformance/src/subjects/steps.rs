//! The core alone, fed by hand: each step that it asks for is answered here, without a driver.

use std::sync::Arc;

use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::call::{Closed, Finished, IssueFault, Permit, Ran, StoreFault};
use callgate_core::digest::DigestKey;
use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::limit::Allowance;
use callgate_core::policy::Subject as Judged;
use callgate_core::request::Request;
use callgate_core::step::Step;
use callgate_core::time::Clock;
use callgate_std::confirmations::{ConfirmationStore, PendingRequest};
use callgate_std::contain::contain;
use callgate_std::envelope::OwnedEnvelope;
use callgate_std::failure::Failure;
use callgate_std::limiter::RateLimiter;
use callgate_std::output::Reply;
use callgate_std::policy::{Policy, fault};
use callgate_std::registry::ToolSource;
use callgate_std::settings::GateSettings;
use callgate_std::tool::Tool;

use super::judges::LIMIT_MS;
use super::surroundings::{Performed, Surroundings, context, perform};
use crate::event::{Call, Event, Seen};
use crate::feature::Feature;
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::World;

type Carried = Box<OwnedEnvelope>;

/// The core, fed by hand.
#[derive(Debug)]
pub struct Steps {
    declaration: Declaration,
    place: Option<Surroundings>,
}

impl Steps {
    /// The core, in no world yet.
    #[must_use]
    pub fn new() -> Self {
        let mut declaration = Declaration::full("callgate-core, step by step");
        // Listeners belong to hosts that have drivers.
        declaration.supports.remove(&Feature::Listen);
        Self { declaration, place: None }
    }
}

impl Default for Steps {
    fn default() -> Self {
        Self::new()
    }
}

impl Surroundings {
    fn step_by_step(&self, call: &Call) -> Result<String, std::fmt::Error> {
        let settings = Arc::new(GateSettings::new(DigestKey::new([7; 32])));
        let scopes = call.caller.scopes.join(" ");
        let caller = context(&call.caller, &scopes, &call.id, call.mode);
        let request = Request { tool: &call.tool, arguments: call.arguments.as_bytes(), token: call.token.as_deref() };
        let envelope = OwnedEnvelope::new(&caller, request, settings, false);
        let mut step = Step::start(Box::new(envelope), self.clock.now());
        loop {
            step = match step {
                Step::Done(outcome) => return outcome.to_json(),
                other => self.answer(other),
            };
        }
    }

    fn answer(&self, step: Step<Carried, Arc<Tool>>) -> Step<Carried, Arc<Tool>> {
        match step {
            Step::Find(call) => {
                let found = self.tools.find(call.asked().tool, &call.caller());
                call.found(found)
            }
            Step::Load(loading) => {
                let found = loading.ticket().map_or(Ok(None), |ticket| self.store.load(ticket));
                loading.answer(found)
            }
            Step::Authorize(call) => {
                let decision = contain(|| self.policy.decide(&call.subject())).unwrap_or_else(|_| fault());
                call.answer(decision)
            }
            Step::Charge(call) => {
                let charged = match call.charge() {
                    Some(charge) => contain(|| self.limiter.charge(&charge)).unwrap_or(Err(StoreFault)),
                    None => Ok(Allowance::Unlimited),
                };
                call.answer(charged)
            }
            Step::Issue(asking) => {
                let issue = || self.store.issue(&PendingRequest::of(&asking), self.world.ttl_ms());
                let issued = contain(issue).unwrap_or(Err(IssueFault::Store));
                asking.answer(issued)
            }
            Step::Redeem(redeeming) => {
                let claim = || self.store.claim(redeeming.ticket(), &redeeming.binding());
                let claimed = contain(claim).unwrap_or(Err(StoreFault));
                redeeming.answer(claimed)
            }
            Step::Intercept(call) => {
                let verdict = self.judge(&call.subject());
                call.answer(verdict)
            }
            Step::Intent(mut call) => {
                let recorded = call.intent().map_or(Ok(()), |intent| self.write(&intent));
                call.answer(recorded)
            }
            Step::Execute(call) => call.answer(|permit| self.run(&permit)),
            Step::Close(ended) => ended.answer(self.clock.now()),
            Step::Settle(closed) => self.settle(closed),
            Step::Record(closed) => {
                let recorded = self.write(&closed.record());
                closed.recorded(recorded)
            }
            done @ Step::Done(_) => done,
        }
    }

    fn judge(&self, subject: &Judged<'_>) -> Interception<Reply, Arc<str>> {
        for judge in self.judges() {
            let began = self.clock.now().monotonic;
            let said = contain(|| judge.judge(subject)).unwrap_or_else(Interception::Failed);
            if self.clock.now().monotonic.nanos_since(began) > LIMIT_MS.saturating_mul(1_000_000) {
                return Interception::Failed("too late".into());
            }
            if !matches!(said, Interception::Continue) {
                return said;
            }
        }
        Interception::Continue
    }

    fn write(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        contain(|| self.sink.record(record)).unwrap_or(Err(AuditFault))
    }

    fn run(&self, permit: &Permit<'_, Carried, Arc<Tool>>) -> Finished<Reply, Failure, Arc<str>> {
        let began = self.clock.now().monotonic;
        let script = self.world.tools.iter().find(|tool| tool.name == permit.spec().name);
        let ran = match script.map(|script| contain(|| perform(script, &self.watch, &self.clock, permit.args()))) {
            Some(Ok(Performed::Done(reply))) => Ran::Done(reply),
            Some(Ok(Performed::Failed(failure))) => Ran::Failed(failure),
            Some(Ok(Performed::Late)) => Ran::TimedOut,
            Some(Err(text)) => Ran::Panicked(text),
            None => Ran::Cancelled,
        };
        ran.after(self.clock.now().monotonic.nanos_since(began))
    }

    fn settle(&self, closed: Closed<Carried, Arc<Tool>>) -> Step<Carried, Arc<Tool>> {
        let settlement = closed.settlement();
        if let Some(refund) = settlement.refund {
            let _ = self.limiter.refund(&refund);
        }
        if let Some(ticket) = settlement.withdraw {
            let _ = self.store.withdraw(ticket);
        }
        let attempts = settlement.attempt.map(|key| self.limiter.attempt(&key));
        closed.settled(attempts)
    }
}

impl Subject for Steps {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        self.place = Some(Surroundings::new(world, seed)?);
        Ok(Begun::Ready)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        let no_world = || SubjectFault::GaveUp("there is no world".to_owned());
        let around = self.place.as_mut().ok_or_else(no_world)?;
        match event {
            Event::Call(call) => {
                let outcome = around.step_by_step(call).map_err(|error| SubjectFault::GaveUp(error.to_string()))?;
                around.seen(Some(outcome))
            }
            Event::Decide(decide) => {
                let taken =
                    Surroundings::decided(decide, |ticket, verdict, by| around.store.decide(ticket, verdict, by));
                Ok(Seen { decided: Some(taken), ..around.seen(None)? })
            }
            other => {
                around.happen(other)?;
                around.seen(None)
            }
        }
    }
}
