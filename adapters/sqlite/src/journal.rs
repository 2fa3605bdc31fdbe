//! A journal of operations in the file.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use callgate_core::confirm::ReconcileError;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::{Now, StoreTime, Timestamp};
use callgate_std::clock::{SharedClock, SystemClock};
use callgate_std::confirmations::{Guarantee, Resolution, StoreFault};
use callgate_std::journal::{
    FinishOperation, Journal, JournalAnswer, JournalLimits, KeptReply, Operation, OperationRefusal, OperationRequest,
    OperationState, OperationView, PresentedOperation, Recalled, SettleError,
};
use rusqlite::{Row, params};

use crate::database::{Database, Link, lock};
use crate::error::DatabaseError;
use crate::ticket::{from_millis, to_millis};

/// The tables come with the first question: a file of before is used as it is. Counts are kept by triggers, in the transaction that
/// changes what they count; they are by principal, by tenant where there is one, and of all.
const CREATE: &str = "
CREATE TABLE journal (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    time_ms INTEGER NOT NULL CHECK (time_ms >= 0),
    operations INTEGER NOT NULL CHECK (operations >= 0),
    bytes INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;
INSERT INTO journal VALUES (1, 0, 0, 0);

CREATE TABLE operations (
    operation BLOB PRIMARY KEY NOT NULL CHECK (length(operation) = 32),
    state TEXT NOT NULL CHECK (state IN ('open', 'claimed', 'in_doubt', 'completed')),
    attempt INTEGER NOT NULL CHECK (attempt BETWEEN 1 AND 4294967295),
    since_ms INTEGER NOT NULL CHECK (since_ms >= 0),
    until_ms INTEGER CHECK (until_ms >= 0),
    tool_digest BLOB NOT NULL CHECK (length(tool_digest) = 32),
    args_digest BLOB NOT NULL CHECK (length(args_digest) = 32),
    principal_digest BLOB NOT NULL CHECK (length(principal_digest) = 32),
    id TEXT NOT NULL,
    tool TEXT NOT NULL,
    tenant TEXT,
    principal TEXT NOT NULL,
    request_id TEXT NOT NULL,
    proof TEXT,
    data TEXT,
    message TEXT,
    meta TEXT,
    meta_dropped INTEGER NOT NULL CHECK (meta_dropped IN (0, 1)),
    cut_bytes INTEGER CHECK (cut_bytes >= 0),
    cut_digest BLOB CHECK (length(cut_digest) = 32),
    bytes INTEGER NOT NULL CHECK (bytes >= 0),
    CHECK ((state = 'claimed') = (until_ms IS NOT NULL)),
    CHECK ((cut_bytes IS NULL) = (cut_digest IS NULL)),
    CHECK (data IS NULL OR state = 'completed')
) STRICT;
CREATE INDEX operations_settled ON operations (since_ms) WHERE state IN ('open', 'completed');
CREATE INDEX operations_claimed ON operations (until_ms) WHERE state = 'claimed';

CREATE TABLE operation_owners (
    owner BLOB PRIMARY KEY NOT NULL,
    operations INTEGER NOT NULL CHECK (operations >= 0)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER operation_claimed AFTER INSERT ON operations BEGIN
    UPDATE journal SET operations = operations + 1, bytes = bytes + NEW.bytes;
    INSERT INTO operation_owners VALUES (NEW.principal_digest, 1) ON CONFLICT DO UPDATE SET operations = operations + 1;
    INSERT INTO operation_owners SELECT CAST(NEW.tenant AS BLOB), 1 WHERE NEW.tenant IS NOT NULL
        ON CONFLICT DO UPDATE SET operations = operations + 1;
END;
CREATE TRIGGER operation_settled AFTER UPDATE OF bytes ON operations BEGIN
    UPDATE journal SET bytes = bytes + NEW.bytes - OLD.bytes;
END;
CREATE TRIGGER operation_forgotten AFTER DELETE ON operations BEGIN
    UPDATE journal SET operations = operations - 1, bytes = bytes - OLD.bytes;
    UPDATE operation_owners SET operations = operations - 1
        WHERE owner = OLD.principal_digest OR owner = CAST(OLD.tenant AS BLOB);
    DELETE FROM operation_owners WHERE operations = 0;
END;
";

/// What a row is read into; the result is read apart.
const COLUMNS: &str = "operation, state, attempt, since_ms, until_ms, tool_digest, args_digest, principal_digest, id, tool, tenant, \
                       principal, request_id, proof, data IS NOT NULL, bytes";

/// A journal in SQLite. Every step is one transaction, and what it answered outlives the process and the power (invariant J3).
///
/// The file holds results as they were delivered, secrets included, until they are forgotten; what SQLite overwrites then may stay for a
/// while in the file beside it whose name ends in `-wal`. It holds no arguments.
///
/// Its time is the wall clock's and never goes back; the latest is kept in the file, and while a process lives, what passed by its
/// monotonic clock has passed, so that leases end under a clock that was set back. One that is set forward ends leases and forgets results
/// early; neither has anything run that is not settled (invariants C2, J4).
pub struct SqliteJournal {
    database: Arc<Database>,
    limits: JournalLimits,
    clock: SharedClock,
    /// The time as this process sees it; none before its first step.
    time: Mutex<Option<StoreTime>>,
}

impl SqliteJournal {
    /// The journal in this file, with the system's clock and [`JournalLimits::DEFAULT`].
    #[must_use]
    pub fn on(database: Arc<Database>) -> Self {
        Self::with(database, JournalLimits::DEFAULT, SystemClock::shared())
    }

    /// The same with these bounds and this clock. The bounds are those of this process; what another one keeps counts.
    #[must_use]
    pub fn with(database: Arc<Database>, limits: JournalLimits, clock: SharedClock) -> Self {
        Self { database, limits, clock, time: Mutex::default() }
    }

    /// The file.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// One atomic step, at the time by it. A failure is reported.
    fn step<R>(&self, rule: impl FnOnce(&Shelf<'_>) -> Result<R, DatabaseError>) -> Result<R, StoreFault> {
        // The clock is a host's: it is read before anything is held.
        let reading = self.clock.now();
        let result = self.database.step(|link| {
            let made: bool =
                link.one("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'journal')", [], |row| row.get(0))?;
            if !made {
                link.run(CREATE)?;
            }
            let seen = link.one("SELECT time_ms FROM journal", [], |row| row.get(0))?;
            let seen = from_millis(seen).map_err(|reason| link.damaged(reason))?;
            let now = {
                let mut time = lock(&self.time);
                let mut passing = time.unwrap_or(StoreTime::start(reading));
                let mut now = passing.advance(reading);
                if now < seen {
                    // Another process was ahead: on from there.
                    now = seen;
                    passing = StoreTime::start(Now { wall: seen, ..reading });
                }
                *time = Some(passing);
                now
            };
            rule(&Shelf { link, now, limits: &self.limits })
        });
        result.map_err(|error| {
            self.database.report(&error);
            StoreFault
        })
    }
}

impl Journal for SqliteJournal {
    fn guarantee(&self) -> Guarantee {
        Guarantee::ALL
    }

    fn recall(&self, presented: &PresentedOperation) -> JournalAnswer {
        self.step(|shelf| {
            let kept = shelf.find(presented.key)?;
            let found = Operation::look(kept.as_ref().map(|kept| &kept.operation), presented, shelf.now);
            Ok(match found {
                Err(refusal) => Err(refusal),
                Ok(Recalled::Free(attempt)) => Ok(Recalled::Free(attempt)),
                Ok(Recalled::Completed(())) => shelf.result(presented.key)?,
            })
        })
    }

    fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer {
        self.step(|shelf| {
            let key = request.presented.key;
            let kept = shelf.find(key)?;
            let claimed =
                match Operation::claim(kept.as_ref().map(|kept| &kept.operation), &request.presented, shelf.now) {
                    Err(refusal) => return Ok(Err(refusal)),
                    Ok(None) => return shelf.result(key),
                    Ok(Some(claimed)) => claimed,
                };
            shelf.keep_time()?;
            if kept.is_some() {
                shelf.keep_state(key, &claimed)?;
                let sql = "UPDATE operations SET request_id = ?2, proof = NULL WHERE operation = ?1";
                shelf.link.execute(sql, params![key.as_bytes(), request.caller.request_id])?;
                return Ok(Ok(Recalled::Free(claimed.attempt)));
            }
            // One whose time is over is there until it is swept.
            shelf.link.execute("DELETE FROM operations WHERE operation = ?1", [key.as_bytes()])?;
            shelf.sweep(JournalLimits::SWEEP)?;
            if !shelf.has_room(request)? {
                shelf.sweep(usize::MAX)?;
                if !shelf.has_room(request)? {
                    return Ok(Err(OperationRefusal::Full));
                }
            }
            shelf.add(request, &claimed)?;
            Ok(Ok(Recalled::Free(claimed.attempt)))
        })
    }

    fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault> {
        self.step(|shelf| {
            // However long the call took: what it tells is taken as long as nobody has settled it.
            let Some(mut kept) = shelf.read(finish.key)? else { return Ok(Err(SettleError::Unknown)) };
            if let Err(error) = kept.operation.settle(finish.attempt, finish.effect, shelf.now) {
                return Ok(Err(error));
            }
            shelf.keep_time()?;
            shelf.keep_state(finish.key, &kept.operation)?;
            if let Some(result) = result
                && kept.operation.state == OperationState::Completed
                && result.bytes() <= shelf.limits.result_bytes
                && shelf.bytes()?.saturating_add(result.bytes()) <= shelf.limits.bytes
            {
                shelf.keep_result(finish.key, result)?;
            }
            Ok(Ok(()))
        })
    }

    fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.step(|shelf| {
            let sql = "SELECT operation FROM operations WHERE state = 'claimed' AND until_ms <= ?1 \
                       ORDER BY until_ms, operation LIMIT ?2";
            let mut lost = Vec::new();
            shelf.link.each(sql, params![to_millis(shelf.now), i64::try_from(max).unwrap_or(i64::MAX)], |row| {
                lost.push(Digest::from_bytes(row.get(0)?));
                Ok(true)
            })?;
            let mut reaped = Vec::new();
            for key in lost {
                let Some(mut kept) = shelf.read(key)? else { continue };
                if kept.operation.reap(shelf.now) {
                    shelf.keep_state(key, &kept.operation)?;
                    reaped.push(kept.view());
                }
            }
            if !reaped.is_empty() {
                shelf.keep_time()?;
            }
            Ok(reaped)
        })
    }

    fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        self.step(|shelf| {
            let Resolution { effect, proof, by } = resolution;
            let Some(mut kept) = shelf.read(key)? else { return Ok(Err(ReconcileError::Unknown)) };
            kept.operation.reap(shelf.now);
            let settled = kept.operation.reconcile(*effect, proof, by, kept.tenant.as_deref(), shelf.now);
            if let Err(error) = settled {
                return Ok(Err(error));
            }
            shelf.keep_time()?;
            shelf.keep_state(key, &kept.operation)?;
            shelf
                .link
                .execute("UPDATE operations SET proof = ?2 WHERE operation = ?1", params![key.as_bytes(), proof])?;
            kept.proof = Some((*proof).to_owned());
            Ok(Ok(kept.view()))
        })
    }

    fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.step(|shelf| {
            let sql = format!(
                "SELECT {COLUMNS} FROM operations WHERE tenant IS ?1 ORDER BY state <> 'in_doubt', since_ms, operation"
            );
            let mut views = Vec::new();
            let mut damaged = None;
            shelf.link.each(&sql, [viewer.tenant], |row| {
                match Kept::read(row)? {
                    Err(reason) => damaged = Some(reason),
                    Ok(kept) if shelf.is_over(&kept.operation) => {}
                    Ok(kept) if kept.is_visible_to(viewer) => views.push(kept.view()),
                    Ok(_) => {}
                }
                Ok(views.len() < max && damaged.is_none())
            })?;
            match damaged {
                Some(reason) => Err(shelf.link.damaged(reason)),
                None => Ok(views),
            }
        })
    }
}

