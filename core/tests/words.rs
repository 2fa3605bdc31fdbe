//! What errors, refusals and names say: each something, and no two of one kind the same, so that whoever reads a record or a message
//! can tell them apart (invariant F4); and what must say nothing says nothing (invariants L1, A11). No prose is compared.
#![cfg(test)]
#![expect(clippy::string_slice, reason = "the texts are ASCII")]

use std::collections::BTreeSet;

use callgate_core::audit::chain::ChainError;
use callgate_core::audit::{Audit, AuditFault, Kind, Record};
use callgate_core::call::{Call, Lookup, StoreFault, TurnAway};
use callgate_core::confirm::{By, CancelError, DecideError, FinishError, ReconcileError, Refusal, TicketState, Token};
use callgate_core::context::CallContext;
use callgate_core::digest::{Digest, DigestBuilder, DigestKey};
use callgate_core::json::KeySlot;
use callgate_core::limit::{LimitKey, Quota, QuotaError};
use callgate_core::name::NameError;
use callgate_core::policy::{
    ChannelError, ChannelPolicy, ChannelTable, Check, Effect, RuleDef, RuleError, RuleFault, RuleProblem, Uncovered,
};
use callgate_core::request::{Context, Envelope, Request, Settings};
use callgate_core::step::Step;
use callgate_core::time::{Instant, Now, Timestamp};
use callgate_core::tool::{Tool, ToolSpec, Violation};

#[track_caller]
fn each_of_its_own<D: std::fmt::Display>(all: &[D]) {
    let texts: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert!(texts.iter().all(|text| text.trim().len() > 2), "{texts:?}");
    assert_eq!(texts.len(), all.len(), "{texts:?}");
}

#[test]
fn f4_each_refusal_and_error_has_words_of_its_own() {
    each_of_its_own(&[
        Refusal::Malformed,
        Refusal::Unknown,
        Refusal::Expired,
        Refusal::FromTheFuture,
        Refusal::Used,
        Refusal::Cancelled,
        Refusal::OtherTool,
        Refusal::OtherCaller,
        Refusal::OtherArguments,
        Refusal::Undecided,
        Refusal::Denied,
    ]);
    let undecided = [
        DecideError::OtherTenant,
        DecideError::NotAsked,
        DecideError::Unauthenticated,
        DecideError::OwnRequest,
        DecideError::MissingScope,
        DecideError::AlreadyApproved,
        DecideError::Expired,
        DecideError::Settled(TicketState::Denied),
    ];
    each_of_its_own(&undecided);
    each_of_its_own(&undecided.map(DecideError::as_str));
    each_of_its_own(&[FinishError::Unknown, FinishError::OtherCall, FinishError::Settled(TicketState::InDoubt)]);
    each_of_its_own(&[CancelError::Unknown, CancelError::Settled(TicketState::Denied)]);
    each_of_its_own(&[
        ReconcileError::Unknown,
        ReconcileError::Unauthenticated,
        ReconcileError::MissingScope,
        ReconcileError::NoProof,
        ReconcileError::StillUnknown,
        ReconcileError::NotInDoubt(TicketState::Pending),
    ]);
    each_of_its_own(&[
        ChainError::NotALine,
        ChainError::Edited,
        ChainError::OutOfSequence { expected: 7 },
        ChainError::OutOfSequence { expected: 8 },
        ChainError::BrokenLink,
    ]);
    each_of_its_own(&[QuotaError::NoLimit, QuotaError::NoWindow, QuotaError::NoBurst, QuotaError::TooLong]);
    each_of_its_own(&[RuleFault::Unavailable, RuleFault::TimedOut, RuleFault::Invalid, RuleFault::Panicked]);
    each_of_its_own(&[
        Uncovered::Tool,
        Uncovered::Definition,
        Uncovered::Caller,
        Uncovered::Session,
        Uncovered::NotYet,
        Uncovered::Expired,
        Uncovered::UsedUp,
        Uncovered::Arguments,
    ]);
    each_of_its_own(&[
        Check::RequireAuth,
        Check::Consent,
        Check::Scopes,
        Check::Requirements,
        Check::Rule,
        Check::BlockMutating,
        Check::UnknownChannel,
        Check::PolicyFault,
    ]);
    each_of_its_own(&[Effect::Allow, Effect::Deny]);
    each_of_its_own(&[By::Caller, By::Approver]);
    each_of_its_own(&[Kind::Intent.as_str(), Kind::Terminal.as_str(), Kind::Completion.as_str()]);
    let name = |index| ChannelError::Name { index, reason: NameError::Empty };
    each_of_its_own(&[name(0), name(1), ChannelError::Twice { index: 1 }]);
    let rule = |problem| RuleError { index: 0, id: 7, problem };
    each_of_its_own(&[
        rule(RuleProblem::Twice),
        rule(RuleProblem::Tenant),
        rule(RuleProblem::Channel),
        rule(RuleProblem::Principal),
        rule(RuleProblem::Tool),
        rule(RuleProblem::Scopes),
        rule(RuleProblem::Argument { test: 0 }),
        rule(RuleProblem::Argument { test: 1 }),
        rule(RuleProblem::LenientDeny),
    ]);
    assert!(!AuditFault.to_string().is_empty() && !StoreFault.to_string().is_empty());
}

