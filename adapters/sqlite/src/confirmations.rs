//! Confirmations in the file.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use callgate_core::call::Finish;
use callgate_core::confirm::{
    By, CancelError, Decided, FinishError, MAX_SKEW_MS, Presented, ReconcileError, Refusal, Ticket, Verdict,
};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use callgate_std::clock::{SharedClock, SystemClock};
use callgate_std::confirmations::{
    Capacity, ConfirmationStore, DecideFault, GrantError, Guarantee, IssueFault, Issued, Loaded, NewGrant,
    PendingApproval, PendingRequest, ProcessTime, Resolution, Revoked, StandingGrant, StoreFault, TicketView,
};
use callgate_std::entropy::{OsEntropy, SharedEntropy};

use crate::database::{Database, Link, lock};
use crate::error::DatabaseError;
use crate::grant;
use crate::ticket::{self, Kept, from_millis, to_millis};

/// A store of confirmations in SQLite.
///
/// Every step is one transaction, and what it answered outlives the process and the power (invariant J3). Tokens are not in
/// the file. Arguments are, until they are spent; what SQLite overwrites then may stay in the file beside it whose name ends in
/// `-wal` until that is written anew, which at the latest the last process to close the file does.
///
/// Its time is the wall clock's and never goes back; the latest is kept in the file, and while a process lives, what passed by its
/// monotonic clock counts as well. Where the wall clock is set back by more than a few seconds, everything that waits is forgotten
/// rather than given a longer life (invariants C2, C4).
///
/// Whoever can put back an older copy of the file can bring back what was claimed since, within its time to live.
pub struct SqliteConfirmations {
    database: Arc<Database>,
    capacity: Capacity,
    clock: SharedClock,
    entropy: SharedEntropy,
    approvers: AtomicBool,
    /// Time as this process has seen it.
    time: Mutex<ProcessTime>,
}

impl SqliteConfirmations {
    /// The store in this file, which is made if there is none.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Ok(Self::on(Arc::new(Database::open(path)?)))
    }

    /// The store in this file, with the system's clock and randomness and [`Capacity::DEFAULT`].
    #[must_use]
    pub fn on(database: Arc<Database>) -> Self {
        Self::with(database, Capacity::DEFAULT, SystemClock::shared(), OsEntropy::shared())
    }

    /// The same with these bounds, this clock and this source of tokens. The bounds are those of this process; what another
    /// one keeps counts.
    #[must_use]
    pub fn with(database: Arc<Database>, capacity: Capacity, clock: SharedClock, entropy: SharedEntropy) -> Self {
        Self { database, capacity, clock, entropy, approvers: AtomicBool::new(false), time: Mutex::default() }
    }

    /// Says whether approvers can be reached. As long as they can't, which is how a store starts, a call that needs one is
    /// refused at once instead of waiting for nobody.
    pub fn attach_approvers(&self, attached: bool) {
        self.approvers.store(attached, Ordering::Release);
    }

    /// The file.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// One atomic step, at the time by it. A failure is reported.
    ///
    /// A step that failed has not seen that the clock was set back: the next one does, and forgets what waits, again where that is not
    /// known to be done (invariant C2).
    fn step<R>(&self, rule: impl FnOnce(&Shelf<'_>) -> Result<R, DatabaseError>) -> Result<R, StoreFault> {
        let mut unseen = None;
        let result = self.database.step(|link| {
            // Read when it is this step's turn: a reading from before would look like a clock that was set back.
            let reading = self.clock.now();
            let seen = link.one("SELECT time_ms FROM confirmations", [], |row| row.get(0))?;
            let seen = from_millis(seen).map_err(|reason| link.damaged(reason))?;
            let (before, time) = {
                let mut passing = lock(&self.time);
                (*passing, passing.step(seen, reading))
            };
            let shelf = Shelf { link, now: time.now, capacity: &self.capacity };
            if !time.set_back {
                return rule(&shelf);
            }
            unseen = Some(before);
            let result = shelf.forget(time.back_ms).and_then(|()| rule(&shelf));
            if result.is_err() {
                // Before it is anybody else's turn.
                *lock(&self.time) = before;
            }
            result
        });
        result.map_err(|error| {
            if let Some(before) = unseen {
                *lock(&self.time) = before;
            }
            self.database.report(&error);
            StoreFault
        })
    }
}

