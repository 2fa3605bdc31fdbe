//! Who may do what, by what a caller, a tool, a channel and the rules say.

use std::cmp::Ordering;

use serde_json::Value;

use super::arguments::order;
use crate::event::Call;
use crate::world::{Body, Caller, Channel, Confirm, Rule, RuleEffect, Tool};

/// Any forbid wins; without a permit nothing passes that needs one (invariants P1, F1, F2).
pub(super) fn allows(rules: &[Rule], caller: &Caller, tool: &Tool, args: &Value, channel: Option<&Channel>) -> bool {
    let (known, channel) = (channel.is_some(), channel.cloned().unwrap_or_else(Channel::unknown));
    let holds_one = |scopes: &[String]| scopes.iter().any(|scope| caller.holds(scope));
    let about: Vec<&Rule> = rules.iter().filter(|rule| matches(rule, caller, tool, args)).collect();
    let permits: Vec<_> = about.iter().filter(|rule| rule.scopes.as_deref().is_none_or(holds_one)).collect();
    let lifted = known && permits.iter().any(|rule| rule.overrides_block);
    let refusals = [
        channel.require_auth && principal(caller).is_none(),
        !tool.scopes.is_empty() && !holds_one(&tool.scopes),
        about.iter().any(|rule| rule.effect == RuleEffect::Deny),
        permits.is_empty() && (channel.require_rule || !about.is_empty()),
        channel.block_mutating && tool.mutating && !lifted,
    ];
    !refusals.contains(&true)
}

/// An empty principal is nobody.
pub(crate) fn principal(caller: &Caller) -> Option<String> {
    caller.principal.clone().filter(|principal| !principal.is_empty())
}

/// The grammars of names (invariant S3).
pub(super) fn named_well(call: &Call) -> bool {
    let made_of =
        |name: &str, most: usize, fits: fn(u8) -> bool| (1..=most).contains(&name.len()) && name.bytes().all(fits);
    let label = |name: &str| made_of(name, 128, |b| b.is_ascii_alphanumeric() || b"_.:/-".contains(&b));
    let text = |name: &str| made_of(name, 256, |b| b.is_ascii_graphic() || b == b' ');
    let scope = |name: &String| made_of(name, 128, |b| b.is_ascii_graphic() && !b"\"\\,".contains(&b));
    let Caller { channel, tenant, session, scopes, .. } = &call.caller;
    [Some(channel), tenant.as_ref(), session.as_ref()].into_iter().flatten().all(|name| label(name))
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
        Some(number @ Value::Number(_)) => order(number, &bound.value.into()) != Some(Ordering::Less),
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

/// What makes a tool the tool that it is: everything but its body and the cap of its results (invariant G4).
pub(super) fn definition(tool: &Tool) -> Tool {
    let scope = (tool.confirm == Confirm::Approver).then(|| tool.approver_scope().to_owned());
    Tool { body: Body::Echo, approver_scope: scope, output_cap: None, ..tool.clone() }
}
