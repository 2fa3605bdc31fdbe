//! The core alone, its typed stages in a row: a driver written by hand, that reads like the list of stages. The blocking gate's own
//! driver is another one, with places, observers and tasks; this one has nothing but the stages.

use std::sync::Arc;

use callgate_core::call::{self, Confirm, Load};
use callgate_std::tool::Tool;

use super::answers::{Carried, LACKS};
use super::surroundings::Surroundings;
use crate::event::{Call, Event, Seen};
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::World;

type Ended = call::Ended<Carried, Arc<Tool>>;

/// The core, stage after stage.
#[derive(Debug)]
pub struct Linear {
    declaration: Declaration,
    place: Option<Surroundings>,
}

impl Linear {
    /// The core, in no world yet.
    #[must_use]
    pub fn new() -> Self {
        let declaration = Declaration::full("callgate-core, stage after stage").without(&LACKS);
        Self { declaration, place: None }
    }
}

impl Default for Linear {
    fn default() -> Self {
        Self::new()
    }
}

impl Surroundings {
    fn stage_after_stage(&self, call: &Call) -> Result<String, std::fmt::Error> {
        let (Ok(ended) | Err(ended)) = self.stages(call);
        let mut closed = ended.close(self.now());
        if let Some(attempts) = self.settle(&closed) {
            closed.settle(attempts);
        }
        let recorded = self.write(&closed.record());
        closed.audited(recorded).to_json()
    }

    fn stages(&self, call: &Call) -> Result<Ended, Ended> {
        let call = call::Call::request(self.envelope(call), self.now());
        let found = self.find(call.asked().tool, &call.caller());
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
        let charged = self.charge(call.charge());
        let call = call.admit(charged)?.unless_planning()?;
        let call = match call.confirm()? {
            Confirm::NotNeeded(call) => call,
            Confirm::Ask(asking) => {
                let issued = self.issue(&asking);
                return Err(asking.asked(issued));
            }
            Confirm::Redeem(redeeming) => {
                let claimed = self.claim(&redeeming);
                redeeming.redeemed(claimed)?
            }
        };
        let verdict = self.judge(&call.subject());
        let mut call = call.intercept(verdict)?;
        let recorded = call.intent().map_or(Ok(()), |intent| self.write(&intent));
        let call = call.announce(recorded)?;
        Ok(call.execute(|permit| self.run(&permit)))
    }
}

impl Subject for Linear {
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
        Surroundings::driven(self.place.as_mut(), event, Surroundings::stage_after_stage)
    }
}
