//! Budgets in the file.

use std::fmt;
use std::sync::Arc;

use callgate_core::limit::{Allowance, Bucket, LimitKey, Quota};
use callgate_core::time::Instant;
use callgate_std::clock::{SharedClock, SystemClock};
use callgate_std::limiter::{Charge, ChargeMode, DEFAULT_KEYS, RateLimiter, Refund, StoreFault};

use crate::database::{Database, Link};
use crate::error::DatabaseError;

/// The tables come with the limiter: a file of before is used as it is.
const CREATE: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS limits (
    bucket BLOB PRIMARY KEY NOT NULL CHECK (length(bucket) = 32),
    until_ns INTEGER NOT NULL CHECK (until_ns >= 0)
) STRICT, WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS limits_to_forget ON limits (until_ns)",
    "CREATE TABLE IF NOT EXISTS limits_time (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    time_ns INTEGER NOT NULL CHECK (time_ns >= 0),
    buckets INTEGER NOT NULL CHECK (buckets >= 0)
) STRICT",
];
/// How many buckets without a debt a step forgets: more than it adds.
const SWEEP: i64 = 16;

/// A limiter in SQLite, shared by the processes that share the file (invariant R2).
///
/// Each charge is one transaction, and is on the disk when it is answered, so that no end of a process and no loss of power gives a budget
/// back. Charges that come at once share a commit, with each other and with whatever else is kept in the file. Names are not in it, only
/// their digests.
///
/// Its time is the wall clock's, since nothing else goes on between two processes. Where that clock is set back, every
/// bucket owes what it owed: nothing is paid back and nothing is owed for longer (invariant C5).
pub struct SqliteLimiter {
    database: Arc<Database>,
    clock: SharedClock,
    quotas: Box<dyn Fn(&LimitKey<'_>) -> Quota + Send + Sync>,
    max_keys: usize,
}

impl SqliteLimiter {
    /// The limiter in this file, with room for [`DEFAULT_KEYS`] buckets that owe something.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn on(
        database: Arc<Database>,
        quotas: impl Fn(&LimitKey<'_>) -> Quota + Send + Sync + 'static,
    ) -> Result<Self, DatabaseError> {
        Self::with(database, quotas, SystemClock::shared(), DEFAULT_KEYS)
    }