/// What is not wrong is not told as wrong, and what is told names its place.
#[test]
fn f7_a_table_of_channels_tells_which_name_is_wrong() {
    let good = [ChannelPolicy::new("a"), ChannelPolicy::new("b")];
    assert_eq!(ChannelTable::new(&good).check(), Ok(()));
    let twice = [ChannelPolicy::new("a"), ChannelPolicy::new("b"), ChannelPolicy::new("a")];
    assert_eq!(ChannelTable::new(&twice).check(), Err(ChannelError::Twice { index: 2 }));
    let bad = [ChannelPolicy::new("a"), ChannelPolicy::new("")];
    assert!(matches!(ChannelTable::new(&bad).check(), Err(ChannelError::Name { index: 1, .. })));
    assert_eq!(RuleDef::deny(1).effect, Effect::Deny);
    assert_eq!(
        [Effect::parse("allow"), Effect::parse("deny"), Effect::parse("Allow")],
        [Some(Effect::Allow), Some(Effect::Deny), None]
    );
}

/// A11, S3: a token has one spelling, and every one of its bits counts.
#[test]
fn a11_a_token_is_its_thirty_two_digits() {
    let text = "0123456789abcdeffedcba9876543210";
    let token = Token::parse(text).expect("a token");
    assert_eq!(token.to_string(), text);
    let bits: [u8; 16] = std::array::from_fn(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap());
    assert_eq!(token, Token::from_random(bits));
    for bit in 0..128 {
        let mut other = bits;
        other[bit / 8] ^= 1 << (bit % 8);
        let other = Token::from_random(other);
        assert_ne!(other.to_string(), text);
        assert_ne!(other.hash(), token.hash());
        assert_eq!(Token::parse(&other.to_string()), Some(other));
    }
    for wrong in
        [&text[1..], &format!("{text}0"), &text.to_uppercase(), &text.replace('0', "g"), &text.replace('a', "`")]
    {
        assert_eq!(Token::parse(wrong), None, "{wrong}");
    }
    let shown = format!("{token:?}");
    assert!(!shown.is_empty() && !shown.contains(&text[..4]), "{shown}");
}

/// A digest is shown as what it is, and what goes into one is not shown at all.
#[test]
fn l1_digests_are_shown_and_their_parts_are_not() {
    let digest = Digest::of_bytes(b"");
    assert_eq!(format!("{digest:?}"), format!("Digest({digest})"));
    let mut builder = DigestBuilder::new(CANARY);
    builder.str(CANARY);
    let shown = format!("{builder:?}");
    assert!(shown.contains("DigestBuilder") && !shown.contains(CANARY), "{shown}");
    let wrong = CANARY.parse::<Digest>().expect_err("it is no digest").to_string();
    assert!(wrong.contains("64") && !wrong.contains(CANARY), "{wrong}");
}