impl ConfirmationStore for SqliteConfirmations {
    fn guarantee(&self) -> Guarantee {
        Guarantee::ALL
    }

    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        if request.by == By::Approver && !self.approvers.load(Ordering::Acquire) {
            return Err(IssueFault::NoApprover);
        }
        let token = self.entropy.token().map_err(|_| IssueFault::Store)?;
        self.step(|shelf| {
            let ticket = request.ticket(shelf.now, ttl_ms);
            let added = shelf.add(token.hash(), &ticket, request)?;
            Ok(added.map(|()| Issued { token, expires_at: ticket.expires_at }))
        })?
    }

    fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        self.step(|shelf| {
            let Some(kept) = Kept::find(shelf.link, ticket)? else { return Ok(None) };
            let loaded = kept.loaded(shelf.link, shelf.now)?;
            if loaded.usable == Err(Refusal::Expired) {
                shelf.keep_time()?;
            }
            Ok(Some(loaded))
        })
    }

    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        self.step(|shelf| {
            let claimed =
                shelf.apply(ticket, |kept, now| kept.ticket.claim(presented, now).map(|()| kept.ticket.by))?;
            Ok(claimed.unwrap_or(Err(Refusal::Unknown)))
        })
    }

    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        self.step(|shelf| {
            let finished = shelf.apply(finish.ticket, |kept, _| kept.ticket.finish(finish.call, finish.effect))?;
            Ok(finished.unwrap_or(Err(FinishError::Unknown)))
        })
    }

    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        self.step(|shelf| shelf.apply(ticket, |kept, _| kept.ticket.cancel()).map(drop))
    }

    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        self.step(|shelf| {
            let decided = shelf.apply(ticket, |kept, now| kept.decide(shelf.link, verdict, approver, now))?;
            decided.unwrap_or(Ok(Err(DecideFault::Unknown)))
        })?
    }

    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        self.step(|shelf| ticket::pending(shelf.link, approver, max, shelf.now))
    }

    fn cancel(&self, ticket: Digest, requester: &CallContext<'_>) -> Result<Result<(), CancelError>, StoreFault> {
        self.step(|shelf| {
            let cancelled = shelf.apply(ticket, |kept, _| kept.ticket.cancel_by(requester))?;
            Ok(cancelled.unwrap_or(Err(CancelError::Unknown)))
        })
    }

    fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        self.step(|shelf| {
            let reaped = ticket::reap(shelf.link, max, shelf.now)?;
            if !reaped.is_empty() {
                shelf.keep_time()?;
            }
            Ok(reaped)
        })
    }

    fn reconcile(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        let Resolution { effect, proof, by } = resolution;
        self.step(|shelf| {
            let settled = shelf.apply(ticket, |kept, _| {
                let tenant = kept.tenant.clone();
                kept.ticket.reconcile(*effect, proof, by, tenant.as_deref())
            })?;
            if let Err(error) = settled.unwrap_or(Err(ReconcileError::Unknown)) {
                return Ok(Err(error));
            }
            let Some(kept) = Kept::find(shelf.link, ticket)? else { return Ok(Err(ReconcileError::Unknown)) };
            kept.keep_proof(shelf.link, proof)?;
            Ok(Ok(kept.view(shelf.link, shelf.now)?))
        })
    }

    fn grant(&self, grant: NewGrant, by: &CallContext<'_>) -> Result<StandingGrant, GrantError> {
        let id = self.entropy.token().map_err(|_| GrantError::Store)?.hash();
        let given = self.step(|shelf| {
            let grant = match grant.given(id, by, shelf.now) {
                Ok(grant) => grant,
                Err(error) => return Ok(Err(error)),
            };
            shelf.keep_time()?;
            Ok(grant::add(shelf.link, &grant, shelf.now)?.map(|()| grant))
        });
        given.map_err(|_| GrantError::Store)?
    }

    fn grants_for(&self, caller: &CallContext<'_>, definition: Digest) -> Result<Vec<StandingGrant>, StoreFault> {
        self.step(|shelf| grant::of_caller(shelf.link, caller, definition, shelf.now))
    }

    fn claim_grant(
        &self,
        grant: Digest,
        request: &PendingRequest<'_>,
        presented: &Presented,
    ) -> Result<Digest, GrantError> {
        let id = self.entropy.token().map_err(|_| GrantError::Store)?.hash();
        let claimed = self.step(|shelf| {
            let Some(mut grant) = grant::find(shelf.link, grant)? else { return Ok(Err(GrantError::Unknown)) };
            let ticket = match grant.cover(request, presented, shelf.now) {
                Ok(ticket) => ticket,
                Err(error) => return Ok(Err(error)),
            };
            match shelf.add(id, &ticket, request)? {
                Ok(()) => {}
                Err(IssueFault::Full) => return Ok(Err(GrantError::Full)),
                Err(_) => return Ok(Err(GrantError::Store)),
            }
            ticket::keep_grant(shelf.link, id, &ticket, &grant)?;
            grant::keep(shelf.link, &grant)?;
            Ok(Ok(id))
        });
        claimed.map_err(|_| GrantError::Store)?
    }

    fn grants(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        self.step(|shelf| grant::visible(shelf.link, viewer, max))
    }

    fn revoke(&self, grant: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantError> {
        let revoked = self.step(|shelf| {
            let Some(mut grant) = grant::find(shelf.link, grant)? else { return Ok(Err(GrantError::Unknown)) };
            if let Err(error) = grant.revoke(by) {
                return Ok(Err(error));
            }
            grant::keep(shelf.link, &grant)?;
            grant::revoked(shelf.link, &grant).map(Ok)
        });
        revoked.map_err(|_| GrantError::Store)?
    }

    fn ticket(&self, ticket: Digest, viewer: &CallContext<'_>) -> Result<Option<TicketView>, StoreFault> {
        self.step(|shelf| ticket::visible_one(shelf.link, ticket, viewer, shelf.now))
    }

    fn tickets(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        self.step(|shelf| ticket::visible(shelf.link, viewer, max, shelf.now))
    }
}

