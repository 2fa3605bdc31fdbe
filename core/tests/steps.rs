//! Calls that are parked: what each step and each stage shows of itself, which is enough to know it and nothing of the arguments.
#![cfg(test)]

use std::fmt::Debug;
use std::num::NonZeroU32;

use callgate_core::args::Args;
use callgate_core::call::{Call, Confirm, Issued, Load, Loaded, Lookup, Ran, TaskId};
use callgate_core::confirm::{Binding, By, Token, caller_digest, principal_digest};
use callgate_core::context::CallContext;
use callgate_core::digest::DigestKey;
use callgate_core::intercept::Interception;
use callgate_core::journal::Recalled;
use callgate_core::json::KeySlot;
use callgate_core::limit::Allowance;
use callgate_core::policy::{ChannelTable, PolicyGate};
use callgate_core::request::{Context as _, Envelope, Request, Settings};
use callgate_core::step::Step;
use callgate_core::time::{Now, Timestamp};
use callgate_core::tool::{ConfirmBy, Tool, ToolSpec, Violation};

const CANARY: &str = "C4N4RY-f00d";
const TOKEN: Token = Token::from_random([0x5a; 16]);

struct Probe(ToolSpec<'static>);

impl Tool for Probe {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.0
    }

    fn validate(&self, _: Args<'_>, _: &mut dyn FnMut(Violation<'_>)) {}
}

/// L1, A11: says what it is, and neither an argument nor the token.
#[track_caller]
fn shows(what: &impl Debug, name: &str) {
    let shown = format!("{what:?}");
    assert!(shown.contains(name), "{shown}");
    assert!(!shown.contains(CANARY) && !shown.contains(&TOKEN.to_string()), "{shown}");
}

