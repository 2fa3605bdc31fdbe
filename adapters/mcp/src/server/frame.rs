//! One message of a client, read by the gate's own reader before anything else reads it.

use std::sync::Arc;

use callgate_core::json::{KeySlot, Kind, Limits, Value, key_capacity, scan};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetExtensions, JsonRpcError, NumberOrString, RequestId,
};

/// The most bytes of one message: the arguments of a call may have 1 MiB, and there is room for what stands around them.
pub const MAX_FRAME: usize = (1 << 20) + (1 << 16);

/// What a message may cost to read: the bounds of arguments, and [`MAX_FRAME`] bytes. Arguments stand two levels deep in a
/// message, so they may nest two levels less than elsewhere.
const LIMITS: Limits = Limits { bytes: MAX_FRAME as u32, ..Limits::DEFAULT };

/// The arguments of a call as JSON text, as the gate's reader found them in the message.
///
/// The SDK keeps arguments as a tree of its own making, in which of two members with one name only the last is left. The text is
/// taken before that, travels beside the message, and is what the gate gets: one reader, one opinion (invariants S1, S2).
#[derive(Clone, PartialEq, Eq)]
pub struct Arguments(pub(crate) Arc<str>);

/// Tells the size only (invariant L1).
impl std::fmt::Debug for Arguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arguments({} bytes)", self.0.len())
    }
}

/// A text that passed the reader.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The arguments, if it calls a tool and has some.
    pub(crate) arguments: Option<Arguments>,
    /// Its id, if it is a request.
    pub(crate) id: Option<RequestId>,
}

/// Why a message is not taken.
#[derive(Debug)]
pub(crate) struct FrameError {
    /// What the client is told. It holds nothing of the message.
    pub(crate) error: ErrorData,
    /// The request that it answers, where that can be told.
    pub(crate) id: Option<RequestId>,
}

impl FrameError {
    fn parse(reason: &str) -> Self {
        Self { error: ErrorData::parse_error(format!("Parse error: {reason}"), None), id: None }
    }

    /// The message is longer than [`MAX_FRAME`].
    pub(crate) fn too_long() -> Self {
        Self {
            error: ErrorData::invalid_request(format!("a message may have at most {MAX_FRAME} bytes"), None),
            id: None,
        }
    }

    /// The answer.
    pub(crate) fn into_message(self) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::Error(JsonRpcError::new(self.id, self.error))
    }
}

/// Checks a text: one JSON object, within bounds, no name twice.
pub(crate) fn check(text: &[u8]) -> Result<Checked, FrameError> {
    if text.len() > MAX_FRAME {
        return Err(FrameError::too_long());
    }
    let mut keys = vec![KeySlot::default(); key_capacity(text)];
    let scanned = scan(text, &mut keys, &LIMITS).map_err(|error| FrameError::parse(&error.to_string()))?;
    let message = scanned.value();
    if message.kind() != Kind::Object {
        return Err(FrameError {
            error: ErrorData::invalid_request("a message is one JSON object; batches are not taken", None),
            id: None,
        });
    }
    let calls = message.get("method").and_then(Value::as_text).is_some_and(|method| method.eq_str("tools/call"));
    let id = id_of(message);
    let arguments = match message.get("params").and_then(|params| params.get("arguments")) {
        Some(arguments) if calls => Some(text_of(arguments).ok_or_else(|| FrameError::parse("unreadable arguments"))?),
        _ => None,
    };
    Ok(Checked { arguments, id })
}

/// Reads a text to a message, with its arguments beside it.
pub(crate) fn read(text: &[u8]) -> Result<ClientJsonRpcMessage, FrameError> {
    let Checked { arguments, id } = check(text)?;
    let mut message = serde_json::from_slice(text).map_err(|_| FrameError {
        error: ErrorData::invalid_request("this is no message of the protocol", None),
        id,
    })?;
    if let (Some(arguments), ClientJsonRpcMessage::Request(request)) = (arguments, &mut message)
        && let ClientRequest::CallToolRequest(call) = &mut request.request
    {
        drop(call.extensions_mut().insert(arguments));
    }
    Ok(message)
}

fn id_of(message: Value<'_>) -> Option<RequestId> {
    let id = message.get("id")?;
    match id.kind() {
        Kind::String => Some(NumberOrString::String(id.as_text()?.chars().collect::<String>().into())),
        Kind::Number => id.as_number()?.as_i64().map(NumberOrString::Number),
        _ => None,
    }
}

/// The text of a checked value.
fn text_of(value: Value<'_>) -> Option<Arguments> {
    let mut text = String::new();
    value.write_json(&mut text).ok()?;
    Some(Arguments(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Result<Option<String>, i32> {
        let checked = check(text.as_bytes()).map_err(|error| error.error.code.0)?;
        Ok(checked.arguments.map(|arguments| arguments.0.to_string()))
    }

    #[test]
    fn s2_a_name_twice_is_refused_wherever_it_stands() {
        let call = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        assert_eq!(
            arguments(&call(r#"{"name":"a","arguments":{"x":9007199254740993}}"#)),
            Ok(Some(r#"{"x":9007199254740993}"#.into()))
        );
        for twice in [
            r#"{"name":"a","arguments":{"x":1,"x":2}}"#,
            r#"{"name":"a","arguments":{"x":1,"\u0078":2}}"#,
            r#"{"name":"a","name":"b","arguments":{}}"#,
            r#"{"name":"a","arguments":{},"arguments":{"x":1}}"#,
        ] {
            assert_eq!(arguments(&call(twice)), Err(-32700), "{twice}");
        }
    }

    #[test]
    fn s4_a_number_that_cannot_be_kept_is_refused() {
        for number in ["1e400", "18446744073709551616", "-9223372036854775809"] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"x":{number}}}}}}}"#
            );
            assert_eq!(arguments(&text), Err(-32700), "{number}");
        }
    }

    #[test]
    fn what_is_no_message_is_told_so_with_its_id() {
        let error = read(br#"{"jsonrpc":"2.0","id":"x","method":7}"#).unwrap_err();
        assert_eq!((error.error.code.0, error.id), (-32600, Some(NumberOrString::String("x".into()))));
        assert_eq!(read(b"[]").unwrap_err().error.code.0, -32600);
        assert_eq!(read(b"{").unwrap_err().error.code.0, -32700);
        assert_eq!(read(&vec![b' '; MAX_FRAME + 1]).unwrap_err().error.code.0, -32600);
    }
}
