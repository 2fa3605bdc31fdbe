//! The store of a device behind the trait of this crate, so that it passes the same suite.

use std::sync::Mutex;

use callgate_core::call::Finish;
use callgate_core::confirm::{By, CancelError, Decided, FinishError, Presented, ReconcileError, Refusal, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::fixed::{self, Confirmations, Question, Seen};
use callgate_std::clock::{Clock, ManualClock};
use callgate_std::confirmations::{
    Capacity, ConfirmationStore, DecideFault, IssueFault, Issued, Loaded, PendingApproval, PendingRequest, Resolution,
    StoreFault, TicketView,
};
use callgate_std::entropy::{SeededEntropy, SharedEntropy};

use crate::bench::Bench;

/// Room for the suite's texts.
const TEXT: usize = 128;

struct Fixed<const PLACES: usize> {
    clock: ManualClock,
    entropy: SharedEntropy,
    store: Mutex<Confirmations<PLACES, TEXT>>,
}

impl<const PLACES: usize> std::fmt::Debug for Fixed<PLACES> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.with(|store, _| write!(f, "{store:?}"))
    }
}

impl<const PLACES: usize> Fixed<PLACES> {
    fn with<R>(&self, act: impl FnOnce(&mut Confirmations<PLACES, TEXT>, callgate_core::time::Now) -> R) -> R {
        act(&mut self.store.lock().expect("no panic"), self.clock.now())
    }

    /// What takes no time from its host. The suite takes it that a store sees the clock whenever it is asked, so it is shown first.
    fn timeless<R>(&self, ticket: Digest, act: impl FnOnce(&mut Confirmations<PLACES, TEXT>) -> R) -> R {
        self.with(|store, now| {
            let _ = store.load(ticket, &mut [0; TEXT], now);
            act(store)
        })
    }
}

impl<const PLACES: usize> ConfirmationStore for Fixed<PLACES> {
    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        let PendingRequest { binding, by, approver_scope, approvals, caller, tool, arguments, ref summary } = *request;
        let question = Question { binding, by, approver_scope, approvals, caller, tool, arguments, summary };
        self.with(|store, now| store.issue(&question, ttl_ms, &*self.entropy, now))
    }

    fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        let mut room = [0; TEXT];
        let loaded = self.with(|store, now| store.load(ticket, &mut room, now))?;
        Ok(loaded.map(|found| Loaded {
            binding: found.binding,
            usable: found.usable,
            arguments: found.arguments.into(),
        }))
    }

    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        Ok(self.with(|store, now| store.claim(ticket, presented, now)))
    }

    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        Ok(self.timeless(finish.ticket, |store| store.finish(finish)))
    }

    fn cancel(&self, ticket: Digest, requester: &CallContext<'_>) -> Result<Result<(), CancelError>, StoreFault> {
        Ok(self.timeless(ticket, |store| store.cancel(ticket, requester)))
    }

    fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        self.with(|store, now| {
            let reap = || store.reap(now).map(|seen| view(&seen));
            Ok(std::iter::from_fn(reap).take(max).collect())
        })
    }

    fn reconcile(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        let Resolution { effect, proof, by } = resolution;
        self.timeless(ticket, |_| ());
        Ok(self.with(|store, now| {
            store.reconcile(ticket, *effect, proof, by)?;
            // How it is known is for the record; a device keeps it nowhere else.
            let found = store.tickets(by, now).find(|seen| seen.ticket == ticket).map(|seen| view(&seen));
            Ok(TicketView { proof: Some((*proof).to_owned()), ..found.expect("it is there") })
        }))
    }

    fn tickets(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        let mut found: Vec<_> = self.with(|store, now| store.tickets(viewer, now).map(|seen| view(&seen)).collect());
        found.sort_by_key(|view| (view.issued_at, *view.ticket.as_bytes()));
        found.truncate(max);
        Ok(found)
    }

    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        self.timeless(ticket, |store| store.withdraw(ticket));
        Ok(())
    }

    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        self.with(|store, now| store.decide(ticket, verdict, approver, now)).map_err(|fault| match fault {
            fixed::DecideFault::Unknown => DecideFault::Unknown,
            fixed::DecideFault::Refused(error) => DecideFault::Refused(error),
            fixed::DecideFault::Full => DecideFault::Store,
        })
    }

    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        let mut found: Vec<_> = self.with(|store, now| {
            let pending = store.pending(approver, now).map(|pending| PendingApproval {
                ticket: pending.ticket,
                tool: pending.tool.to_owned(),
                tenant: approver.tenant.map(str::to_owned),
                principal: pending.principal.map(str::to_owned),
                channel: pending.channel.to_owned(),
                request_id: pending.request_id.to_owned(),
                scope: "approve".to_owned(),
                summary: pending.summary.to_owned(),
                issued_at: pending.issued_at,
                expires_at: pending.expires_at,
            });
            pending.collect()
        });
        // The order and the bound are the front-end's.
        found.sort_by_key(|pending| (pending.issued_at, *pending.ticket.as_bytes()));
        found.truncate(max);
        Ok(found)
    }
}

/// What a device tells, as the suite reads it.
fn view(seen: &Seen<'_>) -> TicketView {
    TicketView {
        ticket: seen.ticket,
        state: seen.state,
        expired: seen.expired,
        by: seen.by,
        needs: seen.needs,
        approved_by: vec![String::new(); usize::from(seen.approvals)],
        tool: seen.tool.to_owned(),
        tenant: None,
        principal: seen.principal.map(str::to_owned),
        channel: String::new(),
        request_id: seen.request_id.to_owned(),
        scope: String::new(),
        summary: String::new(),
        issued_at: seen.issued_at,
        expires_at: seen.expires_at,
        proof: None,
        grant: None,
    }
}

fn bench<const PLACES: usize>(capacity: Capacity) -> Bench {
    let clock = ManualClock::new();
    let store = Confirmations::new().with_at_most_per_principal(capacity.per_principal);
    let (entropy, store) = (SeededEntropy::shared(7), Mutex::new(store));
    let fixed = Fixed::<PLACES> { clock: clock.clone(), entropy, store };
    // From its start on, as other stores.
    fixed.timeless(Digest::of_bytes(b""), |_| ());
    Bench::new(fixed, clock, |fixed, on| fixed.with(|store, _| store.attach_approvers(on)))
}

/// A store of as many places as are wanted, of those that are compiled.
pub(crate) fn device(capacity: Capacity) -> Bench {
    match capacity {
        Capacity { entries: 3, .. } => bench::<3>(capacity),
        Capacity { bytes: 4_096, .. } => bench::<8>(capacity),
        _ => bench::<128>(capacity),
    }
}

/// D2, F5: what has no room in a place is not kept in part.
#[test]
fn d2_what_is_too_long_is_not_asked() {
    let bench = device(Capacity::DEFAULT);
    let long = "x".repeat(TEXT);
    let mut request = crate::bench::request(1);
    request.arguments = long.as_bytes();
    assert_eq!(bench.store.issue(&request, 1), Err(IssueFault::Full));
    let mut approval = crate::bench::approval(1);
    approval.summary.clone_from(&long);
    assert_eq!(bench.store.issue(&approval, 1), Err(IssueFault::Full));
    // Nobody reads the summary of a call that its caller confirms.
    request.arguments = b"{}";
    request.summary = approval.summary;
    assert!(bench.store.issue(&request, 1).is_ok());
}
