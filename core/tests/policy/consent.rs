//! Who confirms, and what counts as consent.

use callgate_core::args::Args;
use callgate_core::context::{CallContext, Mode, Scopes, SignedConsent};
use callgate_core::digest::Digest;
use callgate_core::policy::{
    By, ChannelPolicy, ChannelTable, Check, ConsentBy, ConsentGrant, Decision, GRANT_SKEW_MS, GrantedArgs, NoRules,
    Permission, PolicyGate, Subject, Uncovered, confirmation_asked, confirmation_required, consent,
};
use callgate_core::time::Timestamp;
use callgate_core::tool::{ConfirmBy, ToolSpec};

use crate::fixture::{NOW, decide, definition, digest, read, refused, subject};

const SET: ToolSpec<'static> = ToolSpec::new("config.set", "Sets a value").mutating().with_confirm(ConfirmBy::Caller);
const APPROVED: ToolSpec<'static> =
    ToolSpec::new("config.wipe", "Removes all").mutating().with_confirm(ConfirmBy::Approver { scope: "approve" });
const WRITE: ToolSpec<'static> = ToolSpec::new("notes.write", "Writes a note").mutating();
const READ: ToolSpec<'static> = ToolSpec::new("notes.read", "Reads notes");

const CHANNELS: &[ChannelPolicy<'static>] = &[
    ChannelPolicy::new("cli").without_auth().requiring_consent(),
    ChannelPolicy::new("bot").confirming_mutating(),
    ChannelPolicy::new("bank").confirming_mutating().confirmed_by_approver(),
];
const GATE: PolicyGate<'static> = PolicyGate::new(ChannelTable::over_defaults(CHANNELS));

