//! Standing grants: an approver's yes to calls that have not been made yet.
//!
//! A grant names the definition of a tool, what the arguments must be, whose calls they are, until when, and how many (invariant
//! A7). A call that a grant covers still passes every stage, authorization under the present policy included (invariant P7); the
//! one thing that it is spared is the question. Each use is a ticket of its own, which is claimed in the step that takes the use: what
//! becomes of the call is told, reaped and reconciled as that of any other (invariants J3, J4).

use std::fmt;

use callgate_core::args::Args;
use callgate_core::confirm::{By, Presented, Ticket};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::json::{KeySlot, Limits, key_capacity};
use callgate_core::policy::{ConsentGrant, GrantedArgs, Subject};
use callgate_core::time::Timestamp;

use super::PendingRequest;
use crate::schema::{JsonSchema, Profile, SchemaError};

/// The scope that giving and taking back grants needs.
pub const GRANT_SCOPE: &str = "grant";
/// The longest that a grant may last, in milliseconds: 90 days.
pub const MAX_GRANT_MS: u64 = 90 * 24 * 60 * 60 * 1_000;
/// The most calls that one grant covers.
pub const MAX_GRANT_USES: u32 = 1_000_000;
/// The most grants that a store keeps.
pub const MAX_GRANTS: usize = 1_000;
/// The most bytes of what a grant says of arguments.
pub const MAX_GRANT_ARGUMENTS: usize = 64 << 10;

/// The arguments that a standing grant is for. Compared with the clamped arguments of the call.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantArguments {
    /// Exactly the arguments with this digest.
    Exactly(Digest),
    /// All of these members with these values, beside any others: the text of a JSON object that is not empty.
    Including(String),
    /// Whatever this JSON Schema accepts, of an object.
    Fitting(String),
}

/// Tells no value.
impl fmt::Debug for GrantArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(digest) => f.debug_tuple("Exactly").field(digest).finish(),
            Self::Including(text) => write!(f, "Including({} bytes)", text.len()),
            Self::Fitting(text) => write!(f, "Fitting({} bytes)", text.len()),
        }
    }
}

/// A grant that somebody gives.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a grant that leaves anything open is none (invariant A7)")]
pub struct NewGrant {
    /// The tool's name.
    pub tool: String,
    /// The digest of its definition.
    pub definition: Digest,
    /// Whose calls, in the tenant of whoever gives the grant.
    pub principal: String,
    /// For which arguments.
    pub arguments: GrantArguments,
    /// For how long, in milliseconds.
    pub lasts_ms: u64,
    /// For how many calls.
    pub max_uses: u32,
}

/// A grant that a store keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "stores elsewhere make it, and must not leave out anything")]
pub struct StandingGrant {
    /// Its name; no secret.
    pub id: Digest,
    /// The tool's name.
    pub tool: String,
    /// The digest of its definition.
    pub definition: Digest,
    /// The tenant of both principals.
    pub tenant: Option<String>,
    /// Whose calls it covers.
    pub principal: String,
    /// For which arguments.
    pub arguments: GrantArguments,
    /// Who gave it.
    pub given_by: String,
    /// When, by the store's clock.
    pub given_at: Timestamp,
    /// From when on it covers nothing, by the store's clock.
    pub expires_at: Timestamp,
    /// How many calls it covers in all.
    pub max_uses: u32,
    /// How many it has covered.
    pub used: u32,
    /// Whether it was taken back.
    pub revoked: bool,
}

/// Why a grant was not given, used or taken back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// There is no such grant, or it is another tenant's (invariant P2).
    #[error("there is no such grant")]
    Unknown,
    /// Nobody known does it.
    #[error("only a known principal can give a grant or take it back")]
    Unauthenticated,
    /// Whoever does it lacks the scope.
    #[error("the scope `{GRANT_SCOPE}` is needed to give a grant or take it back")]
    MissingScope,
    /// Nobody gives a grant to itself (invariant A2).
    #[error("nobody can give a grant to itself")]
    OwnGrant,
    /// It has no end, or it ends too late.
    #[error("a grant lasts for 1 ms to 90 days")]
    Duration,
    /// It covers no call, or too many.
    #[error("a grant covers 1 to {MAX_GRANT_USES} calls")]
    Uses,
    /// It says nothing of the arguments, or too much.
    #[error(
        "a grant names arguments: an object that is not empty, or a schema, of at most {MAX_GRANT_ARGUMENTS} bytes"
    )]
    Arguments,
    /// The schema is none that can be checked.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The store is full of grants.
    #[error("the store keeps as many grants as it can")]
    Full,
    /// The grant is over: used up, expired, or taken back.
    #[error("the grant is used up, expired, or taken back")]
    Over,
    /// The store did not answer.
    #[error("the store did not answer")]
    Store,
}

/// What was found when a grant was taken back: from here on it covers nothing (invariant P5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "both are what whoever revokes has to know")]
pub struct Revoked {
    /// How many calls it has covered.
    pub used: u32,
    /// How many of those had been covered before and were not over when it was taken back: their tools may still start.
    pub under_way: u32,
}

