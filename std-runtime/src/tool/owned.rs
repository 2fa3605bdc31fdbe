//! A permitted call that owns what it holds, for bodies that wait, and for bodies that run elsewhere than their call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use callgate_core::args::{Args, SharedArgs};
use callgate_core::call::Permit;
use callgate_core::context::{CallContext, Scopes};
use callgate_core::request::Context;
use callgate_core::time::Instant;
use callgate_core::tool::ToolSpec;
use callgate_core::typed::{self, Read};
use serde::Deserialize;
use serde_json::Value;

use super::body::{BlockingBody, Body, Held, Host, ToolCall};
use super::definition::Definition;
use super::nested::{self, NestedCalls, NestedOutcome};
use crate::cancellation::Cancellation;
use crate::captured::CapturedContext;
use crate::clock::SharedClock;
use crate::failure::Failure;
use crate::future::{BoxFuture, block_on};
use crate::output::Reply;
use crate::update::{Chunks, Gone, Progress, Update, Updates};

/// A gate, as a running tool reaches it without waiting on its thread.
pub trait AsyncNestedCalls: Send + Sync {
    /// Takes a call through the whole gate; see [`NestedCalls::call`]. The future owns what it needs.
    fn call(
        self: Arc<Self>,
        caller: CallContext<'_>,
        tool: &str,
        arguments: &[u8],
    ) -> BoxFuture<'static, NestedOutcome>;
}

/// What a host lends to a run that owns what it needs.
#[derive(Clone)]
pub struct OwnedHost {
    lent: Lent,
    kept: Option<(CapturedContext, Arc<str>)>,
}

/// What a run holds of its host.
#[derive(Clone)]
struct Lent {
    clock: SharedClock,
    started: Instant,
    cancellation: Cancellation,
    nested: Option<Arc<dyn AsyncNestedCalls>>,
    updates: Updates,
}

impl OwnedHost {
    /// A host with this clock, on which the run started at `started`.
    #[must_use]
    pub fn new(clock: SharedClock, started: Instant) -> Self {
        let cancellation = Cancellation::new();
        Self { lent: Lent { clock, started, cancellation, nested: None, updates: Updates::NONE }, kept: None }
    }

    /// The same host, which says through this that the caller is gone.
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: Cancellation) -> Self {
        self.lent.cancellation = cancellation;
        self
    }

    /// The same host, through whose gate a body may call other tools.
    #[must_use]
    pub fn with_nested(mut self, nested: Arc<dyn AsyncNestedCalls>) -> Self {
        self.lent.nested = Some(nested);
        self
    }

    /// The same host, which shares the caller and the text of the arguments that the call holds already.
    #[must_use]
    pub(crate) fn sharing(mut self, caller: CapturedContext, text: Arc<str>) -> Self {
        self.kept = Some((caller, text));
        self
    }

    /// The same host, which takes updates through this channel. A body waits while it is full.
    #[must_use]
    pub fn with_updates(mut self, updates: async_channel::Sender<Update>) -> Self {
        self.lent.updates = Updates::to(updates);
        self
    }
}

impl fmt::Debug for OwnedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedHost")
            .field("started", &self.lent.started)
            .field("cancellation", &self.lent.cancellation)
            .field("nested", &self.lent.nested.is_some())
            .field("updates", &self.lent.updates)
            .finish_non_exhaustive()
    }
}

/// A permitted call, as a body that waits sees it: the same as a [`ToolCall`], with texts of its own. Cheap to clone.
///
/// It holds the content of a spent permit; there is no way back to another run.
#[derive(Clone)]
pub struct OwnedCall(Arc<Content>);

struct Content {
    args: SharedArgs,
    caller: CapturedContext,
    definition: Arc<Definition>,
    host: Lent,
    chunks: Chunks,
}

