//! A gate on smol, with a log that the test looks at.

use std::sync::Arc;

use callgate_async::gate::{Gate, GateBuilder};
use callgate_async::runtime::Smol;
use callgate_async::seam::Immediate;
use callgate_core::request::Request;
use callgate_std::audit::MemoryAudit;
use callgate_std::registry::{Registry, RegistryBuilder};
use callgate_std::tool::{Tool, ToolBuilder};
use serde_json::Value;

pub(crate) struct World {
    pub(crate) gate: Gate,
    audit: Arc<MemoryAudit>,
}

pub(crate) fn world(tools: impl IntoIterator<Item = ToolBuilder>) -> World {
    world_with(tools, |builder| builder)
}

pub(crate) fn world_with(
    tools: impl IntoIterator<Item = ToolBuilder>,
    change: impl FnOnce(GateBuilder) -> GateBuilder,
) -> World {
    let audit = Arc::new(MemoryAudit::new());
    let registry = tools.into_iter().fold(Registry::builder(), RegistryBuilder::add).build().unwrap();
    let builder = Gate::builder(registry, Smol::new()).audit(Immediate(Arc::clone(&audit))).unlimited();
    World { gate: change(builder).build().unwrap(), audit }
}

pub(crate) fn tool(name: &str) -> ToolBuilder {
    Tool::builder(name).description("A tool under test")
}

pub(crate) fn request(tool: &str) -> Request<'_> {
    Request { tool, arguments: b"", token: None }
}

impl World {
    /// The log in short: whose record, which, how it ended and what it did.
    pub(crate) fn lines(&self) -> Vec<String> {
        let short = |line: &String| {
            let record: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| record[name].as_str().unwrap().to_owned();
            format!("{} {} {} {}", text("request_id"), text("kind"), text("end"), text("effect"))
        };
        self.audit.lines().iter().map(short).collect()
    }

    /// The records that name this operation: whose, and which.
    pub(crate) fn of_operation(&self, operation: &str) -> Vec<String> {
        let records = self.audit.lines().into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let named = records.filter(|record| record["operation"] == operation);
        named.map(|record| format!("{} {}", record["request_id"], record["kind"]).replace('"', "")).collect()
    }

    /// The same, in the order of their texts: for calls that run at the same time.
    pub(crate) fn sorted_lines(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.sort_unstable();
        lines
    }
}
