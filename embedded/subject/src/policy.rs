//! The policy of a world, laid out for one decision after the other.

use callgate_core::fixed::Buffer;
use callgate_core::json::{Number, Value};
use callgate_core::policy::{
    ArgTest, ChannelPolicy, ChannelTable, Decision, Denial, PolicyGate, Reason, RuleDef, RuleFault, RuleSet, Subject,
};

use crate::Trouble::{self, Error, Unsupported};
use crate::event::join;
use crate::words::Words;
use crate::world::World;
use crate::{MOST, plain};

type Tests<'p> = heapless::Vec<ArgTest<&'p str>, 1>;
type Rules<'p> = heapless::Vec<RuleDef<&'p str, &'p [ArgTest<&'p str>]>, MOST>;

/// Whoever decides about calls.
pub(crate) struct Judge<'p> {
    gate: PolicyGate<'p>,
    rules: &'p Rules<'p>,
}

impl<'p> Judge<'p> {
    pub(crate) fn decide(&self, subject: &Subject<'_>) -> Decision<&'p str> {
        self.gate.decide_with(subject, &RuleSet::new(self.rules))
    }
}

/// The decision of a policy that does not answer.
pub(crate) const fn fault<'p>() -> Decision<&'p str> {
    Decision::Deny(Denial { reason: Reason::Fault(RuleFault::Unavailable), unknown_channel: false })
}

/// Shows the policy of `world` to `act`.
pub(crate) fn with<R>(world: &World<'_>, act: impl FnOnce(&Judge<'_>) -> R) -> Result<R, Trouble> {
    let mut channels = heapless::Vec::<_, MOST>::new();
    for value in world.words().list("channels") {
        channels.push(channel(value)?).map_err(|_| Unsupported("more channels than there is room for"))?;
    }
    let full = Unsupported("more rules than there is room for");
    let mut scopes = heapless::Vec::<Buffer<128>, MOST>::new();
    let mut tests = heapless::Vec::<Tests<'_>, MOST>::new();
    for value in world.rules() {
        let words = rule_words(value)?;
        let mut names = heapless::Vec::<&str, 8>::new();
        for scope in words.list("scopes") {
            names.push(plain(scope)?).map_err(|_| full)?;
        }
        scopes.push(join(names.iter().copied())?).map_err(|_| full)?;
        let mut test = Tests::new();
        if let Some(bound) = words.get("at_least") {
            let bound = Words::of(bound, &["field", "value"])?;
            let least = bound.number("value")?.unwrap_or(Number::U64(0));
            test.push(ArgTest::min(bound.name("field")?, least)).map_err(|_| full)?;
        }
        tests.push(test).map_err(|_| full)?;
    }
    let mut rules = Rules::new();
    for ((value, scopes), tests) in world.rules().zip(&scopes).zip(&tests) {
        rules.push(rule(rule_words(value)?, scopes, tests)?).map_err(|_| full)?;
    }
    let table = ChannelTable::new(&channels);
    table.check().map_err(|_| Unsupported("the channels can't be used"))?;
    RuleSet::new(&rules).check().map_err(|_| Unsupported("the rules can't be used"))?;
    Ok(act(&Judge { gate: PolicyGate::new(table), rules: &rules }))
}

fn channel(value: Value<'_>) -> Result<ChannelPolicy<'_>, Trouble> {
    let known = ["name", "require_auth", "block_mutating", "require_rule", "confirm_mutating", "confirm_by_approver"];
    let words = Words::of(value, &known)?;
    let mut policy = ChannelPolicy::new(words.name("name")?);
    policy.require_auth = words.yes("require_auth", true);
    policy.block_mutating = words.yes("block_mutating", false);
    policy.require_rule = words.yes("require_rule", false);
    policy.require_confirmation_for_mutating = words.yes("confirm_mutating", false);
    Ok(if words.yes("confirm_by_approver", false) { policy.confirmed_by_approver() } else { policy })
}

fn rule_words(value: Value<'_>) -> Result<Words<'_>, Trouble> {
    let known = ["id", "effect", "tool", "principal", "channel", "at_least", "scopes", "overrides_block"];
    Words::of(value, &known)
}

fn rule<'p>(
    words: Words<'p>,
    scopes: &'p Buffer<128>,
    tests: &'p Tests<'p>,
) -> Result<RuleDef<&'p str, &'p [ArgTest<&'p str>]>, Trouble> {
    let id = words.integer("id")?.ok_or(Error("a rule has no number"))?;
    let mut rule = match words.name("effect")? {
        "allow" => RuleDef::allow(id),
        "deny" => RuleDef::deny(id),
        _ => return Err(Error("a rule neither allows nor denies")),
    };
    rule.tool = words.text("tool")?;
    rule.principal = words.text("principal")?;
    rule.channel = words.text("channel")?;
    rule.scopes = words.get("scopes").map(|_| scopes.as_str());
    rule.overrides_block = words.yes("overrides_block", false);
    rule.arguments = tests;
    Ok(rule)
}
