//! Records that are alike in all that a decision depends on, and what was decided.

use std::collections::HashMap;

use serde_json::Value;

/// What a decision depends on. What stores say of a token or of an operation comes after it.
const DEPENDED_ON: [&str; 13] = [
    "policy",
    "tool",
    "tool_digest",
    "args",
    "args_digest",
    "clamped",
    "channel",
    "principal",
    "tenant",
    "scopes",
    "session",
    "mode",
    "depth",
];

/// What is known of calls that are alike.
#[derive(Default)]
pub(crate) struct Decided {
    calls: HashMap<String, Alike>,
    met: usize,
}

struct Alike {
    first: Value,
    refused: Option<String>,
    asks: Option<bool>,
}

impl Decided {
    /// How many records were like an earlier one.
    pub(crate) const fn met(&self) -> usize {
        self.met
    }

    /// Takes a record, or gives the one that is like it and was decided otherwise.
    pub(crate) fn take(&mut self, record: &Value) -> Result<(), Value> {
        // Of arguments that were never read, nothing is known but that.
        if record.get("args").is_none() || record["kind"] == "intent" {
            return Ok(());
        }
        let key: Vec<_> = DEPENDED_ON.iter().chain(&["consent"]).map(|name| record[name].to_string()).collect();
        let text = |name: &str| record[name].as_str().unwrap_or_default();
        let stateless = ["resolve", "validate", "clamp", "authorize"].contains(&text("station"));
        let refused =
            stateless.then(|| format!("{} {} {} {}", text("station"), text("end"), text("check"), record["rule"]));
        let asks = match (text("station"), text("end"), text("confirmed_by")) {
            (_, "asked" | "no_approver", _) | (_, _, "grant") => Some(true),
            ("emit_executing" | "execute" | "check_output" | "contain_exception", _, _)
                if record.get("ticket").is_none() =>
            {
                Some(false)
            }
            _ => None,
        };
        let alike = match self.calls.entry(key.join(" ")) {
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(Alike { first: record.clone(), refused, asks });
                return Ok(());
            }
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
        };
        self.met += 1;
        let differs = alike.refused != refused || alike.asks.zip(asks).is_some_and(|(one, other)| one != other);
        alike.asks = alike.asks.or(asks);
        if differs { Err(alike.first.clone()) } else { Ok(()) }
    }
}
