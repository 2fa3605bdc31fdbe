//! The built-in tools behind the gate: every schema is admitted, and the gate's clamps, refusals and records are about them.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "in helpers of tests; a failure is a failed test")]

use std::fs;
use std::sync::Arc;

use callgate::toolkit::fs::{Root, list, read, search, write};
use callgate::toolkit::{Deadline, Fault, ToolDef, ToolError, ToolResult, definitions, time};
use callgate_core::code::{Code, Effect};
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_core::tool::ConfirmBy;
use callgate_std::failure::Failure;
use callgate_std::gate::Gate;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::{Tool, ToolBuilder, ToolCall};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A tool from its definition and its body: all that joins the two worlds.
fn tool<A: DeserializeOwned>(
    definition: ToolDef,
    body: impl Fn(A, Deadline<'_>) -> ToolResult + Send + Sync + 'static,
) -> ToolBuilder {
    let builder =
        Tool::builder(definition.name).description(definition.description).json_schema(definition.input_schema);
    let builder = if definition.mutating { builder.mutating() } else { builder };
    let builder = if definition.read_only { builder.read_only() } else { builder };
    let builder = if definition.confirm_by_caller { builder.confirm(ConfirmBy::Caller) } else { builder };
    let clamped = definition
        .clamps
        .into_iter()
        .fold(builder, |builder, clamp| builder.clamp(clamp.pointer, clamp.min..=clamp.max));
    clamped.typed(move |call: &ToolCall<'_>, args: A| {
        let gone = || call.is_cancelled();
        body(args, Deadline::at(call.clock(), call.deadline()).or_when(&gone)).map(Reply::new).map_err(failure)
    })
}

fn failure(error: ToolError) -> Failure {
    match error.fault {
        Fault::Refused => Failure::invalid(error.message).public().without_effect(),
        Fault::Missing => Failure::not_found(error.message).public().without_effect(),
        _ => Failure::new(error.message).public(),
    }
}

struct Place {
    files: TempDir,
    gate: Gate,
}

impl Place {
    fn new() -> Self {
        let files = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(files.path()).unwrap());
        let mut registry = Registry::builder();
        for definition in definitions() {
            let root = Arc::clone(&root);
            registry = registry.add(match definition.name.as_str() {
                "fs.list" => tool(definition, move |args, deadline| list(&root, &args, deadline)),
                "fs.read" => tool(definition, move |args, deadline| read(&root, &args, deadline)),
                "fs.search" => tool(definition, move |args, deadline| search(&root, &args, deadline)),
                "fs.write" => tool(definition, move |args, deadline| write(&root, &args, deadline)),
                _ => tool(definition, |args, deadline| time::now(&args, deadline.clock().now().wall)),
            });
        }
        Self { files, gate: Gate::builder(registry.build().unwrap()).build().unwrap() }
    }

    fn call(&self, tool: &str, arguments: &Value) -> (Option<Code>, Effect, Value) {
        let arguments = arguments.to_string();
        let caller = CallContext::cli("request-1");
        let outcome = self.gate.call(&caller, Request { tool, arguments: arguments.as_bytes(), token: None });
        let json = serde_json::from_str(&outcome.to_json().unwrap()).unwrap();
        (outcome.code(), outcome.effect(), json)
    }
}

/// The main job: an agent asks for 5000 matches, gets 1000, and is told.
#[test]
fn k3_a_search_for_too_much_is_clamped_and_says_so() {
    let place = Place::new();
    fs::write(place.files.path().join("notes"), "TODO\n".repeat(1_200)).unwrap();
    let (code, effect, json) = place.call("fs.search", &json!({"pattern": "TODO", "max": 5000}));
    assert_eq!((code, effect), (None, Effect::Done));
    assert_eq!(json["data"]["matches"].as_array().unwrap().len(), 1_000);
    assert_eq!(json["data"]["truncated_by"], "max");
    assert!(json["meta"]["clamped"].to_string().contains("5000"), "{}", json["meta"]);
}

#[test]
fn numbers_out_of_their_clamps_are_mended_and_not_refused() {
    let place = Place::new();
    fs::write(place.files.path().join("f"), "abc").unwrap();
    for (tool, arguments) in [
        ("fs.list", json!({"max": 0})),
        ("fs.list", json!({"max": -7})),
        ("fs.read", json!({"path": "f", "limit": 9_007_199_254_740_991_i64})),
        ("fs.search", json!({"pattern": "b", "max": -9_007_199_254_740_991_i64})),
    ] {
        assert_eq!(place.call(tool, &arguments).0, None, "{tool} {arguments}");
    }
}

#[test]
fn s8_v9_an_argument_that_is_none_is_refused_before_the_tool() {
    let place = Place::new();
    for (tool, arguments) in [
        ("fs.list", json!({"pth": "."})),
        ("fs.read", json!({"path": "f", "offset": -1})),
        ("fs.read", json!({"path": "f", "encoding": "latin1"})),
        ("fs.read", json!({})),
        ("fs.search", json!({"pattern": "x", "max": "5000"})),
        ("time.now", json!({"timezone": null})),
    ] {
        let (code, effect, _) = place.call(tool, &arguments);
        assert_eq!((code, effect), (Some(Code::ValidationError), Effect::None), "{tool} {arguments}");
    }
}

#[test]
fn what_a_tool_refuses_has_a_code_and_no_effect() {
    let place = Place::new();
    for (path, code) in
        [("../x", Code::ValidationError), ("/etc/passwd", Code::ValidationError), ("nothing", Code::NotFound)]
    {
        let (found, effect, json) = place.call("fs.read", &json!({"path": path}));
        assert_eq!((found, effect), (Some(code), Effect::None), "{path}");
        assert!(json["error"].as_str().unwrap().starts_with("path: "), "{json}");
    }
}

#[test]
fn a_write_is_asked_about_first() {
    let place = Place::new();
    let (code, effect, json) = place.call("fs.write", &json!({"path": "new", "content": "x"}));
    assert_eq!((code, effect, &json["meta"]["type"]), (None, Effect::None, &json!("confirmation")));
    assert!(!place.files.path().join("new").exists());
}

#[test]
fn the_time_is_the_gates() {
    let (code, _, json) = Place::new().call("time.now", &json!({"timezone": "+02:00"}));
    assert_eq!((code, &json["data"]["offset"]), (None, &json!("+02:00")));
}
