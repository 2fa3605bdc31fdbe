//! The typed stages: a call is a value whose type says how far it has come.
//!
//! ```text
//! Requested > Resolved > Validated > Authorized > Admitted > Live > Confirmed > Cleared > Announced > Executing
//!       \________\___________\___________\___________\________\__________\_________\___________\_________> Ended
//!                                                                                   Ended > Closed > Outcome
//! ```
//!
//! Each transition takes the call and the answer that the host got, and gives the next stage or the [`Ended`] call. Stages
//! have no other constructor, cannot be cloned and are used up by their transition, so what follows are facts that the
//! compiler checks (invariants G1, G5, G7):
//!
//! - nothing is intercepted before it is authorized, admitted and confirmed;
//! - a tool's body is reached only with a [`Permit`], and a permit only from an announced call;
//! - a planned call has no transition to execution (invariant R4);
//! - a call with the id of an operation that no journal was asked for ends refused: a driver that knows of no journal needs no line for it;
//! - an [`crate::outcome::Outcome`] exists only behind an acknowledged terminal record (invariant J1).
//!
//! # What a compile error means
//!
//! *no method named `authorize` found for `Call<_, _, Resolved>`* and its kind say that a stage is missing in between; *use of
//! moved value* says that a call was used twice. Both are faults in the host's order, found before it ran.
//!
//! # The order, in one function
//!
//! ```
//! use callgate_core::call::{Call, Confirm, Ended, Load, Lookup, Ran};
//! use callgate_core::context::CallContext;
//! use callgate_core::digest::DigestKey;
//! use callgate_core::intercept::Interception;
//! use callgate_core::json::KeySlot;
//! use callgate_core::limit::Allowance;
//! use callgate_core::policy::{ChannelTable, PolicyGate};
//! use callgate_core::request::{Context, Envelope, Request, Settings};
//! use callgate_core::time::Now;
//! use callgate_core::tool::{Tool, ToolSpec, Violation};
//!
//! struct Echo;
//! impl Tool for Echo {
//!     type Output = &'static str;
//!     type Failure = &'static str;
//!     fn spec(&self) -> &ToolSpec<'_> { const { &ToolSpec::new("echo", "Says hello") } }
//!     fn validate(&self, _: callgate_core::args::Args<'_>, _: &mut dyn FnMut(Violation<'_>)) {}
//! }
//!
//! fn drive<'a>(envelope: Envelope<'a>, now: Now) -> Result<Ended<Envelope<'a>, &'static Echo>, Ended<Envelope<'a>, &'static Echo>> {
//!     let call = match Call::request(envelope, now).resolve(Lookup::Found(&Echo))? { // 1 resolve
//!         Load::Fresh(call) => call,
//!         Load::Stored(loading) => loading.unknown()?,
//!     };
//!     let call = call.validate()?; // 2, 3 validate and clamp
//!     let decision = PolicyGate::new(ChannelTable::DEFAULTS).decide(&call.subject());
//!     let call = call.authorize(decision)?; // 4 authorize
//!     let call = call.admit(Ok(Allowance::Unlimited))?; // 5 rate_limit
//!     let call = call.unless_planning()?; // 6 plan_mode
//!     let call = match call.confirm()? { // 7 confirm
//!         Confirm::NotNeeded(call) => call,
//!         Confirm::Ask(asking) => return Err(asking.no_approver()),
//!         Confirm::Redeem(redeeming) => redeeming.unknown()?,
//!     };
//!     let call = call.intercept(Interception::Continue)?; // 8 emit_executing
//!     let call = call.announce(Ok(()))?; // no effect without a durable intent
//!     Ok(call.execute(|_permit| Ran::Done("hello").after(0))) // 9 to 11 execute, contain, check
//! }
//!
//! let key = DigestKey::new([7; 32]);
//! let mut keys = [KeySlot::default(); 8];
//! let request = Request { tool: "echo", arguments: b"{}", token: None };
//! let envelope = Envelope::new(CallContext::cli("r1"), request, Settings::new(&key), &mut keys);
//! let (Ok(ended) | Err(ended)) = drive(envelope, Now::default());
//! let closed = ended.close(Now::default());
//! let outcome = closed.audited(Ok(())); // 12 audit
//! assert!(outcome.success());
//! ```

mod admit;
mod authorize;
mod background;
mod confirm;
mod end;
mod execute;
mod facts;
mod intercept;
mod look;
mod operate;
mod resolve;
mod validate;

pub use admit::{Admitted, Charge, ChargeMode, Live};
pub use authorize::Authorized;
pub use background::{Detach, TaskId};
pub use confirm::{Asking, Confirm, Confirmed, Covered, DEFAULT_APPROVER_SCOPE, IssueFault, Issued, Redeeming};
pub use end::{Attempts, Closed, End, Ended, Finish, FinishOperation, Refund, Settlement};
pub use execute::{Announced, Executing, Finished, Permit, Ran};
pub use facts::Facts;
pub(crate) use facts::Held;
pub use intercept::Cleared;
pub use operate::{Operate, Operating};
pub use resolve::{Load, Loaded, Loading, Lookup, Requested, Resolved, Store, StoreFault, TurnAway};
pub use validate::Validated;

use core::fmt;
use core::marker::PhantomData;

