//! A tool's body, and the one way to it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use callgate_core::args::Args;
use callgate_core::call::Permit;
use callgate_core::context::{CallContext, Scopes};
use callgate_core::request::Context;
use callgate_core::time::{Clock, Instant};
use callgate_core::tool::{Tool as Described, ToolSpec};
use callgate_core::typed::{self, Read};
use serde::Deserialize;
use serde_json::Value;

use super::Tool;
use super::definition::Definition;
use super::nested::{self, NestedCalls, NestedOutcome};
use super::owned::{self, OwnedCall, OwnedHost, Run};
use crate::cancellation::Cancellation;
use crate::failure::Failure;
use crate::future::{BoxFuture, block_on_until};
use crate::output::Reply;
use crate::update::{Chunks, Gone, PENDING_UPDATES, Progress, Update};

/// A body that blocks its thread until it is done.
pub(super) type BlockingBody = Arc<dyn Fn(&ToolCall<'_>) -> Result<Reply, Failure> + Send + Sync>;
/// A body that waits without a thread.
pub(super) type WaitingBody = Arc<dyn Fn(OwnedCall) -> BoxFuture<'static, Result<Reply, Failure>> + Send + Sync>;

#[derive(Clone)]
pub(super) enum Body {
    Blocking(BlockingBody),
    Waiting(WaitingBody),
}

/// How a host holds a [`Tool`] while it serves a call: by value, by reference or shared. Only for these, so that a permit
/// for one tool can't be taken to another one's body (invariant G1).
pub trait Held: Described<Output = Reply, Failure = Failure> + sealed::Held {
    /// The tool.
    fn tool(&self) -> &Tool;
}

mod sealed {
    pub trait Held {}
}

macro_rules! held {
    ($($holder:ty),+) => {$(
        impl sealed::Held for $holder {}
        impl Held for $holder {
            fn tool(&self) -> &Tool {
                self
            }
        }
    )+};
}
held!(Tool, &Tool, Arc<Tool>, &Arc<Tool>);

/// What a host lends to a running body.
#[derive(Clone, Copy)]
pub struct Host<'r> {
    clock: &'r (dyn Clock + Sync),
    started: Instant,
    cancelled: Option<&'r (dyn Fn() -> bool + Sync)>,
    nested: Option<&'r dyn NestedCalls>,
    updates: Option<&'r Follow<'r>>,
    owned: Option<&'r (dyn Fn() -> OwnedHost + Sync)>,
}

/// Takes the updates of a call.
pub(crate) type Follow<'r> = dyn Fn(Update) -> Result<(), Gone> + Sync + 'r;

impl<'r> Host<'r> {
    /// A host with this clock, on which the run started at `started`.
    #[must_use]
    pub const fn new(clock: &'r (dyn Clock + Sync), started: Instant) -> Self {
        Self { clock, started, cancelled: None, nested: None, updates: None, owned: None }
    }

    /// The same host, which can tell whether the caller is gone.
    #[must_use]
    pub const fn with_cancelled(mut self, cancelled: &'r (dyn Fn() -> bool + Sync)) -> Self {
        self.cancelled = Some(cancelled);
        self
    }

    /// The same host, through whose gate a body may call other tools.
    #[must_use]
    pub const fn with_nested(mut self, nested: &'r dyn NestedCalls) -> Self {
        self.nested = Some(nested);
        self
    }

    /// The same host, which takes updates. What it does with one that it does not want any more is to say so.
    #[must_use]
    pub const fn with_updates(mut self, updates: &'r (dyn Fn(Update) -> Result<(), Gone> + Sync)) -> Self {
        self.updates = Some(updates);
        self
    }

    /// The same host, which lends what this makes to a body that waits. Without it such a body fails.
    #[must_use]
    pub const fn with_owned(mut self, owned: &'r (dyn Fn() -> OwnedHost + Sync)) -> Self {
        self.owned = Some(owned);
        self
    }
}

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("started", &self.started)
            .field("cancelled", &self.cancelled.is_some())
            .field("nested", &self.nested.is_some())
            .finish_non_exhaustive()
    }
}

