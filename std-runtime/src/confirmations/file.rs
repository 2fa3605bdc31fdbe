//! Confirmations in a small file: for a command that ends between the question and the answer.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_core::call::Finish;
use callgate_core::confirm::{By, CancelError, Decided, FinishError, Presented, ReconcileError, Refusal, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;

use super::state::{self, State, StateError};
use super::table::{Capacity, Table};
use super::wall_time::{ProcessTime, WallTime};
use super::{
    ConfirmationStore, DecideFault, GrantError, IssueFault, Issued, Loaded, NewGrant, PendingApproval, PendingRequest,
    Resolution, Revoked, StandingGrant, StoreFault, TicketView,
};
use crate::clock::{SharedClock, SystemClock};
use crate::entropy::{OsEntropy, SharedEntropy};
use crate::guarantee::Guarantee;
use crate::lock::{AtomicBool, Mutex, Ordering, lock};
use crate::private_file::{self, FileError, Open};

/// How much a file keeps where a host says nothing else: 1,000 tickets, 8 MiB. Every step reads and writes all of it.
pub const FILE_CAPACITY: Capacity = Capacity { entries: 1_000, bytes: 8 << 20, per_principal: 1_000 };

/// How long a step waits for other processes.
const WAIT: Duration = Duration::from_secs(5);

/// A store in one file that several processes share.
///
/// Each step takes the lock of `<file>.lock`, reads the file, applies the rule, and has replaced the file durably before it
/// answers: a claim that was answered outlives the process and the power (invariant J3). The file has mode 0600; one that
/// others may write to, of another owner, behind a symbolic link, damaged, or of an unknown version is not used, and
/// nothing is issued or redeemed then (invariants F1, N6). Tokens are not in it, arguments are.
///
/// Its time is the wall clock's and never goes back; while a process lives, what passed by its monotonic clock counts as well. Where
/// the wall clock is set back by more than a few seconds, everything that waits is forgotten rather than given a longer life
/// (invariants C2, C4).
///
/// Whoever can put back an older copy of the file can bring back what was claimed since, within its time to live.
pub struct FileConfirmations {
    path: PathBuf,
    capacity: Capacity,
    clock: SharedClock,
    entropy: SharedEntropy,
    approvers: AtomicBool,
    /// Time as this process has seen it; held for each step, so that threads queue here and not at the file.
    time: Mutex<ProcessTime>,
    last_error: Mutex<Option<String>>,
}

/// What is wrong with the file of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfirmationFileError {
    /// The file cannot be used, or others could have a hand in it.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content is not what a store wrote.
    #[error(
        "{} is damaged ({reason}); remove it to go on: calls that wait for a confirmation have to be asked again, nothing \
         else is lost",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// The content is of a version that this program does not know.
    #[error(
        "{} has version {version}, and this program knows version {}; use the program that wrote it, or remove the file",
        path.display(),
        state::VERSION
    )]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// The version.
        version: u64,
    },
}

impl FileConfirmations {
    /// The store in this file, which is made when the first ticket is issued. The directory is made at once.
    ///
    /// # Errors
    /// The file is there and cannot be used; the message says what to do.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ConfirmationFileError> {
        Self::open_with(path, FILE_CAPACITY, SystemClock::shared(), OsEntropy::shared())
    }

    /// The same with these bounds, this clock and this source of tokens.
    ///
    /// # Errors
    /// As [`FileConfirmations::open`].
    pub fn open_with(
        path: impl Into<PathBuf>,
        capacity: Capacity,
        clock: SharedClock,
        entropy: SharedEntropy,
    ) -> Result<Self, ConfirmationFileError> {
        let store = Self {
            path: path.into(),
            capacity,
            clock,
            entropy,
            approvers: AtomicBool::new(false),
            time: Mutex::default(),
            last_error: Mutex::default(),
        };
        private_file::prepare_directory(&store.path)?;
        store.step(|_, _| ((), Changed::No))?;
        Ok(store)
    }

    /// Says whether approvers can be reached. As long as they can't, which is how a store starts, a call that needs one
    /// is refused at once instead of waiting for nobody.
    pub fn attach_approvers(&self, attached: bool) {
        self.approvers.store(attached, Ordering::Release);
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the last step that failed ran into, for people; `None` when none has failed. The gate itself is told only that
    /// a store did not answer.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        lock(&self.last_error).clone()
    }

    /// One atomic step: alone among all threads and processes, from the file and back.
    fn step<R>(&self, rule: impl FnOnce(&mut Table, Timestamp) -> (R, Changed)) -> Result<R, ConfirmationFileError> {
        let mut time = lock(&self.time);
        let lock_path = self.path.with_added_extension("lock");
        let lock_file = private_file::open(&lock_path, Open::ReadWrite)?;
        private_file::lock(&lock_file, &lock_path, WAIT)?;
        // Read when it is this step's turn: a reading from before would look like a clock that was set back.
        let reading = self.clock.now();
        let State { mut table, time: seen } = self.read()?;
        // Kept when the step is: one that fails has not seen that the clock was set back, and the next one does.
        let mut passed = *time;
        let WallTime { now, set_back, back_ms } = passed.step(seen, reading);
        let mut changed = Changed::No;
        if set_back {
            table.clear(back_ms);
            changed = Changed::Yes;
        }
        let (answer, by_rule) = rule(&mut table, now);
        if changed == Changed::Yes || by_rule == Changed::Yes {
            let content = state::write(&table, now).map_err(|error| self.damaged(&error))?;
            private_file::replace(&self.path, content.as_bytes())?;
        }
        *time = passed;
        Ok(answer)
    }

    fn read(&self) -> Result<State, ConfirmationFileError> {
        let file = match private_file::open(&self.path, Open::Read) {
            Ok(file) => file,
            Err(FileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(State { table: Table::new(self.capacity), time: Timestamp::default() });
            }
            Err(error) => return Err(error.into()),
        };
        let mut content = String::new();
        // What the bounds admit is at most this long, whatever has to be escaped.
        let most = self.capacity.bytes.saturating_mul(8).saturating_add(1 << 20) as u64;
        match file.take(most).read_to_string(&mut content) {
            Ok(length) if (length as u64) < most => {}
            Ok(_) => return Err(self.damaged(&"it is too large")),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Err(self.damaged(&"it is not text"));
            }
            Err(source) => return Err(FileError::Io { path: self.path.clone(), doing: "read", source }.into()),
        }
        state::read(&content, self.capacity).map_err(|error| match error {
            StateError::UnknownVersion(version) => {
                ConfirmationFileError::UnknownVersion { path: self.path.clone(), version }
            }
            StateError::Damaged(reason) => self.damaged(&reason),
        })
    }

    fn damaged(&self, reason: &dyn fmt::Display) -> ConfirmationFileError {
        ConfirmationFileError::Damaged { path: self.path.clone(), reason: reason.to_string() }
    }

    /// A step whose failure the gate hears of as a fault, and people through `tracing` and [`FileConfirmations::last_error`].
    fn try_step<R>(&self, rule: impl FnOnce(&mut Table, Timestamp) -> (R, Changed)) -> Result<R, StoreFault> {
        self.step(rule).map_err(|error| {
            let error = error.to_string();
            tracing::error!(error, "the store of confirmations failed");
            *lock(&self.last_error) = Some(error);
            StoreFault
        })
    }
}

