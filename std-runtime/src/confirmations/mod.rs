//! Stores of pending confirmations.
//!
//! A store keeps tickets under the hash of their token and applies the rules of [`callgate_core::confirm`], each inside
//! one atomic step; it has no rule of its own beyond its bounds. What holds for every store:
//!
//! - it issues only what it can keep: at its bounds it answers [`IssueFault::Full`] and forgets nothing alive (invariants
//!   F5, C3);
//! - a claim succeeds at most once (invariant A5), and is kept before it is answered (invariant J3);
//! - what a call claimed is told when the call is over; what is not told within its lease is in doubt (invariant J4), and stays so,
//!   never forgotten, until somebody settles it (invariant J5);
//! - its time never goes back, whatever the clock does (invariant C2);
//! - tokens are kept hashed and appear nowhere (invariant A11);
//! - an approver sees and decides only what its own tenant asked for (invariant P2).

mod file;
mod grant;
mod memory;
mod state;
mod table;
mod wall_time;

pub use file::{ConfirmationFileError, FILE_CAPACITY, FileConfirmations};
pub use grant::{
    GRANT_SCOPE, GrantArguments, GrantError, MAX_GRANT_ARGUMENTS, MAX_GRANT_MS, MAX_GRANT_USES, MAX_GRANTS, NewGrant,
    Revoked, StandingGrant,
};
pub use memory::MemoryConfirmations;
pub use table::Capacity;
pub use wall_time::{ProcessTime, WallTime};

pub use crate::guarantee::Guarantee;
pub use crate::private_file::FileError;

use std::fmt;
use std::sync::Arc;

pub use callgate_core::call::{Finish, IssueFault, Issued, StoreFault};
pub use callgate_core::code::Effect;
pub use callgate_core::confirm::{
    Binding, By, CancelError, DecideError, Decided, FinishError, Presented, ReconcileError, Refusal, TicketState,
    Token, Verdict,
};

use callgate_core::call::{Asking, Covered};
use callgate_core::clamp;
use callgate_core::confirm::Ticket;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::request::Context;
use callgate_core::time::Timestamp;
use callgate_core::tool::Tool;

use crate::render::approver;

/// The arguments of a pending call, as text. Cheap to clone.
pub type Snapshot = Arc<[u8]>;

/// A ticket that a store found.
pub type Loaded = callgate_core::call::Loaded<Snapshot>;

/// What a ticket is issued for.
#[derive(Clone)]
pub struct PendingRequest<'a> {
    /// What the ticket is good for.
    pub binding: Binding,
    /// Who has to answer.
    pub by: By,
    /// The scope that an approver needs; `None` when the caller itself answers.
    pub approver_scope: Option<&'a str>,
    /// How many distinct approvers have to say yes; says nothing when the caller itself answers.
    pub approvals: u8,
    /// Who asks.
    pub caller: CallContext<'a>,
    /// The name of the tool.
    pub tool: &'a str,
    /// The arguments' text as it was sent. Kept as it is, secrets included: the call will run on it.
    pub arguments: &'a [u8],
    /// What an approver is shown: redacted, whole, and safe to print. Empty where no approver is asked. See [`summarize`].
    pub summary: String,
}

impl<'a> PendingRequest<'a> {
    /// The request of a call that needs a ticket.
    pub fn of<C: Context, T: Tool>(asking: &'a Asking<C, T>) -> Self {
        let summary = match asking.by() {
            By::Approver => summarize(asking),
            By::Caller => String::new(),
        };
        Self {
            binding: asking.binding(),
            by: asking.by(),
            approver_scope: asking.approver_scope(),
            approvals: asking.approvals(),
            caller: asking.caller(),
            tool: asking.call().spec().name,
            arguments: asking.snapshot(),
            summary,
        }
    }
}

impl PendingRequest<'_> {
    /// The ticket for this request, good for `ttl_ms` milliseconds from `now`.
    #[must_use]
    pub const fn ticket(&self, now: Timestamp, ttl_ms: u64) -> Ticket {
        Ticket::issue(self.binding, self.by, now, ttl_ms).needing(self.approvals)
    }

    /// What a ticket for this request counts for in [`Capacity::bytes`], until it is settled and lets go of arguments and summary.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self { approver_scope, caller, tool, arguments, summary, .. } = self;
        [caller.tenant, caller.known_principal(), *approver_scope]
            .into_iter()
            .flatten()
            .chain([*tool, caller.channel, caller.request_id, summary])
            .map(str::len)
            .fold(Capacity::TICKET_BYTES.saturating_add(arguments.len()), usize::saturating_add)
    }
}

