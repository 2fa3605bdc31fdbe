//! Calls that end in every way a call can, so that sinks and observers can be tried on real records.

use callgate_core::args::Args;
use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::call::{Call, Closed, Confirm, Ended, IssueFault, Issued, Load, Lookup, Ran, StoreFault, TurnAway};
use callgate_core::confirm::Token;
use callgate_core::context::{CallContext, Mode};
use callgate_core::digest::DigestKey;
use callgate_core::intercept::Interception;
use callgate_core::json::KeySlot;
use callgate_core::limit::Allowance;
use callgate_core::outcome::Outcome;
use callgate_core::policy::{ChannelTable, PolicyGate, Subject};
use callgate_core::request::{Envelope, Request, Settings};
use callgate_core::time::{Now, Timestamp};
use callgate_core::tool::{ConfirmBy, Tool, ToolFailure, ToolSpec, Violation};

/// What must never be written down: the suite's calls have it under a sensitive name, and in what tools and panics say.
pub(crate) const CANARY: &str = "CANARY-7f3a";

/// How a call is to end. The name is the record's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Case {
    pub(crate) end: &'static str,
    pub(crate) mutating: bool,
}

/// Every end that a call can have, and a mutating call that succeeds.
pub(crate) const CASES: &[Case] = &{
    const fn case(end: &'static str) -> Case {
        Case { end, mutating: false }
    }
    [
        case("bad_context"),
        case("too_deep"),
        case("shutdown"),
        case("overloaded"),
        case("spent"),
        case("not_found"),
        case("hidden"),
        case("malformed"),
        case("invalid"),
        case("denied"),
        case("limited"),
        case("store_fault"),
        case("planned"),
        case("asked"),
        case("no_approver"),
        case("refused"),
        case("vetoed"),
        case("interceptor_failed"),
        case("answered"),
        case("answer_invalid"),
        Case { end: "audit_unavailable", mutating: true },
        case("cancelled"),
        // After its tool has started.
        Case { end: "cancelled", mutating: true },
        case("no_room"),
        case("done"),
        Case { end: "done", mutating: true },
        Case { end: "failed", mutating: true },
        case("panicked"),
        Case { end: "timed_out", mutating: true },
        case("output_invalid"),
    ]
};

pub(crate) struct TestTool {
    spec: ToolSpec<'static>,
    end: &'static str,
}

pub(crate) struct Failure;

impl ToolFailure for Failure {
    fn detail(&self) -> &'static str {
        "could not connect with password=CANARY-7f3a\nforged line"
    }
}

impl Tool for TestTool {
    type Output = &'static str;
    type Failure = Failure;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.spec
    }

    fn validate(&self, _: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        if self.end == "invalid" {
            report(Violation { field: &"path", reason: &"is not a path" });
        }
    }

    fn validate_output(&self, _: &Self::Output, report: &mut dyn FnMut(Violation<'_>)) {
        if matches!(self.end, "output_invalid" | "answer_invalid") {
            report(Violation { field: &"", reason: &"is not what was promised" });
        }
    }
}

type Calling<'a> = Envelope<'a>;
type End<'a, 't> = Ended<Calling<'a>, &'t TestTool>;

/// Listens to what came of a call.
pub(crate) type OutcomeEar = dyn Fn(&Outcome<Envelope<'_>, &TestTool>);

/// What listens to a call on its way.
#[derive(Default)]
pub(crate) struct Ears<'e> {
    pub(crate) subject: Option<&'e dyn Fn(&Subject<'_>)>,
    pub(crate) terminal: Option<&'e dyn Fn(&Record<'_>)>,
    pub(crate) outcome: Option<&'e OutcomeEar>,
}

/// The arguments of the calls: a secret and something else.
pub(crate) const ARGUMENTS: &str = r#"{"path":"notes.txt","password":"CANARY-7f3a","n":[1,{"token":"CANARY-7f3a"}]}"#;

/// Takes a call of `tool` through the pipeline to the end that `case` names. Gives whether its terminal record was written.
pub(crate) fn drive(case: Case, request_id: &str, audit: &dyn Audit) -> Result<(), AuditFault> {
    drive_with(case, request_id, ARGUMENTS, audit, &Ears::default())
}

