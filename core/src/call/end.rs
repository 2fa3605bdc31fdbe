//! Stage 12: a call that ended is settled, recorded and only then answered.

use core::num::NonZeroU32;

use crate::audit::{AuditFault, Record};
use crate::clamp::ClampError;
use crate::code::{Code, Effect, Station};
use crate::confirm::{By, Refusal, Token, call_digest};
use crate::context::{ContextError, Mode};
use crate::digest::Digest;
use crate::journal::{OperationRefusal, operation_key};
use crate::json::{KeysFull, ReadError};
use crate::limit::{Allowance, LimitKey, Receipt, refund_for};
use crate::outcome::Outcome;
use crate::policy::Denial;
use crate::request::{Context, with_caller};
use crate::time::{Now, Timestamp};
use crate::tool::{Tool, ToolFailure, ToolSpec};

use super::{Held, Store, StoreFault, TaskId, digest_arguments};

/// How a call ended. `O` is a tool's result, `F` its failure, `X` the host's text.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "records and front-ends must know every end (invariant F4)")]
pub enum End<O, F, X> {
    /// A name in the context is outside its grammar.
    BadContext(ContextError),
    /// Too many calls stand above this one.
    TooDeep,
    /// The gate is going down.
    Shutdown,
    /// Too many calls are in flight.
    Overloaded,
    /// The session has made all its calls.
    Spent,
    /// No such tool.
    NotFound,
    /// The tool is outside the caller's view.
    Hidden,
    /// The arguments are not one JSON object within the limits.
    Malformed(ReadError),
    /// The arguments do not fit the tool's schema; [`Tool::validate`] says where.
    Invalid,
    /// More values are out of bounds than the gate brings in.
    Unclampable(ClampError),
    /// The host gave too little room for the keys of the arguments.
    NoRoom(KeysFull),
    /// Policy refused.
    Denied(Denial<X>),
    /// Over the budget.
    Limited {
        /// In how many nanoseconds the same call would be granted; `None` when it costs more than the whole budget.
        retry_after_ns: Option<u64>,
    },
    /// A store did not answer.
    StoreFault(Store),
    /// The call was only to be planned.
    Planned,
    /// The call asked for a yes.
    Asked {
        /// What the caller comes back with.
        token: Token,
        /// Until when.
        expires_at: Timestamp,
        /// Who has to say yes.
        by: By,
    },
    /// The call needs an approver and there is none.
    NoApprover,
    /// The token is not good for this call.
    Refused(Refusal),
    /// The operation was made before, and this is its result.
    Replayed(O),
    /// The call is one of an operation that cannot be made now.
    OperationRefused(OperationRefusal),
    /// An interceptor vetoed.
    Vetoed(X),
    /// An interceptor failed, which vetoes.
    InterceptorFailed(X),
    /// An interceptor answered in the tool's place.
    Answered(O),
    /// An interceptor's answer breaks the tool's output schema.
    AnswerInvalid(O),
    /// The intent could not be recorded.
    AuditUnavailable,
    /// The caller went away.
    Cancelled {
        /// Whether the tool had started.
        started: bool,
    },
    /// The tool was started and goes on in the background; what becomes of it is recorded when it is over.
    Accepted(TaskId),
    /// The tool ran.
    Done(O),
    /// The tool returned a failure.
    Failed(F),
    /// The tool panicked.
    Panicked(X),
    /// The tool's deadline passed.
    TimedOut,
    /// The tool ran and its result breaks its output schema.
    OutputInvalid(O),
}

