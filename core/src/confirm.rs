//! Confirmation as pure rules: tokens, what they are bound to, and when a ticket may be loaded, decided and claimed.
//!
//! A store keeps [`Ticket`]s by [`Token::hash`] and applies these rules inside one atomic step of its own; it decides
//! nothing itself. Redemption is one claim: after it, the ticket is spent whatever becomes of the call (invariant A5).

use core::fmt;

use crate::context::CallContext;
use crate::digest::{Digest, DigestBuilder};
use crate::journal::OperationState;
pub use crate::policy::By;

mod ticket;

pub use ticket::{Asked, Decided, LEASE_SLACK_MS, Presented, Ticket, TicketState};
pub(crate) use ticket::{may_settle, proven};

/// How long a token lives unless a host says otherwise, in milliseconds.
pub const DEFAULT_TTL_MS: u64 = 60_000;
/// How far a ticket's issue may lie in the future, in milliseconds, before it is refused (invariant C4).
pub const MAX_SKEW_MS: u64 = 5_000;
/// The length of a token's text.
pub const TOKEN_TEXT: usize = 32;

/// A confirmation token: 128 random bits (invariant A11). `Display` writes the 32 lower-case hexadecimal digits that the
/// caller gets; `Debug` writes nothing of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token([u8; 16]);

impl Token {
    /// A token of these bits, which must come from a cryptographically secure source.
    #[must_use]
    pub const fn from_random(bits: [u8; 16]) -> Self {
        Self(bits)
    }

    /// Reads a token's text: 32 lower-case hexadecimal digits, nothing else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != TOKEN_TEXT {
            return None;
        }
        let mut bits = [0; 16];
        let (pairs, _) = text.as_bytes().as_chunks::<2>();
        for (bit, &[high, low]) in bits.iter_mut().zip(pairs) {
            *bit = hex(high)? << 4 | hex(low)?;
        }
        Some(Self(bits))
    }

    /// The name under which a store keeps the ticket; the token itself is never stored (invariant A11).
    #[must_use]
    pub fn hash(self) -> Digest {
        let mut hash = DigestBuilder::new("gate/token/v1");
        hash.bytes(&self.0);
        hash.finish()
    }
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// What a token is good for: exactly one call by exactly one caller (invariant A4). The tool's digest covers its name,
/// schema, clamps, flags and timeout; the caller's covers tenant, principal, channel and session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The digest of the tool's definition.
    pub tool: Digest,
    /// The digest of the clamped arguments.
    pub arguments: Digest,
    /// The digest of who asked and where.
    pub caller: Digest,
    /// The digest of tenant and principal alone, so that an approver can be told from the requester.
    pub principal: Digest,
}

/// The digest of who asks and where: tenant, principal, channel, session.
#[must_use]
pub fn caller_digest(caller: &CallContext<'_>) -> Digest {
    let mut hash = DigestBuilder::new("gate/caller/v1");
    hash.option_str(caller.tenant).option_str(caller.known_principal()).str(caller.channel).option_str(caller.session);
    hash.finish()
}

/// The name of a call, by its request id: what a ticket that it claimed is held under.
#[must_use]
pub fn call_digest(request_id: &str) -> Digest {
    let mut hash = DigestBuilder::new("gate/call/v1");
    hash.str(request_id);
    hash.finish()
}

/// The digest of tenant and principal.
#[must_use]
pub fn principal_digest(caller: &CallContext<'_>) -> Digest {
    let mut hash = DigestBuilder::new("gate/principal/v1");
    hash.option_str(caller.tenant).option_str(caller.known_principal());
    hash.finish()
}

/// Why a ticket is not accepted. For the record only: its holder is told one and the same thing (invariant A6), except what
/// an approver decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The text is not a token.
    Malformed,
    /// No such ticket.
    Unknown,
    /// Its time is over.
    Expired,
    /// Issued later than now allows.
    FromTheFuture,
    /// Already claimed.
    Used,
    /// Withdrawn.
    Cancelled,
    /// Issued for another tool, or for an earlier definition of this one.
    OtherTool,
    /// Issued to another caller, channel, session or tenant.
    OtherCaller,
    /// Issued for other arguments.
    OtherArguments,
    /// An approver has not decided yet.
    Undecided,
    /// An approver said no.
    Denied,
}

