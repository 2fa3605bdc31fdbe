//! Rules that the gate matches itself.

use callgate_core::context::{CallContext, Scopes};
use callgate_core::json::Number;
use callgate_core::policy::{
    ArgCheck, ArgTest, ArgValue, ChannelTable, Effect, NoRules, PolicyGate, RuleDef, RuleProblem, RuleProvider,
    RuleSet, Subject,
};
use callgate_core::tool::ToolSpec;

use crate::fixture::{refused, subject};

type Def = RuleDef<&'static str, &'static [ArgTest<&'static str>]>;

const GATE: PolicyGate<'static> = PolicyGate::new(ChannelTable::DEFAULTS);
const WRITE: ToolSpec<'static> = ToolSpec::new("fs.write", "Writes").mutating();
const READ: ToolSpec<'static> = ToolSpec::new("fs.read", "Reads");

fn caller() -> CallContext<'static> {
    let mut caller = CallContext::web("r1", Some("u1"), Scopes::new("s1 s2"));
    caller.tenant = Some("t1");
    caller
}

/// Whether `rule`, alone, is about this call.
fn matches(rule: Def, spec: &ToolSpec<'_>, arguments: &str) -> bool {
    RuleSet::new(&[rule]).matching(&subject(caller(), spec, arguments)).is_some()
}

#[test]
fn a_rule_is_about_the_calls_it_names() {
    for (rule, write, read) in [
        (Def::allow(1), true, true),
        (Def::allow(1).for_tools("fs.write"), true, false),
        (Def::allow(1).for_tools("fs.*"), true, true),
        (Def::allow(1).for_tools("*"), true, true),
        (Def::allow(1).for_tools("fs.w*"), true, false),
        (Def::allow(1).for_tools("FS.*"), false, false),
        (Def::allow(1).for_tools("fs"), false, false),
        (Def::allow(1).for_tools(""), false, false),
        (Def::allow(1).for_mutating(true), true, false),
        (Def::allow(1).for_mutating(false), false, true),
        (Def::allow(1).on_channel("web"), true, true),
        (Def::allow(1).on_channel("we"), false, false),
        (Def::allow(1).by_principal("u1"), true, true),
        (Def::allow(1).by_principal("u2"), false, false),
        (Def::allow(1).in_tenant("t1"), true, true),
        (Def::allow(1).in_tenant("t2"), false, false),
        (Def::allow(1).by_principal("u1").for_mutating(true).on_channel("mcp"), false, false),
    ] {
        assert_eq!(matches(rule, &WRITE, "{}"), write, "{rule:?}");
        assert_eq!(matches(rule, &READ, "{}"), read, "{rule:?}");
        let deny = Def { effect: Effect::Deny, ..rule };
        assert_eq!(matches(deny, &WRITE, "{}"), write, "{deny:?}");
    }
    let nobody = CallContext::new("telegram", "r1").with_principal("");
    let rules = [Def::allow(1).by_principal("")];
    assert!(RuleSet::new(&rules).matching(&subject(nobody, &READ, "{}")).is_none(), "nobody is not named by \"\"");
}

/// F1: a pattern that is none is taken against the caller.
#[test]
fn f1_a_malformed_pattern_denies_and_never_permits() {
    for pattern in ["f*s", "fs.**", "*.write", "**"] {
        assert!(!matches(Def::allow(1).for_tools(pattern), &WRITE, "{}"), "{pattern}");
        assert!(matches(Def::deny(1).for_tools(pattern), &WRITE, "{}"), "{pattern}");
    }
}

