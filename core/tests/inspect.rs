//! An inspection says of each step what it depends on, and of no other one.
#![cfg(test)]

use std::collections::BTreeSet;

use callgate_core::args::Args;
use callgate_core::clamp::Clamp;
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::inspect::{Inspection, Wiring};
use callgate_core::policy::{ChannelTable, PolicyGate};
use callgate_core::tool::{ConfirmBy, FieldRule, Tool, ToolSpec, Violation};
use serde_json::{Value, json};

struct Probe(ToolSpec<'static>);

impl Tool for Probe {
    type Output = ();
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.0
    }

    fn validate(&self, _: Args<'_>, _: &mut dyn FnMut(Violation<'_>)) {}
}

const SPEC: ToolSpec<'static> = ToolSpec::new("probe", "A tool under test");
const CALLER: CallContext<'static> = CallContext::cli("r-1");
const BARE: Wiring = Wiring { rate_limiter: false, interceptors: false, rule_provider: false, audit: false };

fn inspect(spec: ToolSpec<'static>, caller: CallContext<'static>, wiring: Wiring) -> Value {
    let tool = Probe(spec);
    let gate = PolicyGate::new(ChannelTable::DEFAULTS);
    let mut text = String::new();
    Inspection { tool: &tool, caller, gate, wiring }.write_json(&mut text).expect("a string takes all");
    serde_json::from_str(&text).expect("JSON")
}

const KINDS: [&str; 12] = [
    "resolve",
    "validate",
    "clamp",
    "authorize",
    "rate_limit",
    "plan_mode",
    "confirm",
    "emit_executing",
    "execute",
    "contain_exception",
    "check_output",
    "audit",
];

/// The steps that are told otherwise, and how each of them is told.
fn told_otherwise(spec: ToolSpec<'static>, caller: CallContext<'static>, wiring: Wiring) -> Vec<(String, Value)> {
    let (one, other) = (inspect(SPEC, CALLER, BARE), inspect(spec, caller, wiring));
    let steps = |inspection: &Value| inspection["steps"].as_array().expect("steps").clone();
    let (one, other) = (steps(&one), steps(&other));
    assert_eq!(other.iter().map(|step| step["kind"].as_str().unwrap_or_default()).collect::<Vec<_>>(), KINDS);
    let changed = other.into_iter().zip(one).filter(|(other, one)| other != one);
    changed.map(|(step, _)| (step["kind"].as_str().unwrap_or_default().to_owned(), step)).collect()
}

