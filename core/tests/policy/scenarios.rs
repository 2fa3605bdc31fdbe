//! Channels, scopes and denials, one scenario each.

use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::policy::{
    ChannelError, ChannelPolicy, ChannelTable, Check, Decision, Effect, NoRules, PermittedBy, Phase, PolicyGate,
    Reason, Rule, RuleDef, RuleFault, RuleProvider, RuleSet, Subject,
};
use callgate_core::tool::ToolSpec;

use crate::fixture::{decide, refused, subject};

const DEFAULT: PolicyGate<'static> = PolicyGate::new(ChannelTable::DEFAULTS);

const READ: ToolSpec<'static> = ToolSpec::new("notes.read", "Reads notes");
const WRITE: ToolSpec<'static> = ToolSpec::new("notes.write", "Writes a note").mutating();

fn needing(scopes: &'static str) -> ToolSpec<'static> {
    ToolSpec::new("admin_action", "Does something").with_scopes(Scopes::new(scopes))
}

fn web(scopes: &'static str) -> CallContext<'static> {
    CallContext::web("r1", Some("u1"), Scopes::new(scopes))
}

/// One call and what becomes of it: allowed, or refused by a check with these words in its sentence.
struct Case {
    what: &'static str,
    caller: CallContext<'static>,
    spec: ToolSpec<'static>,
    refusal: Option<(Check, &'static [&'static str])>,
}

#[test]
fn the_default_channels_decide_as_documented() {
    let chat = |scopes| CallContext::telegram("r1", "u1").with_scopes(Scopes::new(scopes));
    let case = |what, caller, spec, refusal| Case { what, caller, spec, refusal };
    let cases = [
        case("cli holds every scope", CallContext::cli("r1"), needing("admin:write"), None),
        case("tui too", CallContext::tui("r1"), needing("admin:write"), None),
        case("cli may write", CallContext::cli("r1"), WRITE, None),
        case(
            "nobody is invented for an mcp client",
            CallContext::mcp("r1", None, Scopes::ALL),
            READ,
            Some((Check::RequireAuth, &["channel 'mcp'", "require_auth", "none provided"])),
        ),
        case(
            "an mcp client without scopes",
            CallContext::mcp("r1", Some("u1"), Scopes::NONE),
            needing("admin:write"),
            Some((Check::Scopes, &["Missing required scope", "admin_action", "admin:write", "context has: (none)"])),
        ),
        case(
            "an mcp client with its scope",
            CallContext::mcp("r1", Some("u1"), Scopes::new("admin:write")),
            needing("admin:write"),
            None,
        ),
        case("a child process", CallContext::stdio("r1"), needing("anything"), None),
        case("a chat with its scope", chat("notes:read"), needing("notes:read"), None),
        case(
            "a chat without it",
            chat("notes:read"),
            needing("admin:write"),
            Some((Check::Scopes, &["Missing required scope", "admin_action", "admin:write", "notes:read"])),
        ),
        case("no scope asked, none held", chat(""), READ, None),
        case("the wildcard", web("*"), needing("admin:super:secret"), None),
        case("any of several", web("users:read"), needing("users:read admin:read"), None),
        case(
            "a pattern is no wildcard",
            web("users:*"),
            needing("users:read"),
            Some((Check::Scopes, &["context has: users:*"])),
        ),
        case("0 is a principal", CallContext::web("r1", Some("0"), Scopes::NONE), READ, None),
        case(
            "nobody on the web",
            CallContext::web("r1", None, Scopes::NONE),
            READ,
            Some((Check::RequireAuth, &["channel 'web'", "require_auth"])),
        ),
        case(
            "an empty principal is nobody",
            CallContext::web("r1", Some(""), Scopes::NONE),
            READ,
            Some((Check::RequireAuth, &["require_auth"])),
        ),
        case(
            "nobody on an unknown channel",
            CallContext::new("ghost", "r1"),
            READ,
            Some((Check::RequireAuth, &["channel 'ghost'", "require_auth"])),
        ),
        case("somebody reads on an unknown channel", CallContext::new("ghost", "r1").with_principal("u1"), READ, None),
        case(
            "nobody writes there",
            CallContext::new("ghost", "r1").with_principal("u1").with_scopes(Scopes::ALL),
            WRITE,
            Some((Check::UnknownChannel, &["notes.write", "channel 'ghost'", "unknown_channel"])),
        ),
        case("names are exact", CallContext::new("CLI", "r1"), READ, Some((Check::RequireAuth, &["channel 'CLI'"]))),
    ];
    for Case { what, caller, spec, refusal } in cases {
        let decision = decide(&DEFAULT, &NoRules, caller, &spec);
        match refusal {
            None => assert!(decision.is_allowed(), "{what}: {decision:?}"),
            Some((check, words)) => {
                let (denial, sentence) = refused(decision, caller, &spec);
                assert_eq!(denial.check(), check, "{what}: {sentence}");
                for word in words {
                    assert!(sentence.contains(word), "{what}: no {word:?} in {sentence:?}");
                }
            }
        }
    }
}

#[test]
fn sentences_keep_their_wording() {
    let caller = CallContext::mcp("r1", None, Scopes::NONE);
    let (denial, sentence) = refused(decide(&DEFAULT, &NoRules, caller, &READ), caller, &READ);
    assert_eq!(sentence, "channel 'mcp' requires an authenticated principal (require_auth) — none provided.");
    assert!(denial.is_unauthenticated());

    let (caller, spec) = (web("x y"), needing("a b"));
    let (denial, sentence) = refused(decide(&DEFAULT, &NoRules, caller, &spec), caller, &spec);
    assert_eq!(sentence, "Missing required scope for tool 'admin_action'. Need one of: a, b — context has: x, y.");
    assert!(!denial.is_unauthenticated());
}

#[test]
fn a_blocking_channel_names_tool_and_flag() {
    let channels = [ChannelPolicy::new("api").blocking_mutating()];
    let gate = PolicyGate::new(ChannelTable::over_defaults(&channels));
    let caller = CallContext::new("api", "r1").with_principal("u1").with_scopes(Scopes::ALL);
    let (denial, sentence) = refused(decide(&gate, &NoRules, caller, &WRITE), caller, &WRITE);
    assert_eq!(denial.check(), Check::BlockMutating);
    assert_eq!(sentence, "Mutating tool 'notes.write' is blocked on channel 'api' (block_mutating policy).");
    assert!(decide(&gate, &NoRules, caller, &READ).is_allowed());
}

#[test]
fn an_unknown_channel_is_flagged_whatever_is_decided() {
    let ghost = CallContext::new("ghost", "r1");
    assert!(decide(&DEFAULT, &NoRules, ghost, &READ).unknown_channel());
    assert!(decide(&DEFAULT, &NoRules, ghost.with_principal("u1"), &READ).unknown_channel());
    assert!(!decide(&DEFAULT, &NoRules, web(""), &READ).unknown_channel());
    assert!(!decide(&DEFAULT, &NoRules, CallContext::web("r1", None, Scopes::NONE), &READ).unknown_channel());
}

#[test]
fn f2_an_empty_table_knows_no_channel() {
    let gate = PolicyGate::new(ChannelTable::new(&[]));
    let decision = decide(&gate, &NoRules, CallContext::cli("r1"), &WRITE);
    assert!(decision.unknown_channel() && !decision.is_allowed());
    assert_eq!(PolicyGate::default(), gate);
}

#[test]
fn a_channel_of_the_host_replaces_the_default_of_its_name() {
    let channels = [ChannelPolicy::new("cli").requiring_consent()];
    let table = ChannelTable::over_defaults(&channels);
    assert!(!table.get("cli").policy.allow_all && table.get("cli").policy.require_auth);
    assert!(table.get("tui").policy.allow_all);
    assert_eq!(table.iter().filter(|channel| channel.name == "cli").count(), 1);
    assert_eq!(table.iter().count(), ChannelTable::DEFAULTS.iter().count());
}

#[test]
fn p1_a_channel_that_is_there_twice_is_as_strict_as_both() {
    let open = ChannelPolicy::new("api").without_auth().allowing_all();
    let strict = ChannelPolicy::new("api").blocking_mutating().requiring_rule().confirmed_by_approver();
    let (one, other) = ([open, strict], [strict, open, open]);
    let both = ChannelTable::new(&one).get("api");
    assert_eq!(both, ChannelTable::new(&other).get("api"));
    assert_eq!(both.policy, strict);
    assert_eq!(ChannelTable::new(&one).check(), Err(ChannelError::Twice { index: 1 }));
    assert!(ChannelTable::new(&[ChannelPolicy::new("we b")]).check().is_err());
    assert_eq!(ChannelTable::DEFAULTS.check(), Ok(()));
}

#[test]
fn a_new_channel_opens_nothing_by_itself() {
    let channels = [ChannelPolicy::new("api")];
    let gate = PolicyGate::new(ChannelTable::new(&channels));
    assert!(!decide(&gate, &NoRules, CallContext::new("api", "r1").with_scopes(Scopes::ALL), &READ).is_allowed());
}

/// What a tool requires must be there, all of it; a host that says nothing provides nothing.
#[test]
fn f2_requirements_are_met_by_what_the_host_declares() {
    let mut spec = READ;
    spec.requirements = Scopes::new("network disk");
    for (provides, missing) in [("", Some("network")), ("network", Some("disk")), ("disk network", None), ("*", None)] {
        let gate = DEFAULT.providing(Scopes::new(provides));
        let decision = decide(&gate, &NoRules, web("*"), &spec);
        match missing {
            None => assert!(decision.is_allowed(), "{provides}"),
            Some(missing) => {
                let (denial, sentence) = refused(decision, web("*"), &spec);
                assert_eq!(denial.check(), Check::Requirements);
                assert_eq!(
                    sentence,
                    format!("Tool 'notes.read' requires '{missing}', which this host does not provide (requirements).")
                );
            }
        }
    }
}

/// A provider that answers with one thing.
struct Answer(Result<Option<Rule<&'static str>>, RuleFault>);

impl RuleProvider for Answer {
    type Text = &'static str;

    fn find(&self, _: &Subject<'_>) -> Result<Option<Rule<&'static str>>, RuleFault> {
        self.0
    }
}

#[test]
fn a_rule_asks_for_its_scopes_and_names_itself() {
    let rule = Answer(Ok(Some(Rule { scopes: Some("admin:write"), ..Rule::new(7, Effect::Allow) })));
    let caller = web("user:read");
    let (denial, sentence) = refused(decide(&DEFAULT, &rule, caller, &READ), caller, &READ);
    assert_eq!((denial.check(), denial.rule()), (Check::Rule, Some(7)));
    assert_eq!(
        sentence,
        "Policy rule #7 for tool 'notes.read' requires one of these scopes: admin:write — context has: user:read."
    );
    let Decision::Allow(permission) = decide(&DEFAULT, &rule, web("admin:write"), &READ) else { panic!("it is held") };
    assert_eq!((permission.by, permission.rule()), (PermittedBy::Rule(7), Some(7)));
}

#[test]
fn a_deny_speaks_with_its_description_or_names_itself() {
    let deny = |description| Answer(Ok(Some(Rule { description, ..Rule::new(9, Effect::Deny) })));
    let said =
        |rule: &Answer, caller: CallContext<'static>| refused(decide(&DEFAULT, rule, caller, &READ), caller, &READ).1;
    let bare = "Denied by policy rule #9 for tool 'notes.read' on channel 'web' (principal: u1).";
    assert_eq!(said(&deny(Some("not on sundays")), web("*")), "not on sundays");
    assert_eq!(said(&deny(None), web("*")), bare);
    assert_eq!(said(&deny(Some("")), web("*")), bare);
    let chat = CallContext::new("telegram", "r1");
    assert!(said(&deny(None), chat).ends_with("on channel 'telegram' (principal: (none))."));
}

#[test]
fn f1_a_provider_that_fails_denies() {
    for fault in [RuleFault::Unavailable, RuleFault::TimedOut, RuleFault::Invalid, RuleFault::Panicked] {
        let (denial, sentence) = refused(
            decide(&DEFAULT, &Answer(Err(fault)), CallContext::cli("r1"), &READ),
            CallContext::cli("r1"),
            &READ,
        );
        assert_eq!((denial.check(), denial.reason), (Check::PolicyFault, Reason::Fault(fault)));
        assert!(sentence.contains(&fault.to_string()), "{sentence}");
    }
    // What is no effect is no permission: a store that holds it answers with a fault.
    assert_eq!(Effect::parse("ALLOW"), None);
    assert_eq!(Effect::parse("allow"), Some(Effect::Allow));
}

/// O1: whatever permits there are, what forbids wins.
#[test]
fn p1_a_permit_lifts_no_block_unless_it_says_so() {
    let channels = [ChannelPolicy::new("api").allowing_all().blocking_mutating()];
    let gate = PolicyGate::new(ChannelTable::new(&channels));
    let caller = CallContext::new("api", "r1").with_principal("u1").with_scopes(Scopes::ALL);
    let allow = Rule::new(1, Effect::Allow);
    let blocked = |rule: Option<Rule<&'static str>>, caller| {
        let (denial, _) = refused(decide(&gate, &Answer(Ok(rule)), caller, &WRITE), caller, &WRITE);
        denial.check()
    };
    assert_eq!(blocked(None, caller), Check::BlockMutating, "allow_all does not beat it");
    assert_eq!(blocked(Some(allow), caller), Check::BlockMutating, "an allow does not beat it");
    let overriding = Rule { overrides_block: true, ..allow };
    assert!(decide(&gate, &Answer(Ok(Some(overriding))), caller, &WRITE).is_allowed());
    let ghost = CallContext::new("ghost", "r1").with_principal("u1").with_scopes(Scopes::ALL);
    assert_eq!(blocked(Some(overriding), ghost), Check::UnknownChannel, "no rule makes a channel known");
}

#[test]
fn p1_without_a_permit_a_channel_that_asks_for_one_denies() {
    let channels = [ChannelPolicy::new("api").requiring_rule().allowing_all()];
    let gate = PolicyGate::new(ChannelTable::new(&channels));
    let caller = CallContext::new("api", "r1").with_principal("u1");
    let (denial, sentence) = refused(decide(&gate, &NoRules, caller, &READ), caller, &READ);
    assert_eq!((denial.check(), denial.reason), (Check::Rule, Reason::NoRule));
    assert!(sentence.contains("require_rule"));
    let rules = [RuleDef::allow(3).for_tools("notes.*")];
    assert!(decide(&gate, &RuleSet::new(&rules), caller, &READ).is_allowed());
}

#[test]
fn the_record_can_tell_what_permitted_a_call() {
    let by = |caller| match decide(&DEFAULT, &NoRules, caller, &READ) {
        Decision::Allow(permission) => permission.by,
        Decision::Deny(denial) => panic!("{denial:?}"),
    };
    assert_eq!(by(CallContext::cli("r1")), PermittedBy::AllowAll);
    assert_eq!(by(web("")), PermittedBy::Channel);
}

#[test]
fn checks_run_in_their_order() {
    let channels =
        [ChannelPolicy::new("api").blocking_mutating().requiring_consent().requiring_rule().confirming_mutating()];
    let gate = PolicyGate::new(ChannelTable::new(&channels));
    let mut spec = WRITE.with_scopes(Scopes::new("s"));
    spec.requirements = Scopes::new("network");
    let deny = Answer(Ok(Some(Rule::new(1, Effect::Deny))));
    let nobody = CallContext::new("api", "r1");
    let somebody = nobody.with_principal("u1");
    let check = |gate: &PolicyGate<'_>, rule: &Answer, caller| {
        refused(decide(gate, rule, caller, &spec), caller, &spec).0.check()
    };
    assert_eq!(check(&gate, &deny, nobody), Check::RequireAuth);
    assert_eq!(check(&gate, &deny, somebody), Check::Consent);
    // A plan runs nothing, so it is told what else would keep the call from running.
    let planning = somebody.with_mode(Mode::Plan);
    assert_eq!(check(&gate, &deny, planning), Check::Scopes);
    let scoped = planning.with_scopes(Scopes::new("s"));
    assert_eq!(check(&gate, &deny, scoped), Check::Requirements);
    let gate = gate.providing(Scopes::new("network"));
    assert_eq!(check(&gate, &deny, scoped), Check::Rule);
    assert_eq!(check(&gate, &Answer(Ok(Some(Rule::new(2, Effect::Allow)))), scoped), Check::BlockMutating);
}

/// What a host does that has to wait for its rules gives the same decision as one that has them at hand.
#[test]
fn o4_two_phases_decide_as_one() {
    for rule in [None, Some(Rule::new(1, Effect::Allow)), Some(Rule::new(2, Effect::Deny))] {
        for caller in [CallContext::cli("r1"), CallContext::web("r1", None, Scopes::NONE), web("*")] {
            let subject = subject(caller, &WRITE, "{}");
            let at_once = DEFAULT.decide_with(&subject, &Answer(Ok(rule)));
            let later = match DEFAULT.before_rules(&subject) {
                Phase::Denied(denial) => Decision::Deny(denial),
                Phase::NeedsRule(pending) => pending.with_rule(Ok(rule)),
            };
            assert_eq!(at_once, later);
            if rule.is_none() {
                assert_eq!(at_once, DEFAULT.decide(&subject));
            }
        }
    }
}
