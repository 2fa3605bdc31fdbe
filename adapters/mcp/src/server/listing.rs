//! Tools as clients are told of them.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use callgate_core::name::check_tool_name;
use callgate_std::tool::Tool;
use rmcp::model::{ErrorData, JsonObject, ListToolsResult, Tool as McpTool, ToolAnnotations};
use serde_json::{Value, json};

use crate::upstream::declared_output_schema;

/// One page of `tools`, by name: deterministic, and whoever goes on from a page misses nothing that was there all the time, even
/// when tools came or went in between.
pub(super) fn page(mut tools: Vec<Arc<Tool>>, cursor: Option<&str>, size: usize) -> Result<ListToolsResult, ErrorData> {
    tools.sort_by(|a, b| a.name().cmp(b.name()));
    let from = match cursor {
        None => 0,
        Some(cursor) => {
            let last = read_cursor(cursor).ok_or_else(|| ErrorData::invalid_params("unknown cursor", None))?;
            tools.partition_point(|tool| tool.name() <= last.as_str())
        }
    };
    let rest = tools.get(from..).unwrap_or_default();
    let page = rest.get(..size.min(rest.len())).unwrap_or_default();
    let mut result = ListToolsResult::with_all_items(page.iter().map(|tool| told(tool)).collect());
    if page.len() < rest.len() {
        result.next_cursor = page.last().map(|tool| URL_SAFE_NO_PAD.encode(tool.name()));
    }
    Ok(result)
}

/// The name that a cursor stands for.
fn read_cursor(cursor: &str) -> Option<String> {
    let name = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    check_tool_name(&name).ok()?;
    Some(name)
}

/// What a client is told of one tool. Scopes, limits and confirmations are the gate's own business; the annotations are what the
/// gate itself goes by, so they are no mere hints here.
pub(super) fn told(tool: &Tool) -> McpTool {
    let spec = tool.spec();
    let mut annotations = ToolAnnotations::new().read_only(!spec.mutating);
    if spec.mutating {
        annotations = annotations.destructive(spec.dangerous).idempotent(spec.idempotent);
    }
    let mut told = McpTool::new_with_raw(
        spec.name.to_owned(),
        Some(Cow::Owned(tool.advertised_description().to_owned())),
        schema(tool.advertised_schema()),
    )
    .with_annotations(annotations);
    if let Some(output) = output_schema(tool) {
        let output = schema(output);
        // Of a tool whose data is a whole result, what its structured content fits.
        let output = declared_output_schema(&output).cloned().unwrap_or(output);
        told = told.with_raw_output_schema(Arc::new(output));
    }
    told
}

/// The schema that a result's structured content fits. A tool that goes on in the background answers something else first.
pub(super) fn output_schema(tool: &Tool) -> Option<&str> {
    let spec = tool.spec();
    spec.output_schema.filter(|_| spec.background_ms.is_none())
}

/// A schema that the gate checked when the tool was registered.
fn schema(text: &str) -> JsonObject {
    match serde_json::from_str(text) {
        Ok(Value::Object(schema)) => schema,
        // A schema may be `true`.
        _ => json!({"type": "object"}).as_object().cloned().unwrap_or_default(),
    }
}
