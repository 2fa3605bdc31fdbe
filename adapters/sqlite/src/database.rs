//! The file, and the one connection that this process has to it.

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use callgate_core::audit::chain::Head;
use callgate_std::private_file::{self, FileError, Identity};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Params, Row, TransactionBehavior};

use crate::error::DatabaseError;
use crate::schema;
use crate::turn::{Line, Passed, Turn};

/// How long a step waits for other processes where a host says nothing else.
const WAIT: Duration = Duration::from_secs(5);
/// How often it looks whether they are done. Who has much to do leaves the file to others for moments only, and whoever looks seldom
/// would miss them all.
const LOOK: Duration = Duration::from_millis(1);

/// How many statements are kept ready: more than there are.
const STATEMENTS: usize = 128;

/// Opening is one at a time in a process: closing the descriptor of a new file would take the locks that another connection
/// of this process has on it.
static OPENING: Mutex<()> = Mutex::new(());

/// A file of the gate's stores.
///
/// It has mode 0600, as the files have that SQLite puts beside it; one that others may write to, of another owner, behind a symbolic
/// link, of something else or of an unknown version is not used. All steps of a process take turns at one connection, in the order in
/// which they come; it is opened again after an error of the system, because what its cache holds is unknown then. Steps that wait for
/// their turn share one transaction and one wait for the disk, and each is answered when that is over.
///
/// Only a file system of this machine will do: SQLite's shared memory does not reach over a network.
pub struct Database {
    path: PathBuf,
    wait: Duration,
    /// The file that was opened. Its path may come to lead elsewhere, where nobody would find what is written.
    identity: Identity,
    line: Box<Line>,
    last_error: Mutex<Option<String>>,
    #[cfg(test)]
    pub(crate) faults: crate::faults::Faults,
}

