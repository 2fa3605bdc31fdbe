//! A registry that is replaced while calls run: a call keeps the tool that it found (invariant G2).

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use callgate_core::call::Lookup;
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_core::tool::ConfirmBy;
use callgate_std::audit::MemoryAudit;
use callgate_std::gate::Gate;
use callgate_std::output::Reply;
use callgate_std::registry::{Registry, SharedRegistry, ToolSource};
use callgate_std::tool::{Tool, ToolBuilder};
use callgate_std::view::View;
use serde_json::Value;

use crate::explore::Orders::{self, All, Interrupted};
use crate::explore::{explore, spawn};

const CLI: CallContext<'static> = CallContext::cli("r");

fn registry(tool: Tool) -> Registry {
    Registry::builder().add(tool).build().expect("one good tool")
}

fn define(version: &str) -> ToolBuilder {
    Tool::builder("a").description("Does something").version(version).mutating()
}

fn says(version: &'static str) -> Registry {
    registry(define(version).handler(move |_| Ok(Reply::new(version))).build().expect("a good tool"))
}

/// A tool whose definition is of this version, and whose body is of whatever version is registered when it runs.
fn says_what_is_registered(version: &str, place: &Arc<OnceLock<SharedRegistry>>) -> Registry {
    let place = Arc::clone(place);
    let tool = define(version).handler(move |_| {
        let now = place.get().map(SharedRegistry::load);
        let tool = now.as_ref().and_then(|registry| registry.get("a"));
        Ok(Reply::new(tool.and_then(|tool| tool.spec().version).unwrap_or_default()))
    });
    registry(tool.build().expect("a good tool"))
}

/// What a call said, and the definition in each of its records.
type Said = (String, Vec<String>);

/// Calls the one tool while another thread replaces it.
fn called_during_a_swap(make: fn() -> (SharedRegistry, Registry)) -> BTreeSet<Said> {
    let seen = explore(All, move || {
        let (shared, next) = make();
        let log = MemoryAudit::new();
        let (tools, audit) = (shared.clone(), Arc::new(log.clone()));
        let call = spawn(move || {
            let gate = Gate::builder(tools).audit(audit).unlimited().build().expect("a good gate");
            let request = Request { tool: "a", arguments: b"{}", token: None };
            let outcome = gate.call(&CLI, request);
            outcome.output().and_then(|reply| reply.data().as_str()).unwrap_or_default().to_owned()
        });
        let swap = spawn(move || drop(shared.swap(next)));
        let said = call.join().expect("no panic");
        swap.join().expect("no panic");
        let definition = |line: &String| {
            let record: Value = serde_json::from_str(line).expect("a record is JSON");
            record["tool_digest"].as_str().expect("the tool was found").to_owned()
        };
        (said, log.lines().iter().map(definition).collect())
    });
    println!("{} runs", seen.runs);
    seen.ends
}

/// Whether what ran is what the records name, in every end: one definition a call, and another one for another body.
fn agree(ends: &BTreeSet<Said>) -> bool {
    let whole = ends.iter().all(|(_, records)| records.len() == 2 && records[0] == records[1]);
    let said: BTreeSet<_> = ends.iter().map(|(said, _)| said).collect();
    whole && said.len() == ends.len()
}

#[test]
fn g2_a_call_runs_and_records_the_tool_that_it_found() {
    let ends = called_during_a_swap(|| (SharedRegistry::new(says("old")), says("new")));
    assert_eq!(ends.iter().map(|(said, _)| said.as_str()).collect::<Vec<_>>(), ["new", "old"]);
    assert!(agree(&ends), "{ends:?}");
}

#[test]
fn g2_a_body_that_is_looked_up_again_is_noticed() {
    let ends = called_during_a_swap(|| {
        let place = Arc::new(OnceLock::new());
        let shared = SharedRegistry::new(says_what_is_registered("old", &place));
        let next = says_what_is_registered("new", &place);
        place.get_or_init(|| shared.clone());
        (shared, next)
    });
    assert!(!agree(&ends), "{ends:?}");
}

/// Asks of one registry whether a tool may be seen, and takes it from the next.
struct LooksTwice(View);

impl ToolSource for LooksTwice {
    fn registry(&self) -> Registry {
        self.0.registry()
    }

