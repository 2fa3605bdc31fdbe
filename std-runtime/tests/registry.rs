//! Registries, views and listings: which names can stand beside each other, what a caller finds, and what it is told of.
#![cfg(test)]

mod drive;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate_core::args::Args;
use callgate_core::call::Lookup;
use callgate_core::context::{CallContext, Scopes};
use callgate_core::policy::{ChannelPolicy, ChannelTable, PolicyGate, Subject};
use callgate_core::schema::{Property, Schema};
use callgate_core::time::Timestamp;
use callgate_core::tool::ConfirmBy;
use callgate_std::budget::Contexts;
use callgate_std::listing::Listing;
use callgate_std::output::Reply;
use callgate_std::registry::{Registry, RegistryProblem, RegistryWarning, SharedRegistry, Sight, ToolSource};
use callgate_std::tool::{Tool, ToolBuilder};
use callgate_std::view::View;
use drive::{Around, call, call_around, call_as, value};
use proptest::prelude::*;
use serde_json::json;

fn define(name: &str) -> ToolBuilder {
    Tool::builder(name).description("Does something").handler(|call| Ok(Reply::new(call.spec().name)))
}

fn registry(names: &[&str]) -> Registry {
    Registry::builder().add_all(names.iter().map(|name| define(name))).build().unwrap()
}

fn names(tools: &[Arc<Tool>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name()).collect()
}

fn listed(source: &dyn ToolSource, caller: &CallContext<'_>) -> Vec<String> {
    Listing::of(source, caller).tools().iter().map(|tool| tool.name().to_owned()).collect()
}

const CLI: CallContext<'static> = CallContext::cli("r1");

#[test]
fn s2_tools_are_found_by_exactly_their_names() {
    let registry = registry(&["fs.read", "fs.write", "constructor", "__proto__", "7"]);
    assert_eq!((registry.len(), registry.is_empty()), (5, false));
    assert_eq!(registry.get("fs.read").unwrap().name(), "fs.read");
    // V18
    for absent in ["fs.rea", "FS.READ", "fs.read ", "fs.read\n", "", "fs_read", "Constructor", "toString"] {
        assert!(!registry.has(absent), "{absent:?}");
        assert!(matches!(registry.find(absent, &CLI), Lookup::Unknown));
    }
    let order: Vec<_> = registry.iter().map(|tool| tool.name()).collect();
    assert_eq!(order, ["fs.read", "fs.write", "constructor", "__proto__", "7"], "as registered");
}

#[test]
fn g3_everything_that_can_not_stand_is_told_at_once() {
    let error = Registry::builder()
        .add_all(["read", "list", "READ", "1ist", "read", "farm", "farn-", "farrn"].map(define))
        .add(define("b ad"))
        .build()
        .unwrap_err();
    assert_eq!(
        error.to_string().lines().collect::<Vec<_>>(),
        [
            "5 problems with the registered tools",
            "tool b ad: its name has a character at byte 1 that such a name may not have; use 1 to 128 of A-Z a-z 0-9 _ . -",
            "tools read and READ differ only in case; give one another name",
            "tools list and 1ist look alike (0 as O, 1 and I as l, m as rn); give one another name",
            "tool read is registered twice; remove one, or give it another name",
            "tools farm and farrn look alike (0 as O, 1 and I as l, m as rn); give one another name",
        ]
    );
    assert!(matches!(error.problems()[0], RegistryProblem::Tool(_)));
}

#[test]
fn v19_names_that_lowering_makes_one_are_a_warning() {
    let registry = registry(&["read-file", "read_file", "other", "read.file"]);
    let same = |second: &str| RegistryWarning::SameWhenLowered { first: "read-file".into(), second: second.into() };
    assert_eq!(registry.warnings(), [same("read_file"), same("read.file")]);
}

/// Whether one name could be taken for the other, by the definition: equal, equal but for case, or with one skeleton.
fn is_twin(a: &str, b: &str) -> bool {
    let look = |name: &str| name.replace('0', "O").replace(['1', 'I'], "l").replace('m', "rn");
    a.eq_ignore_ascii_case(b) || look(a).eq_ignore_ascii_case(&look(b))
}