use crate::args::Args;
use crate::code::Station;
use crate::context::CallContext;
use crate::digest::Digest;
use crate::json::KeysFull;
use crate::policy::Subject;
use crate::request::{Context, Parts, copied_caller, with_caller};
use crate::time::Now;
use crate::tool::{Tool, ToolSpec};

/// A call of `T` that has come as far as `S`, carrying `C`.
///
/// A call that is dropped before it ended leaves no record: the host's guard has to write one (invariant J1), because a
/// core without I/O cannot.
#[must_use = "a call that is dropped has no outcome and no record"]
pub struct Call<C, T, S> {
    ctx: C,
    tool: T,
    stage: PhantomData<S>,
}

impl<C, T, S> Call<C, T, S> {
    /// The same call at another stage.
    #[cfg_attr(not(callgate_small), inline(always))]
    fn advance<N>(self) -> Call<C, T, N> {
        Call { ctx: self.ctx, tool: self.tool, stage: PhantomData }
    }
}

impl<C: Context, T, S> Call<C, T, S> {
    /// What the call carries.
    pub const fn context(&self) -> &C {
        &self.ctx
    }

    /// Who asks.
    pub fn caller(&self) -> CallContext<'_> {
        self.ctx.caller()
    }

    /// Shows who asks to `look`, without a copy where the context needs none.
    pub fn with_caller<'c, R>(&'c self, look: impl FnOnce(&CallContext<'c>) -> R) -> R {
        with_caller(&self.ctx, look)
    }

    /// When the gate received the call.
    pub fn received(&self) -> Now {
        self.ctx.facts().started
    }

    /// The presented or issued token's hash, once there is one.
    pub fn ticket(&self) -> Option<Digest> {
        self.ctx.facts().ticket
    }
}

impl<C: Context, T: Tool, S> Call<C, T, S> {
    /// The tool, as it was when the name was resolved (invariant G2).
    pub const fn tool(&self) -> &T {
        &self.tool
    }

    /// The tool's description.
    pub fn spec(&self) -> &ToolSpec<'_> {
        self.tool.spec()
    }

    /// The digest of the clamped arguments. Computed once, when something needs it.
    fn digest_arguments(&mut self) -> Result<Digest, KeysFull> {
        digest_arguments(&mut self.ctx)
    }

    #[cfg_attr(not(callgate_small), inline(always))]
    fn end(self, station: Station, end: End<T::Output, T::Failure, C::Text>) -> Ended<C, T> {
        Ended::new(self.ctx, Some(self.tool), station, end)
    }

    /// The same for a call that goes no further. Apart, so that what most calls run stands together: the whole way of a call is more code than a
    /// processor keeps at hand.
    #[cfg_attr(callgate_small, inline(always))]
    #[cfg_attr(not(callgate_small), cold, inline(never))]
    fn refuse(self, station: Station, end: End<T::Output, T::Failure, C::Text>) -> Ended<C, T> {
        self.end(station, end)
    }

    /// Gives the call up before the tool started: the caller went away. Legal at every stage before execution.
    pub fn cancel(self) -> Ended<C, T> {
        self.end(Station::Resolve, End::Cancelled { started: false })
    }
}

/// A stage at which the arguments have been read: they fit the tool's schema and were clamped.
pub trait Checked: sealed::Checked {}

mod sealed {
    /// Keeps [`super::Checked`] to this crate's stages.
    pub trait Checked {}
}

macro_rules! checked {
    ($($stage:ty),+) => { $(impl sealed::Checked for $stage {} impl Checked for $stage {})+ };
}
checked!(Validated, Authorized, Admitted, Live, Confirmed, Cleared, Announced);

impl<C: Context, T: Tool, S: Checked> Call<C, T, S> {
    /// The clamped arguments: what is authorized, shown, confirmed, intercepted, executed and recorded (invariant K4).
    pub fn args(&self) -> Args<'_> {
        checked_args(&self.ctx)
    }

    /// What a policy and an interceptor judge (invariant P4).
    #[cfg_attr(not(callgate_small), inline)]
    pub fn subject(&self) -> Subject<'_> {
        let (spec, definition, args) = (self.tool.spec(), self.tool.definition(), self.args());
        let facts = self.ctx.facts();
        let (arguments, now) = (facts.arguments, facts.started.wall);
        // The caller comes last, so that it is copied once: straight to where it stays.
        Subject { spec, definition, args, arguments, now, caller: copied_caller(&self.ctx) }
    }
}

/// The arguments of a call that passed the reader.
#[cfg_attr(not(callgate_small), inline)]
pub(crate) fn checked_args<C: Context>(ctx: &C) -> Args<'_> {
    Args::reread(ctx.text(), ctx.edits())
}

pub(crate) fn digest_arguments<C: Context>(ctx: &mut C) -> Result<Digest, KeysFull> {
    if let Some(digest) = ctx.facts().arguments {
        return Ok(digest);
    }
    let Parts { text, edits, keys, settings, .. } = ctx.parts();
    let args = Args::reread(text, edits);
    let digest = args.digest(settings.digest_key, keys)?;
    ctx.facts_mut().arguments = Some(digest);
    Ok(digest)
}

impl<C: Context, T, S> fmt::Debug for Call<C, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("request", &self.ctx.request())
            .field("stage", &core::any::type_name::<S>().rsplit("::").next())
            .finish_non_exhaustive()
    }
}
