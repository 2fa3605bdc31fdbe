//! Channels and rules of a configuration, as the gate takes them.

use std::sync::Arc;

use callgate_core::policy::{Rule, RuleFault, RuleProvider, RuleSet, Subject};
use callgate_std::policy::{ChannelPolicies, PolicyError};

use crate::config;
use crate::config::Config;

/// The policy of a configuration.
pub(super) fn policy(config: &Config) -> Result<ChannelPolicies, PolicyError> {
    RuleSet::new(&config.rules).check().map_err(|error| PolicyError::Rule(error.to_string()))?;
    let builder = config
        .channels
        .values()
        .fold(ChannelPolicies::builder(), |builder, channel| builder.channel(&channel.name, channel.policy()));
    let builder = match config.rules.as_slice() {
        [] => builder,
        rules => builder.rule_provider(Rules(rules.to_vec())),
    };
    builder.build()
}

/// The rules of a file. They are kept and matched as they were read: turning them into another form could lose a condition.
struct Rules(Vec<config::Rule>);

impl RuleProvider for Rules {
    type Text = Arc<str>;

    fn find(&self, subject: &Subject<'_>) -> Result<Option<Rule<Arc<str>>>, RuleFault> {
        let shared = |text: &String| Arc::from(text.as_str());
        Ok(RuleSet::new(&self.0).matching(subject).map(|rule| Rule {
            id: rule.id,
            effect: rule.effect,
            scopes: rule.scopes.as_ref().map(shared),
            description: rule.description.as_ref().map(shared),
            overrides_block: rule.overrides_block,
        }))
    }
}
