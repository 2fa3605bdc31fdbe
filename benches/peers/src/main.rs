//! What the same call costs elsewhere, beside the bare work and the gate in the same run: `callgate-peers [--quick]` prints rows of
//! a table. Every peer gets the same arguments as text and gives the text of the same result.
//!
//! None of them does what the gate does: no policy, no limit, no confirmation, no record. The numbers say what merely dispatching
//! a call costs where it is done by a well-known library, so that those of the gate can be judged.

use std::borrow::Cow;
use std::hint::black_box;
use std::time::Duration;

use callgate_benches::call::{ARGUMENTS, bare, call, gate, name};
use callgate_async::runtime::Tokio;
use callgate_benches::ratio::{Effort, compare, row};
use callgate_benches::waiting::{self, ready};
use jsonschema::Validator;
use rig_core::tool::ToolSet;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolRequestParams, CallToolResponse, NumberOrString};
use rmcp::service::{RequestContext, RoleServer, serve_directly};
use rmcp::{Json, ServerHandler, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::{Service, ServiceBuilder};

#[derive(Deserialize, schemars::JsonSchema)]
struct Terms {
    path: String,
    max: i64,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Found {
    hits: i64,
}

fn body(terms: &Terms) -> Found {
    Found { hits: terms.max + terms.path.len() as i64 }
}

fn text() -> &'static str {
    std::str::from_utf8(ARGUMENTS).expect("the arguments are text")
}

/// rmcp: its tool router, from the parsed request to the text of the structured result.
struct Server {
    router: ToolRouter<Self>,
}

#[tool_router]
impl Server {
    #[tool(description = "Finds")]
    fn find(&self, Parameters(terms): Parameters<Terms>) -> Json<Found> {
        Json(body(&terms))
    }
}

#[tool_handler(router = self.router)]
impl ServerHandler for Server {}

fn rmcp_call(server: &Server, context: &RequestContext<RoleServer>) {
    let mut request = CallToolRequestParams::default();
    request.name = Cow::Borrowed("find");
    request.arguments = serde_json::from_str(black_box(text())).expect("an object");
    let context = ToolCallContext::new(server, request, context.clone());
    let answer = ready(server.router.call(context)).expect("an answer");
    let CallToolResponse::Complete(result) = answer else { panic!("the tool is done") };
    black_box(serde_json::to_string(&result.structured_content).expect("it can be written"));
}

/// rig: its tool set.
struct Find;

impl rig_core::tool::Tool for Find {
    const NAME: &'static str = "find";
    type Error = std::convert::Infallible;
    type Args = Terms;
    type Output = Found;

    fn description(&self) -> String {
        "Finds".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"path": {"type": "string"}, "max": {"type": "integer"}}})
    }

    async fn call(&self, terms: Terms) -> Result<Found, Self::Error> {
        Ok(body(&terms))
    }
}

fn rig_call(tools: &ToolSet) {
    black_box(ready(tools.call("find", black_box(text()).to_owned())).expect("an answer"));
}

/// The bare work, behind validation of a value by the `jsonschema` crate.
fn validated(validator: &Validator) {
    let value: Value = serde_json::from_slice(black_box(ARGUMENTS)).expect("good arguments");
    assert!(validator.is_valid(&value));
    let terms: Terms = serde_json::from_value(value).expect("good arguments");
    black_box(serde_json::to_string(&body(&terms)).expect("it can be written"));
}

fn main() {
    let effort = if std::env::args().any(|argument| argument == "--quick") { Effort::QUICK } else { Effort::FULL };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _entered = runtime.enter();
    let beside = |what: &str, subject: &mut dyn FnMut()| row(what, compare(effort, bare, subject), "", "the bare work");

    let gate = gate(10, false);
    let tool = name(0);
    beside("callgate, every stage on", &mut || call(&gate, &tool, ARGUMENTS));
    let waiting = waiting::gate(Tokio::current().expect("a runtime"));
    beside("callgate on tokio, every stage on", &mut || waiting::call(&waiting));

    let tools = ToolSet::from_tools(vec![Find]);
    beside("rig-core 0.40, tool set", &mut || rig_call(&tools));

    let running =
        serve_directly(Server { router: Server::tool_router() }, (tokio::io::empty(), tokio::io::sink()), None);
    let context = RequestContext::new(NumberOrString::Number(1), running.peer().clone());
    let server = Server { router: Server::tool_router() };
    beside("rmcp 3.11, tool router", &mut || rmcp_call(&server, &context));

    // Six layers as a service would have them in front of a handler. None of them looks at the call.
    let mut stack = ServiceBuilder::new()
        .load_shed()
        .concurrency_limit(1_024)
        .rate_limit(u64::MAX, Duration::from_secs(1))
        .timeout(Duration::from_secs(30))
        .map_response(|text: String| text)
        .map_request(|bytes: &'static [u8]| bytes)
        .service_fn(|bytes: &'static [u8]| async move {
            let terms: Terms = serde_json::from_slice(bytes)?;
            serde_json::to_string(&body(&terms))
        });
    beside("tower 0.5, six layers", &mut || {
        let text = ready(async {
            std::future::poll_fn(|context| stack.poll_ready(context)).await?;
            stack.call(black_box(ARGUMENTS)).await
        });
        black_box(text.expect("an answer"));
    });

    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "max": {"type": "integer"}},
        "required": ["path", "max"],
        "additionalProperties": false,
    });
    let validator = jsonschema::validator_for(&schema).expect("a good schema");
    beside("validation by jsonschema 0.61 alone", &mut || validated(&validator));
}