proptest! {
    /// G3: a registry is built exactly when no two of its names are twins, whatever their order; and then each is found.
    #[test]
    fn g3_a_registry_is_built_exactly_when_no_names_are_twins(given in prop::collection::vec("[O0oIl1iLmMrnRN]{1,3}", 1..6)) {
        let twins = given.iter().enumerate().any(|(nth, a)| given[..nth].iter().any(|b| is_twin(a, b)));
        let built = Registry::builder().add_all(given.iter().map(|name| define(name))).build();
        prop_assert_eq!(built.is_err(), twins);
        let backwards = Registry::builder().add_all(given.iter().rev().map(|name| define(name))).build();
        prop_assert_eq!(backwards.is_err(), twins);
        if let Ok(registry) = built {
            for name in &given {
                prop_assert_eq!(registry.get(name).map(|tool| tool.name()), Some(name.as_str()));
            }
        }
    }
}

/// A tool whose results tell which of its definitions ran.
fn versioned(version: &'static str) -> Registry {
    Registry::builder()
        .add(Tool::builder("a").description("Tells").version(version).handler(move |_| Ok(Reply::new(version))))
        .build()
        .unwrap()
}

// G2: a call keeps the tool that it found, whatever becomes of the registry.
#[test]
fn g2_a_swap_during_a_call_does_not_change_the_call() {
    let shared = SharedRegistry::new(versioned("old"));
    let swap = || drop(shared.swap(versioned("new")));
    let outcome = call_around(&shared, "a", "{}", Around { resolved: &swap, ..Around::default() });
    assert_eq!(outcome["data"], "old");
    assert_eq!(call(&shared, "a", "{}")["data"], "new");
    let remove = || drop(shared.swap(Registry::default()));
    assert_eq!(call_around(&shared, "a", "{}", Around { resolved: &remove, ..Around::default() })["data"], "new");
    assert_eq!(call(&shared, "a", "{}")["meta"]["code"], "TOOL_NOT_FOUND");
}

#[test]
fn g2_swaps_and_calls_from_many_threads_see_whole_registries() {
    let shared = SharedRegistry::new(versioned("0"));
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let outcome = call(&shared, "a", "{}");
                    assert!(["0", "1", "2"].iter().any(|version| outcome["data"] == *version));
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            while done.load(Ordering::Relaxed) < 2 {
                for version in ["1", "2"] {
                    drop(shared.swap(versioned(version)));
                }
            }
        });
    });
}

fn tools() -> Registry {
    Registry::builder()
        .add(define("fs.read").scopes(["files:read"]))
        .add(define("fs.write").scopes(["files:write", "admin"]).mutating())
        .add(define("time.now"))
        .add(define("net.get").requires(["network"]))
        .build()
        .unwrap()
}

#[test]
fn f2_a_view_shows_what_it_was_given_and_nothing_else() {
    let shown = |view: View| listed(&view, &CLI);
    let view = || View::of(tools(), "v");
    assert_eq!(shown(view()), [""; 0]);
    assert_eq!(shown(view().with_names([""; 0]).with_prefix("").with_scopes(Scopes::NONE)), [""; 0]);
    assert_eq!(shown(view().with_names(["time.now", "fs.write", "no.such"])), ["fs.write", "time.now"]);
    assert_eq!(view().with_names(["time.now", "no.such", "NO"]).missing(), ["NO", "no.such"]);
    assert_eq!(shown(view().with_prefix("fs.")), ["fs.read", "fs.write"]);
    assert_eq!(shown(view().with_scopes(Scopes::new("admin"))), ["fs.write", "time.now", "net.get"]);
    assert_eq!(shown(view().with_scopes(Scopes::ALL)), ["fs.read", "fs.write", "time.now", "net.get"]);
    assert_eq!(
        shown(view().with_prefix("fs.").with_names(["time.now"]).only_if(|tool, _| !tool.spec().mutating)),
        ["fs.read", "time.now"]
    );
    let by_caller = view().with_all().only_if(|_, caller| caller.channel == "cli");
    assert_eq!(shown(by_caller.clone()).len(), 4);
    assert_eq!(listed(&by_caller, &CallContext::web("r", Some("a"), Scopes::ALL)), [""; 0]);
}

