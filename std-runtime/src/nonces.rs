//! Ledgers of nonces: what may be used once, and was.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use callgate_core::call::StoreFault;
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;

use crate::guarantee::Guarantee;
use crate::lock::{Mutex, lock};

/// The most nonces that a ledger in memory keeps; one more is refused, and none is forgotten for it (invariants F5, C3).
const MAX_KEPT: usize = 100_000;
/// The most entries that are looked at for their age in one step.
const SWEEP: usize = 64;
/// The file that holds the latest time at which nonces were forgotten.
const MARK: &str = "time";

/// Keeps what was used once.
pub trait NonceLedger: Send + Sync {
    /// What the ledger vouches for. One that does not say anything vouches for nothing.
    fn guarantee(&self) -> Guarantee {
        Guarantee::NONE
    }

    /// Spends a nonce, and says whether this call is the one that did: true at most once for a nonce, among all that reach this ledger
    /// (invariant A5). It may be forgotten from `until` on, when nothing that bears it counts any more (invariant C3); a clock that
    /// was set back in between revives nothing (invariant C2).
    ///
    /// # Errors
    /// The ledger failed. Whether the nonce is spent is unknown then, so whoever asked must not go on.
    fn spend(&self, nonce: Digest, now: Timestamp, until: Timestamp) -> Result<bool, StoreFault>;
}

/// A ledger in the memory of this process.
#[derive(Default)]
pub struct MemoryNonces(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Each nonce, until when it is kept.
    until: HashMap<Digest, Timestamp>,
    latest: Timestamp,
}

impl MemoryNonces {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl NonceLedger for MemoryNonces {
    fn guarantee(&self) -> Guarantee {
        Guarantee { atomic_claim: true, ..Guarantee::NONE }
    }

    fn spend(&self, nonce: Digest, now: Timestamp, until: Timestamp) -> Result<bool, StoreFault> {
        let mut kept = lock(&self.0);
        kept.latest = kept.latest.max(now);
        let latest = kept.latest;
        if until <= latest {
            return Ok(false);
        }
        if kept.until.contains_key(&nonce) {
            return Ok(false);
        }
        if kept.until.len() >= MAX_KEPT {
            kept.until.retain(|_, until| *until > latest);
        }
        if kept.until.len() >= MAX_KEPT {
            return Err(StoreFault);
        }
        kept.until.insert(nonce, until);
        Ok(true)
    }
}

impl fmt::Debug for MemoryNonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryNonces").finish_non_exhaustive()
    }
}

/// A ledger in a directory that processes share: a file for each nonce, named by its digest, which only one of them can make. What a
/// file holds is until when it is kept; one that holds anything else is kept for ever.
#[derive(Debug)]
pub struct DirectoryNonces {
    directory: PathBuf,
}

impl DirectoryNonces {
    /// The ledger in this directory, which is made when a nonce is first spent.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    fn make(&self, nonce: Digest, until: Timestamp) -> io::Result<bool> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.directory)?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = match options.open(self.directory.join(nonce.to_string())) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        };
        write!(file, "{}", until.as_unix_millis())?;
        file.sync_all()?;
        fs::File::open(&self.directory)?.sync_all()?;
        Ok(true)
    }

    /// Forgets some of what is not needed any more, and keeps beforehand at which time. What can't be read or removed stays.
    fn sweep(&self, now: Timestamp) -> io::Result<()> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let old = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name != MARK) && time_in(path).is_some_and(|until| until <= now)
        };
        let old: Vec<_> = entries.flatten().take(SWEEP).map(|entry| entry.path()).filter(old).collect();
        if old.is_empty() {
            return Ok(());
        }
        let draft = self.directory.join(format!("{MARK}.{}", std::process::id()));
        let mut file = fs::File::create(&draft)?;
        write!(file, "{}", now.as_unix_millis())?;
        file.sync_all()?;
        fs::rename(&draft, self.directory.join(MARK))?;
        fs::File::open(&self.directory)?.sync_all()?;
        for path in old {
            if fs::remove_file(&path).is_err() {
                tracing::warn!(path = %path.display(), "a nonce that is not needed any more could not be removed");
            }
        }
        Ok(())
    }
}

fn time_in(path: &Path) -> Option<Timestamp> {
    let millis = fs::read_to_string(path).ok()?.parse().ok()?;
    Some(Timestamp::from_unix_millis(millis))
}

impl NonceLedger for DirectoryNonces {
    fn guarantee(&self) -> Guarantee {
        Guarantee::ALL
    }

    fn spend(&self, nonce: Digest, now: Timestamp, until: Timestamp) -> Result<bool, StoreFault> {
        // A clock that was set back finds what was forgotten before no less used (invariant C2).
        let now = time_in(&self.directory.join(MARK)).map_or(now, |mark| mark.max(now));
        if until <= now {
            return Ok(false);
        }
        self.sweep(now).and_then(|()| self.make(nonce, until)).map_err(|error| {
            tracing::error!(%error, directory = %self.directory.display(), "the ledger of nonces failed");
            StoreFault
        })
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

    fn suite(ledger: &dyn NonceLedger) {
        assert_eq!(ledger.spend(nonce("a"), at(10), at(20)), Ok(true));
        assert_eq!(ledger.spend(nonce("a"), at(10), at(20)), Ok(false), "A5");
        assert_eq!(ledger.spend(nonce("../../etc/passwd"), at(10), at(20)), Ok(true));
        assert_eq!(ledger.spend(nonce("late"), at(20), at(20)), Ok(false), "A10: at the moment itself, too");
        // What is old is forgotten, and a clock that is set back does not bring it to life (C2, C3).
        assert_eq!(ledger.spend(nonce("b"), at(100), at(120)), Ok(true));
        assert_eq!(ledger.spend(nonce("a"), at(10), at(20)), Ok(false), "C2");
        assert_eq!(ledger.spend(nonce("b"), at(119), at(120)), Ok(false), "C3");
    }

    #[test]
    fn a5_a_nonce_is_spent_once_in_memory() {
        suite(&MemoryNonces::new());
    }

    #[test]
    fn a5_a_nonce_is_spent_once_in_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nonces");
        suite(&DirectoryNonces::new(&path));
        let left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "b and the time: {left:?}");
        // What says nothing of a time is kept.
        fs::write(path.join(nonce("odd").to_string()), "soon").unwrap();
        assert_eq!(DirectoryNonces::new(&path).spend(nonce("c"), at(500), at(520)), Ok(true));
        assert_eq!(DirectoryNonces::new(&path).spend(nonce("odd"), at(500), at(520)), Ok(false));
    }

    #[test]
    fn f1_a_ledger_that_cannot_write_says_so() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ledger = DirectoryNonces::new(file.path().join("below"));
        assert_eq!(ledger.spend(nonce("a"), at(10), at(20)), Err(StoreFault));
    }

    #[test]
    fn a5_of_many_threads_one_spends_a_nonce() {
        let dir = tempfile::tempdir().unwrap();
        let ledgers: [Box<dyn NonceLedger>; 2] =
            [Box::new(MemoryNonces::new()), Box::new(DirectoryNonces::new(dir.path().join("nonces")))];
        for ledger in ledgers {
            let won = std::thread::scope(|scope| {
                let spend = || ledger.spend(nonce("one"), at(10), at(20));
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(spend)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).filter(|r| *r == Ok(true)).count()
            });
            assert_eq!(won, 1);
        }
    }
}
