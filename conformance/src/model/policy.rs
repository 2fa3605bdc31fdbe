//! Who may do what, by what a caller, a tool, a channel and the rules say.

use serde_json::Value;

use crate::event::Call;
use crate::world::{Body, Caller, Channel, Confirm, Rule, RuleEffect, Tool};

/// Any forbid wins; without a permit nothing passes that needs one (invariants P1, F1, F2).
pub(super) fn allows(rules: &[Rule], caller: &Caller, tool: &Tool, args: &Value, channel: Option<&Channel>) -> bool {
    let known = channel.is_some();
    let channel = channel.cloned().unwrap_or_else(Channel::unknown);
    if channel.require_auth && principal(caller).is_none() {
        return false;
    }
    if !tool.scopes.is_empty() && !tool.scopes.iter().any(|scope| caller.holds(scope)) {
        return false;
    }
    let fitting = |effect| {
        let fits = move |rule: &&Rule| rule.effect == effect && matches(rule, caller, tool, args);
        rules.iter().filter(fits)
    };
    if fitting(RuleEffect::Deny).next().is_some() {
        return false;
    }
    let held = |rule: &&Rule| rule.scopes.as_ref().is_none_or(|scopes| scopes.iter().any(|scope| caller.holds(scope)));
    let permits: Vec<&Rule> = fitting(RuleEffect::Allow).filter(held).collect();
    let asked = channel.require_rule || fitting(RuleEffect::Allow).next().is_some();
    if asked && permits.is_empty() {
        return false;
    }
    let lifted = known && permits.iter().any(|rule| rule.overrides_block);
    !(channel.block_mutating && tool.mutating) || lifted
}

/// An empty principal is nobody.
pub(super) fn principal(caller: &Caller) -> Option<String> {
    caller.principal.clone().filter(|principal| !principal.is_empty())
}

pub(super) fn same_caller(one: &Caller, other: &Caller) -> bool {
    principal(one) == principal(other)
        && (&one.tenant, &one.channel, &one.session) == (&other.tenant, &other.channel, &other.session)
}

/// The grammars of names (invariant S3).
pub(super) fn named_well(call: &Call) -> bool {
    let label = |name: &str| {
        (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:/-".contains(&b))
    };
    let text = |name: &str| (1..=256).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    let scope = |name: &String| {
        (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() && !b"\"\\,".contains(&b))
    };
    let Caller { channel, tenant, session, scopes, .. } = &call.caller;
    label(channel)
        && tenant.as_deref().is_none_or(label)
        && session.as_deref().is_none_or(label)
        && principal(&call.caller).is_none_or(|principal| text(&principal))
        && text(&call.id)
        && scopes.iter().all(scope)
}

fn matches(rule: &Rule, caller: &Caller, tool: &Tool, args: &Value) -> bool {
    let named = |pattern: &String| match pattern.strip_suffix('*') {
        Some(start) => tool.name.starts_with(start),
        None => *pattern == tool.name,
    };
    let large = rule.at_least.as_ref().is_none_or(|bound| match args.get(&bound.field) {
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| number >= bound.value as f64),
        None | Some(Value::Null) => false,
        Some(_) => rule.effect == RuleEffect::Deny,
    });
    rule.tool.as_ref().is_none_or(named)
        && rule.principal.as_ref().is_none_or(|name| principal(caller).as_ref() == Some(name))
        && rule.channel.as_ref().is_none_or(|name| *name == caller.channel)
        && large
}

/// Who has to confirm: the tool and the channel both have a say, and the stricter counts.
pub(super) fn needed(tool: &Tool, channel: &Channel) -> Confirm {
    let asked = if channel.confirm_mutating && tool.mutating { Confirm::Caller } else { Confirm::Nobody };
    match tool.confirm.max(asked) {
        Confirm::Caller if channel.confirm_by_approver => Confirm::Approver,
        by => by,
    }
}

/// What makes a tool the tool that it is: everything but its body (invariant G4).
pub(super) fn definition(tool: &Tool) -> Tool {
    let scope = (tool.confirm == Confirm::Approver).then(|| tool.approver_scope().to_owned());
    Tool { body: Body::Echo, approver_scope: scope, ..tool.clone() }
}
