//! A ticket, and how it goes from a question to a settled answer.
//!
//! ```text
//! Pending -> Approved -> Reserved -> Done
//!    |   \------|------->    |   \-> InDoubt -> Done
//!    \-> Denied | Cancelled <-
//! ```
//!
//! A ticket that its caller answers is reserved from `Pending`. One whose time is over before it is reserved is expired, whatever
//! its state; nothing has to write that down.

use crate::code::Effect;
use crate::context::CallContext;
use crate::digest::Digest;
use crate::time::Timestamp;

use super::{
    Binding, By, CancelError, DecideError, FinishError, MAX_PROOF, MAX_SKEW_MS, RECONCILE_SCOPE, ReconcileError,
    Refusal, Verdict, principal_digest,
};

/// How much longer than its tool may run a call holds the ticket that it claimed, in milliseconds, before the ticket counts as in
/// doubt: for everything that a gate does around the tool.
pub const LEASE_SLACK_MS: u64 = 30_000;

/// Where a ticket stands. It only ever moves down this list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a store must be able to keep every state")]
pub enum TicketState {
    /// Nobody has decided yet, or not all who have to. A caller's own ticket is claimed from here.
    Pending,
    /// The approvers said yes.
    Approved,
    /// An approver said no; it stays no (invariant A9).
    Denied,
    /// Withdrawn: burnt by a mismatched presentation, or cancelled by its requester.
    Cancelled,
    /// Claimed by one call, which is under way. Never claimed again.
    Reserved {
        /// The call; see [`call_digest`](super::call_digest).
        call: Digest,
        /// From when on a call that has not been heard of is in doubt, by the store's clock.
        until: Timestamp,
    },
    /// The call that claimed it was never heard of again, or ended without knowing what it did. Nothing runs it again; whoever
    /// finds out what happened settles it.
    InDoubt,
    /// The call that claimed it is over, with this effect; never [`Effect::Unknown`].
    Done(Effect),
}

impl TicketState {
    /// The name in records and listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Reserved { .. } => "reserved",
            Self::InDoubt => "in_doubt",
            Self::Done(_) => "done",
        }
    }

    /// Whether the ticket may still be claimed, as far as its state says.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Approved)
    }

    /// Whether what became of the call is still to be found out. Such a ticket is kept however late it is (invariant J5).
    #[must_use]
    pub const fn is_unsettled(self) -> bool {
        matches!(self, Self::Reserved { .. } | Self::InDoubt)
    }
}

/// A pending confirmation, as a store keeps it beside the text of the arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// What it is good for.
    pub binding: Binding,
    /// Who has to answer.
    pub by: By,
    /// How many distinct approvers have to say yes: at least 1. Says nothing where the caller answers.
    pub needs: u8,
    /// When it was issued, by the store's clock.
    pub issued_at: Timestamp,
    /// From this moment on it cannot be claimed, by the store's clock (invariant A10: at the moment itself, too).
    pub expires_at: Timestamp,
    /// Where it stands.
    pub state: TicketState,
}

/// A ticket as a call presents it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a store in another process has to make it of what it was sent")]
pub struct Presented {
    /// What the ticket must be good for.
    pub binding: Binding,
    /// The call that presents it; see [`call_digest`](super::call_digest).
    pub call: Digest,
    /// How long the call may take, in milliseconds, before it counts as lost.
    pub lease_ms: u64,
}

/// What was asked of approvers, and who has said yes to it.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a store has to know all of it")]
pub struct Asked<'a, I> {
    /// The tenant of the requester.
    pub tenant: Option<&'a str>,
    /// The scope that an approver needs.
    pub scope: &'a str,
    /// The principals, of this tenant, who have approved.
    pub approved_by: I,
}

/// What a decision came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "an approver's front-end must tell these apart")]
pub enum Decided {
    /// The call may be made, once.
    Approved,
    /// It counts, and so many more approvers have to say yes.
    Counted {
        /// How many.
        missing: u8,
    },
    /// The call may not be made, whoever said yes before.
    Denied,
}

impl Decided {
    /// Whether the approver has to be kept among [`Asked::approved_by`].
    #[must_use]
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Approved | Self::Counted { .. })
    }
}

