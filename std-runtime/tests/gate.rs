//! The blocking gate as a program embeds it: tools from closures, plug-ins that fail, budgets, confirmations, nested calls.

#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "the helpers of tests fail loudly")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_core::audit::{Audit, AuditFault, Kind, Record};
use callgate_core::code::{Code, Effect};
use callgate_core::confirm::Verdict;
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::policy::{ChannelPolicy, Decision, Effect as RuleEffect, Rule, RuleFault, RuleProvider, Subject};
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_core::tool::ConfirmBy;
use callgate_std::cache::ResultCache;
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{
    By, ConfirmationStore, DecideFault, Decided, Finish, FinishError, IssueFault, Issued, Loaded, PendingApproval,
    PendingRequest, Presented, Refusal, StoreFault,
};
use callgate_std::failure::Failure;
use callgate_std::gate::{Gate, GateBuilder, Outcome};
use callgate_std::limiter::{Allowance, Charge, LimitKey, RateLimiter, Refund};
use callgate_std::output::Reply;
use callgate_std::policy::{ChannelPolicies, Policy};
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use serde_json::{Value, json};

/// Keeps the lines of a log.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn lines(&self) -> Vec<Value> {
        let lines = self.0.lock().expect("no test panics with it");
        lines.iter().map(|line| serde_json::from_str(line).expect("a record is JSON")).collect()
    }

    fn text(&self) -> String {
        self.0.lock().expect("no test panics with it").join("\n")
    }
}

impl Audit for Log {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let mut line = String::new();
        record.write_json(&mut line).map_err(|_| AuditFault)?;
        self.0.lock().map_err(|_| AuditFault)?.push(line);
        Ok(())
    }
}

const PROPERTIES: &[Property<'static>] = &[
    Property::required("n", Schema::integer()),
    Property::optional("text", Schema::string()),
    Property::optional("password", Schema::string()),
];

struct World {
    gate: Gate,
    log: Arc<Log>,
    effects: Arc<AtomicU32>,
    clock: ManualClock,
}

