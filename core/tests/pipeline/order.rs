//! What holds of every call, whatever the host answers.

use callgate_core::code::{Code, Effect};
use callgate_core::context::{CallContext, Mode};
use callgate_core::outcome::Outcome;
use callgate_core::request::Envelope;
use callgate_core::tool::ConfirmBy;
use proptest::prelude::*;

use crate::world::{Answer, Body, Host, Probe, Says, Sent, World, code, json, shell};

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![4 => Just(Answer::Good), 1 => Just(Answer::Refuses), 1 => Just(Answer::Fails)]
}

fn says() -> impl Strategy<Value = Says> {
    prop_oneof![
        5 => Just(Says::Continue),
        1 => Just(Says::Answer),
        1 => Just(Says::BadAnswer),
        1 => Just(Says::Veto),
        1 => Just(Says::Fails),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        4 => Just(Body::Returns),
        1 => Just(Body::ReturnsBadOutput),
        1 => Just(Body::Fails),
        1 => Just(Body::Panics),
        1 => Just(Body::TimesOut),
        1 => Just(Body::IsCancelled),
    ]
}

fn worlds() -> impl Strategy<Value = World> {
    let tool = (
        prop::bool::weighted(0.95),
        prop::bool::weighted(0.05),
        any::<bool>(),
        prop_oneof![
            3 => Just(ConfirmBy::Nobody),
            2 => Just(ConfirmBy::Caller),
            1 => Just(ConfirmBy::Approver { scope: "approve" }),
        ],
        prop_oneof![4 => Just(""), 1 => Just("admin")],
        prop::option::weighted(0.3, answer()),
    );
    let host = (answer(), answer(), answer(), answer(), says(), answer(), body(), answer(), answer());
    let operation = prop_oneof![4 => Just(None), 3 => Just(Some("op-1")), 1 => Just(Some("no id"))];
    let journal = (operation, answer(), answer(), answer());
    (tool, host, journal).prop_map(|(tool, host, journal)| World {
        tool_known: tool.0,
        hidden: tool.1,
        mutating: tool.2,
        confirm: tool.3,
        scopes: tool.4,
        policy: tool.5,
        limiter: host.0,
        issue: host.1,
        load: host.2,
        claim: host.3,
        says: host.4,
        intent: host.5,
        body: host.6,
        terminal: host.7,
        attempts: host.8,
        operation: journal.0,
        recalls: journal.1,
        takes: journal.2,
        keeps: journal.3,
    })
}

const ARGUMENTS: &[&str] = &[
    r#"{"path":"a"}"#,
    r#"{"path":"a","max":5000}"#,
    r#"{"path":"a","max":-3,"password":"hunter22"}"#,
    r#"{"path":1}"#,
    "{}",
    "",
    "null",
    r#"{"path":"a","path":"b"}"#,
    r#"{"path":"a""#,
    r#"{"path":"a","evil":1}"#,
];

const TOKENS: &[Option<&str>] = &[None, None, None, Some("00000000000000000000000000000000"), Some("nonsense")];

fn callers() -> impl Strategy<Value = CallContext<'static>> {
    let base = prop_oneof![
        4 => Just(CallContext::cli("r-1")),
        1 => Just(CallContext::web("r-2", None, callgate_core::context::Scopes::NONE)),
        2 => Just(CallContext::web("r-3", Some("u1"), callgate_core::context::Scopes::new("admin"))),
        1 => Just(CallContext::telegram("r-4", "chat:1")),
        1 => Just(CallContext::new("fax", "r-5").with_principal("u1")),
        1 => Just(CallContext::new("bad channel", "r-6")),
    ];
    (base, prop::bool::weighted(0.2))
        .prop_map(|(caller, plan)| if plan { caller.with_mode(Mode::Plan) } else { caller })
}

/// The order of the gate, as the host sees it.
const ORDER: &[&str] = &[
    "find",
    "load",
    "decide",
    "charge",
    "recall",
    "issue",
    "claim",
    "judge",
    "take",
    "record intent",
    "run",
    "refund",
    "withdraw",
    "finish",
    "keep",
    "attempt",
    "record terminal",
];

