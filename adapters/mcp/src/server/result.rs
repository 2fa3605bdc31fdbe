//! Outcomes as clients get them.

use callgate_core::call::End;
use callgate_core::code::{Code, Effect};
use callgate_std::output::Reply;
use callgate_std::task::TaskOutcome;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject};
use serde_json::Value;

use super::listing::output_schema;

/// The member of `_meta` in which a result says what the gate knows of the call: the `meta` of the gate's own outcome.
pub const OUTCOME_META: &str = "callgate/outcome";

/// The kind of a reply whose data is a whole result of the protocol, content blocks and all. See [`reply`].
pub const RESULT_KIND: &str = "mcp.result";

/// A reply that a client gets as this result, word for word: for tools whose results hold more than JSON, as images do. A result
/// that says `isError` is a success to the gate; a tool that failed returns a failure instead.
///
/// # Errors
/// The result can't be written as JSON.
pub fn reply(result: &CallToolResult) -> Result<Reply, serde_json::Error> {
    Ok(Reply::new(serde_json::to_value(result)?).with_meta("type", RESULT_KIND))
}

/// What a client gets of an outcome.
///
/// # Errors
/// There is no such tool, or none for this caller: a fault of the protocol, not of a call.
pub(super) fn result(outcome: &TaskOutcome) -> Result<CallToolResult, ErrorData> {
    let mut result = match (outcome.code(), outcome.end()) {
        (Some(Code::ToolNotFound | Code::CapabilityDenied), _) => {
            let text = outcome.error().map(|error| error.to_string()).unwrap_or_default();
            return Err(ErrorData::invalid_params(text, meta(outcome).map(Value::Object)));
        }
        (Some(code), _) => failure(outcome, code),
        (None, End::Asked { .. }) => question(outcome),
        (None, _) => success(outcome),
    };
    if let Some(meta) = meta(outcome) {
        let mut all = result.meta.take().unwrap_or_default();
        all.0.insert(OUTCOME_META.to_owned(), Value::Object(meta));
        result.meta = Some(all);
    }
    Ok(result)
}

/// The meta of the outcome.
fn meta(outcome: &TaskOutcome) -> Option<JsonObject> {
    let mut text = String::new();
    outcome.write_meta(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// A failure that a model can act on: what was wrong, under the code that programs go by, and whether anything has happened.
fn failure(outcome: &TaskOutcome, code: Code) -> CallToolResult {
    let error = outcome.error().map(|error| error.to_string()).unwrap_or_default();
    let effect = match outcome.effect() {
        Effect::None => "Nothing was changed.",
        Effect::Done => "The tool has run; do not call it again for the same purpose.",
        Effect::Unknown => "Whether the tool took effect is not known; find out before you call it again.",
    };
    CallToolResult::error(vec![ContentBlock::text(format!("{code}: {error}. {effect}"))])
}

/// A result of a tool.
fn success(outcome: &TaskOutcome) -> CallToolResult {
    let Some(reply) = outcome.output() else {
        // Accepted: it goes on in the background.
        return data_of(outcome, false);
    };
    if reply.kind() == RESULT_KIND
        && let Ok(result) = serde_json::from_value::<CallToolResult>(reply.data().clone())
    {
        return result;
    }
    let data = reply.data();
    let mut content = Vec::new();
    if let Some(message) = reply.message() {
        content.push(ContentBlock::text(message));
    }
    match data {
        Value::Null if !content.is_empty() => {}
        Value::String(text) => content.push(ContentBlock::text(text.as_str())),
        data => content.push(ContentBlock::text(data.to_string())),
    }
    let mut result = CallToolResult::success(content);
    let declared = outcome.tool().is_some_and(|tool| output_schema(tool).is_some());
    if (declared && !reply.is_cut()) || data.is_object() {
        result.structured_content = Some(data.clone());
    }
    result
}

/// A question that the client can't put to its user: the token contract. Whoever repeats the call with the token confirms it.
///
/// Nothing has run. Where the tool promises an output schema, a result without such content is one only if it says `isError`.
fn question(outcome: &TaskOutcome) -> CallToolResult {
    let declared = outcome.tool().is_some_and(|tool| output_schema(tool).is_some());
    let mut result = data_of(outcome, declared);
    let text = match outcome.end() {
        End::Asked { by: callgate_core::confirm::By::Approver, .. } => {
            "CONFIRMATION_REQUIRED: nothing has run. An approver has to agree; then call the tool again with the confirm_token."
        }
        _ => {
            "CONFIRMATION_REQUIRED: nothing has run. If the user agrees to this very action, call the tool again with the confirm_token."
        }
    };
    result.content.insert(0, ContentBlock::text(text));
    result
}

/// The data of an outcome that is no tool's.
fn data_of(outcome: &TaskOutcome, is_error: bool) -> CallToolResult {
    let mut text = String::new();
    let data: Value = match outcome.write_data(&mut text) {
        Ok(()) => serde_json::from_str(&text).unwrap_or_default(),
        Err(_) => Value::Null,
    };
    let content = vec![ContentBlock::text(data.to_string())];
    if is_error {
        return CallToolResult::error(content);
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = data.is_object().then_some(data);
    result
}

/// A failure that the adapter words itself, with what the gate knows.
pub(super) fn refused(outcome: &TaskOutcome, text: &str) -> Result<CallToolResult, ErrorData> {
    let mut result = result(outcome)?;
    result.content = vec![ContentBlock::text(text)];
    Ok(result)
}
