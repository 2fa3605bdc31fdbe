//! Rules, and the seam through which a host looks them up.

use core::fmt;

use super::subject::Subject;

/// What a rule does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a rule permits or forbids; a third effect would change every decision")]
pub enum Effect {
    /// Permits the call, if its caller holds one of the rule's scopes.
    Allow,
    /// Refuses the call. Final.
    Deny,
}

impl Effect {
    /// `allow` or `deny`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }

    /// Reads `allow` or `deny`, byte for byte. A store that holds anything else answers with [`RuleFault::Invalid`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "allow" => Some(Self::Allow),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The rule that applies to a call. `X` is how a host keeps short texts: `&'static str`, `Arc<str>` and the like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule<X> {
    /// Names the rule in denials and records.
    pub id: i64,
    /// What it does.
    pub effect: Effect,
    /// The caller must hold one of these for an allow to permit anything (separated by spaces); `None` asks for none. A list
    /// that is there and empty is satisfied by nobody (invariant F2).
    pub scopes: Option<X>,
    /// What a caller who is denied gets to read. An empty one counts as none.
    pub description: Option<X>,
    /// Whether an allow also permits mutating tools on a channel that blocks them.
    pub overrides_block: bool,
}

impl<X> Rule<X> {
    /// A rule without scopes and description.
    #[must_use]
    pub const fn new(id: i64, effect: Effect) -> Self {
        Self { id, effect, scopes: None, description: None, overrides_block: false }
    }
}

/// Why a host could not tell which rule applies. A fault is a denial (invariant F1); what exactly went wrong is for the host's
/// own log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum RuleFault {
    /// The store of rules could not be reached.
    Unavailable,
    /// It did not answer in time.
    TimedOut,
    /// It holds something that is not a rule.
    Invalid,
    /// The code that looks rules up panicked.
    Panicked,
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "rules unavailable",
            Self::TimedOut => "rules timed out",
            Self::Invalid => "invalid rule",
            Self::Panicked => "rule lookup panicked",
        })
    }
}

impl core::error::Error for RuleFault {}

/// Finds the rule for a call without waiting. Also the seam for a policy of a host's own: it sees all that the gate sees, the
/// clamped arguments included.
///
/// Where several rules match, the provider answers with the one that counts: any deny before any allow (invariant P1).
/// Hosts that have to wait call [`super::PolicyGate::before_rules`] and [`super::RulePending::with_rule`] themselves.
pub trait RuleProvider {
    /// How the texts of rules are kept.
    type Text: AsRef<str>;

    /// The rule for this call; `None` when no rule has an opinion.
    ///
    /// # Errors
    /// Whatever keeps the provider from an answer. The call is denied.
    fn find(&self, subject: &Subject<'_>) -> Result<Option<Rule<Self::Text>>, RuleFault>;
}

impl<P: RuleProvider + ?Sized> RuleProvider for &P {
    type Text = P::Text;

    fn find(&self, subject: &Subject<'_>) -> Result<Option<Rule<Self::Text>>, RuleFault> {
        (**self).find(subject)
    }
}

/// No rules at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NoRules;

impl RuleProvider for NoRules {
    type Text = &'static str;

    fn find(&self, _: &Subject<'_>) -> Result<Option<Rule<Self::Text>>, RuleFault> {
        Ok(None)
    }
}