pub(crate) fn drive_with(
    case: Case,
    request_id: &str,
    arguments: &str,
    audit: &dyn Audit,
    ears: &Ears<'_>,
) -> Result<(), AuditFault> {
    let mut spec = ToolSpec::new("fs.write", "Writes a file");
    spec.mutating = case.mutating;
    if matches!(case.end, "asked" | "no_approver" | "no_room") {
        spec.confirm = ConfirmBy::Caller;
    }
    let tool = TestTool { spec, end: case.end };
    let mut caller = CallContext::new("cli", request_id).with_principal("alice");
    match case.end {
        "bad_context" => caller.session = Some("no session\n"),
        "too_deep" => caller.depth = 200,
        "denied" => caller.channel = "nowhere",
        "planned" => caller.mode = Mode::Plan,
        _ => {}
    }
    if case.end == "denied" {
        caller.principal = None;
    }
    let token = (case.end == "refused").then_some("no token");
    let arguments = match case.end {
        "malformed" => "{\"a\":",
        // With three keys there is room to read it and none to digest it.
        "no_room" => r#"{"a":{"b":{"c":1}},"d":[{"e":1},{"f":2}]}"#,
        _ => arguments,
    };
    let name = match case.end {
        "not_found" => "no such tool\n\u{1b}[2K",
        _ => "fs.write",
    };
    let request = Request { tool: name, arguments: arguments.as_bytes(), token };
    let key = DigestKey::new([7; 32]);
    let mut keys = vec![KeySlot::default(); if case.end == "no_room" { 3 } else { 64 }];
    let envelope = Envelope::new(caller, request, Settings::new(&key), &mut keys);
    let (Ok(ended) | Err(ended)) = stages(case, &tool, envelope, audit, ears);
    let closed: Closed<_, _> = ended.close(now(5));
    let record = closed.record();
    assert!(
        record.end == case.end || (case.mutating && record.end == "audit_unavailable"),
        "{} is not {}: the suite is wrong about how to get there",
        record.end,
        case.end
    );
    let written = audit.record(&record);
    if let Some(terminal) = ears.terminal {
        terminal(&record);
    }
    let outcome = closed.audited(written);
    if let Some(listen) = ears.outcome {
        listen(&outcome);
    }
    written
}

fn now(after_ms: u64) -> Now {
    let started = 1_767_225_600_000;
    Now {
        monotonic: callgate_core::time::Instant::from_nanos(1_000_000 * (1_000 + after_ms)),
        wall: Timestamp::from_unix_millis(started + after_ms),
    }
}

#[expect(clippy::result_large_err, reason = "as the pipeline has it")]
fn stages<'a, 't>(
    case: Case,
    tool: &'t TestTool,
    envelope: Calling<'a>,
    audit: &dyn Audit,
    ears: &Ears<'_>,
) -> Result<End<'a, 't>, End<'a, 't>> {
    let call = Call::request(envelope, now(0));
    let call = match case.end {
        "shutdown" => return Err(call.turn_away(TurnAway::Shutdown)),
        "overloaded" => return Err(call.turn_away(TurnAway::Overloaded)),
        "spent" => return Err(call.turn_away(TurnAway::Spent)),
        _ => call,
    };
    let found = match case.end {
        "not_found" => Lookup::Unknown,
        "hidden" => Lookup::Hidden,
        _ => Lookup::Found(tool),
    };
    let call = match call.resolve(found)? {
        Load::Fresh(call) => call,
        Load::Stored(loading) => loading.unknown()?,
    };
    let call = call.validate()?;
    let decision = PolicyGate::new(ChannelTable::DEFAULTS).decide(&call.subject());
    let call = call.authorize(decision)?;
    let allowance = match case.end {
        "limited" => Ok(Allowance::Refused { retry_after_ns: Some(7) }),
        "store_fault" => Err(StoreFault),
        _ => Ok(Allowance::Unlimited),
    };
    let call = call.admit(allowance)?.unless_planning()?;
    let call = match call.confirm()? {
        Confirm::NotNeeded(call) => call,
        Confirm::Redeem(redeeming) => redeeming.unknown()?,
        Confirm::Ask(asking) => {
            let token = Token::from_random([9; 16]);
            return Err(asking.asked(match case.end {
                "asked" => Ok(Issued { token, expires_at: Timestamp::from_unix_millis(1) }),
                _ => Err(IssueFault::NoApprover),
            }));
        }
    };
    if case.end == "cancelled" && !case.mutating {
        return Err(call.cancel());
    }
    if let Some(subject) = ears.subject {
        subject(&call.subject());
    }
    let verdict = match case.end {
        "vetoed" => Interception::Veto("not today"),
        "interceptor_failed" => Interception::Failed("interceptor x panicked: token=CANARY-7f3a"),
        "answered" | "answer_invalid" => Interception::Answer("from the cache"),
        _ => Interception::Continue,
    };
    let mut call = call.intercept(verdict)?;
    let recorded = call.intent().map_or(Ok(()), |intent| audit.record(&intent));
    let recorded = if case.end == "audit_unavailable" { Err(AuditFault) } else { recorded };
    let call = call.announce(recorded)?;
    Ok(call.execute(|_permit| {
        match case.end {
            "failed" => Ran::Failed(Failure),
            "panicked" => Ran::Panicked("panicked at password=CANARY-7f3a"),
            "timed_out" => Ran::TimedOut,
            "cancelled" => Ran::Cancelled,
            _ => Ran::Done("all is well"),
        }
        .after(1_000)
    }))
}
