//! Stages 5 and 6: the budget, and the end of a plan.

use crate::code::Station;
use crate::context::Mode;
use crate::limit::{Allowance, LimitKey};
use crate::request::{Context, with_caller};
use crate::tool::Tool;

use super::{Authorized, Call, End, Ended, Store, StoreFault};

/// The budget allows the call.
#[derive(Debug)]
pub struct Admitted(());

/// The call is meant to run.
#[derive(Debug)]
pub struct Live(());

/// Whether a charge is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a limiter takes or only looks")]
pub enum ChargeMode {
    /// Take it.
    Take,
    /// Only say whether it could be taken: a plan costs nothing (invariants R4, R5).
    Probe,
}

/// What a limiter is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Charge<'a> {
    /// Whose budget.
    pub key: LimitKey<'a>,
    /// How much of it; 0 for a call that was charged when it asked (invariant R7).
    pub cost: u32,
    /// Take or probe.
    pub mode: ChargeMode,
}

impl<C: Context, T: Tool> Call<C, T, Authorized> {
    /// What to ask the limiter for. `None` when the call was paid for already, when it asked.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn charge(&self) -> Option<Charge<'_>> {
        if self.redeems() {
            return None;
        }
        Some(with_caller(&self.ctx, |caller| {
            let mode = match caller.mode {
                Mode::Execute => ChargeMode::Take,
                Mode::Plan => ChargeMode::Probe,
            };
            Charge { key: LimitKey::of_call(caller, self.ctx.request().tool), cost: self.tool.spec().cost(), mode }
        }))
    }

    /// Takes the limiter's answer; [`Allowance::Unlimited`] where there is no limiter or nothing to charge.
    ///
    /// # Errors
    /// The call ends when it is over its budget, or the limiter failed (invariant F1).
    #[cfg_attr(not(callgate_small), inline)]
    pub fn admit(mut self, answer: Result<Allowance, StoreFault>) -> Result<Call<C, T, Admitted>, Ended<C, T>> {
        match answer {
            Ok(Allowance::Granted { receipt, .. }) => {
                self.ctx.facts_mut().receipt = receipt;
                Ok(self.advance())
            }
            Ok(Allowance::Unlimited) => Ok(self.advance()),
            Ok(Allowance::Refused { retry_after_ns }) => {
                Err(self.refuse(Station::RateLimit, End::Limited { retry_after_ns }))
            }
            Err(StoreFault) => Err(self.refuse(Station::RateLimit, End::StoreFault(Store::Limits))),
        }
    }

    fn redeems(&self) -> bool {
        self.ctx.facts().ticket.is_some()
    }
}

impl<C: Context, T: Tool> Call<C, T, Admitted> {
    /// Ends a call in mode [`Mode::Plan`] with its plan. What ends here can't be executed: there is no way back (invariant
    /// R4).
    ///
    /// # Errors
    /// The planned call.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn unless_planning(self) -> Result<Call<C, T, Live>, Ended<C, T>> {
        match with_caller(&self.ctx, |caller| caller.mode) {
            Mode::Execute => Ok(self.advance()),
            Mode::Plan => Err(self.refuse(Station::PlanMode, End::Planned)),
        }
    }
}