/// The run of one permitted call, not started yet.
#[must_use = "a run that is dropped did not happen"]
#[expect(clippy::exhaustive_enums, reason = "a host has to run both")]
pub enum Run {
    /// A body that waits: poll it.
    Waiting(WaitingRun),
    /// A body that blocks its thread: run it where that may be.
    Blocking(BlockingRun),
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting(_) => "Waiting",
            Self::Blocking(_) => "Blocking",
        })
    }
}

/// Prepares the run of the tool that `permit` was minted for. The permit is spent.
pub fn start<C: Context, T: Held>(permit: Permit<'_, C, T>, mut host: OwnedHost) -> Run {
    let tool = permit.tool().tool();
    let (body, definition, max_output) = (tool.body.clone(), Arc::clone(&tool.definition), tool.max_output);
    let (args, caller) = match host.kept.take() {
        Some((caller, text)) => (SharedArgs::sharing(permit.args(), &text), caller),
        None => (permit.args().into(), CapturedContext::from(&permit.caller())),
    };
    drop(permit);
    let call =
        OwnedCall(Arc::new(Content { args, caller, definition, host: host.lent, chunks: Chunks::new(max_output) }));
    match body {
        Body::Waiting(body) => Run::Waiting(WaitingRun { call: call.clone(), state: State::New(body, call) }),
        Body::Blocking(body) => Run::Blocking(BlockingRun { call, body }),
    }
}

/// The run of a body that waits. The body is called when it is polled for the first time; dropping it stops the body where it
/// waits.
pub struct WaitingRun {
    call: OwnedCall,
    state: State,
}

enum State {
    New(super::body::WaitingBody, OwnedCall),
    Running(BoxFuture<'static, Result<Reply, Failure>>),
    Over,
}

impl Future for WaitingRun {
    type Output = Result<Reply, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let State::New(..) = &this.state
            && let State::New(body, call) = std::mem::replace(&mut this.state, State::Over)
        {
            this.state = State::Running(body(call));
        }
        let State::Running(future) = &mut this.state else { return Poll::Pending };
        let Poll::Ready(result) = future.as_mut().poll(cx) else { return Poll::Pending };
        this.state = State::Over;
        Poll::Ready(result.map(|reply| this.call.bounded(reply)))
    }
}

impl fmt::Debug for WaitingRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingRun").field("call", &self.call).finish_non_exhaustive()
    }
}

/// The run of a body that blocks.
pub struct BlockingRun {
    call: OwnedCall,
    body: BlockingBody,
}

impl BlockingRun {
    /// Runs the body on this thread. A panic of the body goes through.
    ///
    /// # Errors
    /// The body's failure.
    pub fn run(self) -> Result<Reply, Failure> {
        let Self { call, body } = self;
        let Content { args, caller, definition, host, .. } = &*call.0;
        let cancelled = || host.cancellation.is_cancelled();
        let update = |update: Update| block_on(host.updates.send(update));
        let mut lent = Host::new(&*host.clock, host.started).with_cancelled(&cancelled).with_updates(&update);
        let nested = host.nested.as_ref().map(OnThisThread);
        if let Some(nested) = &nested {
            lent = lent.with_nested(nested);
        }
        let reply = body(&ToolCall::lent(args.borrow(), caller.borrow(), definition, call.0.chunks.cap(), lent))?;
        Ok(call.bounded(reply))
    }
}

impl fmt::Debug for BlockingRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingRun").field("call", &self.call).finish_non_exhaustive()
    }
}

/// Nested calls of a body that blocks its thread anyway.
struct OnThisThread<'a>(&'a Arc<dyn AsyncNestedCalls>);

impl NestedCalls for OnThisThread<'_> {
    fn call(&self, caller: CallContext<'_>, tool: &str, arguments: &[u8]) -> NestedOutcome {
        block_on(Arc::clone(self.0).call(caller, tool, arguments))
    }
}

