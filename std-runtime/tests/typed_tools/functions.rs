//! `#[tool]` on functions.

use std::ops::ControlFlow;

use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_core::tool::ConfirmBy;
use callgate_macros::{Output, tool};
use callgate_std::cancellation::Cancellation;
use callgate_std::failure::Failure;
use callgate_std::gate::Gate;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::{Cancelled, OwnedCall, Reporter, ToolBuilder, ToolCall};
use callgate_std::update::{Progress, Update};
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::Order;
use crate::drive::call;

const MOST: u32 = 1_000;

#[derive(Serialize, Output)]
#[serde(rename_all = "camelCase")]
struct Hit<'a> {
    /// Where it is
    file_name: &'a str,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(skip)]
    _internal: u8,
}

/// Finds notes
/// that contain a text.
///
/// # Errors
/// Not for models.
#[tool(
    name = "notes.search",
    version = "2",
    scopes("notes:read", "notes:all"),
    read_only,
    idempotent,
    timeout = "5s",
    cost = 3
)]
fn search<'p>(
    caller: &CallContext<'_>,
    /// What to look for
    #[param(length(1..=20))]
    pattern: &'p str,
    running: &ToolCall<'_>,
    #[param(clamp(1..=MOST), default = 20)] max: u32,
    #[param(rename = "in")] within: Option<&str>,
    words: &[String],
    order: Option<Order>,
) -> Result<Vec<Hit<'p>>, Failure> {
    assert_eq!(running.request_id(), caller.request_id);
    if pattern == "none" {
        return Err(Failure::not_found("nothing there").public().without_effect());
    }
    let context = within.map(|within| format!("{within} {words:?} {order:?}"));
    Ok(vec![Hit { file_name: pattern, line: max, context, _internal: 1 }])
}

/// Adds
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Forgets everything
#[tool(mutating, dangerous, confirm(approver = "ops"), max_output = 100)]
pub(crate) fn forget() {}

/// Is not there
#[tool]
#[cfg(any())]
fn absent() -> Absent {}

/// Says what it likes
#[tool(requires("network"), confirm(caller), description = "Says something")]
fn say(#[param(secret)] call: String) -> Reply {
    Reply::new(call)
}

