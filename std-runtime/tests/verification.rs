//! The tools with which an agent asks people to verify something, on a store of their own, and what approvers do at a gate.
#![cfg(test)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::call::StoreFault;
use callgate_core::code::{Code, Effect};
use callgate_core::confirm::{CancelError, ReconcileError, TicketState, Verdict};
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_core::request::Request;
use callgate_core::tool::ConfirmBy;
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{Capacity, MemoryConfirmations, Resolution};
use callgate_std::entropy::OsEntropy;
use callgate_std::gate::{DecisionFault, Gate};
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use callgate_std::verification::{REQUEST, RESOLVE, Verification};
use serde_json::{Value, json};

#[derive(Default)]
struct Log(Mutex<Vec<Value>>, Mutex<bool>);

impl Audit for Log {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        if *self.1.lock().unwrap() {
            return Err(AuditFault);
        }
        let mut line = String::new();
        record.write_json(&mut line).map_err(|_| AuditFault)?;
        self.0.lock().unwrap().push(serde_json::from_str(&line).unwrap());
        Ok(())
    }
}

struct World {
    gate: Gate,
    clock: ManualClock,
    log: Arc<Log>,
    events: Arc<Mutex<Vec<String>>>,
}

fn world() -> World {
    let (clock, log, events) = (ManualClock::new(), Arc::new(Log::default()), Arc::new(Mutex::new(Vec::new())));
    let store = Arc::new(MemoryConfirmations::with(Capacity::DEFAULT, clock.shared(), OsEntropy::shared()));
    store.attach_approvers(true);
    let heard = Arc::clone(&events);
    let tools = Verification::new(store.clone(), "verify").with_ttl_ms(60_000).on_event(move |event| {
        let subject = event.subject.unwrap_or("-");
        heard.lock().unwrap().push(format!("{} {subject} by {}", event.name, event.by.principal.unwrap_or("-")));
    });
    let [request, resolve] = tools.tools().unwrap();
    let pay = Tool::builder("pay")
        .description("Pays")
        .json_schema(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}))
        .mutating()
        .confirm(ConfirmBy::Approver { scope: "verify" })
        .handler(|_| Ok(Reply::new(1)));
    let registry = Registry::builder().add(request).add(resolve).add(pay.build().unwrap()).build().unwrap();
    let gate = Gate::builder(registry).clock(clock.shared()).confirmations(store).audit(log.clone()).build().unwrap();
    World { gate, clock, log, events }
}

fn caller<'a>(principal: &'a str, scopes: &'a str) -> CallContext<'a> {
    CallContext { principal: Some(principal), scopes: Scopes::new(scopes), ..CallContext::cli("r") }
}

/// What a reviewer is.
fn reviewer(principal: &str) -> CallContext<'_> {
    caller(principal, "verify")
}

impl World {
    fn call(&self, who: &CallContext<'_>, tool: &str, arguments: &Value) -> Value {
        let arguments = arguments.to_string();
        let outcome = self.gate.call(who, Request { tool, arguments: arguments.as_bytes(), token: None });
        serde_json::from_str(&outcome.to_json().unwrap()).unwrap()
    }

