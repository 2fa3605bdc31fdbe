//! A journal in memory: for programs whose callers ask again while they live.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use callgate_core::confirm::ReconcileError;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::{StoreTime, Timestamp};

use super::{
    FinishOperation, Journal, JournalAnswer, JournalLimits, KeptReply, Operation, OperationRefusal, OperationRequest,
    OperationState, OperationView, PresentedOperation, Recalled, SettleError, StoreFault, is_visible_to,
};
use crate::clock::{SharedClock, SystemClock};
use crate::confirmations::Resolution;
use crate::guarantee::Guarantee;
use crate::lock::{Mutex, MutexGuard, lock};

/// A journal in memory. Lost with the process, and with it everything that it knew: an operation that is asked for after a restart runs
/// again. A tool with damage to do needs one that is not ([`Guarantee`]).
///
/// Its time is that of [`MemoryConfirmations`](crate::confirmations::MemoryConfirmations): it never goes back and never stands still
/// (invariant C2).
pub struct MemoryJournal {
    limits: JournalLimits,
    clock: SharedClock,
    shelf: Mutex<Shelf>,
}

struct Shelf {
    entries: HashMap<Digest, Entry>,
    /// What may be forgotten at some time, the earliest first.
    settled: BTreeSet<(Timestamp, [u8; 32])>,
    principals: HashMap<Digest, usize>,
    tenants: HashMap<String, usize>,
    bytes: usize,
    time: StoreTime,
}

struct Entry {
    operation: Operation,
    id: String,
    tool: String,
    tenant: Option<String>,
    principal: String,
    principal_digest: Digest,
    request_id: String,
    result: Option<KeptReply>,
    proof: Option<String>,
    /// What it counts for, its result included.
    bytes: usize,
}

impl Entry {
    fn view(&self, key: Digest) -> OperationView {
        OperationView {
            key,
            operation: self.id.clone(),
            state: self.operation.state,
            attempt: self.operation.attempt.get(),
            since: self.operation.since,
            tool: self.tool.clone(),
            tenant: self.tenant.clone(),
            principal: self.principal.clone(),
            request_id: self.request_id.clone(),
            has_result: self.result.is_some(),
            proof: self.proof.clone(),
        }
    }

    fn result(&self) -> Result<Recalled<KeptReply>, OperationRefusal> {
        self.result.clone().map(Recalled::Completed).ok_or(OperationRefusal::NotKept)
    }
}

impl MemoryJournal {
    /// A journal with the system's clock.
    #[must_use]
    pub fn new(limits: JournalLimits) -> Self {
        Self::with(limits, SystemClock::shared())
    }

    /// A journal with this clock.
    #[must_use]
    pub fn with(limits: JournalLimits, clock: SharedClock) -> Self {
        let shelf = Mutex::new(Shelf {
            entries: HashMap::new(),
            settled: BTreeSet::new(),
            principals: HashMap::new(),
            tenants: HashMap::new(),
            bytes: 0,
            time: StoreTime::start(clock.now()),
        });
        Self { limits, clock, shelf }
    }

    /// How many operations are kept, those included whose time is over and that were not forgotten yet.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.shelf).entries.len()
    }

    /// Whether no operation is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn open(&self) -> (MutexGuard<'_, Shelf>, Timestamp) {
        // The clock is a host's: it is read before the lock is held.
        let reading = self.clock.now();
        let mut shelf = lock(&self.shelf);
        let now = shelf.time.advance(reading);
        (shelf, now)
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new(JournalLimits::DEFAULT)
    }
}

impl fmt::Debug for MemoryJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryJournal").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Shelf {
    /// The operation, unless its time is over: what is told must not hang on when it is forgotten.
    fn kept(&self, key: Digest, now: Timestamp, limits: &JournalLimits) -> Option<&Entry> {
        self.entries.get(&key).filter(|entry| !entry.operation.is_forgettable(now, limits.retention_ms))
    }

    fn forget(&mut self, key: Digest) {
        let Some(entry) = self.entries.remove(&key) else { return };
        self.settled.remove(&(entry.operation.since, *key.as_bytes()));
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        if let Some(count) = self.principals.get_mut(&entry.principal_digest) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.principals.remove(&entry.principal_digest);
            }
        }
        if let Some(tenant) = &entry.tenant
            && let Some(count) = self.tenants.get_mut(tenant)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.tenants.remove(tenant);
            }
        }
    }

    fn sweep(&mut self, now: Timestamp, limits: &JournalLimits, most: usize) {
        for _ in 0..most {
            match self.settled.first() {
                Some((since, key)) if now >= since.saturating_add_millis(limits.retention_ms) => {
                    let key = Digest::from_bytes(*key);
                    self.forget(key);
                }
                _ => return,
            }
        }
    }

    fn has_room(&self, request: &OperationRequest<'_>, limits: &JournalLimits) -> bool {
        let of_principal = self.principals.get(&request.presented.principal).copied().unwrap_or(0);
        let of_tenant = request.caller.tenant.and_then(|tenant| self.tenants.get(tenant)).copied().unwrap_or(0);
        self.entries.len() < limits.operations
            && of_principal < limits.per_principal
            && of_tenant < limits.per_tenant
            && self.bytes.saturating_add(request.bytes()) <= limits.bytes
    }

    /// Changes an operation by a rule of core, and where it stands in the order of forgetting.
    fn change<R>(&mut self, key: Digest, rule: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        let entry = self.entries.get_mut(&key)?;
        self.settled.remove(&(entry.operation.since, *key.as_bytes()));
        let answer = rule(entry);
        if !entry.operation.state.is_unsettled() {
            self.settled.insert((entry.operation.since, *key.as_bytes()));
        }
        Some(answer)
    }
}

