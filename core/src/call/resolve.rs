//! Stage 1: the name becomes a tool, and a token becomes the arguments that it stands for.

use core::marker::PhantomData;

use crate::code::Station;
use crate::confirm::{Binding, Refusal, Token, caller_digest};
use crate::context::ContextError;
use crate::name::{check_operation, check_tool_name};
use crate::request::{Context, Request, with_caller};
use crate::time::Now;
use crate::tool::Tool;

use super::{Call, End, Ended, Facts};

/// Received; nothing is known of it yet.
#[derive(Debug)]
pub struct Requested(());

/// The tool is known, and so is where the arguments come from.
#[derive(Debug)]
pub struct Resolved(());

/// What a registry says about a name, for one caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a registry knows a name, hides it, or does not know it")]
pub enum Lookup<T> {
    /// The tool.
    Found(T),
    /// Outside the caller's view, which may admit that the tool exists.
    Hidden,
    /// No such tool, or none that the caller may know of; the two look the same.
    Unknown,
}

/// Why a host does not even look at a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TurnAway {
    /// The gate is going down.
    Shutdown,
    /// Too many calls are in flight (invariant X6).
    Overloaded,
    /// The caller's session has made all the calls that it may make.
    Spent,
}

impl<C: Context> Call<C, (), Requested> {
    /// Receives a call at `now`.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn request(mut ctx: C, now: Now) -> Self {
        // Whatever the context knew of another call.
        *ctx.facts_mut() = Facts { started: now, ..Facts::NONE };
        Call { ctx, tool: (), stage: PhantomData }
    }

    /// The name to look up, with what else the caller sent.
    pub fn asked(&self) -> Request<'_> {
        self.ctx.request()
    }

    /// Turns the call away without looking at it. It still gets its one record.
    pub fn turn_away<T: Tool>(self, why: TurnAway) -> Ended<C, T> {
        let end = match why {
            TurnAway::Shutdown => End::Shutdown,
            TurnAway::Overloaded => End::Overloaded,
            TurnAway::Spent => End::Spent,
        };
        Ended::new(self.ctx, None, Station::Resolve, end)
    }

    /// Gives up on a call that was lost on its way: its future was dropped, or the host itself panicked. `started` says whether
    /// its tool had started by then. For the guard that a host keeps for every call (invariants J1, X4).
    pub fn lost<T: Tool>(self, started: bool) -> Ended<C, T> {
        Ended::new(self.ctx, None, Station::Execute, End::Cancelled { started })
    }

    /// Takes the registry's answer. The tool that comes in here serves the call to its end (invariant G2).
    ///
    /// # Errors
    /// The call ends when the tool is unknown or hidden, when a name in the context is outside its grammar (invariant S3),
    /// and when too many calls stand above it (invariant G8).
    #[cfg_attr(not(callgate_small), inline)]
    pub fn resolve<T: Tool>(self, found: Lookup<T>) -> Result<Load<C, T>, Ended<C, T>> {
        let refused = with_caller(&self.ctx, |caller| {
            if let Err(error) = caller.check() {
                Some(End::BadContext(error))
            } else if let Some(Err(reason)) = self.ctx.operation().map(check_operation) {
                Some(End::BadContext(ContextError { field: "operation", reason }))
            } else if caller.depth > self.ctx.settings().max_depth {
                Some(End::TooDeep)
            } else {
                None
            }
        });
        let ctx = self.ctx;
        if let Some(end) = refused {
            return Err(unresolved(ctx, end));
        }
        let end = match found {
            // A registry that answered with another tool than the one asked for would run it under a wrong name.
            Lookup::Found(tool)
                if tool.spec().name == ctx.request().tool && check_tool_name(tool.spec().name).is_ok() =>
            {
                return Ok(load(Call { ctx, tool, stage: PhantomData }));
            }
            Lookup::Found(_) | Lookup::Unknown => End::NotFound,
            Lookup::Hidden => End::Hidden,
        };
        Err(unresolved(ctx, end))
    }
}

/// Where a call's arguments come from.
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "a call brings a token or it does not")]
pub enum Load<C, T> {
    /// From the call itself.
    Fresh(Call<C, T, Resolved>),
    /// From the store, under the token that the call brings.
    Stored(Loading<C, T>),
}

impl<C: Context, T> core::fmt::Debug for Load<C, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Fresh(call) => f.debug_tuple("Fresh").field(call).finish(),
            Self::Stored(loading) => f.debug_tuple("Stored").field(loading).finish(),
        }
    }
}