/// Tells no argument (invariant L1).
impl fmt::Debug for PendingRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequest")
            .field("tool", &self.tool)
            .field("by", &self.by)
            .field("binding", &self.binding)
            .finish_non_exhaustive()
    }
}

/// What an approver is shown of a call: the clamped arguments in full, secrets replaced, and each value that was clamped
/// (invariants D1, D2, K3), as [`approver::view`] lays them out. Made of the arguments that will run, by the gate alone; nothing that
/// the caller worded stands outside them.
pub fn summarize<C: Context, T: Tool>(asking: &Asking<C, T>) -> String {
    let call = asking.call();
    let fields = call.spec().fields;
    // Nothing is cut here: what is too long is named by its length and digest.
    let redaction = call.context().settings().redaction.with_text_limit(u32::MAX);
    let redacted = redaction.args(asking.args(), fields).to_string();
    let mut clamped = Vec::new();
    clamp::changes(asking.args(), fields, &mut |change| {
        clamped.push(format!("{} from {} to {}", change.field, change.from, change.to));
    });
    approver::view(call.spec().name, &redacted, &clamped, &[], asking.binding().arguments)
}

/// A confirmation that waits for an approver.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "stores elsewhere make it, and must not leave out anything")]
pub struct PendingApproval {
    /// What to decide by: the hash of the token, which is no secret.
    pub ticket: Digest,
    /// The name of the tool.
    pub tool: String,
    /// The tenant of the request.
    pub tenant: Option<String>,
    /// Who asked.
    pub principal: Option<String>,
    /// The channel of the request.
    pub channel: String,
    /// The id of the call that asked.
    pub request_id: String,
    /// The scope that the approver needs.
    pub scope: String,
    /// What would run; see [`summarize`].
    pub summary: String,
    /// When it was asked, by the store's clock.
    pub issued_at: Timestamp,
    /// From when on no answer counts, by the store's clock.
    pub expires_at: Timestamp,
}

/// A ticket as a store tells of it, whatever its state. Tells no argument and no token.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "stores elsewhere make it, and must not leave out anything")]
pub struct TicketView {
    /// Its name: the hash of the token, which is no secret.
    pub ticket: Digest,
    /// Where it stands.
    pub state: TicketState,
    /// Whether its time was over before it was claimed.
    pub expired: bool,
    /// Who has to answer.
    pub by: By,
    /// How many approvers have to say yes.
    pub needs: u8,
    /// Who has said yes, in the order in which they did.
    pub approved_by: Vec<String>,
    /// The name of the tool.
    pub tool: String,
    /// The tenant of the request.
    pub tenant: Option<String>,
    /// Who asked.
    pub principal: Option<String>,
    /// The channel of the request.
    pub channel: String,
    /// The id of the call that asked.
    pub request_id: String,
    /// The scope that an approver needs; empty where none is asked.
    pub scope: String,
    /// What would run; see [`summarize`]. Empty when it is settled.
    pub summary: String,
    /// When it was asked, by the store's clock.
    pub issued_at: Timestamp,
    /// From when on it cannot be claimed, by the store's clock.
    pub expires_at: Timestamp,
    /// How it is known what became of a call that was in doubt.
    pub proof: Option<String>,
    /// The standing grant that covers it.
    pub grant: Option<Digest>,
}

/// What somebody found out about a ticket in doubt.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain words of a host")]
pub struct Resolution<'a> {
    /// What the call did: [`Effect::Done`] or [`Effect::None`].
    pub effect: Effect,
    /// How that is known, for people and for the record.
    pub proof: &'a str,
    /// Who says so, as a transport has authenticated it.
    pub by: CallContext<'a>,
}

/// Why a decision was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "an approver's front-end must tell these apart")]
pub enum DecideFault {
    /// There is no such request, or it is another tenant's.
    Unknown,
    /// The rules refuse the decision.
    Refused(DecideError),
    /// The store did not answer: whether the decision was taken is unknown.
    Store,
}

impl fmt::Display for DecideFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no such request"),
            Self::Refused(error) => write!(f, "{error}"),
            Self::Store => f.write_str("the store of confirmations did not answer"),
        }
    }
}

impl std::error::Error for DecideFault {}

impl From<DecideError> for DecideFault {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::OtherTenant => Self::Unknown,
            error => Self::Refused(error),
        }
    }
}

