//! How many calls a session may make.

use core::fmt;

use crate::call::TurnAway;
use crate::confirm::caller_digest;
use crate::context::{CallContext, Mode};
use crate::digest::Digest;

/// Counts the calls of `SESSIONS` sessions at once, each of which may make so many.
///
/// A session is who asks and where: tenant, principal, channel and session of the context, none of which an argument can change
/// (invariant P2). Every call that asks to run counts, whatever becomes of it; a plan is only told whether there is one left
/// (invariant R4). A session keeps its place until the host [ends](Self::end) it, because forgetting it would give it a fresh budget: while all
/// places are taken, a call of another session is turned away as [`TurnAway::Overloaded`].
///
/// Asked where a name is looked up: [`Step::Find`](crate::step::Step::Find).
pub struct CallBudget<const SESSIONS: usize> {
    limit: u32,
    places: [Option<Place>; SESSIONS],
}

#[derive(Clone, Copy)]
struct Place {
    session: Digest,
    spent: u32,
}

impl<const SESSIONS: usize> CallBudget<SESSIONS> {
    /// Each session may make `limit` calls.
    #[must_use]
    pub const fn new(limit: u32) -> Self {
        Self { limit, places: [None; SESSIONS] }
    }

    /// Counts one call.
    ///
    /// # Errors
    /// [`TurnAway::Spent`] when the session has made all its calls, [`TurnAway::Overloaded`] when there is no place for it.
    pub fn take(&mut self, caller: &CallContext<'_>) -> Result<(), TurnAway> {
        let session = caller_digest(caller);
        if !self.places.iter().flatten().any(|place| place.session == session) {
            let free = self.places.iter_mut().find(|place| place.is_none()).ok_or(TurnAway::Overloaded)?;
            if caller.mode == Mode::Execute {
                *free = Some(Place { session, spent: 0 });
            }
        }
        let place = self.places.iter_mut().flatten().find(|place| place.session == session);
        let spent = place.as_ref().map_or(0, |place| place.spent);
        if spent >= self.limit {
            return Err(TurnAway::Spent);
        }
        if let (Some(place), Mode::Execute) = (place, caller.mode) {
            place.spent = spent.saturating_add(1);
        }
        Ok(())
    }

    /// How many calls the caller's session may still make.
    #[must_use]
    pub fn left(&self, caller: &CallContext<'_>) -> u32 {
        let session = caller_digest(caller);
        let place = self.places.iter().flatten().find(|place| place.session == session);
        self.limit.saturating_sub(place.map_or(0, |place| place.spent))
    }

    /// Forgets the caller's session. For the host, when a session is really over: one that can be ended at will has no limit.
    pub fn end(&mut self, caller: &CallContext<'_>) {
        let session = caller_digest(caller);
        for place in &mut self.places {
            if place.is_some_and(|place| place.session == session) {
                *place = None;
            }
        }
    }
}

impl<const SESSIONS: usize> fmt::Debug for CallBudget<SESSIONS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sessions = self.places.iter().flatten().count();
        f.debug_struct("CallBudget").field("limit", &self.limit).field("sessions", &sessions).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn caller<'a>(principal: &'a str, session: &'a str) -> CallContext<'a> {
        let mut caller = CallContext::new("web", "r").with_principal(principal);
        caller.session = Some(session);
        caller
    }

    proptest! {
        /// X6, F5: whatever comes, a session makes at most so many calls, and those that found a place are not disturbed.
        #[test]
        fn x6_no_session_makes_more_calls_than_it_may(
            acts in prop::collection::vec((0_usize..4, 0_usize..2, 0_u8..8), 0..60),
        ) {
            const LIMIT: u32 = 3;
            let (principals, sessions) = (["a", "b", "c", ""], ["1", "2"]);
            let mut budget = CallBudget::<3>::new(LIMIT);
            let mut model = BTreeMap::new();
            for (principal, session, act) in acts {
                let who = (principals[principal], sessions[session]);
                let context = caller(who.0, who.1);
                match act {
                    0 => {
                        budget.end(&context);
                        model.remove(&who);
                    }
                    1 => {
                        let planned = budget.take(&context.with_mode(Mode::Plan));
                        let expected = match model.get(&who) {
                            Some(spent) if *spent >= LIMIT => Err(TurnAway::Spent),
                            None if model.len() == 3 => Err(TurnAway::Overloaded),
                            _ => Ok(()),
                        };
                        prop_assert_eq!(planned, expected);
                    }
                    _ => {
                        let full = model.len() == 3;
                        let expected = match model.get_mut(&who) {
                            Some(spent) if *spent >= LIMIT => Err(TurnAway::Spent),
                            Some(spent) => {
                                *spent += 1;
                                Ok(())
                            }
                            None if full => Err(TurnAway::Overloaded),
                            None => {
                                model.insert(who, 1);
                                Ok(())
                            }
                        };
                        prop_assert_eq!(budget.take(&context), expected);
                    }
                }
                prop_assert_eq!(budget.left(&context), LIMIT - model.get(&who).copied().unwrap_or_default());
            }
        }
    }
}
