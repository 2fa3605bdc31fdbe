//! Calls of which a log has the beginning and no end, because their process died: found, and closed by the log itself (invariant J1).

use std::collections::HashMap;

use callgate_core::audit::AuditFault;
use callgate_core::audit::chain::Head;
use callgate_core::time::Timestamp;
use serde_json::{Map, Value, json};

use super::line;

/// What of a record is the call's and not the moment's, in the order of a record.
const OF_THE_CALL: [&str; 22] = [
    "request_id",
    "parent",
    "depth",
    "tenant",
    "principal",
    "channel",
    "scopes",
    "session",
    "ip",
    "mode",
    "signer",
    "tool",
    "tool_digest",
    "args_digest",
    "policy",
    "ticket",
    "grant",
    "task",
    "operation",
    "attempt",
    "consent",
    "provenance",
];

/// The name of a call in a log: its request id and its tool.
pub type CallName = (String, String);
/// The number of a line, and what is in it.
type Line = (u64, Map<String, Value>);

/// A call that a log left open.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LostCall {
    /// Its request id.
    pub request_id: String,
    /// Its tool.
    pub tool: String,
    /// The number of the line of its intent, or of its acceptance.
    pub line: u64,
}

/// The calls that are open after some lines of a log.
#[derive(Clone, Debug, Default)]
pub struct OpenCalls {
    calls: HashMap<CallName, Vec<Line>>,
}

impl OpenCalls {
    /// Takes one more line, whose number is `seq`.
    pub fn line(&mut self, seq: u64, text: &str) {
        let Ok(Value::Object(record)) = serde_json::from_str(text) else { return };
        let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
        let call = (text("request_id").to_owned(), text("tool").to_owned());
        match (text("kind"), text("end")) {
            ("intent", _) => self.calls.entry(call).or_default().push((seq, record)),
            ("terminal", "accepted") => {
                let open = self.calls.entry(call).or_default();
                open.pop();
                open.push((seq, record));
            }
            ("terminal" | "completion", _) => {
                if let Some(open) = self.calls.get_mut(&call) {
                    open.pop();
                    if open.is_empty() {
                        self.calls.remove(&call);
                    }
                }
            }
            _ => {}
        }
    }

    /// The number of the first line whose call is open; `None` when none is.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.calls.values().flatten().map(|(seq, _)| *seq).min()
    }

    /// Whom it is about and the record that closes it, for each call whose lease is over at `now`, the oldest first.
    ///
    /// # Errors
    /// A record cannot be written as a line.
    pub fn closing(&self, now: Timestamp) -> Result<Vec<(LostCall, String)>, AuditFault> {
        let mut lost: Vec<_> = self.calls.values().flatten().filter(|(_, record)| is_over(record, now)).collect();
        lost.sort_unstable_by_key(|(seq, _)| *seq);
        lost.into_iter().map(|(line, record)| closed(*line, record, now)).collect()
    }

    /// As a text that [`OpenCalls::read`] reads: what a store keeps so that a log need not be gone through from its beginning.
    #[must_use]
    pub fn write(&self) -> String {
        let mut lines: Vec<_> = self.calls.values().flatten().collect();
        lines.sort_unstable_by_key(|(seq, _)| *seq);
        Value::from_iter(lines.into_iter().map(|(seq, record)| json!([seq, record]))).to_string()
    }

    /// Reads such a text; `None` when it is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let lines: Vec<Line> = serde_json::from_str(text).ok()?;
        let mut open = Self::default();
        for (seq, record) in lines {
            let text = |name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
            open.calls.entry((text("request_id")?, text("tool")?)).or_default().push((seq, record));
        }
        Some(open)
    }
}

/// Whether the lease of the call with this record is over. One of before there were leases is left to people.
fn is_over(record: &Map<String, Value>, now: Timestamp) -> bool {
    let at = record.get("at").and_then(Value::as_str).and_then(|at| at.parse::<Timestamp>().ok());
    let lease_ms = record.get("lease_ms").and_then(Value::as_u64);
    at.zip(lease_ms).is_some_and(|(at, lease_ms)| now >= at.saturating_add_millis(lease_ms))
}

fn closed(line: u64, record: &Map<String, Value>, now: Timestamp) -> Result<(LostCall, String), AuditFault> {
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let lost = LostCall { request_id: text("request_id"), tool: text("tool"), line };
    let was_accepted = text("end") == "accepted";
    let mut members = vec![
        ("v", Value::from(line::VERSION)),
        ("kind", Value::from(if was_accepted { "completion" } else { "terminal" })),
        ("at", Value::from(now.to_string())),
    ];
    members.extend(OF_THE_CALL.iter().filter_map(|name| Some((*name, record.get(*name)?.clone()))));
    members.extend([
        ("station", Value::from("execute")),
        ("end", Value::from("lost")),
        ("effect", Value::from("unknown")),
        ("detail", Value::from("it was not heard of within its lease; the reaper wrote this")),
        ("took_us", Value::from(0)),
    ]);
    let members: Vec<_> = members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let out = format!("{{{}}}", members.join(","));
    // In the log's own form.
    line::append(&Head::EMPTY, &out, &mut String::new())?;
    Ok((lost, out))
}

/// How records begin that announce or end something.
const INTENT: &str = r#"{"v":1,"kind":"intent","#;
const TERMINAL: &str = r#"{"v":1,"kind":"terminal","#;
const COMPLETION: &str = r#"{"v":1,"kind":"completion","#;
const LATE: &str = r#"{"v":1,"kind":"late","#;

/// The call that a record announces: one that was given up under the same name is not heard of any more.
#[must_use]
pub fn announces(text: &str) -> Option<CallName> {
    if text.starts_with(INTENT) { Some(name(&object(text)?)) } else { None }
}

/// The call that a record ends, if it may have taken effect. If that was given up before, the record is [`late`].
#[must_use]
pub fn ends(text: &str) -> Option<CallName> {
    if !text.starts_with(TERMINAL) && !text.starts_with(COMPLETION) {
        return None;
    }
    let record = object(text)?;
    let is = |member: &str, value: &str| record.get(member).and_then(Value::as_str) == Some(value);
    if is("effect", "none") || is("end", "lost") { None } else { Some(name(&record)) }
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

fn name(record: &Map<String, Value>) -> CallName {
    let member = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    (member("request_id"), member("tool"))
}

/// The same record as one of a call that was given up before: the call has its one end already.
#[must_use]
pub fn late(text: &str) -> Option<String> {
    let rest = text.strip_prefix(TERMINAL).or_else(|| text.strip_prefix(COMPLETION))?;
    Some(format!("{LATE}{rest}"))
}
