//! What must hold for every policy and every call.

use callgate_core::context::{CallContext, Mode, Scopes, SignedConsent};
use callgate_core::json::Number;
use callgate_core::policy::{
    ArgCheck, ArgTest, ArgValue, ChannelPolicy, ChannelTable, ConsentGrant, Decision, Effect, GrantedArgs, PermittedBy,
    PolicyGate, RuleDef, RuleSet, Subject,
};
use callgate_core::tool::{ConfirmBy, ToolSpec};
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::fixture::{NOW, definition, digest, subject};

type Def = RuleDef<String, Vec<ArgTest<String>>>;

const SCOPES: &[&str] = &["s1", "s2", "s3"];
const ARGUMENTS: &[&str] = &[
    "{}",
    r#"{"n":1}"#,
    r#"{"n":5.0,"p":"/srv/x"}"#,
    r#"{"n":"5","p":"/etc/x"}"#,
    r#"{"n":null,"p":3}"#,
    r#"{"p":"/srv/x","n":9}"#,
];

/// A call as plain data, so that it can be changed in one place and judged again.
#[derive(Clone, Debug)]
struct Scene {
    channels: Vec<ChannelPolicy<'static>>,
    rules: Vec<Def>,
    provides: Vec<&'static str>,
    channel: &'static str,
    principal: Option<&'static str>,
    held: Vec<&'static str>,
    tool: &'static str,
    wanted: Vec<&'static str>,
    required: Vec<&'static str>,
    mutating: bool,
    confirm: ConfirmBy<'static>,
    planning: bool,
    arguments: &'static str,
    signed: bool,
    granted: bool,
}

impl Scene {
    /// Builds the call and hands it, with its gate, to `judge`.
    fn with<R>(&self, judge: impl FnOnce(&PolicyGate<'_>, &Subject<'_>) -> R) -> R {
        let (held, wanted, required, provides) =
            (self.held.join(" "), self.wanted.join(" "), self.required.join(" "), self.provides.join(" "));
        let mut spec = ToolSpec::new(self.tool, "").with_confirm(self.confirm).with_scopes(Scopes::new(&wanted));
        spec.requirements = Scopes::new(&required);
        spec.mutating = self.mutating;
        let grant = ConsentGrant {
            tool: self.tool,
            definition: definition(&spec),
            tenant: None,
            principal: "u1",
            session: None,
            granted_at: NOW,
            expires_at: NOW.saturating_add_millis(1),
            uses_left: None,
            arguments: GrantedArgs::Exactly(digest(self.arguments)),
            provenance: "",
        };
        let grants = [grant];
        let mut caller = CallContext::new(self.channel, "r1").with_scopes(Scopes::new(&held));
        caller.principal = self.principal;
        caller.mode = if self.planning { Mode::Plan } else { Mode::Execute };
        caller.signature =
            self.signed.then_some(SignedConsent { signer: "k", tool: self.tool, arguments: digest(self.arguments) });
        caller.grants = if self.granted { &grants } else { &[] };
        let gate = PolicyGate::new(ChannelTable::new(&self.channels)).providing(Scopes::new(&provides));
        judge(&gate, &subject(caller, &spec, self.arguments))
    }

    fn decide(&self) -> Decision<String> {
        self.with(|gate, subject| gate.decide_with(subject, &RuleSet::new(&self.rules)))
    }

    fn allowed(&self) -> bool {
        self.decide().is_allowed()
    }