/// Whether `by` may settle what is in doubt for a requester of this tenant.
pub(crate) fn may_settle(by: &CallContext<'_>, tenant: Option<&str>) -> Result<(), ReconcileError> {
    if by.tenant != tenant {
        return Err(ReconcileError::Unknown);
    }
    if by.known_principal().is_none() {
        return Err(ReconcileError::Unauthenticated);
    }
    if !by.scopes.contains(RECONCILE_SCOPE) {
        return Err(ReconcileError::MissingScope);
    }
    Ok(())
}

/// What settles: an effect that is known, and how.
pub(crate) fn proven(effect: Effect, proof: &str) -> Result<Effect, ReconcileError> {
    if proof.trim().is_empty() || proof.len() > MAX_PROOF {
        return Err(ReconcileError::NoProof);
    }
    if effect == Effect::Unknown {
        return Err(ReconcileError::StillUnknown);
    }
    Ok(effect)
}

impl Ticket {
    /// A fresh ticket, good for `ttl_ms` milliseconds from `now`. Where approvers answer, one is enough.
    #[must_use]
    pub const fn issue(binding: Binding, by: By, now: Timestamp, ttl_ms: u64) -> Self {
        let expires_at = now.saturating_add_millis(ttl_ms);
        Self { binding, by, needs: 1, issued_at: now, expires_at, state: TicketState::Pending }
    }

    /// The same ticket, for which so many distinct approvers have to say yes; none counts as one.
    #[must_use]
    pub const fn needing(mut self, approvers: u8) -> Self {
        self.needs = if approvers == 0 { 1 } else { approvers };
        self
    }

    /// Whether the ticket can be used at `now`, if presented by the right caller for the right call.
    ///
    /// # Errors
    /// Says why it can't.
    pub fn usable(&self, now: Timestamp) -> Result<(), Refusal> {
        match self.state {
            TicketState::Reserved { .. } | TicketState::InDoubt | TicketState::Done(_) => return Err(Refusal::Used),
            TicketState::Cancelled => return Err(Refusal::Cancelled),
            TicketState::Denied | TicketState::Pending | TicketState::Approved => {}
        }
        if self.issued_at > now.saturating_add_millis(MAX_SKEW_MS) {
            return Err(Refusal::FromTheFuture);
        }
        if self.is_over(now) {
            return Err(Refusal::Expired);
        }
        // Told while the ticket lives only: a store may forget it afterwards, and what a caller is told must not hang on that.
        if self.state == TicketState::Denied {
            return Err(Refusal::Denied);
        }
        if self.by == By::Approver && self.state == TicketState::Pending {
            return Err(Refusal::Undecided);
        }
        Ok(())
    }

    /// Whether the ticket was not claimed in time.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.state.is_open() && self.is_over(now)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Whether a store may forget the ticket: nothing that can be presented matches it any more (invariant C3), and what became of its
    /// call is not to be found out (invariant J5).
    #[must_use]
    pub fn is_forgettable(&self, now: Timestamp) -> bool {
        self.is_over(now) && !self.state.is_unsettled()
    }

    /// Claims the ticket for the call that presents it. On success the ticket is reserved and must be stored in the same atomic step,
    /// before the call goes on (invariant J3); on a mismatch the ticket is withdrawn the same way.
    ///
    /// # Errors
    /// Says why it is refused.
    pub fn claim(&mut self, presented: &Presented, now: Timestamp) -> Result<(), Refusal> {
        self.usable(now)?;
        let Presented { binding, call, lease_ms } = presented;
        let mismatch = if self.binding.caller != binding.caller || self.binding.principal != binding.principal {
            Some(Refusal::OtherCaller)
        } else if self.binding.tool != binding.tool {
            Some(Refusal::OtherTool)
        } else if self.binding.arguments != binding.arguments {
            Some(Refusal::OtherArguments)
        } else {
            None
        };
        match mismatch {
            Some(refusal) => {
                self.state = TicketState::Cancelled;
                Err(refusal)
            }
            None => {
                self.state = TicketState::Reserved { call: *call, until: now.saturating_add_millis(*lease_ms) };
                Ok(())
            }
        }
    }

    /// Takes what became of the call that claimed the ticket. One that does not know leaves it in doubt.
    ///
    /// # Errors
    /// Another call claimed it, or it was settled before: a late call changes nothing (invariant J4). The ticket is unchanged.
    pub fn finish(&mut self, call: Digest, effect: Effect) -> Result<(), FinishError> {
        match self.state {
            TicketState::Reserved { call: holder, .. } if holder == call => {
                self.state = match effect {
                    Effect::Unknown => TicketState::InDoubt,
                    known => TicketState::Done(known),
                };
                Ok(())
            }
            state @ (TicketState::InDoubt | TicketState::Done(_)) => Err(FinishError::Settled(state)),
            _ => Err(FinishError::OtherCall),
        }
    }