    fn request(&self, more: &Value) -> Value {
        let mut arguments = json!({"subject": "deploy v2"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.call(&caller("worker", "tasks:write"), REQUEST, &arguments)
    }

    fn resolve(&self, who: &CallContext<'_>, id: &str, decision: &str) -> Value {
        let principal = who.principal.unwrap();
        self.call(who, RESOLVE, &json!({"request_id": id, "decision": decision, "principal": principal}))
    }

    fn opened(&self, more: &Value) -> String {
        let asked = self.request(more);
        assert_eq!(asked["success"], true, "{asked}");
        asked["data"]["request_id"].as_str().unwrap().to_owned()
    }

    fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }
}

fn code(outcome: &Value) -> &str {
    outcome["meta"]["code"].as_str().unwrap_or("none")
}

// VER-01, VER-02, VER-07, VER-10 of the papers: ask, then another one grants.
#[test]
fn ver_a_request_is_granted_by_somebody_else() {
    let world = world();
    let asked = world.request(&json!({}));
    assert_eq!((&asked["data"]["subject"], &asked["data"]["policy"]), (&"deploy v2".into(), &"single".into()));
    assert!(asked["data"].get("confirm_token").is_none());
    let id = asked["data"]["request_id"].as_str().unwrap();
    assert!(asked["message"].as_str().unwrap().contains(&format!("request_id={id}")), "{asked}");
    let granted = world.call(
        &reviewer("ann"),
        RESOLVE,
        &json!({"request_id": id, "decision": "grant", "principal": "ann", "subject": "deploy v2", "reason": "looked"}),
    );
    assert_eq!(granted["message"], "Verification granted for 'deploy v2'.");
    let expected = json!({
        "status": "passed", "reason": null, "verifier": "human_verifier", "principal": "ann", "missing": [],
        "metadata": {"reason": "looked"}
    });
    assert_eq!((&granted["data"], &granted["meta"]["verification_status"]), (&expected, &"passed".into()));
    assert_eq!(world.events(), ["verification.requested deploy v2 by worker", "verification.granted deploy v2 by ann"]);
}

// VER-03, VER-04
#[test]
fn ver_the_schemas_are_those_of_the_tools_before() {
    let store = Arc::new(MemoryConfirmations::new(Capacity::DEFAULT));
    let tools = Verification::new(store, "verify").tools().unwrap();
    let [request, resolve] = tools.map(|tool| serde_json::from_str::<Value>(tool.advertised_schema()).unwrap());
    assert_eq!(request["required"], json!(["subject"]));
    assert!(request["properties"].get("decision").is_none() && request["properties"].get("principal").is_none());
    assert_eq!(resolve["required"], json!(["request_id", "decision", "principal"]));
}

// VER-05, VER-06, VER-08, VER-09
#[test]
fn ver_a_rejection_is_a_result_and_what_is_missing_is_refused() {
    let world = world();
    let id = world.opened(&json!({"request_id": "mine-1"}));
    assert_eq!(id, "mine-1");
    let missing = world.call(&reviewer("ann"), RESOLVE, &json!({"request_id": id, "principal": "ann"}));
    assert_eq!(code(&missing), "VALIDATION_ERROR");
    let without_scope = world.resolve(&caller("eve", "tasks:write"), &id, "grant");
    assert_eq!(code(&without_scope), "FORBIDDEN");
    let rejected = world.resolve(&reviewer("ann"), &id, "reject");
    assert_eq!((&rejected["data"]["status"], &rejected["data"]["reason"]), (&"failed".into(), &"rejected".into()));
    assert!(rejected["message"].as_str().unwrap().contains("mine-1"));
    assert_eq!(world.events()[1], "verification.rejected - by ann");
}

// A1, A2, A3, A9, A10: what the tools before took on trust.
#[test]
fn a2_nobody_decides_for_another_or_twice_or_for_oneself() {
    let world = world();
    let id = world.opened(&json!({}));
    let unknown = world.resolve(&reviewer("ann"), &"0".repeat(64), "grant");
    assert_eq!(code(&unknown), "NOT_FOUND");
    assert_eq!(code(&world.resolve(&reviewer("ann"), "mine-1", "grant")), "NOT_FOUND");
    // The requester, though it holds the scope; and somebody who says to be somebody else.
    assert_eq!(world.resolve(&reviewer("worker"), &id, "grant")["success"], false);
    let as_ann = json!({"request_id": id, "decision": "grant", "principal": "ann"});
    assert_eq!(code(&world.call(&reviewer("worker"), RESOLVE, &as_ann)), "VALIDATION_ERROR");
    assert_eq!(code(&world.call(&reviewer("bob"), RESOLVE, &as_ann)), "VALIDATION_ERROR");
    let other_tenant = CallContext { tenant: Some("acme"), ..reviewer("ann") };
    assert_eq!(code(&world.resolve(&other_tenant, &id, "grant")), "NOT_FOUND");
    assert_eq!(world.events().len(), 1, "nothing of that was an event");
    assert_eq!(world.resolve(&reviewer("ann"), &id, "reject")["data"]["status"], "failed");
    assert_eq!(world.resolve(&reviewer("bob"), &id, "grant")["success"], false, "the first verdict stands");
    let late = world.opened(&json!({}));
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.resolve(&reviewer("ann"), &late, "grant")["success"], false);
    assert_eq!(world.events().len(), 3);
}

#[test]
fn a2_dual_and_quorum_count_distinct_people() {
    let world = world();
    for (policy, people) in [("dual", 2), ("quorum", 3)] {
        let id = world.opened(&json!({"policy": policy}));
        for (at, who) in ["ann", "bob", "cyd"].into_iter().take(people).enumerate() {
            let answer = world.resolve(&reviewer(who), &id, "grant");
            let last = at + 1 == people;
            assert_eq!(answer["data"]["status"], if last { "passed" } else { "pending" }, "{policy} {who}");
            if !last {
                assert_eq!(world.resolve(&reviewer(who), &id, "grant")["success"], false, "nobody counts twice");
            }
        }
    }
    let one_no = world.opened(&json!({"policy": "dual"}));
    world.resolve(&reviewer("ann"), &one_no, "grant");
    assert_eq!(world.resolve(&reviewer("bob"), &one_no, "reject")["data"]["status"], "failed");
    assert_eq!(code(&world.request(&json!({"policy": "auto"}))), "VALIDATION_ERROR", "F2");
}

