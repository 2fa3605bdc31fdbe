//! Calls to each kind of end, both ways, and what must stand in their outcomes and in the log.

use callgate_core::audit::chain::Head;
use callgate_core::confirm::Verdict;
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::fixed::{AuditRing, Buffer, DecideFault};

use crate::buffer::{Has as _, has};
use crate::host::{Door, Host, Mood, Sent};
use crate::{Checked, say};

macro_rules! checks {
    ($($name:ident = $number:literal,)+) => {
        /// What is checked; the number is the exit status of a program in which it failed.
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(i32)]
        pub(crate) enum Check { $($name = $number,)+ }

        impl Check {
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

checks! {
    RoomForAnOutcome = 10,
    Success = 11,
    Clamped = 12,
    SecretKept = 13,
    Malformed = 14,
    Invalid = 15,
    UnknownTool = 16,
    Denied = 17,
    DeniedByRule = 18,
    Planned = 19,
    Vetoed = 20,
    Answered = 21,
    Failed = 22,
    Asked = 23,
    Redeemed = 24,
    RedeemedTwice = 25,
    Limited = 26,
    AuditDown = 27,
    Runs = 28,
    Chain = 29,
    Records = 30,
    DoorsAgree = 31,
    Rules = 40,
    Schemas = 41,
    Plans = 42,
    Texts = 43,
    Numbers = 44,
    Consent = 45,
    Faults = 46,
    Values = 47,
    Approved = 48,
    Spent = 49,
    Tail = 50,
}

pub(crate) fn all() -> Checked {
    let mut stages = Host::new(Door::Stages);
    let mut steps = Host::new(Door::Steps);
    let mut transcripts = (Buffer::new(), Buffer::new());
    for (host, transcript) in [(&mut stages, &mut transcripts.0), (&mut steps, &mut transcripts.1)] {
        let checked = calls(host, transcript);
        if checked.is_err() {
            say(host.outcome.as_str());
            say("\n");
        }
        checked?;
    }
    // N1: the same inputs give the same bytes, whichever door they came through.
    let same = stages.log.head() == steps.log.head() && transcripts.0.as_str() == transcripts.1.as_str();
    if same { Ok(()) } else { Err(Check::DoorsAgree) }
}

/// All outcomes of one host, one a line.
type Transcript = Buffer<16_384>;

fn shell() -> CallContext<'static> {
    CallContext::cli("r-1")
}

fn calls(host: &mut Host, transcript: &mut Transcript) -> Checked {
    let read = |arguments| Sent { tool: "valve.read", arguments, token: None, caller: shell() };
    let mut expect = |host: &mut Host, check: Check, sent: &Sent<'_>, texts: &[&str]| -> Checked {
        use core::fmt::Write as _;
        if !host.call(sent) || writeln!(transcript, "{}", host.outcome.as_str()).is_err() {
            return Err(Check::RoomForAnOutcome);
        }
        if texts.iter().all(|text| host.outcome.has(text)) { Ok(()) } else { Err(check) }
    };

    let whole = r#"{"valve":"nord \u00221\"","percent":5e2,"mode":"fast","window":[-1,2],"api_key":"hunter2-hunter2"}"#;
    expect(host, Check::Success, &read(whole), &[r#""success":true,"data":"all as sent""#, r#""effect":"done""#])?;
    if !host.outcome.has(r#""clamped":[{"field":"percent","from":"500"#) {
        return Err(Check::Clamped);
    }
    expect(host, Check::Success, &read(r#"{"valve":"süd","speed":0.25}"#), &[r#""data":"moved""#])?;

    let malformed = [r#"{"valve":"a","v\u0061lve":"b"}"#, "[]", r#"{"valve":"a""#, r#"{"speed":1e400}"#, "\u{7f}"];
    for arguments in malformed {
        expect(host, Check::Malformed, &read(arguments), &["VALIDATION_ERROR", "malformed_arguments"])?;
    }
    let invalid = r#"{"valve":7,"speeed":-0.5,"percent":1.5,"mode":"warp"}"#;
    expect(host, Check::Invalid, &read(invalid), &["VALIDATION_ERROR", "did you mean speed?"])?;
    let unknown = Sent { tool: "valve\u{202e}", ..read("{}") };
    expect(host, Check::UnknownTool, &unknown, &["TOOL_NOT_FOUND"])?;

    let valve = r#"{"valve":"a"}"#;
    let nobody = Sent { caller: CallContext::web("r-2", None, Scopes::new("read")), ..read(valve) };
    expect(host, Check::Denied, &nobody, &["FORBIDDEN", "require_auth", r#""effect":"none""#])?;
    let unscoped = CallContext::web("r-3", Some("u1"), Scopes::new("read write"));
    let unscoped = Sent { tool: "valve.move", caller: unscoped, ..read(valve) };
    expect(host, Check::Denied, &unscoped, &["Missing required scope", "valves, admin"])?;
    let mallory = Sent { caller: shell().with_principal("mallory"), ..read(valve) };
    expect(host, Check::DeniedByRule, &mallory, &["not for Mallory"])?;

    let planned = Sent { tool: "valve.move", caller: shell().with_mode(Mode::Plan), ..read(whole) };
    expect(host, Check::Planned, &planned, &[r#""plan":{"tool":"valve.move","mutating":true"#, "REDACTED"])?;

    host.mood = Mood::Veto;
    expect(host, Check::Vetoed, &read(valve), &["VETOED", r#""blocked_by_rule":true"#])?;
    host.mood = Mood::Cached;
    expect(host, Check::Answered, &read(valve), &["as before", r#""cache_served":true"#])?;
    host.mood = Mood::Easy;

    expect(host, Check::Failed, &read(r#"{"valve":"stuck"}"#), &["INTERNAL_ERROR", r#""effect":"unknown""#])?;

    let asked = Sent { tool: "valve.open", ..read(r#"{"valve":"a","percent":101}"#) };
    expect(host, Check::Asked, &asked, &[r#""requires_confirmation":true"#, r#""effect":"none""#])?;
    let token = "01010101010101010101010101010101";
    if !host.outcome.has(token) {
        return Err(Check::Asked);
    }
    // What is sent beside the token is inert.
    let redeeming = Sent { token: Some(token), arguments: r#"{"valve":"other"}"#, ..asked };
    expect(host, Check::Redeemed, &redeeming, &[r#""confirmed_by":"self""#, r#""to":"100""#, r#""effect":"done""#])?;
    expect(host, Check::RedeemedTwice, &redeeming, &["CONFIRMATION_INVALID", r#""effect":"none""#])?;

    host.log_is_full = true;
    let moved = Sent { tool: "valve.move", ..read(valve) };
    expect(host, Check::AuditDown, &moved, &["AUDIT_UNAVAILABLE", r#""audit_pending":true"#])?;
    host.log_is_full = false;
    expect(host, Check::Limited, &moved, &["RATE_LIMITED", "retry_after_seconds"])?;

    // An approver of another principal, with the scope; whoever asked is none.
    let worker = CallContext::web("r-4", Some("u1"), Scopes::new("valves"));
    let drained = Sent {
        tool: "valve.drain",
        caller: worker,
        ..read(r#"{"valve":"a","percent":300,"api_key":"hunter2-hunter2"}"#)
    };
    expect(host, Check::Approved, &drained, &[r#""confirm_by":"approver""#, r#""approver_scope":"valves""#])?;
    let token = "02020202020202020202020202020202";
    let drained = Sent { token: Some(token), ..drained };
    expect(host, Check::Approved, &drained, &["APPROVAL_PENDING"])?;
    let boss = CallContext::web("r-5", Some("boss"), Scopes::new("valves"));
    let approved = host.decide(Verdict::Approve, &worker) == Err(DecideFault::Unknown)
        && host.shows(r#"valve.drain({"valve":"a","percent":100,"api_key":"***REDACTED***"})"#, &boss)
        && host.shows("; clamped: ", &boss)
        && host.decide(Verdict::Approve, &boss).is_ok()
        && host.decide(Verdict::Deny, &boss) == Err(DecideFault::Unknown);
    if !approved {
        return Err(Check::Approved);
    }
    expect(host, Check::Approved, &drained, &[r#""confirmed_by":"approver""#, r#""effect":"done""#])?;
    expect(host, Check::Spent, &read(valve), &["MAX_CALLS_EXCEEDED", r#""effect":"none""#])?;

    // Twice read, once failed, twice redeemed: nothing else ran.
    if host.runs != 5 {
        return Err(Check::Runs);
    }
    if has(transcript.as_str(), "hunter2-hunter2") {
        return Err(Check::SecretKept);
    }
    check_log(host)
}

/// Each line follows the one before it, and there is one for each call whose record the log took.
fn check_log(host: &Host) -> Checked {
    let texts = [r#""kind":"intent""#, r#""station":"authorize""#, r#""check":"used""#, r#""end":"planned""#];
    let whole = dump(&host.log)?;
    if texts.iter().any(|text| !whole.has(text)) || whole.has("hunter2-hunter2") {
        return Err(Check::Records);
    }
    // 25 calls, one of which found the log full; and the intents of the two mutating calls that ran.
    if host.log.overwritten() != 0 || host.log.lines() != 26 || host.tail.overwritten() < 20 {
        return Err(Check::Tail);
    }
    // The short log is the end of the long one.
    let tail = dump(&host.tail)?;
    if host.tail.head() == host.log.head() && whole.as_str().ends_with(tail.as_str()) {
        Ok(())
    } else {
        Err(Check::Tail)
    }
}

/// The lines of a ring, each of which follows the one before it.
fn dump<const BYTES: usize>(ring: &AuditRing<BYTES>) -> Result<Buffer<40_960>, Check> {
    use core::fmt::Write as _;
    let mut text = Buffer::new();
    let mut written = Ok(());
    ring.dump(|piece| {
        // Records are ASCII here, so that a piece is a text wherever it ends.
        let piece = core::str::from_utf8(piece).map_err(|_| core::fmt::Error);
        written = written.and(piece.and_then(|piece| text.write_str(piece)));
    });
    written.map_err(|_| Check::Chain)?;
    let mut head: Head = ring.before();
    #[expect(clippy::manual_pattern_char_comparison, reason = "the shorter form links a panic")]
    let lines = text.as_str().split(|c: char| c == '\n').filter(|line| !line.is_empty());
    for line in lines {
        head = head.verify(line).map_err(|_| Check::Chain)?;
    }
    if head == ring.head() { Ok(text) } else { Err(Check::Chain) }
}
