//! Gates on the executors of others, and what their tests need.

use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

use callgate_async::gate::{Gate, GateBuilder, Outcome};
use callgate_async::runtime::{Runtime, Smol, Tokio};
use callgate_async::seam::Immediate;
use callgate_core::code::{Code, Effect};
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_std::audit::MemoryAudit;
use callgate_std::cancellation::Cancellation;
use callgate_std::future::block_on;
use callgate_std::registry::{Registry, RegistryBuilder};
use callgate_std::tool::{Tool, ToolBuilder};
use serde_json::Value;

/// A timeout that passes while a test waits for it.
pub(crate) const SHORT: Duration = Duration::from_millis(20);
/// One that never does.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);
/// How long a shutdown waits that is over at once, if all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Says once, to everybody who waits for it, that something has happened.
#[derive(Clone, Default)]
pub(crate) struct Signal(Cancellation);

impl Signal {
    pub(crate) fn give(&self) {
        self.0.cancel();
    }

    pub(crate) fn is_given(&self) -> bool {
        self.0.is_cancelled()
    }

    pub(crate) async fn given(&self) {
        self.0.cancelled().await;
    }

    /// Blocks until it is given.
    pub(crate) fn wait(&self) {
        block_on(self.given());
    }
}

/// A future that is woken gives it.
impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.give();
    }
}

/// Gives its signal when it is dropped.
pub(crate) struct Dropped(pub(crate) Signal);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.give();
    }
}

pub(crate) struct World {
    pub(crate) gate: Gate,
    pub(crate) audit: MemoryAudit,
    pub(crate) runtime: Arc<dyn Runtime>,
}

/// A runtime behind a pointer.
struct Shared(Arc<dyn Runtime>);

impl Runtime for Shared {
    fn now(&self) -> callgate_core::time::Now {
        self.0.now()
    }

    fn sleep(&self, duration: Duration) -> callgate_async::runtime::BoxFuture<'static, ()> {
        self.0.sleep(duration)
    }

    fn spawn(&self, future: callgate_async::runtime::BoxFuture<'static, ()>) {
        self.0.spawn(future);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.0.spawn_blocking(work);
    }
}

pub(crate) fn tool(name: &str) -> ToolBuilder {
    Tool::builder(name).description("A tool under test").timeout(LONG)
}

pub(crate) fn world(runtime: &Arc<dyn Runtime>, tools: impl IntoIterator<Item = ToolBuilder>) -> World {
    world_with(runtime, tools, |builder, audit| builder.audit(Immediate(Arc::new(audit))))
}

pub(crate) fn world_with(
    runtime: &Arc<dyn Runtime>,
    tools: impl IntoIterator<Item = ToolBuilder>,
    change: impl FnOnce(GateBuilder, MemoryAudit) -> GateBuilder,
) -> World {
    let registry = tools.into_iter().fold(Registry::builder(), RegistryBuilder::add).build().unwrap();
    let audit = MemoryAudit::new();
    let builder = Gate::builder(registry, Shared(Arc::clone(runtime))).unlimited();
    let gate = change(builder, audit.clone()).build().unwrap();
    World { gate, audit, runtime: Arc::clone(runtime) }
}

impl World {
    /// A call, not polled yet.
    pub(crate) fn call(&self, tool: &str, request_id: &str) -> impl Future<Output = Outcome> + Send + use<> {
        self.gate.call(&CallContext::cli(request_id), Request { tool, arguments: b"", token: None })
    }

    /// A call that goes on by itself.
    pub(crate) fn spawn(&self, call: impl Future<Output = Outcome> + Send + 'static) -> Running {
        let (sender, receiver) = async_channel::bounded(1);
        self.runtime.spawn(Box::pin(async move {
            drop(sender.send(call.await).await);
        }));
        Running(receiver)
    }

    /// The ends and effects that were recorded of a call, the intent's left out.
    pub(crate) fn ends(&self, request_id: &str) -> Vec<(String, String)> {
        let lines = self.audit.lines();
        let records = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_call = records.filter(|record| record["request_id"] == request_id && record["kind"] != "intent");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        of_call.map(|record| (text(&record["end"]), text(&record["effect"]))).collect()
    }
}

pub(crate) fn end(end: &str, effect: &str) -> Vec<(String, String)> {
    vec![(end.to_owned(), effect.to_owned())]
}

/// A call that was spawned.
pub(crate) struct Running(async_channel::Receiver<Outcome>);

impl Running {
    pub(crate) async fn over(self) -> Outcome {
        self.0.recv().await.unwrap()
    }
}

/// What an outcome says.
pub(crate) fn said(outcome: &Outcome) -> (Option<Code>, Effect) {
    (outcome.code(), outcome.effect())
}

/// Runs a test on tokio, on one thread and on many, and on smol.
pub(crate) fn on_each<F: Future<Output = ()>>(test: impl Fn(Arc<dyn Runtime>) -> F) {
    let many = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    many.block_on(test(Arc::new(Tokio::new(many.handle().clone()))));
    let one = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    one.block_on(test(Arc::new(Tokio::new(one.handle().clone()))));
    smol::block_on(test(Arc::new(Smol::new())));
}