    /// The same with this clock, of which only the wall counts, and room for so many buckets.
    ///
    /// # Errors
    /// As [`SqliteLimiter::on`].
    pub fn with(
        database: Arc<Database>,
        quotas: impl Fn(&LimitKey<'_>) -> Quota + Send + Sync + 'static,
        clock: SharedClock,
        max_keys: usize,
    ) -> Result<Self, DatabaseError> {
        database.step(|link| {
            for table in CREATE {
                link.execute(table, [])?;
            }
            link.execute("INSERT INTO limits_time VALUES (1, 0, 0) ON CONFLICT DO NOTHING", [])
        })?;
        Ok(Self { database, clock, quotas: Box::new(quotas), max_keys })
    }

    /// The file.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// One step, at the time by it. A failure is reported.
    fn step<R>(&self, rule: impl FnOnce(&Shelf<'_>) -> Result<R, DatabaseError>) -> Result<R, StoreFault> {
        let result = self.database.step(|link| {
            // Read while nobody else is at it: two processes then never see each other's time go back.
            let wall = to_nanos(self.clock.now().wall.as_unix_millis().saturating_mul(1_000_000));
            let (seen, buckets): (i64, i64) =
                link.one("SELECT time_ns, buckets FROM limits_time", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if wall < seen {
                link.execute("UPDATE limits SET until_ns = max(until_ns - ?1, 0)", [seen.saturating_sub(wall)])?;
                // Kept, too: what is owed is paid back from that moment on.
                link.execute("UPDATE limits_time SET time_ns = ?1", [wall])?;
            }
            rule(&Shelf { link, now: wall, buckets })
        });
        result.map_err(|error| {
            self.database.report(&error);
            StoreFault
        })
    }

    fn spend(&self, key: &LimitKey<'_>, cost: u32, mode: ChargeMode) -> Result<Allowance, StoreFault> {
        let quota = (self.quotas)(key);
        let id = *key.digest().as_bytes();
        self.step(|shelf| {
            let kept = shelf.find(&id)?;
            let bucket = kept.map_or(Bucket::FRESH, from_nanos);
            let now = shelf.now();
            if mode == ChargeMode::Probe {
                return Ok(quota.peek(bucket, cost, now));
            }
            let buckets = if kept.is_none() { shelf.sweep()? } else { shelf.buckets };
            if kept.is_none() && usize::try_from(buckets).unwrap_or(usize::MAX) >= self.max_keys {
                // Forgetting a bucket would give its owner a fresh budget (invariant F5).
                return Ok(Allowance::Refused { retry_after_ns: Some(shelf.soonest()?) });
            }
            let allowance = quota.charge(bucket, cost, now);
            if let Allowance::Granted { bucket, .. } = &allowance {
                shelf.keep(&id, *bucket, buckets.saturating_add(i64::from(kept.is_none())))?;
            }
            Ok(allowance)
        })
    }
}

impl RateLimiter for SqliteLimiter {
    fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        self.spend(&charge.key, charge.cost, charge.mode)
    }

    fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault> {
        let quota = (self.quotas)(&refund.key);
        let id = *refund.key.digest().as_bytes();
        self.step(|shelf| {
            let Some(kept) = shelf.find(&id)? else { return Ok(()) };
            let bucket = quota.refund(from_nanos(kept), refund.receipt, refund.units, shelf.now());
            shelf.keep(&id, bucket, shelf.buckets)
        })
    }

    fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        self.spend(key, 1, ChargeMode::Take)
    }
}

/// The buckets, within a step.
struct Shelf<'s> {
    link: &'s Link<'s>,
    now: i64,
    buckets: i64,
}

impl Shelf<'_> {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.now.unsigned_abs())
    }

    fn find(&self, id: &[u8; 32]) -> Result<Option<i64>, DatabaseError> {
        let mut found = None;
        self.link.each("SELECT until_ns FROM limits WHERE bucket = ?1", [id], |row| {
            found = Some(row.get(0)?);
            Ok(false)
        })?;
        Ok(found)
    }

    fn keep(&self, id: &[u8; 32], bucket: Bucket, buckets: i64) -> Result<(), DatabaseError> {
        let sql = "INSERT INTO limits VALUES (?1, ?2) ON CONFLICT DO UPDATE SET until_ns = excluded.until_ns";
        self.link.execute(sql, (id, to_nanos(bucket.as_nanos())))?;
        self.link.execute("UPDATE limits_time SET time_ns = ?1, buckets = ?2", [self.now, buckets]).map(drop)
    }

    /// Forgets some that owe nothing, and says how many are left.
    fn sweep(&self) -> Result<i64, DatabaseError> {
        let sql = "DELETE FROM limits WHERE bucket IN \
                   (SELECT bucket FROM limits WHERE until_ns <= ?1 ORDER BY until_ns LIMIT ?2)";
        let swept = self.link.execute(sql, [self.now, SWEEP])?;
        let left = self.buckets.saturating_sub(i64::try_from(swept).unwrap_or(i64::MAX)).max(0);
        if swept > 0 {
            self.link.execute("UPDATE limits_time SET buckets = ?1", [left])?;
        }
        Ok(left)
    }

    /// In how many nanoseconds the next bucket owes nothing.
    fn soonest(&self) -> Result<u64, DatabaseError> {
        let soonest: i64 = self.link.one("SELECT ifnull(min(until_ns), 0) FROM limits", [], |row| row.get(0))?;
        Ok(soonest.saturating_sub(self.now).max(1).unsigned_abs())
    }
}

impl fmt::Debug for SqliteLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLimiter").field("path", &self.database.path()).finish_non_exhaustive()
    }
}

/// SQLite's integers are signed: a time beyond the year 2262 ends there.
fn to_nanos(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

fn from_nanos(nanos: i64) -> Bucket {
    Bucket::from_nanos(u64::try_from(nanos).unwrap_or(0))
}