impl<O, F: ToolFailure, X> End<O, F, X> {
    /// The code of a call that ended so; `None` for a success.
    pub fn code(&self) -> Option<Code> {
        Some(match self {
            Self::Planned
            | Self::Asked { .. }
            | Self::Replayed(_)
            | Self::Answered(_)
            | Self::Accepted(_)
            | Self::Done(_) => return None,
            Self::BadContext(_) | Self::Malformed(_) | Self::Invalid | Self::Unclampable(_) | Self::NoRoom(_) => {
                Code::ValidationError
            }
            Self::TooDeep | Self::Denied(_) => Code::Forbidden,
            Self::Shutdown => Code::Shutdown,
            Self::Overloaded => Code::Overloaded,
            Self::Spent => Code::MaxCallsExceeded,
            Self::NotFound => Code::ToolNotFound,
            Self::Hidden => Code::CapabilityDenied,
            Self::Limited { .. } => Code::RateLimited,
            Self::StoreFault(_) => Code::StoreUnavailable,
            Self::NoApprover => Code::NoApprover,
            Self::Refused(Refusal::Undecided) => Code::ApprovalPending,
            Self::Refused(Refusal::Denied) => Code::ApprovalDenied,
            Self::Refused(_) => Code::ConfirmationInvalid,
            Self::OperationRefused(refusal) => refusal.code(),
            Self::Vetoed(_) | Self::InterceptorFailed(_) => Code::Vetoed,
            Self::AnswerInvalid(_) | Self::OutputInvalid(_) => Code::OutputInvalid,
            Self::AuditUnavailable => Code::AuditUnavailable,
            Self::Cancelled { .. } => Code::Cancelled,
            Self::Failed(failure) => match failure.code() {
                free @ (Code::NotFound | Code::Unauthorized | Code::ValidationError) => free,
                // A tool cannot speak in the gate's name.
                _ => Code::InternalError,
            },
            Self::Panicked(_) => Code::InternalError,
            Self::TimedOut => Code::Timeout,
        })
    }

    /// The end in a word, for records.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::BadContext(_) => "bad_context",
            Self::TooDeep => "too_deep",
            Self::Shutdown => "shutdown",
            Self::Overloaded => "overloaded",
            Self::Spent => "spent",
            Self::NotFound => "not_found",
            Self::Hidden => "hidden",
            Self::Malformed(_) => "malformed",
            Self::Invalid => "invalid",
            Self::Unclampable(_) => "unclampable",
            Self::NoRoom(_) => "no_room",
            Self::Denied(_) => "denied",
            Self::Limited { .. } => "limited",
            Self::StoreFault(_) => "store_fault",
            Self::Planned => "planned",
            Self::Asked { .. } => "asked",
            Self::NoApprover => "no_approver",
            Self::Refused(_) => "refused",
            Self::Replayed(_) => "replayed",
            Self::OperationRefused(_) => "operation_refused",
            Self::Vetoed(_) => "vetoed",
            Self::InterceptorFailed(_) => "interceptor_failed",
            Self::Answered(_) => "answered",
            Self::AnswerInvalid(_) => "answer_invalid",
            Self::AuditUnavailable => "audit_unavailable",
            Self::Cancelled { .. } => "cancelled",
            Self::Accepted(_) => "accepted",
            Self::Done(_) => "done",
            Self::Failed(_) => "failed",
            Self::Panicked(_) => "panicked",
            Self::TimedOut => "timed_out",
            Self::OutputInvalid(_) => "output_invalid",
        }
    }

    /// What a call that ended so means for the world, as its caller is told: of a call of an operation, what the operation did, whichever
    /// call of it that was. See [`own_effect`](Self::own_effect).
    pub fn effect(&self) -> Effect {
        match self {
            Self::Replayed(_) | Self::Done(_) | Self::OutputInvalid(_) => Effect::Done,
            Self::OperationRefused(refusal) => refusal.effect(),
            Self::Failed(failure) => failure.effect(),
            Self::Accepted(_) | Self::Panicked(_) | Self::TimedOut | Self::Cancelled { started: true } => {
                Effect::Unknown
            }
            _ => Effect::None,
        }
    }

    /// What this very call did to the world, as it is recorded.
    pub fn own_effect(&self) -> Effect {
        if self.started() { self.effect() } else { Effect::None }
    }

    /// Whether the tool's body was started.
    pub const fn started(&self) -> bool {
        matches!(
            self,
            Self::Accepted(_)
                | Self::Done(_)
                | Self::OutputInvalid(_)
                | Self::Failed(_)
                | Self::Panicked(_)
                | Self::TimedOut
                | Self::Cancelled { started: true }
        )
    }

    /// Whether the call was refused for what the caller sent or is: what draws from the budget of attempts (invariant R3).
    pub const fn is_refusal(&self) -> bool {
        if let Self::OperationRefused(refusal) = self {
            return refusal.is_the_callers();
        }
        matches!(
            self,
            Self::BadContext(_)
                | Self::NotFound
                | Self::Hidden
                | Self::Malformed(_)
                | Self::Invalid
                | Self::Unclampable(_)
                | Self::NoRoom(_)
                | Self::Denied(_)
                | Self::Refused(_)
        )
    }
}

