//! Policy with owned configuration: the channel table, the rules, and the seam for a policy of the host's own.

use std::fmt;
use std::sync::Arc;

use callgate_core::context::Scopes;
use callgate_core::policy::{
    ArgTest, ChannelError, ChannelPolicy, ChannelTable, Decision, Denial, PolicyGate, Reason, RuleDef, RuleFault,
    RuleProvider, RuleSet, Subject,
};

/// A rule that owns its texts.
pub type OwnedRule = RuleDef<Arc<str>, Vec<ArgTest<Arc<str>>>>;

/// Decides about calls without waiting. What fails or panics denies (invariant F1).
pub trait Policy: Send + Sync {
    /// Decides about one call.
    fn decide(&self, subject: &Subject<'_>) -> Decision<Arc<str>>;

    /// The gate behind the decisions, where there is one: for inspection and listings.
    fn gate(&self) -> Option<PolicyGate<'_>> {
        None
    }

    /// Whether rules are asked.
    fn has_rules(&self) -> bool {
        false
    }
}

impl<P: Policy + ?Sized> Policy for Arc<P> {
    fn decide(&self, subject: &Subject<'_>) -> Decision<Arc<str>> {
        (**self).decide(subject)
    }

    fn gate(&self) -> Option<PolicyGate<'_>> {
        (**self).gate()
    }

    fn has_rules(&self) -> bool {
        (**self).has_rules()
    }
}

/// Where the rules come from.
enum Rules {
    /// Written down, and matched by the gate itself.
    Own(Vec<OwnedRule>),
    /// A provider of the host's own.
    Host(Box<dyn RuleProvider<Text = Arc<str>> + Send + Sync>),
}

struct Owned {
    channels: Vec<OwnedChannel>,
    provides: String,
}

struct OwnedChannel {
    name: String,
    policy: ChannelPolicy<'static>,
}

struct Borrowed<'a> {
    channels: Vec<ChannelPolicy<'a>>,
    provides: Scopes<'a>,
}

mod cells {
    #![expect(clippy::mem_forget, reason = "the macro disarms its own drop guards with it")]

    use super::{Borrowed, Owned};
    use self_cell::self_cell;

    self_cell!(
        /// The configuration, and the tables of it that core takes.
        pub(super) struct Tables {
            owner: Owned,
            #[covariant]
            dependent: Borrowed,
        }
    );
}

use cells::Tables;

/// The gate's policy: channels, what the host provides, rules.
///
/// ```
/// use callgate_core::policy::ChannelPolicy;
/// use callgate_std::policy::{ChannelPolicies, Policy};
/// // The built-in channels, with a web channel that changes nothing.
/// let policy = ChannelPolicies::builder()
///     .channel("web", ChannelPolicy::new("").blocking_mutating())
///     .build()?;
/// assert!(policy.gate().unwrap().channel("web").policy.block_mutating);
/// assert!(policy.gate().unwrap().channel("mcp").policy.require_auth);
/// # Ok::<(), callgate_std::policy::PolicyError>(())
/// ```
pub struct ChannelPolicies {
    tables: Tables,
    with_defaults: bool,
    rules: Option<Rules>,
}

impl fmt::Debug for ChannelPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelPolicies")
            .field("channels", &self.tables.borrow_dependent().channels)
            .field("with_defaults", &self.with_defaults)
            .field("rules", &self.rules.is_some())
            .finish_non_exhaustive()
    }
}

impl ChannelPolicies {
    /// The built-in channels, no rules, nothing provided.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder { channels: Vec::new(), provides: Vec::new(), with_defaults: true, rules: None, defs: Vec::new() }
    }

    fn core_gate(&self) -> PolicyGate<'_> {
        let tables = self.tables.borrow_dependent();
        let table = if self.with_defaults {
            ChannelTable::over_defaults(&tables.channels)
        } else {
            ChannelTable::new(&tables.channels)
        };
        PolicyGate::new(table).providing(tables.provides)
    }
}

impl Policy for ChannelPolicies {
    fn decide(&self, subject: &Subject<'_>) -> Decision<Arc<str>> {
        match &self.rules {
            Some(Rules::Own(rules)) => self.core_gate().decide_with(subject, &RuleSet::new(rules)),
            Some(Rules::Host(rules)) => self.core_gate().decide_with(subject, &Contained(rules.as_ref())),
            None => self.core_gate().decide(subject),
        }
    }

    fn gate(&self) -> Option<PolicyGate<'_>> {
        Some(self.core_gate())
    }

    fn has_rules(&self) -> bool {
        self.rules.is_some()
    }
}

/// A provider whose panics are faults.
struct Contained<'a>(&'a (dyn RuleProvider<Text = Arc<str>> + Send + Sync));

impl RuleProvider for Contained<'_> {
    type Text = Arc<str>;

    fn find(&self, subject: &Subject<'_>) -> Result<Option<callgate_core::policy::Rule<Arc<str>>>, RuleFault> {
        crate::contain::contain(|| self.0.find(subject)).unwrap_or(Err(RuleFault::Panicked))
    }
}

/// Denies because the policy itself failed.
pub const fn fault() -> Decision<Arc<str>> {
    Decision::Deny(Denial { reason: Reason::Fault(RuleFault::Panicked), unknown_channel: false })
}