/// The tickets, within a step.
struct Shelf<'s> {
    link: &'s Link<'s>,
    now: Timestamp,
    capacity: &'s Capacity,
}

impl Shelf<'_> {
    /// Applies one rule to one ticket, and keeps what it made of it. That a ticket was seen to expire is kept, too, so that no
    /// other process finds it alive under an earlier clock (invariant C2).
    fn apply<R>(&self, id: Digest, rule: impl FnOnce(&mut Kept, Timestamp) -> R) -> Result<Option<R>, DatabaseError> {
        let Some(mut kept) = Kept::find(self.link, id)? else { return Ok(None) };
        let before = kept.ticket;
        let answer = rule(&mut kept, self.now);
        if kept.ticket != before {
            kept.keep_state(self.link)?;
            self.keep_time()?;
        } else if self.now >= before.expires_at {
            self.keep_time()?;
        }
        Ok(Some(answer))
    }

    /// Forgets what waits where the clock was set back by so much. What is held is held until as much earlier.
    fn forget(&self, back_ms: u64) -> Result<(), DatabaseError> {
        self.link.execute("UPDATE grants SET revoked = 1", [])?;
        self.link.execute("DELETE FROM tickets WHERE state NOT IN ('reserved', 'in_doubt')", [])?;
        let sql = "UPDATE tickets SET held_until_ms = max(held_until_ms - ?1, 0) WHERE state = 'reserved'";
        self.link.execute(sql, [i64::try_from(back_ms).unwrap_or(i64::MAX)])?;
        self.keep_time()
    }

    fn keep_time(&self) -> Result<(), DatabaseError> {
        self.link.execute("UPDATE confirmations SET time_ms = ?1", [to_millis(self.now)]).map(drop)
    }

    /// Adds a ticket, if there is or can be made room for it.
    fn add(
        &self,
        id: Digest,
        ticket: &Ticket,
        request: &PendingRequest<'_>,
    ) -> Result<Result<(), IssueFault>, DatabaseError> {
        self.keep_time()?;
        self.sweep(MAX_SKEW_MS)?;
        while !self.has_room(request)? {
            if self.sweep(0)? == 0 {
                return Ok(Err(IssueFault::Full));
            }
        }
        // Two tokens that are equal mean that the source of randomness is broken.
        if Kept::find(self.link, id)?.is_some() {
            return Ok(Err(IssueFault::Store));
        }
        ticket::add(self.link, id, ticket, request)?;
        Ok(Ok(()))
    }

    fn has_room(&self, request: &PendingRequest<'_>) -> Result<bool, DatabaseError> {
        let sql = "SELECT tickets, bytes, ifnull((SELECT tickets FROM principals WHERE principal_digest = ?1), 0) \
                   FROM confirmations";
        let principal = request.binding.principal;
        let count = |row: &rusqlite::Row<'_>, at| {
            row.get::<_, i64>(at).map(|count| usize::try_from(count).unwrap_or(usize::MAX))
        };
        let (tickets, bytes, own) =
            self.link.one(sql, [principal.as_bytes()], |row| Ok((count(row, 0)?, count(row, 1)?, count(row, 2)?)))?;
        Ok(tickets < self.capacity.entries
            && own < self.capacity.per_principal
            && bytes.saturating_add(request.bytes()) <= self.capacity.bytes)
    }

    /// Forgets some tickets that expired at least `grace_ms` ago, and says how many (invariant C3). Within the grace a late
    /// presentation is still told apart from an unknown one, in the record.
    fn sweep(&self, grace_ms: u64) -> Result<usize, DatabaseError> {
        let Some(before) = self.now.as_unix_millis().checked_sub(grace_ms) else { return Ok(0) };
        let sql = "DELETE FROM tickets WHERE ticket IN \
                   (SELECT ticket FROM tickets WHERE expires_ms <= ?1 AND state NOT IN ('reserved', 'in_doubt') \
                    ORDER BY expires_ms LIMIT ?2)";
        let before = to_millis(Timestamp::from_unix_millis(before));
        self.link.execute(sql, (before, i64::try_from(Capacity::SWEEP).unwrap_or(i64::MAX)))
    }
}

impl fmt::Debug for SqliteConfirmations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteConfirmations").field("path", &self.database.path()).finish_non_exhaustive()
    }
}