/// A call that has ended and has no record yet.
#[must_use = "an ended call has to be closed and recorded"]
pub struct Ended<C: Context, T: Tool> {
    pub(crate) ctx: C,
    pub(crate) tool: Option<T>,
    pub(crate) station: Station,
    pub(crate) end: End<T::Output, T::Failure, C::Text>,
}

impl<C: Context, T: Tool> Ended<C, T> {
    pub(super) const fn new(
        ctx: C,
        tool: Option<T>,
        station: Station,
        end: End<T::Output, T::Failure, C::Text>,
    ) -> Self {
        Self { ctx, tool, station, end }
    }

    /// How the call ended.
    pub const fn end(&self) -> &End<T::Output, T::Failure, C::Text> {
        &self.end
    }

    /// Where it ended.
    pub const fn station(&self) -> Station {
        self.station
    }

    /// The description of the tool, if the name was resolved.
    pub fn spec(&self) -> Option<&ToolSpec<'_>> {
        self.tool.as_ref().map(Tool::spec)
    }

    /// Fixes the call's duration and completes what its record needs.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn close(mut self, now: Now) -> Closed<C, T> {
        let mutating = self.tool.as_ref().is_some_and(|tool| tool.spec().mutating);
        if self.ctx.facts().was_read && (mutating || self.ctx.settings().digest_all) {
            // Without room for the digest the record goes without it; the call is over either way.
            let _ = digest_arguments(&mut self.ctx);
        }
        let took_ns = now.monotonic.nanos_since(self.ctx.facts().started.monotonic);
        Closed { ended: self, at: now, took_ns, throttled: None }
    }
}

impl<C: Context, T: Tool> core::fmt::Debug for Ended<C, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ended")
            .field("request", &self.ctx.request())
            .field("station", &self.station)
            .field("code", &self.end.code())
            .finish_non_exhaustive()
    }
}

/// What goes back to a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refund<'a> {
    /// Whose budget.
    pub key: LimitKey<'a>,
    /// The charge.
    pub receipt: Receipt,
    /// How many units of it.
    pub units: u32,
}

/// What a host does for a call that ended, before it records it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settlement<'a> {
    /// Give so many units of this charge back: a call that did not run keeps at most 1.
    pub refund: Option<Refund<'a>>,
    /// Charge 1 to the caller's attempts, and tell the call when they are used up.
    pub attempt: Option<LimitKey<'a>>,
    /// Withdraw this ticket: it was presented for something else (invariant A6).
    pub withdraw: Option<Digest>,
    /// Tell the store what became of the call that claimed this ticket (invariant J4). Not of one that was accepted and goes on.
    pub finish: Option<Finish>,
    /// Tell the journal what became of the call that claimed this operation, with the result if it ended with [`End::Done`], and tell
    /// [`Closed::kept`] if that failed. Not of one that was accepted and goes on.
    pub operation: Option<FinishOperation>,
}

/// What became of a call that claimed an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a journal in another process has to make it of what it was sent")]
pub struct FinishOperation {
    /// The operation; see [`operation_key`].
    pub key: Digest,
    /// The attempt that the call was.
    pub attempt: NonZeroU32,
    /// What it did.
    pub effect: Effect,
}

/// What became of a call that claimed a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a store in another process has to make it of what it was sent")]
pub struct Finish {
    /// The ticket.
    pub ticket: Digest,
    /// The call; see [`crate::confirm::call_digest`].
    pub call: Digest,
    /// What it did.
    pub effect: Effect,
}

impl Settlement<'_> {
    /// Whether there is nothing to do.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.refund.is_none()
            && self.attempt.is_none()
            && self.withdraw.is_none()
            && self.finish.is_none()
            && self.operation.is_none()
    }
}

/// What became of an attempt's charge.
pub type Attempts = Result<Allowance, StoreFault>;

