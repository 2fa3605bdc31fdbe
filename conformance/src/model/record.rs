//! What is recorded of a call.

use serde_json::{Value, json};

use super::Way;
use super::policy::principal;
use crate::event::Call;

pub(super) fn record(kind: &str, call: &Call, code: Option<&str>, effect: &str, way: &Way) -> Value {
    let mut record = json!({"kind": kind, "request_id": call.id, "tool": call.tool, "channel": call.caller.channel,
        "principal": principal(&call.caller), "code": code, "effect": effect});
    if let (Some(record), Some(args)) = (record.as_object_mut(), &way.args) {
        record.insert("args".to_owned(), shown(args, &way.secrets));
        if let Some(by) = way.confirmed_by {
            record.insert("confirmed_by".to_owned(), by.into());
        }
    }
    record
}

/// The arguments, less what is secret (invariant L1).
pub(super) fn shown(args: &Value, secrets: &[String]) -> Value {
    let members = args.as_object().into_iter().flatten();
    let shown = |(name, value): (&String, &Value)| {
        (name.clone(), if secrets.contains(name) { "[secret]".into() } else { value.clone() })
    };
    Value::Object(members.map(shown).collect())
}
