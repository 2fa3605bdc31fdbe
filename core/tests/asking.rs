//! A call that asks for a yes: what whoever is asked is shown of it, and whose yes it waits for.
#![cfg(test)]

use std::num::NonZeroU32;

use callgate_core::args::Args;
use callgate_core::call::{
    Asking, Call, Confirm, Covered, End, IssueFault, Issued, Load, Loaded, Lookup, Operate, Redeeming,
};
use callgate_core::clamp::Clamp;
use callgate_core::code::Effect;
use callgate_core::confirm::{Binding, By, Refusal, Token, call_digest, caller_digest, principal_digest};
use callgate_core::context::CallContext;
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::intercept::Interception;
use callgate_core::journal::Recalled;
use callgate_core::json::KeySlot;
use callgate_core::limit::{Allowance, Bucket, Quota};
use callgate_core::policy::{ChannelPolicy, ChannelTable, PolicyGate};
use callgate_core::request::{Envelope, Request, Settings};
use callgate_core::schema::{Property, Schema};
use callgate_core::time::{Now, Timestamp};
use callgate_core::tool::{ConfirmBy, FieldRule, Tool, ToolSpec, Violation};

const PROPERTIES: &[Property<'static>] = &[
    Property::optional("path", Schema::string()),
    Property::optional("n", Schema::integer()),
    Property::optional("m", Schema::integer()),
    Property::optional("password", Schema::string()),
];
const SCHEMA: Schema<'static> = Schema::object(PROPERTIES);
const FIELDS: &[FieldRule<'static>] = &[
    FieldRule::clamp("/n", Clamp::range(1, 10)),
    FieldRule::clamp("/m", Clamp::range(1, 10)),
    FieldRule::secret("/password"),
];

struct Probe(ToolSpec<'static>);

impl Tool for Probe {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.0
    }

    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        SCHEMA.validate(args, report);
    }
}

type Stopped<'a, 't> = Confirm<Envelope<'a>, &'t Probe>;

fn spec() -> ToolSpec<'static> {
    ToolSpec::new("probe", "A tool under test").mutating().with_fields(FIELDS)
}

/// Takes a call of a tool to the confirmation, having paid 5, and gives what is needed there to `then`.
fn confirm<R>(
    spec: ToolSpec<'static>,
    caller: CallContext<'_>,
    arguments: &str,
    token: Option<Token>,
    then: impl FnOnce(Stopped<'_, '_>) -> R,
) -> R {
    let (key, probe) = (DigestKey::new([7; 32]), Probe(spec));
    let mut keys = [KeySlot::default(); 8];
    let text = token.map(|token| token.to_string());
    let request = Request { tool: "probe", arguments: arguments.as_bytes(), token: text.as_deref() };
    let call = Call::request(Envelope::new(caller, request, Settings::new(&key), &mut keys), Now::ZERO);
    let binding = Binding {
        tool: probe.definition(),
        arguments: probe.definition(),
        caller: caller_digest(&caller),
        principal: principal_digest(&caller),
    };
    let call = match call.resolve(Lookup::Found(&probe)) {
        Ok(Load::Fresh(call)) => call,
        Ok(Load::Stored(loading)) => loading
            .loaded(Ok(Some(Loaded { binding, usable: Ok(()), arguments: arguments.as_bytes() })))
            .expect("the ticket is the caller's"),
        Err(ended) => panic!("it is found: {ended:?}"),
    };
    let call = call.validate().expect("it fits");
    let channels = [ChannelPolicy::new("desk").without_auth().confirming_mutating().confirmed_by_approver()];
    let decision = PolicyGate::new(ChannelTable::over_defaults(&channels)).decide(&call.subject());
    let call = call.authorize(decision).expect("everybody may");
    let paid = if token.is_some() {
        Allowance::Unlimited
    } else {
        Quota::DEFAULT.charge(Bucket::FRESH, 5, Now::ZERO.monotonic)
    };
    let call = call.admit(Ok(paid)).and_then(Call::unless_planning).expect("there is room");
    then(call.confirm().expect("there is room for its keys"))
}