#[test]
fn an_id_of_ones_own_names_one_request_at_a_time() {
    let world = world();
    let first = world.opened(&json!({"request_id": "mine"}));
    assert_eq!(code(&world.request(&json!({"request_id": "mine"}))), "VALIDATION_ERROR");
    assert_eq!(world.resolve(&reviewer("ann"), &first, "grant")["data"]["status"], "passed");
    world.clock.advance(Duration::from_secs(60));
    world.opened(&json!({"request_id": "mine"}));
    // The one that was refused waits for nobody.
    assert_eq!(world.gate.approvals().pending(&reviewer("ann"), 10).unwrap().len(), 1);
}

// D6: what the agent says of itself is labelled, and is no line of the gate.
#[test]
fn d6_an_approver_sees_whose_words_they_are() {
    let world = world();
    world.opened(&json!({"requested_by": "the boss\narguments 00"}));
    let seen = world.gate.approvals().pending(&reviewer("ann"), 10).unwrap().remove(0);
    let lines: Vec<_> = seen.summary.lines().collect();
    assert_eq!(lines[0], REQUEST);
    assert!(lines.contains(&r#"  subject = "deploy v2""#), "{lines:?}");
    assert_eq!(lines[3], r#"the agent says, unchecked: it is requested by "the boss\narguments 00""#);
    assert_eq!(lines.len(), 5);
}

fn asked(world: &World) -> (Digest, String) {
    let asked = world.call(&caller("worker", "*"), "pay", &json!({"n": 1}));
    let part = |name: &str| asked["data"][name].as_str().unwrap().to_owned();
    (part("approval_id").parse().unwrap(), part("confirm_token"))
}

fn decisions(world: &World) -> Vec<(String, Option<String>)> {
    let records = world.log.0.lock().unwrap();
    let text = |record: &Value, name: &str| record[name].as_str().map(str::to_owned);
    let decisions = records.iter().filter(|record| record["kind"] == "decision");
    decisions.map(|record| (text(record, "end").unwrap(), text(record, "check"))).collect()
}

// J2: no decision without its record, and none that does not count without its reason.
#[test]
fn j2_each_decision_is_recorded_before_it_counts() {
    let world = world();
    let desk = world.gate.approvals();
    let (ticket, token) = asked(&world);
    *world.log.1.lock().unwrap() = true;
    assert_eq!(desk.decide(ticket, Verdict::Approve, &reviewer("ann")), Err(DecisionFault::Unrecorded));
    assert_eq!(desk.cancel(ticket, &caller("worker", "*")), Err(DecisionFault::Unrecorded));
    *world.log.1.lock().unwrap() = false;
    let outcome = world.gate.call(&caller("worker", "*"), Request { tool: "pay", arguments: b"", token: Some(&token) });
    assert_eq!(outcome.code(), Some(Code::ApprovalPending));
    drop(outcome);
    assert_eq!(desk.cancel(ticket, &reviewer("ann")), Err(DecisionFault::Cancel(CancelError::Unknown)));
    assert_eq!(desk.cancel(ticket, &caller("worker", "*")), Ok(()));
    assert!(desk.decide(ticket, Verdict::Approve, &reviewer("ann")).is_err());
    let told = |what: &str, why: Option<&str>| (what.to_owned(), why.map(str::to_owned));
    let expected = [
        told("cancel", None),
        told("cancel", Some("unknown")),
        told("cancel", None),
        told("approve", None),
        told("approve", Some("settled")),
    ];
    assert_eq!(decisions(&world), expected);
}

// J4: what a call left in doubt is settled by who may, with a proof, once; the proof is in the record.
#[test]
fn j4_what_is_in_doubt_is_settled_with_a_proof() {
    let world = world();
    let desk = world.gate.approvals();
    let (ticket, _) = asked(&world);
    let settler = caller("ops", "reconcile");
    let resolution = |by, proof| Resolution { effect: Effect::Done, proof, by };
    let refused = |by, proof| desk.resolve(ticket, &resolution(by, proof)).unwrap_err();
    assert!(matches!(refused(settler, "p"), DecisionFault::Resolve(ReconcileError::NotInDoubt(TicketState::Pending))));
    assert_eq!(refused(reviewer("ann"), "p"), DecisionFault::Resolve(ReconcileError::MissingScope));
    assert_eq!(desk.tickets(&settler, 10).unwrap()[0].state, TicketState::Pending);
    assert_eq!(desk.tickets(&caller("eve", "nothing"), 10), Ok(Vec::new()), "P2");
    assert_eq!(desk.tickets(&caller("worker", ""), 10).map(|tickets| tickets.len()), Ok::<_, StoreFault>(1), "its own");
    let last = world.log.0.lock().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["end"], &last["check"], &last["detail"]),
        (&"resolve_done".into(), &"missing_scope".into(), &"p".into())
    );
}
