//! The gate itself: the checks in their order.

use super::channel::{Channel, ChannelTable};
use super::consent::{By, ConsentBy, confirmation_asked, confirmation_required, consent};
use super::denial::{Denial, Reason};
use super::rule::{Effect, Rule, RuleFault, RuleProvider};
use super::subject::Subject;
use crate::context::{Mode, Scopes};
use crate::digest::{Digest, DigestBuilder};

/// The domain of a policy's digest.
const POLICY_DOMAIN: &str = "gate/policy/v1";

/// What a policy says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a decision that nobody looks at protects nothing"]
#[expect(clippy::exhaustive_enums, reason = "a policy allows or denies; whoever reads it must do either")]
pub enum Decision<X> {
    /// The call may go on.
    Allow(Permission),
    /// The call ends here.
    Deny(Denial<X>),
}

impl<X> Decision<X> {
    /// Whether the call may go on.
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow(_))
    }

    /// Whether the call came through a channel that nobody registered.
    pub const fn unknown_channel(&self) -> bool {
        match self {
            Self::Allow(permission) => permission.unknown_channel,
            Self::Deny(denial) => denial.unknown_channel,
        }
    }
}

/// What permitted a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum PermittedBy {
    /// This rule.
    Rule(i64),
    /// The channel, which allows all.
    AllowAll,
    /// The channel, which refused nothing.
    Channel,
}

/// How a call was permitted, for what comes after and for the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permission {
    /// What permitted it.
    pub by: PermittedBy,
    /// Whether nobody registered the channel, so that the host can warn about it once.
    pub unknown_channel: bool,
    /// Who still has to confirm the call, with the consent below taken into account.
    pub confirm: Option<By>,
    /// The consent that was given before; looked for only where a confirmation is asked for.
    pub consent: Option<ConsentBy>,
    /// The channel takes consent only as a signature or a grant, and there is none. Only a plan, which runs nothing, is permitted
    /// so; the same call in mode execute is denied.
    pub consent_missing: bool,
}

impl Permission {
    /// The rule that permitted the call, if one did.
    #[must_use]
    pub const fn rule(&self) -> Option<i64> {
        match self.by {
            PermittedBy::Rule(rule) => Some(rule),
            PermittedBy::AllowAll | PermittedBy::Channel => None,
        }
    }
}

/// The policy of a gate. See [the module](super) for what it checks and in which order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PolicyGate<'a> {
    channels: ChannelTable<'a>,
    provides: Scopes<'a>,
}

impl<'a> PolicyGate<'a> {
    /// A gate over these channels, on a host that provides nothing tools could require.
    #[must_use]
    pub const fn new(channels: ChannelTable<'a>) -> Self {
        Self { channels, provides: Scopes::NONE }
    }

    /// The same gate on a host that provides these things: every one that a tool requires must be among them.
    #[must_use]
    pub const fn providing(mut self, provides: Scopes<'a>) -> Self {
        self.provides = provides;
        self
    }