/// Why a policy is not used (invariant F7).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A channel that is none, or is given twice.
    #[error("channel `{name}`: {reason}")]
    Channel {
        /// The channel as it was given.
        name: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// A rule that is none.
    #[error("{0}")]
    Rule(String),
    /// A thing that the host provides, outside the grammar.
    #[error("`{name}` cannot be provided: it {reason}")]
    Provides {
        /// The thing as it was given.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Both a list of rules and a provider.
    #[error("give either rules or a rule provider, not both: which of the two would win is nobody's guess")]
    TwoSources,
}

/// Builds a [`ChannelPolicies`].
#[must_use]
pub struct PolicyBuilder {
    channels: Vec<OwnedChannel>,
    provides: Vec<String>,
    with_defaults: bool,
    rules: Option<Rules>,
    defs: Vec<OwnedRule>,
}

impl fmt::Debug for PolicyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyBuilder").field("with_defaults", &self.with_defaults).finish_non_exhaustive()
    }
}

impl PolicyBuilder {
    /// Says what holds on the channel `name`, instead of the built-in policy of this name. The name within `policy` is not
    /// used.
    pub fn channel(mut self, name: impl Into<String>, policy: ChannelPolicy<'_>) -> Self {
        let policy = ChannelPolicy { name: "", ..policy };
        self.channels.push(OwnedChannel { name: name.into(), policy });
        self
    }

    /// Knows only the channels given here: every other one, the built-in ones included, is untrusted.
    pub const fn without_defaults(mut self) -> Self {
        self.with_defaults = false;
        self
    }

    /// Says that the host provides this to tools that require it.
    pub fn provides(mut self, name: impl Into<String>) -> Self {
        self.provides.push(name.into());
        self
    }

    /// Adds rules.
    pub fn rules(mut self, rules: impl IntoIterator<Item = OwnedRule>) -> Self {
        self.defs.extend(rules);
        self
    }

    /// Asks this provider for the rule of each call.
    pub fn rule_provider(mut self, provider: impl RuleProvider<Text = Arc<str>> + Send + Sync + 'static) -> Self {
        self.rules = Some(Rules::Host(Box::new(provider)));
        self
    }

    /// Checks everything and builds the policy.
    ///
    /// # Errors
    /// The first thing that cannot be used.
    pub fn build(self) -> Result<ChannelPolicies, PolicyError> {
        for name in &self.provides {
            callgate_core::name::check_scope(name)
                .map_err(|reason| PolicyError::Provides { name: name.clone(), reason: reason.to_string() })?;
        }
        RuleSet::new(&self.defs).check().map_err(|error| PolicyError::Rule(error.to_string()))?;
        let rules = match (self.defs.is_empty(), self.rules) {
            (false, Some(_)) => return Err(PolicyError::TwoSources),
            (true, provider) => provider,
            (false, None) => Some(Rules::Own(self.defs)),
        };
        let owned = Owned { channels: self.channels, provides: self.provides.join(" ") };
        let tables = Tables::new(owned, |owned| Borrowed {
            channels: owned
                .channels
                .iter()
                .map(|channel| ChannelPolicy { name: &channel.name, ..channel.policy })
                .collect(),
            provides: Scopes::new(&owned.provides),
        });
        let policies = ChannelPolicies { tables, with_defaults: self.with_defaults, rules };
        let channels = &policies.tables.borrow_dependent().channels;
        ChannelTable::new(channels).check().map_err(|error| {
            let (index, reason) = match error {
                ChannelError::Name { index, reason } => (index, format!("the name {reason}")),
                ChannelError::Twice { index } => (index, "is given twice; merge the two into one".to_owned()),
                other => (usize::MAX, other.to_string()),
            };
            PolicyError::Channel { name: channels.get(index).map_or("?", |channel| channel.name).to_owned(), reason }
        })?;
        Ok(policies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f7_an_unusable_policy_is_refused_with_what_would_be_right() {
        let twice = ChannelPolicies::builder()
            .channel("api", ChannelPolicy::new(""))
            .channel("api", ChannelPolicy::new("").allowing_all())
            .build();
        assert!(matches!(&twice, Err(PolicyError::Channel { name, .. }) if name == "api"), "{twice:?}");
        let bad = ChannelPolicies::builder().channel("a b", ChannelPolicy::new("")).build();
        assert!(bad.is_err());
        let rule = OwnedRule::new(1, callgate_core::policy::Effect::Deny, Vec::new());
        let same = ChannelPolicies::builder().rules([rule.clone(), rule]).build();
        assert!(matches!(&same, Err(PolicyError::Rule(text)) if text.contains("#1")), "{same:?}");
        assert!(ChannelPolicies::builder().provides("a,b").build().is_err());
    }

    #[test]
    fn a_channel_given_here_replaces_the_built_in_one() {
        let policy = ChannelPolicies::builder().channel("mcp", ChannelPolicy::new("").without_auth()).build().unwrap();
        let gate = policy.gate().unwrap();
        assert!(!gate.channel("mcp").policy.require_auth);
        assert!(gate.channel("cli").policy.allow_all);
        let only = ChannelPolicies::builder().without_defaults().build().unwrap();
        assert!(!only.gate().unwrap().channel("cli").known);
    }
}
