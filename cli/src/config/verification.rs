//! `[verification]`: tools with which agents ask people.

use std::time::Duration;

use callgate_core::name::check_scope;

use super::decode::{Entry, Key, Keys};

/// Whether there are such tools, and how they ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verification {
    /// Whether the tools are there.
    pub enabled: bool,
    /// The scope of whoever answers.
    pub scope: String,
    /// How long a request waits.
    pub ttl: Duration,
    /// How many people make a quorum.
    pub quorum: u8,
}

impl Default for Verification {
    fn default() -> Self {
        Self { enabled: false, scope: "verify".to_owned(), ttl: Duration::from_secs(3600), quorum: 3 }
    }
}

pub(super) static KEYS: Keys = Keys {
    table: "verification",
    keys: &[
        Key { name: "enabled", takes: "true or false", example: "true" },
        Key { name: "scope", takes: "a scope in quotes", example: "\"verify\"" },
        Key { name: "ttl", takes: "a duration in quotes, such as \"1h\"", example: "\"1h\"" },
        Key { name: "quorum", takes: "a whole number", example: "3" },
    ],
};

pub(super) fn read(entry: &Entry<'_>) -> Verification {
    let default = Verification::default();
    let Some(table) = entry.table(&KEYS) else {
        return default;
    };
    let ttl = Duration::from_secs(1)..=Duration::from_secs(30 * 24 * 3600);
    let quorum = table.get("quorum").and_then(|entry| entry.natural(2..=255));
    Verification {
        enabled: table.boolean("enabled", default.enabled),
        scope: table.get("scope").and_then(|entry| entry.name(check_scope)).unwrap_or(default.scope),
        ttl: table.get("ttl").and_then(|entry| entry.duration(ttl)).unwrap_or(default.ttl),
        quorum: quorum.and_then(|quorum| u8::try_from(quorum).ok()).unwrap_or(default.quorum),
    }
}
