//! Calls that are accepted: two halves of one call, each with its record, and one permit between them.

#![cfg(test)]

use callgate_core::args::{Args, Edits};
use callgate_core::audit::Kind;
use callgate_core::call::{Announced, Call, Confirm, Detach, End, Executing, Facts, Load, Loaded, Lookup, Ran, TaskId};
use callgate_core::clamp::Clamp;
use callgate_core::code::Effect;
use callgate_core::confirm::{Binding, By, Token, caller_digest, principal_digest};
use callgate_core::context::{CallContext, Mode, Scopes, SignedConsent};
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::intercept::Interception;
use callgate_core::json::{KeySlot, Object};
use callgate_core::limit::Allowance;
use callgate_core::outcome::{Outcome, OutcomeType};
use callgate_core::policy::{ChannelTable, PolicyGate};
use callgate_core::request::{Context, Parts, Request, Settings};
use callgate_core::time::Now;
use callgate_core::tool::{FieldRule, Tool, ToolOutput, ToolSpec, Violation};
use proptest::prelude::*;

struct Probe(ToolSpec<'static>);

/// A result with something to say beside its data.
#[derive(PartialEq, Debug)]
struct Made(u32);

impl ToolOutput for Made {
    fn write_data(&self, out: &mut dyn std::fmt::Write) -> std::fmt::Result {
        write!(out, "{{\"made\":{}}}", self.0)
    }

    fn message(&self) -> Option<&str> {
        Some("it was made")
    }

    fn write_meta(&self, meta: &mut Object<'_>) -> std::fmt::Result {
        meta.number("rows", 7)
    }
}

impl Tool for Probe {
    type Output = Made;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.0
    }

    fn validate(&self, _: Args<'_>, _: &mut dyn FnMut(Violation<'_>)) {}
}

/// A call, and what its copy says instead.
struct Carried<'a> {
    caller: CallContext<'a>,
    request: Request<'a>,
    settings: Settings<'a>,
    facts: Facts,
    edits: Edits,
    keys: Vec<KeySlot>,
    forge: fn(&mut Carried<'a>),
}

impl<'a> Context for Carried<'a> {
    type Text = &'static str;
    type Snapshot = &'a [u8];

    fn caller(&self) -> CallContext<'_> {
        self.caller
    }

    fn request(&self) -> Request<'_> {
        self.request
    }

    fn edits(&self) -> &Edits {
        &self.edits
    }

    fn settings(&self) -> Settings<'_> {
        self.settings
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    fn parts(&mut self) -> Parts<'_> {
        let text = str::from_utf8(self.request.arguments).ok();
        Parts { request: self.request, text, edits: &mut self.edits, keys: &mut self.keys, settings: self.settings }
    }

    fn adopt(&mut self, snapshot: &'a [u8]) {
        self.request.arguments = snapshot;
    }
}

impl Detach for Carried<'_> {
    type Detached = Self;

    fn detach(&self) -> Self {
        let Self { caller, request, settings, facts: _, edits, keys, forge } = self;
        let (edits, keys) = (edits.clone(), keys.clone());
        let (caller, request, settings, forge) = (*caller, *request, *settings, *forge);
        let mut copy = Self { caller, request, settings, facts: Facts::NONE, edits, keys, forge };
        (self.forge)(&mut copy);
        copy
    }
}