    /// The decision, written down a second time as one sentence, over the same arguments read by another reader.
    fn expected(&self) -> bool {
        let of_name = || self.channels.iter().filter(|channel| channel.name == self.channel);
        let any = |flag: fn(&ChannelPolicy<'_>) -> bool| of_name().any(flag);
        let known = of_name().next().is_some();
        let somebody = self.principal.is_some_and(|principal| !principal.is_empty());
        let holds = |wanted: &str| self.held.contains(&"*") || self.held.contains(&wanted);

        let asked = self.confirm != ConfirmBy::Nobody
            || self.mutating && any(|channel| channel.require_confirmation_for_mutating);
        let consented = self.signed || self.granted && self.principal == Some("u1");
        let matching = |effect| self.rules.iter().filter(move |rule| rule.effect == effect && self.matches(rule));
        let held = || {
            matching(Effect::Allow)
                .filter(|rule| rule.scopes.as_ref().is_none_or(|scopes| scopes.split_whitespace().any(holds)))
        };

        let authenticated = somebody || known && !any(|channel| channel.require_auth);
        let consent = self.planning || consented || !asked || !any(|channel| channel.consent_required);
        let scopes = self.wanted.is_empty() || self.wanted.iter().any(|wanted| holds(wanted));
        let requirements = self.required.iter().all(|needed| self.provides.contains(needed));
        let undenied = matching(Effect::Deny).next().is_none();
        let permitted =
            held().next().is_some() || matching(Effect::Allow).next().is_none() && !any(|channel| channel.require_rule);
        let blocked = !known || any(|channel| channel.block_mutating) && !held().any(|rule| rule.overrides_block);
        authenticated && consent && scopes && requirements && undenied && permitted && !(self.mutating && blocked)
    }

    fn matches(&self, rule: &Def) -> bool {
        let is = |wanted: &Option<String>, given: Option<&str>| {
            wanted.as_ref().is_none_or(|wanted| Some(wanted.as_str()) == given)
        };
        let tool = rule.tool.as_ref().is_none_or(|pattern| match pattern.strip_suffix('*') {
            Some(start) => self.tool.starts_with(start),
            None => pattern == self.tool,
        });
        let arguments: serde_json::Value = serde_json::from_str(self.arguments).unwrap();
        let tests = rule.arguments.iter().all(|test| {
            let unclear = rule.effect == Effect::Deny;
            match (&test.check, &arguments[&test.key]) {
                (_, serde_json::Value::Null) => false,
                (ArgCheck::Min(Number::U64(least)), value) => value.as_f64().map_or(unclear, |is| is >= *least as f64),
                (ArgCheck::Prefix(prefix), value) => {
                    value.as_str().map_or(unclear, |is| is.starts_with(prefix.as_str()))
                }
                (ArgCheck::Equals(ArgValue::Number(Number::U64(wanted))), value) => {
                    value.as_f64().map_or(unclear, |is| is == *wanted as f64)
                }
                other => panic!("no such test is made: {other:?}"),
            }
        });
        is(&rule.channel, Some(self.channel))
            && is(&rule.principal, self.principal.filter(|principal| !principal.is_empty()))
            && rule.mutating.is_none_or(|mutating| mutating == self.mutating)
            && tool
            && tests
    }
}

fn channels() -> impl Strategy<Value = Vec<ChannelPolicy<'static>>> {
    let one = (select(&["a", "b"][..]), any::<[bool; 7]>()).prop_map(|(name, flags)| {
        let [require_auth, allow_all, block_mutating, require_rule, confirming, approver, consent_required] = flags;
        let mut channel = ChannelPolicy::new(name);
        channel.require_auth = require_auth;
        channel.allow_all = allow_all;
        channel.block_mutating = block_mutating;
        channel.require_rule = require_rule;
        channel.require_confirmation_for_mutating = confirming;
        channel.consent_required = consent_required;
        if approver { channel.confirmed_by_approver() } else { channel }
    });
    prop::collection::vec(one, 0..3)
}

fn arg_test() -> impl Strategy<Value = ArgTest<String>> {
    select(vec![
        ("n", ArgCheck::Min(Number::U64(5))),
        ("n", ArgCheck::Equals(ArgValue::Number(Number::U64(5)))),
        ("p", ArgCheck::Prefix("/srv/".to_owned())),
    ])
    .prop_map(|(key, check)| ArgTest { key: key.to_owned(), check, alternative: false })
}

fn rules() -> impl Strategy<Value = Vec<Def>> {
    let maybe = |texts: &'static [&'static str]| prop::option::weighted(0.3, select(texts).prop_map(str::to_owned));
    let one = (
        prop::bool::weighted(0.7),
        maybe(&["a", "b", "c"]),
        maybe(&["u1", "u2"]),
        maybe(&["fs.read", "fs.*", "*", "db"]),
        prop::option::weighted(0.3, any::<bool>()),
        prop::option::weighted(0.3, arg_test()),
        maybe(&["s1", "s1 s2", "", "*"]),
        any::<bool>(),
    )
        .prop_map(|(allows, channel, principal, tool, mutating, test, scopes, overrides_block)| {
            let effect = if allows { Effect::Allow } else { Effect::Deny };
            let mut rule = RuleDef::new(0, effect, test.into_iter().collect());
            (rule.channel, rule.principal, rule.tool, rule.mutating) = (channel, principal, tool, mutating);
            (rule.scopes, rule.overrides_block) = (scopes, overrides_block);
            rule
        });
    prop::collection::vec(one, 0..5).prop_map(|mut rules| {
        for (id, rule) in rules.iter_mut().enumerate() {
            rule.id = id as i64;
            rule.description = Some(format!("rule {id}"));
        }
        rules
    })
}

prop_compose! {
    fn scenes()(
        channels in channels(),
        rules in rules(),
        provides in subsequence(&["net", "disk"][..], 0..=2),
        channel in select(&["a", "a", "b", "c"][..]),
        principal in select(&[None, Some(""), Some("u1"), Some("u1"), Some("u2")][..]),
        held in subsequence(&["s1", "s2", "s3", "*"][..], 0..=4),
        tool in select(&["fs.read", "fs.write", "db"][..]),
        wanted in prop_oneof![2 => Just(Vec::new()), 1 => subsequence(SCOPES, 0..=2)],
        required in prop_oneof![3 => Just(Vec::new()), 1 => subsequence(&["net", "disk"][..], 0..=2)],
        mutating in any::<bool>(),
        confirm in select(&[ConfirmBy::Nobody, ConfirmBy::Caller, ConfirmBy::Approver { scope: "ok" }][..]),
        arguments in select(ARGUMENTS),
        [planning, signed, granted] in any::<[bool; 3]>(),
    ) -> Scene {
        Scene {
            channels, rules, provides, channel, principal, held, tool, wanted, required, mutating, confirm, planning, arguments,
            signed, granted,
        }
    }
}

