//! Operations at a whole gate: one effect for an id, whatever fails and wherever the process dies.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use callgate_core::code::{Code, Effect};
use callgate_core::confirm::ReconcileError;
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::digest::Digest;
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_core::tool::ConfirmBy;
use callgate_std::audit::MemoryAudit;
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{Guarantee, Resolution};
use callgate_std::entropy::SeededEntropy;
use callgate_std::failure::Failure;
use callgate_std::gate::{DecisionFault, Gate, GateBuilder};
use callgate_std::journal::{
    FinishOperation, Journal, JournalAnswer, JournalLimits, KeptReply, MemoryJournal, OperationRequest, OperationState,
    OperationView, PresentedOperation, SettleError, StoreFault,
};
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::{Tool, ToolBuilder};
use serde_json::{Value, json};

use crate::bench::CANARY;

const ALICE: CallContext<'static> = CallContext::cli("r1").with_principal("alice");
const HOST: CallContext<'static> =
    CallContext::new("cli", "r2").with_principal("host").with_scopes(Scopes::new("reconcile"));

const PROPERTIES: &[Property<'static>] =
    &[Property::required("n", Schema::integer()), Property::optional("how", Schema::string())];

/// How often each `n` took effect: what nobody but the tool knows.
type Ledger = Arc<Mutex<HashMap<i64, usize>>>;

struct World {
    gate: Gate,
    audit: Arc<MemoryAudit>,
    clock: ManualClock,
    ledger: Ledger,
}

fn pay() -> ToolBuilder {
    Tool::builder("pay").description("Pays").const_schema(Schema::object(PROPERTIES)).mutating().clamp("/n", 0..=1000)
}

impl World {
    fn of(
        journal: impl FnOnce(&ManualClock) -> Option<Arc<dyn Journal>>,
        tool: impl FnOnce(ToolBuilder) -> ToolBuilder,
        change: impl FnOnce(GateBuilder) -> GateBuilder,
    ) -> Self {
        let (clock, audit, ledger) = (ManualClock::new(), Arc::new(MemoryAudit::new()), Ledger::default());
        let runs = Arc::clone(&ledger);
        let pay = tool(pay()).handler(move |call| {
            let arguments: Value = call.arguments()?;
            let n = arguments["n"].as_i64().expect("an integer");
            if arguments["how"] == "nothing" {
                return Err(Failure::new("nothing was done").without_effect());
            }
            *runs.lock().expect("no panic").entry(n).or_default() += 1;
            match arguments["how"].as_str() {
                Some("fails") => Err(Failure::new("half of it")),
                Some("panics") => panic!("planted"),
                Some("large") => Ok(Reply::new("x".repeat(300 << 10))),
                _ => Ok(Reply::new(json!({"paid": n, "receipt": CANARY})).with_message("paid").with_meta("bank", "b")),
            }
        });
        let builder = Gate::builder(Registry::builder().add(pay).build().expect("a good tool"))
            .clock(clock.shared())
            .entropy(SeededEntropy::shared(9))
            .digest_key([1; 32])
            .audit(audit.clone());
        let builder = match journal(&clock) {
            Some(journal) => builder.journal(journal),
            None => builder,
        };
        Self { gate: change(builder).build().expect("a good gate"), audit, clock, ledger }
    }

    fn memory() -> Self {
        Self::of(memory, |tool| tool, |gate| gate)
    }

    fn call(&self, operation: &str, arguments: &str) -> Told {
        self.call_as(&ALICE, operation, arguments)
    }

    fn call_as(&self, caller: &CallContext<'_>, operation: &str, arguments: &str) -> Told {
        let request = Request { tool: "pay", arguments: arguments.as_bytes(), token: None };
        let outcome = self.gate.call_operation(caller, operation, request);
        let json: Value = serde_json::from_str(&outcome.to_json().expect("writable")).expect("JSON");
        Told { code: outcome.code(), effect: outcome.effect(), replayed: outcome.replayed(), json }
    }

    fn effects(&self, n: i64) -> usize {
        self.ledger.lock().expect("no panic").get(&n).copied().unwrap_or(0)
    }
}

fn memory(clock: &ManualClock) -> Option<Arc<dyn Journal>> {
    Some(Arc::new(MemoryJournal::with(JournalLimits::DEFAULT, clock.shared())))
}

struct Told {
    code: Option<Code>,
    effect: Effect,
    replayed: bool,
    json: Value,
}

/// What is replayed is what was delivered, but for what the gate says of this very call.
#[test]
fn j3_a_replay_is_what_was_delivered() {
    let world = World::memory();
    let first = world.call("op", r#"{"n":5000}"#);
    let again = world.call("op", r#"{"n":1000}"#);
    assert_eq!((first.replayed, again.replayed, world.effects(1000)), (false, true, 1));
    for member in ["success", "data", "message", "error"] {
        assert_eq!(first.json[member], again.json[member], "{member}");
    }
    assert_eq!((&again.json["meta"]["bank"], &again.json["meta"]["replayed"]), (&json!("b"), &json!(true)));
    assert_eq!(again.json["meta"]["operation"], "op");
    // L1: neither the log nor what hosts are told of operations has the result.
    assert!(!world.audit.lines().iter().any(|line| line.contains(CANARY)));
    let views = world.gate.operations().list(&ALICE, 10).expect("it works");
    assert!(views.iter().any(|view| view.has_result) && !format!("{views:?}").contains(CANARY));
}

/// A tool cannot pass its result off as a replay.
#[test]
fn g1_the_words_of_an_operation_are_the_gates() {
    for word in ["operation", "attempt", "replayed", "journal_pending"] {
        assert!(callgate_core::outcome::is_reserved_meta(word));
    }
}

/// Without a journal, or with one that vouches for too little, nothing runs; without an id everything is as before.
#[test]
fn f6_a_gate_without_a_journal_refuses_operations() {
    let none = World::of(|_| None, |tool| tool, |gate| gate);
    let told = none.call("op", r#"{"n":1}"#);
    assert_eq!((told.code, told.effect, none.effects(1)), (Some(Code::OperationUnsupported), Effect::None, 0));
    let request = Request { tool: "pay", arguments: br#"{"n":1}"#, token: None };
    assert!(none.gate.call(&ALICE, request).success());
    let weak = World::of(memory, ToolBuilder::dangerous, |gate| gate.irreversible_needs(Guarantee::ALL));
    let told = weak.call("op", r#"{"n":1}"#);
    assert_eq!((told.code, weak.effects(1)), (Some(Code::StoreUnavailable), 0), "{:?}", told.json);
}

/// What the tool says of its effect decides whether the operation may be tried again.
#[test]
fn j4_an_operation_is_tried_again_where_it_had_no_effect() {
    let world = World::memory();
    assert_eq!(world.call("nothing", r#"{"n":1,"how":"nothing"}"#).effect, Effect::None);
    let again = world.call("nothing", r#"{"n":1,"how":"nothing"}"#);
    assert_eq!((again.code, &again.json["meta"]["attempt"]), (Some(Code::InternalError), &json!(2)));
    for how in ["fails", "panics"] {
        let arguments = format!(r#"{{"n":2,"how":"{how}"}}"#);
        let before = world.effects(2);
        assert_eq!(world.call(how, &arguments).effect, Effect::Unknown);
        let again = world.call(how, &arguments);
        assert_eq!((again.code, again.effect), (Some(Code::UnknownOutcome), Effect::Unknown));
        assert_eq!(world.effects(2), before + 1);
    }
    assert_eq!(world.call("large", r#"{"n":3,"how":"large"}"#).code, None);
    let again = world.call("large", r#"{"n":3,"how":"large"}"#);
    assert_eq!((again.code, again.effect, world.effects(3)), (Some(Code::ResultNotKept), Effect::Done, 1));
}

/// J5: a host settles it with a proof, which stands in the log, and only who may.
#[test]
fn j5_a_host_settles_an_operation_in_doubt() {
    let world = World::memory();
    for id in ["done", "none"] {
        assert_eq!(world.call(id, r#"{"n":1,"how":"fails"}"#).effect, Effect::Unknown);
    }
    let views = world.gate.operations().list(&HOST, 10).expect("it works");
    let key = |id: &str| views.iter().find(|view| view.operation == id).expect("listed").key;
    let resolve = |id: &str, effect, by| {
        world.gate.operations().resolve(key(id), &Resolution { effect, proof: "seen in the ledger", by })
    };
    assert_eq!(
        resolve("done", Effect::Done, CallContext { scopes: Scopes::NONE, ..HOST }).unwrap_err(),
        DecisionFault::Resolve(ReconcileError::MissingScope)
    );
    assert_eq!(resolve("done", Effect::Done, HOST).expect("settled").state, OperationState::Completed);
    assert_eq!(resolve("none", Effect::None, HOST).expect("settled").state, OperationState::Open);
    assert_eq!(world.call("done", r#"{"n":1,"how":"fails"}"#).code, Some(Code::ResultNotKept));
    assert_eq!(world.call("none", r#"{"n":1,"how":"fails"}"#).json["meta"]["attempt"], 2);
    let lines = world.audit.lines();
    let settled: Vec<_> = lines.iter().filter(|line| line.contains(r#""end":"resolve_done""#)).collect();
    assert_eq!(settled.len(), 3, "two tried, and that one was refused: {settled:?}");
    let named = |line: &&&String| line.contains(r#""operation":"done""#) && line.contains(r#""tool":"pay""#);
    assert_eq!(settled.iter().filter(named).count(), 1, "who may not see it does not name it: {settled:?}");
    assert!(settled.iter().all(|line| line.contains("seen in the ledger")), "{settled:?}");
    assert_eq!(
        world
            .gate
            .operations()
            .resolve(Digest::from_bytes([0; 32]), &Resolution { effect: Effect::Done, proof: "p", by: HOST }),
        Err(DecisionFault::Resolve(ReconcileError::Unknown))
    );
}

/// A run in the background is under way until it is over, and its result is that of the operation.
#[test]
fn j3_a_background_run_holds_its_operation() {
    let open = Arc::new((Mutex::new(false), Condvar::new()));
    let latch = Arc::clone(&open);
    let slow = Tool::builder("slow")
        .description("Takes its time")
        .const_schema(Schema::object(&[]))
        .mutating()
        .background(Duration::from_secs(60))
        .handler(move |_| {
            let (opened, condition) = &*latch;
            let mut opened = opened.lock().expect("no panic");
            while !*opened {
                opened = condition.wait(opened).expect("no panic");
            }
            Ok(Reply::new("over"))
        });
    let (sender, over) = std::sync::mpsc::channel();
    let gate = Gate::builder(Registry::builder().add(slow).build().expect("a good tool"))
        .journal(Arc::new(MemoryJournal::default()))
        .on_completion(move |completion| assert!(sender.send(completion.task).is_ok()))
        .build()
        .expect("a good gate");
    let call = || {
        let outcome = gate.call_operation(&ALICE, "op", Request { tool: "slow", arguments: b"{}", token: None });
        (outcome.code(), outcome.output().map(|reply| reply.data().clone()), outcome.task().is_some())
    };
    assert_eq!(call(), (None, None, true));
    assert_eq!(call(), (Some(Code::OperationInProgress), None, false));
    let (opened, condition) = &*open;
    *opened.lock().expect("no panic") = true;
    condition.notify_all();
    over.recv().expect("the run ends");
    assert_eq!(call(), (None, Some(json!("over")), false));
}

/// Where a journal fails, or its process dies.
#[derive(Clone, Copy, Debug)]
enum How {
    /// The step is not taken, and fails.
    Before,
    /// The step is taken, and told to have failed.
    After,
    /// The step panics before it is taken.
    Panics,
}

/// A journal whose step of one number goes wrong.
struct Faulty {
    inner: MemoryJournal,
    how: How,
    fails: usize,
    steps: AtomicUsize,
}

impl Faulty {
    fn step<R>(&self, step: impl FnOnce() -> Result<R, StoreFault>) -> Result<R, StoreFault> {
        if self.steps.fetch_add(1, Ordering::Relaxed) + 1 != self.fails {
            return step();
        }
        match self.how {
            How::Before => {}
            How::After => drop(step()),
            How::Panics => panic!("planted"),
        }
        Err(StoreFault)
    }
}

impl Journal for Faulty {
    fn recall(&self, presented: &PresentedOperation) -> JournalAnswer {
        self.step(|| self.inner.recall(presented))
    }

    fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer {
        self.step(|| self.inner.claim(request))
    }

    fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault> {
        self.step(|| self.inner.finish(finish, result))
    }

    fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.step(|| self.inner.reap(max))
    }

    fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        self.step(|| self.inner.reconcile(key, resolution))
    }

    fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.step(|| self.inner.operations(viewer, max))
    }
}

/// F1, A5, J8: each step of the journal goes wrong once, in each way. No operation ever has two effects; what its caller was told of the
/// effect is so; and once it is settled, by a host that looks into the ledger, its caller gets to an end.
#[test]
fn f1_every_step_of_a_journal_may_fail() {
    for how in [How::Before, How::After, How::Panics] {
        let mut fails = 1;
        loop {
            let journal: Arc<Mutex<Option<Arc<Faulty>>>> = Arc::default();
            let kept = Arc::clone(&journal);
            let world = World::of(
                move |clock| {
                    let inner = MemoryJournal::with(JournalLimits::DEFAULT, clock.shared());
                    let faulty = Arc::new(Faulty { inner, how, fails, steps: AtomicUsize::new(0) });
                    *kept.lock().expect("no panic") = Some(Arc::clone(&faulty));
                    Some(faulty)
                },
                |tool| tool,
                GateBuilder::unlimited,
            );
            for (id, n, arguments) in [
                ("a", 1, r#"{"n":1}"#),
                ("b", 2, r#"{"n":2,"how":"nothing"}"#),
                ("a", 1, r#"{"n":1}"#),
                ("c", 3, r#"{"n":3}"#),
                // One step fails, so by now it was claimed.
                ("a", 9, r#"{"n":9}"#),
                ("b", 2, r#"{"n":2,"how":"nothing"}"#),
            ] {
                let told = world.call(id, arguments);
                let what = format!("{how:?} at step {fails}: {id} {:?}", told.json);
                assert!(world.effects(n) <= 1, "A5: {what}");
                match told.effect {
                    Effect::Done => assert_eq!(world.effects(n), 1, "{what}"),
                    Effect::None => assert!(world.effects(n) == 0 || told.code.is_some(), "{what}"),
                    Effect::Unknown => {}
                }
                assert_eq!(world.effects(9), 0, "A4: {what}");
            }
            // Time passes, and a host settles what is in doubt by the ledger.
            world.clock.advance(Duration::from_secs(3_600));
            let steps = journal.lock().expect("no panic").as_ref().expect("built").steps.load(Ordering::Relaxed);
            for _ in 0..2 {
                for view in world.gate.operations().list(&HOST, 10).unwrap_or_default() {
                    let n = if view.operation == "a" { 1 } else { 3 };
                    let effect =
                        if world.effects(n) == 1 && view.operation != "b" { Effect::Done } else { Effect::None };
                    drop(
                        world
                            .gate
                            .operations()
                            .resolve(view.key, &Resolution { effect, proof: "the ledger", by: HOST }),
                    );
                }
            }
            for (id, n) in [("a", 1), ("c", 3)] {
                let told = world.call(id, &format!(r#"{{"n":{n}}}"#));
                let told = if told.code == Some(Code::StoreUnavailable) {
                    world.call(id, &format!(r#"{{"n":{n}}}"#))
                } else {
                    told
                };
                assert!(
                    matches!(told.code, None | Some(Code::ResultNotKept)),
                    "{how:?} at step {fails}: {:?}",
                    told.json
                );
                assert_eq!((told.effect, world.effects(n)), (Effect::Done, 1), "{how:?} at step {fails}");
            }
            let terminals = world.audit.lines().iter().filter(|line| line.contains(r#""kind":"terminal""#)).count();
            assert!((8..=10).contains(&terminals), "J1: {terminals}");
            if fails > steps {
                assert!(fails > 12, "the loop saw {steps} steps");
                break;
            }
            fails += 1;
        }
    }
}

/// A call that asks for a yes claims nothing, and comes back with its token under the same id.
#[test]
fn a5_an_operation_that_is_confirmed_runs_once() {
    let world = World::of(memory, |tool| tool.confirm(ConfirmBy::Caller), |gate| gate);
    let ask = world.call("op", r#"{"n":1}"#);
    let token = ask.json["data"]["confirm_token"].as_str().expect("a question").to_owned();
    let redeem = || {
        let request = Request { tool: "pay", arguments: b"{}", token: Some(&token) };
        let outcome = world.gate.call_operation(&ALICE, "op", request);
        (outcome.code(), outcome.replayed())
    };
    assert_eq!(redeem(), (None, false));
    assert_eq!(redeem(), (Some(Code::ConfirmationInvalid), false));
    let again = world.call("op", r#"{"n":1}"#);
    assert_eq!((again.code, again.replayed, world.effects(1)), (None, true, 1), "whoever asks again needs no token");
    // R4: a plan looks at nothing of it.
    assert!(!world.call_as(&ALICE.with_mode(Mode::Plan), "op", r#"{"n":1}"#).replayed);
}