type Forge = fn(&mut Carried<'_>);
type Running<'a, 't> = Executing<Carried<'a>, &'t Probe>;

const RULES: &[FieldRule<'static>] = &[FieldRule::clamp("/n", Clamp::range(1, 10))];
const TASK: TaskId = TaskId::new([0xab; 16]);

/// Takes a call to where its tool may run, and gives it to `then`.
fn announced<R>(forge: fn(&mut Carried<'_>), then: impl FnOnce(Running<'_, '_>) -> R) -> R {
    announced_with(None, forge, then)
}

/// The same for a call that brings a token, if it does.
fn announced_with<R>(token: Option<Token>, forge: fn(&mut Carried<'_>), then: impl FnOnce(Running<'_, '_>) -> R) -> R {
    let text = token.map(|token| token.to_string());
    let (key, probe) = (DigestKey::new([7; 32]), Probe(ToolSpec::new("probe", "A tool under test").with_fields(RULES)));
    let carried = Carried {
        caller: CallContext::cli("r1"),
        request: Request { tool: "probe", arguments: br#"{"n": 500, "m": 2}"#, token: text.as_deref() },
        settings: Settings::new(&key),
        facts: Facts::NONE,
        edits: Edits::new(),
        keys: vec![KeySlot::default(); 8],
        forge,
    };
    let caller = carried.caller;
    let call = match Call::request(carried, Now::default()).resolve(Lookup::Found(&probe)) {
        Ok(Load::Fresh(call)) => call,
        Ok(Load::Stored(loading)) => {
            let (tool, arguments) = (probe.definition(), br#"{"n": 500, "m": 2}"#.as_slice());
            let (caller, principal) = (caller_digest(&caller), principal_digest(&caller));
            let binding = Binding { tool, arguments: tool, caller, principal };
            loading.loaded(Ok(Some(Loaded { binding, usable: Ok(()), arguments }))).expect("the ticket is the caller's")
        }
        Err(ended) => panic!("it is found: {ended:?}"),
    };
    let call = call.validate().expect("it fits");
    let decision = PolicyGate::new(ChannelTable::DEFAULTS).decide(&call.subject());
    let call = call.authorize(decision).expect("the command line may");
    let call = call.admit(Ok(Allowance::Unlimited)).and_then(Call::unless_planning).expect("there is no limit");
    let call = match call.confirm().expect("there is room for its keys") {
        Confirm::NotNeeded(call) => call,
        Confirm::Redeem(redeeming) => redeeming.redeemed(Ok(Ok(By::Caller))).expect("it was claimed"),
        Confirm::Ask(_) => panic!("nobody is asked"),
    };
    let call = call.intercept(Interception::Continue).expect("nobody vetoes");
    let call: Call<_, _, Announced> = call.announce(Ok(())).expect("there is nothing to record");
    then(call.begin())
}

// J1, G1: two halves, each with its record; the permit belongs to the second one.
#[test]
fn j1_both_halves_of_an_accepted_call_are_recorded() {
    announced(
        |_| {},
        |call| {
            let (answered, mut run) = call.accept(TASK).expect("the copy is the call");
            assert!(matches!(answered.end(), End::Accepted(TASK)));
            let closed = answered.close(Now::default());
            let record = closed.record();
            assert_eq!((record.kind, record.end, record.task), (Kind::Terminal, "accepted", Some(TASK)));
            assert!(closed.settlement().is_empty());
            let answer = closed.audited(Ok(()));
            assert_eq!((answer.success(), answer.effect(), answer.task()), (true, Effect::Unknown, Some(TASK)));

            let mut args = String::new();
            let permit = run.permit().expect("the first one");
            permit.args().write_json(&mut args).expect("a string takes all");
            assert_eq!((args.as_str(), permit.caller().request_id), (r#"{"n":10,"m":2}"#, "r1"));
            assert!(run.permit().is_none(), "G1: a permit is minted once");
            let closed = run.finished(Ran::Done(Made(3)).after(5)).close(Now::default());
            let record = closed.record();
            assert_eq!((record.kind, record.end, record.task), (Kind::Completion, "done", Some(TASK)));
            let done = closed.audited(Ok(()));
            assert_eq!((done.output(), done.effect(), done.task()), (Some(&Made(3)), Effect::Done, Some(TASK)));
        },
    );
}

// J7: the record of the run says all that was found out about the call before it was accepted.
#[test]
fn j7_the_second_half_knows_what_the_first_one_knew() {
    announced(
        |_| {},
        |call| {
            let (answered, run) = call.accept(TASK).expect("the copy is the call");
            let answered = answered.close(Now::default());
            let done = run.finished(Ran::Done(Made(3)).after(5)).close(Now::default());
            let (first, second) = (answered.record(), done.record());
            assert!(first.arguments.is_some() && first.definition.is_some());
            assert_eq!((second.arguments, second.definition), (first.arguments, first.definition));
            let args = |record: &callgate_core::audit::Record<'_>| record.redacted_args().map(|args| args.to_string());
            assert_eq!((args(&second), args(&first).as_deref()), (args(&first), Some(r#"{"n":10,"m":2}"#)));
        },
    );
}

fn json<C: Context, T: Tool>(outcome: &Outcome<C, T>) -> String {
    let mut text = String::new();
    outcome.write_json(&mut text).expect("a string takes all");
    #[cfg(feature = "alloc")]
    assert_eq!(outcome.to_json().as_ref(), Ok(&text));
    text
}

// The caller is told the id at once; the run's outcome has the tool's result, with what the tool says of it.
#[test]
fn j1_both_outcomes_of_an_accepted_call_name_its_run() {
    announced(
        |_| {},
        |call| {
            let (answered, run) = call.accept(TASK).expect("the copy is the call");
            let answer = answered.close(Now::default()).audited(Ok(()));
            let text = json(&answer);
            assert_eq!(answer.kind(), OutcomeType::Accepted);
            let data = format!(r#""data":{{"status":"accepted","task_id":"{TASK}"}},"message":null"#);
            assert!(text.contains(&data) && text.contains(r#""type":"accepted""#), "{text}");
            assert_eq!(answer.into_output(), None);

            let done = run.finished(Ran::Done(Made(3)).after(5)).close(Now::default()).audited(Ok(()));
            let text = json(&done);
            assert_eq!(done.kind(), OutcomeType::Generic);
            assert!(text.contains(r#""data":{"made":3},"message":"it was made""#), "{text}");
            assert!(text.ends_with(&format!(r#""task_id":"{TASK}","rows":7}}}}"#)), "{text}");
            assert_eq!(done.into_output(), Some(Made(3)));
        },
    );
}

// J4: the ticket of a call that was accepted is settled by its run, and not before.
#[test]
fn j4_a_ticket_is_settled_by_the_run() {
    let token = Token::from_random([3; 16]);
    announced_with(
        Some(token),
        |_| {},
        |call| {
            let (answered, run) = call.accept(TASK).expect("the copy is the call");
            assert_eq!(answered.close(Now::default()).settlement().finish, None);
            let done = run.finished(Ran::Done(Made(3)).after(5)).close(Now::default());
            let finish = done.settlement().finish.map(|finish| (finish.ticket, finish.effect));
            assert_eq!(finish, Some((token.hash(), Effect::Done)));
            assert_eq!(done.record().confirmed_by, Some(By::Caller));
        },
    );
}

// G1: where a permit was taken the tool may have run; it cannot run a second time, and nothing says that it did not.
#[test]
fn g1_a_call_whose_permit_was_taken_cannot_be_accepted() {
    announced(
        |_| {},
        |mut call| {
            assert!(call.permit().is_some());
            let Err(ended) = call.accept(TASK) else { panic!("a second permit can be had") };
            assert!(matches!(ended.end(), End::Cancelled { started: true }));
            let closed = ended.close(Now::default());
            assert_eq!((closed.record().kind, closed.record().task), (Kind::Terminal, None));
            assert_eq!(closed.audited(Ok(())).effect(), Effect::Unknown);
        },
    );
}

// K4, P3: what goes on is the call that was judged, by the caller for whom it was.
#[test]
fn k4_a_copy_that_says_something_else_is_refused() {
    let forgeries: &[(&str, Forge)] = &[
        ("arguments", |copy| copy.request.arguments = br#"{"n": 500, "m": 3}"#),
        ("white space", |copy| copy.request.arguments = br#"{"n": 500,  "m": 2}"#),
        ("tool", |copy| copy.request.tool = "prove"),
        ("clamps", |copy| copy.edits = Edits::new()),
        ("tenant", |copy| copy.caller.tenant = Some("another")),
        ("principal", |copy| copy.caller.principal = Some("another")),
        ("nobody", |copy| copy.caller.principal = None),
        ("channel", |copy| copy.caller.channel = "web"),
        ("scopes", |copy| copy.caller.scopes = Scopes::new("fs:read")),
        ("request id", |copy| copy.caller.request_id = "r2"),
        ("session", |copy| copy.caller.session = Some("another")),
        ("parent", |copy| copy.caller.parent = Some("r0")),
        ("depth", |copy| copy.caller.depth = 1),
        ("ip", |copy| copy.caller.ip = Some("192.0.2.1")),
        ("user agent", |copy| copy.caller.user_agent = Some("another/1")),
        ("mode", |copy| copy.caller.mode = Mode::Plan),
        ("signature", |copy| {
            let arguments = Digest::of_bytes(b"another");
            copy.caller.signature = Some(SignedConsent { signer: "k", tool: "probe", arguments });
        }),
    ];
    for (what, forge) in forgeries {
        announced(*forge, |call| {
            let Err(ended) = call.accept(TASK) else { panic!("another {what} goes on") };
            assert!(matches!(ended.end(), End::Cancelled { started: false }), "{what}");
            assert_eq!(ended.close(Now::default()).record().task, None, "{what}");
        });
    }
}

proptest! {
    #[test]
    fn n6_the_text_of_an_id_is_read_back_and_no_other_is(bits in any::<[u8; 16]>(), at in 0..32_usize, other in any::<char>()) {
        let id = TaskId::new(bits);
        let text = id.to_string();
        prop_assert_eq!(TaskId::parse(&text), Some(id));
        let mut changed: Vec<char> = text.chars().collect();
        changed[at] = other;
        let changed: String = changed.into_iter().collect();
        prop_assert_eq!(TaskId::parse(&changed).map(|id| id.to_string()), Some(changed.clone()).filter(|_| matches!(other, '0'..='9' | 'a'..='f')));
        prop_assert_eq!(TaskId::parse(&text.chars().skip(1).collect::<String>()), None);
        prop_assert_eq!(TaskId::parse(&format!("{text}0")), None);
    }
}