impl NewGrant {
    /// The grant that a store keeps, under this name from this time on.
    ///
    /// # Errors
    /// Says why nobody may give this one.
    pub fn given(self, id: Digest, by: &CallContext<'_>, now: Timestamp) -> Result<StandingGrant, GrantError> {
        let giver = may_grant(by)?;
        if giver == self.principal {
            return Err(GrantError::OwnGrant);
        }
        if self.lasts_ms == 0 || self.lasts_ms > MAX_GRANT_MS {
            return Err(GrantError::Duration);
        }
        if self.max_uses == 0 || self.max_uses > MAX_GRANT_USES {
            return Err(GrantError::Uses);
        }
        match &self.arguments {
            GrantArguments::Exactly(_) => {}
            GrantArguments::Including(text) | GrantArguments::Fitting(text) if text.len() > MAX_GRANT_ARGUMENTS => {
                return Err(GrantError::Arguments);
            }
            GrantArguments::Including(text) => {
                let mut keys = Vec::new();
                read(text, &mut keys).filter(|args| !args.is_empty()).ok_or(GrantError::Arguments)?;
            }
            GrantArguments::Fitting(text) => drop(JsonSchema::parse(text, Profile::ARGUMENTS)?),
        }
        Ok(StandingGrant {
            id,
            tool: self.tool,
            definition: self.definition,
            tenant: by.tenant.map(str::to_owned),
            principal: self.principal,
            arguments: self.arguments,
            given_by: giver.to_owned(),
            given_at: now,
            expires_at: now.saturating_add_millis(self.lasts_ms),
            max_uses: self.max_uses,
            used: 0,
            revoked: false,
        })
    }
}

impl StandingGrant {
    /// Whether it can cover another call at `now`.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        !self.revoked && self.used < self.max_uses && now < self.expires_at
    }

    /// Takes one use.
    ///
    /// # Errors
    /// There is none left; nothing changed.
    pub fn take(&mut self, now: Timestamp) -> Result<(), GrantError> {
        if !self.is_open(now) {
            return Err(GrantError::Over);
        }
        self.used = self.used.saturating_add(1);
        Ok(())
    }

    /// Takes one use, and makes the ticket for it: claimed by the call that `presented` describes.
    ///
    /// # Errors
    /// There is none left, or the grant is for other calls; nothing changed.
    pub fn cover(
        &mut self,
        request: &PendingRequest<'_>,
        presented: &Presented,
        now: Timestamp,
    ) -> Result<Ticket, GrantError> {
        let caller = &request.caller;
        if self.tenant.as_deref() != caller.tenant || caller.known_principal() != Some(&self.principal) {
            return Err(GrantError::Unknown);
        }
        if self.definition != presented.binding.tool {
            return Err(GrantError::Over);
        }
        self.take(now)?;
        // A moment is enough: it is claimed as it is issued.
        let mut ticket = Ticket::issue(presented.binding, By::Caller, now, 1);
        ticket.claim(presented, now).map_err(|_| GrantError::Store)?;
        Ok(Ticket { by: By::Approver, ..ticket })
    }

    /// Takes it back. Taking it back again changes nothing.
    ///
    /// # Errors
    /// `by` may not.
    pub fn revoke(&mut self, by: &CallContext<'_>) -> Result<(), GrantError> {
        if by.tenant != self.tenant.as_deref() {
            return Err(GrantError::Unknown);
        }
        may_grant(by)?;
        self.revoked = true;
        Ok(())
    }

    /// Whether `viewer` may be told of it: whoever may give grants, and the one whose calls it covers.
    #[must_use]
    pub fn is_visible_to(&self, viewer: &CallContext<'_>) -> bool {
        viewer.tenant == self.tenant.as_deref()
            && viewer
                .known_principal()
                .is_some_and(|principal| principal == self.principal || viewer.scopes.contains(GRANT_SCOPE))
    }

    /// Whether it covers this call, as far as can be told without taking a use.
    #[must_use]
    pub fn covers(&self, subject: &Subject<'_>) -> bool {
        let mut keys = Vec::new();
        let arguments = match &self.arguments {
            GrantArguments::Exactly(digest) => GrantedArgs::Exactly(*digest),
            GrantArguments::Including(text) => match read(text, &mut keys) {
                Some(args) => GrantedArgs::Including(args),
                None => return false,
            },
            GrantArguments::Fitting(schema) => {
                let Ok(schema) = JsonSchema::parse(schema, Profile::ARGUMENTS) else { return false };
                let mut fits = true;
                schema.validate(subject.args, &mut |_| fits = false);
                if !fits {
                    return false;
                }
                GrantedArgs::Any
            }
        };
        let grant = ConsentGrant {
            tool: &self.tool,
            definition: self.definition,
            tenant: self.tenant.as_deref(),
            principal: &self.principal,
            session: None,
            granted_at: self.given_at,
            expires_at: self.expires_at,
            uses_left: Some(self.max_uses.saturating_sub(self.used)),
            arguments,
            provenance: &self.given_by,
        };
        !self.revoked && grant.covers(subject).is_ok()
    }
}

/// The principal that may give grants and take them back.
fn may_grant<'a>(by: &CallContext<'a>) -> Result<&'a str, GrantError> {
    let giver = by.known_principal().ok_or(GrantError::Unauthenticated)?;
    if by.scopes.contains(GRANT_SCOPE) { Ok(giver) } else { Err(GrantError::MissingScope) }
}

/// The members that a grant names.
fn read<'a>(text: &'a str, keys: &mut Vec<KeySlot>) -> Option<Args<'a>> {
    keys.resize(key_capacity(text.as_bytes()), KeySlot::default());
    Args::read(text.as_bytes(), keys, &Limits::DEFAULT).ok()
}
