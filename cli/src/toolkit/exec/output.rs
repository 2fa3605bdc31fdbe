//! From what a program wrote to what a caller gets.

use callgate_core::json::{self, KeySlot, Limits};
use serde_json::{Map, Number, Value, json};

use super::process::{Finished, failure, with_stderr};
use crate::config::OutputKind;
use crate::toolkit::error::{ToolError, ToolResult};

/// The answer of a run that came to its own end.
pub(super) fn answer(kind: OutputKind, finished: Finished) -> ToolResult {
    let Finished { status, stdout, stderr } = finished;
    if let Some(message) = failure(status) {
        return Err(with_stderr(ToolError::failed(message), stderr));
    }
    let total = stdout.total();
    let (bytes, digest) = stdout.into_parts();
    let cut = digest.is_some();
    let (output, lossy) = match kind {
        OutputKind::Text => text(&bytes, cut),
        OutputKind::Lines => lines(&bytes, cut),
        OutputKind::Json => (parse(&bytes, cut)?, false),
    };
    let mut answer = Map::new();
    answer.insert("output".to_owned(), output);
    answer.insert("exit_code".to_owned(), json!(0));
    answer.insert("bytes".to_owned(), json!(total));
    answer.insert("cut".to_owned(), json!(cut));
    answer.insert("stderr_bytes".to_owned(), json!(stderr.total()));
    if let Some(digest) = digest {
        answer.insert("sha256".to_owned(), json!(digest));
    }
    if lossy {
        answer.insert("lossy".to_owned(), json!(true));
    }
    Ok(Value::Object(answer))
}

/// Also tells whether bytes were replaced.
fn text(bytes: &[u8], cut: bool) -> (Value, bool) {
    let bytes = if cut { whole_chars(bytes) } else { bytes };
    let text = String::from_utf8_lossy(bytes);
    let lossy = matches!(text, std::borrow::Cow::Owned(_));
    (Value::String(text.into_owned()), lossy)
}

/// Without line breaks. A last line that was cut is left out: half a line is no line.
fn lines(bytes: &[u8], cut: bool) -> (Value, bool) {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = if cut { bytes.get(..end.unwrap_or(0)).unwrap_or_default() } else { bytes };
    let (text, lossy) = text(whole, false);
    let lines = text.as_str().unwrap_or_default().lines().map(Value::from).collect();
    (Value::Array(lines), lossy)
}

/// Reads JSON as strictly as the gate reads arguments: duplicate keys and numbers that cannot be kept exactly are refused.
fn parse(bytes: &[u8], cut: bool) -> Result<Value, ToolError> {
    if cut {
        return Err(ToolError::failed("the program's output is longer than its cap, so it is no whole JSON text"));
    }
    let limits = Limits { bytes: u32::MAX, ..Limits::DEFAULT };
    let mut keys = vec![KeySlot::default(); json::key_capacity(bytes)];
    let scanned = json::scan(bytes, &mut keys, &limits).map_err(|error| {
        ToolError::failed("the program's output is no JSON text that can be taken over exactly")
            .with_detail(error.to_string())
    })?;
    convert(scanned.value())
}

/// The scan has bounded the depth.
fn convert(value: json::Value<'_>) -> Result<Value, ToolError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if let Some(value) = value.as_bool() {
        return Ok(Value::Bool(value));
    }
    if let Some(number) = value.as_number() {
        let exact = number.as_i64().map(Number::from).or_else(|| number.as_u64().map(Number::from));
        let number = exact.or_else(|| number.as_f64().and_then(Number::from_f64));
        return number
            .map(Value::Number)
            .ok_or_else(|| ToolError::failed("the program's output holds a number that cannot be kept exactly"));
    }
    if let Some(text) = value.as_text() {
        return Ok(Value::String(text.chars().collect()));
    }
    if value.kind() == json::Kind::Array {
        return value.items().map(convert).collect();
    }
    value
        .members()
        .map(|(key, value)| Ok((key.chars().collect(), convert(value)?)))
        .collect::<Result<Map<_, _>, _>>()
        .map(Value::Object)
}

/// `bytes` without a character that was cut in two at its end.
fn whole_chars(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or(bytes),
        _ => bytes,
    }
}