fn ask<R>(
    spec: ToolSpec<'static>,
    channel: &'static str,
    arguments: &str,
    then: impl FnOnce(Asking<Envelope<'_>, &Probe>) -> R,
) -> R {
    confirm(spec, CallContext::new(channel, "r-1").with_principal("u1"), arguments, None, |confirm| match confirm {
        Confirm::Ask(asking) => then(asking),
        other => panic!("it asks: {other:?}"),
    })
}

fn redeem<R>(then: impl FnOnce(Redeeming<Envelope<'_>, &Probe>) -> R) -> R {
    let (caller, token) = (CallContext::cli("r-1"), Token::from_random([3; 16]));
    confirm(spec().with_confirm(ConfirmBy::Caller), caller, "{}", Some(token), |confirm| match confirm {
        Confirm::Redeem(redeeming) => then(redeeming),
        other => panic!("it redeems: {other:?}"),
    })
}

/// A2: whose yes is needed, and which scope they need: the tool's own, or that of approvers where only the channel asks for one.
#[test]
fn a2_a_call_says_whose_yes_it_waits_for() {
    let approver = ConfirmBy::Approver { scope: "pay.approve" };
    for (confirm, channel, by, scope) in [
        (ConfirmBy::Caller, "cli", By::Caller, None),
        (approver, "cli", By::Approver, Some("pay.approve")),
        (approver, "desk", By::Approver, Some("pay.approve")),
        (ConfirmBy::Caller, "desk", By::Approver, Some("approve")),
        (ConfirmBy::Nobody, "desk", By::Approver, Some("approve")),
    ] {
        ask(spec().with_confirm(confirm).with_approvals(2), channel, "{}", |asking| {
            assert_eq!((asking.by(), asking.approver_scope()), (by, scope), "{confirm:?} on {channel}");
            assert_eq!(asking.approvals(), 2);
            assert_eq!(asking.caller().principal, Some("u1"));
        });
    }
}

/// D1, D2, K3, L2: an approver sees all that will run, each change of it, and no secret.
#[test]
fn d2_an_approver_sees_the_whole_call() {
    let long = "x".repeat(5_000);
    let arguments = format!(r#"{{"path":"{long}","n":500,"m":-2,"password":"hunter22"}}"#);
    ask(spec().with_confirm(ConfirmBy::Caller), "cli", &arguments, |asking| {
        let shown = asking.summary().to_string();
        let (call, clamped) = shown.split_once("; clamped: ").expect("it says what was clamped");
        assert!(call.starts_with("probe({") && call.ends_with("})"), "{call}");
        assert!(call.contains(&long), "D2: nothing is cut");
        assert!(call.contains(r#""n":10,"m":1"#), "D1: what will run: {call}");
        assert!(!shown.contains("hunter22"), "L2: {shown}");
        let changes: Vec<&str> = clamped.split(", ").collect();
        let [n, m] = changes.as_slice() else { panic!("two changes: {clamped}") };
        assert!(n.contains("500") && n.contains("10") && m.contains("-2"), "{clamped}");
        assert_eq!(asking.snapshot(), arguments.as_bytes());
    });
    ask(spec().with_confirm(ConfirmBy::Caller), "cli", r#"{"n":5}"#, |asking| {
        assert_eq!(asking.summary().to_string(), r#"probe({"n":5})"#);
    });
}

/// A4: a ticket is bound to the call that asks, and presented by the one that redeems, for as long as its tool may take.
#[test]
fn a4_a_ticket_is_bound_to_the_call_that_asks() {
    ask(spec().with_confirm(ConfirmBy::Caller).with_timeout_ms(7_000), "cli", r#"{"n":500}"#, |asking| {
        let (caller, presented) = (asking.caller(), asking.presented());
        assert_eq!(presented.binding, asking.binding());
        assert_eq!(presented.binding.tool, asking.call().tool().definition());
        assert_eq!(presented.binding.caller, caller_digest(&caller));
        assert_eq!(presented.binding.principal, principal_digest(&caller));
        assert_eq!((presented.call, presented.lease_ms), (call_digest("r-1"), asking.call().spec().lease_ms()));
    });
    redeem(|redeeming| {
        assert_eq!(redeeming.ticket(), Token::from_random([3; 16]).hash());
        assert_eq!(redeeming.presented().call, call_digest("r-1"));
        assert_eq!(redeeming.call().ticket(), Some(redeeming.ticket()));
    });
}

/// F1, F4, R7: what a store answers to a question. A call that asked keeps its charge, one that could not keeps 1.
#[test]
fn r7_a_call_that_asked_has_paid() {
    let issued = Issued { token: Token::from_random([5; 16]), expires_at: Timestamp::from_unix_millis(60_000) };
    for (answer, end, refund) in [
        (Ok(issued), "asked", None),
        (Err(IssueFault::Store), "store_fault", Some(4)),
        (Err(IssueFault::Full), "store_fault", Some(4)),
        (Err(IssueFault::NoApprover), "no_approver", Some(4)),
    ] {
        ask(spec().with_confirm(ConfirmBy::Caller), "cli", "{}", |asking| {
            let ended = asking.asked(answer);
            assert_eq!(ended.spec().map(|spec| spec.name), Some("probe"));
            let closed = ended.close(Now::ZERO);
            assert_eq!(closed.end().name(), end);
            let settlement = closed.settlement();
            assert_eq!(settlement.refund.map(|refund| refund.units), refund, "{end}");
            assert_eq!((settlement.attempt, settlement.withdraw, settlement.finish), (None, None, None), "{end}");
        });
    }
    ask(spec().with_confirm(ConfirmBy::Caller), "cli", "{}", |asking| {
        assert!(matches!(asking.no_approver().end(), End::NoApprover));
    });
    ask(spec().with_confirm(ConfirmBy::Caller), "cli", "{}", |asking| {
        assert!(matches!(asking.cancel().end(), End::Cancelled { started: false }));
    });
}

/// J4: what a call held of a ticket is settled when it ends, unless it is certain that it held nothing.
#[test]
fn j4_a_claim_that_may_have_been_taken_is_settled() {
    let ticket = Token::from_random([3; 16]).hash();
    let settled = |ended: callgate_core::call::Ended<Envelope<'_>, &Probe>| {
        let closed = ended.close(Now::ZERO);
        let finish = closed.settlement().finish;
        finish.map(|finish| (finish.ticket, finish.call, finish.effect))
    };
    let open = Some((ticket, call_digest("r-1"), Effect::None));
    redeem(|redeeming| assert_eq!(settled(redeeming.cancel()), open));
    redeem(|redeeming| {
        let ended = redeeming.redeemed(Err(callgate_core::call::StoreFault)).expect_err("the store failed");
        assert_eq!((ended.end().name(), settled(ended)), ("store_fault", open));
    });
    redeem(|redeeming| {
        let ended = redeeming.redeemed(Ok(Err(Refusal::Used))).expect_err("it is used");
        assert_eq!((ended.end().name(), settled(ended)), ("refused", None));
    });
    redeem(|redeeming| {
        let ended = redeeming.unknown().expect_err("there is none");
        assert!(matches!(ended.end(), End::Refused(Refusal::Unknown)));
        assert_eq!(settled(ended), None);
    });
    redeem(|redeeming| {
        let call = redeeming.redeemed(Ok(Ok(By::Caller))).expect("it was claimed");
        assert_eq!(settled(call.cancel()), open);
    });
}

/// A7, P7: a call that a standing grant covers goes on, and its record says by what.
#[test]
fn a7_a_call_under_a_grant_says_so() {
    let ticket = Token::from_random([4; 16]).hash();
    ask(spec().with_confirm(ConfirmBy::Approver { scope: "pay.approve" }), "cli", "{}", |asking| {
        let call = asking.granted(Covered { ticket, grant: Digest::of_bytes(b"a grant") });
        assert_eq!(call.ticket(), Some(ticket));
        let closed = call.cancel().close(Now::ZERO);
        let finish = closed.settlement().finish;
        assert_eq!(finish.map(|finish| (finish.ticket, finish.effect)), Some((ticket, Effect::None)));
        let record = closed.record();
        assert_eq!((record.granted, record.confirmed_by), (true, Some(By::Approver)));
        let mut text = String::new();
        record.write_json(&mut text).expect("a string takes all");
        assert!(text.contains(r#""confirmed_by":"grant""#), "{text}");
    });
}

/// A2: where an approver is asked for now, the caller's own yes of before does not do.
#[test]
fn a2_what_is_demanded_now_counts() {
    let (caller, token) = (CallContext::cli("r-1"), Token::from_random([3; 16]));
    for (now, by, good) in [
        (ConfirmBy::Approver { scope: "x" }, By::Caller, false),
        (ConfirmBy::Approver { scope: "x" }, By::Approver, true),
        (ConfirmBy::Caller, By::Caller, true),
        (ConfirmBy::Caller, By::Approver, true),
        (ConfirmBy::Nobody, By::Caller, true),
    ] {
        confirm(spec().with_confirm(now), caller, "{}", Some(token), |confirm| {
            let Confirm::Redeem(redeeming) = confirm else { panic!("it redeems: {confirm:?}") };
            let end = redeeming.redeemed(Ok(Ok(by))).map_err(|ended| ended.end().name());
            assert_eq!(end.as_ref().err(), (!good).then_some(&"refused"), "{now:?} {by}");
        });
    }
}

/// A5, J4: a token that was shown to an operation that was made is withdrawn, unless the call claimed it before it found out: then it is
/// settled as what it is, spent on nothing.
#[test]
fn a5_a_token_shown_to_an_operation_that_was_made_is_used_up() {
    let (key, probe) = (DigestKey::new([7; 32]), Probe(spec().with_confirm(ConfirmBy::Caller)));
    let (caller, token) = (CallContext::cli("r-1").with_principal("u1"), Token::from_random([3; 16]));
    let text = token.to_string();
    let tool = probe.definition();
    let (caller_digest, principal) = (caller_digest(&caller), principal_digest(&caller));
    let binding = Binding { tool, arguments: tool, caller: caller_digest, principal };
    for claims in [false, true] {
        let mut keys = [KeySlot::default(); 8];
        let request = Request { tool: "probe", arguments: b"{}", token: Some(&text) };
        let envelope = Envelope::new(caller, request, Settings::new(&key), &mut keys).of_operation("op-1");
        let Ok(Load::Stored(loading)) = Call::request(envelope, Now::ZERO).resolve(Lookup::Found(&probe)) else {
            panic!("it brings a token")
        };
        let call = loading
            .loaded(Ok(Some(Loaded { binding, usable: Ok(()), arguments: b"{}".as_slice() })))
            .and_then(Call::validate)
            .expect("the ticket is the caller's");
        let decision = PolicyGate::new(ChannelTable::DEFAULTS).decide(&call.subject());
        let call = call.authorize(decision).expect("everybody may").admit(Ok(Allowance::Unlimited));
        let call = call.and_then(Call::unless_planning).expect("there is room");
        let asked = call.recall().expect("somebody known asks");
        assert!(format!("{asked:?}").starts_with("Ask("), "{asked:?}");
        let Operate::Ask(operating) = asked else { panic!("it is of an operation") };
        assert_eq!(operating.operation(), "op-1");
        let ended = if claims {
            let call = operating.recalled(Ok(Ok(Recalled::Free(NonZeroU32::MIN)))).expect("it was not made yet");
            let Ok(Confirm::Redeem(redeeming)) = call.confirm() else { panic!("it redeems") };
            let call = redeeming.redeemed(Ok(Ok(By::Caller))).expect("it was claimed");
            let Ok(Operate::Ask(operating)) = call.intercept(Interception::Continue).and_then(Call::claim) else {
                panic!("it claims")
            };
            operating.claimed(Ok(Ok(Recalled::Completed("made")))).expect_err("it was made meanwhile")
        } else {
            operating.recalled(Ok(Ok(Recalled::Completed("made")))).expect_err("it was made before")
        };
        assert_eq!(ended.end().name(), "replayed");
        let closed = ended.close(Now::ZERO);
        let settlement = closed.settlement();
        assert_eq!(settlement.withdraw, (!claims).then_some(token.hash()));
        let finish = settlement.finish.map(|finish| (finish.ticket, finish.effect));
        assert_eq!(finish, claims.then_some((token.hash(), Effect::None)));
    }
}
