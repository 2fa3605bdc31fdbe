//! What became of a call, for people: the result on one side, everything else on the other.

use std::fmt::Write;
use std::time::Duration;

use serde_json::Value;

use crate::caller::shell_word;
use crate::terminal::{BOLD, Brush, DIM, WARN, visible};
use crate::view::view;

/// An outcome as it is on the wire.
pub(crate) struct Report {
    outcome: Value,
}

/// What to type to go on: the command up to the tool, and the options that make the same caller again.
pub(crate) struct Again<'a> {
    /// `callgate`, with the options that every command takes.
    pub(crate) command: String,
    /// The tool.
    pub(crate) tool: &'a str,
    /// The options of the caller.
    pub(crate) options: String,
    /// How long the token lives.
    pub(crate) ttl: Duration,
}

impl Report {
    /// The report of an outcome that was written as JSON; `None` when it is none.
    pub(crate) fn of(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok().map(|outcome| Self { outcome })
    }

    fn meta(&self, name: &str) -> Option<&Value> {
        self.outcome.get("meta")?.get(name)
    }

    fn data(&self, name: &str) -> Option<&str> {
        self.outcome.get("data")?.get(name)?.as_str()
    }

    /// The result alone, as JSON.
    pub(crate) fn result_json(&self) -> String {
        self.outcome.get("data").map_or_else(String::new, |data| format!("{data}\n"))
    }

    /// The result of a call that ran: the message, if there is one, and the data.
    pub(crate) fn result(&self, width: usize, brush: Brush) -> String {
        let mut text = String::new();
        if let Some(message) = self.outcome.get("message").and_then(Value::as_str) {
            let _ = writeln!(text, "{}", visible(message));
        }
        match self.outcome.get("data") {
            None | Some(Value::Null) if text.is_empty() => text.push_str("done\n"),
            None | Some(Value::Null) => {}
            Some(data) => text.push_str(&view(data, width, brush)),
        }
        text
    }

    /// What would run.
    pub(crate) fn plan(&self, width: usize, brush: Brush) -> String {
        let plan = self.outcome.get("data").and_then(|data| data.get("plan")).unwrap_or(&Value::Null);
        format!("{}\n{}", brush.paint(BOLD, "planned: nothing ran"), view(plan, width, brush))
    }

    /// What would run once it is confirmed, and how to confirm it.
    pub(crate) fn question(&self, again: &Again<'_>, brush: Brush) -> String {
        let summary = self.data("action_summary").unwrap_or_default();
        let token = self.data("confirm_token").unwrap_or_default();
        let Again { command, tool, options, ttl } = again;
        let mut text = format!(
            "{}\n\n  {}\n\n",
            brush.paint(WARN, "waits to be confirmed: nothing has run yet"),
            visible(summary)
        );
        if let (Some(id), Some(scope)) = (self.data("approval_id"), self.data("approver_scope")) {
            let scope = shell_word(scope);
            let _ = writeln!(
                text,
                "somebody else has to approve it, who holds the scope {scope}:\n\n  {command} approvals approve {id} \
                 --principal NAME --scope {scope}\n"
            );
        }
        let until = visible(self.data("expires_at").unwrap_or_default());
        let first = if self.data("approval_id").is_some() { "then run it" } else { "to run it" };
        let line = format!("{command} call {} --confirm {}{options}", shell_word(tool), shell_word(token));
        let seconds = ttl.as_secs_f64();
        let _ = writeln!(text, "{first}, once, within {seconds} s ({until}):\n\n  {}", brush.paint(BOLD, line));
        text
    }

    /// What is worth knowing beside the result, a line each (invariant K3 among them).
    pub(crate) fn notes(&self, brush: Brush) -> String {
        let mut notes = Vec::new();
        for clamp in self.meta("clamped").and_then(Value::as_array).into_iter().flatten() {
            let part = |name| visible(clamp.get(name).and_then(Value::as_str).unwrap_or("?"));
            notes.push(format!("{} was {}, brought to {}", part("field"), part("from"), part("to")));
        }
        let is = |name| self.meta(name) == Some(&Value::Bool(true));
        if is("cache_served") {
            notes.push("served from a cache; the tool did not run".to_owned());
        }
        if is("replayed") {
            notes.push("the result of an earlier call of this operation; the tool did not run again".to_owned());
        }
        if is("journal_pending") {
            notes.push("the journal does not know the end of this call: its operation will be in doubt".to_owned());
        }
        if is("timeout_exceeded") {
            let seconds = |name| self.meta(name).map_or_else(String::new, Value::to_string);
            notes.push(format!(
                "took {} s, longer than the {} s that it may",
                seconds("execution_time"),
                seconds("timeout_limit")
            ));
        }
        if is("output_truncated") {
            let bytes = self.meta("output_bytes").map_or_else(String::new, Value::to_string);
            notes.push(format!("the result was cut; the whole of it has {bytes} bytes"));
        }
        if is("audit_pending") {
            notes.push("the end of this call is not in the audit log".to_owned());
        }
        let lines = notes.iter().map(|note| format!("{}: {note}\n", brush.paint(WARN, "note")));
        lines.collect()
    }

    /// Where a call that did not succeed ended, on one line.
    pub(crate) fn place(&self, station: &str, brush: Brush) -> String {
        let effect = match self.meta("effect").and_then(Value::as_str) {
            Some("none") => "nothing was changed",
            Some("done") => "the tool ran and took effect",
            _ => "whether it took effect is not known",
        };
        let request = self.meta("request_id").and_then(Value::as_str).map(visible).unwrap_or_default();
        format!("{}\n", brush.paint(DIM, format!("  at {station}; {effect}; request {request}")))
    }
}
