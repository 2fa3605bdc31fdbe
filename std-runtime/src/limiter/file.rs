//! Buckets in a small file: for a command that starts anew for every call.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_core::call::{Charge, ChargeMode, Refund, StoreFault};
use callgate_core::digest::Digest;
use callgate_core::limit::{Allowance, Bucket, LimitKey, Quota};
use callgate_core::time::Instant;
use serde::{Deserialize, Serialize};

use super::RateLimiter;
use crate::clock::{SharedClock, SystemClock};
use crate::lock::{Mutex, lock};
use crate::private_file::{self, FileError, Open};

/// How many buckets a file keeps where a host says nothing else. Every step reads and writes all of them.
pub const FILE_KEYS: usize = 5_000;

/// The version of the format. Another one is refused, never guessed (invariant N6).
const VERSION: u64 = 1;
const FORMAT: &str = "callgate rate limits";
/// How long a step waits for other processes.
const WAIT: Duration = Duration::from_secs(5);
/// A row has 64 digits, a number and what is around them.
const ROW_BYTES: usize = 128;

/// A limiter in one file that several processes share.
///
/// Each step takes the lock of `<file>.lock`, reads the file, applies the rule and replaces the file before it answers. The
/// file has mode 0600; one that is damaged, of an unknown version, or that others could have a hand in is not used, and no
/// call passes then (invariants F1, N6). Names are not in it, only their digests.
///
/// Its time is the wall clock's, since nothing else goes on between two processes. Where that clock is set back, every
/// bucket owes what it owed: nothing is paid back and nothing is owed for longer (invariant C5).
pub struct FileLimiter {
    path: PathBuf,
    clock: SharedClock,
    quotas: Box<dyn Fn(&LimitKey<'_>) -> Quota + Send + Sync>,
    max_keys: usize,
    /// Held for each step, so that threads queue here and not at the file, where whoever waits sleeps ever longer.
    turn: Mutex<()>,
    last_error: Mutex<Option<String>>,
}

/// What is wrong with the file of a limiter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitFileError {
    /// The file can't be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content is not what a limiter wrote.
    #[error("{} is damaged ({reason}); remove it to go on: every budget is full again then", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// The content is of a version that this program does not know.
    #[error("{} has version {version}, and this program knows version {VERSION}; remove the file to go on", path.display())]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// The version.
        version: u64,
    },
}

#[derive(Deserialize)]
struct Header {
    format: String,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: String,
    version: u64,
    /// The wall clock at the latest step, in nanoseconds.
    time_ns: u64,
    /// By the digest of their keys, when everything is paid back.
    buckets: HashMap<String, u64>,
}

impl FileLimiter {
    /// The limiter in this file, which is made at the first charge. The directory is made at once.
    ///
    /// # Errors
    /// The file is there and can't be used; the message says what to do.
    pub fn open(
        path: impl Into<PathBuf>,
        quotas: impl Fn(&LimitKey<'_>) -> Quota + Send + Sync + 'static,
    ) -> Result<Self, LimitFileError> {
        Self::open_with(path, quotas, SystemClock::shared(), FILE_KEYS)
    }

    /// The same with this clock, of which only the wall counts, and room for so many buckets.
    ///
    /// # Errors
    /// As [`FileLimiter::open`].
    pub fn open_with(
        path: impl Into<PathBuf>,
        quotas: impl Fn(&LimitKey<'_>) -> Quota + Send + Sync + 'static,
        clock: SharedClock,
        max_keys: usize,
    ) -> Result<Self, LimitFileError> {
        let quotas = Box::new(quotas);
        let limiter =
            Self { path: path.into(), clock, quotas, max_keys, turn: Mutex::default(), last_error: Mutex::default() };
        private_file::prepare_directory(&limiter.path)?;
        limiter.step(|_, _| ((), false))?;
        Ok(limiter)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the last step that failed ran into, for people; the gate is told only that a store did not answer.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        lock(&self.last_error).clone()
    }

    /// One step, alone among all threads and processes. `rule` says whether there is something to keep.
    fn step<R>(&self, rule: impl FnOnce(&mut Content, Instant) -> (R, bool)) -> Result<R, LimitFileError> {
        let _turn = lock(&self.turn);
        let lock_path = self.path.with_added_extension("lock");
        let file = private_file::open(&lock_path, Open::ReadWrite)?;
        private_file::lock(&file, &lock_path, WAIT)?;
        let mut content = self.read()?;
        // The clock is read under the lock: two processes then never see each other's time go back.
        let now = self.clock.now().wall.as_unix_millis().saturating_mul(1_000_000);
        let back = content.time_ns.saturating_sub(now);
        if back > 0 {
            content.buckets.values_mut().for_each(|until| *until = until.saturating_sub(back));
        }
        content.time_ns = now;
        let now = Instant::from_nanos(now);
        let (answer, changed) = rule(&mut content, now);
        // That the clock was set back is kept too: what is owed is paid back from that moment on.
        if changed || back > 0 {
            content.buckets.retain(|_, until| !Bucket::from_nanos(*until).is_idle(now));
            let text = serde_json::to_string(&content).map_err(|error| self.damaged(&error))?;
            private_file::replace(&self.path, text.as_bytes())?;
        }
        Ok(answer)
    }

    fn read(&self) -> Result<Content, LimitFileError> {
        let file = match private_file::open(&self.path, Open::Read) {
            Ok(file) => file,
            Err(FileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                let (format, version) = (FORMAT.to_owned(), VERSION);
                return Ok(Content { format, version, time_ns: 0, buckets: HashMap::new() });
            }
            Err(error) => return Err(error.into()),
        };
        let mut text = String::new();
        let most = self.max_keys.saturating_mul(ROW_BYTES).saturating_add(1 << 16) as u64;
        match file.take(most).read_to_string(&mut text) {
            Ok(length) if (length as u64) < most => {}
            Ok(_) => return Err(self.damaged(&"it is too large")),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Err(self.damaged(&"it is not text"));
            }
            Err(source) => return Err(FileError::Io { path: self.path.clone(), doing: "read", source }.into()),
        }
        let header: Header = serde_json::from_str(&text).map_err(|error| self.damaged(&error))?;
        if header.format != FORMAT {
            return Err(self.damaged(&"it is another kind of file"));
        }
        if header.version != VERSION {
            return Err(LimitFileError::UnknownVersion { path: self.path.clone(), version: header.version });
        }
        serde_json::from_str(&text).map_err(|error| self.damaged(&error))
    }

    fn damaged(&self, reason: &dyn fmt::Display) -> LimitFileError {
        LimitFileError::Damaged { path: self.path.clone(), reason: reason.to_string() }
    }

    fn try_step<R>(&self, rule: impl FnOnce(&mut Content, Instant) -> (R, bool)) -> Result<R, StoreFault> {
        self.step(rule).map_err(|error| {
            let error = error.to_string();
            tracing::error!(error, "the rate limiter failed");
            *lock(&self.last_error) = Some(error);
            StoreFault
        })
    }

    fn spend(&self, key: &LimitKey<'_>, cost: u32, mode: ChargeMode) -> Result<Allowance, StoreFault> {
        let quota = (self.quotas)(key);
        let id = name(key.digest());
        self.try_step(|content, now| {
            let kept = content.buckets.get(&id).copied();
            let bucket = kept.map_or(Bucket::FRESH, Bucket::from_nanos);
            if mode == ChargeMode::Probe {
                return (quota.peek(bucket, cost, now), false);
            }
            let alive = || content.buckets.values().filter(|until| !Bucket::from_nanos(**until).is_idle(now)).count();
            if kept.is_none() && alive() >= self.max_keys {
                // Forgetting a bucket would give its owner a fresh budget (invariant F5).
                let soonest = content.buckets.values().min().copied().unwrap_or_default();
                let wait = soonest.saturating_sub(now.as_nanos()).max(1);
                return (Allowance::Refused { retry_after_ns: Some(wait) }, false);
            }
            let allowance = quota.charge(bucket, cost, now);
            let Allowance::Granted { bucket, .. } = &allowance else { return (allowance, false) };
            content.buckets.insert(id, bucket.as_nanos());
            (allowance, true)
        })
    }
}

impl RateLimiter for FileLimiter {
    fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        self.spend(&charge.key, charge.cost, charge.mode)
    }

    fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault> {
        let quota = (self.quotas)(&refund.key);
        let id = name(refund.key.digest());
        self.try_step(|content, now| {
            let Some(until) = content.buckets.get_mut(&id) else { return ((), false) };
            *until = quota.refund(Bucket::from_nanos(*until), refund.receipt, refund.units, now).as_nanos();
            ((), true)
        })
    }

    fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        self.spend(key, 1, ChargeMode::Take)
    }
}

impl fmt::Debug for FileLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLimiter").field("path", &self.path).finish_non_exhaustive()
    }
}

fn name(digest: Digest) -> String {
    digest.to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use callgate_core::context::CallContext;

    use super::*;
    use crate::clock::ManualClock;

    fn key(tool: &'static str) -> LimitKey<'static> {
        LimitKey::of_call(&CallContext::cli("r"), tool)
    }

    fn take(limiter: &impl RateLimiter, tool: &'static str, cost: u32) -> Allowance {
        limiter.charge(&Charge { key: key(tool), cost, mode: ChargeMode::Take }).expect("it answers")
    }

    struct Bench {
        directory: tempfile::TempDir,
        clock: ManualClock,
    }

    impl Bench {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().expect("a directory"), clock: ManualClock::new() }
        }

        fn path(&self) -> PathBuf {
            self.directory.path().join("state/limits.json")
        }

        /// As another process would open it.
        fn open(&self, limit: u32) -> FileLimiter {
            let quota = Quota::per_window(limit, 60_000).expect("usable");
            FileLimiter::open_with(self.path(), move |_| quota, self.clock.shared(), 8).expect("it opens")
        }
    }

    // R4: a plan leaves nothing behind.
    #[test]
    fn r4_a_probe_writes_nothing() {
        let bench = Bench::new();
        let limiter = bench.open(3);
        let probe = Charge { key: key("t"), cost: 1, mode: ChargeMode::Probe };
        assert!(limiter.charge(&probe).expect("it answers").is_admitted());
        assert!(!bench.path().exists());
    }

    // F1, N6
    #[test]
    fn f1_a_file_that_is_no_state_lets_nothing_pass() {
        let bench = Bench::new();
        let limiter = bench.open(3);
        assert!(take(&limiter, "t", 1).is_admitted());
        let good = fs::read_to_string(bench.path()).expect("it is there");
        let version = good.replace("\"version\":1", "\"version\":2");
        for text in ["", "{}", good.trim_end_matches('}'), &good.replace(FORMAT, "other"), &version] {
            fs::write(bench.path(), text).expect("written");
            let charge = Charge { key: key("t"), cost: 1, mode: ChargeMode::Take };
            assert_eq!(limiter.charge(&charge), Err(StoreFault), "{text}");
            let error = limiter.last_error().expect("it is kept");
            assert!(error.contains("remove"), "{error}");
        }
        let error = FileLimiter::open(bench.path(), |_| Quota::DEFAULT).expect_err("it can't be used");
        assert!(matches!(error, LimitFileError::UnknownVersion { version: 2, .. }));
    }
}
