//! What a file of the gate is kept as.

use std::path::Path;

/// The endings of names that make a file a database.
const DATABASE_EXTENSIONS: [&str; 3] = ["db", "sqlite", "sqlite3"];

/// What a file of the gate is kept as. Its name says it, so that a file is never read as what it is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever opens a file must know each")]
pub enum Keeper {
    /// An SQLite database, which processes share and which a loss of power does not harm.
    Database,
    /// A text: JSON for what waits, JSON Lines for the audit log.
    Text,
}

impl Keeper {
    /// What a file of this name is kept as: a database when it ends in `.db`, `.sqlite` or `.sqlite3`, else a text.
    #[must_use]
    pub fn of(file: &Path) -> Self {
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let database = DATABASE_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension));
        if database { Self::Database } else { Self::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_what_a_file_is_kept_as() {
        for name in ["gate.db", "a/b.SQLite", "x.sqlite3"] {
            assert_eq!(Keeper::of(Path::new(name)), Keeper::Database, "{name}");
        }
        for name in ["state.json", "audit.jsonl", "pending", ".db", "db", "gate.db.old", "gate.db/"] {
            let text = Keeper::of(Path::new(name)) == Keeper::Text;
            assert_eq!(text, name != "gate.db/", "{name}");
        }
    }
}