/// A gate over `read`, `write` (mutating), `ask` (confirmed by its caller), `approve` (by an approver), `panics`, `fails`,
/// `slow` and `nest`.
fn world(change: impl FnOnce(GateBuilder) -> GateBuilder) -> World {
    let (effects, clock, log) = (Arc::new(AtomicU32::new(0)), ManualClock::new(), Arc::new(Log::default()));
    let tool = |name: &str| {
        let effects = effects.clone();
        Tool::builder(name)
            .description("A tool under test")
            .const_schema(Schema::object(PROPERTIES))
            .clamp("/n", 1..=100)
            .secret("/password")
            .handler(move |call| {
                effects.fetch_add(1, Ordering::Relaxed);
                let args: Value = call.arguments()?;
                Ok(Reply::new(args.get("n").cloned().unwrap_or_default()))
            })
    };
    let slow_clock = clock.clone();
    let registry = Registry::builder()
        .add(tool("read"))
        .add(tool("write").mutating())
        .add(tool("ask").mutating().confirm(ConfirmBy::Caller))
        .add(tool("approve").mutating().confirm(ConfirmBy::Approver { scope: "approve" }))
        .add(tool("panics").handler(|_| panic!("CANARY in a panic")))
        .add(tool("fails").handler(|_| Err(Failure::new("CANARY in a failure"))))
        .add(tool("missing").handler(|_| Err(Failure::not_found("no such row").public().without_effect())))
        .add(tool("slow").timeout(Duration::from_millis(10)).handler(move |_| {
            slow_clock.advance(Duration::from_millis(25));
            Ok(Reply::new("late"))
        }))
        .add(tool("nest").handler(|call| {
            let inner = call.call_with(Scopes::NONE, "read", br#"{"n":500}"#)?;
            Ok(Reply::new(json!({"inner": inner.reply.map(|reply| reply.data().clone())})))
        }))
        .add(tool("recurse").handler(|call| {
            let inner = call.call_with(Scopes::NONE, "recurse", br#"{"n":1}"#)?;
            Ok(Reply::new(json!({"code": inner.code.map(Code::as_str)})))
        }))
        .build()
        .expect("good tools");
    let builder = Gate::builder(registry).clock(clock.shared()).digest_key([1; 32]).audit(log.clone());
    World { gate: change(builder).build().expect("a good gate"), log, effects, clock }
}

fn plain() -> World {
    world(|builder| builder)
}

impl World {
    fn effects(&self) -> u32 {
        self.effects.load(Ordering::Relaxed)
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a str) -> Outcome<'a> {
        self.gate.call(&CallContext::cli("r-1"), Request { tool, arguments: arguments.as_bytes(), token: None })
    }

    fn token(&self, tool: &str, arguments: &str) -> String {
        let outcome = self.call(tool, arguments);
        assert!(outcome.asks(), "{outcome:?}");
        let json: Value = serde_json::from_str(&outcome.to_json().expect("it can be written")).expect("JSON");
        json["data"]["confirm_token"].as_str().expect("a token").to_owned()
    }

    fn redeem(&self, tool: &str, token: &str) -> Option<Code> {
        self.gate.call(&CallContext::cli("r-2"), Request { tool, arguments: b"", token: Some(token) }).code()
    }
}

fn json_of(outcome: &Outcome<'_>) -> Value {
    serde_json::from_str(&outcome.to_json().expect("it can be written")).expect("JSON")
}

#[test]
fn a_call_goes_through() {
    let world = plain();
    let json = json_of(&world.call("read", r#"{"n":5000}"#));
    assert_eq!(json["success"], true);
    assert_eq!(json["data"], 100);
    assert_eq!(json["meta"]["clamped"][0], json!({"field": "n", "from": "5000", "to": "100"}));
    assert_eq!(json["meta"]["effect"], "done");
    let lines = world.log.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["args"]["n"], 100);
}

/// X3, L2, L4: a tool that panics is contained, its text reaches the record and not the caller, and the gate goes on.
#[test]
fn x3_a_panicking_tool_is_contained() {
    callgate_std::contain::quiet_contained_panics();
    let world = plain();
    for tool in ["panics", "fails"] {
        let json = json_of(&world.call(tool, r#"{"n":1}"#));
        assert_eq!(json["meta"]["code"], "INTERNAL_ERROR");
        assert_eq!(json["meta"]["effect"], "unknown");
        assert!(!json.to_string().contains("CANARY"), "{json}");
    }
    assert_eq!(world.log.lines().len(), 2);
    assert!(world.call("read", r#"{"n":1}"#).success());
    let json = json_of(&world.call("missing", r#"{"n":1}"#));
    assert_eq!(
        (&json["meta"]["code"], &json["error"], &json["meta"]["effect"]),
        (&json!("NOT_FOUND"), &json!("no such row"), &json!("none"))
    );
}

/// REG-30, REG-31: 20 mutating or 100 reading calls, and not one more; each tool and principal on its own.
#[test]
fn the_default_quota_is_a_hundred_units_a_minute() {
    let world = plain();
    for (tool, count) in [("write", 20), ("read", 100)] {
        for _ in 0..count {
            assert!(world.call(tool, r#"{"n":1}"#).success());
        }
        let limited = json_of(&world.call(tool, r#"{"n":1}"#));
        assert_eq!(limited["meta"]["code"], "RATE_LIMITED");
        let wait = limited["meta"]["retry_after_seconds"].as_u64().expect("when to come back");
        world.clock.advance(Duration::from_secs(wait));
        assert!(world.call(tool, r#"{"n":1}"#).success(), "who waits as told is let through");
    }
    let other = CallContext::cli("r-9").with_principal("somebody else");
    assert!(world.gate.call(&other, Request { tool: "write", arguments: br#"{"n":1}"#, token: None }).success());
}

/// O6, R3: refused calls have a budget of their own and starve nobody.
#[test]
fn r3_refused_calls_do_not_starve_good_ones() {
    let world = plain();
    for _ in 0..100 {
        assert_eq!(world.call("read", "{}").code(), Some(Code::ValidationError));
    }
    assert_eq!(world.call("read", "{}").code(), Some(Code::RateLimited));
    assert_eq!(world.call("no.such.tool", "{}").code(), Some(Code::RateLimited));
    assert!(world.call("read", r#"{"n":1}"#).success());
    // The records keep the true reason.
    let last = world.log.lines().into_iter().nth(100).expect("a record");
    assert_eq!((&last["code"], &last["told"]), (&json!("VALIDATION_ERROR"), &json!("RATE_LIMITED")));
}

/// A5: one token, one run, however many threads present it.
#[test]
fn a5_racing_redemptions_run_once() {
    let world = plain();
    for round in 1..=50 {
        let token = world.token("ask", r#"{"n":7}"#);
        let wins: usize = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..4).map(|_| scope.spawn(|| world.redeem("ask", &token).is_none())).collect();
            racers.into_iter().map(|racer| usize::from(racer.join().expect("no panic"))).sum()
        });
        assert_eq!((wins, world.effects()), (1, round));
        world.clock.advance(Duration::from_secs(60));
    }
}

/// A2, A9: an approver who is not the requester, once.
#[test]
fn a2_an_approver_decides() {
    // A18: with nobody to answer, the call is refused at once.
    assert_eq!(plain().call("approve", r#"{"n":7}"#).code(), Some(Code::NoApprover));
    let world = world(GateBuilder::with_approvers);
    let outcome = json_of(&world.call("approve", r#"{"n":7}"#));
    let ticket = outcome["data"]["approval_id"].as_str().expect("an id").parse().expect("a digest");
    let token = outcome["data"]["confirm_token"].as_str().expect("a token").to_owned();
    assert_eq!(world.redeem("approve", &token), Some(Code::ApprovalPending));
    let boss = CallContext::web("r-3", Some("boss"), Scopes::new("approve"));
    assert!(matches!(
        world.gate.decide(ticket, Verdict::Approve, &CallContext::cli("r")),
        Err(DecideFault::Refused(_))
    ));
    world.gate.decide(ticket, Verdict::Deny, &boss).expect("a decision");
    assert!(world.gate.decide(ticket, Verdict::Approve, &boss).is_err(), "A9: the first decision stands");
    assert_eq!(world.redeem("approve", &token), Some(Code::ApprovalDenied));
    assert_eq!(world.effects(), 0);
}

/// The soft timeout: late is told, and late is not undone.
#[test]
fn a_late_tool_is_told_as_late() {
    let world = plain();
    let json = json_of(&world.call("slow", r#"{"n":1}"#));
    assert_eq!(json["success"], true);
    assert_eq!(json["meta"]["timeout_exceeded"], true);
    assert_eq!(json["meta"]["execution_time"], 0.025);
    assert_eq!(json["meta"]["timeout_limit"], 0.01);
}

/// G8: a tool that calls a tool opens a call of its own, with its parent's name on it; without end it does not go.
#[test]
fn g8_nested_calls_pass_the_gate() {
    let world = plain();
    let json = json_of(&world.call("nest", r#"{"n":1}"#));
    assert_eq!(json["data"]["inner"], 100, "clamped like any other call");
    let lines = world.log.lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["parent"], "r-1");
    assert_ne!(lines[0]["request_id"], "r-1");
    world.call("recurse", r#"{"n":1}"#);
    let lines = world.log.lines();
    let refused: Vec<_> = lines.iter().filter(|line| line["end"] == "too_deep").collect();
    assert_eq!(refused.len(), 1);
}

/// O7, E2: a cache serves the same caller with the same call, and nobody else; who is denied never reaches it.
#[test]
fn e2_a_cache_is_asked_for_whom() {
    let clock = ManualClock::new();
    let cache = Arc::new(ResultCache::new(60_000, 2, clock.shared()));
    let world = world(|builder| builder.clock(clock.shared()).cache(cache.clone()));
    let call = |caller: &CallContext<'_>, tool: &str, arguments: &str| {
        let outcome = world.gate.call(caller, Request { tool, arguments: arguments.as_bytes(), token: None });
        outcome.to_json().expect("it can be written").contains(r#""cache_served":true"#)
    };
    let ann = CallContext::web("r-1", Some("ann"), Scopes::new("read write"));
    assert!(!call(&ann, "read", r#"{"n":1}"#));
    assert!(call(&ann, "read", r#"{ "n": 1 }"#));
    assert!(call(&ann.with_scopes(Scopes::new("write read")), "read", r#"{"n":1}"#), "scopes are a set");
    assert!(call(&ann, "read", r#"{"n":0}"#), "clamped to the same value");
    assert_eq!(world.effects(), 1);
    for stranger in [
        ann.with_principal("bob"),
        ann.with_scopes(Scopes::new("read")),
        CallContext { channel: "cli", ..ann },
        CallContext { tenant: Some("t"), ..ann },
        CallContext { session: Some("s"), ..ann },
    ] {
        assert!(!call(&stranger, "read", r#"{"n":1}"#));
    }
    let nobody = CallContext::web("r-1", None, Scopes::NONE);
    assert_eq!(
        world.gate.call(&nobody, Request { tool: "read", arguments: br#"{"n":1}"#, token: None }).code(),
        Some(Code::Forbidden)
    );
    // What changes something is run every time, what is old is run again, and the room is bounded.
    assert!(!call(&ann, "write", r#"{"n":1}"#) && !call(&ann, "write", r#"{"n":1}"#));
    assert!(!call(&ann, "read", r#"{"n":2}"#) && call(&ann, "read", r#"{"n":2}"#));
    world.clock.advance(Duration::from_secs(1));
    clock.advance(Duration::from_secs(60));
    assert!(!call(&ann, "read", r#"{"n":2}"#));
    assert_eq!(cache.len(), 2);
}

/// V22: what a tool that failed would have returned is not held to its output schema.
#[test]
fn v22_a_failure_is_not_checked_as_a_result() {
    let registry = Registry::builder()
        .add(
            Tool::builder("half")
                .description("Fails for 1")
                .output_schema(Schema::integer())
                .const_schema(Schema::object(PROPERTIES))
                .handler(|call| match call.args().get("n").and_then(|n| n.as_number()?.as_u64()) {
                    Some(1) => Err(Failure::new("no")),
                    Some(2) => Ok(Reply::new("not an integer")),
                    _ => Ok(Reply::new(3)),
                }),
        )
        .build()
        .expect("a good tool");
    let gate = Gate::builder(registry).build().expect("a gate");
    let code = |n: u8| {
        let arguments = format!(r#"{{"n":{n}}}"#);
        let request = Request { tool: "half", arguments: arguments.as_bytes(), token: None };
        let outcome = gate.call(&CallContext::cli("r"), request);
        (outcome.code(), outcome.effect())
    };
    assert_eq!(code(1), (Some(Code::InternalError), Effect::Unknown));
    assert_eq!(code(2), (Some(Code::OutputInvalid), Effect::Done), "O1");
    assert_eq!(code(3), (None, Effect::Done));
}

/// The reserved argument, where the host switched it on.
#[test]
fn a_token_may_come_as_the_reserved_argument() {
    let world = world(GateBuilder::accept_reserved_argument);
    let token = world.token("ask", r#"{"n":7}"#);
    let with_token = format!(r#"{{"n":9,"confirm_token":"{token}"}}"#);
    let json = json_of(&world.call("ask", &with_token));
    assert_eq!(json["data"], 7, "what is sent beside a token is inert");
    assert_eq!(world.call("ask", &with_token).code(), Some(Code::ConfirmationInvalid));
    assert_eq!(world.call("ask", r#"{"n":7,"confirm_token":5}"#).code(), Some(Code::ConfirmationInvalid));
    assert!(world.call("ask", r#"{"n":7,"confirm_token":null}"#).asks());
    // Where it is not switched on, the name is an unknown field like any other.
    assert_eq!(plain().call("ask", &with_token).code(), Some(Code::ValidationError));
}

/// Plug-ins that panic.
struct Bad;

impl Policy for Bad {
    fn decide(&self, _: &Subject<'_>) -> Decision<Arc<str>> {
        panic!("policy")
    }
}

impl RuleProvider for Bad {
    type Text = Arc<str>;

    fn find(&self, _: &Subject<'_>) -> Result<Option<Rule<Arc<str>>>, RuleFault> {
        panic!("rules")
    }
}

impl RateLimiter for Bad {
    fn charge(&self, _: &Charge<'_>) -> Result<Allowance, StoreFault> {
        panic!("limiter")
    }

    fn refund(&self, _: &Refund<'_>) -> Result<(), StoreFault> {
        panic!("limiter")
    }

    fn attempt(&self, _: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        panic!("limiter")
    }
}

impl ConfirmationStore for Bad {
    fn issue(&self, _: &PendingRequest<'_>, _: u64) -> Result<Issued, IssueFault> {
        panic!("store")
    }

    fn load(&self, _: callgate_core::digest::Digest) -> Result<Option<Loaded>, StoreFault> {
        panic!("store")
    }

    fn claim(&self, _: callgate_core::digest::Digest, _: &Presented) -> Result<Result<By, Refusal>, StoreFault> {
        panic!("store")
    }

    fn finish(&self, _: &Finish) -> Result<Result<(), FinishError>, StoreFault> {
        panic!("store")
    }

    fn withdraw(&self, _: callgate_core::digest::Digest) -> Result<(), StoreFault> {
        panic!("store")
    }

    fn decide(
        &self,
        _: callgate_core::digest::Digest,
        _: Verdict,
        _: &CallContext<'_>,
    ) -> Result<Decided, DecideFault> {
        panic!("store")
    }

    fn pending(&self, _: &CallContext<'_>, _: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        panic!("store")
    }
}

/// Fails for records of one kind.
struct Deaf(Kind);

impl Audit for Deaf {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        if record.kind == self.0 { panic!("audit") } else { Ok(()) }
    }
}

/// F1, J8, X3: whatever panics before the tool starts keeps it from starting.
#[test]
fn f1_a_panicking_plug_in_opens_nothing() {
    callgate_std::contain::quiet_contained_panics();
    let rules = || ChannelPolicies::builder().rule_provider(Bad).build().expect("a policy");
    let worlds = [
        (world(|builder| builder.policy(Bad)), Code::Forbidden),
        (world(|builder| builder.policy(rules())), Code::Forbidden),
        (world(|builder| builder.limiter(Arc::new(Bad))), Code::StoreUnavailable),
        (world(|builder| builder.confirmations(Arc::new(Bad))), Code::StoreUnavailable),
        (world(|builder| builder.audit(Arc::new(Deaf(Kind::Intent)))), Code::AuditUnavailable),
    ];
    for (world, code) in worlds {
        let tool = if code == Code::AuditUnavailable { "write" } else { "ask" };
        let outcome = world.call(tool, r#"{"n":1}"#);
        assert_eq!((outcome.code(), outcome.effect()), (Some(code), Effect::None));
        assert_eq!(world.effects(), 0);
    }
    let after = world(|builder| builder.audit(Arc::new(Deaf(Kind::Terminal))));
    let json = json_of(&after.call("write", r#"{"n":1}"#));
    assert_eq!((&json["success"], &json["meta"]["audit_pending"]), (&json!(true), &json!(true)));
    assert_eq!(after.effects(), 1);
}

/// P1: a forbid of the channel wins over what allows all; a rule that says so lifts it.
#[test]
fn p1_a_blocked_channel_stays_blocked() {
    struct Lift(bool);
    impl RuleProvider for Lift {
        type Text = Arc<str>;
        fn find(&self, _: &Subject<'_>) -> Result<Option<Rule<Arc<str>>>, RuleFault> {
            Ok(Some(Rule { overrides_block: self.0, ..Rule::new(7, RuleEffect::Allow) }))
        }
    }
    let policy = |lift| {
        ChannelPolicies::builder()
            .channel("cli", ChannelPolicy::new("").allowing_all().blocking_mutating())
            .rule_provider(Lift(lift))
            .build()
            .expect("a policy")
    };
    let blocked = world(|builder| builder.policy(policy(false)));
    let json = json_of(&blocked.call("write", r#"{"n":1}"#));
    assert_eq!(json["error"], "Mutating tool 'write' is blocked on channel 'cli' (block_mutating policy).");
    assert!(blocked.call("read", r#"{"n":1}"#).success());
    let lifted = world(|builder| builder.policy(policy(true)));
    assert!(lifted.call("write", r#"{"n":1}"#).success());
    assert_eq!(lifted.log.lines()[0]["rule"], 7);
}

/// R4: a plan says what would happen, redacted, and does nothing.
#[test]
fn r4_a_plan_is_redacted_and_does_nothing() {
    let world = plain();
    let caller = CallContext::cli("r-1").with_mode(Mode::Plan);
    let request = Request { tool: "ask", arguments: br#"{"n":500,"password":"hunter22"}"#, token: None };
    let json = json_of(&world.gate.call(&caller, request));
    assert_eq!(
        json["data"]["plan"],
        json!({"tool": "ask", "mutating": true, "requires_confirmation": true, "scopes_required": [], "timeout": 30,
            "args": {"n": 100, "password": "***REDACTED***"}})
    );
    assert_eq!(world.effects(), 0);
    assert!(!world.log.text().contains("hunter22"));
}

/// F7: what cannot work is not built.
#[test]
fn f7_a_gate_that_cannot_work_is_not_built() {
    let registry = Registry::builder().build().expect("no tools is a registry too");
    assert!(Gate::builder(registry).confirmation_ttl_ms(0).build().is_err());
}

/// A gate over one tool that stops when it is told to, with a switch for the caller.
fn stopping(failure: fn() -> Failure, late: bool) -> (World, Arc<AtomicU32>) {
    let gone = Arc::new(AtomicU32::new(0));
    let (asked, switched) = (gone.clone(), gone.clone());
    let (effects, clock, log) = (Arc::new(AtomicU32::new(0)), ManualClock::new(), Arc::new(Log::default()));
    let (ran, moved) = (effects.clone(), clock.clone());
    let tool =
        Tool::builder("stop").description("A tool under test").mutating().timeout(Duration::from_millis(10)).handler(
            move |call| {
                ran.fetch_add(1, Ordering::Relaxed);
                assert!(!call.is_cancelled());
                switched.fetch_add(1, Ordering::Relaxed);
                if late {
                    moved.advance(Duration::from_millis(10));
                }
                Err(failure())
            },
        );
    let gate = Gate::builder(Registry::builder().add(tool).build().expect("a good tool"))
        .clock(clock.shared())
        .audit(log.clone())
        .cancelled_when(move || asked.load(Ordering::Relaxed) == 1)
        .build()
        .expect("a good gate");
    (World { gate, log, effects, clock }, gone)
}

// X2, L4: a body can say that it was late or cancelled, and is believed when the gate sees it too.
#[test]
fn x2_a_body_that_stops_is_believed_when_the_gate_sees_why() {
    let ends = [
        (Failure::timed_out as fn() -> Failure, true, Code::Timeout, "timed_out"),
        (Failure::timed_out, false, Code::InternalError, "failed"),
        (Failure::cancelled, false, Code::Cancelled, "cancelled"),
    ];
    for (failure, late, code, end) in ends {
        let (world, _) = stopping(failure, late);
        let outcome = world.call("stop", "{}");
        assert_eq!((outcome.code(), outcome.effect()), (Some(code), Effect::Unknown), "{end}");
        assert_eq!(world.log.lines().last().expect("a record")["end"], end);
    }
    let (world, gone) = stopping(Failure::cancelled, false);
    gone.store(7, Ordering::Relaxed);
    assert_eq!(world.call("stop", "{}").code(), Some(Code::InternalError), "the gate's caller is still there");
}

// X4: nothing starts for a caller that is gone, and a record says so.
#[test]
fn x4_a_call_of_a_caller_that_is_gone_does_not_start() {
    let (world, gone) = stopping(Failure::cancelled, false);
    gone.store(1, Ordering::Relaxed);
    let outcome = world.call("stop", "{}");
    assert_eq!((outcome.code(), outcome.effect()), (Some(Code::Cancelled), Effect::None));
    assert_eq!(world.effects(), 0);
    assert_eq!(world.log.lines().len(), 1, "no intent");
}
