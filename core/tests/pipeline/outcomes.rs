//! What an outcome says of its call, to the letter.

use callgate_core::code::{Code, Effect, Station};
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::outcome::{MAX_SUMMARY, OutcomeType, RESERVED_META, is_reserved_meta};
use callgate_core::policy::{ChannelPolicy, ChannelTable};
use callgate_core::tool::ConfirmBy;
use serde_json::Value;

use crate::world::{Answer, Body, Host, Says, Sent, World, json, shell};

const GOOD: &[u8] = br#"{"path":"a"}"#;

fn sent(arguments: &[u8]) -> Sent<'_> {
    Sent { tool: "probe", arguments, token: None, caller: shell(Mode::Execute) }
}

fn outcome(host: &Host, sent: &Sent<'_>) -> Value {
    serde_json::from_str(&host.linear(sent, json)).expect("an outcome is JSON")
}

fn meta<'o>(outcome: &'o Value, name: &str) -> Option<&'o Value> {
    outcome.get("meta").and_then(|meta| meta.get(name))
}

/// X2: a tool that took longer than it may is told to have been late, to the nanosecond; how late, in seconds.
#[test]
fn x2_a_late_result_says_that_it_is_late() {
    for (limit_ms, spent_ns, late) in [
        (2_000, 2_000_000_000, None),
        (2_000, 2_000_000_001, Some(("2", "2"))),
        (1_500, 1_620_000_000, Some(("1.62", "1.5"))),
        (1_005, 12_345_678_901, Some(("12.345", "1.005"))),
        (1, 10_000_000, Some(("0.01", "0.001"))),
        (1, 0, None),
    ] {
        let host = Host::new(World::good()).with_tool(|spec| spec.with_timeout_ms(limit_ms));
        host.spent_ns.set(spent_ns);
        let text = host.linear(&sent(GOOD), json);
        assert_eq!(text.contains(r#""timeout_exceeded":true"#), late.is_some(), "{text}");
        let Some((took, limit)) = late else { continue };
        let told = format!(r#""execution_time":{took},"timeout_limit":{limit}"#);
        assert!(text.contains(&told), "{told} in {text}");
    }
}

/// J7: an outcome and its record say how long the call took, each in its unit.
#[test]
fn j7_a_call_says_how_long_it_took() {
    let host = Host::new(World::good());
    host.runs_ms.set(1_234);
    let took = host.linear(&sent(GOOD), |outcome| (outcome.took_ns(), json(outcome)));
    assert_eq!(took.0, 1_234_000_000);
    assert!(took.1.contains(r#""took_ms":1234,"#), "{}", took.1);
    let lines = host.lines.borrow();
    assert!(
        lines
            .last()
            .is_some_and(|line| line.contains(r#""took_us":1234000}"#) || line.contains(r#""took_us":1234000,"#)),
        "{lines:?}"
    );
}

/// F4: of which kind an outcome is, and what goes with it.
#[test]
fn f4_an_outcome_says_of_which_kind_it_is() {
    let asks = World { confirm: ConfirmBy::Caller, ..World::good() };
    for (world, kind, success, asked) in [
        (World::good(), OutcomeType::Generic, true, false),
        (World { says: Says::Answer, ..World::good() }, OutcomeType::Generic, true, false),
        (asks, OutcomeType::Confirmation, true, true),
        (World { says: Says::Veto, ..World::good() }, OutcomeType::Blocked, false, false),
        (World { says: Says::Fails, ..World::good() }, OutcomeType::Blocked, false, false),
        (World { body: Body::Fails, ..World::good() }, OutcomeType::Error, false, false),
        (World { body: Body::TimesOut, ..World::good() }, OutcomeType::Error, false, false),
        (World { policy: Some(Answer::Refuses), ..World::good() }, OutcomeType::Error, false, false),
    ] {
        let host = Host::new(world);
        let (found, text) = host.linear(&sent(GOOD), |outcome| {
            assert_eq!(outcome.error().is_some(), !success);
            assert!(outcome.error().is_none_or(|error| !error.to_string().is_empty()));
            ((outcome.kind(), outcome.success(), outcome.asks()), json(outcome))
        });
        assert_eq!(found, (kind, success, asked), "{text}");
        assert_eq!(text.contains(r#""cache_served":true"#), matches!(host.world.says, Says::Answer), "{text}");
        assert_eq!(text.contains(r#""blocked_by_rule":true"#), kind == OutcomeType::Blocked, "{text}");
        assert_eq!(text.contains(r#""type":"confirmation","requires_confirmation":true"#), asked, "{text}");
    }
}

/// D2, A2: a question says what is asked, of whom, and under which scope; `approval_id` names the ticket and is no token.
#[test]
fn a2_a_question_says_who_has_to_answer() {
    for (confirm, scope) in
        [(ConfirmBy::Caller, None), (ConfirmBy::Approver { scope: "pay.approve" }, Some("pay.approve"))]
    {
        let host = Host::new(World { confirm, ..World::good() });
        let outcome = outcome(&host, &sent(GOOD));
        let data = |name: &str| outcome.get("data").and_then(|data| data.get(name)).and_then(Value::as_str);
        assert_eq!(outcome.pointer("/data/requires_confirmation"), Some(&Value::Bool(true)));
        assert_eq!(data("action_summary"), Some(r#"probe({"path":"a"})"#));
        assert_eq!(outcome.get("message"), outcome.pointer("/data/action_summary"));
        assert_eq!(data("expires_at"), Some("1970-01-01T00:17:40.000Z"));
        assert_eq!(data("approver_scope"), scope);
        assert_eq!(data("confirm_by"), scope.map(|_| "approver"));
        let token = data("confirm_token").and_then(callgate_core::confirm::Token::parse).expect("a token");
        assert_eq!(data("approval_id").map(str::to_owned), scope.map(|_| token.hash().to_string()));
    }
}

/// A2: where only the channel asks for an approver, there is a scope of approvers; whose yes it was is told.
#[test]
fn a2_an_outcome_says_who_confirmed() {
    const DESK: &[ChannelPolicy<'static>] = &[ChannelPolicy::new("cli").without_auth().confirmed_by_approver()];
    for (channels, by, scope) in [(DESK, "approver", Some("approve")), (&[], "self", None)] {
        let mut host = Host::new(World { confirm: ConfirmBy::Caller, ..World::good() });
        host.channels = ChannelTable::over_defaults(channels);
        let asked = outcome(&host, &sent(GOOD));
        assert_eq!(asked.pointer("/data/approver_scope").and_then(Value::as_str), scope);
        assert_eq!(meta(&asked, "confirmed_by"), None);
        let token = asked.pointer("/data/confirm_token").and_then(Value::as_str).expect("a token");
        if scope.is_some() {
            let boss = CallContext::web("r-9", Some("boss"), Scopes::new("approve"));
            host.decide_ticket(token, boss).expect("a boss approves");
        }
        let done = outcome(&host, &Sent { token: Some(token), ..sent(GOOD) });
        assert_eq!(meta(&done, "confirmed_by").and_then(Value::as_str), Some(by), "{done}");
    }
}

/// D2: exactly as many bytes of the arguments are shown as fit, cut between two characters, and what is missing is told.
#[test]
fn d2_a_summary_is_cut_where_it_says() {
    let around = r#"{"path":""}"#.len();
    for (path, shown) in [
        ("x".repeat(MAX_SUMMARY - around), MAX_SUMMARY),
        ("x".repeat(MAX_SUMMARY - around + 1), MAX_SUMMARY),
        // The two bytes of the last character that would be shown do not both fit.
        ("\u{e9}".repeat(MAX_SUMMARY / 2), MAX_SUMMARY - 1),
        (format!("x{}", "\u{e9}".repeat(MAX_SUMMARY / 2)), MAX_SUMMARY),
    ] {
        let host = Host::new(World { confirm: ConfirmBy::Caller, ..World::good() });
        let arguments = format!(r#"{{"path":"{path}"}}"#);
        let outcome = outcome(&host, &sent(arguments.as_bytes()));
        let message = outcome.get("message").and_then(Value::as_str).expect("a summary");
        let inner = message.strip_prefix("probe(").and_then(|rest| rest.strip_suffix(')')).expect("a call");
        if arguments.len() <= MAX_SUMMARY {
            assert_eq!(inner, arguments);
            continue;
        }
        let (kept, told) = inner.split_once(" ... cut after ").expect("it says that it is cut");
        assert!(arguments.starts_with(kept) && kept.len() == shown, "{} of {shown}", kept.len());
        let total = format!("{MAX_SUMMARY} of {} bytes, arguments digest ", arguments.len());
        assert!(told.starts_with(&total), "{told}");
    }
}

/// R5: a plan says what the call would do and need.
#[test]
fn r5_a_plan_says_what_a_call_would_need() {
    let world = World { mutating: true, confirm: ConfirmBy::Caller, scopes: "read admin", ..World::good() };
    for (confirm, needed) in [(ConfirmBy::Caller, true), (ConfirmBy::Nobody, false)] {
        let host = Host::new(World { confirm, ..world.clone() }).with_tool(|spec| spec.with_timeout_ms(2_500));
        let caller = shell(Mode::Plan).with_scopes(Scopes::new("admin"));
        let arguments = br#"{"path":"a","max":900,"password":"hunter22"}"#;
        let text = host.linear(&Sent { caller, ..sent(arguments) }, json);
        let plan = format!(
            concat!(
                r#""data":{{"plan":{{"tool":"probe","mutating":true,"requires_confirmation":{},"scopes_required":["read","admin"],"#,
                r#""timeout":2.5,"args":{{"path":"a","max":100,"password":"***REDACTED***"}}}}}}"#
            ),
            needed
        );
        assert!(text.contains(&plan), "{text}");
    }
}

/// R2, R3: who is refused for a while is told for how long, rounded up; whoever would never pass is told no time.
#[test]
fn r2_a_refused_caller_is_told_when_to_come_back() {
    let host = Host::new(World { limiter: Answer::Refuses, ..World::good() });
    let found = host.linear(&sent(GOOD), |outcome| (outcome.retry_after_ns(), json(outcome)));
    assert_eq!(found.0, Some(1_500_000_000));
    assert!(found.1.contains(r#""retry_after_seconds":2,"#), "{}", found.1);
    let host = Host::new(World { attempts: Answer::Refuses, ..World::good() });
    let found = host.linear(&sent(b"[]"), |outcome| {
        (outcome.code(), outcome.retry_after_ns(), outcome.error().map(|error| error.to_string()))
    });
    assert_eq!(
        found,
        (Some(Code::RateLimited), Some(2_000_000_000), Some("Too many refused calls; try again later".into()))
    );
    let line = host.lines.borrow().last().cloned().expect("a record");
    assert!(line.contains(r#""code":"VALIDATION_ERROR","told":"RATE_LIMITED""#), "{line}");
    let host = Host::new(World { attempts: Answer::Fails, ..World::good() });
    assert_eq!(
        host.linear(&sent(b"[]"), |outcome| (outcome.code(), outcome.retry_after_ns())),
        (Some(Code::RateLimited), None)
    );
}

/// L4, S3: a name that the caller made up is shown escaped; the text of what is wrong names the fields.
#[test]
fn l4_what_is_wrong_is_told_safely() {
    let host = Host::new(World::good());
    let text = |sent: &Sent<'_>| {
        host.linear(sent, |outcome| outcome.error().map(|error| error.to_string())).unwrap_or_default()
    };
    let odd = Sent { tool: "a\u{1b}[2K\"b", ..sent(GOOD) };
    let told = text(&odd);
    assert!(told.starts_with("Tool not found: ") && !told.contains('\u{1b}'), "{told:?}");
    let told = text(&sent(br#"{"path":1,"max":"x"}"#));
    assert_eq!(told.matches("; ").count(), 1, "two violations: {told}");
    assert!(told.contains("path: ") && told.contains("max: "), "{told}");
    let line = host.lines.borrow().last().cloned().expect("a record");
    assert!(line.contains("path: ") && line.contains("max: "), "J7: {line}");
}

/// J8: an outcome says whether it is recorded, and nothing of what did not happen.
#[test]
fn j8_an_outcome_says_where_it_ended_and_whether_it_is_recorded() {
    let host = Host::new(World { terminal: Answer::Fails, ..World::good() });
    let found =
        host.linear(&sent(GOOD), |outcome| (outcome.unrecorded(), outcome.station(), outcome.effect(), outcome.task()));
    assert_eq!(found, (true, Station::Execute, Effect::Done, None));
    let host = Host::new(World::good());
    let found =
        host.linear(&sent(GOOD), |outcome| (outcome.unrecorded(), outcome.output().copied(), outcome.tool().is_some()));
    assert_eq!(found, (false, Some("done"), true));
    let outcome = outcome(&host, &sent(GOOD));
    assert_eq!(meta(&outcome, "audit_pending"), None);
    assert_eq!(meta(&outcome, "clamped"), None);
    assert_eq!(meta(&outcome, "confirmed_by"), None);
    assert_eq!(meta(&outcome, "task_id"), None);
}

#[test]
fn only_the_gate_writes_its_members_of_meta() {
    for name in RESERVED_META {
        assert!(is_reserved_meta(name), "{name}");
    }
    for name in ["", "Tool", "tools", "rows", "took_m"] {
        assert!(!is_reserved_meta(name), "{name}");
    }
}
