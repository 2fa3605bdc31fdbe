//! `[audit]`: how the log is kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_core::name::check_label;

use super::decode::{Entry, Key, Keys, Table};
use super::settings;

/// How the log is kept, beside where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keeping {
    /// How often a server looks after its stores: closes what was not heard of, as a call does when it starts.
    pub upkeep: Duration,
    /// How many bytes the log may have before it is put aside as a segment.
    pub max_size: Option<u64>,
    /// How many segments are kept.
    pub keep_segments: Option<u32>,
    /// For how long a segment is kept after its last record.
    pub keep_for: Option<Duration>,
    /// The checkpoints that are made by themselves.
    pub checkpoint: Option<Checkpoints>,
}

/// Checkpoints that are made by themselves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoints {
    /// The private key that signs them.
    pub key: PathBuf,
    /// Where the last one goes, or all of them.
    pub to: PathBuf,
    /// Whether `to` is a directory, in which each has a file of its own.
    pub keeps_all: bool,
    /// How old the last one may get, if there are records since.
    pub every: Duration,
    /// After how many records there is another one in any case.
    pub every_records: Option<u32>,
    /// The name of the log in them.
    pub log: Option<String>,
}

impl Default for Keeping {
    fn default() -> Self {
        Self { upkeep: Duration::from_secs(60), max_size: None, keep_segments: None, keep_for: None, checkpoint: None }
    }
}

pub(super) static KEYS: Keys = Keys {
    table: "audit",
    keys: &[
        Key { name: "file", takes: "a path in quotes", example: "\".callgate/gate.db\"" },
        Key { name: "upkeep", takes: "a duration in quotes, such as \"60s\"", example: "\"60s\"" },
        Key { name: "max_size", takes: "a size in quotes, such as \"64MiB\"", example: "\"64MiB\"" },
        Key { name: "keep_segments", takes: "a whole number", example: "30" },
        Key { name: "keep_for", takes: "a duration in quotes, such as \"2160h\"", example: "\"2160h\"" },
        Key {
            name: "checkpoint",
            takes: "a table",
            example: "{ key = \"checkpoint_key\", to = \"/srv/elsewhere/gate.checkpoint\" }",
        },
    ],
};

pub(super) static CHECKPOINT: Keys = Keys {
    table: "audit.checkpoint",
    keys: &[
        Key { name: "key", takes: "a path in quotes", example: "\"checkpoint_key\"" },
        Key { name: "to", takes: "a path in quotes", example: "\"/srv/elsewhere/checkpoints/\"" },
        Key { name: "every", takes: "a duration in quotes, such as \"1h\"", example: "\"1h\"" },
        Key { name: "every_records", takes: "a whole number", example: "1000" },
        Key { name: "log", takes: "a name in quotes", example: "\"gate-1\"" },
    ],
};

const HOUR: Duration = Duration::from_secs(3600);

/// Reads what the table says beside `file`.
pub(super) fn read(file: &Table<'_>, dir: &Path) -> Keeping {
    let default = Keeping::default();
    let Some(table) = file.get("audit").and_then(|entry| entry.table(&KEYS)) else {
        return default;
    };
    let upkeep = Duration::from_secs(1)..=24 * HOUR;
    Keeping {
        upkeep: table.get("upkeep").and_then(|entry| entry.duration(upkeep)).unwrap_or(default.upkeep),
        max_size: table.get("max_size").and_then(|entry| entry.size(4 << 10..=16 << 30)),
        keep_segments: table.get("keep_segments").and_then(|entry| entry.natural(0..=1_000_000)),
        keep_for: table.get("keep_for").and_then(|entry| entry.duration(HOUR..=876_000 * HOUR)),
        checkpoint: table.get("checkpoint").and_then(|entry| checkpoints(&entry, dir)),
    }
}

fn checkpoints(entry: &Entry<'_>, dir: &Path) -> Option<Checkpoints> {
    let table = entry.table(&CHECKPOINT)?;
    let (key, to) = (table.require("key"), table.require("to"));
    let every = Duration::from_secs(1)..=24 * 366 * HOUR;
    let every = table.get("every").map_or(Some(HOUR), |entry| entry.duration(every));
    // What is wrong was reported, and there is no configuration then.
    let every_records = table.get("every_records").and_then(|entry| entry.natural(1..=u32::MAX));
    let log = table.get("log").and_then(|entry| entry.name(check_label));
    let to = to?;
    Some(Checkpoints {
        key: settings::path(&key?, dir)?,
        keeps_all: to.value().as_str().is_some_and(|text| text.ends_with('/')),
        to: settings::path(&to, dir)?,
        every: every?,
        every_records,
        log,
    })
}
