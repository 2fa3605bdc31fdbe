//! A store of one ticket, in which faults can be planted that only an order of steps shows.

use std::iter::{Empty, empty};

use callgate_core::call::Finish;
use callgate_core::confirm::{Asked, By, Decided, FinishError, Presented, Refusal, Ticket, TicketState, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use callgate_std::clock::SharedClock;
use callgate_std::confirmations::{
    ConfirmationStore, DecideFault, IssueFault, Issued, Loaded, PendingApproval, PendingRequest, StoreFault, Token,
};
use loom::sync::{Mutex, MutexGuard};

/// What is asked of approvers.
pub(crate) const ASKED: Asked<'static, Empty<&str>> = Asked { tenant: None, scope: "approve", approved_by: empty() };

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A claim asks whether the ticket is usable, lets go of it, and then takes it.
    ChecksThenClaims,
    /// A withdrawal writes what it made of a copy.
    WithdrawsFromACopy,
    /// A decision writes what it made of a copy.
    DecidesOnACopy,
    /// Makes room of tickets that were claimed and have not expired.
    ForgetsWhatIsClaimed,
    /// Takes the time that a thread read, however late the thread comes.
    BelievesALateThread,
}

pub(crate) struct FaultyConfirmations {
    fault: Fault,
    clock: SharedClock,
    kept: Mutex<Kept>,
}

struct Kept {
    ticket: Option<Ticket>,
    mark: Timestamp,
}

impl FaultyConfirmations {
    pub(crate) fn new(fault: Fault, ticket: Ticket, clock: SharedClock) -> Self {
        Self { fault, clock, kept: Mutex::new(Kept { ticket: Some(ticket), mark: ticket.issued_at }) }
    }

    /// The name of the one ticket.
    pub(crate) fn id() -> Digest {
        Digest::of_bytes(b"the ticket")
    }

    fn open(&self) -> (MutexGuard<'_, Kept>, Timestamp) {
        let wall = self.clock.now().wall;
        let mut kept = self.kept.lock().expect("no panic");
        if self.fault == Fault::BelievesALateThread {
            return (kept, wall);
        }
        kept.mark = kept.mark.max(wall);
        let now = kept.mark;
        (kept, now)
    }

    /// Applies `rule` to the ticket, or to a copy of it that is written back later.
    fn step<R>(&self, on_a_copy: bool, rule: impl FnOnce(&mut Ticket, Timestamp) -> R) -> Option<R> {
        let (mut kept, now) = self.open();
        if !on_a_copy {
            return kept.ticket.as_mut().map(|ticket| rule(ticket, now));
        }
        let mut copy = kept.ticket?;
        drop(kept);
        let before = copy;
        let answer = rule(&mut copy, now);
        if copy != before {
            self.open().0.ticket = Some(copy);
        }
        Some(answer)
    }
}

impl ConfirmationStore for FaultyConfirmations {
    fn issue(&self, _: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        let (mut kept, now) = self.open();
        let fault = self.fault;
        let settled = |ticket: Ticket| {
            ticket.is_forgettable(now)
                || fault == Fault::ForgetsWhatIsClaimed && matches!(ticket.state, TicketState::Reserved { .. })
        };
        if !kept.ticket.is_some_and(settled) {
            return Err(IssueFault::Full);
        }
        kept.ticket = None;
        Ok(Issued { token: Token::from_random([1; 16]), expires_at: now.saturating_add_millis(ttl_ms) })
    }

    fn load(&self, _: Digest) -> Result<Option<Loaded>, StoreFault> {
        let (kept, now) = self.open();
        Ok(kept.ticket.map(|ticket| Loaded {
            binding: ticket.binding,
            usable: ticket.usable(now),
            arguments: Vec::new().into(),
        }))
    }

    fn claim(&self, _: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        let on_a_copy = self.fault == Fault::ChecksThenClaims;
        let claimed = self.step(on_a_copy, |ticket, now| ticket.claim(presented, now).map(|()| ticket.by));
        Ok(claimed.unwrap_or(Err(Refusal::Unknown)))
    }

    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        let finished = self.step(false, |ticket, _| ticket.finish(finish.call, finish.effect));
        Ok(finished.unwrap_or(Err(FinishError::Unknown)))
    }

    fn withdraw(&self, _: Digest) -> Result<(), StoreFault> {
        self.step(self.fault == Fault::WithdrawsFromACopy, |ticket, _| ticket.cancel());
        Ok(())
    }

    fn decide(&self, _: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        let decided = self.step(self.fault == Fault::DecidesOnACopy, |ticket, now| {
            ticket.decide(verdict, approver, &ASKED, now).map_err(DecideFault::from)
        });
        decided.unwrap_or(Err(DecideFault::Unknown))
    }

    fn pending(&self, _: &CallContext<'_>, _: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        Ok(Vec::new())
    }
}