/// A call that brings a token and waits for the store to look at it. Nothing is claimed yet.
#[must_use]
pub struct Loading<C, T> {
    call: Call<C, T, Resolved>,
    token: Option<Token>,
}

/// A ticket that a store found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loaded<S> {
    /// What it is good for.
    pub binding: Binding,
    /// Whether it can be used now, by [`crate::confirm::Ticket::usable`] under the store's clock.
    pub usable: Result<(), Refusal>,
    /// The arguments as they were sent when the ticket was issued.
    pub arguments: S,
}

/// A call that is not even one of a tool.
#[cfg_attr(callgate_small, inline)]
#[cfg_attr(not(callgate_small), cold, inline(never))]
fn unresolved<C: Context, T: Tool>(ctx: C, end: End<T::Output, T::Failure, C::Text>) -> Ended<C, T> {
    Ended::new(ctx, None, Station::Resolve, end)
}

#[cfg_attr(not(callgate_small), inline)]
fn load<C: Context, T: Tool>(mut call: Call<C, T, Resolved>) -> Load<C, T> {
    if call.ctx.request().token.is_none() {
        return Load::Fresh(call);
    }
    let token = call.ctx.request().token.and_then(Token::parse);
    call.ctx.facts_mut().ticket = token.map(Token::hash);
    Load::Stored(Loading { call, token })
}

impl<C: Context, T: Tool> Loading<C, T> {
    /// The name to look up in the store; `None` when the text is no token at all.
    pub fn ticket(&self) -> Option<crate::digest::Digest> {
        self.token.map(Token::hash)
    }

    /// The call that waits.
    pub const fn call(&self) -> &Call<C, T, Resolved> {
        &self.call
    }

    /// Gives the call up: the caller went away.
    pub fn cancel(self) -> Ended<C, T> {
        self.call.cancel()
    }

    /// Takes the store's answer: `Ok(None)` for an unknown ticket. From here on the call has the ticket's arguments; what was
    /// sent beside the token is inert.
    ///
    /// # Errors
    /// The call ends when the ticket is not good for this caller and tool, or the store failed.
    pub fn loaded(
        self,
        found: Result<Option<Loaded<C::Snapshot>>, StoreFault>,
    ) -> Result<Call<C, T, Resolved>, Ended<C, T>> {
        let mut call = self.call;
        if self.token.is_none() {
            return Err(call.refuse(Station::Confirm, End::Refused(Refusal::Malformed)));
        }
        let loaded = match found {
            Err(StoreFault) => {
                return Err(call.refuse(Station::Confirm, End::StoreFault(Store::Confirmations)));
            }
            Ok(None) => return Err(call.refuse(Station::Confirm, End::Refused(Refusal::Unknown))),
            Ok(Some(loaded)) => loaded,
        };
        // The caller is compared first, so that a stranger learns nothing of what became of somebody else's ticket.
        let refusal = if loaded.binding.caller != caller_digest(&call.ctx.caller()) {
            Some(Refusal::OtherCaller)
        } else if loaded.binding.tool != call.tool.definition() {
            Some(Refusal::OtherTool)
        } else {
            loaded.usable.err()
        };
        if let Some(refusal) = refusal {
            return Err(call.refuse(Station::Confirm, End::Refused(refusal)));
        }
        call.ctx.adopt(loaded.arguments);
        Ok(call)
    }

    /// Takes the answer of a host that has no such ticket.
    ///
    /// # Errors
    /// Always: the call ends.
    pub fn unknown(self) -> Result<Call<C, T, Resolved>, Ended<C, T>> {
        self.loaded(Ok(None))
    }
}

impl<C: Context, T> core::fmt::Debug for Loading<C, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Loading").field("call", &self.call).finish_non_exhaustive()
    }
}

/// A store did not answer, or answered with something that it can't vouch for. Before the tool starts this ends the call
/// (invariant F1); the host keeps the details for its own log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreFault;

impl core::fmt::Display for StoreFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a store of the gate did not answer")
    }
}

impl core::error::Error for StoreFault {}

/// The stores that a gate needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Store {
    /// Pending confirmations.
    Confirmations,
    /// Rate limits.
    Limits,
    /// Operations and their results.
    Journal,
}

impl Store {
    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmations => "confirmations",
            Self::Limits => "limits",
            Self::Journal => "journal",
        }
    }
}
