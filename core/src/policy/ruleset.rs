//! Rules written down beforehand, and matched by the gate itself.

use core::fmt;

use super::argument::{ArgTest, Holds, hold};
use super::rule::{Effect, Rule, RuleFault, RuleProvider};
use super::subject::Subject;
use crate::context::Scopes;
use crate::digest::{Digest, DigestBuilder};
use crate::name::{check_label, check_principal, check_tool_name};

/// The domain of the digest of rules.
const RULES_DOMAIN: &str = "gate/rules/v1";

/// One rule: which calls it is about, and what it does to them. What is `None` is not asked for.
///
/// `S` is how texts are kept and `L` how the tests are: borrowed by default, so that rules can be constants; a host that reads
/// its rules from a file uses `RuleDef<Arc<str>, Vec<ArgTest<Arc<str>>>>` and the like.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RuleDef<S = &'static str, L = &'static [ArgTest<S>]> {
    /// Names the rule in denials and records; no two rules of a set have the same.
    pub id: i64,
    /// What the rule does.
    pub effect: Effect,
    /// Calls of this tenant.
    pub tenant: Option<S>,
    /// Calls through this channel.
    pub channel: Option<S>,
    /// Calls of this principal.
    pub principal: Option<S>,
    /// Calls of this tool; or, with one `*` at the end, of all tools whose names start so: `fs.*`.
    pub tool: Option<S>,
    /// Calls of tools that are mutating, or of those that are not.
    pub mutating: Option<bool>,
    /// Calls with such arguments.
    pub arguments: L,
    /// The caller must hold one of these for an allow to permit anything (separated by spaces).
    pub scopes: Option<S>,
    /// What a caller who is denied gets to read.
    pub description: Option<S>,
    /// Whether an allow also permits mutating tools on a channel that blocks them.
    pub overrides_block: bool,
}

impl<S, L> RuleDef<S, L> {
    /// A rule about every call with such arguments.
    #[must_use]
    pub const fn new(id: i64, effect: Effect, arguments: L) -> Self {
        Self {
            id,
            effect,
            tenant: None,
            channel: None,
            principal: None,
            tool: None,
            mutating: None,
            arguments,
            scopes: None,
            description: None,
            overrides_block: false,
        }
    }
}

impl<'a> RuleDef<&'a str, &'a [ArgTest<&'a str>]> {
    /// Permits every call, until it is narrowed.
    #[must_use]
    pub const fn allow(id: i64) -> Self {
        Self::new(id, Effect::Allow, &[])
    }

    /// Refuses every call, until it is narrowed.
    #[must_use]
    pub const fn deny(id: i64) -> Self {
        Self::new(id, Effect::Deny, &[])
    }

    /// Only calls of this tenant.
    #[must_use]
    pub const fn in_tenant(mut self, tenant: &'a str) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// Only calls through this channel.
    #[must_use]
    pub const fn on_channel(mut self, channel: &'a str) -> Self {
        self.channel = Some(channel);
        self
    }

    /// Only calls of this principal.
    #[must_use]
    pub const fn by_principal(mut self, principal: &'a str) -> Self {
        self.principal = Some(principal);
        self
    }

    /// Only calls of this tool, or of the tools that `pattern` names by its start: `fs.*`.
    #[must_use]
    pub const fn for_tools(mut self, pattern: &'a str) -> Self {
        self.tool = Some(pattern);
        self
    }

    /// Only calls of tools that are mutating, or of those that are not.
    #[must_use]
    pub const fn for_mutating(mut self, mutating: bool) -> Self {
        self.mutating = Some(mutating);
        self
    }

    /// Only calls with such arguments.
    #[must_use]
    pub const fn with_arguments(mut self, tests: &'a [ArgTest<&'a str>]) -> Self {
        self.arguments = tests;
        self
    }

    /// Permits only callers who hold one of these scopes.
    #[must_use]
    pub const fn needing(mut self, scopes: &'a str) -> Self {
        self.scopes = Some(scopes);
        self
    }

    /// Tells a caller who is denied this.
    #[must_use]
    pub const fn described(mut self, description: &'a str) -> Self {
        self.description = Some(description);
        self
    }

    /// Permits mutating tools also on a channel that blocks them.
    #[must_use]
    pub const fn overriding_block(mut self) -> Self {
        self.overrides_block = true;
        self
    }
}

