//! Stages 9 to 11: the intent is recorded, the tool runs with its permit, and what comes back is contained and checked.

use core::num::NonZeroU64;

use crate::args::Args;
use crate::audit::{AuditFault, Record};
use crate::code::Station;
use crate::context::CallContext;
use crate::journal::OperationRefusal;
use crate::request::{Context, copied_caller};
use crate::tool::{Tool, ToolSpec};

use super::{Call, Cleared, End, Ended, checked_args};

/// The effect is announced: from here on the tool may start.
#[derive(Debug)]
pub struct Announced(());

impl<C: Context, T: Tool> Call<C, T, Cleared> {
    /// The intent to record durably before anything can happen (invariant J2); `None` for a tool that changes nothing.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn intent(&mut self) -> Option<Record<'_>> {
        if !self.tool.spec().mutating {
            return None;
        }
        // A text that was digested or not: a record without the digest is still an intent.
        let _ = self.digest_arguments();
        Some(Record::intent(&self.ctx, &self.tool))
    }

    /// Takes the audit sink's answer to [`Call::intent`]; `Ok` where there was none to record.
    ///
    /// # Errors
    /// The call ends when the intent could not be recorded (invariants F1, J8), and when it is one of an operation that it did not
    /// claim.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn announce(self, answer: Result<(), AuditFault>) -> Result<Call<C, T, Announced>, Ended<C, T>> {
        if self.ctx.operation().is_some() && self.ctx.facts().attempt.is_none() {
            return Err(self.refuse(Station::EmitExecuting, End::OperationRefused(OperationRefusal::Unsupported)));
        }
        match answer {
            Ok(()) => Ok(self.advance()),
            Err(AuditFault) => Err(self.refuse(Station::EmitExecuting, End::AuditUnavailable)),
        }
    }
}

/// What became of a tool's run, once contained by the host.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a host must be able to report every way in which a run ends")]
pub enum Ran<O, F, X> {
    /// It returned a result.
    Done(O),
    /// It returned a failure.
    Failed(F),
    /// It panicked, with this text.
    Panicked(X),
    /// Its deadline passed (invariant X2).
    TimedOut,
    /// Its caller went away.
    Cancelled,
}

/// A run that is over.
#[derive(Debug)]
pub struct Finished<O, F, X> {
    /// What became of it.
    pub ran: Ran<O, F, X>,
    /// How long the tool's body took, in nanoseconds.
    pub spent_ns: u64,
}

impl<O, F, X> Ran<O, F, X> {
    /// The same, having taken `spent_ns` nanoseconds.
    pub const fn after(self, spent_ns: u64) -> Finished<O, F, X> {
        Finished { ran: self, spent_ns }
    }
}

impl<C: Context, T: Tool> Call<C, T, Announced> {
    /// Starts the call: the one moment at which a permit comes into being.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn begin(self) -> Executing<C, T> {
        Executing { call: self, minted: false }
    }

    /// Runs the tool's body with its permit, in place.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn execute(
        self,
        body: impl FnOnce(Permit<'_, C, T>) -> Finished<T::Output, T::Failure, C::Text>,
    ) -> Ended<C, T> {
        let mut executing = self.begin();
        let ran = body(executing.mint());
        executing.finished(ran)
    }

    /// The same for a body that waits. Dropping the future leaves a call that started and never ended: the host's guard
    /// records it as unknown (invariant X4).
    pub async fn execute_async(
        self,
        body: impl AsyncFnOnce(Permit<'_, C, T>) -> Finished<T::Output, T::Failure, C::Text>,
    ) -> Ended<C, T> {
        let mut executing = self.begin();
        let ran = body(executing.mint()).await;
        executing.finished(ran)
    }
}

/// A call whose tool is running.
#[must_use = "a started call that is dropped has no outcome and no record"]
pub struct Executing<C, T> {
    pub(super) call: Call<C, T, Announced>,
    pub(super) minted: bool,
}

impl<C: Context, T: Tool> Executing<C, T> {
    /// The permit to run the tool's body: given once, `None` ever after. For hosts that park a running call; the others
    /// use [`Call::execute`].
    pub fn permit(&mut self) -> Option<Permit<'_, C, T>> {
        if self.minted { None } else { Some(self.mint()) }
    }

    #[cfg_attr(not(callgate_small), inline)]
    fn mint(&mut self) -> Permit<'_, C, T> {
        self.minted = true;
        Permit { call: &self.call }
    }

    /// The running call.
    pub const fn call(&self) -> &Call<C, T, Announced> {
        &self.call
    }

    /// Takes what became of the run. The result is checked against the output schema; one that breaks it is contained, and
    /// the outcome still says that the effect happened (invariant O1).
    ///
    /// A result that came after the tool's timeout stays a result, and the outcome's meta says that it was late.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn finished(mut self, finished: Finished<T::Output, T::Failure, C::Text>) -> Ended<C, T> {
        self.call.ctx.facts_mut().spent = NonZeroU64::new(finished.spent_ns.saturating_add(1));
        let (station, end) = match finished.ran {
            Ran::Done(output) => {
                let mut valid = true;
                self.call.tool.validate_output(&output, &mut |_| valid = false);
                if valid {
                    (Station::Execute, End::Done(output))
                } else {
                    (Station::CheckOutput, End::OutputInvalid(output))
                }
            }
            Ran::Failed(failure) => (Station::ContainException, End::Failed(failure)),
            Ran::Panicked(text) => (Station::ContainException, End::Panicked(text)),
            Ran::TimedOut => (Station::Execute, End::TimedOut),
            Ran::Cancelled => (Station::Execute, End::Cancelled { started: true }),
        };
        self.call.end(station, end)
    }
}

impl<C: Context, T> core::fmt::Debug for Executing<C, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Executing").field("call", &self.call).finish_non_exhaustive()
    }
}

/// The right to run one tool's body for one call, once (invariant G1). Only the gate makes it; it can't be cloned, kept or
/// made up, and a body takes it by value.
#[must_use = "a permit that is not used means that the tool did not run"]
pub struct Permit<'r, C, T> {
    call: &'r Call<C, T, Announced>,
}

impl<'r, C: Context, T: Tool> Permit<'r, C, T> {
    /// The clamped arguments.
    pub fn args(&self) -> Args<'r> {
        checked_args(&self.call.ctx)
    }

    /// Who asks.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn caller(&self) -> CallContext<'r> {
        copied_caller(&self.call.ctx)
    }

    /// The tool that may run.
    pub const fn tool(&self) -> &'r T {
        &self.call.tool
    }

    /// Its description.
    pub fn spec(&self) -> &'r ToolSpec<'r> {
        self.call.tool.spec()
    }

    /// What the call carries.
    pub const fn context(&self) -> &'r C {
        &self.call.ctx
    }
}

impl<C: Context, T> core::fmt::Debug for Permit<'_, C, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Permit").field("call", &self.call).finish()
    }
}