impl Database {
    /// Opens the file, or makes one. Its directory is made as well.
    ///
    /// # Errors
    /// The file cannot be used; the message says what to do. A file of an unknown version or of something else is left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Self::open_with(path, WAIT)
    }

    /// The same, with steps that wait for other processes at most this long.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_with(path: impl AsRef<Path>, wait: Duration) -> Result<Self, DatabaseError> {
        let path = path.as_ref();
        private_file::prepare_directory(path)?;
        let path = resolved(path)?;
        let alone = lock(&OPENING);
        private_file::make(&path)?;
        drop(alone);
        let database = Self {
            identity: private_file::look_at(&path)?,
            path,
            wait,
            line: Box::default(),
            last_error: Mutex::default(),
            #[cfg(test)]
            faults: crate::faults::Faults::default(),
        };
        let connection = database.connect()?;
        if let Some(mut turn) = database.line.turn() {
            turn.put_back(connection);
        }
        Ok(database)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the last step that failed ran into, for people; `None` when none has failed. The gate itself is told only that a store
    /// did not answer.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        lock(&self.last_error).clone()
    }

    /// A step that is alone among all threads and processes, and all or nothing. When this returns `Ok`, it is on the disk; otherwise
    /// nothing of it is, or that is unknown. What it read or found wrong, too, is answered when the transaction is over that it shares
    /// with those who waited behind it.
    ///
    /// A `rule` that fails leaves the others alone, unless SQLite failed: then all that share the transaction have failed.
    pub(crate) fn step<R>(&self, rule: impl FnOnce(&Link<'_>) -> Result<R, DatabaseError>) -> Result<R, DatabaseError> {
        let Some(mut turn) = self.line.turn() else { return Err(self.shared("it ended without a word".into())) };
        let is_shared = turn.is_shared();
        let result = if is_shared { self.join(&mut turn, rule) } else { self.begin(&mut turn, rule) };
        let Some(connection) = turn.take_connection() else {
            if let Err(error) = &result {
                turn.tell(&Err(error.to_string().into()));
            }
            return result;
        };
        let is_over = connection.is_autocommit();
        turn.put_back(connection);
        if is_over {
            return result;
        }
        match turn.pass_on(result.is_ok()) {
            Passed::On(None) => result,
            Passed::On(Some(later)) => later.wait().map_err(|said| self.shared(said)).and(result),
            Passed::Not(turn) => self.commit(turn).and(result),
        }
    }

    /// Begins a transaction with a step. Where the step fails there is none.
    fn begin<R>(
        &self,
        turn: &mut Turn<'_>,
        rule: impl FnOnce(&Link<'_>) -> Result<R, DatabaseError>,
    ) -> Result<R, DatabaseError> {
        // Taken out, so that a panic on the way closes it, and with it the transaction.
        let taken = turn.take_connection();
        self.check_file()?;
        let connection = match taken {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let begun = self.around(|| until_free(&connection, turn.since + self.wait));
        match begun.map_err(|error| self.explain(error)) {
            Err(busy @ DatabaseError::Busy { .. }) => {
                turn.put_back(connection);
                return Err(busy);
            }
            begun => begun?,
        }
        let link = Link::new(&connection, self);
        link.check_version()?;
        let result = rule(&link);
        let is_sound = link.is_sound();
        if result.is_ok() || is_sound && self.around(|| connection.execute_batch("ROLLBACK")).is_ok() {
            turn.put_back(connection);
        }
        result
    }

    /// Adds a step to the transaction of others. Where the step fails it is taken back; where that fails, the connection is gone.
    fn join<R>(
        &self,
        turn: &mut Turn<'_>,
        rule: impl FnOnce(&Link<'_>) -> Result<R, DatabaseError>,
    ) -> Result<R, DatabaseError> {
        let Some(connection) = turn.take_connection() else { return Err(self.shared("it was gone".into())) };
        if let Err(moved) = self.check_file() {
            turn.put_back(connection);
            return Err(moved);
        }
        let link = Link::new(&connection, self);
        link.execute("SAVEPOINT step", [])?;
        let result = rule(&link);
        if result.is_ok() {
            link.execute("RELEASE step", [])?;
            turn.put_back(connection);
        } else if link.is_sound() && link.run("ROLLBACK TO step; RELEASE step").is_ok() {
            turn.put_back(connection);
        }
        result
    }

    /// Ends a transaction for all that have a part in it.
    fn commit(&self, mut turn: Turn<'_>) -> Result<(), DatabaseError> {
        let Some(connection) = turn.take_connection() else { return Err(self.shared("it was gone".into())) };
        #[cfg(test)]
        self.faults.commits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match self.around(|| connection.execute_batch("COMMIT")) {
            Ok(()) => {
                turn.put_back(connection);
                turn.tell(&Ok(()));
                Ok(())
            }
            Err(error) => {
                let error = self.explain(error);
                turn.tell(&Err(error.to_string().into()));
                Err(error)
            }
        }
    }

    fn shared(&self, reason: Arc<str>) -> DatabaseError {
        DatabaseError::Shared { path: self.path.clone(), reason }
    }

    /// How many steps are under way, or wait for their turn.
    #[cfg(test)]
    pub(crate) fn in_line(&self) -> usize {
        self.line.len()
    }

    fn check_file(&self) -> Result<(), DatabaseError> {
        if private_file::look_at(&self.path)? == self.identity {
            Ok(())
        } else {
            Err(DatabaseError::Moved { path: self.path.clone() })
        }
    }

    /// One operation of the database; the place where tests have them fail.
    fn around<R>(&self, operation: impl FnOnce() -> rusqlite::Result<R>) -> rusqlite::Result<R> {
        #[cfg(test)]
        return self.faults.around(operation);
        #[cfg(not(test))]
        operation()
    }

    fn connect(&self) -> Result<Connection, DatabaseError> {
        let started = Instant::now();
        loop {
            match self.try_connect() {
                // SQLite does not wait by itself where two processes change a new file's mode at once.
                Err(DatabaseError::Busy { .. }) if started.elapsed() < self.wait => {
                    thread::sleep(LOOK);
                }
                result => return result,
            }
        }
    }

    fn try_connect(&self) -> Result<Connection, DatabaseError> {
        let _alone = lock(&OPENING);
        let flags =
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let explain = |error| self.explain(error);
        let mut connection = self.around(|| Connection::open_with_flags(&self.path, flags)).map_err(explain)?;
        // SQLite itself looks ever more seldom, and wakes nobody.
        connection.busy_timeout(Duration::ZERO).map_err(explain)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(explain)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(explain)?;
        let link = Link::new(&connection, self);
        // Nothing is written before it is known whose file it is.
        link.whose()?;
        let mode: String = link.one("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(self.damaged("it cannot be used in WAL mode"));
        }
        // On macOS, waiting for the disk is more than `fsync`. Content that is let go of is overwritten.
        link.run(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; PRAGMA secure_delete = ON; \
             PRAGMA cell_size_check = ON;",
        )?;
        if link.one("PRAGMA synchronous", [], |row| row.get::<_, i64>(0))? != 2 {
            return Err(self.damaged("it cannot be used with every commit on the disk"));
        }
        if link.whose()? == Whose::Nobodys {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
            let link = Link::new(&transaction, self);
            // Another process may have been here meanwhile.
            if link.whose()? == Whose::Nobodys {
                link.run(schema::CREATE)?;
                link.run(&format!(
                    "PRAGMA application_id = {}; PRAGMA user_version = {};",
                    schema::APPLICATION,
                    schema::VERSION
                ))?;
            }
            self.around(|| transaction.commit()).map_err(explain)?;
        }
        self.check_file()?;
        Ok(connection)
    }

    /// For the gate a failure is a fault; people hear of it through `tracing` and [`Database::last_error`].
    pub(crate) fn report(&self, error: &DatabaseError) {
        let error = error.to_string();
        tracing::error!(error, "a store in SQLite failed");
        *lock(&self.last_error) = Some(error);
    }

    pub(crate) fn damaged(&self, reason: &'static str) -> DatabaseError {
        DatabaseError::Damaged { path: self.path.clone(), reason }
    }

    fn explain(&self, error: rusqlite::Error) -> DatabaseError {
        let path = self.path.clone();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                DatabaseError::Busy { path, waited: self.wait }
            }
            Some(ErrorCode::NotADatabase) => DatabaseError::Foreign { path },
            Some(ErrorCode::DatabaseCorrupt) => DatabaseError::Damaged { path, reason: "SQLite finds it malformed" },
            _ => DatabaseError::Sqlite { path, source: error },
        }
    }
}

/// Begins a transaction that writes, when other processes are done or the time is over.
fn until_free(connection: &Connection, until: Instant) -> rusqlite::Result<()> {
    loop {
        let begun = connection.execute_batch("BEGIN IMMEDIATE");
        let is_busy = begun.as_ref().is_err_and(|error| {
            matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
        });
        if !is_busy || Instant::now() >= until {
            return begun;
        }
        thread::sleep(LOOK);
    }
}

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Ours,
    Nobodys,
}

