//! Confirmation as pure rules: tokens, what they are bound to, and when a ticket may be loaded, decided and claimed.
//!
//! A store keeps [`Ticket`]s by [`Token::hash`] and applies these rules inside one atomic step of its own; it decides
//! nothing itself. Redemption is one claim: after it, the ticket is spent whatever becomes of the call (invariant A5).

use core::fmt;

use crate::context::CallContext;
use crate::digest::{Digest, DigestBuilder};
pub use crate::policy::By;
use crate::time::Timestamp;

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

/// The digest of tenant and principal.
#[must_use]
pub fn principal_digest(caller: &CallContext<'_>) -> Digest {
    let mut hash = DigestBuilder::new("gate/principal/v1");
    hash.option_str(caller.tenant).option_str(caller.known_principal());
    hash.finish()
}

/// Where a ticket stands. It only ever moves down this list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a store must be able to keep every state")]
pub enum TicketState {
    /// Nobody has decided yet. A caller's own ticket is claimed from here.
    Pending,
    /// An approver said yes.
    Approved,
    /// An approver said no; it stays no (invariant A9).
    Denied,
    /// Withdrawn: burnt by a mismatched presentation, or cancelled by its requester.
    Cancelled,
    /// Claimed by one call. Never claimed again.
    Claimed,
}

/// A pending confirmation, as a store keeps it beside the text of the arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// What it is good for.
    pub binding: Binding,
    /// Who has to answer.
    pub by: By,
    /// When it was issued, by the store's clock.
    pub issued_at: Timestamp,
    /// From this moment on it is worthless, by the store's clock (invariant A10: at the moment itself, too).
    pub expires_at: Timestamp,
    /// Where it stands.
    pub state: TicketState,
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
            Self::Expired => "the request has expired",
            Self::Settled(_) => "the request was decided, withdrawn or used before",
        })
    }
}

impl core::error::Error for DecideError {}

impl Ticket {
    /// A fresh ticket, good for `ttl_ms` milliseconds from `now`.
    #[must_use]
    pub const fn issue(binding: Binding, by: By, now: Timestamp, ttl_ms: u64) -> Self {
        Self { binding, by, issued_at: now, expires_at: now.saturating_add_millis(ttl_ms), state: TicketState::Pending }
    }

    /// Whether the ticket can be used at `now`, if presented by the right caller for the right call.
    ///
    /// # Errors
    /// Says why it can't.
    pub fn usable(&self, now: Timestamp) -> Result<(), Refusal> {
        match (self.state, self.by) {
            (TicketState::Claimed, _) => return Err(Refusal::Used),
            (TicketState::Cancelled, _) => return Err(Refusal::Cancelled),
            (TicketState::Denied | TicketState::Pending | TicketState::Approved, _) => {}
        }
        if self.issued_at > now.saturating_add_millis(MAX_SKEW_MS) {
            return Err(Refusal::FromTheFuture);
        }
        if now >= self.expires_at {
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

    /// Claims the ticket for the call that `presented` describes. On success the returned ticket is claimed and must be
    /// stored in the same atomic step (invariant J3); on a mismatch the ticket is withdrawn the same way.
    pub fn claim(&mut self, presented: &Binding, now: Timestamp) -> Result<(), Refusal> {
        self.usable(now)?;
        let mismatch = if self.binding.caller != presented.caller || self.binding.principal != presented.principal {
            Some(Refusal::OtherCaller)
        } else if self.binding.tool != presented.tool {
            Some(Refusal::OtherTool)
        } else if self.binding.arguments != presented.arguments {
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
                self.state = TicketState::Claimed;
                Ok(())
            }
        }
    }

    /// Withdraws the ticket unless it is settled already.
    pub fn cancel(&mut self) {
        if matches!(self.state, TicketState::Pending | TicketState::Approved) {
            self.state = TicketState::Cancelled;
        }
    }

    /// Takes an approver's decision. `tenant` is the requester's, `scope` is what an approver needs.
    ///
    /// # Errors
    /// Says why the decision does not count; the ticket is unchanged then. To another tenant it says nothing else.
    pub fn decide(
        &mut self,
        verdict: Verdict,
        approver: &CallContext<'_>,
        tenant: Option<&str>,
        scope: &str,
        now: Timestamp,
    ) -> Result<(), DecideError> {
        if approver.tenant != tenant {
            return Err(DecideError::OtherTenant);
        }
        if self.by != By::Approver {
            return Err(DecideError::NotAsked);
        }
        if approver.known_principal().is_none() {
            return Err(DecideError::Unauthenticated);
        }
        if principal_digest(approver) == self.binding.principal {
            return Err(DecideError::OwnRequest);
        }
        if !approver.scopes.contains(scope) {
            return Err(DecideError::MissingScope);
        }
        if self.state != TicketState::Pending {
            return Err(DecideError::Settled(self.state));
        }
        if now >= self.expires_at {
            return Err(DecideError::Expired);
        }
        self.state = match verdict {
            Verdict::Approve => TicketState::Approved,
            Verdict::Deny => TicketState::Denied,
        };
        Ok(())
    }
}
