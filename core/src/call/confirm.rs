//! Stage 7: a call that needs a yes asks for it, or redeems the one it was given.

use core::fmt;

use crate::args::Args;
use crate::clamp;
use crate::code::Station;
use crate::confirm::{Binding, By, Presented, Refusal, Token, call_digest, caller_digest, principal_digest};
use crate::context::CallContext;
use crate::digest::Digest;
use crate::journal::OperationRefusal;
use crate::request::Context;
use crate::time::Timestamp;
use crate::tool::{ConfirmBy, Tool};

use super::{Call, End, Ended, Held, Live, Store, StoreFault};

/// Nobody has to be asked any more.
#[derive(Debug)]
pub struct Confirmed(());

/// What confirmation asks of the host.
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "a call asks, redeems, or needs neither")]
pub enum Confirm<C, T> {
    /// Go on.
    NotNeeded(Call<C, T, Confirmed>),
    /// Issue a ticket; the call ends with the question.
    Ask(Asking<C, T>),
    /// Claim the ticket that the call brought.
    Redeem(Redeeming<C, T>),
}

impl<C: Context, T> fmt::Debug for Confirm<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNeeded(call) => f.debug_tuple("NotNeeded").field(call).finish(),
            Self::Ask(asking) => f.debug_tuple("Ask").field(asking).finish(),
            Self::Redeem(redeeming) => f.debug_tuple("Redeem").field(redeeming).finish(),
        }
    }
}

impl<C: Context, T: Tool> Call<C, T, Live> {
    /// Finds out what has to happen. A call that brings a token always redeems it, whether or not this channel would have
    /// asked: a token that was shown is used up or refused, never ignored.
    ///
    /// # Errors
    /// The call ends when its arguments cannot be digested in the room that the host gave, and when it is one of an operation that no
    /// journal was asked for.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn confirm(mut self) -> Result<Confirm<C, T>, Ended<C, T>> {
        if self.ctx.operation().is_some() && !self.ctx.facts().recalled {
            return Err(self.refuse(Station::Confirm, End::OperationRefused(OperationRefusal::Unsupported)));
        }
        let presented = self.ctx.facts().ticket;
        if presented.is_none() && self.ctx.facts().confirm.is_none() {
            return Ok(Confirm::NotNeeded(self.advance()));
        }
        let arguments = match self.digest_arguments() {
            Ok(digest) => digest,
            Err(error) => return Err(self.refuse(Station::Confirm, End::NoRoom(error))),
        };
        Ok(match presented {
            Some(ticket) => Confirm::Redeem(Redeeming { call: self, ticket, arguments }),
            None => Confirm::Ask(Asking { call: self, arguments }),
        })
    }

    fn presented(&self, arguments: Digest) -> Presented {
        let call = call_digest(self.ctx.caller().request_id);
        Presented { binding: self.binding(arguments), call, lease_ms: self.tool.spec().lease_ms() }
    }

    /// Made when somebody asks: four digests would be the larger part of a parked call.
    fn binding(&self, arguments: Digest) -> Binding {
        let caller = self.ctx.caller();
        Binding {
            tool: self.tool.definition(),
            arguments,
            caller: caller_digest(&caller),
            principal: principal_digest(&caller),
        }
    }
}

/// A call that needs a ticket.
#[must_use]
pub struct Asking<C, T> {
    call: Call<C, T, Live>,
    arguments: Digest,
}

/// A ticket that a store issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Issued {
    /// What the caller comes back with.
    pub token: Token,
    /// From when on it is worthless.
    pub expires_at: Timestamp,
}

/// Why a store issued no ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum IssueFault {
    /// It did not answer.
    Store,
    /// It is full of tickets that are still alive.
    Full,
    /// The call needs an approver and no approver can be reached.
    NoApprover,
}

impl From<StoreFault> for IssueFault {
    fn from(_: StoreFault) -> Self {
        Self::Store
    }
}

impl<C: Context, T: Tool> Asking<C, T> {
    /// What the ticket is to be bound to.
    pub fn binding(&self) -> Binding {
        self.call.binding(self.arguments)
    }

    /// Who has to answer.
    pub fn by(&self) -> By {
        self.call.ctx.facts().confirm.unwrap_or(By::Caller)
    }

    /// The scope that an approver needs; `None` when the caller itself answers.
    pub fn approver_scope(&self) -> Option<&str> {
        match (self.by(), self.call.tool.spec().confirm) {
            (By::Caller, _) => None,
            (By::Approver, ConfirmBy::Approver { scope }) => Some(scope),
            (By::Approver, _) => Some(DEFAULT_APPROVER_SCOPE),
        }
    }

    /// How many distinct approvers have to say yes; says nothing when the caller itself answers.
    pub fn approvals(&self) -> u8 {
        self.call.tool.spec().approvals
    }