/// Divides
#[tool]
fn divide(r#in: u8, by: u8) -> Result<f64, std::num::ParseIntError> {
    if by == 0 {
        "".parse::<u8>()?;
    }
    Ok(f64::from(r#in) / f64::from(by))
}

#[derive(Serialize, Output)]
enum Reading {
    Missing,
    Value(f64),
    Pair { low: i8, high: i8 },
}

/// Gives what it is told to
#[tool]
fn reading(which: u8) -> Reading {
    match which {
        0 => Reading::Missing,
        1 => Reading::Value(0.5),
        2 => Reading::Pair { low: -1, high: 1 },
        // JSON has no such number: serde writes null.
        _ => Reading::Value(f64::NAN),
    }
}

/// Waits, and says for whom
#[tool(timeout = "1m", concurrency(at_once = 2, line = 1))]
async fn wait(
    caller: &CallContext<'_>,
    running: &OwnedCall,
    cancellation: Cancellation,
    name: &str,
    #[param(clamp(..=3))] times: u8,
) -> Result<String, Failure> {
    for done in 0..times {
        running.progress(Progress::count(done.into())).await;
        std::future::ready(()).await;
    }
    if cancellation.is_cancelled() {
        return Err(Failure::cancelled());
    }
    Ok(format!("{name} {times} {}", caller.request_id))
}

/// Counts, and tells how far it is
#[tool]
fn count(to: u8, cancelled: Cancelled<'_>, report: &Reporter<'_>) -> Result<u8, Failure> {
    for done in 0..to {
        cancelled.check()?;
        report.progress(Progress::count(done.into()));
        report.chunk(done)?;
    }
    Ok(to)
}

fn registry(tool: ToolBuilder) -> Registry {
    Registry::builder().add(tool).build().unwrap()
}

#[test]
fn a_function_stays_one_and_is_a_tool_beside() {
    assert_eq!(add(1, 2), 3);
    let registry = registry(add::tool());
    assert_eq!(call(&registry, "add", r#"{"a": 40, "b": 2}"#)["data"], 42);
    assert_eq!(call(&registry, "add", r#"{"a": 40}"#)["meta"]["code"], "VALIDATION_ERROR");
    // S4: all of an i64.
    assert_eq!(call(&registry, "add", r#"{"a": 9223372036854775807, "b": 0}"#)["data"], json!(i64::MAX));
}

/// G4: what the attribute says is the definition.
#[test]
fn g4_the_definition_is_what_was_said() {
    let tool = search::tool().build().unwrap();
    let spec = tool.spec();
    assert_eq!(
        (spec.name, spec.version, spec.description),
        ("notes.search", Some("2"), "Finds notes\nthat contain a text.")
    );
    assert_eq!(spec.scopes.as_str(), "notes:read notes:all");
    assert_eq!((spec.read_only, spec.idempotent, spec.mutating, spec.dangerous), (true, true, false, false));
    assert_eq!((spec.timeout_ms, spec.cost()), (5_000, 3));
    let forget = forget::tool().build().unwrap();
    assert_eq!(forget.spec().confirm, ConfirmBy::Approver { scope: "ops" });
    assert_eq!((forget.spec().mutating, forget.spec().dangerous, forget.max_output()), (true, true, 100));
    assert_eq!(forget.spec().output_schema, None);
    let say = say::tool().build().unwrap();
    assert_eq!((say.spec().confirm, say.spec().description), (ConfirmBy::Caller, "Says something"));
    assert_eq!(say.spec().requirements.as_str(), "network");
    assert!(say.spec().fields[0].secret);
}

/// What the gate gives is in no schema, and the names on the wire are those of the source.
#[test]
fn s8_the_schema_has_the_parameters_and_no_more() {
    let tool = search::tool().build().unwrap();
    let schema: Value = serde_json::from_str(tool.spec().input_schema.unwrap()).unwrap();
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
    let mut expected = ["pattern", "max", "in", "words", "order"];
    expected.sort_unstable();
    let mut names = names;
    names.sort();
    assert_eq!(names, expected);
    assert_eq!(schema["required"], json!(["pattern", "words"]));
    assert_eq!(schema["properties"]["pattern"]["description"], "What to look for");
    assert_eq!(divide::tool().build().unwrap().spec().input_schema.unwrap().matches("\"in\"").count(), 2);
}

#[test]
fn k3_arguments_are_clamped_and_handed_over() {
    let registry = registry(search::tool());
    let outcome = call(
        &registry,
        "notes.search",
        r#"{"pattern": "a\u0062\n", "max": 5000, "in": "x", "words": ["y"], "order": "date"}"#,
    );
    assert_eq!(
        outcome["data"],
        json!([{"fileName": "ab\n", "line": 1000, "context": "x [\"y\"] Some(Date)"}]),
        "{outcome}"
    );
    let outcome = call(&registry, "notes.search", r#"{"pattern": "b", "words": []}"#);
    assert_eq!(outcome["data"], json!([{"fileName": "b", "line": 20}]), "{outcome}");
    let outcome = call(&registry, "notes.search", r#"{"pattern": "none", "words": []}"#);
    assert_eq!(
        (&outcome["meta"]["code"], &outcome["meta"]["effect"]),
        (&json!("NOT_FOUND"), &json!("none")),
        "{outcome}"
    );
}

#[test]
fn results_of_every_kind_come_out() {
    let one = |tool: ToolBuilder, name: &str, arguments: &str| call(&registry(tool), name, arguments);
    assert_eq!(one(divide::tool(), "divide", r#"{"in": 1, "by": 4}"#)["data"], 0.25);
    let failed = one(divide::tool(), "divide", r#"{"in": 1, "by": 0}"#);
    assert_eq!(failed["meta"]["code"], "INTERNAL_ERROR");
    assert!(!failed.to_string().contains("empty string"), "L4: {failed}");
    assert_eq!(one(reading::tool(), "reading", r#"{"which": 0}"#)["data"], "Missing");
    assert_eq!(one(reading::tool(), "reading", r#"{"which": 1}"#)["data"], json!({"Value": 0.5}));
    assert_eq!(one(reading::tool(), "reading", r#"{"which": 2}"#)["data"], json!({"Pair": {"low": -1, "high": 1}}));
}

/// O1: what does not fit the output schema is contained, and the outcome says that the tool has run.
#[test]
fn o1_a_result_that_breaks_its_schema_is_contained() {
    let outcome = call(&registry(reading::tool()), "reading", r#"{"which": 3}"#);
    assert_eq!(
        (&outcome["meta"]["code"], &outcome["meta"]["effect"]),
        (&json!("OUTPUT_INVALID"), &json!("done")),
        "{outcome}"
    );
    let schema = search::tool().build().unwrap().spec().output_schema.unwrap().to_owned();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["items"]["required"], json!(["fileName", "line"]));
    assert_eq!(schema["items"]["properties"]["fileName"]["description"], "Where it is");
    assert!(schema["items"]["properties"].get("_internal").is_none());
}

/// A function that waits is a tool as another one is, in every gate.
#[test]
fn an_async_function_is_a_tool() {
    let gate = Gate::builder(registry(wait::tool())).build().unwrap();
    let request = Request { tool: "wait", arguments: br#"{"name": "a\u0062", "times": 200}"#, token: None };
    let outcome = gate.call(&CallContext::cli("r7"), request);
    let outcome: Value = serde_json::from_str(&outcome.to_json().unwrap()).unwrap();
    assert_eq!(outcome["data"], "ab 3 r7", "{outcome}");
    let schema: Value = serde_json::from_str(wait::tool().build().unwrap().spec().input_schema.unwrap()).unwrap();
    assert_eq!(schema["required"], json!(["name", "times"]));
    assert_eq!(schema["properties"].as_object().unwrap().len(), 2);
}

/// Tells once, and whether anybody waits then
#[tool]
fn ask(cancelled: Cancelled<'_>, report: Reporter<'_>) -> Result<bool, Failure> {
    report.progress(Progress::count(1));
    ASKED.with(|asked| asked.set(Some(cancelled.is_cancelled())));
    Ok(true)
}

thread_local! {
    static ASKED: std::cell::Cell<Option<bool>> = const { std::cell::Cell::new(None) };
}

#[test]
fn who_is_gone_is_known_to_the_function() {
    let gate = Gate::builder(registry(ask::tool())).build().unwrap();
    for (flow, gone) in [(ControlFlow::Continue(()), false), (ControlFlow::Break(()), true)] {
        let request = Request { tool: "ask", arguments: b"", token: None };
        drop(gate.call_following(&CallContext::cli("r1"), request, |_| flow));
        assert_eq!(ASKED.with(std::cell::Cell::take), Some(gone));
    }
}

/// What the gate gives is the call's own: who follows it gets the reports, and who is gone stops it.
#[test]
fn handles_are_those_of_the_call() {
    assert_eq!(count(2, Cancelled::NEVER, &Reporter::NOBODY).ok(), Some(2));
    assert!(count(2, Cancelled::when(&|| true), &Reporter::NOBODY).is_err());
    let gate = Gate::builder(registry(count::tool())).build().unwrap();
    let request = || Request { tool: "count", arguments: br#"{"to": 3}"#, token: None };
    let mut told = Vec::new();
    let outcome = gate.call_following(&CallContext::cli("r1"), request(), |update| {
        told.push(match update {
            Update::Progress(progress) => progress.to_string(),
            Update::Chunk(chunk) => format!("{chunk}!"),
        });
        ControlFlow::Continue(())
    });
    assert_eq!(outcome.output().map(|reply| reply.data().to_string()).as_deref(), Some("3"));
    assert_eq!(told, ["0", "0!", "1", "1!", "2", "2!"]);
    let outcome = gate.call_following(&CallContext::cli("r2"), request(), |_| ControlFlow::Break(()));
    assert!(outcome.output().is_none());
    let schema: Value = serde_json::from_str(count::tool().build().unwrap().spec().input_schema.unwrap()).unwrap();
    assert_eq!(schema["required"], json!(["to"]));
}