/// Arguments; whether an allow matches them; whether a deny does.
type Case = (&'static str, bool, bool);

#[test]
fn rules_look_at_the_arguments() {
    const N: &str = "n";
    let cases: [(&'static [ArgTest<&'static str>], &[Case]); 10] = [
        (
            const { &[ArgTest::min(N, Number::U64(5)), ArgTest::max(N, Number::F64(7.5))] },
            &[
                (r#"{"n":5}"#, true, true),
                (r#"{"n":7.5}"#, true, true),
                (r#"{"n":5.0}"#, true, true),
                (r#"{"n":4.9}"#, false, false),
                (r#"{"n":-9}"#, false, false),
                (r#"{"n":8}"#, false, false),
                (r#"{"n":18446744073709551615}"#, false, false),
                // Of another kind: nobody can tell, so an allow is not given and a deny is.
                (r#"{"n":"6"}"#, false, true),
                (r#"{"n":[6]}"#, false, true),
                (r#"{"n":null}"#, false, false),
                (r"{}", false, false),
            ],
        ),
        (
            const { &[ArgTest::number(N, Number::U64(9_007_199_254_740_993))] },
            &[(r#"{"n":9007199254740993}"#, true, true), (r#"{"n":9007199254740992}"#, false, false)],
        ),
        (
            const { &[ArgTest::text(N, "a\"b")] },
            &[
                (r#"{"n":"a\"b"}"#, true, true),
                (r#"{"n":"\u0061\u0022b"}"#, true, true),
                (r#"{"n":"A\"b"}"#, false, false),
            ],
        ),
        (
            const { &[ArgTest::bool(N, true)] },
            &[(r#"{"n":true}"#, true, true), (r#"{"n":false}"#, false, false), (r#"{"n":"true"}"#, false, true)],
        ),
        (
            const { &[ArgTest::prefix(N, "/srv/")] },
            &[
                (r#"{"n":"/srv/x"}"#, true, true),
                (r#"{"n":"\/srv\/x"}"#, true, true),
                (r#"{"n":"/srv"}"#, false, false),
                (r#"{"n":"/etc/x"}"#, false, false),
                (r#"{"n":"/x/srv/y"}"#, false, false),
                (r#"{"n":"\/etc\/x"}"#, false, false),
                (r#"{"n":"\/srv"}"#, false, false),
                (r#"{"n":7}"#, false, true),
                (r#"{"n":["/srv/x"]}"#, false, true),
            ],
        ),
        (
            const { &[ArgTest::prefix(N, "")] },
            // F2: an empty prefix is no permission.
            &[(r#"{"n":"x"}"#, false, true), (r"{}", false, false)],
        ),
        (
            const { &[ArgTest { key: N, check: ArgCheck::Equals(ArgValue::Null), alternative: false }] },
            &[(r#"{"n":null}"#, true, true), (r#"{"n":0}"#, false, false), (r"{}", false, false)],
        ),
        (const { &[ArgTest::present(N)] }, &[(r#"{"n":null}"#, true, true), (r"{}", false, false)]),
        (const { &[ArgTest::absent(N)] }, &[(r#"{"n":null}"#, false, false), (r"{}", true, true)]),
        (const { &[ArgTest::min(N, Number::F64(f64::NAN))] }, &[(r#"{"n":5}"#, false, true)]),
    ];
    for (tests, calls) in cases {
        for (arguments, allow, deny) in calls {
            assert_eq!(
                matches(Def::allow(1).with_arguments(tests), &WRITE, arguments),
                *allow,
                "allow {tests:?} {arguments}"
            );
            assert_eq!(
                matches(Def::deny(1).with_arguments(tests), &WRITE, arguments),
                *deny,
                "deny {tests:?} {arguments}"
            );
        }
    }
}

#[test]
fn alternatives_hold_when_one_of_them_does() {
    // (a or b) and (c or d), where a leading "or" has nothing before it.
    const TESTS: &[ArgTest<&str>] = &[
        ArgTest::text("unit", "C").or(),
        ArgTest::text("unit", "F").or(),
        ArgTest::max("n", Number::U64(5)),
        ArgTest::bool("big", true).or(),
    ];
    for (arguments, allow) in [
        (r#"{"unit":"C","n":5}"#, true),
        (r#"{"unit":"F","n":5}"#, true),
        (r#"{"unit":"K","n":5}"#, false),
        (r#"{"unit":"F","n":6}"#, false),
        (r#"{"unit":"F","n":6,"big":true}"#, true),
        (r#"{"unit":"F","big":true}"#, true),
        (r#"{"unit":"F","n":"6","big":true}"#, true),
        (r#"{"unit":"F","n":"6","big":false}"#, false),
        (r#"{"n":5,"big":true}"#, false),
    ] {
        assert_eq!(matches(Def::allow(1).with_arguments(TESTS), &WRITE, arguments), allow, "{arguments}");
    }
    // An open test keeps a deny from being decided in the caller's favour, a failed one does not.
    assert!(matches(Def::deny(1).with_arguments(TESTS), &WRITE, r#"{"unit":"F","n":"6","big":false}"#));
    assert!(!matches(Def::deny(1).with_arguments(TESTS), &WRITE, r#"{"unit":"K","n":"6","big":false}"#));
}

#[test]
fn p1_any_deny_that_matches_wins() {
    let rules = [
        Def::allow(1).overriding_block(),
        Def::allow(2).for_tools("fs.write"),
        Def::deny(9).for_tools("fs.*").described("no files"),
        Def::deny(8).for_tools("db.*"),
    ];
    let set = RuleSet::new(&rules);
    assert_eq!(set.matching(&subject(caller(), &WRITE, "{}")).map(|rule| rule.id), Some(9));
    let (denial, sentence) = refused(GATE.decide_with(&subject(caller(), &WRITE, "{}"), &set), caller(), &WRITE);
    assert_eq!((denial.rule(), sentence.as_str()), (Some(9), "no files"));
}

#[test]
fn p1_of_several_allows_the_one_that_is_held_counts() {
    let picks = |rules: &[Def]| RuleSet::new(rules).matching(&subject(caller(), &READ, "{}")).map(|rule| rule.id);
    let missing = Def::allow(1).needing("s9");
    let held = Def::allow(2).needing("s2 s9");
    let later = Def::allow(3);
    let overriding = Def::allow(4).overriding_block();
    assert_eq!(picks(&[missing, later, held]), Some(2));
    assert_eq!(picks(&[held, missing, later, overriding]), Some(4));
    assert_eq!(picks(&[missing]), Some(1));
    assert_eq!(picks(&[Def::allow(5).needing("s8"), missing]), Some(1));
    let rules = [missing];
    let (denial, sentence) =
        refused(GATE.decide_with(&subject(caller(), &READ, "{}"), &RuleSet::new(&rules)), caller(), &READ);
    assert_eq!(denial.rule(), Some(1));
    assert!(sentence.contains("#1") && sentence.contains("s9") && sentence.contains("s1, s2"), "{sentence}");
}

/// F2: a list of scopes that is there and empty is held by nobody.
#[test]
fn f2_an_allow_with_an_empty_list_of_scopes_permits_nobody() {
    for scopes in ["", "   "] {
        let rules = [Def::allow(1).needing(scopes)];
        let all = caller().with_scopes(Scopes::ALL);
        assert!(!GATE.decide_with(&subject(all, &READ, "{}"), &RuleSet::new(&rules)).is_allowed());
    }
}

#[test]
fn f7_a_set_of_rules_says_which_of_them_is_wrong() {
    const NOT_A_NUMBER: &[ArgTest<&str>] = &[ArgTest::present("x"), ArgTest::max("n", Number::F64(f64::INFINITY))];
    const NO_PREFIX: &[ArgTest<&str>] = &[ArgTest::prefix("n", "")];
    for (rule, problem) in [
        (Def::allow(1), RuleProblem::Twice),
        (Def::allow(2).in_tenant("a b"), RuleProblem::Tenant),
        (Def::allow(2).on_channel(""), RuleProblem::Channel),
        (Def::allow(2).by_principal("a\nb"), RuleProblem::Principal),
        (Def::allow(2).for_tools("fs.**"), RuleProblem::Tool),
        (Def::allow(2).for_tools(""), RuleProblem::Tool),
        (Def::allow(2).for_tools("a b"), RuleProblem::Tool),
        (Def::allow(2).needing(" "), RuleProblem::Scopes),
        (Def::allow(2).needing("a,b"), RuleProblem::Scopes),
        (Def::allow(2).with_arguments(NOT_A_NUMBER), RuleProblem::Argument { test: 1 }),
        (Def::allow(2).with_arguments(NO_PREFIX), RuleProblem::Argument { test: 0 }),
        (Def::deny(2).needing("s1"), RuleProblem::LenientDeny),
        (Def::deny(2).overriding_block(), RuleProblem::LenientDeny),
    ] {
        let rules = [Def::deny(1).for_tools("*").described("x"), rule];
        let error = RuleSet::new(&rules).check().unwrap_err();
        assert_eq!((error.index, error.id, error.problem), (1, rule.id, problem));
        assert!(error.to_string().starts_with(&format!("rule #{}: ", rule.id)), "{error}");
    }
    assert_eq!(RuleSet::<&str, &[ArgTest<&str>]>::new(&[]).check(), Ok(()));
}

/// Rules that a host has read from a file keep their texts themselves.
#[test]
fn rules_can_own_their_texts() {
    use std::sync::Arc;
    let text = |text: &str| Some(Arc::<str>::from(text));
    let tests =
        vec![ArgTest { key: Arc::<str>::from("path"), check: ArgCheck::Prefix("/etc".into()), alternative: false }];
    let mut deny = RuleDef::new(1, Effect::Deny, tests);
    (deny.tool, deny.description) = (text("fs.*"), text("not there"));
    let rules = vec![deny];
    let set = RuleSet::new(&rules);
    assert_eq!(set.check(), Ok(()));
    let found = set.find(&subject(caller(), &WRITE, r#"{"path":"/etc/passwd"}"#)).unwrap().unwrap();
    assert_eq!(found.description.as_deref(), Some("not there"));
    assert!(Arc::ptr_eq(found.description.as_ref().unwrap(), rules[0].description.as_ref().unwrap()));
    assert_eq!(set.find(&subject(caller(), &WRITE, r#"{"path":"/srv"}"#)), Ok(None));
}

/// P6: whatever is changed in a policy changes its digest.
#[test]
fn p6_every_part_of_a_policy_is_in_its_digest() {
    use callgate_core::policy::{By, ChannelPolicy};
    const TESTS: &[&[ArgTest<&str>]] = &[
        &[ArgTest::present("n")],
        &[ArgTest::absent("n")],
        &[ArgTest::text("n", "1")],
        &[ArgTest::prefix("n", "1")],
        &[ArgTest::number("n", Number::U64(1))],
        &[ArgTest::number("n", Number::F64(1.0))],
        &[ArgTest::min("n", Number::U64(1))],
        &[ArgTest::max("n", Number::U64(1))],
        &[ArgTest::bool("n", true)],
        &[ArgTest::bool("n", false)],
        &[ArgTest { key: "n", check: ArgCheck::Equals(ArgValue::Null), alternative: false }],
        &[ArgTest::present("n"), ArgTest::present("m")],
        &[ArgTest::present("n"), ArgTest::present("m").or()],
    ];
    let rule = Def::allow(1);
    let mut rules = vec![
        rule,
        Def::deny(1),
        Def::allow(-1),
        rule.in_tenant("x"),
        rule.on_channel("x"),
        rule.by_principal("x"),
        rule.for_tools("x"),
        rule.needing("x"),
        rule.described("x"),
        rule.for_mutating(true),
        rule.for_mutating(false),
        rule.overriding_block(),
    ];
    rules.extend(TESTS.iter().map(|tests| rule.with_arguments(tests)));
    let mut seen = std::collections::HashSet::new();
    assert!(seen.insert(RuleSet::<&str, &[ArgTest<&str>]>::new(&[]).digest()));
    for changed in &rules {
        assert!(seen.insert(RuleSet::new(&[*changed]).digest()), "{changed:?}");
    }
    assert!(seen.insert(RuleSet::new(&rules).digest()));

    let channel = ChannelPolicy::new("api");
    let channels = [
        channel,
        ChannelPolicy::new("web"),
        channel.without_auth(),
        channel.allowing_all(),
        channel.blocking_mutating(),
        channel.requiring_rule(),
        channel.confirming_mutating(),
        channel.confirmed_by_approver(),
        channel.requiring_consent(),
    ];
    assert_eq!(channel.confirm_by, By::Caller);
    for changed in channels {
        assert!(seen.insert(PolicyGate::new(ChannelTable::new(&[changed])).digest()), "{changed:?}");
        assert!(seen.insert(PolicyGate::new(ChannelTable::over_defaults(&[changed])).digest()), "{changed:?}");
    }
    assert!(seen.insert(PolicyGate::new(ChannelTable::new(&channels)).digest()));
    assert!(seen.insert(GATE.digest()) && seen.insert(GATE.providing(Scopes::new("network")).digest()));
}

/// P6, J7: a digest that was recorded means the same rules later. Made by another implementation of the encoding (Python's hashlib).
#[test]
fn p6_golden_vector_of_rules() {
    let rules = [
        Def::allow(7).in_tenant("t1").for_tools("fs.*").for_mutating(false),
        Def::deny(-1).for_mutating(true),
        Def::allow(8).needing("a b").overriding_block(),
    ];
    let digest = RuleSet::new(&rules).digest().to_string();
    assert_eq!(digest, "0d37f4d2f4dff742d3b137c5964a82a0c416a3a2c9816bf9ef6676a6b92750f5");
}

/// Rules are asked through a reference as they are themselves.
#[test]
fn f1_rules_behind_a_reference_are_the_rules() {
    fn find<P: RuleProvider>(rules: &P, subject: &Subject<'_>) -> Option<i64> {
        <&P as RuleProvider>::find(&rules, subject).expect("they can be looked up").map(|rule| rule.id)
    }
    let rules = [Def::deny(3)];
    assert_eq!(find(&RuleSet::new(&rules), &subject(caller(), &READ, "{}")), Some(3));
    assert_eq!(find(&NoRules, &subject(caller(), &READ, "{}")), None);
}

/// P1: a channel that is there twice asks for all that either of the two asks for, in whatever order.
#[test]
fn p1_a_channel_that_is_there_twice_is_the_stricter_of_both() {
    use callgate_core::policy::ChannelPolicy;
    let open = ChannelPolicy::new("api").without_auth().allowing_all();
    for (strict, expected) in [
        (ChannelPolicy { require_auth: true, ..open }, ChannelPolicy { require_auth: true, ..open }),
        (ChannelPolicy { allow_all: false, ..open }, ChannelPolicy { allow_all: false, ..open }),
        (open.blocking_mutating(), open.blocking_mutating()),
        (open.requiring_rule(), open.requiring_rule()),
        (open.confirming_mutating(), open.confirming_mutating()),
        (open.confirmed_by_approver(), open.confirmed_by_approver()),
        (open.requiring_consent(), open.requiring_consent()),
    ] {
        for both in [[open, strict], [strict, open], [strict, strict]] {
            assert_eq!(ChannelTable::new(&both).get("api").policy, expected, "{strict:?}");
        }
        assert_eq!(ChannelTable::new(&[open, open]).get("api").policy, open);
    }
}