#[test]
fn each_fact_is_told_at_its_steps_and_nowhere_else() {
    const FIELDS: &[FieldRule<'static>] =
        &[FieldRule::clamp("/a", Clamp::max(1)), FieldRule::clamp("/b", Clamp::max(1))];
    const SECRET: &[FieldRule<'static>] = &[FieldRule::secret("/a")];
    let approver = ConfirmBy::Approver { scope: "ops" };
    let web = CallContext::web("r-1", Some("u"), Scopes::new("a"));
    let all = Wiring { rate_limiter: true, interceptors: true, rule_provider: true, audit: true };
    let cases: [(&str, ToolSpec<'static>, CallContext<'static>, Wiring, &[&str]); 17] = [
        ("nothing", SPEC, CALLER, BARE, &[]),
        ("input schema", SPEC.with_input_schema("{}"), CALLER, BARE, &["validate"]),
        ("clamps", SPEC.with_fields(FIELDS), CALLER, BARE, &["clamp"]),
        ("one clamp", SPEC.with_fields(&FIELDS[..1]), CALLER, BARE, &["clamp"]),
        ("a secret", SPEC.with_fields(SECRET), CALLER, BARE, &[]),
        ("scopes", SPEC.with_scopes(Scopes::new("a")), CALLER, BARE, &["authorize"]),
        ("scopes that are not held", SPEC.with_scopes(Scopes::new("b")), web, BARE, &["authorize"]),
        ("rules", SPEC, CALLER, Wiring { rule_provider: true, ..BARE }, &["authorize"]),
        ("a limiter", SPEC, CALLER, Wiring { rate_limiter: true, ..BARE }, &["rate_limit"]),
        ("a cost", ToolSpec { cost: Some(9), ..SPEC }, CALLER, BARE, &["rate_limit"]),
        ("mutating", SPEC.mutating(), CALLER, BARE, &["rate_limit", "emit_executing", "execute"]),
        ("confirmed by the caller", SPEC.with_confirm(ConfirmBy::Caller), CALLER, BARE, &["confirm"]),
        ("confirmed by an approver", SPEC.with_confirm(approver), CALLER, BARE, &["confirm"]),
        ("interceptors", SPEC, CALLER, Wiring { interceptors: true, ..BARE }, &["emit_executing"]),
        ("a timeout", SPEC.with_timeout_ms(9), CALLER, BARE, &["execute"]),
        ("an output schema", ToolSpec { output_schema: Some("{}"), ..SPEC }, CALLER, BARE, &["check_output"]),
        ("all wired", SPEC, CALLER, all, &["authorize", "rate_limit", "emit_executing", "audit"]),
    ];
    let mut told = BTreeSet::new();
    for (what, spec, caller, wiring, expected) in cases {
        let changed = told_otherwise(spec, caller, wiring);
        let kinds: Vec<&str> = changed.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, expected, "{what}");
        for (_, step) in changed.iter().filter(|_| what != "all wired") {
            assert!(step["source"].as_str().is_some_and(|source| source.len() > 20), "{what}: {step}");
            assert!(told.insert(step.to_string()), "{what} is told as something else was: {step}");
        }
    }
}

/// R4: a plan ends at `plan_mode`; what comes after is told as not reached, and the record is written all the same.
#[test]
fn r4_a_plan_reaches_no_step_behind_its_own() {
    let planned = inspect(SPEC.mutating(), CALLER.with_mode(Mode::Plan), BARE);
    let run = inspect(SPEC.mutating(), CALLER, BARE);
    assert_eq!((&planned["context"]["mode"], &run["context"]["mode"]), (&json!("plan"), &json!("execute")));
    for (at, kind) in KINDS.iter().enumerate() {
        let (step, without) = (&planned["steps"][at], &run["steps"][at]);
        let reached = at <= 5 || *kind == "audit";
        let not_reached = step["source"].as_str().is_some_and(|source| source.starts_with("not reached"));
        assert_eq!(not_reached, !reached, "{step}");
        if reached {
            assert_eq!(step["presence"], without["presence"], "{step}");
        } else {
            assert_eq!(
                [&step["presence"], &step["blocking"], &step["mutates"]],
                [&json!("skipped"), &json!(false), &json!(false)]
            );
        }
    }
}

#[test]
fn the_whole_says_who_asks_and_what_is_wired() {
    let caller = CallContext::web("r-1", Some("u"), Scopes::new("a b"));
    let whole = inspect(SPEC, caller, BARE);
    assert_eq!(
        (&whole["operation"], &whole["channel"], &whole["schemaVersion"]),
        (&json!("probe"), &json!("web"), &json!("1.0"))
    );
    assert_eq!(whole["context"], json!({"actor": "u", "scopes": ["a", "b"], "mode": "execute"}));
    assert_eq!(inspect(SPEC, CallContext::new("cli", "r-1"), BARE)["context"]["actor"], Value::Null);
    let wired = |wiring| {
        let wiring = &inspect(SPEC, caller, wiring)["wiring"];
        ["rateLimiter", "dispatcher", "ruleProvider", "audit"].map(|part| wiring[part] == json!("present"))
    };
    assert_eq!(wired(Wiring { rate_limiter: true, ..BARE }), [true, false, false, false]);
    assert_eq!(wired(Wiring { interceptors: true, ..BARE }), [false, true, false, false]);
    assert_eq!(wired(Wiring { rule_provider: true, ..BARE }), [false, false, true, false]);
    assert_eq!(wired(Wiring { audit: true, ..BARE }), [false, false, false, true]);
    assert_eq!(whole["steps"][9]["wraps"], json!("execute"));
    assert!((0..12).all(|at| at == 9 || whole["steps"][at]["wraps"].is_null()));
    let roles: Vec<&str> = (0..12).filter_map(|at| whole["steps"][at]["role"].as_str()).collect();
    let expected = [
        "guard",
        "guard",
        "transform",
        "guard",
        "guard",
        "branch",
        "branch",
        "hook",
        "execution",
        "boundary",
        "guard",
        "outcome",
    ];
    assert_eq!(roles, expected);
    // What would be refused is told beforehand.
    assert_eq!(whole["assumptions"], json!([]));
    let refused = &inspect(SPEC.with_scopes(Scopes::new("c")), caller, BARE)["assumptions"];
    assert!(
        refused[0].as_str().is_some_and(|text| text.contains("authorize: ") && text.contains('c') && text.len() > 60),
        "{refused}"
    );
}

/// A channel that nobody registered is told as untrusted, with the policy that holds there.
#[test]
fn f2_an_unknown_channel_is_told_as_untrusted() {
    let authorize = |channel| inspect(SPEC, CallContext { channel, ..CALLER }, BARE)["steps"][3]["source"].clone();
    let told = |channel| authorize(channel).as_str().map(str::to_owned).expect("a text");
    assert!(told("fax").contains("untrusted") && !told("cli").contains("untrusted"), "{}", told("fax"));
    assert!(told("fax").contains("'fax'") && told("cli").contains("'cli'"));
}