/// A grant of the local shell for a tool, whatever its arguments.
fn grant(spec: &ToolSpec<'static>) -> ConsentGrant<'static> {
    ConsentGrant {
        tool: spec.name,
        definition: definition(spec),
        tenant: None,
        principal: "local-shell",
        session: None,
        granted_at: NOW,
        expires_at: NOW.saturating_add_millis(1),
        uses_left: None,
        arguments: GrantedArgs::Any,
        provenance: "asked in the terminal",
    }
}

fn with_grants<'a>(grants: &'a [ConsentGrant<'a>]) -> CallContext<'a> {
    let mut caller = CallContext::cli("r1");
    caller.grants = grants;
    caller
}

fn signed(tool: &'static str, arguments: &str) -> CallContext<'static> {
    let mut caller = CallContext::cli("r1");
    caller.signature = Some(SignedConsent { signer: "ABCD (u1)", tool, arguments: digest(arguments) });
    caller
}

fn permitted(decision: Decision<&'static str>) -> Permission {
    match decision {
        Decision::Allow(permission) => permission,
        Decision::Deny(denial) => panic!("should be permitted: {denial:?}"),
    }
}

#[test]
fn without_consent_a_call_that_needs_it_is_refused() {
    let cli = CallContext::cli("r1");
    let (denial, sentence) = refused(decide(&GATE, &NoRules, cli, &SET), cli, &SET);
    assert_eq!(denial.check(), Check::Consent);
    assert_eq!(
        sentence,
        "'config.set' needs explicit consent and channel 'cli' takes consent as a signature naming this call — none was \
         presented."
    );
    // Nothing that a caller is called is consent.
    let named = cli.with_principal("0123456789ABCDEF0123456789ABCDEF01234567 (u1)");
    assert_eq!(refused(decide(&GATE, &NoRules, named, &SET), named, &SET).0.check(), Check::Consent);
    assert_eq!(refused(decide(&GATE, &NoRules, with_grants(&[]), &SET), cli, &SET).0.check(), Check::Consent);
    // Work that needs no confirmation goes on unattended.
    assert!(decide(&GATE, &NoRules, cli, &WRITE).is_allowed());
    assert!(decide(&GATE, &NoRules, cli, &READ).is_allowed());
}

#[test]
fn a_grant_is_consent_to_its_tool_and_no_question_follows() {
    let other = ToolSpec::new("plugins.register", "Registers").with_confirm(ConfirmBy::Caller);
    let third = ToolSpec::new("plugins.remove", "Removes").with_confirm(ConfirmBy::Caller);
    let grants = [grant(&SET), grant(&other)];
    let permission = permitted(decide(&GATE, &NoRules, with_grants(&grants), &SET));
    assert_eq!((permission.confirm, permission.consent), (None, Some(ConsentBy::Grant { index: 0 })));
    let permission = permitted(decide(&GATE, &NoRules, with_grants(&grants), &other));
    assert_eq!(permission.consent, Some(ConsentBy::Grant { index: 1 }));
    let caller = with_grants(&grants);
    assert_eq!(refused(decide(&GATE, &NoRules, caller, &third), caller, &third).0.check(), Check::Consent);
}

/// A7: no folding of names, and no tool that took over the name.
#[test]
fn a7_a_grant_names_one_definition_of_one_tool() {
    for name in ["config_set", "config:set", "CONFIG.SET", "config.set2"] {
        let spec = ToolSpec { name, ..SET };
        let grants = [grant(&SET), ConsentGrant { definition: definition(&spec), ..grant(&SET) }];
        let caller = with_grants(&grants);
        assert!(consent(&subject(caller, &spec, "{}")).is_none(), "{name}");
    }
    let changed = [ConsentGrant { definition: Digest::of_bytes(b"an earlier version"), ..grant(&SET) }];
    let subject = subject(with_grants(&changed), &SET, "{}");
    assert_eq!(changed[0].covers(&subject), Err(Uncovered::Definition));
}

/// Each thing that a grant names, changed alone.
#[test]
fn a7_a_grant_covers_only_what_it_names() {
    let mut caller = CallContext::cli("r1");
    (caller.session, caller.tenant) = (Some("s1"), Some("t1"));
    let good = ConsentGrant {
        session: Some("s1"),
        tenant: Some("t1"),
        uses_left: Some(1),
        arguments: GrantedArgs::Exactly(digest(r#"{"key":"safe"}"#)),
        ..grant(&SET)
    };
    let covers = |grant: ConsentGrant<'_>, caller, arguments| grant.covers(&subject(caller, &SET, arguments));
    let fits = r#"{"key":"safe"}"#;
    assert_eq!(covers(good, caller, fits), Ok(()));
    assert_eq!(covers(ConsentGrant { session: None, ..good }, caller, fits), Ok(()));
    assert_eq!(covers(ConsentGrant { tool: "config.get", ..good }, caller, fits), Err(Uncovered::Tool));
    assert_eq!(covers(ConsentGrant { principal: "u2", ..good }, caller, fits), Err(Uncovered::Caller));
    assert_eq!(covers(ConsentGrant { tenant: Some("t2"), ..good }, caller, fits), Err(Uncovered::Caller));
    assert_eq!(covers(ConsentGrant { tenant: None, ..good }, caller, fits), Err(Uncovered::Caller));
    assert_eq!(covers(ConsentGrant { session: Some("s2"), ..good }, caller, fits), Err(Uncovered::Session));
    assert_eq!(covers(ConsentGrant { uses_left: Some(0), ..good }, caller, fits), Err(Uncovered::UsedUp));
    assert_eq!(covers(good, caller, r#"{"key":"other"}"#), Err(Uncovered::Arguments));
    let blind = Subject { arguments: None, ..subject(caller, &SET, fits) };
    assert_eq!(good.covers(&blind), Err(Uncovered::Arguments));
    caller.session = None;
    assert_eq!(covers(good, caller, fits), Err(Uncovered::Session));
    // Nobody's grant is for nobody.
    caller.principal = Some("");
    assert_eq!(covers(ConsentGrant { principal: "", session: None, ..good }, caller, fits), Err(Uncovered::Caller));
}

/// A10, C4: one tick before, at, and after each border.
#[test]
fn a10_a_grant_ends_at_its_expiry_and_not_after() {
    let at = |millis: i64| Timestamp::from_unix_millis(NOW.as_unix_millis().saturating_add_signed(millis));
    let grant = ConsentGrant { granted_at: at(0), expires_at: at(10_000), ..grant(&SET) };
    let covers = |now| {
        let subject = Subject { now, ..subject(CallContext::cli("r1"), &SET, "{}") };
        grant.covers(&subject)
    };
    assert_eq!(
        [9_999, 10_000, 10_001].map(|ms| covers(at(ms))),
        [Ok(()), Err(Uncovered::Expired), Err(Uncovered::Expired)]
    );
    let skew = i64::try_from(GRANT_SKEW_MS).unwrap();
    assert_eq!([-skew, -skew - 1].map(|ms| covers(at(ms))), [Ok(()), Err(Uncovered::NotYet)]);
}

/// The arguments that count are the call's own, clamped; not what somebody says of them.
#[test]
fn a7_granted_arguments_are_compared_with_those_of_the_call() {
    fn covers(granted: Args<'_>, arguments: &str) -> bool {
        let grant = ConsentGrant { arguments: GrantedArgs::Including(granted), ..grant(&SET) };
        let outcome = grant.covers(&subject(CallContext::cli("r1"), &SET, arguments));
        assert!(matches!(outcome, Ok(()) | Err(Uncovered::Arguments)));
        outcome.is_ok()
    }
    let granted = r#"{"key":"a","value":7}"#;
    for (granted, arguments, covered) in [
        (granted, r#"{"key":"a","value":7}"#, true),
        (granted, r#" { "value" : 7, "key" : "\u0061", "note": [] }"#, true),
        (granted, r#"{"key":"a","value":999}"#, false),
        (granted, r#"{"key":"a"}"#, false),
        (granted, r#"{"key":"a","value":7.0}"#, false),
        (granted, r#"{"key":"a","value":"7"}"#, false),
        (granted, r#"{"KEY":"a","value":7}"#, false),
        (r#"{"to":{"x":1,"y":[1,2]}}"#, r#"{"to":{"x":1,"y":[1,2]}}"#, true),
        (r#"{"to":{"x":1,"y":[1,2]}}"#, r#"{"to":{"x":1,"y":[1,2],"z":0}}"#, false),
        (r#"{"to":{"x":1,"y":[1,2]}}"#, r#"{"to":{"x":1,"y":[2,1]}}"#, false),
        (r#"{"to":null}"#, r#"{"to":null}"#, true),
        (r#"{"to":null}"#, r"{}", false),
        // F2: a grant for no arguments at all is for no call.
        (r"{}", r"{}", false),
        (r"{}", r#"{"key":"a"}"#, false),
    ] {
        assert_eq!(covers(read(granted), arguments), covered, "{granted} {arguments}");
    }
    // F5: more members than a grant may name.
    let many =
        |count: usize| format!("{{{}}}", (0..count).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(","));
    let (most, too_many) = (many(64), many(65));
    assert!(covers(read(&most), &most));
    assert!(!covers(read(&too_many), &too_many));
}

#[test]
fn a_signature_is_consent_to_the_one_call_it_names() {
    let decision = |caller, arguments| GATE.decide::<&'static str>(&subject(caller, &SET, arguments));
    let permission = permitted(decision(signed("config.set", "{}"), "{}"));
    assert_eq!((permission.confirm, permission.consent), (None, Some(ConsentBy::Signature)));
    for (caller, arguments) in [
        (signed("config.get", "{}"), "{}"),
        (signed("config.set", r#"{"key":"a"}"#), "{}"),
        (signed("config.set", "{}"), r#"{"key":"a"}"#),
    ] {
        assert_eq!(refused(decision(caller, arguments), caller, &SET).0.check(), Check::Consent);
    }
    // Without the digest of the call's arguments nobody can tell, and so it is none.
    let caller = signed("config.set", "{}");
    let blind = Subject { arguments: None, ..subject(caller, &SET, "{}") };
    assert!(consent(&blind).is_none());
    assert!(Subject::wants_arguments_digest(&caller) && !Subject::wants_arguments_digest(&CallContext::cli("r1")));
}

#[test]
fn a_host_is_told_when_a_grant_needs_the_digest() {
    let exact = [grant(&SET), ConsentGrant { arguments: GrantedArgs::Exactly(digest("{}")), ..grant(&SET) }];
    assert!(Subject::wants_arguments_digest(&with_grants(&exact)));
    assert!(!Subject::wants_arguments_digest(&with_grants(&[grant(&SET)])));
}

/// A2: nobody's own yes replaces an approver's.
#[test]
fn a2_consent_never_stands_for_an_approver() {
    let grants = [grant(&APPROVED)];
    let permission = permitted(decide(&GATE, &NoRules, with_grants(&grants), &APPROVED));
    assert_eq!((permission.confirm, permission.consent), (Some(By::Approver), Some(ConsentBy::Grant { index: 0 })));
    let mut caller = signed("notes.write", "{}").with_principal("u1");
    caller.channel = "bank";
    assert_eq!(permitted(decide(&GATE, &NoRules, caller, &WRITE)).confirm, Some(By::Approver));
}

/// On a channel that only asks, consent spares the question; for every call that it does not name, it is asked.
#[test]
fn consent_spares_the_question_on_every_channel() {
    let mut caller = signed("notes.write", "{}").with_principal("u1");
    caller.channel = "bot";
    assert_eq!(permitted(decide(&GATE, &NoRules, caller, &WRITE)).confirm, None);
    assert_eq!(permitted(decide(&GATE, &NoRules, caller, &SET)).confirm, Some(By::Caller));
    caller.signature = None;
    assert_eq!(permitted(decide(&GATE, &NoRules, caller, &WRITE)).confirm, Some(By::Caller));
}

/// A dry run of a call that would need consent is planned, and says what is missing.
#[test]
fn r5_a_plan_tells_that_consent_is_missing() {
    let planning = CallContext::cli("r1").with_mode(Mode::Plan);
    let permission = permitted(decide(&GATE, &NoRules, planning, &SET));
    assert!(permission.consent_missing);
    assert_eq!(permission.confirm, Some(By::Caller));
    let grants = [grant(&SET)];
    let permission = permitted(decide(&GATE, &NoRules, with_grants(&grants).with_mode(Mode::Plan), &SET));
    assert!(!permission.consent_missing);
}

#[test]
fn the_stricter_of_tool_and_channel_says_who_confirms() {
    let plain = ChannelPolicy::new("c");
    let asks = plain.confirming_mutating();
    let raises = plain.confirmed_by_approver();
    for (spec, channel, asked) in [
        (READ, plain, None),
        (WRITE, plain, None),
        (SET, plain, Some(By::Caller)),
        (APPROVED, plain, Some(By::Approver)),
        (READ, asks, None),
        (WRITE, asks, Some(By::Caller)),
        (APPROVED, asks, Some(By::Approver)),
        (READ.with_confirm(ConfirmBy::Caller), asks, Some(By::Caller)),
        (WRITE, raises, None),
        (SET, raises, Some(By::Approver)),
        (WRITE, asks.confirmed_by_approver(), Some(By::Approver)),
    ] {
        assert_eq!(confirmation_asked(&spec, &channel), asked, "{} on {channel:?}", spec.name);
        assert_eq!(confirmation_required(&spec, &channel, false), asked);
        assert_eq!(confirmation_required(&spec, &channel, true), asked.filter(|by| *by == By::Approver));
    }
}

#[test]
fn telegram_confirms_what_is_mutating() {
    let gate = PolicyGate::new(ChannelTable::DEFAULTS);
    let chat = CallContext::telegram("r1", "chat:1");
    assert_eq!(permitted(decide(&gate, &NoRules, chat, &WRITE)).confirm, Some(By::Caller));
    assert_eq!(permitted(decide(&gate, &NoRules, chat, &READ)).confirm, None);
    let cli = CallContext::cli("r1");
    assert_eq!(permitted(decide(&gate, &NoRules, cli, &SET)).confirm, Some(By::Caller));
    let scoped = WRITE.with_scopes(Scopes::new("write"));
    assert!(decide(&gate, &NoRules, chat, &scoped).is_allowed());
}