    /// Who asks.
    pub fn caller(&self) -> CallContext<'_> {
        self.call.ctx.caller()
    }

    /// The arguments' text as the caller sent it: what the store keeps and hands out again.
    pub fn snapshot(&self) -> &[u8] {
        self.call.ctx.request().arguments
    }

    /// The clamped arguments: what an approver is shown.
    pub fn args(&self) -> Args<'_> {
        self.call.args()
    }

    /// What an approver is shown: the name, the clamped arguments as JSON in full, secrets replaced, and each value that was
    /// clamped (invariants D1, D2, K3). Made of the arguments that will run, by the gate alone; nothing that the caller worded
    /// stands outside them.
    pub fn summary(&self) -> impl fmt::Display {
        Summary(self)
    }

    /// The call that asks.
    pub const fn call(&self) -> &Call<C, T, Live> {
        &self.call
    }

    /// Gives the call up: the caller went away. A ticket that was issued all the same is never handed out.
    pub fn cancel(self) -> Ended<C, T> {
        self.call.cancel()
    }

    /// Takes the store's answer. Whatever it is, the call ends here: the yes comes with another call.
    pub fn asked(self, answer: Result<Issued, IssueFault>) -> Ended<C, T> {
        let by = self.by();
        let mut call = self.call;
        let end = match answer {
            Ok(Issued { token, expires_at }) => {
                call.ctx.facts_mut().ticket = Some(token.hash());
                End::Asked { token, expires_at, by }
            }
            Err(IssueFault::Store | IssueFault::Full) => End::StoreFault(Store::Confirmations),
            Err(IssueFault::NoApprover) => End::NoApprover,
        };
        call.end(Station::Confirm, end)
    }

    /// Takes the answer of a store that took a use of a standing grant, and claimed a ticket for the call: nobody is asked.
    /// The call has passed authorization under the present policy (invariant P7).
    pub fn granted(self, Covered { ticket, grant }: Covered) -> Call<C, T, Confirmed> {
        let mut call = self.call;
        call.ctx.covered_by(grant);
        let facts = call.ctx.facts_mut();
        (facts.ticket, facts.held) = (Some(ticket), Held::Grant);
        facts.confirm = Some(By::Approver);
        call.advance()
    }

    /// The ticket as the call holds it that a grant covers.
    pub fn presented(&self) -> Presented {
        self.call.presented(self.arguments)
    }

    /// Takes the answer of a host that has nobody to ask.
    pub fn no_approver(self) -> Ended<C, T> {
        self.asked(Err(IssueFault::NoApprover))
    }
}

/// What a store gives for a call that a standing grant covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "stores elsewhere make it, and must not leave out anything")]
pub struct Covered {
    /// The ticket that the call holds: claimed for it in the step that took the use.
    pub ticket: Digest,
    /// The name of the grant, for the record (invariant J7).
    pub grant: Digest,
}

struct Summary<'a, C, T>(&'a Asking<C, T>);

impl<C: Context, T: Tool> fmt::Display for Summary<'_, C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.0.call();
        let fields = call.spec().fields;
        // Nothing is cut (invariant D2).
        let redaction = call.context().settings().redaction.with_text_limit(u32::MAX);
        write!(f, "{}({})", call.spec().name, redaction.args(self.0.args(), fields))?;
        let mut separator = "; clamped: ";
        let mut result = Ok(());
        clamp::changes(self.0.args(), fields, &mut |change| {
            if result.is_ok() {
                result = write!(f, "{separator}{change}");
                separator = ", ";
            }
        });
        result
    }
}

/// The scope an approver needs where only the channel asks for one.
pub const DEFAULT_APPROVER_SCOPE: &str = "approve";

/// A call that brought a ticket, at the moment of the claim.
#[must_use]
pub struct Redeeming<C, T> {
    call: Call<C, T, Live>,
    ticket: Digest,
    arguments: Digest,
}

impl<C: Context, T: Tool> Redeeming<C, T> {
    /// The ticket to claim, by its token's hash.
    pub const fn ticket(&self) -> Digest {
        self.ticket
    }

    /// The ticket as the call presents it: [`crate::confirm::Ticket::claim`] compares.
    pub fn presented(&self) -> Presented {
        self.call.presented(self.arguments)
    }

    /// The call that redeems.
    pub const fn call(&self) -> &Call<C, T, Live> {
        &self.call
    }

    /// Gives the call up: the caller went away. A ticket that was claimed all the same stays spent.
    pub fn cancel(mut self) -> Ended<C, T> {
        self.call.ctx.facts_mut().held = Held::Claimed;
        self.call.cancel()
    }

    /// Takes the store's answer to the claim. After `Ok(Ok(by))` the ticket is spent, whatever becomes of the call.
    ///
    /// # Errors
    /// The call ends when the claim was refused or the store failed: whether it was claimed is unknown then, so it does not
    /// run (invariant F1).
    pub fn redeemed(
        self,
        answer: Result<Result<By, Refusal>, StoreFault>,
    ) -> Result<Call<C, T, Confirmed>, Ended<C, T>> {
        let mut call = self.call;
        call.ctx.facts_mut().held = if matches!(answer, Ok(Err(_))) { Held::Nothing } else { Held::Claimed };
        match answer {
            Ok(Ok(by)) => {
                // What the tool and the policy demand now counts, not what they demanded when the ticket was issued.
                if call.ctx.facts().confirm == Some(By::Approver) && by == By::Caller {
                    return Err(call.refuse(Station::Confirm, End::Refused(Refusal::OtherTool)));
                }
                call.ctx.facts_mut().confirm = Some(by);
                call.ctx.facts_mut().held = Held::Ticket;
                Ok(call.advance())
            }
            Ok(Err(refusal)) => Err(call.refuse(Station::Confirm, End::Refused(refusal))),
            Err(StoreFault) => Err(call.refuse(Station::Confirm, End::StoreFault(Store::Confirmations))),
        }
    }

    /// Takes the answer of a host that has no such ticket.
    ///
    /// # Errors
    /// Always: the call ends.
    pub fn unknown(self) -> Result<Call<C, T, Confirmed>, Ended<C, T>> {
        self.redeemed(Ok(Err(Refusal::Unknown)))
    }
}

impl<C: Context, T> fmt::Debug for Asking<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<C: Context, T> fmt::Debug for Redeeming<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redeeming").field("call", &self.call).finish_non_exhaustive()
    }
}