    /// Leaves the ticket in doubt where the call that claimed it has not been heard of within its lease, and says whether it did
    /// (invariant J4).
    pub fn reap(&mut self, now: Timestamp) -> bool {
        let lost = matches!(self.state, TicketState::Reserved { until, .. } if now >= until);
        if lost {
            self.state = TicketState::InDoubt;
        }
        lost
    }

    /// Settles a ticket in doubt by what `by` found out. `tenant` is the requester's, `proof` says how it is known.
    ///
    /// # Errors
    /// Says why it stays as it is.
    pub fn reconcile(
        &mut self,
        effect: Effect,
        proof: &str,
        by: &CallContext<'_>,
        tenant: Option<&str>,
    ) -> Result<(), ReconcileError> {
        may_settle(by, tenant)?;
        if self.state != TicketState::InDoubt {
            return Err(ReconcileError::NotInDoubt(self.state));
        }
        let effect = proven(effect, proof)?;
        self.state = TicketState::Done(effect);
        Ok(())
    }

    /// Whether `viewer` may be told of the ticket: its requester, whoever could decide it, and whoever could settle it, of the
    /// requester's tenant (invariant P2).
    #[must_use]
    pub fn is_visible_to<I>(&self, viewer: &CallContext<'_>, asked: &Asked<'_, I>) -> bool {
        viewer.tenant == asked.tenant
            && viewer.known_principal().is_some()
            && (principal_digest(viewer) == self.binding.principal
                || viewer.scopes.contains(RECONCILE_SCOPE)
                || self.by == By::Approver && viewer.scopes.contains(asked.scope))
    }

    /// Withdraws the ticket unless it is settled already.
    pub fn cancel(&mut self) {
        if self.state.is_open() {
            self.state = TicketState::Cancelled;
        }
    }

    /// Withdraws the ticket for its requester.
    ///
    /// # Errors
    /// It is not `requester`'s, or was settled before.
    pub fn cancel_by(&mut self, requester: &CallContext<'_>) -> Result<(), CancelError> {
        if requester.known_principal().is_none() || principal_digest(requester) != self.binding.principal {
            return Err(CancelError::Unknown);
        }
        if !self.state.is_open() {
            return Err(CancelError::Settled(self.state));
        }
        self.state = TicketState::Cancelled;
        Ok(())
    }

    /// Takes an approver's decision. One no is enough (invariant A9); yes takes as many distinct approvers as the ticket needs, and
    /// each that counts has to be kept for the next decision.
    ///
    /// # Errors
    /// Says why the decision does not count; the ticket is unchanged then. To another tenant it says nothing else.
    pub fn decide<'n, I: Iterator<Item = &'n str> + Clone>(
        &mut self,
        verdict: Verdict,
        approver: &CallContext<'_>,
        asked: &Asked<'_, I>,
        now: Timestamp,
    ) -> Result<Decided, DecideError> {
        if approver.tenant != asked.tenant {
            return Err(DecideError::OtherTenant);
        }
        if self.by != By::Approver {
            return Err(DecideError::NotAsked);
        }
        let Some(principal) = approver.known_principal() else { return Err(DecideError::Unauthenticated) };
        if principal_digest(approver) == self.binding.principal {
            return Err(DecideError::OwnRequest);
        }
        if !approver.scopes.contains(asked.scope) {
            return Err(DecideError::MissingScope);
        }
        if self.state != TicketState::Pending {
            return Err(DecideError::Settled(self.state));
        }
        if self.is_over(now) {
            return Err(DecideError::Expired);
        }
        if verdict == Verdict::Deny {
            self.state = TicketState::Denied;
            return Ok(Decided::Denied);
        }
        if asked.approved_by.clone().any(|name| name == principal) {
            return Err(DecideError::AlreadyApproved);
        }
        let before = u8::try_from(asked.approved_by.clone().count()).unwrap_or(u8::MAX);
        let missing = self.needs.saturating_sub(before.saturating_add(1));
        if missing > 0 {
            return Ok(Decided::Counted { missing });
        }
        self.state = TicketState::Approved;
        Ok(Decided::Approved)
    }
}