impl OwnedCall {
    /// The arguments: they fit the tool's schema, and are clamped.
    #[must_use]
    pub fn args(&self) -> Args<'_> {
        self.0.args.borrow()
    }

    /// The arguments as a `T`; see [`ToolCall::arguments`].
    ///
    /// # Errors
    /// A public failure with code `VALIDATION_ERROR` that names the field which `T` does not take.
    pub fn arguments<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Failure> {
        self.args().parse().map_err(|error| Failure::ill_typed(&error))
    }

    /// The arguments as a `T` that says itself what it is on the wire; see [`ToolCall::read`].
    ///
    /// # Errors
    /// A public failure with code `VALIDATION_ERROR` that names the field which `T` does not take.
    pub fn read<'a, T: Read<'a>>(&'a self) -> Result<T, Failure> {
        typed::parse(self.args()).map_err(|error| Failure::ill_typed(&error))
    }

    /// Who asks.
    #[must_use]
    pub fn caller(&self) -> CallContext<'_> {
        self.0.caller.borrow()
    }

    /// The id of this call, in records and answers; the key for a tool that repeats what it does elsewhere (invariant X5).
    #[must_use]
    pub fn request_id(&self) -> &str {
        self.caller().request_id
    }

    /// What the tool says of itself.
    #[must_use]
    pub fn spec(&self) -> &ToolSpec<'_> {
        self.0.definition.spec()
    }

    /// The clock of the gate.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.0.host.clock
    }

    /// When the body is to be done, on the gate's clock. A body that waits is stopped then.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.0.host.started.saturating_add_nanos(self.spec().deadline_ms().saturating_mul(1_000_000))
    }

    /// Whether the caller is gone, or the deadline has stopped the call: nobody waits for what comes.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.host.cancellation.is_cancelled()
    }

    /// The same as something to hand on and to wait for.
    #[must_use]
    pub fn cancellation(&self) -> &Cancellation {
        &self.0.host.cancellation
    }

    /// Tells how far the body is, to whoever follows the call. Waits while they are behind; does nothing when nobody follows.
    pub async fn progress(&self, progress: Progress) {
        let _ = self.0.host.updates.send(Update::Progress(progress)).await;
    }

    /// Hands a part of the result over, to whoever follows the call. Waits while they are behind.
    ///
    /// # Errors
    /// Nobody takes it any more, or all chunks together have more bytes of JSON than the result may have. Return it.
    pub async fn chunk(&self, chunk: impl Into<Value>) -> Result<(), Failure> {
        let update = self.0.chunks.count(chunk.into())?;
        self.0.host.updates.send(update).await.map_err(|Gone| Failure::cancelled())
    }

    /// Calls another tool through the gate, as the same caller with its scopes; see [`Self::call_with`].
    ///
    /// # Errors
    /// A failure when this host does not serve nested calls.
    pub async fn call(&self, tool: &str, arguments: &[u8]) -> Result<NestedOutcome, Failure> {
        self.call_with(self.caller().scopes, tool, arguments).await
    }

    /// Calls another tool through the gate; see [`ToolCall::call_with`].
    ///
    /// # Errors
    /// A failure when this host does not serve nested calls, and when `scopes` holds one that this call does not have.
    pub async fn call_with(&self, scopes: Scopes<'_>, tool: &str, arguments: &[u8]) -> Result<NestedOutcome, Failure> {
        let Some(gate) = &self.0.host.nested else { return Err(nested::not_served()) };
        let call = Arc::clone(gate).call(nested::child(&self.caller(), scopes)?, tool, arguments);
        Ok(call.await)
    }

    fn bounded(&self, mut reply: Reply) -> Reply {
        reply.bound(self.0.chunks.cap(), self.spec().output_schema.is_none());
        reply
    }
}

impl fmt::Debug for OwnedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedCall")
            .field("tool", &self.spec().name)
            .field("request_id", &self.request_id())
            .finish_non_exhaustive()
    }
}
