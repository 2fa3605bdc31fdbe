//! Calls of which the log has the beginning and no end, because their process died.

use std::collections::HashMap;

use callgate_core::audit::AuditFault;
use callgate_core::time::Timestamp;
use callgate_std::audit::line;
use serde_json::{Map, Value};

use crate::database::Link;
use crate::error::DatabaseError;

/// What of a record is the call's and not the moment's, in the order of a record.
const OF_THE_CALL: [&str; 16] = [
    "request_id",
    "parent",
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
    "task",
];

/// The name of a call in the log.
type Call = (String, String);
/// The number of a line, and what is in it.
type Line = (u64, Map<String, Value>);

/// A call that the log left open.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LostCall {
    /// Its request id.
    pub request_id: String,
    /// Its tool.
    pub tool: String,
    /// The line of its intent, or of its acceptance.
    pub line: u64,
}

/// What is known of calls after some lines of a log.
#[derive(Default)]
pub(crate) struct Open {
    calls: HashMap<Call, Vec<Line>>,
}

impl Open {
    /// Takes one more line.
    pub(crate) fn line(&mut self, seq: u64, text: &str) {
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

    /// The calls whose lease is over at `now`, the oldest first.
    fn lost(self, now: Timestamp) -> Vec<Line> {
        let is_over = |record: &Map<String, Value>| {
            let at = record.get("at").and_then(Value::as_str).and_then(|at| at.parse::<jiff::Timestamp>().ok());
            let at = at.and_then(|at| u64::try_from(at.as_millisecond()).ok());
            let lease = record.get("lease_ms").and_then(Value::as_u64);
            // One of before there were leases is left to people.
            at.zip(lease).is_some_and(|(at, lease)| now.as_unix_millis() >= at.saturating_add(lease))
        };
        let mut lost: Vec<_> = self.calls.into_values().flatten().filter(|(_, record)| is_over(record)).collect();
        lost.sort_unstable_by_key(|(seq, _)| *seq);
        lost
    }
}

/// The records that close what is lost at `now`, and whom they are about.
pub(crate) fn closing(open: Open, now: Timestamp) -> Result<Vec<(LostCall, String)>, AuditFault> {
    open.lost(now).into_iter().map(|(line, record)| closed(line, &record, now)).collect()
}

fn closed(line: u64, record: &Map<String, Value>, now: Timestamp) -> Result<(LostCall, String), AuditFault> {
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let lost = LostCall { request_id: text("request_id"), tool: text("tool"), line };
    let was_accepted = text("end") == "accepted";
    let mut members = vec![
        ("v", Value::from(1)),
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
    let mut out = String::from("{");
    for (name, value) in members {
        if out.len() > 1 {
            out.push(',');
        }
        let value = serde_json::to_string(&value).map_err(|_| AuditFault)?;
        out.push_str(&format!("\"{name}\":{value}"));
    }
    out.push('}');
    // In the log's own form.
    line::append(&callgate_core::audit::chain::Head::EMPTY, &out, &mut String::new())?;
    Ok((lost, out))
}

/// Whether the reaper has closed this call: what its process tells afterwards is late. Tells it once.
pub(crate) fn was_lost(link: &Link<'_>, text: &str) -> Result<bool, DatabaseError> {
    if !text.starts_with(TERMINAL) && !text.starts_with(COMPLETION) {
        return Ok(false);
    }
    let Ok(Value::Object(record)) = serde_json::from_str(text) else { return Ok(false) };
    let member = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    if member("effect") == "none" || member("end") == "lost" {
        return Ok(false);
    }
    let sql = "DELETE FROM audit_lost WHERE rowid = \
               (SELECT rowid FROM audit_lost WHERE request_id = ?1 AND tool = ?2 LIMIT 1)";
    Ok(link.execute(sql, (member("request_id"), member("tool")))? == 1)
}

/// How records begin that end something.
const TERMINAL: &str = r#"{"v":1,"kind":"terminal","#;
const COMPLETION: &str = r#"{"v":1,"kind":"completion","#;
const LATE: &str = r#"{"v":1,"kind":"late","#;

/// The same record as one of a call that was given up before: the call has its one end already (invariant J1).
pub(crate) fn late(text: &str) -> Option<String> {
    let rest = text.strip_prefix(TERMINAL).or_else(|| text.strip_prefix(COMPLETION))?;
    Some(format!("{LATE}{rest}"))
}