impl From<StoreFault> for DecideFault {
    fn from(_: StoreFault) -> Self {
        Self::Store
    }
}

/// A blocking store of pending confirmations. Every method is one atomic step.
pub trait ConfirmationStore: Send + Sync {
    /// What the store vouches for. One that does not say anything vouches for nothing.
    fn guarantee(&self) -> Guarantee {
        Guarantee::NONE
    }

    /// Keeps `request` and gives the token for it, good for `ttl_ms` milliseconds.
    ///
    /// # Errors
    /// Nothing was issued: the store failed, is full, or has no approver to ask.
    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault>;

    /// Looks a ticket up and claims nothing. The arguments of a ticket that is used up are empty.
    ///
    /// # Errors
    /// The store failed.
    fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault>;

    /// Claims a ticket for the call that `presented` describes: at most one claim of a ticket ever succeeds (invariant
    /// A5). A presentation for anything else withdraws the ticket (invariant A6).
    ///
    /// # Errors
    /// The store failed. Whether the ticket was claimed is unknown then, so the call must not run.
    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault>;

    /// Takes what became of the call that claimed a ticket (invariant J4). A refusal is for the record only: nothing is to be
    /// done about it.
    ///
    /// # Errors
    /// The store failed. The ticket is in doubt when its lease is over, if it was not told.
    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault>;

    /// Withdraws a ticket, unless it is settled or unknown.
    ///
    /// # Errors
    /// The store failed.
    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault>;

    /// Takes an approver's decision. `approver` comes from a transport that authenticated it, never from arguments
    /// (invariants A2, A3). The first decision stands (invariant A9).
    ///
    /// # Errors
    /// The decision does not count, or the store failed.
    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault>;

    /// What `approver` could decide now, the oldest first, at most `max`.
    ///
    /// # Errors
    /// The store failed.
    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault>;

    /// Withdraws a ticket for its requester, who no longer wants the call.
    ///
    /// # Errors
    /// The store failed, which is also what one says that cannot do this.
    fn cancel(&self, ticket: Digest, requester: &CallContext<'_>) -> Result<Result<(), CancelError>, StoreFault> {
        let _ = (ticket, requester);
        Err(StoreFault)
    }

    /// The reaper: leaves in doubt what calls hold that have not been heard of within their lease, at most `max` tickets, and tells
    /// which (invariant J4). Nothing runs again by it. A host calls it when it starts, and from time to time.
    ///
    /// # Errors
    /// The store failed, which is also what one says that cannot do this.
    fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        let _ = max;
        Err(StoreFault)
    }

    /// Settles a ticket in doubt, and tells what it is now.
    ///
    /// # Errors
    /// The store failed, which is also what one says that cannot do this.
    fn reconcile(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        let _ = (ticket, resolution);
        Err(StoreFault)
    }

    /// Keeps a standing grant that `by` gives.
    ///
    /// # Errors
    /// Nothing was kept; [`GrantError::Store`] is also what a store says that keeps none.
    fn grant(&self, grant: NewGrant, by: &CallContext<'_>) -> Result<StandingGrant, GrantError> {
        drop((grant, by));
        Err(GrantError::Store)
    }

    /// The grants that could cover calls of this principal of a tool of this definition now. Takes no use.
    ///
    /// # Errors
    /// The store failed. A store that keeps none has none.
    fn grants_for(&self, caller: &CallContext<'_>, definition: Digest) -> Result<Vec<StandingGrant>, StoreFault> {
        let _ = (caller, definition);
        Ok(Vec::new())
    }

    /// Takes a use of a grant for the call of `request`, and in the same step keeps a ticket that `presented` has claimed, whose name
    /// it gives. Of all uses no more than the grant has are ever given, and none once a revocation is acknowledged (invariant P5).
    ///
    /// # Errors
    /// No use was taken; after [`GrantError::Store`] that is unknown, so the call must not run.
    fn claim_grant(
        &self,
        grant: Digest,
        request: &PendingRequest<'_>,
        presented: &Presented,
    ) -> Result<Digest, GrantError> {
        let _ = (grant, request, presented);
        Err(GrantError::Store)
    }

    /// The grants that `viewer` may be told of, the oldest first, at most `max`; those that are over are among them until they are
    /// forgotten.
    ///
    /// # Errors
    /// The store failed. A store that keeps none has none.
    fn grants(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        let _ = (viewer, max);
        Ok(Vec::new())
    }

    /// Takes a grant back. When this has answered, no call is covered by it any more (invariant P5); [`Revoked::under_way`] says how
    /// many that were covered before may still start.
    ///
    /// # Errors
    /// `by` may not, or the store failed: whether it is revoked is unknown then.
    fn revoke(&self, grant: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantError> {
        let _ = (grant, by);
        Err(GrantError::Store)
    }

    /// One ticket, if `viewer` may be told of it.
    ///
    /// # Errors
    /// The store failed.
    fn ticket(&self, ticket: Digest, viewer: &CallContext<'_>) -> Result<Option<TicketView>, StoreFault> {
        Ok(self.tickets(viewer, usize::MAX)?.into_iter().find(|view| view.ticket == ticket))
    }

    /// The tickets that `viewer` may be told of, whatever their state, the oldest first, at most `max`.
    ///
    /// # Errors
    /// The store failed, which is also what one says that cannot do this.
    fn tickets(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        let _ = (viewer, max);
        Err(StoreFault)
    }
}

