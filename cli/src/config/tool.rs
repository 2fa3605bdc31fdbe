//! `[tools."NAME"]`: adjustments of a built-in tool.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use callgate_core::name::check_scope;
use callgate_core::tool::{ConfirmBy, ToolSpec};
use callgate_std::verification::{REQUEST, RESOLVE};

use super::confirmation::{APPROVER_SCOPE_KEY, CONFIRM_KEY, Confirm, confirm};
use super::decode::{Entry, Key, Keys, Table};
use super::exec::ExecTool;
use super::fault::Fault;
use super::field::{self, CLAMPS_KEY, FieldRules, SECRETS_KEY};
use super::names::Names;
use super::source::Location;

/// What the file says of a built-in tool. An adjustment states or tightens; [`ToolAdjustment::apply`] refuses one that would
/// take away what the tool asks for.
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

/// What holds for a tool once it is adjusted, where an adjustment could loosen something.
#[derive(Clone, PartialEq, Debug)]
pub struct Adjusted<'a> {
    /// Who confirms.
    pub confirm: ConfirmBy<'a>,
    /// Clamps and secrets.
    pub fields: FieldRules,
}

impl ToolAdjustment {
    /// The adjustment over what the tool says of itself.
    ///
    /// # Errors
    /// A confirmation weaker than the tool's own, and each clamp that lets more through; report them with
    /// [`super::Config::refuse`].
    pub fn apply<'a>(&'a self, own: &ToolSpec<'a>) -> Result<Adjusted<'a>, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut fault = |part: &str, message: String, help: &str| {
            let entry = format!("tools.\"{}\".{part}", self.name);
            faults.push(Fault { entry, message, help: Some(help.to_owned()) });
        };
        let confirm = self.confirm.as_ref().map_or(own.confirm, Confirm::by);
        if rank(confirm) < rank(own.confirm) {
            let message = format!("`{}` is confirmed by the {} at least", self.name, word(own.confirm));
            fault("confirm", message, "an adjustment can ask for more than the tool does, not for less");
        }
        let fields = self.fields.over(own.fields).unwrap_or_else(|refused| {
            for (path, reason) in refused {
                fault(
                    "clamps",
                    format!("the clamp of {path} {reason}"),
                    "bounds of an adjustment lie within the tool's own",
                );
            }
            FieldRules::default()
        });
        if faults.is_empty() { Ok(Adjusted { confirm, fields }) } else { Err(faults) }
    }
}

/// How much a confirmation asks for. One that isn't known here counts as the most.
const fn rank(confirm: ConfirmBy<'_>) -> u8 {
    match confirm {
        ConfirmBy::Nobody => 0,
        ConfirmBy::Caller => 1,
        _ => 2,
    }
}

const fn word(confirm: ConfirmBy<'_>) -> &'static str {
    match confirm {
        ConfirmBy::Nobody => "nobody",
        ConfirmBy::Caller => "caller",
        _ => "approver",
    }
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
        } else if [REQUEST, RESOLVE].contains(&name) {
            let help = "[verification] says who answers, and rules and quotas hold for it".to_owned();
            entry.report_key(format!("`{name}` isn't adjusted here"), Some(help));
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