impl fmt::Debug for SqliteJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteJournal").field("path", &self.database.path()).finish_non_exhaustive()
    }
}

/// The operations within a step.
struct Shelf<'s> {
    link: &'s Link<'s>,
    now: Timestamp,
    limits: &'s JournalLimits,
}

/// An operation as it is in the file.
struct Kept {
    key: Digest,
    operation: Operation,
    principal_digest: Digest,
    id: String,
    tool: String,
    tenant: Option<String>,
    principal: String,
    request_id: String,
    proof: Option<String>,
    has_result: bool,
}

impl Kept {
    /// The row, or what is wrong with it.
    fn read(row: &Row<'_>) -> rusqlite::Result<Result<Self, &'static str>> {
        let state: String = row.get(1)?;
        let (attempt, since, until): (i64, i64, Option<i64>) = (row.get(2)?, row.get(3)?, row.get(4)?);
        let operation = || -> Result<Operation, &'static str> {
            let state = match (state.as_str(), until) {
                ("open", None) => OperationState::Open,
                ("claimed", Some(until)) => OperationState::Claimed { until: from_millis(until)? },
                ("in_doubt", None) => OperationState::InDoubt,
                ("completed", None) => OperationState::Completed,
                _ => return Err("an operation is in no state that there is"),
            };
            let attempt = u32::try_from(attempt).ok().and_then(NonZeroU32::new).ok_or("an attempt has no number")?;
            let since = from_millis(since)?;
            let (tool, arguments) = (Digest::from_bytes([0; 32]), Digest::from_bytes([0; 32]));
            Ok(Operation { tool, arguments, attempt, state, since })
        };
        let operation = match operation() {
            Ok(operation) => operation,
            Err(reason) => return Ok(Err(reason)),
        };
        let digest = |column| row.get(column).map(Digest::from_bytes);
        Ok(Ok(Self {
            key: digest(0)?,
            operation: Operation { tool: digest(5)?, arguments: digest(6)?, ..operation },
            principal_digest: digest(7)?,
            id: row.get(8)?,
            tool: row.get(9)?,
            tenant: row.get(10)?,
            principal: row.get(11)?,
            request_id: row.get(12)?,
            proof: row.get(13)?,
            has_result: row.get(14)?,
        }))
    }