fn place(entry: &str) -> usize {
    ORDER.iter().position(|step| entry.starts_with(step)).expect("a known step")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// N1, N3: the two doors give the same steps, the same outcome and the same audit bytes; so does running again.
    #[test]
    fn n1_linear_and_stepped_are_the_same_gate(
        world in worlds(), caller in callers(), arguments in prop::sample::select(ARGUMENTS), token in prop::sample::select(TOKENS),
    ) {
        let sent = Sent { tool: "probe", arguments: arguments.as_bytes(), token, caller };
        let (one, two) = (Host::new(world.clone()), Host::new(world));
        let linear = one.linear(&sent, json);
        let stepped = two.stepped(&sent, json);
        prop_assert_eq!(linear, stepped);
        prop_assert_eq!(one.transcript.into_inner(), two.transcript.into_inner());
        prop_assert_eq!(one.lines.into_inner(), two.lines.into_inner());
        prop_assert_eq!(one.effects.get(), two.effects.get());
    }

    /// G5, G7, E5: what the gate asks for comes in one order, nothing twice.
    #[test]
    fn g5_the_order_is_the_same_for_every_call(
        world in worlds(), caller in callers(), arguments in prop::sample::select(ARGUMENTS), token in prop::sample::select(TOKENS),
    ) {
        let host = Host::new(world);
        host.linear(&Sent { tool: "probe", arguments: arguments.as_bytes(), token, caller }, |_| ());
        let transcript = host.transcript.into_inner();
        let places: Vec<_> = transcript.iter().map(|entry| place(entry)).collect();
        prop_assert!(places.is_sorted_by(|a, b| a < b), "{:?}", transcript);
        // E5: nobody is asked to intercept what was not allowed before.
        if transcript.iter().any(|entry| entry == "judge") {
            prop_assert!(transcript.iter().any(|entry| entry == "decide"));
        }
    }

    /// J1, J2: exactly one terminal record on every path, before the outcome; an intent before each effect that mutates.
    #[test]
    fn j1_one_terminal_record_on_every_path(
        world in worlds(), caller in callers(), arguments in prop::sample::select(ARGUMENTS), token in prop::sample::select(TOKENS),
    ) {
        let host = Host::new(world.clone());
        let seen_at_outcome = host.linear(&Sent { tool: "probe", arguments: arguments.as_bytes(), token, caller }, |_| {
            host.transcript.borrow().clone()
        });
        let terminals = seen_at_outcome.iter().filter(|entry| *entry == "record terminal").count();
        prop_assert_eq!(terminals, 1);
        prop_assert_eq!(seen_at_outcome.last().map(String::as_str), Some("record terminal"));
        if world.mutating && host.effects.get() > 0 {
            let intent = seen_at_outcome.iter().position(|entry| entry == "record intent");
            let run = seen_at_outcome.iter().position(|entry| entry == "run");
            prop_assert!(intent.is_some() && intent < run);
        }
    }

    /// F1: an error anywhere before the tool starts means that it does not start.
    #[test]
    fn f1_no_effect_after_a_fault(
        world in worlds(), caller in callers(), arguments in prop::sample::select(ARGUMENTS), token in prop::sample::select(TOKENS),
    ) {
        let host = Host::new(world.clone());
        let (effect, code) = host.linear(
            &Sent { tool: "probe", arguments: arguments.as_bytes(), token, caller },
            |outcome: &Outcome<Envelope<'_>, &Probe>| (outcome.effect(), outcome.code()),
        );
        let asked = |step: &str| host.transcript.borrow().iter().any(|entry| entry.starts_with(step));
        let faulty = (asked("load") && world.load != Answer::Good)
            || (asked("decide") && matches!(world.policy, Some(Answer::Refuses | Answer::Fails)))
            || (asked("charge") && world.limiter != Answer::Good)
            || (asked("recall") && world.recalls != Answer::Good)
            || asked("issue")
            || (asked("claim") && world.claim != Answer::Good)
            || (asked("judge") && world.says != Says::Continue)
            || (asked("take") && world.takes != Answer::Good)
            || (asked("record intent") && world.intent != Answer::Good);
        if faulty {
            prop_assert_eq!(host.effects.get(), 0);
            prop_assert_eq!(effect, Effect::None);
        }
        // J3: no call of an operation has an effect without a claim.
        prop_assert!(world.operation.is_none() || host.effects.get() == 0 || asked("take"));
        // What the outcome says of the effect is what happened.
        prop_assert_eq!(effect == Effect::None, host.effects.get() == 0);
        if effect == Effect::Unknown {
            prop_assert!(code.is_some(), "X2: unknown is never a success");
        }
    }

    /// R4, R5: a plan runs, issues, redeems and charges nothing, and says what a call would meet.
    #[test]
    fn r4_a_plan_touches_nothing(world in worlds(), caller in callers(), arguments in prop::sample::select(ARGUMENTS)) {
        let planned = Host::new(World { attempts: Answer::Good, ..world.clone() });
        let before = planned.remaining();
        let (plan_code, station) = planned.linear(
            &Sent { tool: "probe", arguments: arguments.as_bytes(), token: None, caller: caller.with_mode(Mode::Plan) },
            |outcome| (outcome.code(), outcome.station()),
        );
        prop_assert_eq!(planned.effects.get(), 0);
        prop_assert_eq!(planned.remaining(), before);
        for forbidden in ["recall", "issue", "claim", "judge", "take", "keep", "record intent", "run", "refund", "withdraw", "attempt"] {
            prop_assert!(!planned.transcript.borrow().iter().any(|entry| entry.starts_with(forbidden)));
        }
        // R5: up to the plan's end the real call takes the same way. Consent is asked for only by the real call.
        let real = Host::new(World { attempts: Answer::Good, ..world });
        let real_code = real.linear(
            &Sent { tool: "probe", arguments: arguments.as_bytes(), token: None, caller: caller.with_mode(Mode::Execute) },
            |outcome| (outcome.station() <= callgate_core::code::Station::RateLimit).then_some(outcome.code()).flatten(),
        );
        prop_assert_eq!(plan_code, real_code, "at {}", station);
    }

    /// R3, A6: refused calls draw from a budget of their own; once it is used up the caller learns nothing more.
    #[test]
    fn r3_refusals_beyond_the_attempts_look_alike(world in worlds(), caller in callers(), arguments in prop::sample::select(ARGUMENTS)) {
        let caller = caller.with_mode(Mode::Execute);
        let host = Host::new(World { attempts: Answer::Refuses, ..world });
        let (code, text) = host.linear(
            &Sent { tool: "probe", arguments: arguments.as_bytes(), token: None, caller },
            |outcome| (outcome.code(), outcome.error().map(|error| error.to_string())),
        );
        if host.transcript.borrow().iter().any(|entry| entry == "attempt") {
            prop_assert_eq!(code, Some(Code::RateLimited));
            prop_assert_eq!(text.as_deref(), Some("Too many refused calls; try again later"));
        }
    }
}

