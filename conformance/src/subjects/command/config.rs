//! A world as a configuration of the command.

use serde_json::{Map, Value, json};

use super::{Store, body};
use crate::world::{Body, Channel, Confirm, Quota, Rule, RuleEffect, Tool, World};

/// The log, where it is a file.
pub(super) const LOG: &str = "state/audit.jsonl";

/// Budgets that come back and questions whose time is over sooner than this, in milliseconds, would do so while the command is
/// looked at: its clock is the system's.
const SOON_MS: u64 = 10_000;

/// The world as a file, or why it can't be one.
pub(super) fn of(world: &World, store: Store) -> Result<String, String> {
    if world.ttl_ms() < SOON_MS {
        return Err("its questions would be over while the command is looked at".to_owned());
    }
    let (state, log) = match store {
        Store::Files => ("state/state.json", LOG),
        Store::Database => ("state/gate.db", "state/gate.db"),
    };
    if world.journal.is_some_and(|journal| journal.max_result.is_some()) {
        return Err("how large a result its journal keeps is not configured".to_owned());
    }
    let mut quotas = quota(world.quota)?;
    quotas.insert("attempts".to_owned(), quota(world.attempts)?.into());
    let channels: Map<_, _> = world.channels.iter().map(|one| (one.name.clone(), channel(one))).collect();
    let exec = world.tools.iter().enumerate().map(|(index, one)| tool(index, one, world));
    let config = json!({
        "version": 1,
        "root": ".",
        "toolkits": [],
        "state": {"file": state},
        "audit": {"file": log},
        "channels": channels,
        "rules": world.rules.iter().map(rule).collect::<Vec<_>>(),
        "quotas": quotas,
        "confirmation": {"ttl": format!("{}ms", world.ttl_ms())},
        "exec": exec.collect::<Result<Vec<_>, _>>()?,
    });
    toml::to_string(&config).map_err(|error| format!("it can't be written as TOML: {error}"))
}

fn quota(quota: Option<Quota>) -> Result<Map<String, Value>, String> {
    let Quota { limit, window_ms } = quota.unwrap_or(Quota { limit: 1_000_000, window_ms: 1_000 });
    if quota.is_some() && window_ms.checked_div(limit.into()).is_some_and(|unit| unit < SOON_MS) {
        return Err("its budgets would come back while the command is looked at".to_owned());
    }
    let members = [("limit", json!(limit)), ("window", format!("{window_ms}ms").into()), ("burst", json!(limit))];
    Ok(members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
}

fn channel(channel: &Channel) -> Value {
    json!({
        "require_auth": channel.require_auth,
        "block_mutating": channel.block_mutating,
        "require_rule": channel.require_rule,
        "require_confirmation_for_mutating": channel.confirm_mutating,
        "confirm_by": if channel.confirm_by_approver { "approver" } else { "caller" },
    })
}

fn rule(rule: &Rule) -> Value {
    let effect = if rule.effect == RuleEffect::Allow { "allow" } else { "deny" };
    let bound = rule.at_least.iter().map(|bound| json!({"field": bound.field, "min": bound.value}));
    let bounds: Vec<_> = bound.collect();
    let members = [
        ("id", Some(rule.id.into())),
        ("effect", Some(effect.into())),
        ("tool", rule.tool.clone().map(Value::from)),
        ("principal", rule.principal.clone().map(Value::from)),
        ("channel", rule.channel.clone().map(Value::from)),
        ("where", (!bounds.is_empty()).then(|| bounds.into())),
        ("scopes", rule.scopes.clone().map(Value::from)),
        ("overrides_block", rule.overrides_block.then_some(Value::Bool(true))),
    ];
    table(members)
}

fn tool(index: usize, tool: &Tool, world: &World) -> Result<Value, String> {
    let asks = |channel: &Channel| channel.confirm_by_approver && (tool.mutating || tool.confirm != Confirm::Nobody);
    if !world.approvers && (tool.confirm == Confirm::Approver || world.channels.iter().any(asks)) {
        return Err("approvers of the command can always be reached".to_owned());
    }
    if matches!(tool.body, Body::Hang(_)) || tool.timeout_ms.is_some() {
        return Err("time passes for the command as it does".to_owned());
    }
    if matches!(tool.body, Body::Refuse(_)) {
        return Err("programs that fail do not say that they did nothing".to_owned());
    }
    let confirm = match tool.confirm {
        Confirm::Nobody => "nobody",
        Confirm::Caller => "caller",
        Confirm::Approver => "approver",
    };
    let scope = (tool.confirm == Confirm::Approver).then(|| tool.approver_scope().into());
    let version = tool.version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
    let clamps = tool.clamps.iter().map(|clamp| {
        let bounds = [
            ("min", clamp.min.map(Value::from)),
            ("max", clamp.max.map(Value::from)),
            ("max_length", clamp.max_length.map(Value::from)),
        ];
        (clamp.field.clone(), table(bounds))
    });
    let clamps: Map<_, _> = clamps.collect();
    let members = [
        ("name", Some(tool.name.clone().into())),
        ("description", Some(format!("A tool under test{version}").into())),
        ("program", Some("/bin/sh".into())),
        ("args", Some(body::arguments(index, tool).into())),
        ("schema", Some(tool.schema.clone().unwrap_or_else(|| json!({"type": "object"})))),
        ("clamps", (!clamps.is_empty()).then(|| clamps.into())),
        ("secrets", (!tool.secrets.is_empty()).then(|| tool.secrets.clone().into())),
        ("mutating", Some(tool.mutating.into())),
        ("confirm", Some(confirm.into())),
        ("approver_scope", scope),
        ("scopes", (!tool.scopes.is_empty()).then(|| tool.scopes.clone().into())),
        ("env", Some(json!(["PATH"]))),
        ("output", Some("json".into())),
    ];
    Ok(table(members))
}

/// The members that are there.
fn table<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let there = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    there.collect::<Map<_, _>>().into()
}