    /// The channels.
    #[must_use]
    pub const fn channels(&self) -> &ChannelTable<'a> {
        &self.channels
    }

    /// What the host provides.
    #[must_use]
    pub const fn provides(&self) -> Scopes<'a> {
        self.provides
    }

    /// What holds on the channel `name`.
    #[must_use]
    pub fn channel(&self, name: &str) -> Channel<'a> {
        self.channels.get(name)
    }

    /// The digest of the channels and of what the host provides: what a record of a changed policy names (invariant P6). Rules
    /// have a digest of their own, [`super::RuleSet::digest`].
    #[must_use]
    pub fn digest(&self) -> Digest {
        let Self { channels, provides } = self;
        let mut digest = DigestBuilder::new(POLICY_DOMAIN);
        channels.add_to(&mut digest);
        digest.str(provides.as_str());
        digest.finish()
    }

    /// Decides without rules.
    pub fn decide<X: AsRef<str>>(&self, subject: &Subject<'_>) -> Decision<X> {
        match self.before_rules(subject) {
            Phase::Denied(denial) => Decision::Deny(denial),
            Phase::NeedsRule(pending) => pending.with_rule(Ok(None)),
        }
    }

    /// Decides with rules that can be looked up without waiting.
    pub fn decide_with<P: RuleProvider>(&self, subject: &Subject<'_>, rules: &P) -> Decision<P::Text> {
        match self.before_rules(subject) {
            Phase::Denied(denial) => Decision::Deny(denial),
            Phase::NeedsRule(pending) => pending.with_rule(rules.find(subject)),
        }
    }

    /// Checks all that needs no rule: authentication, consent, scopes and requirements.
    pub fn before_rules<'s, X>(&self, subject: &Subject<'s>) -> Phase<'s, X> {
        let Subject { caller, spec, .. } = subject;
        let Channel { policy, known } = self.channel(caller.channel);
        let denied = |reason| Phase::Denied(Denial { reason, unknown_channel: !known });

        if policy.require_auth && caller.known_principal().is_none() {
            return denied(Reason::Unauthenticated);
        }
        let asked = confirmation_asked(spec, &policy);
        let consent = asked.and_then(|_| consent(subject)).map(|consent| consent.by());
        let consent_missing = policy.consent_required && asked.is_some() && consent.is_none();
        if consent_missing && caller.mode == Mode::Execute {
            return denied(Reason::NoConsent);
        }
        if !spec.scopes.is_empty() && !caller.scopes.has_any(spec.scopes) {
            return denied(Reason::MissingScope);
        }
        if let Some(index) = spec.requirements.iter().position(|needed| !self.provides.contains(needed)) {
            return denied(Reason::MissingRequirement { index });
        }
        Phase::NeedsRule(RulePending {
            scopes: caller.scopes,
            blocked: policy.block_mutating && spec.mutating,
            needs_rule: policy.require_rule,
            permission: Permission {
                by: if policy.allow_all { PermittedBy::AllowAll } else { PermittedBy::Channel },
                unknown_channel: !known,
                confirm: confirmation_required(spec, &policy, consent.is_some()),
                consent,
                consent_missing,
            },
        })
    }
}

/// How far a decision has come before rules.
#[derive(Clone, Copy, Debug)]
#[must_use = "a decision that nobody looks at protects nothing"]
#[expect(clippy::exhaustive_enums, reason = "whoever drives a decision must handle both")]
pub enum Phase<'s, X> {
    /// Refused already; no rule can change that.
    Denied(Denial<X>),
    /// Look up the rule for this subject, then go on.
    NeedsRule(RulePending<'s>),
}

/// A decision that waits for its rule. Small, and borrows only the caller's scopes, so that a host can keep it while it waits.
#[derive(Clone, Copy, Debug)]
#[must_use = "a decision that nobody looks at protects nothing"]
pub struct RulePending<'s> {
    scopes: Scopes<'s>,
    blocked: bool,
    needs_rule: bool,
    /// What is permitted if no rule has an opinion and nothing is blocked.
    permission: Permission,
}

impl RulePending<'_> {
    /// Takes the rule, no rule, or the fault that kept the host from finding it, which denies (invariant F1).
    pub fn with_rule<X: AsRef<str>>(self, answer: Result<Option<Rule<X>>, RuleFault>) -> Decision<X> {
        let Self { scopes, blocked, needs_rule, mut permission } = self;
        let unknown_channel = permission.unknown_channel;
        let deny = |reason| Decision::Deny(Denial { reason, unknown_channel });

        let mut lifted = false;
        match answer {
            Err(fault) => return deny(Reason::Fault(fault)),
            Ok(Some(Rule { id, effect: Effect::Deny, description, .. })) => {
                return deny(Reason::DeniedByRule { rule: id, description });
            }
            Ok(Some(Rule { id, effect: Effect::Allow, scopes: wanted, overrides_block, .. })) => {
                if let Some(wanted) = wanted
                    && !scopes.has_any(Scopes::new(wanted.as_ref()))
                {
                    return deny(Reason::MissingRuleScope { rule: id, scopes: wanted });
                }
                permission.by = PermittedBy::Rule(id);
                lifted = overrides_block;
            }
            Ok(None) if needs_rule => return deny(Reason::NoRule),
            Ok(None) => {}
        }
        // A forbid wins over every permit but the one that names it; what is not registered is not trusted by a rule either.
        if blocked && unknown_channel {
            return deny(Reason::UntrustedChannel);
        }
        if blocked && !lifted {
            return deny(Reason::MutatingBlocked);
        }
        Decision::Allow(permission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::size_of;

    /// A call carries these from stage to stage, within 256 bytes for all of its state.
    #[test]
    fn decisions_are_small() {
        assert!(size_of::<Permission>() <= 40, "{}", size_of::<Permission>());
        assert!(size_of::<Decision<&'static str>>() <= 48, "{}", size_of::<Decision<&'static str>>());
        assert!(size_of::<RulePending<'static>>() <= 64, "{}", size_of::<RulePending<'static>>());
    }
}
