//! The pipeline as an enum, for hosts that park calls: each variant says what the host must do next and holds the stage that
//! takes the reply. The typed stages of [`crate::call`] are the same thing in a row; there is no second logic here.
//!
//! ```no_run
//! # use callgate_core::{request::Context, step::Step, tool::Tool};
//! # fn host<C: Context, T: Tool>(mut step: Step<C, T>, answer: impl Fn(Step<C, T>) -> Step<C, T>) {
//! loop {
//!     step = match step {
//!         Step::Done(outcome) => break drop(outcome),
//!         waiting => answer(waiting), // do what the variant says, reply, get the next step
//!     };
//! }
//! # }
//! ```

use crate::audit::AuditFault;
use crate::call::{
    Admitted, Announced, Asking, Attempts, Authorized, Call, Cleared, Closed, Confirm, Confirmed, Covered, Ended,
    Finished, IssueFault, Issued, Live, Load, Loaded, Loading, Lookup, Operate, Operating, Redeeming, Requested,
    Resolved, StoreFault, TurnAway, Validated,
};
use crate::confirm::{By, Refusal};
use crate::intercept::Interception;
use crate::journal::{OperationRefusal, Recalled};
use crate::limit::Allowance;
use crate::outcome::Outcome;
use crate::policy::Decision;
use crate::request::Context;
use crate::time::Now;
use crate::tool::Tool;

/// What the host must do next.
///
/// Exhaustive on purpose: a host that did not know a step could not go on.
#[must_use = "a step that is dropped is a call without an outcome"]
#[expect(clippy::exhaustive_enums, reason = "a host must handle every step")]
pub enum Step<C: Context, T: Tool> {
    /// Look the tool up, in the caller's view: `Call::found`.
    Find(Call<C, (), Requested>),
    /// Look a ticket up, claiming nothing: [`Loading::loaded`].
    Load(Loading<C, T>),
    /// Decide about the call's subject.
    Authorize(Call<C, T, Validated>),
    /// Charge the caller's budget.
    Charge(Call<C, T, Authorized>),
    /// Ask the journal whether the operation was made, claiming nothing: `Operating::answer`.
    Recall(Operating<C, T, Live>),
    /// Issue a ticket.
    Issue(Asking<C, T>),
    /// Claim a ticket, atomically.
    Redeem(Redeeming<C, T>),
    /// Ask the interceptors.
    Intercept(Call<C, T, Confirmed>),
    /// Claim the operation at the journal, atomically: `Operating::answer`.
    Claim(Operating<C, T, Cleared>),
    /// Record the intent durably, if [`Call::intent`] gives one.
    Intent(Call<C, T, Cleared>),
    /// Run the tool.
    Execute(Call<C, T, Announced>),
    /// Read the clock.
    Close(Ended<C, T>),
    /// Settle budgets and tickets.
    Settle(Closed<C, T>),
    /// Write the terminal record.
    Record(Closed<C, T>),
    /// Hand out the outcome.
    Done(Outcome<C, T>),
}

impl<C: Context, T: Tool> core::fmt::Debug for Step<C, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// The one place where a transition becomes a step.
fn next<A, C: Context, T: Tool>(result: Result<A, Ended<C, T>>, step: impl FnOnce(A) -> Step<C, T>) -> Step<C, T> {
    match result {
        Ok(stage) => step(stage),
        Err(ended) => Step::Close(ended),
    }
}

fn validate<C: Context, T: Tool>(call: Call<C, T, Resolved>) -> Step<C, T> {
    next(call.validate(), Step::Authorize)
}

fn confirm<C: Context, T: Tool>(call: Call<C, T, Live>) -> Step<C, T> {
    next(call.confirm(), |confirm| match confirm {
        Confirm::NotNeeded(call) => Step::Intercept(call),
        Confirm::Ask(asking) => Step::Issue(asking),
        Confirm::Redeem(redeeming) => Step::Redeem(redeeming),
    })
}

fn announce<C: Context, T: Tool>(call: Call<C, T, Cleared>) -> Step<C, T> {
    if call.spec().mutating { Step::Intent(call) } else { call.answer(Ok(())) }
}

impl<C: Context, T: Tool> Step<C, T> {
    /// The first step of a call received at `now`.
    pub fn start(ctx: C, now: Now) -> Self {
        Self::Find(Call::request(ctx, now))
    }

    /// The step's name, for transcripts.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Find(_) => "find",
            Self::Load(_) => "load",
            Self::Authorize(_) => "authorize",
            Self::Charge(_) => "charge",
            Self::Recall(_) => "recall",
            Self::Issue(_) => "issue",
            Self::Redeem(_) => "redeem",
            Self::Intercept(_) => "intercept",
            Self::Claim(_) => "claim",
            Self::Intent(_) => "intent",
            Self::Execute(_) => "execute",
            Self::Close(_) => "close",
            Self::Settle(_) => "settle",
            Self::Record(_) => "record",
            Self::Done(_) => "done",
        }
    }
}

