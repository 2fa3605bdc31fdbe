//! `[channels.NAME]`: what holds for calls that come through a channel.

use std::collections::BTreeMap;

use callgate_core::name::check_label;
use callgate_core::policy::{By, ChannelPolicy, ChannelTable};

use super::decode::{Entry, Key, Keys};
use super::source::Location;

/// A channel as the file states it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    /// The channel's name.
    pub name: String,
    /// What holds on it; the name in it is empty.
    policy: ChannelPolicy<'static>,
    /// Whether a built-in channel has this name, which this one replaces whole.
    pub replaces_builtin: bool,
    /// Where the file states it.
    pub location: Location,
}

impl Channel {
    /// What holds on the channel, as the gate takes it.
    #[must_use]
    pub fn policy(&self) -> ChannelPolicy<'_> {
        ChannelPolicy { name: &self.name, ..self.policy }
    }
}

pub(super) static KEYS: Keys = Keys {
    table: "channels.NAME",
    keys: &[
        Key { name: "require_auth", takes: "true or false", example: "true" },
        Key { name: "allow_all", takes: "true or false", example: "false" },
        Key { name: "block_mutating", takes: "true or false", example: "true" },
        Key { name: "require_rule", takes: "true or false", example: "true" },
        Key { name: "require_confirmation_for_mutating", takes: "true or false", example: "true" },
        Key { name: "confirm_by", takes: "\"caller\" or \"approver\"", example: "\"approver\"" },
        Key { name: "consent_required", takes: "true or false", example: "false" },
    ],
};

pub(super) fn read(channels: &Entry<'_>) -> BTreeMap<String, Channel> {
    let read = |(name, entry): (&str, Entry<'_>)| Some((name.to_owned(), channel(name, &entry)?));
    channels.named().into_iter().filter_map(read).collect()
}

fn channel(name: &str, entry: &Entry<'_>) -> Option<Channel> {
    let named = entry.check_key(name, check_label, "a channel's name is 1 to 128 of A-Z a-z 0-9 _ . : / -");
    let table = entry.table(&KEYS)?;
    let confirm_by =
        table.get("confirm_by").and_then(|by| by.one_of(&[("caller", By::Caller), ("approver", By::Approver)]));
    // A new policy asks for a principal and trusts with nothing, so an empty table opens nothing (invariant F2).
    let closed = ChannelPolicy::new("");
    let policy = ChannelPolicy {
        name: "",
        require_auth: table.boolean("require_auth", closed.require_auth),
        allow_all: table.boolean("allow_all", closed.allow_all),
        block_mutating: table.boolean("block_mutating", closed.block_mutating),
        require_rule: table.boolean("require_rule", closed.require_rule),
        require_confirmation_for_mutating: table
            .boolean("require_confirmation_for_mutating", closed.require_confirmation_for_mutating),
        confirm_by: confirm_by.unwrap_or(closed.confirm_by),
        consent_required: table.boolean("consent_required", closed.consent_required),
    };
    let builtin = ChannelTable::DEFAULTS.iter().find(|builtin| builtin.name == name);
    if let Some(builtin) = builtin {
        // A table that replaces a built-in channel could drop a protection without a word. It has to say that it does.
        for flag in demands(builtin).into_iter().filter(|flag| !demands(&policy).contains(flag)) {
            if table.get(flag).is_none() {
                table.report(
                    format!("`channels.{name}` replaces the built-in channel, which has {flag} = true, and doesn't mention it"),
                    Some(format!("add `{flag} = true` to keep it, or `{flag} = false` to drop it")),
                );
            }
        }
        table.note(format!("[channels.{name}] replaces the built-in channel `{name}` whole"));
    }
    if policy.allow_all && policy.block_mutating {
        table.report(
            format!("`channels.{name}` has both allow_all and block_mutating"),
            Some("allow_all trusts the channel with every tool and block_mutating refuses some: keep one".into()),
        );
    }
    if !policy.require_auth {
        table.note(format!("channel `{name}` takes calls from callers that nobody knows (require_auth = false)"));
    }
    named.then(|| Channel {
        name: name.to_owned(),
        policy,
        replaces_builtin: builtin.is_some(),
        location: entry.location(),
    })
}

/// The keys that are true in `policy` and make it stricter.
fn demands(policy: &ChannelPolicy<'_>) -> Vec<&'static str> {
    let flags = [
        ("require_auth", policy.require_auth),
        ("block_mutating", policy.block_mutating),
        ("require_rule", policy.require_rule),
        ("require_confirmation_for_mutating", policy.require_confirmation_for_mutating),
        ("consent_required", policy.consent_required),
    ];
    flags.into_iter().filter_map(|(flag, demanded)| demanded.then_some(flag)).collect()
}