/// The connection within a step.
pub(crate) struct Link<'c> {
    connection: &'c Connection,
    database: &'c Database,
    /// Whether SQLite failed in it: what the transaction did is unknown then.
    failed: Cell<bool>,
}

impl<'c> Link<'c> {
    const fn new(connection: &'c Connection, database: &'c Database) -> Self {
        Self { connection, database, failed: Cell::new(false) }
    }

    const fn is_sound(&self) -> bool {
        !self.failed.get()
    }

    pub(crate) fn damaged(&self, reason: &'static str) -> DatabaseError {
        self.database.damaged(reason)
    }

    pub(crate) fn truncated(&self, recorded: Head) -> DatabaseError {
        DatabaseError::Truncated { path: self.database.path.clone(), recorded }
    }

    /// Runs one statement, and says how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, parameters: impl Params) -> Result<usize, DatabaseError> {
        self.operation(|connection| connection.prepare_cached(sql)?.execute(parameters))
    }

    /// The only row of a query.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        self.operation(|connection| connection.prepare_cached(sql)?.query_row(parameters, read))
    }

    /// Goes through the rows of a query until `each` has had enough.
    pub(crate) fn each(
        &self,
        sql: &str,
        parameters: impl Params,
        mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<bool>,
    ) -> Result<(), DatabaseError> {
        self.operation(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query(parameters)?;
            while let Some(row) = rows.next()? {
                if !each(row)? {
                    break;
                }
            }
            Ok(())
        })
    }

    pub(crate) fn run(&self, sql: &str) -> Result<(), DatabaseError> {
        self.operation(|connection| connection.execute_batch(sql))
    }

    fn operation<R>(&self, operation: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R, DatabaseError> {
        self.database.around(|| operation(self.connection)).map_err(|error| {
            // A value that is not what it should be leaves the transaction as it was.
            self.failed.set(self.failed.get() || error.sqlite_error_code().is_some());
            self.database.explain(error)
        })
    }

    fn check_version(&self) -> Result<(), DatabaseError> {
        match self.whose()? {
            Whose::Ours => Ok(()),
            Whose::Nobodys => Err(self.damaged("its content is gone")),
        }
    }

    fn whose(&self) -> Result<Whose, DatabaseError> {
        const SQL: &str = "SELECT (SELECT application_id FROM pragma_application_id), \
                           (SELECT user_version FROM pragma_user_version), EXISTS (SELECT 1 FROM sqlite_schema)";
        let found: (i64, i64, bool) = self.one(SQL, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let path = || self.database.path.clone();
        match found {
            (schema::APPLICATION, schema::VERSION, true) => Ok(Whose::Ours),
            (schema::APPLICATION, version, _) => Err(DatabaseError::UnknownVersion { path: path(), version }),
            (0, 0, false) => Ok(Whose::Nobodys),
            _ => Err(DatabaseError::Foreign { path: path() }),
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The path with links among its directories resolved; SQLite is told to follow none.
fn resolved(path: &Path) -> Result<PathBuf, FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), doing: "open", source };
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or_else(|| io(std::io::ErrorKind::InvalidFilename.into()))?;
    Ok(fs::canonicalize(directory).map_err(io)?.join(name))
}

/// A lock that a panic elsewhere cannot take away (invariant X3): what is behind the locks of this crate is whole at each point
/// at which it could unwind.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
