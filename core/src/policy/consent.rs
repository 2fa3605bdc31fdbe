//! Who has to confirm a call, and what counts as a yes that was given before.

use core::fmt;

use super::channel::ChannelPolicy;
use super::subject::Subject;
use crate::args::Args;
use crate::context::SignedConsent;
use crate::digest::Digest;
use crate::time::Timestamp;
use crate::tool::{ConfirmBy, ToolSpec};

/// How far in the future, in milliseconds, a grant may have been given: clocks of two machines differ (invariant C4).
pub const GRANT_SKEW_MS: u64 = 5_000;

/// Who answers a confirmation. An approver is the stricter of the two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[expect(clippy::exhaustive_enums, reason = "hosts and stores must know every kind of confirmation")]
pub enum By {
    /// The caller itself, by coming back with the token; recorded as self-confirmed.
    Caller,
    /// Another principal with the scope for it; never the requester (invariant A2).
    Approver,
}

impl By {
    /// The name in records: `caller` or `approver`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Approver => "approver",
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who has to confirm calls of `spec` on `channel` when nobody has consented before; `None` when nobody has to.
///
/// A confirmation is asked for by the tool, or by the channel for what is mutating. Once it is asked for, the stricter of
/// tool and channel says by whom.
#[must_use]
pub fn confirmation_asked(spec: &ToolSpec<'_>, channel: &ChannelPolicy<'_>) -> Option<By> {
    let by_tool = match spec.confirm {
        ConfirmBy::Nobody => None,
        ConfirmBy::Caller => Some(By::Caller),
        ConfirmBy::Approver { .. } => Some(By::Approver),
    };
    let by_channel = (channel.require_confirmation_for_mutating && spec.mutating).then_some(By::Caller);
    by_tool.max(by_channel).map(|by| by.max(channel.confirm_by))
}

/// Who still has to confirm, given whether the caller has `consented` before. Consent stands for the caller's own yes, on every
/// channel; it never stands for an approver's (invariant A2).
#[must_use]
pub fn confirmation_required(spec: &ToolSpec<'_>, channel: &ChannelPolicy<'_>, consented: bool) -> Option<By> {
    confirmation_asked(spec, channel).filter(|by| *by == By::Approver || !consented)
}

/// A yes that was given before the call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Consent<'a> {
    /// A signature that names this tool and these arguments.
    Signature(SignedConsent<'a>),
    /// A grant that covers the call.
    Grant {
        /// Which of the caller's grants, counted from 0: the host takes one use from it when the tool is started.
        index: usize,
        /// The grant.
        grant: &'a ConsentGrant<'a>,
    },
}

/// [`Consent`] without what it borrows, for records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum ConsentBy {
    /// A signature.
    Signature,
    /// The caller's grant of this index.
    Grant {
        /// Counted from 0.
        index: usize,
    },
}

impl Consent<'_> {
    /// What gave the consent.
    #[must_use]
    pub const fn by(&self) -> ConsentBy {
        match self {
            Self::Signature(_) => ConsentBy::Signature,
            Self::Grant { index, .. } => ConsentBy::Grant { index: *index },
        }
    }
}

/// What consent there is to exactly this call: a verified signature over this tool's name and these arguments, or the first
/// grant that covers it. A signature for another call is no consent, however valid it is (invariant A3).
#[must_use]
pub fn consent<'a>(subject: &Subject<'a>) -> Option<Consent<'a>> {
    if let Some(signature) = subject.caller.signature
        && signature.tool == subject.spec.name
        && subject.arguments == Some(signature.arguments)
    {
        return Some(Consent::Signature(signature));
    }
    let grants = subject.caller.grants;
    grants
        .iter()
        .enumerate()
        .find(|(_, grant)| grant.covers(subject).is_ok())
        .map(|(index, grant)| Consent::Grant { index, grant })
}

