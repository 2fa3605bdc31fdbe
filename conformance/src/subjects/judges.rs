//! Whoever judges calls: interceptors and a policy, watched.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::json::Number;
use callgate_core::policy::{ArgCheck, ArgTest, ChannelPolicy, Decision, Effect, Subject};
use callgate_std::output::Reply;
use callgate_std::policy::{ChannelPolicies, OwnedRule, Policy, PolicyError, fault};

use super::time::Time;
use super::watched::{Watch, panics, value};
use crate::event::{Mark, Point};
use crate::world::{self, Rule, RuleEffect, Saying, World};

/// How long an interceptor may take, in milliseconds.
pub(super) const LIMIT_MS: u64 = 1_000;

/// The policy of a world, to which rules can be added.
#[derive(Debug)]
pub(super) struct WatchedPolicy {
    watch: Watch,
    channels: Vec<world::Channel>,
    in_force: RwLock<(Vec<Rule>, Arc<ChannelPolicies>)>,
}

impl WatchedPolicy {
    pub(super) fn new(world: &World, watch: Watch) -> Result<Self, PolicyError> {
        let policies = Arc::new(policies(&world.channels, &world.rules)?);
        let in_force = RwLock::new((world.rules.clone(), policies));
        Ok(Self { watch, channels: world.channels.clone(), in_force })
    }

    /// The policy in force, which nobody watches.
    pub(super) fn in_force(&self) -> Arc<ChannelPolicies> {
        Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Adds a rule.
    pub(super) fn add(&self, rule: &Rule) -> Result<(), PolicyError> {
        let mut in_force = self.in_force.write().unwrap_or_else(PoisonError::into_inner);
        let mut rules = in_force.0.clone();
        rules.push(rule.clone());
        let policies = Arc::new(policies(&self.channels, &rules)?);
        *in_force = (rules, policies);
        Ok(())
    }
}

impl Policy for WatchedPolicy {
    fn decide(&self, subject: &Subject<'_>) -> Decision<Arc<str>> {
        let policies = self.in_force();
        self.watch.ask(Mark::with(Point::Authorize, value(subject.args)), || policies.decide(subject), fault)
    }

    fn has_rules(&self) -> bool {
        true
    }
}

fn policies(channels: &[world::Channel], rules: &[Rule]) -> Result<ChannelPolicies, PolicyError> {
    let mut builder = ChannelPolicies::builder().without_defaults();
    for channel in channels {
        let mut policy = ChannelPolicy::new("");
        policy.require_auth = channel.require_auth;
        policy.block_mutating = channel.block_mutating;
        policy.require_rule = channel.require_rule;
        policy.require_confirmation_for_mutating = channel.confirm_mutating;
        if channel.confirm_by_approver {
            policy = policy.confirmed_by_approver();
        }
        builder = builder.channel(channel.name.as_str(), policy);
    }
    builder.rules(rules.iter().map(rule)).build()
}

fn rule(rule: &Rule) -> OwnedRule {
    let effect = match rule.effect {
        RuleEffect::Allow => Effect::Allow,
        RuleEffect::Deny => Effect::Deny,
    };
    let text = |text: &Option<String>| text.as_deref().map(Arc::from);
    let least = |bound: &world::AtLeast| ArgTest {
        key: Arc::from(bound.field.as_str()),
        check: ArgCheck::Min(u64::try_from(bound.value).map_or(Number::I64(bound.value), Number::U64)),
        alternative: false,
    };
    let mut owned = OwnedRule::new(rule.id, effect, rule.at_least.iter().map(least).collect());
    owned.tool = text(&rule.tool);
    owned.principal = text(&rule.principal);
    owned.channel = text(&rule.channel);
    owned.scopes = rule.scopes.as_ref().map(|scopes| Arc::from(scopes.join(" ")));
    owned.overrides_block = rule.overrides_block;
    owned
}

/// An interceptor of a world.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub(super) watch: Watch,
    pub(super) time: Time,
    pub(super) script: world::Interceptor,
}

impl Judge {
    /// It is asked. Says whether the gate goes on.
    pub(super) fn mark(&self, subject: &Subject<'_>) -> bool {
        let by = Some(self.script.name.clone());
        self.watch.mark(Mark { by, ..Mark::with(Point::Intercept, value(subject.args)) })
    }

    /// Whether it has something to say about this call.
    pub(super) fn concerns(&self, subject: &Subject<'_>) -> bool {
        self.script.tool.as_ref().is_none_or(|tool| tool == subject.spec.name)
    }
}

impl Interceptor<Reply, Arc<str>> for Judge {
    fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        if !self.mark(subject) || !self.concerns(subject) {
            return Interception::Continue;
        }
        match &self.script.says {
            Saying::Continue => Interception::Continue,
            Saying::Veto => Interception::Veto("vetoed".into()),
            Saying::Answer(answer) => Interception::Answer(Reply::new(answer.clone())),
            Saying::Fail => Interception::Failed("failed".into()),
            Saying::Panic => panics("an interceptor"),
            Saying::Hang => {
                self.time.advance(Duration::from_millis(LIMIT_MS.saturating_add(1)));
                Interception::Continue
            }
        }
    }
}