impl Refusal {
    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::Expired => "expired",
            Self::FromTheFuture => "from_the_future",
            Self::Used => "used",
            Self::Cancelled => "cancelled",
            Self::OtherTool => "other_tool",
            Self::OtherCaller => "other_caller",
            Self::OtherArguments => "other_arguments",
            Self::Undecided => "undecided",
            Self::Denied => "denied",
        }
    }

    /// Whether the presentation was for something else, which withdraws the ticket (invariant A6).
    #[must_use]
    pub const fn is_mismatch(self) -> bool {
        matches!(self, Self::OtherTool | Self::OtherCaller | Self::OtherArguments)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::error::Error for Refusal {}

/// Why a call that is over does not settle the ticket that it claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FinishError {
    /// There is no such ticket.
    Unknown,
    /// Another call claimed it, or none did.
    OtherCall,
    /// It was settled before: by this call, or by the reaper because the call took longer than its lease. A call that comes
    /// later changes nothing (invariant J4).
    Settled(TicketState),
}

impl fmt::Display for FinishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such ticket",
            Self::OtherCall => "the ticket was not claimed by this call",
            Self::Settled(_) => "the ticket was settled before",
        })
    }
}

impl core::error::Error for FinishError {}

/// Why a ticket was not cancelled by its requester.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CancelError {
    /// There is no such ticket, or it is another's: nobody learns of what others asked (invariant P2).
    Unknown,
    /// It was denied, withdrawn or claimed before.
    Settled(TicketState),
}

impl fmt::Display for CancelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such request of yours",
            Self::Settled(_) => "the request was decided, withdrawn or used before",
        })
    }
}

impl core::error::Error for CancelError {}

/// Why a ticket or an operation in doubt stays in doubt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReconcileError {
    /// There is no such ticket or operation, or it is another tenant's (invariant P2).
    Unknown,
    /// Nobody known says it.
    Unauthenticated,
    /// Whoever says it lacks the scope [`RECONCILE_SCOPE`].
    MissingScope,
    /// The proof is missing, or longer than [`MAX_PROOF`].
    NoProof,
    /// That the effect is unknown settles nothing.
    StillUnknown,
    /// The ticket is not in doubt.
    NotInDoubt(TicketState),
    /// The operation is not in doubt.
    OperationNotInDoubt(OperationState),
}

impl fmt::Display for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no such ticket or operation"),
            Self::Unauthenticated => f.write_str("only a known principal can settle what is in doubt"),
            Self::MissingScope => write!(f, "the scope `{RECONCILE_SCOPE}` is needed to settle what is in doubt"),
            Self::NoProof => write!(f, "a proof is needed: how the outcome is known, in 1 to {MAX_PROOF} bytes"),
            Self::StillUnknown => f.write_str("an unknown outcome settles nothing"),
            Self::NotInDoubt(_) => f.write_str("the ticket is not in doubt"),
            Self::OperationNotInDoubt(_) => f.write_str("the operation is not in doubt"),
        }
    }
}

impl core::error::Error for ReconcileError {}

/// The scope that settling a ticket in doubt needs.
pub const RECONCILE_SCOPE: &str = "reconcile";
/// The most bytes of a proof.
pub const MAX_PROOF: usize = 1_024;

/// An approver's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no third answer")]
pub enum Verdict {
    /// Yes: this one call may run once.
    Approve,
    /// No, for good.
    Deny,
}

/// Why a decision on a ticket was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DecideError {
    /// The approver is of another tenant, which is not to learn that the request exists (invariant P2).
    OtherTenant,
    /// The ticket waits for its caller, not for an approver.
    NotAsked,
    /// Nobody known decides (invariant A2).
    Unauthenticated,
    /// The requester may not decide its own request (invariant A2).
    OwnRequest,
    /// The approver lacks the scope.
    MissingScope,
    /// The approver said yes before: a quorum is of distinct approvers.
    AlreadyApproved,
    /// Its time is over; no answer counts any more (invariant F3).
    Expired,
    /// It was decided, withdrawn or claimed before; the first decision stands (invariant A9).
    Settled(TicketState),
}

impl DecideError {
    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OtherTenant => "other_tenant",
            Self::NotAsked => "not_asked",
            Self::Unauthenticated => "unauthenticated",
            Self::OwnRequest => "own_request",
            Self::MissingScope => "missing_scope",
            Self::AlreadyApproved => "already_approved",
            Self::Expired => "expired",
            Self::Settled(_) => "settled",
        }
    }
}

impl fmt::Display for DecideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherTenant => "there is no such request",
            Self::NotAsked => "this confirmation is for its caller to give, not for an approver",
            Self::Unauthenticated => "an approver must be a known principal",
            Self::OwnRequest => "a requester cannot decide its own request",
            Self::MissingScope => "the approver does not hold the scope that this approval asks for",
            Self::AlreadyApproved => "this approver has approved before, and another one is needed",
            Self::Expired => "the request has expired",
            Self::Settled(_) => "the request was decided, withdrawn or used before",
        })
    }
}

impl core::error::Error for DecideError {}
