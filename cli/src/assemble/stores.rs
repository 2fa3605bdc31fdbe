//! What waits, what is spent and what was recorded, in a database or in files of text.

use std::path::Path;
use std::sync::Arc;

use callgate_core::audit::chain::Head;
use callgate_core::limit::{LimitKey, Quota};
use callgate_core::time::Timestamp;
use callgate_sqlite::{Database, SqliteAudit, SqliteConfirmations, SqliteJournal, SqliteLimiter};
use callgate_std::audit::{JsonlAudit, LostCall, Retention, SharedAudit};
use callgate_std::clock::SystemClock;
use callgate_std::confirmations::{Capacity, ConfirmationStore, FILE_CAPACITY, FileConfirmations};
use callgate_std::entropy::OsEntropy;
use callgate_std::limiter::{FileLimiter, RateLimiter};

use super::AssembleError;
use crate::config::Keeper;

/// The database that was opened last: where both stores are in one file, they share one connection to it.
#[derive(Default)]
pub(super) struct Databases(Option<Arc<Database>>);

impl Databases {
    fn open(&mut self, file: &Path) -> Result<Arc<Database>, callgate_sqlite::DatabaseError> {
        if let Some(database) = self.0.as_ref().filter(|database| same(database.path(), file)) {
            return Ok(Arc::clone(database));
        }
        let database = Arc::new(Database::open(file)?);
        self.0 = Some(Arc::clone(&database));
        Ok(database)
    }
}

/// Whether two paths lead to one file. A path that leads nowhere yet leads to no file that is open.
fn same(open: &Path, file: &Path) -> bool {
    open == file || std::fs::canonicalize(file).is_ok_and(|file| file == open)
}

/// The audit log.
#[derive(Clone)]
pub(crate) enum Log {
    Database(Arc<SqliteAudit>),
    Text(Arc<JsonlAudit>),
}

impl Log {
    pub(super) fn open(file: &Path, databases: &mut Databases) -> Result<Self, AssembleError> {
        Ok(match Keeper::of(file) {
            Keeper::Text => Self::Text(Arc::new(JsonlAudit::open(file)?)),
            Keeper::Database => {
                let database = databases.open(file).map_err(AssembleError::AuditDatabase)?;
                Self::Database(Arc::new(SqliteAudit::on(database).map_err(AssembleError::AuditDatabase)?))
            }
        })
    }

    /// The log as a sink.
    pub(super) fn sink(&self) -> SharedAudit {
        match self {
            Self::Database(log) => log.clone(),
            Self::Text(log) => log.clone(),
        }
    }

    /// What it ran into last.
    pub(super) fn last_error(&self) -> Option<String> {
        match self {
            Self::Database(log) => log.database().last_error(),
            Self::Text(log) => log.last_error(),
        }
    }

    /// Closes the calls that were not heard of within their lease.
    ///
    /// # Errors
    /// The log can't be used.
    pub(super) fn reap(&self, now: Timestamp) -> Result<Vec<LostCall>, AssembleError> {
        Ok(match self {
            Self::Database(log) => log.reap(now).map_err(AssembleError::AuditDatabase)?,
            Self::Text(log) => log.reap(now)?,
        })
    }

    /// Puts it aside as a segment.
    ///
    /// # Errors
    /// The log can't be used.
    pub(super) fn rotate(&self, now: Timestamp) -> Result<Option<Head>, AssembleError> {
        Ok(match self {
            Self::Database(log) => log.rotate(now).map_err(AssembleError::AuditDatabase)?,
            Self::Text(log) => log.rotate()?,
        })
    }

    /// Removes old segments.
    ///
    /// # Errors
    /// The log can't be used.
    pub(super) fn retain(&self, retention: Retention, now: Timestamp) -> Result<Option<Head>, AssembleError> {
        Ok(match self {
            Self::Database(log) => log.retain(retention, now).map_err(AssembleError::AuditDatabase)?,
            Self::Text(log) => log.retain(retention)?,
        })
    }

