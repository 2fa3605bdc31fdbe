//! The core alone, fed by hand: each step that it asks for is answered here, without a driver.

use std::sync::Arc;

use callgate_core::step::Step;
use callgate_std::tool::Tool;

use super::answers::{Carried, LACKS};
use super::surroundings::Surroundings;
use crate::event::{Call, Event, Seen};
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::World;

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
        let declaration = Declaration::full("callgate-core, step by step").without(&LACKS);
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
        let mut step = Step::start(self.envelope(call), self.now());
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
                let found = self.find(call.asked().tool, &call.caller());
                call.found(found)
            }
            Step::Load(loading) => {
                let found = self.load(loading.ticket());
                loading.answer(found)
            }
            Step::Authorize(call) => {
                let decision = self.authorize(&call.subject());
                call.answer(decision)
            }
            Step::Charge(call) => {
                let charged = self.charge(call.charge());
                call.answer(charged)
            }
            Step::Recall(operating) => Step::Close(operating.unsupported()),
            Step::Claim(operating) => Step::Close(operating.unsupported()),
            Step::Issue(asking) => {
                let issued = self.issue(&asking);
                asking.answer(issued)
            }
            Step::Redeem(redeeming) => {
                let claimed = self.claim(&redeeming);
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
            Step::Close(ended) => ended.answer(self.now()),
            Step::Settle(closed) => {
                let attempts = self.settle(&closed);
                closed.settled(attempts)
            }
            Step::Record(closed) => {
                let recorded = self.write(&closed.record());
                closed.recorded(recorded)
            }
            done @ Step::Done(_) => done,
        }
    }
}

impl Subject for Steps {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        match Surroundings::new(world, seed) {
            Ok(around) => self.place = Some(around),
            Err(why) => return Ok(Begun::Refused(why)),
        }
        Ok(Begun::Ready)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        Surroundings::driven(self.place.as_mut(), event, Surroundings::step_by_step)
    }
}