/// Runs the body of the tool that `permit` was minted for, and bounds what it returns (invariants O2, X6). The permit is
/// spent.
///
/// A panic of the body goes through: containing it is the host's stage.
///
/// ```
/// use callgate_core::{call::Permit, request::Context};
/// use callgate_std::tool::{Host, Tool, run};
/// fn once<C: Context>(permit: Permit<'_, C, &Tool>, host: Host<'_>) -> bool {
///     run(permit, host).is_ok()
/// }
/// ```
///
/// A permit is good for one run (invariant G1):
///
/// ```compile_fail
/// use callgate_core::{call::Permit, request::Context};
/// use callgate_std::tool::{Host, Tool, run};
/// fn twice<C: Context>(permit: Permit<'_, C, &Tool>, host: Host<'_>) -> bool {
///     run(permit, host).is_ok() && run(permit, host).is_ok()
/// }
/// ```
///
/// # Errors
/// The body's failure.
pub fn run<C: Context, T: Held>(permit: Permit<'_, C, T>, host: Host<'_>) -> Result<Reply, Failure> {
    let tool = permit.tool().tool();
    let body = match &tool.body {
        Body::Blocking(body) => body,
        Body::Waiting(_) => return wait(permit, host),
    };
    let mut reply = body(&ToolCall::new(permit, host))?;
    reply.bound(tool.max_output, tool.spec().output_schema.is_none());
    Ok(reply)
}

/// Runs a body that waits on this thread: until it is done, its deadline has passed or its caller is gone. Then it is dropped
/// where it waits.
fn wait<C: Context, T: Held>(permit: Permit<'_, C, T>, host: Host<'_>) -> Result<Reply, Failure> {
    let Some(owned) = host.owned else {
        return Err(Failure::new("this host runs no bodies that wait").without_effect());
    };
    let deadline = host.started.saturating_add_nanos(permit.spec().deadline_ms().saturating_mul(1_000_000));
    let (sender, receiver) = async_channel::bounded(PENDING_UPDATES);
    let cancellation = Cancellation::new();
    let mut lent = owned().with_cancellation(cancellation.clone());
    if host.updates.is_some() {
        lent = lent.with_updates(sender);
    }
    let Run::Waiting(run) = owned::start(permit, lent) else {
        return Err(Failure::new("a body that waits became one that does not").without_effect());
    };
    let deliver = || {
        while let (Some(follow), Ok(update)) = (host.updates, receiver.try_recv()) {
            if follow(update).is_err() {
                receiver.close();
                return Some(Failure::cancelled());
            }
        }
        None
    };
    let give_up = || {
        if let Some(gone) = deliver() {
            return Some(gone);
        }
        if host.cancelled.is_some_and(|cancelled| cancelled()) {
            return Some(Failure::cancelled());
        }
        (host.clock.monotonic() >= deadline).then(Failure::timed_out)
    };
    let result = catch_unwind(AssertUnwindSafe(|| block_on_until(run, give_up).unwrap_or_else(Err)));
    // What the body told before it ended is told on, also if it panicked.
    cancellation.cancel();
    deliver();
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// A permitted call, as a tool's body sees it. Holds the spent permit's content; there is no way back to another run, and
/// none to make one without a permit:
///
/// ```
/// use callgate_core::{call::Permit, request::Context};
/// use callgate_std::tool::{Host, Tool, ToolCall};
/// fn look<C: Context>(permit: &Permit<'_, C, &Tool>, call: &ToolCall<'_>) -> bool {
///     permit.args().is_empty() && call.args().is_empty()
/// }
/// ```
///
/// ```compile_fail
/// use callgate_core::{call::Permit, request::Context};
/// use callgate_std::tool::{Host, Tool, ToolCall};
/// fn look<C: Context>(permit: Permit<'_, C, &Tool>, host: Host<'_>) -> bool {
///     ToolCall::new(permit, host).args().is_empty()
/// }
/// ```
pub struct ToolCall<'r> {
    args: Args<'r>,
    caller: CallContext<'r>,
    definition: &'r Definition,
    host: Host<'r>,
    chunks: Chunks,
}

impl<'r> ToolCall<'r> {
    #[expect(clippy::needless_pass_by_value, reason = "a permit is spent by the call that it permits")]
    pub(crate) fn new<C: Context, T: Held>(permit: Permit<'r, C, T>, host: Host<'r>) -> Self {
        let tool = permit.tool().tool();
        Self::lent(permit.args(), permit.caller(), &tool.definition, tool.max_output, host)
    }

    /// The content of a permit that was spent already.
    #[inline(always)]
    pub(super) const fn lent(
        args: Args<'r>,
        caller: CallContext<'r>,
        definition: &'r Definition,
        max_output: usize,
        host: Host<'r>,
    ) -> Self {
        Self { args, caller, definition, host, chunks: Chunks::new(max_output) }
    }

