//! `[audit]`: how the log is kept.

use std::time::Duration;

use super::decode::{Key, Keys, Table};

/// How the log is kept, beside where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keeping {
    /// How often a server looks after its stores: closes what was not heard of, as a call does when it starts.
    pub upkeep: Duration,
}

impl Default for Keeping {
    fn default() -> Self {
        Self { upkeep: Duration::from_secs(60) }
    }
}

pub(super) static KEYS: Keys = Keys {
    table: "audit",
    keys: &[
        Key { name: "file", takes: "a path in quotes", example: "\".callgate/gate.db\"" },
        Key { name: "upkeep", takes: "a duration in quotes, such as \"60s\"", example: "\"60s\"" },
    ],
};

/// Reads what the table says beside `file`.
pub(super) fn read(file: &Table<'_>) -> Keeping {
    let default = Keeping::default();
    let Some(table) = file.get("audit").and_then(|entry| entry.table(&KEYS)) else {
        return default;
    };
    let upkeep = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    Keeping { upkeep: table.get("upkeep").and_then(|entry| entry.duration(upkeep)).unwrap_or(default.upkeep) }
}