/// A consent that a principal gave beforehand, for calls to come. Made by the host from what it keeps, never from what a
/// caller sends (invariant A3).
///
/// It names a tool by its definition, so that a tool that was changed or merely has the same name is not covered, and it ends
/// (invariant A7).
#[derive(Clone, Copy, Debug)]
pub struct ConsentGrant<'a> {
    /// The tool's name, compared byte for byte: `get_user` and `get.user` are two tools.
    pub tool: &'a str,
    /// The digest of the tool's definition when the consent was given.
    pub definition: Digest,
    /// The tenant it was given in.
    pub tenant: Option<&'a str>,
    /// Who gave it. Covers calls of nobody else.
    pub principal: &'a str,
    /// The session it is for; `None` for every session of the principal.
    pub session: Option<&'a str>,
    /// When it was given.
    pub granted_at: Timestamp,
    /// From this moment on it covers nothing (invariant A10: at the moment itself, too).
    pub expires_at: Timestamp,
    /// How many more calls it covers; `None` for any number until it expires.
    pub uses_left: Option<u32>,
    /// The arguments it is for.
    pub arguments: GrantedArgs<'a>,
    /// How the consent came about, for the record.
    pub provenance: &'a str,
}

/// The arguments that a grant is for. Compared with the clamped arguments of the call itself.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum GrantedArgs<'a> {
    /// Whatever the arguments are.
    Any,
    /// Exactly the arguments with this digest.
    Exactly(Digest),
    /// All of these members with these values, beside any others. The empty object covers nothing; say [`GrantedArgs::Any`]
    /// (invariant F2).
    Including(Args<'a>),
}

/// Why a grant does not cover a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Uncovered {
    /// It is for another tool.
    Tool,
    /// It is for another definition of the tool.
    Definition,
    /// It was given by somebody else, or in another tenant.
    Caller,
    /// It is for another session.
    Session,
    /// It was given later than now.
    NotYet,
    /// Its time is over.
    Expired,
    /// All its uses are used up.
    UsedUp,
    /// It is for other arguments.
    Arguments,
}

impl fmt::Display for Uncovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "the grant is for another tool",
            Self::Definition => "the tool's definition has changed since the grant",
            Self::Caller => "the grant was given by somebody else",
            Self::Session => "the grant is for another session",
            Self::NotYet => "the grant is dated in the future",
            Self::Expired => "the grant has expired",
            Self::UsedUp => "the grant is used up",
            Self::Arguments => "the grant is for other arguments",
        })
    }
}

impl core::error::Error for Uncovered {}

impl ConsentGrant<'_> {
    /// Whether the grant covers this call.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn covers(&self, subject: &Subject<'_>) -> Result<(), Uncovered> {
        let caller = &subject.caller;
        let fits = |holds: bool, otherwise| if holds { Ok(()) } else { Err(otherwise) };
        fits(self.tool == subject.spec.name, Uncovered::Tool)?;
        fits(self.definition == subject.definition, Uncovered::Definition)?;
        fits(self.tenant == caller.tenant && caller.known_principal() == Some(self.principal), Uncovered::Caller)?;
        fits(self.session.is_none() || self.session == caller.session, Uncovered::Session)?;
        fits(self.granted_at <= subject.now.saturating_add_millis(GRANT_SKEW_MS), Uncovered::NotYet)?;
        fits(subject.now < self.expires_at, Uncovered::Expired)?;
        fits(self.uses_left != Some(0), Uncovered::UsedUp)?;
        let arguments = match self.arguments {
            GrantedArgs::Any => true,
            GrantedArgs::Exactly(digest) => subject.arguments == Some(digest),
            GrantedArgs::Including(granted) => super::argument::includes(subject.args, granted),
        };
        fits(arguments, Uncovered::Arguments)
    }

    /// Whether the digest of a call's arguments is needed to tell what the grant covers.
    pub(super) const fn names_exact_arguments(&self) -> bool {
        matches!(self.arguments, GrantedArgs::Exactly(_))
    }
}
