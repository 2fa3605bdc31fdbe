//! Confirmations in memory: for programs that live as long as their callers wait.

use std::fmt;

use callgate_core::call::Finish;
use callgate_core::confirm::{By, CancelError, Decided, FinishError, Presented, ReconcileError, Refusal, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::{StoreTime, Timestamp};

use super::table::{Capacity, Table};
use super::{
    ConfirmationStore, DecideFault, GrantError, IssueFault, Issued, Loaded, NewGrant, PendingApproval, PendingRequest,
    Resolution, Revoked, StandingGrant, StoreFault, TicketView,
};
use crate::clock::{SharedClock, SystemClock};
use crate::entropy::{OsEntropy, SharedEntropy};
use crate::guarantee::Guarantee;
use crate::lock::{AtomicBool, Mutex, MutexGuard, Ordering, lock};

/// A store in memory. Lost with the process, and with it every token: nothing can be redeemed after a restart.
///
/// Its time is the wall clock's, except that it never goes back and never stands still: while the wall clock is behind, it
/// goes on by the monotonic clock. A clock that is set back makes no token live longer (invariant C2), and a machine that slept wakes
/// with its tokens expired.
pub struct MemoryConfirmations {
    clock: SharedClock,
    entropy: SharedEntropy,
    approvers: AtomicBool,
    shelf: Mutex<Shelf>,
}

struct Shelf {
    table: Table,
    time: StoreTime,
}

impl MemoryConfirmations {
    /// A store with the system's clock and randomness.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        Self::with(capacity, SystemClock::shared(), OsEntropy::shared())
    }

    /// A store with this clock and this source of tokens.
    #[must_use]
    pub fn with(capacity: Capacity, clock: SharedClock, entropy: SharedEntropy) -> Self {
        let time = StoreTime::start(clock.now());
        let shelf = Mutex::new(Shelf { table: Table::new(capacity), time });
        Self { clock, entropy, approvers: AtomicBool::new(false), shelf }
    }

    /// Says whether approvers can be reached. As long as they can't, which is how a store starts, a call that needs one
    /// is refused at once instead of waiting for nobody.
    pub fn attach_approvers(&self, attached: bool) {
        self.approvers.store(attached, Ordering::Release);
    }

    /// How many tickets are kept, settled and expired ones that were not swept yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.shelf).table.len()
    }

    /// Whether no ticket is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes the store counts as in use; see [`Capacity::bytes`].
    #[must_use]
    pub fn bytes(&self) -> usize {
        lock(&self.shelf).table.bytes()
    }

    /// The shelf, the time by it, and the wall clock's.
    fn open(&self) -> (MutexGuard<'_, Shelf>, Timestamp, Timestamp) {
        // The clock is a host's: it is read before the lock is held.
        let reading = self.clock.now();
        let mut shelf = lock(&self.shelf);
        let now = shelf.time.advance(reading);
        (shelf, now, reading.wall)
    }
}

impl Default for MemoryConfirmations {
    fn default() -> Self {
        Self::new(Capacity::DEFAULT)
    }
}

impl fmt::Debug for MemoryConfirmations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryConfirmations").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl ConfirmationStore for MemoryConfirmations {
    fn guarantee(&self) -> Guarantee {
        Guarantee { atomic_claim: true, ..Guarantee::NONE }
    }

    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        if request.by == By::Approver && !self.approvers.load(Ordering::Acquire) {
            return Err(IssueFault::NoApprover);
        }
        let token = self.entropy.token().map_err(|_| IssueFault::Store)?;
        let (mut shelf, now, wall) = self.open();
        shelf.table.issue(token.hash(), request, ttl_ms, now)?;
        // Whoever reads the answer has the wall clock to compare it with.
        Ok(Issued { token, expires_at: wall.saturating_add_millis(ttl_ms) })
    }

    fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        let (shelf, now, _) = self.open();
        Ok(shelf.table.load(ticket, now))
    }

    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        let (mut shelf, now, _) = self.open();
        Ok(shelf.table.claim(ticket, presented, now))
    }

    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        let (mut shelf, ..) = self.open();
        Ok(shelf.table.finish(finish))
    }

    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        let (mut shelf, ..) = self.open();
        shelf.table.withdraw(ticket);
        Ok(())
    }

    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        let (mut shelf, now, _) = self.open();
        shelf.table.decide(ticket, verdict, approver, now)
    }

    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        let (shelf, now, _) = self.open();
        Ok(shelf.table.pending(approver, max, now))
    }

    fn cancel(&self, ticket: Digest, requester: &CallContext<'_>) -> Result<Result<(), CancelError>, StoreFault> {
        let (mut shelf, ..) = self.open();
        Ok(shelf.table.cancel(ticket, requester))
    }

    fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        let (mut shelf, now, _) = self.open();
        Ok(shelf.table.reap(max, now))
    }

    fn reconcile(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        let (mut shelf, now, _) = self.open();
        Ok(shelf.table.reconcile(ticket, resolution, now))
    }

    fn grant(&self, grant: NewGrant, by: &CallContext<'_>) -> Result<StandingGrant, GrantError> {
        let id = self.entropy.token().map_err(|_| GrantError::Store)?.hash();
        let (mut shelf, now, _) = self.open();
        shelf.table.grant(id, grant, by, now)
    }

    fn grants_for(&self, caller: &CallContext<'_>, definition: Digest) -> Result<Vec<StandingGrant>, StoreFault> {
        let (shelf, now, _) = self.open();
        Ok(shelf.table.grants_for(caller, definition, now))
    }

    fn claim_grant(
        &self,
        grant: Digest,
        request: &PendingRequest<'_>,
        presented: &Presented,
    ) -> Result<Digest, GrantError> {
        let id = self.entropy.token().map_err(|_| GrantError::Store)?.hash();
        let (mut shelf, now, _) = self.open();
        shelf.table.claim_grant(grant, id, request, presented, now)
    }

    fn grants(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        let (shelf, ..) = self.open();
        Ok(shelf.table.grants(viewer, max))
    }

    fn revoke(&self, grant: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantError> {
        let (mut shelf, ..) = self.open();
        shelf.table.revoke(grant, by)
    }

    fn tickets(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        let (shelf, now, _) = self.open();
        Ok(shelf.table.tickets(viewer, max, now))
    }
}
