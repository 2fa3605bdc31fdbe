//! What every store of confirmations keeps, and the order in which it forgets. The owner brings the time and makes each
//! method one atomic step.

use std::cmp::Reverse;
use std::collections::hash_map::Entry as Slot;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use callgate_core::call::{Finish, IssueFault, Loaded};
use callgate_core::confirm::{
    Asked, By, CancelError, Decided, FinishError, MAX_SKEW_MS, Presented, ReconcileError, Refusal, Ticket, TicketState,
    Verdict,
};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;

use super::{
    DecideFault, GrantError, MAX_GRANTS, NewGrant, PendingApproval, PendingRequest, Resolution, Revoked, Snapshot,
    StandingGrant, TicketView,
};

/// How much a store keeps at most. Reaching a bound refuses what comes next; nothing alive is dropped for it (invariants F5,
/// C3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain bounds, set by hosts")]
pub struct Capacity {
    /// The most tickets, alive or settled and not yet expired.
    pub entries: usize,
    /// The most bytes of arguments, summaries and names, plus a fixed amount for each ticket.
    pub bytes: usize,
    /// The most tickets of one principal, so that nobody fills the store alone.
    pub per_principal: usize,
}

impl Capacity {
    /// 100,000 tickets, 64 MiB, 1,000 tickets of one principal.
    pub const DEFAULT: Self = Self { entries: 100_000, bytes: 64 << 20, per_principal: 1_000 };

    /// What a ticket counts for beside its texts, in bytes: the entry itself, its place in the order of expiry, its share of the
    /// index.
    pub const TICKET_BYTES: usize = 512;
    /// The most tickets that one step sweeps while there is room: enough to keep up with whoever issues, and bounded, so that
    /// no single call pays for an hour of others.
    pub const SWEEP: usize = 64;
}

impl Default for Capacity {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// One ticket and what belongs to it.
pub(super) struct Entry {
    pub(super) ticket: Ticket,
    pub(super) call: PendingCall,
    /// Its time is over, and it is kept because what became of its call is not known.
    overdue: bool,
}

impl Entry {
    pub(super) const fn new(ticket: Ticket, call: PendingCall) -> Self {
        Self { ticket, call, overdue: false }
    }

    fn asked(&self) -> Asked<'_, impl Iterator<Item = &str> + Clone> {
        let PendingCall { tenant, scope, approved_by, .. } = &self.call;
        let approved_by = approved_by.iter().map(String::as_str);
        Asked { tenant: tenant.as_deref(), scope: scope.as_deref().unwrap_or_default(), approved_by }
    }

    fn view(&self, id: Digest, now: Timestamp) -> TicketView {
        let Self { ticket, call, .. } = self;
        TicketView {
            ticket: id,
            state: ticket.state,
            expired: ticket.is_expired(now),
            by: ticket.by,
            needs: ticket.needs,
            approved_by: call.approved_by.clone(),
            tool: call.tool.clone(),
            tenant: call.tenant.clone(),
            principal: call.principal.clone(),
            channel: call.channel.clone(),
            request_id: call.request_id.clone(),
            scope: call.scope.clone().unwrap_or_default(),
            summary: call.summary.clone(),
            issued_at: ticket.issued_at,
            expires_at: ticket.expires_at,
            proof: call.proof.clone(),
            grant: call.grant,
        }
    }
}

/// The call behind a ticket, owned.
pub(super) struct PendingCall {
    pub(super) tool: String,
    pub(super) tenant: Option<String>,
    pub(super) principal: Option<String>,
    pub(super) channel: String,
    pub(super) request_id: String,
    pub(super) scope: Option<String>,
    pub(super) summary: String,
    pub(super) arguments: Snapshot,
    pub(super) approved_by: Vec<String>,
    pub(super) proof: Option<String>,
    pub(super) grant: Option<Digest>,
}

impl PendingCall {
    fn of(request: &PendingRequest<'_>) -> Self {
        let caller = &request.caller;
        Self {
            tool: request.tool.to_owned(),
            tenant: caller.tenant.map(str::to_owned),
            principal: caller.known_principal().map(str::to_owned),
            channel: caller.channel.to_owned(),
            request_id: caller.request_id.to_owned(),
            scope: request.approver_scope.map(str::to_owned),
            summary: request.summary.clone(),
            arguments: Arc::from(request.arguments),
            approved_by: Vec::new(),
            proof: None,
            grant: None,
        }
    }