/// Takes a call through all its steps, and gives the name of each.
fn steps(spec: ToolSpec<'static>, token: Option<&str>) -> Vec<&'static str> {
    steps_of(spec, token, None)
}

/// The same for a call of an operation.
fn steps_of(spec: ToolSpec<'static>, token: Option<&str>, operation: Option<&'static str>) -> Vec<&'static str> {
    let (key, probe) = (DigestKey::new([7; 32]), Probe(spec));
    let arguments = format!(r#"{{"note":"{CANARY}"}}"#);
    let caller = CallContext::cli("r-1");
    let mut keys = [KeySlot::default(); 4];
    let request = Request { tool: "probe", arguments: arguments.as_bytes(), token };
    let envelope = Envelope::new(caller, request, Settings::new(&key), &mut keys);
    let envelope = match operation {
        Some(operation) => envelope.of_operation(operation),
        None => envelope,
    };
    let mut step = Step::start(envelope, Now::ZERO);
    let mut names = Vec::new();
    loop {
        names.push(step.name());
        assert_eq!(format!("{step:?}"), step.name());
        step = match step {
            Step::Find(call) => {
                shows(&call, "Requested");
                shows(call.context(), "Envelope");
                shows(call.context().facts(), "Facts");
                call.found(Lookup::Found(&probe))
            }
            Step::Load(loading) => {
                shows(&loading, "Loading");
                let (tool, caller) = (probe.definition(), loading.call().caller());
                let (caller, principal) = (caller_digest(&caller), principal_digest(&caller));
                let binding = Binding { tool, arguments: tool, caller, principal };
                loading.answer(Ok(Some(Loaded { binding, usable: Ok(()), arguments: arguments.as_bytes() })))
            }
            Step::Authorize(call) => {
                shows(&call, "Validated");
                let decision = PolicyGate::new(ChannelTable::DEFAULTS).decide(&call.subject());
                call.answer(decision)
            }
            Step::Charge(call) => {
                shows(&call, "Authorized");
                call.answer(Ok(Allowance::Unlimited))
            }
            Step::Recall(operating) => {
                shows(&operating, "Operating");
                operating.answer(Ok(Ok(Recalled::Free(NonZeroU32::MIN))))
            }
            Step::Claim(operating) => {
                shows(&operating, "Operating");
                operating.answer(Ok(Ok(Recalled::Free(NonZeroU32::MIN))))
            }
            Step::Issue(asking) => {
                shows(&asking, "Asking");
                shows(&asking.call(), "Live");
                asking.answer(Ok(Issued { token: TOKEN, expires_at: Timestamp::from_unix_millis(60_000) }))
            }
            Step::Redeem(redeeming) => {
                shows(&redeeming, "Redeeming");
                redeeming.answer(Ok(Ok(By::Caller)))
            }
            Step::Intercept(call) => {
                shows(&call, "Confirmed");
                call.answer(Interception::Continue)
            }
            Step::Intent(call) => {
                shows(&call, "Cleared");
                call.answer(Ok(()))
            }
            Step::Execute(call) => {
                shows(&call, "Announced");
                let mut executing = call.begin();
                shows(&executing, "Executing");
                shows(&executing.permit().expect("the first permit"), "Permit");
                Step::Close(executing.finished(Ran::Done("made").after(5)))
            }
            Step::Close(ended) => {
                shows(&ended, "Ended");
                ended.answer(Now::ZERO)
            }
            Step::Settle(closed) => {
                shows(&closed, "Closed");
                closed.settled(None)
            }
            Step::Record(closed) => {
                shows(&closed, "took_ns");
                shows(&closed.record(), "Record");
                closed.recorded(Ok(()))
            }
            Step::Done(outcome) => {
                shows(&outcome, "Outcome");
                break;
            }
        };
    }
    names
}

/// G5: each step has a name of its own, and they come in the order of the gate.
#[test]
fn g5_each_step_says_what_it_is() {
    let spec = || ToolSpec::new("probe", "A tool under test");
    assert_eq!(steps(spec(), None), ["find", "authorize", "charge", "intercept", "execute", "close", "record", "done"]);
    assert_eq!(
        steps(spec().mutating().with_confirm(ConfirmBy::Caller), Some(&TOKEN.to_string())),
        ["find", "load", "authorize", "redeem", "intercept", "intent", "execute", "close", "settle", "record", "done"]
    );
    assert_eq!(
        steps_of(spec().mutating(), None, Some("op")),
        [
            "find",
            "authorize",
            "charge",
            "recall",
            "intercept",
            "claim",
            "intent",
            "execute",
            "close",
            "settle",
            "record",
            "done"
        ]
    );
    let asked = steps(spec().with_confirm(ConfirmBy::Caller), None);
    assert_eq!(asked, ["find", "authorize", "charge", "issue", "close", "record", "done"]);
    let task = TaskId::new([0xab; 16]);
    assert_eq!(format!("{task:?}"), format!("TaskId({task})"));
}

/// The same of what a transition gives: where arguments come from, and whether somebody is asked.
#[test]
fn l1_what_a_transition_gives_shows_no_argument() {
    for (confirm, token, loads, confirms) in [
        (ConfirmBy::Nobody, None, "Fresh", "NotNeeded"),
        (ConfirmBy::Caller, None, "Fresh", "Ask"),
        (ConfirmBy::Caller, Some(TOKEN.to_string()), "Stored", "Redeem"),
    ] {
        let (key, probe) = (DigestKey::new([7; 32]), Probe(ToolSpec::new("probe", "").with_confirm(confirm)));
        let arguments = format!(r#"{{"note":"{CANARY}"}}"#);
        let caller = CallContext::cli("r-1");
        let mut keys = [KeySlot::default(); 4];
        let request = Request { tool: "probe", arguments: arguments.as_bytes(), token: token.as_deref() };
        let call = Call::request(Envelope::new(caller, request, Settings::new(&key), &mut keys), Now::ZERO);
        let load = call.resolve(Lookup::Found(&probe)).expect("it is found");
        shows(&load, loads);
        let tool = probe.definition();
        let binding =
            Binding { tool, arguments: tool, caller: caller_digest(&caller), principal: principal_digest(&caller) };
        let call = match load {
            Load::Fresh(call) => call,
            Load::Stored(loading) => loading
                .loaded(Ok(Some(Loaded { binding, usable: Ok(()), arguments: arguments.as_bytes() })))
                .expect("the ticket is the caller's"),
        };
        let call = call.validate().expect("it fits");
        let decision = PolicyGate::new(ChannelTable::DEFAULTS).decide(&call.subject());
        let call = call.authorize(decision).expect("everybody may");
        let call = call.admit(Ok(Allowance::Unlimited)).and_then(Call::unless_planning);
        let confirm: Confirm<_, _> = call.expect("there is room").confirm().expect("there is room for its keys");
        shows(&confirm, confirms);
    }
}

/// G2, S3: a registry that answers with another tool, or with one whose name is none, has answered with none.
#[test]
fn g2_a_registry_answers_with_the_tool_that_was_asked_for() {
    for (asked, found, good) in [
        ("probe", "probe", true),
        ("probe", "Probe", false),
        ("probe", "probe2", false),
        ("a probe", "a probe", false),
        ("", "", false),
    ] {
        let (key, probe) = (DigestKey::new([7; 32]), Probe(ToolSpec::new(found, "A tool under test")));
        let request = Request { tool: asked, arguments: b"{}", token: None };
        let call =
            Call::request(Envelope::new(CallContext::cli("r-1"), request, Settings::new(&key), &mut []), Now::ZERO);
        let end = call.resolve(Lookup::Found(&probe)).map_err(|ended| ended.end().name());
        assert_eq!(end.as_ref().err(), (!good).then_some(&"not_found"), "{asked:?} {found:?}");
    }
}