/// K1 to K4: what was clamped is seen by everybody behind the clamp, and told to everybody.
#[test]
fn k3_a_clamp_is_visible_and_one_value_leaves_it() {
    let host = Host::new(World { mutating: true, ..World::good() });
    let sent = Sent {
        tool: "probe",
        arguments: br#"{"path":"a","max":5000,"password":"hunter22"}"#,
        token: None,
        caller: shell(Mode::Execute),
    };
    let outcome = host.linear(&sent, json);
    assert_eq!(host.executed_args.borrow().as_slice(), [r#"{"path":"a","max":100,"password":"hunter22"}"#]);
    assert!(outcome.contains(r#""clamped":[{"field":"max","from":"5000","to":"100"}]"#), "{outcome}");
    for line in host.lines.borrow().iter() {
        assert!(line.contains(r#""max":100"#) && line.contains(r#""from":"5000""#), "{line}");
        assert!(!line.contains("hunter22"), "L2: {line}");
    }
    assert!(!outcome.contains("hunter22"));
}

/// J8: a record that could not be written after the effect is flagged and changes nothing else.
#[test]
fn j8_audit_down_after_the_effect_keeps_the_result() {
    let host = Host::new(World { terminal: Answer::Fails, ..World::good() });
    let sent = Sent { tool: "probe", arguments: br#"{"path":"a"}"#, token: None, caller: shell(Mode::Execute) };
    let outcome = host.linear(&sent, json);
    assert!(outcome.starts_with(r#"{"success":true,"data":"done""#), "{outcome}");
    assert!(outcome.contains(r#""audit_pending":true"#), "{outcome}");
}

/// O1: a result that breaks its schema is withheld, and the outcome says that the effect happened.
#[test]
fn o1_a_bad_result_is_contained_and_the_effect_is_told() {
    let host = Host::new(World { body: Body::ReturnsBadOutput, ..World::good() });
    let sent = Sent { tool: "probe", arguments: br#"{"path":"a"}"#, token: None, caller: shell(Mode::Execute) };
    let outcome = host.linear(&sent, json);
    assert!(
        outcome.contains(r#""data":null"#) && outcome.contains(r#""effect":"done","code":"OUTPUT_INVALID""#),
        "{outcome}"
    );
}

/// L4: what a tool, a panic or an interceptor says reaches the record and not the caller.
#[test]
fn l4_foreign_texts_stay_in_the_record() {
    for (world, text) in [
        (World { body: Body::Fails, ..World::good() }, "it broke"),
        (World { body: Body::Panics, ..World::good() }, "a panic's text"),
        (World { says: Says::Veto, ..World::good() }, "not today"),
        (World { says: Says::Fails, ..World::good() }, "broke"),
    ] {
        let host = Host::new(world);
        let sent = Sent { tool: "probe", arguments: br#"{"path":"a"}"#, token: None, caller: shell(Mode::Execute) };
        let outcome = host.linear(&sent, json);
        assert!(!outcome.contains(text), "{outcome}");
        assert!(host.lines.borrow().iter().any(|line| line.contains(text)), "{text}");
    }
}

/// F4: what a call can end with stays distinct to the end, in its record or already in its code.
#[test]
fn f4_ends_stay_distinct() {
    let good = World::good;
    let asks = || World { confirm: ConfirmBy::Caller, ..good() };
    let valid = r#"{"path":"a"}"#;
    let unknown = "00000000000000000000000000000000";
    let ends: [(World, &str, Option<&str>, Option<Code>); 16] = [
        (good(), valid, None, None),
        (asks(), valid, None, None),
        (World { tool_known: false, ..good() }, valid, None, Some(Code::ToolNotFound)),
        (World { hidden: true, ..good() }, valid, None, Some(Code::CapabilityDenied)),
        (good(), "[]", None, Some(Code::ValidationError)),
        (good(), "{}", None, Some(Code::ValidationError)),
        (World { policy: Some(Answer::Refuses), ..good() }, valid, None, Some(Code::Forbidden)),
        (World { limiter: Answer::Refuses, ..good() }, valid, None, Some(Code::RateLimited)),
        (World { limiter: Answer::Fails, ..good() }, valid, None, Some(Code::StoreUnavailable)),
        (good(), valid, Some(unknown), Some(Code::ConfirmationInvalid)),
        (World { says: Says::Veto, ..good() }, valid, None, Some(Code::Vetoed)),
        (World { says: Says::Answer, ..good() }, valid, None, None),
        (World { mutating: true, intent: Answer::Fails, ..good() }, valid, None, Some(Code::AuditUnavailable)),
        (World { body: Body::Fails, ..good() }, valid, None, Some(Code::InternalError)),
        (World { body: Body::TimesOut, ..good() }, valid, None, Some(Code::Timeout)),
        (World { body: Body::ReturnsBadOutput, ..good() }, valid, None, Some(Code::OutputInvalid)),
    ];
    let mut names = std::collections::BTreeSet::new();
    for (world, arguments, token, expected) in ends {
        let host = Host::new(world);
        let sent = Sent { tool: "probe", arguments: arguments.as_bytes(), token, caller: shell(Mode::Execute) };
        let (found, name) = host.linear(&sent, |outcome| (outcome.code(), outcome.end().name()));
        assert_eq!(found, expected, "{name}");
        assert!(names.insert(name), "{name} means two things");
        let line = host.lines.borrow().last().cloned().expect("a record");
        assert!(line.contains(&format!(r#""end":"{name}""#)), "{line}");
    }
}

/// J7: a record suffices to decide again: what policy looks at is in it, and deciding from it gives the same answer.
#[test]
fn j7_a_record_suffices_to_decide_again() {
    use callgate_core::context::Scopes;
    use callgate_core::policy::{ChannelTable, PolicyGate, Subject};
    for caller in [
        CallContext::web("r-1", Some("u1"), Scopes::new("read admin")),
        CallContext::web("r-1", Some("u1"), Scopes::new("read")),
        CallContext::web("r-1", None, Scopes::NONE),
        CallContext::new("fax", "r-1").with_principal("u1"),
    ] {
        let host = Host::new(World { scopes: "admin", mutating: true, ..World::good() });
        let sent = Sent { tool: "probe", arguments: br#"{"path":"a","max":900}"#, token: None, caller };
        let code = host.linear(&sent, code);
        let line = host.lines.borrow().last().cloned().expect("a record");
        let record: serde_json::Value = serde_json::from_str(&line).expect("a record is JSON");
        let text = |name: &str| record.get(name).and_then(|value| value.as_str());
        let scopes: Vec<_> = record
            .get("scopes")
            .and_then(|scopes| scopes.as_array())
            .map(|scopes| scopes.iter().filter_map(|scope| scope.as_str()).collect())
            .expect("scopes");
        let scopes = scopes.join(" ");
        let mut again =
            CallContext::new(text("channel").expect("a channel"), "again").with_scopes(Scopes::new(&scopes));
        again.principal = text("principal");
        let arguments = record.get("args").expect("arguments").to_string();
        let mut keys = [callgate_core::json::KeySlot::default(); 16];
        let args =
            callgate_core::args::Args::read(arguments.as_bytes(), &mut keys, &callgate_core::json::Limits::DEFAULT)
                .expect("arguments");
        let definition = callgate_core::tool::Tool::definition(&host.tool);
        assert_eq!(text("tool_digest"), Some(definition.to_string().as_str()));
        let spec = callgate_core::tool::Tool::spec(&host.tool);
        let now = host.clock().wall;
        let subject = Subject { caller: again, spec, definition, args, arguments: None, now };
        let decision = PolicyGate::new(ChannelTable::DEFAULTS).decide::<&str>(&subject);
        assert_eq!(decision.is_allowed(), code.is_none(), "{line}");
        assert!(line.contains(r#""from":"900""#) && line.contains(r#""took_us":"#), "{line}");
    }
}

/// G8: too many calls above this one.
#[test]
fn g8_nesting_is_bounded() {
    let host = Host::new(World::good());
    let mut caller = shell(Mode::Execute);
    caller.depth = 9;
    let sent = Sent { tool: "probe", arguments: br#"{"path":"a"}"#, token: None, caller };
    assert_eq!(host.linear(&sent, code), Some(Code::Forbidden));
    assert_eq!(host.effects.get(), 0);
    caller.depth = 8;
    assert_eq!(host.linear(&Sent { caller, ..sent }, code), None);
    assert_eq!(host.effects.get(), 1);
}

/// F4, J7: a record says which store did not answer.
#[test]
fn f4_a_record_says_which_store_failed() {
    let limits = World { limiter: Answer::Fails, ..World::good() };
    let issue = World { issue: Answer::Fails, confirm: ConfirmBy::Caller, ..World::good() };
    for (world, store) in [(limits, "limits"), (issue, "confirmations")] {
        let host = Host::new(world);
        let sent = Sent { tool: "probe", arguments: br#"{"path":"a"}"#, token: None, caller: shell(Mode::Execute) };
        assert_eq!(host.linear(&sent, code), Some(Code::StoreUnavailable));
        let line = host.lines.borrow().last().cloned().expect("a record");
        assert!(line.contains(&format!(r#""check":"{store}""#)), "{line}");
    }
}

/// The words on the wire, once in full.
#[test]
fn the_outcome_has_one_shape() {
    let host = Host::new(World::good());
    let sent = Sent { tool: "probe", arguments: br#"{"path":"a"}"#, token: None, caller: shell(Mode::Execute) };
    assert_eq!(
        host.linear(&sent, json),
        concat!(
            r#"{"success":true,"data":"done","message":null,"error":null,"meta":{"tool":"probe","took_ms":0,"#,
            r#""request_id":"r-1","channel":"cli","principal":"local-shell","effect":"done"}}"#,
        )
    );
    let sent = Sent { tool: "nope", ..sent };
    assert_eq!(
        host.linear(&sent, json),
        concat!(
            r#"{"success":false,"data":null,"message":null,"error":"Tool not found: nope","meta":{"tool":"nope","took_ms":0,"#,
            r#""request_id":"r-1","channel":"cli","principal":"local-shell","effect":"none","code":"TOOL_NOT_FOUND","type":"error"}}"#,
        )
    );
}