/// A call that is over, with everything that its record needs.
#[must_use = "a closed call has to be recorded"]
pub struct Closed<C: Context, T: Tool> {
    pub(crate) ended: Ended<C, T>,
    pub(crate) at: Now,
    pub(crate) took_ns: u64,
    /// Set when the caller's attempts are used up: when to come back, if ever.
    pub(crate) throttled: Option<Option<u64>>,
}

impl<C: Context, T: Tool> Closed<C, T> {
    /// What to do at the stores before the record is written. Nothing for a plan (invariant R4).
    #[cfg_attr(not(callgate_small), inline)]
    pub fn settlement(&self) -> Settlement<'_> {
        let Ended { ctx, end, .. } = &self.ended;
        let facts = ctx.facts();
        with_caller(ctx, |caller| {
            if caller.mode == Mode::Plan {
                return Settlement { refund: None, attempt: None, withdraw: None, finish: None, operation: None };
            }
            // A call that asked keeps its charge: the answer comes with a call that is not charged again (invariant R7).
            let paid = end.started() || matches!(end, End::Asked { .. });
            let units = refund_for(facts.receipt.cost(), paid);
            let key = || LimitKey::of_call(caller, ctx.request().tool);
            Settlement {
                refund: (units > 0).then(|| Refund { key: key(), receipt: facts.receipt, units }),
                attempt: end.is_refusal().then(|| LimitKey::of_attempts(caller)),
                withdraw: match end {
                    End::Refused(refusal) if refusal.is_mismatch() => facts.ticket,
                    // A token that was shown is used up, also where it was not needed.
                    End::Replayed(_) if facts.held == Held::Nothing => facts.ticket,
                    _ => None,
                },
                finish: match (end, facts.ticket) {
                    (End::Accepted(_), _) => None,
                    (end, Some(ticket)) if facts.held != Held::Nothing => {
                        Some(Finish { ticket, call: call_digest(caller.request_id), effect: end.own_effect() })
                    }
                    _ => None,
                },
                operation: match (end, facts.attempt) {
                    (End::Accepted(_), _) | (_, None) => None,
                    (end, Some(attempt)) => ctx
                        .operation()
                        .and_then(|operation| operation_key(caller, operation))
                        .map(|key| FinishOperation { key, attempt, effect: end.own_effect() }),
                },
            }
        })
    }

    /// Takes the limiter's answer for [`Settlement::attempt`]. A caller whose attempts are used up is told to come back
    /// later and nothing else; the record keeps the true reason. A limiter that failed counts as used up (invariant F1).
    pub fn settle(&mut self, attempts: Attempts) {
        self.throttled = match attempts {
            Ok(Allowance::Refused { retry_after_ns }) => Some(retry_after_ns),
            Ok(Allowance::Granted { .. } | Allowance::Unlimited) => None,
            Err(StoreFault) => Some(None),
        };
    }

    /// Takes the journal's answer for [`Settlement::operation`]. A call that it could not be told of is in doubt there; that does not undo
    /// what happened, so the outcome is the same and says so in its meta, as for a record that could not be written (invariant J8).
    pub fn kept(&mut self, answer: Result<(), StoreFault>) {
        self.ended.ctx.facts_mut().unkept = answer.is_err();
    }

    /// How the call ended.
    pub const fn end(&self) -> &End<T::Output, T::Failure, C::Text> {
        &self.ended.end
    }

    /// The call's one terminal record (invariant J1).
    #[cfg_attr(not(callgate_small), inline)]
    pub fn record(&self) -> Record<'_> {
        Record::terminal(self)
    }

    /// Takes the audit sink's answer and gives the outcome. A record that could not be written does not undo what happened:
    /// the outcome says so in its meta, and the host spools the record (invariant J8).
    #[cfg_attr(not(callgate_small), inline)]
    pub fn audited(self, answer: Result<(), AuditFault>) -> Outcome<C, T> {
        Outcome::new(self, answer.is_err())
    }
}

impl<C: Context, T: Tool> core::fmt::Debug for Closed<C, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Closed").field("ended", &self.ended).field("took_ns", &self.took_ns).finish_non_exhaustive()
    }
}