    /// The arguments: they fit the tool's schema, and are clamped.
    #[must_use]
    pub const fn args(&self) -> Args<'r> {
        self.args
    }

    /// The arguments as a `T`. Nothing is coerced. A `&str` in `T` does not take a text with escapes; use `String` or `Cow`.
    ///
    /// # Errors
    /// A public failure with code `VALIDATION_ERROR` that names the field which `T` does not take. It happens where the
    /// schema admits more than the type.
    pub fn arguments<T: Deserialize<'r>>(&self) -> Result<T, Failure> {
        self.args.parse().map_err(|error| Failure::ill_typed(&error))
    }

    /// The arguments as a `T` that says itself what it is on the wire; see [`typed`]. A `&str` in `T` does not take a text
    /// with escapes; use `String` or `Cow`.
    ///
    /// # Errors
    /// A public failure with code `VALIDATION_ERROR` that names the field which `T` does not take. It happens where the
    /// tool's schema admits more than the type.
    pub fn read<T: Read<'r>>(&self) -> Result<T, Failure> {
        typed::parse(self.args).map_err(|error| Failure::ill_typed(&error))
    }

    /// Who asks.
    #[must_use]
    pub const fn caller(&self) -> &CallContext<'r> {
        &self.caller
    }

    /// The id of this call, in records and answers; the key for a tool that repeats what it does elsewhere (invariant X5).
    #[must_use]
    pub const fn request_id(&self) -> &'r str {
        self.caller.request_id
    }

    /// What the tool says of itself.
    #[must_use]
    pub fn spec(&self) -> &'r ToolSpec<'r> {
        self.definition.spec()
    }

    /// The clock of the gate.
    #[must_use]
    pub const fn clock(&self) -> &'r (dyn Clock + Sync) {
        self.host.clock
    }

    /// When the body is to be done, on the gate's clock: its start and the tool's timeout. A body that goes on is not
    /// interrupted here; the outcome says that it was late.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.host.started.saturating_add_nanos(self.spec().deadline_ms().saturating_mul(1_000_000))
    }

    /// Whether the caller is gone, so that nobody waits for what comes. Long work asks now and then.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.host.cancelled.is_some_and(|cancelled| cancelled())
    }

    /// The same as something to hand on.
    #[must_use]
    pub const fn cancelled(&self) -> Option<&'r (dyn Fn() -> bool + Sync)> {
        self.host.cancelled
    }

    /// Calls another tool through the gate, as the same caller with its scopes; see [`Self::call_with`].
    ///
    /// # Errors
    /// A failure when this host does not serve nested calls.
    pub fn call(&self, tool: &str, arguments: &[u8]) -> Result<NestedOutcome, Failure> {
        self.call_with(self.caller.scopes, tool, arguments)
    }

    /// Calls another tool through the gate: a call of its own, with its own run of every stage and its own record, which
    /// names this call as its parent (invariant G8). The caller is the same, with these scopes. What was approved, granted
    /// or signed for this call does not count for that one.
    ///
    /// # Errors
    /// A failure when this host does not serve nested calls, and when `scopes` holds one that this call does not have.
    /// A call that the gate refuses is an outcome, not a failure.
    pub fn call_with(&self, scopes: Scopes<'_>, tool: &str, arguments: &[u8]) -> Result<NestedOutcome, Failure> {
        let Some(gate) = self.host.nested else { return Err(nested::not_served()) };
        Ok(gate.call(nested::child(&self.caller, scopes)?, tool, arguments))
    }

    /// Tells how far the body is, to whoever follows the call; does nothing when nobody follows.
    pub fn progress(&self, progress: Progress) {
        if let Some(follow) = self.host.updates {
            let _ = follow(Update::Progress(progress));
        }
    }

    /// Hands a part of the result over, to whoever follows the call. Waits while they are behind.
    ///
    /// # Errors
    /// Nobody takes it any more, or all chunks together have more bytes of JSON than the result may have. Return it.
    pub fn chunk(&self, chunk: impl Into<Value>) -> Result<(), Failure> {
        let update = self.chunks.count(chunk.into())?;
        match self.host.updates {
            Some(follow) => follow(update).map_err(|Gone| Failure::cancelled()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ToolCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("tool", &self.spec().name)
            .field("request_id", &self.caller.request_id)
            .finish_non_exhaustive()
    }
}
