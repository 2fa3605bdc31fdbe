//! Why a policy refused a call.

use core::fmt;

use super::rule::RuleFault;
use crate::context::{CallContext, Scopes};
use crate::tool::ToolSpec;

/// The check that refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The channel asks for a principal.
    RequireAuth,
    /// The channel asks for a signature or a grant.
    Consent,
    /// The tool asks for a scope.
    Scopes,
    /// The tool asks for something that the host does not provide.
    Requirements,
    /// A rule refused, or none permitted.
    Rule,
    /// The channel lets nothing mutating pass.
    BlockMutating,
    /// Nobody registered the channel.
    UnknownChannel,
    /// The policy could not be evaluated.
    PolicyFault,
}

impl Check {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RequireAuth => "require_auth",
            Self::Consent => "consent",
            Self::Scopes => "scopes",
            Self::Requirements => "requirements",
            Self::Rule => "rule",
            Self::BlockMutating => "block_mutating",
            Self::UnknownChannel => "unknown_channel",
            Self::PolicyFault => "policy_fault",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What exactly was wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason<X> {
    /// The channel asks for a principal and there is none.
    Unauthenticated,
    /// The channel takes consent as a signature or a grant and nothing covers this call.
    NoConsent,
    /// The caller holds none of the tool's scopes.
    MissingScope,
    /// The host does not provide a requirement of the tool.
    MissingRequirement {
        /// Which one, counted from 0 in the tool's list.
        index: usize,
    },
    /// An allow rule matches, but the caller holds none of its scopes.
    MissingRuleScope {
        /// The rule.
        rule: i64,
        /// The scopes of which it asks for one.
        scopes: X,
    },
    /// A rule denies.
    DeniedByRule {
        /// The rule.
        rule: i64,
        /// What the caller gets to read.
        description: Option<X>,
    },
    /// The channel allows only what a rule permits and none does.
    NoRule,
    /// The channel blocks mutating tools.
    MutatingBlocked,
    /// The channel is not registered and the tool is mutating.
    UntrustedChannel,
    /// The rules could not be looked up.
    Fault(RuleFault),
}

/// A refusal: small, without a borrow of the policy. Text is made by [`Denial::describe`] when somebody asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Denial<X> {
    /// What was wrong.
    pub reason: Reason<X>,
    /// Whether nobody registered the channel, so that the host can warn about it once.
    pub unknown_channel: bool,
}

impl<X> Denial<X> {
    /// The check that refused.
    #[must_use]
    pub const fn check(&self) -> Check {
        match &self.reason {
            Reason::Unauthenticated => Check::RequireAuth,
            Reason::NoConsent => Check::Consent,
            Reason::MissingScope => Check::Scopes,
            Reason::MissingRequirement { .. } => Check::Requirements,
            Reason::MissingRuleScope { .. } | Reason::DeniedByRule { .. } | Reason::NoRule => Check::Rule,
            Reason::MutatingBlocked => Check::BlockMutating,
            Reason::UntrustedChannel => Check::UnknownChannel,
            Reason::Fault(_) => Check::PolicyFault,
        }
    }

    /// The rule that refused, if one did.
    #[must_use]
    pub const fn rule(&self) -> Option<i64> {
        match &self.reason {
            Reason::MissingRuleScope { rule, .. } | Reason::DeniedByRule { rule, .. } => Some(*rule),
            _ => None,
        }
    }

    /// Whether the call was refused because nobody is known to have made it (`UNAUTHORIZED` rather than `FORBIDDEN`).
    #[must_use]
    pub const fn is_unauthenticated(&self) -> bool {
        matches!(self.reason, Reason::Unauthenticated)
    }
}

impl<X: AsRef<str>> Denial<X> {
    /// The refusal as a sentence for the caller: which check, and what was missing.
    pub const fn describe<'d>(&'d self, spec: &'d ToolSpec<'d>, caller: &'d CallContext<'d>) -> Describe<'d, X> {
        Describe { denial: self, spec, caller }
    }
}

/// A refusal together with what its sentence speaks of.
#[derive(Clone, Copy, Debug)]
pub struct Describe<'d, X> {
    denial: &'d Denial<X>,
    spec: &'d ToolSpec<'d>,
    caller: &'d CallContext<'d>,
}

impl<X: AsRef<str>> fmt::Display for Describe<'_, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tool, channel, held) = (self.spec.name, self.caller.channel, self.caller.scopes);
        let principal = self.caller.known_principal().unwrap_or("(none)");
        match &self.denial.reason {
            Reason::Unauthenticated => {
                write!(f, "channel '{channel}' requires an authenticated principal (require_auth) — none provided.")
            }
            Reason::NoConsent => write!(
                f,
                "'{tool}' needs explicit consent and channel '{channel}' takes consent as a signature naming this call — \
                 none was presented."
            ),
            Reason::MissingScope => write!(
                f,
                "Missing required scope for tool '{tool}'. Need one of: {} — context has: {held}.",
                self.spec.scopes
            ),
            Reason::MissingRequirement { index } => write!(
                f,
                "Tool '{tool}' requires '{}', which this host does not provide (requirements).",
                self.spec.requirements.iter().nth(*index).unwrap_or("?")
            ),
            Reason::MissingRuleScope { rule, scopes } => write!(
                f,
                "Policy rule #{rule} for tool '{tool}' requires one of these scopes: {} — context has: {held}.",
                Scopes::new(scopes.as_ref())
            ),
            Reason::DeniedByRule { rule, description } => {
                match description.as_ref().map(AsRef::as_ref).filter(|text| !text.is_empty()) {
                    Some(description) => f.write_str(description),
                    None => write!(
                        f,
                        "Denied by policy rule #{rule} for tool '{tool}' on channel '{channel}' (principal: {principal})."
                    ),
                }
            }
            Reason::NoRule => write!(
                f,
                "No policy rule permits tool '{tool}' on channel '{channel}' (principal: {principal}), and the channel allows \
                 only what a rule permits (require_rule)."
            ),
            Reason::MutatingBlocked => {
                write!(f, "Mutating tool '{tool}' is blocked on channel '{channel}' (block_mutating policy).")
            }
            Reason::UntrustedChannel => write!(
                f,
                "Mutating tool '{tool}' is blocked on channel '{channel}': nobody registered this channel, so it is not \
                 trusted (unknown_channel)."
            ),
            Reason::Fault(fault) => write!(
                f,
                "The policy for tool '{tool}' on channel '{channel}' could not be evaluated ({fault}), which is a denial."
            ),
        }
    }
}