/// A scene, and its rules and channels in another order, some of them twice.
fn shuffled() -> impl Strategy<Value = (Scene, Vec<Def>, Vec<ChannelPolicy<'static>>)> {
    (scenes(), 0usize..3, 0usize..3).prop_flat_map(|(scene, rules_again, channels_again)| {
        let mut rules = scene.rules.clone();
        rules.extend(scene.rules.iter().rev().take(rules_again).cloned());
        let mut channels = scene.channels.clone();
        channels.extend(scene.channels.iter().rev().take(channels_again));
        (Just(scene), Just(rules).prop_shuffle(), Just(channels).prop_shuffle())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// P1: no matching permit denies, any matching forbid denies.
    #[test]
    fn p1_the_gate_decides_as_the_sentence_does(scene in scenes()) {
        prop_assert_eq!(scene.allowed(), scene.expected(), "{:?}", scene.decide());
    }

    /// P1: the whole decision, its reason and its rule included.
    #[test]
    fn p1_order_and_duplicates_change_nothing((scene, rules, channels) in shuffled()) {
        let other = Scene { rules, channels, ..scene.clone() };
        prop_assert_eq!(scene.decide(), other.decide());
    }

    /// P8: what takes something from the caller or adds a forbid never opens anything.
    #[test]
    fn p8_no_restriction_opens_anything(scene in scenes(), which in any::<Index>(), deny in rules()) {
        let mut narrower = Vec::new();
        let mut narrow = |change: &dyn Fn(&mut Scene)| {
            let mut other = scene.clone();
            change(&mut other);
            narrower.push(other);
        };
        if !scene.held.is_empty() {
            narrow(&|scene| scene.held.truncate(scene.held.len() - 1));
            narrow(&|scene| scene.held.retain(|scope| scope != which.get(SCOPES)));
        }
        if !scene.provides.is_empty() {
            narrow(&|scene| scene.provides.truncate(scene.provides.len() - 1));
        }
        for (at, rule) in deny.iter().filter(|rule| rule.effect == Effect::Deny).enumerate() {
            narrow(&|scene| scene.rules.insert(which.index(scene.rules.len() + 1), Def { id: -1 - at as i64, ..rule.clone() }));
        }
        narrow(&|scene| scene.principal = None);
        narrow(&|scene| scene.signed = false);
        narrow(&|scene| scene.granted = false);
        narrow(&|scene| scene.planning = false);
        narrow(&|scene| scene.mutating = true);
        narrow(&|scene| scene.channels.iter_mut().for_each(|channel| channel.require_auth = true));
        narrow(&|scene| scene.channels.iter_mut().for_each(|channel| channel.block_mutating = true));
        narrow(&|scene| scene.channels.iter_mut().for_each(|channel| channel.require_rule = true));
        narrow(&|scene| scene.channels.iter_mut().for_each(|channel| channel.consent_required = true));
        narrow(&|scene| scene.channels.iter_mut().for_each(|channel| channel.allow_all = false));
        for other in narrower {
            // A rule that speaks of mutating tools, or of a principal, may well be about the changed call alone.
            let same_rules = scene.rules.iter().all(|rule| scene.matches(rule) == other.matches(rule));
            prop_assert!(scene.allowed() || !other.allowed() || !same_rules, "{:?}\n{:?}", scene, other);
        }
    }

    /// F2: a caller without scopes gets nothing that asks for one, and an empty set of anything permits nothing more.
    #[test]
    fn f2_empty_sets_never_widen(scene in scenes()) {
        let mut bare = scene.clone();
        (bare.held, bare.provides) = (Vec::new(), Vec::new());
        if bare.allowed() {
            prop_assert!(scene.wanted.is_empty() && scene.required.is_empty() && scene.allowed());
        }
        let mut unknown = scene.clone();
        unknown.channels.clear();
        let nobody = unknown.principal.is_none_or(str::is_empty);
        prop_assert!(!unknown.allowed() || !nobody && !unknown.mutating);
        prop_assert!(unknown.decide().unknown_channel());
    }

    /// What a permission says of itself is so.
    #[test]
    fn a_permission_names_a_rule_that_permits(scene in scenes()) {
        if let Decision::Allow(permission) = scene.decide() {
            if let PermittedBy::Rule(id) = permission.by {
                let rule = scene.rules.iter().find(|rule| rule.id == id).unwrap();
                prop_assert!(rule.effect == Effect::Allow && scene.matches(rule));
            }
            prop_assert!(!permission.consent_missing || scene.planning);
        }
    }
}