/// The key of a budget shows whom it is for, and a quota what it allows.
#[test]
fn r6_keys_and_quotas_show_what_they_are() {
    let caller = CallContext::cli("r").with_principal("u1");
    let key = LimitKey::of_call(&caller, "fs.write").to_string();
    assert!(key.contains("cli") && key.contains("u1") && key.contains("fs.write"), "{key}");
    let attempts = LimitKey::of_attempts(&caller).to_string();
    assert!(attempts.contains("u1") && attempts != key, "{attempts}");
    let quota = Quota::new(7, 60_000, 3).unwrap();
    assert_eq!((quota.limit(), quota.window_ms(), quota.burst()), (7, 60_000, 3));
    let shown = quota.to_string();
    assert!(
        shown.contains('7') && shown.contains("60") && shown != Quota::new(8, 60_000, 3).unwrap().to_string(),
        "{shown}"
    );
}

struct Probe(ToolSpec<'static>);

impl Tool for Probe {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.0
    }

    fn validate(&self, _: callgate_core::args::Args<'_>, _: &mut dyn FnMut(Violation<'_>)) {}
}

const NOW: Now = Now { monotonic: Instant::from_nanos(5), wall: Timestamp::from_unix_millis(6) };
const CANARY: &str = "C4N4RY-f00d";

/// L1, A11: neither a call nor a step nor an outcome shows arguments or a token to whoever debugs, and each shows something.
#[test]
fn l1_a_call_shows_no_argument_and_no_token() {
    let key = DigestKey::new([1; 32]);
    let arguments = format!("{{\"note\":\"{CANARY}\"}}");
    let mut keys = [KeySlot::default(); 4];
    let token = "0123456789abcdef0123456789abcdef";
    let request = Request { tool: "probe", arguments: arguments.as_bytes(), token: Some(token) };
    let envelope = Envelope::new(CallContext::cli("r-1"), request, Settings::new(&key), &mut keys);
    let call = Call::request(envelope, NOW);
    assert_eq!(call.received(), NOW);
    assert_eq!(call.caller().request_id, "r-1");
    assert_eq!(call.context().request().tool, "probe");
    let shown = |shown: String| {
        assert!(!shown.is_empty() && !shown.contains(CANARY) && !shown.contains(token), "{shown}");
        shown
    };
    assert!(shown(format!("{call:?}")).contains("probe"));
    let step = call.found(Lookup::Found(Probe(ToolSpec::new("probe", "A tool under test"))));
    shown(format!("{step:?}"));
    let Step::Load(loading) = step else { panic!("it brings a token: {step:?}") };
    assert_eq!(loading.call().ticket(), loading.ticket());
    assert_eq!(loading.ticket(), Token::parse(token).map(Token::hash));
    shown(format!("{loading:?}"));
    let Step::Close(ended) = loading.answer(Ok(None)) else { panic!("an unknown ticket") };
    shown(format!("{ended:?}"));
    let Step::Settle(closed) = ended.answer(NOW) else { panic!("an attempt is charged") };
    let Step::Record(closed) = closed.settled(None) else { panic!("and recorded") };
    shown(format!("{:?}", closed.record()));
    let Step::Done(outcome) = closed.recorded(Ok(())) else { panic!("and handed out") };
    shown(format!("{outcome:?}"));
}

/// What a reference or a shared sink is given, the sink itself gets.
#[test]
fn j1_a_shared_sink_is_the_sink() {
    struct Refuses;
    impl Audit for Refuses {
        fn record(&self, _: &Record<'_>) -> Result<(), AuditFault> {
            Err(AuditFault)
        }
    }
    let key = DigestKey::new([1; 32]);
    let request = Request { tool: "probe", arguments: b"{}", token: None };
    let envelope = Envelope::new(CallContext::cli("r-1"), request, Settings::new(&key), &mut []);
    let ended = Call::request(envelope, NOW).turn_away::<Probe>(TurnAway::Shutdown);
    let closed = ended.close(NOW);
    let record = closed.record();
    fn give(sink: impl Audit, record: &Record<'_>) -> Result<(), AuditFault> {
        sink.record(record)
    }
    assert_eq!(give(&Refuses, &record), Err(AuditFault));
    #[cfg(feature = "alloc")]
    assert_eq!(give(std::sync::Arc::new(Refuses), &record), Err(AuditFault));
}
