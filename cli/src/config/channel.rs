//! `[channels.NAME]`: what holds for calls that come through a channel.

use std::collections::BTreeMap;

use callgate_core::name::check_label;

use super::decode::{Entry, Key, Keys};
use super::source::Location;

/// A channel as the file states it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    /// The channel's name.
    pub name: String,
    /// Whether a call without a principal is refused. True unless the file says otherwise, so that an empty table opens
    /// nothing (invariant F2).
    pub require_auth: bool,
    /// Whether the channel is trusted with every tool that no scope, rule or block refuses.
    pub allow_all: bool,
    /// Whether tools that change something are refused.
    pub block_mutating: bool,
    /// Whether a call of a tool that changes something has to be confirmed.
    pub require_confirmation_for_mutating: bool,
    /// Whether a call that has to be confirmed needs the consent of its principal as a signature or a grant.
    pub consent_required: bool,
    /// Whether a built-in channel has this name, which this one replaces whole.
    pub replaces_builtin: bool,
    /// Where the file states it.
    pub location: Location,
}

/// The names of the built-in channels, and the flags by which each is stricter than a channel that only has its name.
pub(super) const BUILTIN: [(&str, &[&str]); 5] = [
    ("cli", &[]),
    ("tui", &[]),
    ("mcp", &["require_auth"]),
    ("web", &["require_auth"]),
    ("telegram", &["require_confirmation_for_mutating"]),
];

pub(super) static KEYS: Keys = Keys {
    table: "channels.NAME",
    keys: &[
        Key {
            name: "require_auth",
            takes: "true or false",
            example: "true",
        },
        Key {
            name: "allow_all",
            takes: "true or false",
            example: "false",
        },
        Key {
            name: "block_mutating",
            takes: "true or false",
            example: "true",
        },
        Key {
            name: "require_confirmation_for_mutating",
            takes: "true or false",
            example: "true",
        },
        Key {
            name: "consent_required",
            takes: "true or false",
            example: "false",
        },
    ],
};

pub(super) fn read(channels: &Entry<'_>) -> BTreeMap<String, Channel> {
    channels
        .named()
        .into_iter()
        .filter_map(|(name, entry)| Some((name.to_owned(), channel(name, &entry)?)))
        .collect()
}

fn channel(name: &str, entry: &Entry<'_>) -> Option<Channel> {
    let named = entry.check_key(
        name,
        check_label,
        "a channel's name is 1 to 128 of A-Z a-z 0-9 _ . : / -",
    );
    let table = entry.table(&KEYS)?;
    let builtin = BUILTIN.iter().find(|(builtin, _)| *builtin == name);
    // A table that replaces a built-in channel could drop a protection without a word. It has to say that it does.
    for flag in builtin.map_or(&[][..], |(_, strict)| strict) {
        if *flag != "require_auth" && table.get(flag).is_none() {
            table.report(
                format!("`channels.{name}` replaces the built-in channel, which has {flag} = true, and doesn't mention it"),
                Some(format!("add `{flag} = true` to keep it, or `{flag} = false` to drop it")),
            );
        }
    }
    let channel = Channel {
        name: name.to_owned(),
        require_auth: table.boolean("require_auth", true),
        allow_all: table.boolean("allow_all", false),
        block_mutating: table.boolean("block_mutating", false),
        require_confirmation_for_mutating: table
            .boolean("require_confirmation_for_mutating", false),
        consent_required: table.boolean("consent_required", false),
        replaces_builtin: builtin.is_some(),
        location: entry.location(),
    };
    if channel.allow_all && channel.block_mutating {
        table.report(
            format!("`channels.{name}` has both allow_all and block_mutating"),
            Some("allow_all trusts the channel with every tool and block_mutating refuses some: keep one".into()),
        );
    }
    if channel.replaces_builtin {
        table.note(format!(
            "[channels.{name}] replaces the built-in channel `{name}` whole"
        ));
    }
    if !channel.require_auth {
        table.note(format!(
            "channel `{name}` takes calls from callers that nobody knows (require_auth = false)"
        ));
    }
    named.then_some(channel)
}