/// Whether there is something to keep.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changed {
    No,
    Yes,
}

/// What was refused changed nothing.
fn changed_if_ok<T, E>(answer: Result<T, E>) -> (Result<T, E>, Changed) {
    let changed = if answer.is_ok() { Changed::Yes } else { Changed::No };
    (answer, changed)
}

impl ConfirmationStore for FileConfirmations {
    fn guarantee(&self) -> Guarantee {
        Guarantee::ALL
    }

    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        if request.by == By::Approver && !self.approvers.load(Ordering::Acquire) {
            return Err(IssueFault::NoApprover);
        }
        let token = self.entropy.token().map_err(|_| IssueFault::Store)?;
        self.try_step(|table, now| {
            let issued = table
                .issue(token.hash(), request, ttl_ms, now)
                .map(|()| Issued { token, expires_at: now.saturating_add_millis(ttl_ms) });
            (issued, Changed::Yes)
        })?
    }

    fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        self.try_step(|table, now| {
            let found = table.load(ticket, now);
            // That it was seen to expire is kept, so that no other process finds it alive under an earlier clock.
            let expired = matches!(found, Some(Loaded { usable: Err(Refusal::Expired), .. }));
            (found, if expired { Changed::Yes } else { Changed::No })
        })
    }

    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        self.try_step(|table, now| {
            let claimed = table.claim(ticket, presented, now);
            let unknown = matches!(claimed, Err(Refusal::Unknown));
            (claimed, if unknown { Changed::No } else { Changed::Yes })
        })
    }

    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        self.try_step(|table, _| changed_if_ok(table.finish(finish)))
    }

    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        self.try_step(|table, _| (table.withdraw(ticket), Changed::Yes))
    }

    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        self.try_step(|table, now| changed_if_ok(table.decide(ticket, verdict, approver, now)))?
    }

    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        self.try_step(|table, now| (table.pending(approver, max, now), Changed::No))
    }

    fn cancel(&self, ticket: Digest, requester: &CallContext<'_>) -> Result<Result<(), CancelError>, StoreFault> {
        self.try_step(|table, _| changed_if_ok(table.cancel(ticket, requester)))
    }

    fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        self.try_step(|table, now| {
            let lost = table.reap(max, now);
            let changed = if lost.is_empty() { Changed::No } else { Changed::Yes };
            (lost, changed)
        })
    }

    fn reconcile(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        self.try_step(|table, now| changed_if_ok(table.reconcile(ticket, resolution, now)))
    }

    fn grant(&self, grant: NewGrant, by: &CallContext<'_>) -> Result<StandingGrant, GrantError> {
        let id = self.entropy.token().map_err(|_| GrantError::Store)?.hash();
        self.try_step(|table, now| changed_if_ok(table.grant(id, grant, by, now))).map_err(|_| GrantError::Store)?
    }

    fn grants_for(&self, caller: &CallContext<'_>, definition: Digest) -> Result<Vec<StandingGrant>, StoreFault> {
        self.try_step(|table, now| (table.grants_for(caller, definition, now), Changed::No))
    }

    fn claim_grant(
        &self,
        grant: Digest,
        request: &PendingRequest<'_>,
        presented: &Presented,
    ) -> Result<Digest, GrantError> {
        let id = self.entropy.token().map_err(|_| GrantError::Store)?.hash();
        self.try_step(|table, now| changed_if_ok(table.claim_grant(grant, id, request, presented, now)))
            .map_err(|_| GrantError::Store)?
    }

    fn grants(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        self.try_step(|table, _| (table.grants(viewer, max), Changed::No))
    }

    fn revoke(&self, grant: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantError> {
        self.try_step(|table, _| changed_if_ok(table.revoke(grant, by))).map_err(|_| GrantError::Store)?
    }

    fn tickets(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        self.try_step(|table, now| (table.tickets(viewer, max, now), Changed::No))
    }
}

impl fmt::Debug for FileConfirmations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileConfirmations").field("path", &self.path).finish_non_exhaustive()
    }
}
