//! The life of a confirmation at a whole gate: what the store and the log are told, whatever becomes of the call.
#![cfg(test)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use callgate_core::code::{Code, Effect};
use callgate_core::confirm::{CancelError, Decided, ReconcileError, Verdict};
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_core::tool::{ConfirmBy, Tool as _};
use callgate_std::audit::MemoryAudit;
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{
    Capacity, GrantArguments, Guarantee, MemoryConfirmations, NewGrant, Resolution, TicketState, TicketView,
};
use callgate_std::entropy::SeededEntropy;
use callgate_std::failure::Failure;
use callgate_std::gate::{DecisionFault, Gate};
use callgate_std::output::Reply;
use callgate_std::registry::{Registry, SharedRegistry};
use callgate_std::tool::{Tool, ToolBuilder};
use callgate_std::view::View;
use serde_json::Value;

const ALICE: CallContext<'static> =
    CallContext::new("cli", "r1").with_principal("alice").with_scopes(Scopes::new("pay"));
const BOSS: CallContext<'static> =
    CallContext::new("cli", "r2").with_principal("boss").with_scopes(Scopes::new("approve grant reconcile"));
const CHIEF: CallContext<'static> =
    CallContext::new("cli", "r3").with_principal("chief").with_scopes(Scopes::new("approve"));

