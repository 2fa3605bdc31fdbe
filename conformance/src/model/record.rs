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
    let ways: Vec<Vec<&str>> = secrets.iter().map(|way| way.split('/').collect()).collect();
    less(args, &ways.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn less(value: &Value, ways: &[&[&str]]) -> Value {
    if ways.iter().any(|way| way.is_empty()) {
        return "[secret]".into();
    }
    let into = |name: &str, value: &Value| {
        let fits = |way: &&[&str]| way.first().is_some_and(|first| *first == name || *first == "*");
        less(value, &ways.iter().filter(|way| fits(way)).filter_map(|way| way.get(1..)).collect::<Vec<_>>())
    };
    match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), into(name, value))).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| into(&at.to_string(), item)).collect(),
        _ => value.clone(),
    }
}