impl<S: AsRef<str>, L: AsRef<[ArgTest<S>]>> RuleDef<S, L> {
    /// Whether the rule is about this call.
    fn matches(&self, subject: &Subject<'_>) -> bool {
        let Subject { caller, spec, args, .. } = subject;
        let is = |wanted: &Option<S>, given: Option<&str>| match wanted {
            Some(wanted) => Holds::from(given == Some(wanted.as_ref())),
            None => Holds::Yes,
        };
        let channel = is(&self.channel, Some(caller.channel));
        // The least of all counts, and there is no less than this.
        if channel == Holds::No {
            return false;
        }
        let plain = [
            channel,
            is(&self.principal, caller.known_principal()),
            is(&self.tenant, caller.tenant),
            self.tool.as_ref().map_or(Holds::Yes, |pattern| names(pattern.as_ref(), spec.name)),
            self.mutating.is_none_or(|mutating| mutating == spec.mutating).into(),
        ];
        let head = plain.into_iter().min().unwrap_or(Holds::No);
        // Arguments are looked at last: that costs a walk through their text.
        let all = if head == Holds::No { head } else { head.min(hold(self.arguments.as_ref(), *args)) };
        match self.effect {
            Effect::Allow => all == Holds::Yes,
            Effect::Deny => all != Holds::No,
        }
    }

    /// Adds every field to `digest`.
    fn add_to(&self, digest: &mut DigestBuilder) {
        // Taken apart by name, so that a field added later cannot be left out.
        let Self {
            id,
            effect,
            tenant,
            channel,
            principal,
            tool,
            mutating,
            arguments,
            scopes,
            description,
            overrides_block,
        } = self;
        digest.i64(*id).str(effect.as_str());
        for text in [tenant, channel, principal, tool, scopes, description] {
            digest.option_str(text.as_ref().map(AsRef::as_ref));
        }
        digest.option(mutating.is_some()).bool(*mutating == Some(true)).bool(*overrides_block);
        digest.list(arguments.as_ref().len());
        for test in arguments.as_ref() {
            test.add_to(digest);
        }
    }

    /// An order among rules that does not depend on where they stand.
    fn rank(&self) -> (i64, Option<&str>, Option<&str>) {
        (self.id, self.description.as_ref().map(AsRef::as_ref), self.scopes.as_ref().map(AsRef::as_ref))
    }
}

/// Whether `pattern` names `tool`. A pattern that is none names everything to a deny and nothing to an allow.
fn names(pattern: &str, tool: &str) -> Holds {
    // Bytes, not characters: names are ASCII, and this is looked at for every rule of every call.
    let is_star = |byte: &u8| *byte == b'*';
    match pattern.as_bytes().split_last() {
        Some((b'*', start)) if !start.iter().any(is_star) => tool.as_bytes().starts_with(start).into(),
        _ if pattern.bytes().any(|byte| is_star(&byte)) => Holds::Open,
        _ => (pattern == tool).into(),
    }
}

/// Rules at hand. The answer depends neither on their order nor on rules that are there twice (invariant P1):
///
/// - any deny that matches wins;
/// - among the allows that match, one whose scopes the caller holds, and of those one that overrides `block_mutating`;
/// - else an allow that matches and whose scopes are missing, which denies and names them;
/// - of several that are alike so far, the one with the least id.
#[derive(Debug)]
pub struct RuleSet<'a, S = &'static str, L = &'static [ArgTest<S>]>(&'a [RuleDef<S, L>]);

impl<S, L> Clone for RuleSet<'_, S, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, L> Copy for RuleSet<'_, S, L> {}

impl<'a, S, L> RuleSet<'a, S, L> {
    /// These rules.
    #[must_use]
    pub const fn new(rules: &'a [RuleDef<S, L>]) -> Self {
        Self(rules)
    }
}

impl<'a, S: AsRef<str>, L: AsRef<[ArgTest<S>]>> RuleSet<'a, S, L> {
    /// The rule that counts for this call.
    #[must_use]
    pub fn matching(&self, subject: &Subject<'_>) -> Option<&'a RuleDef<S, L>> {
        self.0.iter().filter(|rule| rule.matches(subject)).min_by(|a, b| {
            let place = |rule: &RuleDef<S, L>| match rule.effect {
                Effect::Deny => 0,
                Effect::Allow => match &rule.scopes {
                    Some(scopes) if !subject.caller.scopes.has_any(Scopes::new(scopes.as_ref())) => 3,
                    _ if rule.overrides_block => 1,
                    _ => 2,
                },
            };
            place(a).cmp(&place(b)).then_with(|| a.rank().cmp(&b.rank()))
        })
    }

    /// The digest of the rules, in their order: what a record of changed rules names (invariant P6).
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut digest = DigestBuilder::new(RULES_DOMAIN);
        digest.list(self.0.len());
        for rule in self.0 {
            rule.add_to(&mut digest);
        }
        digest.finish()
    }

