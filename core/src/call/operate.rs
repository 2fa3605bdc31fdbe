//! A call with the id of an operation asks the journal twice: whether it was made before, and for the claim just before the effect.

use core::fmt;
use core::num::NonZeroU32;

use crate::code::Station;
use crate::confirm::principal_digest;
use crate::digest::Digest;
use crate::journal::{OperationRefusal, PresentedOperation, Recalled, operation_key};
use crate::request::{Context, with_caller};
use crate::tool::Tool;

use super::{Call, Cleared, End, Ended, Facts, Live, Store, StoreFault};

/// What a call asks of a journal.
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "a call is one of an operation or it is not")]
pub enum Operate<C, T, S> {
    /// Nothing: it is no call of an operation.
    NotNeeded(Call<C, T, S>),
    /// Before a yes is asked for or used up ([`Live`]): was the operation made? After everything else ([`Cleared`]): claim it.
    Ask(Operating<C, T, S>),
}

impl<C: Context, T, S> fmt::Debug for Operate<C, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNeeded(call) => f.debug_tuple("NotNeeded").field(call).finish(),
            Self::Ask(operating) => f.debug_tuple("Ask").field(operating).finish(),
        }
    }
}

/// A call of an operation, at the moment at which a journal is asked.
#[must_use]
pub struct Operating<C, T, S> {
    call: Call<C, T, S>,
    key: Digest,
    arguments: Digest,
}

impl<C: Context, T: Tool, S> Call<C, T, S> {
    fn operating(mut self, station: Station) -> Result<Operate<C, T, S>, Ended<C, T>> {
        let Some(operation) = self.ctx.operation() else { return Ok(Operate::NotNeeded(self)) };
        let Some(key) = with_caller(&self.ctx, |caller| operation_key(caller, operation)) else {
            return Err(self.refuse(station, End::OperationRefused(OperationRefusal::Anonymous)));
        };
        // The journal compares the digest, and a text that has none is no call that it could know again.
        match self.digest_arguments() {
            Ok(arguments) => Ok(Operate::Ask(Operating { call: self, key, arguments })),
            Err(error) => Err(self.refuse(station, End::NoRoom(error))),
        }
    }
}

impl<C: Context, T: Tool> Call<C, T, Live> {
    /// Finds out whether the call has to ask if its operation was made before. It has passed authorization under the present policy, and
    /// its budget (invariants P7, R7).
    ///
    /// # Errors
    /// The call ends when nobody known asks, or when its arguments cannot be digested in the room that the host gave.
    pub fn recall(self) -> Result<Operate<C, T, Live>, Ended<C, T>> {
        self.operating(Station::Confirm)
    }
}

impl<C: Context, T: Tool> Call<C, T, Cleared> {
    /// Finds out whether the call has to claim its operation before the effect is announced.
    ///
    /// # Errors
    /// As [`recall`](Call::recall).
    pub fn claim(self) -> Result<Operate<C, T, Cleared>, Ended<C, T>> {
        if self.ctx.facts().attempt.is_some() {
            return Ok(Operate::NotNeeded(self));
        }
        self.operating(Station::EmitExecuting)
    }
}

impl<C: Context, T: Tool, S> Operating<C, T, S> {
    /// The operation as the call presents it: the [rules](crate::journal::Operation) compare.
    pub fn presented(&self) -> PresentedOperation {
        PresentedOperation {
            key: self.key,
            principal: with_caller(&self.call.ctx, principal_digest),
            tool: self.call.tool.definition(),
            arguments: self.arguments,
            lease_ms: self.call.tool.spec().lease_ms(),
        }
    }

    /// The id that the caller gave it.
    pub fn operation(&self) -> &str {
        self.call.ctx.operation().unwrap_or_default()
    }

    /// The call that asks.
    pub const fn call(&self) -> &Call<C, T, S> {
        &self.call
    }

    /// Gives the call up: the caller went away. An operation that was claimed all the same is in doubt when its lease is over.
    pub fn cancel(self) -> Ended<C, T> {
        self.call.cancel()
    }

    fn take(
        self,
        station: Station,
        answer: Result<Result<Recalled<T::Output>, OperationRefusal>, StoreFault>,
        free: impl FnOnce(&mut Facts, NonZeroU32),
    ) -> Result<Call<C, T, S>, Ended<C, T>> {
        let mut call = self.call;
        let end = match answer {
            Ok(Ok(Recalled::Free(attempt))) => {
                free(call.ctx.facts_mut(), attempt);
                return Ok(call);
            }
            Ok(Ok(Recalled::Completed(output))) => {
                let mut valid = true;
                call.tool.validate_output(&output, &mut |_| valid = false);
                // It was checked before it was kept, against the same definition: a journal that gives another is not to be believed.
                if valid { End::Replayed(output) } else { End::StoreFault(Store::Journal) }
            }
            Ok(Err(refusal)) => End::OperationRefused(refusal),
            Err(StoreFault) => End::StoreFault(Store::Journal),
        };
        Err(call.refuse(station, end))
    }
}

impl<C: Context, T: Tool> Operating<C, T, Live> {
    /// Takes the journal's answer; nothing is claimed yet.
    ///
    /// # Errors
    /// The call ends with the result that the operation had, when it may not be made, or when the journal failed (invariant F1).
    pub fn recalled(
        self,
        answer: Result<Result<Recalled<T::Output>, OperationRefusal>, StoreFault>,
    ) -> Result<Call<C, T, Live>, Ended<C, T>> {
        self.take(Station::Confirm, answer, |facts, _| facts.recalled = true)
    }

    /// Takes the answer of a host without a journal. The call is not run as if it had no operation.
    pub fn unsupported(self) -> Ended<C, T> {
        self.call.end(Station::Confirm, End::OperationRefused(OperationRefusal::Unsupported))
    }
}

impl<C: Context, T: Tool> Operating<C, T, Cleared> {
    /// Takes the journal's answer to the claim. After `Free` the operation is this call's until its lease is over.
    ///
    /// # Errors
    /// As [`recalled`](Operating::recalled). When the journal failed, whether the operation was claimed is unknown, so the call does not
    /// run.
    pub fn claimed(
        self,
        answer: Result<Result<Recalled<T::Output>, OperationRefusal>, StoreFault>,
    ) -> Result<Call<C, T, Cleared>, Ended<C, T>> {
        self.take(Station::EmitExecuting, answer, |facts, attempt| facts.attempt = Some(attempt))
    }

    /// Takes the answer of a host without a journal.
    pub fn unsupported(self) -> Ended<C, T> {
        self.call.end(Station::EmitExecuting, End::OperationRefused(OperationRefusal::Unsupported))
    }
}

impl<C: Context, T, S> fmt::Debug for Operating<C, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operating").field("call", &self.call).finish_non_exhaustive()
    }
}
