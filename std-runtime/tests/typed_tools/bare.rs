//! `#[tool(no_std)]`: a function as a constant of core. That it runs without a heap is for the probe in `ci/no-std-probe` to show.

use callgate_core::clamp::Clamp;
use callgate_core::code::{Code, Effect};
use callgate_core::context::CallContext;
use callgate_core::tool::{ConfirmBy, FieldRule, Tool as _, ToolFailure as _, ToolOutput as _};
use callgate_core::typed::{BareTool, Failed};
use callgate_macros::tool;

use crate::arguments::{document, fits};

/// Opens a valve
#[tool(
    no_std,
    name = "valve.open",
    version = "3",
    mutating,
    dangerous,
    scopes("valves", "admin"),
    requires("water"),
    confirm(approver = "ops"),
    timeout = "2s",
    cost = 9
)]
fn open(
    caller: &CallContext<'_>,
    #[param(length(1..=40))] valve: &str,
    #[param(clamp(0..=100), default = 100)] percent: u8,
    #[param(secret)] key: Option<&str>,
) -> Result<u8, &'static str> {
    if caller.request_id == valve || key == Some("") { Err("stuck") } else { Ok(percent) }
}

/// Counts
#[tool(no_std)]
fn count() -> u32 {
    7
}

const TOOLS: [BareTool<u8, &'static str>; 1] = [open::TOOL];

/// G4: the definition is whole, the advertised text among it, and is what was said.
#[test]
fn g4_a_constant_tool_is_what_was_said() {
    let spec = TOOLS[0].spec();
    assert_eq!((spec.name, spec.description, spec.version), ("valve.open", "Opens a valve", Some("3")));
    assert_eq!((spec.scopes.as_str(), spec.requirements.as_str()), ("valves admin", "water"));
    assert_eq!((spec.mutating, spec.dangerous, spec.read_only, spec.idempotent), (true, true, false, false));
    assert_eq!((spec.confirm, spec.timeout_ms, spec.cost()), (ConfirmBy::Approver { scope: "ops" }, 2_000, 9));
    assert_eq!(spec.fields, [FieldRule::clamp("/percent", Clamp::range(0, 100)), FieldRule::secret("/key")]);
    let schema = TOOLS[0].schema().unwrap();
    let advertised: serde_json::Value = serde_json::from_str(spec.input_schema.unwrap()).unwrap();
    assert_eq!(advertised, document(schema));
    assert!(fits(schema, &serde_json::json!({"valve": "a", "percent": 400})));
    assert!(!fits(schema, &serde_json::json!({"valve": "a", "percents": 4})));
    assert_eq!(count::TOOL.spec().name, "count");
}

#[test]
fn l4_arguments_that_the_types_do_not_hold_are_told_without_their_value() {
    let mut text = String::new();
    7u32.write_data(&mut text).unwrap();
    (-7i32).write_data(&mut text).unwrap();
    true.write_data(&mut text).unwrap();
    assert_eq!(text, "7-7true");
    let failed: Failed<&str> = Failed::Body("stuck");
    assert_eq!((failed.code(), failed.effect(), failed.public_text()), (Code::InternalError, Effect::Unknown, None));
    let error = serde_json::json!({"a": 1}).to_string();
    let mut keys = [callgate_core::json::KeySlot::default(); 4];
    let limits = callgate_core::json::Limits::DEFAULT;
    let args = callgate_core::args::Args::read(error.as_bytes(), &mut keys, &limits).unwrap();
    let refused = callgate_core::typed::parse::<crate::arguments::Range>(args).unwrap_err();
    let failed: Failed<&str> = Failed::Arguments(refused.kind());
    assert_eq!((failed.code(), failed.effect()), (Code::ValidationError, Effect::None));
    assert!(failed.public_text().is_some());
}