    fn find(&self, name: &str, caller: &CallContext<'_>) -> Lookup<Arc<Tool>> {
        match self.0.find(name, caller) {
            Lookup::Found(_) => {
                self.registry().get(name).map_or(Lookup::Unknown, |tool| Lookup::Found(Arc::clone(tool)))
            }
            other => other,
        }
    }
}

/// The versions that are found through a view of those that are harmless, while a harmful one comes and goes.
fn found_during_swaps<S: ToolSource + 'static>(source: fn(View) -> S) -> BTreeSet<String> {
    let seen = explore(All, move || {
        let shared = SharedRegistry::new(says("harmless"));
        let view =
            View::of(shared.clone(), "view").with_all().only_if(|tool, _| tool.spec().version != Some("harmful"));
        let source = source(view);
        let found = spawn(move || match source.find("a", &CLI) {
            Lookup::Found(tool) => tool.spec().version.unwrap_or_default().to_owned(),
            _ => String::new(),
        });
        let swaps = spawn(move || drop((shared.swap(says("harmful")), shared.swap(says("late")))));
        swaps.join().expect("no panic");
        found.join().expect("no panic")
    });
    println!("{} runs", seen.runs);
    seen.ends
}

/// G2, O3: the tool that is given is the one that the view was asked about.
#[test]
fn o3_a_view_gives_no_tool_but_the_one_that_it_judged() {
    let ends = found_during_swaps(|view| view);
    assert_eq!(ends, ["", "harmless", "late"].map(str::to_owned).into());
}

#[test]
fn o3_a_view_that_looks_twice_is_noticed() {
    assert!(found_during_swaps(LooksTwice).contains("harmful"));
}

/// What two calls with one token said, while the tool that it was issued for is replaced.
fn redeemed_during_a_swap(orders: Orders, calls: usize) -> BTreeSet<Vec<String>> {
    let seen = explore(orders, move || {
        let asks = |version: &'static str| {
            let tool = define(version).confirm(ConfirmBy::Caller).handler(move |_| Ok(Reply::new(version)));
            registry(tool.build().expect("a good tool"))
        };
        let shared = SharedRegistry::new(asks("old"));
        let tools = shared.clone();
        let asked = spawn(move || {
            let gate = Gate::builder(tools).unlimited().build().expect("a good gate");
            let token = {
                let outcome = gate.call(&CLI, Request { tool: "a", arguments: b"{}", token: None });
                let asked: Value =
                    serde_json::from_str(&outcome.to_json().expect("an outcome is JSON")).expect("it is");
                asked["data"]["confirm_token"].as_str().expect("it asks").to_owned()
            };
            (gate, token)
        });
        let (gate, token) = asked.join().expect("no panic");
        let redeems: Vec<_> = (0..calls)
            .map(|_| {
                let (gate, token) = (gate.clone(), token.clone());
                spawn(move || {
                    let outcome = gate.call(&CLI, Request { tool: "a", arguments: b"{}", token: Some(&token) });
                    match outcome.output() {
                        Some(reply) => reply.data().as_str().unwrap_or_default().to_owned(),
                        None => outcome.code().map_or_else(String::new, |code| code.as_str().to_owned()),
                    }
                })
            })
            .collect();
        let swap = spawn(move || drop(shared.swap(asks("new"))));
        swap.join().expect("no panic");
        let mut said: Vec<_> = redeems.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        said.sort();
        said
    });
    println!("{} runs", seen.runs);
    seen.ends
}

/// G4, A4: a token runs the definition that it was issued for, or nothing.
#[test]
fn g4_a_token_never_runs_a_tool_that_came_later() {
    assert_eq!(
        redeemed_during_a_swap(All, 1),
        [vec!["CONFIRMATION_INVALID".to_owned()], vec!["old".to_owned()]].into()
    );
}

/// A5: nor does it run one twice, for whoever comes while the tool is replaced.
#[test]
fn a5_two_calls_with_one_token_run_it_at_most_once_through_the_whole_gate() {
    let ends = redeemed_during_a_swap(Interrupted(2), 2);
    let invalid = || "CONFIRMATION_INVALID".to_owned();
    assert_eq!(ends, [vec![invalid(), invalid()], vec![invalid(), "old".to_owned()]].into());
}