impl<C: Context> Call<C, (), Requested> {
    /// Replies to [`Step::Find`].
    pub fn found<T: Tool>(self, lookup: Lookup<T>) -> Step<C, T> {
        next(self.resolve(lookup), |load| match load {
            Load::Fresh(call) => validate(call),
            Load::Stored(loading) => Step::Load(loading),
        })
    }

    /// Replies to [`Step::Find`] without looking.
    pub fn turned_away<T: Tool>(self, why: TurnAway) -> Step<C, T> {
        Step::Close(self.turn_away(why))
    }
}

impl<C: Context, T: Tool> Loading<C, T> {
    /// Replies to [`Step::Load`].
    pub fn answer(self, found: Result<Option<Loaded<C::Snapshot>>, StoreFault>) -> Step<C, T> {
        next(self.loaded(found), validate)
    }
}

impl<C: Context, T: Tool> Call<C, T, Validated> {
    /// Replies to [`Step::Authorize`].
    pub fn answer(self, decision: Decision<C::Text>) -> Step<C, T> {
        next(self.authorize(decision), |call| {
            if call.charge().is_some() { Step::Charge(call) } else { call.answer(Ok(Allowance::Unlimited)) }
        })
    }
}

impl<C: Context, T: Tool> Call<C, T, Authorized> {
    /// Replies to [`Step::Charge`].
    pub fn answer(self, answer: Result<Allowance, StoreFault>) -> Step<C, T> {
        next(self.admit(answer).and_then(Call::<C, T, Admitted>::unless_planning).and_then(Call::recall), |operate| {
            match operate {
                Operate::NotNeeded(call) => confirm(call),
                Operate::Ask(operating) => Step::Recall(operating),
            }
        })
    }
}

impl<C: Context, T: Tool> Operating<C, T, Live> {
    /// Replies to [`Step::Recall`]; `Ok(Err(OperationRefusal::Unsupported))` is what a host without a journal says.
    pub fn answer(self, answer: Result<Result<Recalled<T::Output>, OperationRefusal>, StoreFault>) -> Step<C, T> {
        next(self.recalled(answer), confirm)
    }
}

impl<C: Context, T: Tool> Operating<C, T, Cleared> {
    /// Replies to [`Step::Claim`].
    pub fn answer(self, answer: Result<Result<Recalled<T::Output>, OperationRefusal>, StoreFault>) -> Step<C, T> {
        next(self.claimed(answer), announce)
    }
}

impl<C: Context, T: Tool> Asking<C, T> {
    /// Replies to [`Step::Issue`].
    pub fn answer(self, answer: Result<Issued, IssueFault>) -> Step<C, T> {
        Step::Close(self.asked(answer))
    }
}

impl<C: Context, T: Tool> Asking<C, T> {
    /// Replies to [`Step::Issue`] where a standing grant covers the call, and a ticket was claimed for it.
    pub fn covered(self, covered: Covered) -> Step<C, T> {
        Step::Intercept(self.granted(covered))
    }
}

impl<C: Context, T: Tool> Redeeming<C, T> {
    /// Replies to [`Step::Redeem`].
    pub fn answer(self, answer: Result<Result<By, Refusal>, StoreFault>) -> Step<C, T> {
        next(self.redeemed(answer), Step::Intercept)
    }
}

impl<C: Context, T: Tool> Call<C, T, Confirmed> {
    /// Replies to [`Step::Intercept`].
    pub fn answer(self, verdict: Interception<T::Output, C::Text>) -> Step<C, T> {
        next(self.intercept(verdict).and_then(Call::claim), |operate| match operate {
            Operate::NotNeeded(call) => announce(call),
            Operate::Ask(operating) => Step::Claim(operating),
        })
    }
}

impl<C: Context, T: Tool> Call<C, T, Cleared> {
    /// Replies to [`Step::Intent`].
    pub fn answer(self, answer: Result<(), AuditFault>) -> Step<C, T> {
        next(self.announce(answer), Step::Execute)
    }
}

impl<C: Context, T: Tool> Call<C, T, Announced> {
    /// Replies to [`Step::Execute`] for a host that ran the tool through [`Call::execute`] or [`Call::begin`].
    pub fn answer(
        self,
        body: impl FnOnce(crate::call::Permit<'_, C, T>) -> Finished<T::Output, T::Failure, C::Text>,
    ) -> Step<C, T> {
        Step::Close(self.execute(body))
    }
}

impl<C: Context, T: Tool> Ended<C, T> {
    /// Replies to [`Step::Close`].
    pub fn answer(self, now: Now) -> Step<C, T> {
        let closed = self.close(now);
        if closed.settlement().is_empty() { Step::Record(closed) } else { Step::Settle(closed) }
    }
}

impl<C: Context, T: Tool> Closed<C, T> {
    /// Replies to [`Step::Settle`].
    pub fn settled(mut self, attempts: Option<Attempts>) -> Step<C, T> {
        if let Some(attempts) = attempts {
            self.settle(attempts);
        }
        Step::Record(self)
    }

    /// Replies to [`Step::Record`].
    pub fn recorded(self, answer: Result<(), AuditFault>) -> Step<C, T> {
        Step::Done(self.audited(answer))
    }
}
