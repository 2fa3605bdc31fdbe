//! A gate over the tools of a test, with a clock and a log that the test looks at.

use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_std::audit::MemoryAudit;
use callgate_std::cancellation::Cancellation;
use callgate_std::clock::ManualClock;
use callgate_std::future::block_on;
use callgate_std::gate::{Gate, GateBuilder, Outcome};
use callgate_std::registry::{Registry, RegistryBuilder};
use callgate_std::tool::{Tool, ToolBuilder};
use serde_json::Value;

pub(crate) struct World {
    pub(crate) gate: Gate,
    pub(crate) audit: MemoryAudit,
}

/// The parts of a line that say which record it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Line {
    pub(crate) request_id: String,
    pub(crate) kind: String,
    pub(crate) end: String,
    pub(crate) effect: String,
}

pub(crate) fn line(request_id: &str, kind: &str, end: &str, effect: &str) -> Line {
    let [request_id, kind, end, effect] = [request_id, kind, end, effect].map(str::to_owned);
    Line { request_id, kind, end, effect }
}

/// A gate over these tools, without a budget, whose clock stands.
pub(crate) fn world(tools: impl IntoIterator<Item = ToolBuilder>) -> World {
    world_with(tools, |builder| builder)
}

pub(crate) fn world_with(
    tools: impl IntoIterator<Item = ToolBuilder>,
    change: impl FnOnce(GateBuilder) -> GateBuilder,
) -> World {
    let audit = MemoryAudit::new();
    let registry = tools.into_iter().fold(Registry::builder(), RegistryBuilder::add);
    let builder = Gate::builder(registry.build().expect("tools"))
        .audit(std::sync::Arc::new(audit.clone()))
        .clock(ManualClock::new().shared())
        .digest_key([7; 32])
        .unlimited();
    World { gate: change(builder).build().expect("a gate"), audit }
}

pub(crate) fn tool(name: &str) -> ToolBuilder {
    Tool::builder(name).description("A tool under test")
}

pub(crate) fn request(tool: &str) -> Request<'_> {
    Request { tool, arguments: b"", token: None }
}

impl World {
    pub(crate) fn call<'a>(&'a self, tool: &'a str, request_id: &'a str) -> Outcome<'a> {
        self.gate.call(&CallContext::cli(request_id), request(tool))
    }

    /// The log.
    pub(crate) fn records(&self) -> Vec<Value> {
        self.audit.lines().iter().map(|line| serde_json::from_str(line).expect("a record is JSON")).collect()
    }

    /// The log in short.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let text = |record: &Value, name: &str| record[name].as_str().unwrap_or("-").to_owned();
        let line = |record: &Value| Line {
            request_id: text(record, "request_id"),
            kind: text(record, "kind"),
            end: text(record, "end"),
            effect: text(record, "effect"),
        };
        self.records().iter().map(line).collect()
    }
}

pub(crate) fn json_of(outcome: &Outcome<'_>) -> Value {
    serde_json::from_str(&outcome.to_json().expect("memory takes it")).expect("an outcome is JSON")
}

/// Says once, to everybody who waits for it, that something has happened.
#[derive(Clone, Default)]
pub(crate) struct Signal(Cancellation);

impl Signal {
    pub(crate) fn give(&self) {
        self.0.cancel();
    }

    pub(crate) async fn given(&self) {
        self.0.cancelled().await;
    }

    pub(crate) fn wait(&self) {
        block_on(self.given());
    }
}

/// Waits for one turn of whoever polls.
pub(crate) async fn one_turn() {
    let mut waited = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// Gives its signal when it is dropped.
pub(crate) struct OnDrop(pub(crate) Signal);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.give();
    }
}