impl Journal for MemoryJournal {
    fn guarantee(&self) -> Guarantee {
        Guarantee { atomic_claim: true, ..Guarantee::NONE }
    }

    fn recall(&self, presented: &PresentedOperation) -> JournalAnswer {
        let (shelf, now) = self.open();
        let kept = shelf.kept(presented.key, now, &self.limits);
        Ok(match (Operation::look(kept.map(|entry| &entry.operation), presented, now), kept) {
            (Ok(Recalled::Completed(())), Some(entry)) => entry.result(),
            (Ok(Recalled::Completed(())), None) => Err(OperationRefusal::NotKept),
            (Ok(Recalled::Free(attempt)), _) => Ok(Recalled::Free(attempt)),
            (Err(refusal), _) => Err(refusal),
        })
    }

    fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer {
        let (mut shelf, now) = self.open();
        let key = request.presented.key;
        shelf.sweep(now, &self.limits, JournalLimits::SWEEP);
        if shelf.kept(key, now, &self.limits).is_none() {
            shelf.forget(key);
        }
        let kept = shelf.entries.get(&key);
        let claimed = match Operation::claim(kept.map(|entry| &entry.operation), &request.presented, now) {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(None) => return Ok(kept.map_or(Err(OperationRefusal::NotKept), Entry::result)),
            Ok(Some(claimed)) => claimed,
        };
        let taken = shelf.change(key, |entry| {
            (entry.operation, entry.proof) = (claimed, None);
            request.caller.request_id.clone_into(&mut entry.request_id);
        });
        if taken.is_none() {
            if !shelf.has_room(request, &self.limits) {
                shelf.sweep(now, &self.limits, usize::MAX);
            }
            if !shelf.has_room(request, &self.limits) {
                return Ok(Err(OperationRefusal::Full));
            }
            let caller = &request.caller;
            let entry = Entry {
                operation: claimed,
                id: request.operation.to_owned(),
                tool: request.tool.to_owned(),
                tenant: caller.tenant.map(str::to_owned),
                principal: caller.known_principal().unwrap_or_default().to_owned(),
                principal_digest: request.presented.principal,
                request_id: caller.request_id.to_owned(),
                result: None,
                proof: None,
                bytes: request.bytes(),
            };
            shelf.bytes = shelf.bytes.saturating_add(entry.bytes);
            *shelf.principals.entry(entry.principal_digest).or_default() += 1;
            if let Some(tenant) = &entry.tenant {
                *shelf.tenants.entry(tenant.clone()).or_default() += 1;
            }
            drop(shelf.entries.insert(key, entry));
        }
        Ok(Ok(Recalled::Free(claimed.attempt)))
    }

    fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault> {
        let (mut shelf, now) = self.open();
        let room = self.limits.result_bytes.min(self.limits.bytes.saturating_sub(shelf.bytes));
        let settled = shelf.change(finish.key, |entry| {
            entry.operation.settle(finish.attempt, finish.effect, now)?;
            let kept =
                result.filter(|result| entry.operation.state == OperationState::Completed && result.bytes() <= room);
            let bytes = kept.map_or(0, KeptReply::bytes);
            (entry.result, entry.bytes) = (kept.cloned(), entry.bytes.saturating_add(bytes));
            Ok(bytes)
        });
        Ok(match settled {
            None => Err(SettleError::Unknown),
            Some(Err(error)) => Err(error),
            Some(Ok(bytes)) => {
                shelf.bytes = shelf.bytes.saturating_add(bytes);
                Ok(())
            }
        })
    }

    fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        let (mut shelf, now) = self.open();
        let lost =
            shelf.entries.iter_mut().filter_map(|(key, entry)| entry.operation.reap(now).then(|| entry.view(*key)));
        Ok(lost.take(max).collect())
    }

    fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        let (mut shelf, now) = self.open();
        let Resolution { effect, proof, by } = resolution;
        let settled = shelf.change(key, |entry| {
            entry.operation.reap(now);
            entry.operation.reconcile(*effect, proof, by, entry.tenant.as_deref(), now)?;
            entry.proof = Some((*proof).to_owned());
            Ok(entry.view(key))
        });
        Ok(settled.unwrap_or(Err(ReconcileError::Unknown)))
    }

    fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        let (shelf, now) = self.open();
        let mut views: Vec<_> = shelf
            .entries
            .iter()
            .filter(|(_, entry)| !entry.operation.is_forgettable(now, self.limits.retention_ms))
            .filter(|(_, entry)| is_visible_to(viewer, entry.tenant.as_deref(), entry.principal_digest))
            .map(|(key, entry)| entry.view(*key))
            .collect();
        views.sort_by_key(|view| (view.state != OperationState::InDoubt, view.since, *view.key.as_bytes()));
        views.truncate(max);
        Ok(views)
    }
}