    /// Checks the rules before they are used (invariant F7).
    ///
    /// # Errors
    /// The first rule that is not one, and why.
    pub fn check(&self) -> Result<(), RuleError> {
        for (index, rule) in self.0.iter().enumerate() {
            let fault = |problem| Err(RuleError { index, id: rule.id, problem });
            let outside =
                |text: &Option<S>, check: fn(&str) -> bool| text.as_ref().is_some_and(|text| !check(text.as_ref()));
            if self.0.iter().take(index).any(|earlier| earlier.id == rule.id) {
                return fault(RuleProblem::Twice);
            }
            if outside(&rule.tenant, |name| check_label(name).is_ok()) {
                return fault(RuleProblem::Tenant);
            }
            if outside(&rule.channel, |name| check_label(name).is_ok()) {
                return fault(RuleProblem::Channel);
            }
            if outside(&rule.principal, |name| check_principal(name).is_ok()) {
                return fault(RuleProblem::Principal);
            }
            if outside(&rule.tool, is_pattern) {
                return fault(RuleProblem::Tool);
            }
            if outside(&rule.scopes, |list| !Scopes::new(list).is_empty() && Scopes::new(list).check().is_ok()) {
                return fault(RuleProblem::Scopes);
            }
            if let Some(test) = rule.arguments.as_ref().iter().position(|test| !test.is_sound()) {
                return fault(RuleProblem::Argument { test });
            }
            if rule.effect == Effect::Deny && (rule.scopes.is_some() || rule.overrides_block) {
                return fault(RuleProblem::LenientDeny);
            }
        }
        Ok(())
    }
}

/// A tool's name, or the start of one and a `*`, or a `*` alone.
fn is_pattern(pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(start) => check_tool_name(start).is_ok(),
        None => check_tool_name(pattern).is_ok(),
    }
}

impl<S: AsRef<str> + Clone, L: AsRef<[ArgTest<S>]>> RuleProvider for RuleSet<'_, S, L> {
    type Text = S;

    fn find(&self, subject: &Subject<'_>) -> Result<Option<Rule<S>>, RuleFault> {
        Ok(self.matching(subject).map(|rule| Rule {
            id: rule.id,
            effect: rule.effect,
            scopes: rule.scopes.clone(),
            description: rule.description.clone(),
            overrides_block: rule.overrides_block,
        }))
    }
}

/// A rule that a set is not used with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuleError {
    /// Which rule, counted from 0.
    pub index: usize,
    /// Its id.
    pub id: i64,
    /// What is wrong with it.
    pub problem: RuleProblem,
}

/// What is wrong with a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RuleProblem {
    /// Its id is taken.
    Twice,
    /// The tenant is outside the grammar.
    Tenant,
    /// The channel is outside the grammar.
    Channel,
    /// The principal is outside the grammar.
    Principal,
    /// The tool is neither a name nor the start of one with a `*` behind it.
    Tool,
    /// The scopes are an empty list, or one is outside the grammar.
    Scopes,
    /// A test of an argument can never be decided.
    Argument {
        /// Which test, counted from 0.
        test: usize,
    },
    /// A deny names scopes, or overrides something: it would refuse all the same.
    LenientDeny,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule #{}: ", self.id)?;
        match self.problem {
            RuleProblem::Twice => f.write_str("the id is taken by an earlier rule; give each rule its own"),
            RuleProblem::Tenant => f.write_str("the tenant is not a name; use letters, digits and _ . : / -"),
            RuleProblem::Channel => f.write_str("the channel is not a name; use letters, digits and _ . : / -"),
            RuleProblem::Principal => f.write_str("the principal is not one; use 1 to 256 printable ASCII characters"),
            RuleProblem::Tool => {
                f.write_str("the tool is neither a name like fs.read nor a pattern like fs.* (one * at the end)")
            }
            RuleProblem::Scopes => {
                f.write_str("the scopes are empty or malformed; leave them out, or list them with a space between two")
            }
            RuleProblem::Argument { test } => {
                write!(
                    f,
                    "argument test {test} can never be decided; give a prefix that is not empty, and finite numbers"
                )
            }
            RuleProblem::LenientDeny => f.write_str(
                "a deny takes no scopes and overrides nothing, because it always refuses; write an allow instead",
            ),
        }
    }
}

impl core::error::Error for RuleError {}