    fn bytes(&self) -> usize {
        let optional = [&self.tenant, &self.principal, &self.scope, &self.proof];
        [&self.tool, &self.channel, &self.request_id, &self.summary]
            .into_iter()
            .chain(optional.into_iter().flatten())
            .chain(&self.approved_by)
            .map(String::len)
            .fold(self.arguments.len().saturating_add(Capacity::TICKET_BYTES), usize::saturating_add)
    }
}

/// The tickets of one store.
pub(super) struct Table {
    capacity: Capacity,
    entries: HashMap<Digest, Entry>,
    /// Each ticket once, the next to expire on top.
    expiry: BinaryHeap<Reverse<(Timestamp, [u8; 32])>>,
    bytes: usize,
    by_principal: HashMap<Digest, usize>,
    grants: Vec<StandingGrant>,
}

impl Table {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            entries: HashMap::new(),
            expiry: BinaryHeap::new(),
            bytes: 0,
            by_principal: HashMap::new(),
            grants: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Digest, &Entry)> {
        self.entries.iter()
    }

    /// Keeps a ticket for `request`.
    pub(super) fn issue(
        &mut self,
        id: Digest,
        request: &PendingRequest<'_>,
        ttl_ms: u64,
        now: Timestamp,
    ) -> Result<(), IssueFault> {
        self.add(id, Entry::new(request.ticket(now, ttl_ms), PendingCall::of(request)), now)
    }

    /// Keeps an entry, if there is or can be made room for it.
    fn add(&mut self, id: Digest, entry: Entry, now: Timestamp) -> Result<(), IssueFault> {
        self.sweep(now, Capacity::SWEEP, MAX_SKEW_MS);
        while !self.has_room(&entry) {
            if self.sweep(now, Capacity::SWEEP, 0) == 0 {
                return Err(IssueFault::Full);
            }
        }
        // Two tokens that are equal mean that the source of randomness is broken.
        if self.insert(id, entry) { Ok(()) } else { Err(IssueFault::Store) }
    }

    fn has_room(&self, entry: &Entry) -> bool {
        let own = self.by_principal.get(&entry.ticket.binding.principal).copied().unwrap_or_default();
        self.entries.len() < self.capacity.entries
            && own < self.capacity.per_principal
            && self.bytes.saturating_add(entry.call.bytes()) <= self.capacity.bytes
    }

    /// Keeps an entry; false when there is one of that name already.
    pub(super) fn insert(&mut self, id: Digest, entry: Entry) -> bool {
        let Slot::Vacant(slot) = self.entries.entry(id) else { return false };
        self.bytes = self.bytes.saturating_add(entry.call.bytes());
        self.expiry.push(Reverse((entry.ticket.expires_at, *id.as_bytes())));
        let own = self.by_principal.entry(entry.ticket.binding.principal).or_default();
        *own = own.saturating_add(1);
        slot.insert(entry);
        true
    }

    /// Forgets at most `max` tickets that expired at least `grace_ms` ago, and says how many. Within the grace a late
    /// presentation is still told apart from an unknown one, in the record.
    fn sweep(&mut self, now: Timestamp, max: usize, grace_ms: u64) -> usize {
        let mut swept = 0;
        while swept < max
            && let Some(Reverse((expires_at, id))) = self.expiry.peek()
            && now >= expires_at.saturating_add_millis(grace_ms)
            // The end of time is never over.
            && *expires_at < Timestamp::from_unix_millis(u64::MAX)
        {
            let id = Digest::from_bytes(*id);
            self.expiry.pop();
            match self.entries.get_mut(&id) {
                Some(entry) if !entry.ticket.is_forgettable(now) => entry.overdue = true,
                _ => {
                    self.forget(id);
                    swept += 1;
                }
            }
        }
        swept
    }

    fn forget(&mut self, id: Digest) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.bytes = self.bytes.saturating_sub(entry.call.bytes());
        if let Slot::Occupied(mut own) = self.by_principal.entry(entry.ticket.binding.principal) {
            match own.get().checked_sub(1) {
                None | Some(0) => drop(own.remove()),
                Some(left) => *own.get_mut() = left,
            }
        }
    }

    /// Forgets everything but what is to be found out, and tells the time by a clock that was set back by so much.
    pub(super) fn clear(&mut self, back_ms: u64) {
        let entries = std::mem::take(&mut self.entries);
        let grants = std::mem::take(&mut self.grants);
        *self = Self::new(self.capacity);
        // Their time is not to be lengthened by a clock that was set back; that they were used and revoked is not forgotten.
        self.grants = grants.into_iter().map(|grant| StandingGrant { revoked: true, ..grant }).collect();
        for (id, mut entry) in entries {
            if let TicketState::Reserved { until, .. } = &mut entry.ticket.state {
                *until = Timestamp::from_unix_millis(until.as_unix_millis().saturating_sub(back_ms));
            }
            if entry.ticket.state.is_unsettled() {
                self.insert(id, Entry { overdue: false, ..entry });
            }
        }
    }

    pub(super) fn load(&self, id: Digest, now: Timestamp) -> Option<Loaded<Snapshot>> {
        self.entries.get(&id).map(|entry| Loaded {
            binding: entry.ticket.binding,
            usable: entry.ticket.usable(now),
            arguments: Arc::clone(&entry.call.arguments),
        })
    }

    pub(super) fn claim(&mut self, id: Digest, presented: &Presented, now: Timestamp) -> Result<By, Refusal> {
        self.step(id, |entry| entry.ticket.claim(presented, now).map(|()| entry.ticket.by))
            .unwrap_or(Err(Refusal::Unknown))
    }

    pub(super) fn finish(&mut self, finish: &Finish) -> Result<(), FinishError> {
        let finished = self.step(finish.ticket, |entry| entry.ticket.finish(finish.call, finish.effect));
        finished.unwrap_or(Err(FinishError::Unknown))
    }

    pub(super) fn withdraw(&mut self, id: Digest) {
        self.step(id, |entry| entry.ticket.cancel());
    }

    pub(super) fn cancel(&mut self, id: Digest, requester: &CallContext<'_>) -> Result<(), CancelError> {
        self.step(id, |entry| entry.ticket.cancel_by(requester)).unwrap_or(Err(CancelError::Unknown))
    }

    /// Leaves in doubt what is lost, at most `max` tickets, and tells which.
    pub(super) fn reap(&mut self, max: usize, now: Timestamp) -> Vec<TicketView> {
        let entries = self.entries.iter_mut();
        let lost = entries.filter_map(|(id, entry)| entry.ticket.reap(now).then(|| entry.view(*id, now)));
        sorted(lost.take(max).collect(), max)
    }

    pub(super) fn reconcile(
        &mut self,
        id: Digest,
        resolution: &Resolution<'_>,
        now: Timestamp,
    ) -> Result<TicketView, ReconcileError> {
        let Resolution { effect, proof, by } = resolution;
        let settled = self.step(id, |entry| {
            entry.ticket.reconcile(*effect, proof, by, entry.call.tenant.as_deref())?;
            entry.call.proof = Some((*proof).to_owned());
            Ok(entry.view(id, now))
        });
        settled.unwrap_or(Err(ReconcileError::Unknown))
    }

    pub(super) fn decide(
        &mut self,
        id: Digest,
        verdict: Verdict,
        approver: &CallContext<'_>,
        now: Timestamp,
    ) -> Result<Decided, DecideFault> {
        let decided = self.step(id, |entry| {
            let mut ticket = entry.ticket;
            let decided = ticket.decide(verdict, approver, &entry.asked(), now)?;
            entry.ticket = ticket;
            if decided.is_yes() {
                entry.call.approved_by.extend(approver.known_principal().map(str::to_owned));
            }
            Ok(decided)
        });
        decided.unwrap_or(Err(DecideFault::Unknown))
    }

    /// Applies one rule to one ticket, and lets go of what a settled ticket no longer needs.
    fn step<R>(&mut self, id: Digest, rule: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        let entry = self.entries.get_mut(&id)?;
        let before = entry.call.bytes();
        let answer = rule(entry);
        if !entry.ticket.state.is_open() {
            entry.call.arguments = Arc::default();
            entry.call.summary = String::new();
        }
        if entry.overdue && !entry.ticket.state.is_unsettled() {
            entry.overdue = false;
            self.expiry.push(Reverse((entry.ticket.expires_at, *id.as_bytes())));
        }
        self.bytes = self.bytes.saturating_sub(before).saturating_add(entry.call.bytes());
        Some(answer)
    }

    /// The grants, for whoever writes them down.
    pub(super) fn all_grants(&self) -> &[StandingGrant] {
        &self.grants
    }

    /// Puts a grant back that was written down.
    pub(super) fn put_grant(&mut self, grant: StandingGrant) {
        self.grants.push(grant);
    }

    pub(super) fn grant(
        &mut self,
        id: Digest,
        grant: NewGrant,
        by: &CallContext<'_>,
        now: Timestamp,
    ) -> Result<StandingGrant, GrantError> {
        let grant = grant.given(id, by, now)?;
        // What is over can be told for as long as there is room.
        if self.grants.len() >= MAX_GRANTS {
            self.grants.retain(|kept| kept.is_open(now));
        }
        if self.grants.len() >= MAX_GRANTS {
            return Err(GrantError::Full);
        }
        self.grants.push(grant.clone());
        Ok(grant)
    }

    pub(super) fn grants_for(
        &self,
        caller: &CallContext<'_>,
        definition: Digest,
        now: Timestamp,
    ) -> Vec<StandingGrant> {
        let could = |grant: &&StandingGrant| {
            grant.definition == definition
                && grant.tenant.as_deref() == caller.tenant
                && Some(grant.principal.as_str()) == caller.known_principal()
                && grant.is_open(now)
        };
        self.grants.iter().filter(could).cloned().collect()
    }

    pub(super) fn claim_grant(
        &mut self,
        grant: Digest,
        id: Digest,
        request: &PendingRequest<'_>,
        presented: &Presented,
        now: Timestamp,
    ) -> Result<Digest, GrantError> {
        let at = self.grants.iter().position(|kept| kept.id == grant).ok_or(GrantError::Unknown)?;
        let mut taken = self.grants.get(at).cloned().ok_or(GrantError::Unknown)?;
        let ticket = taken.cover(request, presented, now)?;
        let call = PendingCall {
            grant: Some(grant),
            approved_by: vec![taken.given_by.clone()],
            arguments: Arc::default(),
            summary: String::new(),
            ..PendingCall::of(request)
        };
        self.add(id, Entry::new(ticket, call), now).map_err(|fault| match fault {
            IssueFault::Full => GrantError::Full,
            _ => GrantError::Store,
        })?;
        if let Some(kept) = self.grants.get_mut(at) {
            *kept = taken;
        }
        Ok(id)
    }

    pub(super) fn grants(&self, viewer: &CallContext<'_>, max: usize) -> Vec<StandingGrant> {
        let mut seen: Vec<_> = self.grants.iter().filter(|grant| grant.is_visible_to(viewer)).cloned().collect();
        seen.sort_by_key(|grant| (grant.given_at, *grant.id.as_bytes()));
        seen.truncate(max);
        seen
    }

    pub(super) fn revoke(&mut self, id: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantError> {
        let grant = self.grants.iter_mut().find(|grant| grant.id == id).ok_or(GrantError::Unknown)?;
        grant.revoke(by)?;
        let used = grant.used;
        let under_way =
            |entry: &&Entry| entry.call.grant == Some(id) && matches!(entry.ticket.state, TicketState::Reserved { .. });
        let under_way = self.entries.values().filter(under_way).count();
        Ok(Revoked { used, under_way: u32::try_from(under_way).unwrap_or(u32::MAX) })
    }

    /// What `viewer` may be told of, the oldest first, at most `max`.
    pub(super) fn tickets(&self, viewer: &CallContext<'_>, max: usize, now: Timestamp) -> Vec<TicketView> {
        let seen = self.entries.iter().filter(|(_, entry)| entry.ticket.is_visible_to(viewer, &entry.asked()));
        sorted(seen.map(|(id, entry)| entry.view(*id, now)).collect(), max)
    }

    pub(super) fn pending(&self, approver: &CallContext<'_>, max: usize, now: Timestamp) -> Vec<PendingApproval> {
        let mut found: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, entry)| {
                // The rule itself says whether a decision would count.
                let mut trial = entry.ticket;
                trial.decide(Verdict::Approve, approver, &entry.asked(), now).is_ok()
            })
            .collect();
        found.sort_unstable_by_key(|(id, entry)| (entry.ticket.issued_at, *id.as_bytes()));
        found.truncate(max);
        found
            .into_iter()
            .map(|(id, Entry { ticket, call, .. })| PendingApproval {
                ticket: *id,
                tool: call.tool.clone(),
                tenant: call.tenant.clone(),
                principal: call.principal.clone(),
                channel: call.channel.clone(),
                request_id: call.request_id.clone(),
                scope: call.scope.clone().unwrap_or_default(),
                summary: call.summary.clone(),
                issued_at: ticket.issued_at,
                expires_at: ticket.expires_at,
            })
            .collect()
    }
}

/// The oldest first, at most `max`.
fn sorted(mut views: Vec<TicketView>, max: usize) -> Vec<TicketView> {
    views.sort_unstable_by_key(|view| (view.issued_at, *view.ticket.as_bytes()));
    views.truncate(max);
    views
}