    fn is_visible_to(&self, viewer: &CallContext<'_>) -> bool {
        callgate_std::journal::is_visible_to(viewer, self.tenant.as_deref(), self.principal_digest)
    }

    fn view(&self) -> OperationView {
        OperationView {
            key: self.key,
            operation: self.id.clone(),
            state: self.operation.state,
            attempt: self.operation.attempt.get(),
            since: self.operation.since,
            tool: self.tool.clone(),
            tenant: self.tenant.clone(),
            principal: self.principal.clone(),
            request_id: self.request_id.clone(),
            has_result: self.has_result,
            proof: self.proof.clone(),
        }
    }
}

impl Shelf<'_> {
    fn is_over(&self, operation: &Operation) -> bool {
        operation.is_forgettable(self.now, self.limits.retention_ms)
    }

    fn read(&self, key: Digest) -> Result<Option<Kept>, DatabaseError> {
        let sql = format!("SELECT {COLUMNS} FROM operations WHERE operation = ?1");
        let mut found = None;
        self.link.each(&sql, [key.as_bytes()], |row| {
            found = Some(Kept::read(row)?);
            Ok(false)
        })?;
        found.transpose().map_err(|reason| self.link.damaged(reason))
    }

    /// The operation, unless its time is over: what is told must not hang on when it is forgotten.
    fn find(&self, key: Digest) -> Result<Option<Kept>, DatabaseError> {
        Ok(self.read(key)?.filter(|kept| !self.is_over(&kept.operation)))
    }

    fn result(&self, key: Digest) -> Result<Result<Recalled<KeptReply>, OperationRefusal>, DatabaseError> {
        let sql =
            "SELECT data, message, meta, meta_dropped, cut_bytes, cut_digest FROM operations WHERE operation = ?1";
        let kept = self.link.one(sql, [key.as_bytes()], |row| {
            let Some(data) = row.get(0)? else { return Ok(None) };
            let cut = match (row.get::<_, Option<i64>>(4)?, row.get::<_, Option<[u8; 32]>>(5)?) {
                (Some(bytes), Some(digest)) => {
                    Some((u64::try_from(bytes).unwrap_or_default(), Digest::from_bytes(digest)))
                }
                _ => None,
            };
            Ok(Some(KeptReply { data, message: row.get(1)?, meta: row.get(2)?, meta_dropped: row.get(3)?, cut }))
        })?;
        Ok(kept.map(Recalled::Completed).ok_or(OperationRefusal::NotKept))
    }

    fn keep_time(&self) -> Result<(), DatabaseError> {
        self.link.execute("UPDATE journal SET time_ms = max(time_ms, ?1)", [to_millis(self.now)]).map(|_| ())
    }

    fn keep_state(&self, key: Digest, operation: &Operation) -> Result<(), DatabaseError> {
        let until = match operation.state {
            OperationState::Claimed { until } => Some(to_millis(until)),
            _ => None,
        };
        let changed = self.link.execute(
            "UPDATE operations SET state = ?2, attempt = ?3, since_ms = ?4, until_ms = ?5 WHERE operation = ?1",
            params![
                key.as_bytes(),
                operation.state.as_str(),
                i64::from(operation.attempt.get()),
                to_millis(operation.since),
                until
            ],
        )?;
        if changed == 1 { Ok(()) } else { Err(self.link.damaged("an operation is gone from under its step")) }
    }

    fn keep_result(&self, key: Digest, result: &KeptReply) -> Result<(), DatabaseError> {
        let KeptReply { data, message, meta, meta_dropped, cut } = result;
        self.link
            .execute(
                "UPDATE operations SET data = ?2, message = ?3, meta = ?4, meta_dropped = ?5, cut_bytes = ?6, \
                 cut_digest = ?7, bytes = bytes + ?8 WHERE operation = ?1",
                params![
                    key.as_bytes(),
                    data,
                    message,
                    meta,
                    meta_dropped,
                    cut.map(|(bytes, _)| i64::try_from(bytes).unwrap_or(i64::MAX)),
                    cut.as_ref().map(|(_, digest)| digest.as_bytes()),
                    i64::try_from(result.bytes()).unwrap_or(i64::MAX),
                ],
            )
            .map(|_| ())
    }

    fn add(&self, request: &OperationRequest<'_>, claimed: &Operation) -> Result<(), DatabaseError> {
        let OperationState::Claimed { until } = claimed.state else {
            return Err(self.link.damaged("a claim is none"));
        };
        let OperationRequest { presented, operation, tool, caller } = request;
        self.link
            .execute(
                "INSERT INTO operations (operation, state, attempt, since_ms, until_ms, tool_digest, args_digest, \
                 principal_digest, id, tool, tenant, principal, request_id, meta_dropped, bytes) \
                 VALUES (?1, 'claimed', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0, ?13)",
                params![
                    presented.key.as_bytes(),
                    i64::from(claimed.attempt.get()),
                    to_millis(claimed.since),
                    to_millis(until),
                    claimed.tool.as_bytes(),
                    claimed.arguments.as_bytes(),
                    presented.principal.as_bytes(),
                    operation,
                    tool,
                    caller.tenant,
                    caller.known_principal().unwrap_or_default(),
                    caller.request_id,
                    i64::try_from(request.bytes()).unwrap_or(i64::MAX),
                ],
            )
            .map(|_| ())
    }

    /// Forgets what may be forgotten, the earliest first.
    fn sweep(&self, most: usize) -> Result<(), DatabaseError> {
        let before = self.now.as_unix_millis().checked_sub(self.limits.retention_ms);
        let Some(before) = before else { return Ok(()) };
        let sql = "DELETE FROM operations WHERE operation IN (SELECT operation FROM operations \
                   WHERE state IN ('open', 'completed') AND since_ms <= ?1 ORDER BY since_ms LIMIT ?2)";
        let before = to_millis(Timestamp::from_unix_millis(before));
        self.link.execute(sql, params![before, i64::try_from(most).unwrap_or(i64::MAX)]).map(|_| ())
    }

    fn bytes(&self) -> Result<usize, DatabaseError> {
        let bytes: i64 = self.link.one("SELECT bytes FROM journal", [], |row| row.get(0))?;
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    fn has_room(&self, request: &OperationRequest<'_>) -> Result<bool, DatabaseError> {
        let limits = self.limits;
        let count = |owner: Option<&[u8]>| -> Result<usize, DatabaseError> {
            let sql = "SELECT coalesce((SELECT operations FROM operation_owners WHERE owner = ?1), 0)";
            let count: i64 = self.link.one(sql, [owner], |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or(usize::MAX))
        };
        let all: i64 = self.link.one("SELECT operations FROM journal", [], |row| row.get(0))?;
        Ok(usize::try_from(all).unwrap_or(usize::MAX) < limits.operations
            && count(Some(request.presented.principal.as_bytes()))? < limits.per_principal
            && count(request.caller.tenant.map(str::as_bytes))? < limits.per_tenant
            && self.bytes()?.saturating_add(request.bytes()) <= limits.bytes)
    }
}