const PROPERTIES: &[Property<'static>] =
    &[Property::required("n", Schema::integer()), Property::optional("how", Schema::string())];

struct World {
    gate: Gate,
    audit: Arc<MemoryAudit>,
    clock: ManualClock,
    ran: Arc<AtomicU64>,
    definition: Digest,
}

impl World {
    fn new() -> Self {
        Self::of(|tool| tool)
    }

    fn of(change: impl FnOnce(ToolBuilder) -> ToolBuilder) -> Self {
        let (clock, audit, ran) = (ManualClock::new(), Arc::new(MemoryAudit::new()), Arc::new(AtomicU64::new(0)));
        let runs = Arc::clone(&ran);
        let pay = Tool::builder("pay")
            .description("Pays")
            .const_schema(Schema::object(PROPERTIES))
            .mutating()
            .scopes(["pay"])
            .confirm(ConfirmBy::Approver { scope: "approve" })
            .approvals(2)
            .handler(move |call| {
                let arguments: Value = call.arguments()?;
                match arguments["how"].as_str() {
                    Some("nothing") => return Err(Failure::new("nothing was done").without_effect()),
                    Some("panics") => panic!("planted"),
                    _ => {}
                }
                runs.fetch_add(1, Ordering::Relaxed);
                Ok(Reply::new(1))
            });
        let pay = change(pay).build().expect("a good tool");
        let definition = pay.definition();
        let store = MemoryConfirmations::with(Capacity::DEFAULT, clock.shared(), SeededEntropy::shared(7));
        store.attach_approvers(true);
        let gate = Gate::builder(Registry::builder().add(pay).build().expect("a good tool"))
            .clock(clock.shared())
            .entropy(SeededEntropy::shared(9))
            .digest_key([1; 32])
            .confirmations(Arc::new(store))
            .audit(audit.clone())
            .build()
            .expect("a good gate");
        Self { gate, audit, clock, ran, definition }
    }

    /// A call of Alice's: its code, and the token and the ticket that it asks with.
    fn call(&self, arguments: &str, token: Option<&str>) -> (Option<Code>, Option<(String, Digest)>) {
        let request = Request { tool: "pay", arguments: arguments.as_bytes(), token };
        let outcome = self.gate.call(&ALICE, request);
        let json: Value = serde_json::from_str(&outcome.to_json().expect("text")).expect("JSON");
        let asked = json["data"]["confirm_token"].as_str().map(|token| {
            let id = json["data"]["approval_id"].as_str().expect("it has an approval id");
            (token.to_owned(), id.parse().expect("a digest"))
        });
        (outcome.code(), asked)
    }

    /// Asks, and has both approvers say yes.
    fn approved(&self, arguments: &str) -> (String, Digest) {
        let (token, ticket) = self.call(arguments, None).1.expect("it asks");
        assert_eq!(self.gate.decide(ticket, Verdict::Approve, &BOSS), Ok(Decided::Counted { missing: 1 }));
        assert_eq!(self.call(arguments, Some(&token)).0, Some(Code::ApprovalPending), "one of two");
        assert_eq!(self.gate.decide(ticket, Verdict::Approve, &CHIEF), Ok(Decided::Approved));
        (token, ticket)
    }

    fn view(&self, ticket: Digest) -> TicketView {
        let seen = self.gate.approvals().tickets(&BOSS, 99).expect("answers");
        seen.into_iter().find(|view| view.ticket == ticket).expect("it is there")
    }

    fn records(&self) -> Vec<Value> {
        self.audit.lines().iter().map(|line| serde_json::from_str(line).expect("a record")).collect()
    }
}

#[test]
fn j4_the_store_is_told_how_a_confirmed_call_ended() {
    callgate_std::contain::quiet_contained_panics();
    for (how, code, state) in [
        ("works", None, TicketState::Done(Effect::Done)),
        ("nothing", Some(Code::InternalError), TicketState::Done(Effect::None)),
        ("panics", Some(Code::InternalError), TicketState::InDoubt),
    ] {
        let world = World::new();
        let arguments = format!(r#"{{"n":1,"how":"{how}"}}"#);
        let (token, ticket) = world.approved(&arguments);
        assert_eq!(world.call(&arguments, Some(&token)).0, code, "{how}");
        let view = world.view(ticket);
        assert_eq!((view.state, view.approved_by), (state, vec!["boss".to_owned(), "chief".to_owned()]), "{how}");
        assert_eq!(world.call(&arguments, Some(&token)).0, Some(Code::ConfirmationInvalid), "A5");
        // J4: nothing is left for the reaper.
        world.clock.advance(Duration::from_secs(3_600));
        assert_eq!(world.gate.approvals().reap().expect("answers"), []);
        let resolution = Resolution { effect: Effect::None, proof: "the bank knows nothing of it", by: BOSS };
        let settled = world.gate.approvals().resolve(ticket, &resolution);
        match settled {
            Ok(view) => assert_eq!((state, view.state), (TicketState::InDoubt, TicketState::Done(Effect::None))),
            Err(DecisionFault::Resolve(ReconcileError::NotInDoubt(found))) => assert_eq!(found, state, "{how}"),
            Err(other) => panic!("{other:?}"),
        }
        let resolved: Vec<_> = world
            .records()
            .into_iter()
            .filter(|record| record["end"] == "resolve_none")
            .map(|record| record["code"].clone())
            .collect();
        let expected = if state == TicketState::InDoubt { 1 } else { 2 };
        assert_eq!(resolved.len(), expected, "{how}: recorded before it counts, and again when it does not");
        assert_eq!(world.ran.load(Ordering::Relaxed), u64::from(how == "works"));
    }
}

#[test]
fn a19_a_requester_withdraws_its_call() {
    let world = World::new();
    let (token, ticket) = world.approved(r#"{"n":1}"#);
    let other = world.gate.approvals().cancel(ticket, &CHIEF);
    assert!(matches!(other, Err(DecisionFault::Cancel(CancelError::Unknown))), "{other:?}");
    world.gate.approvals().cancel(ticket, &ALICE).expect("its own");
    assert_eq!(world.view(ticket).state, TicketState::Cancelled);
    assert_eq!(world.call(r#"{"n":1}"#, Some(&token)).0, Some(Code::ConfirmationInvalid));
    assert_eq!(world.ran.load(Ordering::Relaxed), 0);
}

#[test]
fn a7_p5_a_standing_grant_covers_what_it_names_and_no_more() {
    let world = World::new();
    let grant = |arguments| NewGrant {
        tool: "pay".to_owned(),
        definition: world.definition,
        principal: "alice".to_owned(),
        arguments,
        lasts_ms: 60_000,
        max_uses: 2,
    };
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer","maximum":10}},"required":["n"]}"#;
    let given = world.gate.approvals().grant(grant(GrantArguments::Fitting(schema.to_owned())), &BOSS);
    let given = given.expect("a good grant");
    // What it does not cover is asked about.
    assert!(world.call(r#"{"n":11}"#, None).1.is_some());
    assert_eq!(world.ran.load(Ordering::Relaxed), 0);
    // P7: policy comes first, grant or no grant.
    let stranger = ALICE.with_scopes(Scopes::NONE);
    let request = Request { tool: "pay", arguments: br#"{"n":1}"#, token: None };
    assert_eq!(world.gate.call(&stranger, request).code(), Some(Code::Forbidden));
    assert_eq!(world.call(r#"{"n":1}"#, None), (None, None), "covered");
    assert_eq!(world.ran.load(Ordering::Relaxed), 1);
    let record = world.records().into_iter().rfind(|record| record["kind"] == "terminal").expect("a record");
    assert_eq!((&record["confirmed_by"], &record["end"]), (&Value::from("grant"), &Value::from("done")));
    let ticket: Digest = record["ticket"].as_str().expect("a ticket").parse().expect("a digest");
    let view = world.view(ticket);
    assert_eq!((view.grant, view.state), (Some(given.id), TicketState::Done(Effect::Done)));
    // P5: taken back, it covers nothing.
    let revoked = world.gate.approvals().revoke(given.id, &BOSS).expect("taken back");
    assert_eq!((revoked.used, revoked.under_way), (1, 0));
    assert!(world.call(r#"{"n":1}"#, None).1.is_some(), "it is asked about again");
    assert_eq!(world.ran.load(Ordering::Relaxed), 1);
    // Exactly these arguments, and the members that are named.
    let including = GrantArguments::Including(r#"{"n":5}"#.to_owned());
    world.gate.approvals().grant(grant(including), &BOSS).expect("a good grant");
    for (arguments, covered) in [(r#"{"n":5}"#, true), (r#"{"n":5,"how":"works"}"#, true), (r#"{"n":6}"#, false)] {
        assert_eq!(world.call(arguments, None).1.is_none(), covered, "{arguments}");
    }
    assert_eq!(world.ran.load(Ordering::Relaxed), 3);
    assert!(world.call(r#"{"n":5}"#, None).1.is_some(), "used up");
    assert_eq!(world.gate.approvals().grants(&BOSS, 9).expect("answers").len(), 2);
}

/// J7: which grant covered a call stands in each of its records, that of its end in the background included.
#[test]
fn j7_every_record_of_a_covered_call_names_the_grant() {
    let world = World::of(|tool| tool.background(Duration::from_secs(1)));
    let grant = NewGrant {
        tool: "pay".to_owned(),
        definition: world.definition,
        principal: "alice".to_owned(),
        arguments: GrantArguments::Including(r#"{"n":5}"#.to_owned()),
        lasts_ms: 60_000,
        max_uses: 1,
    };
    let given = world.gate.approvals().grant(grant, &BOSS).expect("a good grant");
    assert_eq!(world.call(r#"{"n":5}"#, None), (None, None), "covered");
    assert_eq!(world.gate.shutdown(Duration::from_secs(60)).running, 0);
    let records: Vec<_> = world.records().into_iter().filter(|record| record["kind"] != "decision").collect();
    let kinds: Vec<_> = records.iter().map(|record| record["kind"].as_str().expect("a text")).collect();
    assert_eq!(kinds, ["intent", "terminal", "completion"]);
    assert!(records.iter().all(|record| record["grant"] == given.id.to_string()), "{records:#?}");
}

/// F6: what cannot be undone is not confirmed by a store that vouches for less than the host demands.
#[test]
fn f6_an_irreversible_tool_refuses_a_store_below_its_bar() {
    let memory = Guarantee { atomic_claim: true, ..Guarantee::NONE };
    for (dangerous, bar, asks) in [
        (true, Guarantee::NONE, true),
        (true, memory, true),
        (true, Guarantee { survives_crash: true, ..memory }, false),
        (true, Guarantee::ALL, false),
        (false, Guarantee::ALL, true),
    ] {
        let tool = Tool::builder("pay").description("Pays").mutating().confirm(ConfirmBy::Caller);
        let tool = if dangerous { tool.dangerous() } else { tool };
        let registry = Registry::builder().add(tool.handler(|_| Ok(Reply::new(1)))).build().expect("a good tool");
        let gate = Gate::builder(registry).irreversible_needs(bar).build().expect("a good gate");
        let outcome = gate.call(&ALICE, Request { tool: "pay", arguments: b"{}", token: None });
        assert_eq!(outcome.asks(), asks, "{dangerous} {bar:?}");
        assert_eq!(outcome.code(), (!asks).then_some(Code::StoreUnavailable));
    }
}

/// A4, G4: a call that comes back is looked up again, in the registry and the view as they are then. What its tool no longer is, or the
/// caller no longer sees, does not run; that anything else came or went does not matter.
#[test]
fn a4_a_view_and_a_registry_that_changed_are_looked_at_again() {
    let ran = Arc::new(AtomicU64::new(0));
    let pay = |version| {
        let runs = Arc::clone(&ran);
        Tool::builder("pay").description("Pays").version(version).mutating().confirm(ConfirmBy::Caller).handler(
            move |_| {
                runs.fetch_add(1, Ordering::Relaxed);
                Ok(Reply::new(1))
            },
        )
    };
    let other = || Tool::builder("other").description("Does nothing").handler(|_| Ok(Reply::new(1)));
    let registry = |version| Registry::builder().add(pay(version)).build().expect("good tools");
    let shared = SharedRegistry::new(registry("1"));
    for admits in [false, true] {
        let open = Arc::new(AtomicBool::new(true));
        let is_open = Arc::clone(&open);
        let view = View::of(shared.clone(), "v").with_all().only_if(move |_, _| is_open.load(Ordering::Relaxed));
        let view = if admits { view.admitting() } else { view };
        let gate = Gate::builder(view).build().expect("a good gate");
        let call = |token: Option<&str>| {
            let outcome = gate.call(&ALICE, Request { tool: "pay", arguments: b"{}", token });
            let json: Value = serde_json::from_str(&outcome.to_json().expect("text")).expect("JSON");
            (outcome.code(), json["data"]["confirm_token"].as_str().map(str::to_owned))
        };
        let ask = || call(None).1.expect("it asks");
        let redeem = |token: &str| (call(Some(token)).0, ran.swap(0, Ordering::Relaxed));

        let token = ask();
        open.store(false, Ordering::Relaxed);
        let outside = if admits { Code::CapabilityDenied } else { Code::ToolNotFound };
        assert_eq!(redeem(&token), (Some(outside), 0), "it is not in view");
        open.store(true, Ordering::Relaxed);
        assert_eq!(redeem(&token), (None, 1), "what is not in view spends nothing");

        let token = ask();
        drop(shared.swap(registry("2")));
        assert_eq!(redeem(&token), (Some(Code::ConfirmationInvalid), 0), "it is another definition");
        drop(shared.swap(registry("1")));
        assert_eq!(redeem(&token), (Some(Code::ConfirmationInvalid), 0), "A6: it is burnt");

        let token = ask();
        drop(shared.swap(Registry::builder().build().expect("no tool")));
        assert_eq!(redeem(&token), (Some(Code::ToolNotFound), 0), "it is gone");
        drop(shared.swap(Registry::builder().add(other()).add(pay("1")).build().expect("good tools")));
        assert_eq!(redeem(&token), (None, 1), "the same tool, beside another one");
        drop(shared.swap(registry("1")));
    }
}