    /// How many bytes it has, without its segments.
    ///
    /// # Errors
    /// The log can't be used.
    pub(super) fn bytes(&self) -> Result<u64, AssembleError> {
        match self {
            Self::Database(log) => log.bytes().map_err(AssembleError::AuditDatabase),
            Self::Text(log) => Ok(log.bytes()),
        }
    }

    /// Where it ends, as far as this process knows.
    pub(super) fn head(&self) -> Head {
        match self {
            Self::Database(log) => log.head(),
            Self::Text(log) => log.head(),
        }
    }

    /// Writes what waits to be written; says why it can't.
    pub(super) fn flush(&self) -> Option<String> {
        match self {
            Self::Database(log) => log.flush().err().map(|error| error.to_string()),
            Self::Text(log) => log.flush().err().map(|error| error.to_string()),
        }
    }
}

/// The calls that wait for a yes.
#[derive(Clone)]
pub(crate) enum Waiting {
    Database(Arc<SqliteConfirmations>),
    Text(Arc<FileConfirmations>),
}

impl Waiting {
    /// Opens them. `callgate approvals` answers, so approvers can be reached.
    pub(super) fn open(file: &Path, pending: usize, databases: &mut Databases) -> Result<Self, AssembleError> {
        let (clock, entropy) = (SystemClock::shared(), OsEntropy::shared());
        Ok(match Keeper::of(file) {
            Keeper::Text => {
                let capacity = Capacity { entries: pending, per_principal: pending, ..FILE_CAPACITY };
                let store = FileConfirmations::open_with(file, capacity, clock, entropy)?;
                store.attach_approvers(true);
                Self::Text(Arc::new(store))
            }
            Keeper::Database => {
                let capacity = Capacity { entries: pending, per_principal: pending, ..Capacity::DEFAULT };
                let database = databases.open(file).map_err(AssembleError::ConfirmationDatabase)?;
                let store = SqliteConfirmations::with(database, capacity, clock, entropy);
                store.attach_approvers(true);
                Self::Database(Arc::new(store))
            }
        })
    }

    /// Operations and their results, which only a database keeps: with files of text calls of operations are refused.
    pub(crate) fn journal(&self) -> Option<Arc<SqliteJournal>> {
        match self {
            Self::Database(store) => Some(Arc::new(SqliteJournal::on(Arc::clone(store.database())))),
            Self::Text(_) => None,
        }
    }

    /// As the gate takes them.
    pub(crate) fn store(&self) -> Arc<dyn ConfirmationStore> {
        match self {
            Self::Database(store) => store.clone(),
            Self::Text(store) => store.clone(),
        }
    }

    /// What they ran into last.
    pub(crate) fn last_error(&self) -> Option<String> {
        match self {
            Self::Database(store) => store.database().last_error(),
            Self::Text(store) => store.last_error(),
        }
    }
}

/// How much of each budget is spent.
#[derive(Clone)]
pub(crate) enum Budgets {
    Database(Arc<SqliteLimiter>),
    Text(Arc<FileLimiter>),
}

impl Budgets {
    /// Opens them, with the quota of each.
    pub(super) fn open(
        file: &Path,
        quotas: impl Fn(&LimitKey<'_>) -> Quota + Send + Sync + 'static,
        databases: &mut Databases,
    ) -> Result<Self, AssembleError> {
        Ok(match Keeper::of(file) {
            Keeper::Text => Self::Text(Arc::new(FileLimiter::open(file, quotas)?)),
            Keeper::Database => {
                let database = databases.open(file).map_err(AssembleError::LimitDatabase)?;
                Self::Database(Arc::new(SqliteLimiter::on(database, quotas).map_err(AssembleError::LimitDatabase)?))
            }
        })
    }

    /// As the gate takes them.
    pub(crate) fn limiter(&self) -> Arc<dyn RateLimiter> {
        match self {
            Self::Database(limiter) => limiter.clone(),
            Self::Text(limiter) => limiter.clone(),
        }
    }

    /// What they ran into last.
    pub(crate) fn last_error(&self) -> Option<String> {
        match self {
            Self::Database(limiter) => limiter.database().last_error(),
            Self::Text(limiter) => limiter.last_error(),
        }
    }
}