// O3: outside a view a tool looks like none, unless the view admits it; a late tool passes the same rule.
#[test]
fn o3_hidden_tools_are_refused_by_name_and_late_tools_pass_the_same_rule() {
    let shared = SharedRegistry::new(tools());
    let quiet = View::of(shared.clone(), "quiet").with_prefix("fs.");
    let open = quiet.clone().admitting();
    let mut hidden = call(&quiet, "time.now", "{}");
    let mut absent = call(&quiet, "no.such", "{}");
    assert_eq!(hidden["meta"]["code"], "TOOL_NOT_FOUND");
    for outcome in [&mut hidden, &mut absent] {
        outcome["error"] = json!(outcome["error"].as_str().unwrap().replace("time.now", "X").replace("no.such", "X"));
        outcome["meta"]["tool"] = json!("X");
    }
    assert_eq!(hidden, absent, "the two can't be told apart");
    assert_eq!(call(&open, "time.now", "{}")["meta"]["code"], "CAPABILITY_DENIED");
    assert_eq!(call(&open, "no.such", "{}")["meta"]["code"], "TOOL_NOT_FOUND");
    assert_eq!(call(&open, "fs.read", "{}")["data"], "fs.read");

    let late = Registry::builder().add_all(&tools());
    drop(shared.swap(late.add(define("fs.late")).add(define("late")).build().unwrap()));
    assert_eq!(call(&quiet, "fs.late", "{}")["data"], "fs.late");
    assert_eq!(call(&quiet, "late", "{}")["meta"]["code"], "TOOL_NOT_FOUND");
    assert_eq!(listed(&quiet, &CLI), ["fs.read", "fs.write", "fs.late"]);
}

#[test]
fn o3_a_view_of_a_view_is_never_wider() {
    let inner = View::of(tools(), "inner").with_prefix("fs.");
    let outer = |inner: View| View::of(inner, "outer").with_all();
    assert_eq!(listed(&outer(inner.clone()), &CLI), ["fs.read", "fs.write"]);
    let sight = |view: View| view.sight(tools().get("time.now").unwrap(), &CLI);
    assert_eq!(sight(outer(inner.clone()).admitting()), Sight::Absent, "what is kept quiet about stays so");
    assert_eq!(sight(outer(inner.clone().admitting())), Sight::Absent, "each has to admit it");
    assert_eq!(sight(outer(inner.admitting()).admitting()), Sight::Hidden);
}

#[test]
fn listings_have_the_shape_of_the_wire() {
    const INPUT: Schema<'static> = Schema::object(&[Property::required("n", Schema::integer().minimum(0).maximum(9))]);
    let registry = Registry::builder()
        .add(define("plain"))
        .add(define("b.full").version("2").const_schema(INPUT).output_schema(Schema::string()).scopes(["s"]).mutating())
        .build()
        .unwrap();
    let text = Listing::of(&registry, &CLI).to_string();
    assert_eq!(
        text,
        concat!(
            r#"[{"name":"plain","description":"Does something","inputSchema":{"type":"object"}},"#,
            r#"{"name":"b.full","description":"Does something","inputSchema":{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":9}},"required":["n"],"additionalProperties":false},"#,
            r#""version":"2","outputSchema":{"type":"string"}}]"#
        )
    );
    assert!(value(&text).is_array());
    assert_eq!(Listing::of(&Registry::default(), &CLI).to_string(), "[]");
}

