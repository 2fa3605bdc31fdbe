//! Policies that may wait.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use callgate_core::policy::{Decision, Phase, PolicyGate, Rule, RuleFault, Subject};
use callgate_std::contain::contained;
use callgate_std::policy::{ChannelPolicies, Policy as BlockingPolicy};

use crate::seam::{Seam, seams};

/// Decides about calls. What fails, panics or takes too long denies (invariant F1).
#[async_trait]
pub trait Policy: Send + Sync {
    /// Decides about one call.
    async fn decide(&self, subject: &Subject<'_>) -> Decision<Arc<str>>;

    /// The gate behind the decisions, where there is one: for inspection and listings.
    fn gate(&self) -> Option<PolicyGate<'_>> {
        None
    }

    /// Whether rules are asked.
    fn has_rules(&self) -> bool {
        false
    }
}

/// How the gate reaches its policy.
pub type PolicySeam = Seam<dyn Policy, dyn BlockingPolicy>;
seams!(PolicySeam, Policy, BlockingPolicy);

/// Finds the rule of a call. See [`callgate_core::policy::RuleProvider`].
#[async_trait]
pub trait RuleProvider: Send + Sync {
    /// The rule that decides about the call, if there is one.
    ///
    /// # Errors
    /// The rules could not be asked, which denies.
    async fn find(&self, subject: &Subject<'_>) -> Result<Option<Rule<Arc<str>>>, RuleFault>;
}

/// Channels as `callgate-std` knows them, and rules from a provider that may wait.
pub struct RuledPolicies<P> {
    channels: ChannelPolicies,
    rules: P,
}

impl<P: RuleProvider> RuledPolicies<P> {
    /// These channels with the rules of this provider. Rules that the channels bring along are not asked.
    pub const fn new(channels: ChannelPolicies, rules: P) -> Self {
        Self { channels, rules }
    }
}

#[async_trait]
impl<P: RuleProvider> Policy for RuledPolicies<P> {
    async fn decide(&self, subject: &Subject<'_>) -> Decision<Arc<str>> {
        let Some(gate) = BlockingPolicy::gate(&self.channels) else { return callgate_std::policy::fault() };
        match gate.before_rules(subject) {
            Phase::Denied(denial) => Decision::Deny(denial),
            Phase::NeedsRule(pending) => {
                // Contained here, so that what is known of the channel stays with the denial.
                let found = contained(self.rules.find(subject)).await;
                pending.with_rule(found.unwrap_or(Err(RuleFault::Panicked)))
            }
        }
    }

    fn gate(&self) -> Option<PolicyGate<'_>> {
        BlockingPolicy::gate(&self.channels)
    }

    fn has_rules(&self) -> bool {
        true
    }
}

impl<P> fmt::Debug for RuledPolicies<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuledPolicies").field("channels", &self.channels).finish_non_exhaustive()
    }
}

impl PolicySeam {
    /// The gate behind the decisions, where there is one.
    pub(crate) fn gate(&self) -> Option<PolicyGate<'_>> {
        match self {
            Self::Waiting(policy) => policy.gate(),
            Self::Immediate(policy) | Self::Blocking(policy) => policy.gate(),
        }
    }

    /// Whether rules are asked.
    pub(crate) fn has_rules(&self) -> bool {
        match self {
            Self::Waiting(policy) => policy.has_rules(),
            Self::Immediate(policy) | Self::Blocking(policy) => policy.has_rules(),
        }
    }
}
