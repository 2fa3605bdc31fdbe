//! A ledger of nonces in the file.

use std::fmt;
use std::sync::Arc;

use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use callgate_std::confirmations::{Capacity, Guarantee, StoreFault};
use callgate_std::nonces::NonceLedger;

use crate::database::Database;
use crate::error::DatabaseError;
use crate::ticket::{from_millis, to_millis};

/// The table comes with the first nonce: a file of before is used as it is.
const CREATE: &str = "
CREATE TABLE IF NOT EXISTS nonces (
    nonce BLOB PRIMARY KEY NOT NULL CHECK (length(nonce) = 32),
    until_ms INTEGER NOT NULL CHECK (until_ms >= 0)
) STRICT, WITHOUT ROWID";

/// A ledger of nonces in SQLite. A nonce is spent in one transaction, and what was answered outlives the process and the power. Its time
/// is that of the confirmations in the same file, and never goes back (invariant C2).
pub struct SqliteNonces(Arc<Database>);

impl SqliteNonces {
    /// The ledger in this file.
    #[must_use]
    pub const fn on(database: Arc<Database>) -> Self {
        Self(database)
    }

    fn try_spend(&self, nonce: Digest, now: Timestamp, until: Timestamp) -> Result<bool, DatabaseError> {
        self.0.step(|link| {
            link.execute(CREATE, [])?;
            let seen = link.one("SELECT time_ms FROM confirmations", [], |row| row.get(0))?;
            let now = from_millis(seen).map_err(|reason| link.damaged(reason))?.max(now);
            if until <= now {
                return Ok(false);
            }
            let sweep = "DELETE FROM nonces WHERE nonce IN (SELECT nonce FROM nonces WHERE until_ms <= ?1 LIMIT ?2)";
            let most = i64::try_from(Capacity::SWEEP).unwrap_or(i64::MAX);
            if link.execute(sweep, (to_millis(now), most))? > 0 {
                link.execute("UPDATE confirmations SET time_ms = ?1", [to_millis(now)])?;
            }
            let spent = link.execute(
                "INSERT INTO nonces (nonce, until_ms) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                (nonce.as_bytes(), to_millis(until)),
            )?;
            Ok(spent == 1)
        })
    }
}

impl NonceLedger for SqliteNonces {
    fn guarantee(&self) -> Guarantee {
        Guarantee::ALL
    }

    fn spend(&self, nonce: Digest, now: Timestamp, until: Timestamp) -> Result<bool, StoreFault> {
        self.try_spend(nonce, now, until).map_err(|error| {
            self.0.report(&error);
            StoreFault
        })
    }
}

impl fmt::Debug for SqliteNonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteNonces").field("path", &self.0.path()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix_millis(seconds * 1_000)
    }

    fn nonce(text: &str) -> Digest {
        Digest::of_bytes(text.as_bytes())
    }

    #[test]
    fn a5_a_nonce_is_spent_once_whoever_opens_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let open = || SqliteNonces::on(Arc::new(Database::open(dir.path().join("gate.db")).unwrap()));
        let (one, other) = (open(), open());
        assert_eq!(one.spend(nonce("a"), at(10), at(20)), Ok(true));
        assert_eq!(other.spend(nonce("a"), at(10), at(20)), Ok(false), "A5");
        assert_eq!(one.spend(nonce("late"), at(20), at(20)), Ok(false), "A10: at the moment itself, too");
        assert_eq!(one.spend(nonce("b"), at(100), at(120)), Ok(true));
        assert_eq!(open().spend(nonce("a"), at(10), at(20)), Ok(false), "C2");
        assert_eq!(open().spend(nonce("b"), at(119), at(120)), Ok(false), "C3");
        let won = std::thread::scope(|scope| {
            let spend = || open().spend(nonce("one"), at(110), at(130));
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(spend)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|spent| *spent == Ok(true)).count()
        });
        assert_eq!(won, 1);
    }

    // F1: an operation that fails spends nothing that anybody could count on.
    #[test]
    fn f1_a_file_that_is_gone_spends_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gate.db");
        let ledger = SqliteNonces::on(Arc::new(Database::open(&path).unwrap()));
        std::fs::rename(&path, dir.path().join("away")).unwrap();
        assert_eq!(ledger.spend(nonce("a"), at(10), at(20)), Err(StoreFault));
    }
}
