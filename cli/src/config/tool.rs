//! `[tools."NAME"]`: adjustments of a built-in tool.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use callgate_core::name::check_scope;

use super::confirmation::{APPROVER_SCOPE_KEY, CONFIRM_KEY, Confirm, confirm};
use super::decode::{Entry, Key, Keys, Table};
use super::exec::ExecTool;
use super::field::{self, CLAMPS_KEY, FieldRules, SECRETS_KEY};
use super::names::Names;
use super::source::Location;

/// What the file says of a built-in tool. An adjustment states or tightens: whoever applies it refuses a confirmation weaker
/// than the tool's own and a clamp wider than the tool's own; nothing here can take a demand away.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolAdjustment {
    /// The tool.
    pub name: String,
    /// Whether the tool is left out.
    pub disabled: bool,
    /// Scopes, one of which a caller must hold; they take the place of the tool's own. Unchanged when empty.
    pub scopes: Vec<String>,
    /// Who confirms.
    pub confirm: Option<Confirm>,
    /// How long one call may take.
    pub timeout: Option<Duration>,
    /// What one call costs at the rate limiter; at least 1.
    pub cost: Option<u32>,
    /// Clamps and secrets, beside the tool's own.
    pub fields: FieldRules,
    /// Where the file states it.
    pub location: Location,
}

pub(super) static KEYS: Keys = Keys {
    table: "tools.NAME",
    keys: &[
        Key { name: "disabled", takes: "true or false", example: "true" },
        SCOPES_KEY,
        CONFIRM_KEY,
        APPROVER_SCOPE_KEY,
        TIMEOUT_KEY,
        COST_KEY,
        CLAMPS_KEY,
        SECRETS_KEY,
    ],
};

pub(super) static CLAMPS: Keys = field::clamp_keys("tools.NAME.clamps.FIELD");

pub(super) const SCOPES_KEY: Key =
    Key { name: "scopes", takes: "a list of scopes in quotes", example: "[\"notes:write\"]" };
pub(super) const TIMEOUT_KEY: Key =
    Key { name: "timeout", takes: "a duration in quotes, such as \"30s\"", example: "\"30s\"" };
pub(super) const COST_KEY: Key = Key { name: "cost", takes: "a whole number", example: "5" };

/// How long a call of any tool may be allowed to take.
pub(super) const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);

pub(super) fn read(tools: &Entry<'_>, names: &Names, exec: &[ExecTool]) -> BTreeMap<String, ToolAdjustment> {
    let read = |(name, entry): (&str, Entry<'_>)| {
        if let Some(tool) = exec.iter().find(|tool| tool.name == name) {
            let help = format!("write it into the [[exec]] entry on line {}", tool.location.line);
            entry.report_key(format!("`{name}` is declared in this file, so it isn't adjusted here"), Some(help));
        } else {
            names.known_tool(name, |message, help| entry.report_key(message, help));
        }
        Some((name.to_owned(), adjustment(name, &entry)?))
    };
    tools.named().into_iter().filter_map(read).collect()
}

fn adjustment(name: &str, entry: &Entry<'_>) -> Option<ToolAdjustment> {
    let table = entry.table(&KEYS)?;
    let mut fields = FieldRules::default();
    field::read(&table, &CLAMPS, &mut fields);
    Some(ToolAdjustment {
        name: name.to_owned(),
        disabled: table.boolean("disabled", false),
        scopes: scopes(&table),
        confirm: confirm(&table),
        timeout: table.get("timeout").and_then(|entry| entry.duration(TIMEOUT)),
        cost: cost(&table),
        fields,
        location: entry.location(),
    })
}

/// Reads `scopes` of a tool.
pub(super) fn scopes(table: &Table<'_>) -> Vec<String> {
    const NO_SCOPES: &str = "an empty list would read as a demand and ask for nothing: leave the key out";
    table
        .get("scopes")
        .map_or_else(Vec::new, |scopes| scopes.set(&scopes.filled_list(NO_SCOPES), |scope| scope.name(check_scope)))
}

/// Reads `cost` of a tool. A call that costs nothing would escape every quota.
pub(super) fn cost(table: &Table<'_>) -> Option<u32> {
    table.get("cost").and_then(|cost| cost.natural(1..=1000))
}