impl dyn ConfirmationStore + '_ {
    /// Looks for a standing grant that covers a call, and takes a use of the first that does: gives its name, and the ticket that the
    /// call holds then.
    ///
    /// # Errors
    /// The store failed. Whether a use was taken is unknown then, so the call must not run.
    pub fn covered<C: Context, T: Tool>(&self, asking: &Asking<C, T>) -> Result<Option<Covered>, StoreFault> {
        let call = asking.call();
        let grants = self.grants_for(&call.caller(), call.tool().definition())?;
        for grant in grants.iter().filter(|grant| grant.covers(&call.subject())) {
            match self.claim_grant(grant.id, &PendingRequest::of(asking), &asking.presented()) {
                Ok(ticket) => return Ok(Some(Covered { ticket, grant: grant.id })),
                Err(GrantError::Store) => return Err(StoreFault),
                Err(_) => {}
            }
        }
        Ok(None)
    }
}

impl<S: ConfirmationStore + ?Sized> ConfirmationStore for Arc<S> {
    fn guarantee(&self) -> Guarantee {
        (**self).guarantee()
    }

    fn issue(&self, request: &PendingRequest<'_>, ttl_ms: u64) -> Result<Issued, IssueFault> {
        (**self).issue(request, ttl_ms)
    }

    fn load(&self, ticket: Digest) -> Result<Option<Loaded>, StoreFault> {
        (**self).load(ticket)
    }

    fn claim(&self, ticket: Digest, presented: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        (**self).claim(ticket, presented)
    }

    fn finish(&self, finish: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        (**self).finish(finish)
    }

    fn withdraw(&self, ticket: Digest) -> Result<(), StoreFault> {
        (**self).withdraw(ticket)
    }

    fn decide(&self, ticket: Digest, verdict: Verdict, approver: &CallContext<'_>) -> Result<Decided, DecideFault> {
        (**self).decide(ticket, verdict, approver)
    }

    fn pending(&self, approver: &CallContext<'_>, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        (**self).pending(approver, max)
    }

    fn cancel(&self, ticket: Digest, requester: &CallContext<'_>) -> Result<Result<(), CancelError>, StoreFault> {
        (**self).cancel(ticket, requester)
    }

    fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        (**self).reap(max)
    }

    fn reconcile(
        &self,
        ticket: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        (**self).reconcile(ticket, resolution)
    }

    fn grant(&self, grant: NewGrant, by: &CallContext<'_>) -> Result<StandingGrant, GrantError> {
        (**self).grant(grant, by)
    }

    fn grants_for(&self, caller: &CallContext<'_>, definition: Digest) -> Result<Vec<StandingGrant>, StoreFault> {
        (**self).grants_for(caller, definition)
    }

    fn claim_grant(
        &self,
        grant: Digest,
        request: &PendingRequest<'_>,
        presented: &Presented,
    ) -> Result<Digest, GrantError> {
        (**self).claim_grant(grant, request, presented)
    }

    fn grants(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        (**self).grants(viewer, max)
    }

    fn revoke(&self, grant: Digest, by: &CallContext<'_>) -> Result<Revoked, GrantError> {
        (**self).revoke(grant, by)
    }

    fn ticket(&self, ticket: Digest, viewer: &CallContext<'_>) -> Result<Option<TicketView>, StoreFault> {
        (**self).ticket(ticket, viewer)
    }

    fn tickets(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        (**self).tickets(viewer, max)
    }
}
