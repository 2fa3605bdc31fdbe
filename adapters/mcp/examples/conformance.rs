//! The server that the official conformance suite looks at: the tools that it asks for, each behind the whole gate.
//!
//! `cargo run -p callgate-mcp --example conformance [ADDRESS]` serves `http://ADDRESS/mcp`, which it prints, to whoever comes, without
//! tokens: it is for tests alone. `ci/mcp` runs the suite at it.

use std::error::Error;
use std::future::pending;
use std::io::{self, Write as _};

use callgate_async::gate::Gate;
use callgate_async::runtime::Tokio;
use callgate_core::tool::ConfirmBy;
use callgate_mcp::auth::Authenticator;
use callgate_mcp::http::{Endpoint, Limits, serve};
use callgate_mcp::server::{Caller, McpServer, reply};
use callgate_std::failure::Failure;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::{Tool, ToolBuilder};
use callgate_std::update::Progress;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::json;
use tokio::net::TcpListener;

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";
/// No sound at all.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8642".to_owned());
    let gate = Gate::builder(registry()?, Tokio::current()?).unlimited().build()?;
    let anyone = Caller::new("mcp").with_principal("conformance").with_scopes(["*"]);
    let server = McpServer::new(gate, [7; 32]).with_instructions("The tools of the conformance suite.");
    let endpoint = Endpoint::new(server, Authenticator::new().with_anyone(anyone));
    let listener = TcpListener::bind(&address).await?;
    writeln!(io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    serve(endpoint, listener, Limits::default(), pending()).await;
    Ok(())
}

fn registry() -> Result<Registry, Box<dyn Error>> {
    let content = |name: &str, blocks: Vec<ContentBlock>| {
        let result = CallToolResult::success(blocks);
        tool(name).handler(move |_| reply(&result).map_err(Failure::from))
    };
    let resource = |uri: &str, kind: &str, text: &str| {
        ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(kind))
    };
    let builder = Registry::builder()
        .add(tool("test_simple_text").handler(|_| Ok(Reply::new("This is a simple text response for testing."))))
        .add(content("test_image_content", vec![ContentBlock::image(PNG, "image/png")]))
        .add(content("test_audio_content", vec![ContentBlock::audio(WAV, "audio/wav")]))
        .add(content(
            "test_embedded_resource",
            vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
        ))
        .add(content(
            "test_multiple_content_types",
            vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PNG, "image/png"),
                resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
            ],
        ))
        .add(
            tool("test_error_handling")
                .handler(|_| Err(Failure::new("This tool intentionally returns an error for testing").public())),
        )
        .add(tool("test_tool_with_progress").async_handler(|call| async move {
            for percent in [0, 50, 100] {
                call.progress(Progress::percent(percent)).await;
            }
            Ok(Reply::new("Progress was reported."))
        }))
        .add(
            tool("test_custom_headers")
                .json_schema(json!({
                    "type": "object",
                    "properties": {
                        "region": {"type": "string", "maxLength": 100, "x-mcp-header": "Region"},
                        "count": {"type": "integer", "minimum": -1000, "maximum": 1000, "x-mcp-header": "Count"}
                    },
                    "additionalProperties": false
                }))
                .handler(|_| Ok(Reply::new("The headers agree."))),
        );
    // What the suite asks of these is a question that is put to the user; the gate has one, whether to run the tool.
    let asking =
        ["elicitation", "request_state", "tampered_state"].map(|name| format!("test_input_required_result_{name}"));
    let builder = asking.into_iter().fold(builder, |builder, name| {
        let asking = tool(&name).mutating().confirm(ConfirmBy::Caller);
        builder.add(asking.handler(|_| Ok(Reply::new("state-ok"))))
    });
    Ok(builder.build()?)
}

fn tool(name: &str) -> ToolBuilder {
    Tool::builder(name).description("A tool of the conformance suite.")
}