#[test]
fn listings_narrow_by_prefix_scopes_and_policy() {
    let all = || Listing::of(&tools(), &CLI);
    assert_eq!(names(all().with_prefix("fs.").tools()), ["fs.read", "fs.write"]);
    assert_eq!(names(all().with_scopes(Scopes::new("files:read")).tools()), ["fs.read", "time.now", "net.get"]);
    assert_eq!(names(all().with_scopes(Scopes::ALL).tools()).len(), 4);
    assert_eq!(names(all().with_scopes(Scopes::NONE).tools()), [""; 0]);
    let gate = PolicyGate::new(ChannelTable::DEFAULTS);
    let permitted = |gate: &PolicyGate<'_>, caller: &CallContext<'_>| {
        Listing::of(&tools(), caller)
            .permitted(gate, caller)
            .tools()
            .iter()
            .map(|tool| tool.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(permitted(&gate, &CallContext::web("r", None, Scopes::ALL)), [""; 0], "nobody is known");
    let ada = CallContext::web("r", Some("ada"), Scopes::new("files:read"));
    assert_eq!(permitted(&gate, &ada), ["fs.read", "time.now"]);
    assert_eq!(permitted(&gate.providing(Scopes::new("network")), &ada), ["fs.read", "time.now", "net.get"]);
    assert_eq!(permitted(&gate, &CLI), ["fs.read", "fs.write", "time.now"]);

    // A tool that waits for consent or for a confirmation is one that the caller may see.
    let channels = [ChannelPolicy::new("cli").requiring_consent()];
    let asking = Registry::builder().add(define("asks").confirm(ConfirmBy::Caller)).build().unwrap();
    let gate = PolicyGate::new(ChannelTable::new(&channels));
    assert_eq!(names(Listing::of(&asking, &CLI).permitted(&gate, &CLI).tools()), ["asks"]);
    assert!(!gate.decide::<&str>(&subject(asking.get("asks").unwrap())).is_allowed());
}

/// What a policy judges of a call of `tool` without arguments.
fn subject(tool: &Tool) -> Subject<'_> {
    Subject {
        caller: CLI,
        spec: tool.spec(),
        definition: tool.digest(),
        args: Args::EMPTY,
        arguments: None,
        now: Timestamp::default(),
    }
}

#[test]
fn selections_are_greedy_and_take_what_is_asked_for_first() {
    let sized = |name: &str, words: usize| define(name).description("word ".repeat(words));
    let registry = Registry::builder()
        .add(sized("large", 500))
        .add(sized("small", 10))
        .add(sized("huge", 3_000))
        .add(sized("tiny", 1))
        .build()
        .unwrap();
    let tools = Listing::of(&registry, &CLI).into_tools();
    let budget = Contexts::default().budget("gpt-3.5-turbo");
    assert_eq!(budget.tokens(), 1_228);
    let selection = budget.select::<&str>(&tools, &[]);
    assert_eq!(
        (names(selection.selected()), names(selection.excluded())),
        (vec!["large", "small", "tiny"], vec!["huge"])
    );
    assert!(selection.used() <= budget.tokens());
    assert_eq!(selection.warning().unwrap(), "1 tool does not fit into the 1228 tokens for gpt-3.5-turbo: huge");
    let first = budget.select(&tools, &["tiny", "no.such", "small"]);
    assert_eq!(names(first.selected()), ["small", "tiny", "large"], "in the order of registration");
    let exact = Contexts::default().with("m", 100).budget("m").tokens();
    let tokens = callgate_std::budget::tokens_of_tool(&tools[3]);
    assert!(tokens <= exact, "{tokens}");
    let fitting = Contexts::default().with("m", (tokens * 10).div_ceil(3)).budget("m");
    assert_eq!(names(fitting.select::<&str>(&tools, &[]).selected()), ["tiny"], "what fits exactly fits");
    assert_eq!(fitting.tokens(), tokens);
    let roomy = Contexts::default().budget("claude-opus").select::<&str>(&tools, &[]);
    assert_eq!((roomy.selected().len(), roomy.warning()), (4, None));
    let usage = budget.usage(&tools);
    assert!(!usage.fits() && usage.percent() > 100.0 && usage.overflow() == usage.used() - 1_228);
    let report = usage.to_string();
    for line in [
        "Model: gpt-3.5-turbo\n",
        "Context: 4096 tokens\n",
        "(30%): 1228 tokens\n",
        "Tools: 4\n",
        "over the budget by ",
    ] {
        assert!(report.contains(line), "{report}");
    }
}

/// A view by chance.
fn any_view() -> impl Strategy<Value = View> {
    let names = prop::collection::vec(prop::sample::select(vec!["fs.read", "time.now", "late.tool", "none"]), 0..3);
    let prefix = prop::sample::select(vec!["", "f", "late", "x"]);
    let scopes = prop::sample::select(vec!["", "admin", "files:read", "*"]);
    (names, prefix, scopes, any::<[bool; 3]>()).prop_map(|(names, prefix, scopes, [all, admits, calm])| {
        let shared = SharedRegistry::new(tools());
        let mut view =
            View::of(shared.clone(), "v").with_names(names).with_prefix(prefix).with_scopes(Scopes::new(scopes));
        if all {
            view = view.with_all();
        }
        if admits {
            view = view.admitting();
        }
        if calm {
            view = view.only_if(|tool, caller| !tool.spec().mutating || caller.channel == "cli");
        }
        let late = Registry::builder().add_all(&tools());
        drop(shared.swap(late.add(define("late.tool")).build().unwrap()));
        view
    })
}

proptest! {
    /// O3: what is listed is exactly what a call by the same caller finds.
    #[test]
    fn o3_listings_and_look_ups_agree(view in any_view(), web in any::<bool>()) {
        let caller = if web { CallContext::web("r", Some("ada"), Scopes::ALL) } else { CLI };
        let listed = listed(&view, &caller);
        for tool in &view.registry() {
            let found = matches!(view.find(tool.name(), &caller), Lookup::Found(_));
            prop_assert_eq!(listed.iter().any(|name| name == tool.name()), found);
            let code = call_as(&view, caller, tool.name(), "{}")["meta"]["code"].clone();
            let denied = code == "TOOL_NOT_FOUND" || code == "CAPABILITY_DENIED";
            prop_assert_eq!(found, !denied);
        }
    }
}
