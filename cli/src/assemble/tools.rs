//! The built-in tools of a configuration, with their adjustments.

use std::sync::Arc;

use callgate_core::clamp::{Bound, Clamp};
use callgate_core::tool::{ConfirmBy, FieldRule, ToolSpec};
use callgate_std::confirmations::ConfirmationStore;
use callgate_std::failure::Failure;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::{Problem, Tool, ToolBuilder, ToolCall, ToolError as ToolBuildError};
use callgate_std::verification::Verification;
use serde::de::DeserializeOwned;

use super::later::Later;
use super::state::StateFiles;
use super::{AssembleError, exec};
use crate::config::{self, Config, FILE_NAME, Fault, FieldRules, OWN_DIRECTORY, ToolAdjustment, Toolkit};
use crate::toolkit::fs::{self, Root};
use crate::toolkit::{self, Deadline, ToolDef, ToolError, ToolResult, time};

/// The most bytes of JSON text that a result of a built-in tool may have. Each of them bounds its answer by itself.
const MAX_OUTPUT: usize = 8 << 20;

/// All tools, the declared ones included.
///
/// # Errors
/// Every fault of every tool, each at its place in the file.
pub(super) fn registry(config: &Config, files: &StateFiles, waiting: &Arc<Later>) -> Result<Registry, AssembleError> {
    let root = Root::open(&config.root)
        .map_err(|source| AssembleError::Root { path: config.root.display().to_string(), source })?;
    // A search for the configuration finds its name in any directory (invariant P6).
    let root = root.protect_name(FILE_NAME);
    let root = config.protected_paths().into_iter().chain(files.all()).fold(root, Root::protect);
    let own = config.dir.join(OWN_DIRECTORY);
    let root = Arc::new(files.all().into_iter().chain([own]).fold(root, Root::conceal));
    let mut faults = Vec::new();
    let mut registry = Registry::builder();
    let built_in = config.toolkits.iter().flat_map(|toolkit| built_in(*toolkit, &root));
    for (def, body) in built_in {
        match define(&def, body, config.tools.get(&def.name)) {
            Ok(Some(tool)) => registry = registry.add(tool),
            Ok(None) => {}
            Err(found) => faults.extend(found),
        }
    }
    for tool in exec::tools(config, &root, &mut faults) {
        registry = registry.add(tool);
    }
    if config.verification.enabled {
        for tool in verification(&config.verification, waiting)? {
            registry = registry.add(tool);
        }
    }
    if faults.is_empty() { Ok(registry.build()?) } else { Err(config.refuse(faults).into()) }
}

/// The tools with which agents ask people.
fn verification(settings: &config::Verification, waiting: &Arc<Later>) -> Result<[Tool; 2], ToolBuildError> {
    let ttl_ms = u64::try_from(settings.ttl.as_millis()).unwrap_or(u64::MAX);
    Verification::new(Arc::clone(waiting) as Arc<dyn ConfirmationStore>, settings.scope.as_str())
        .with_ttl_ms(ttl_ms)
        .with_quorum(settings.quorum)
        .on_event(|event| {
            let by = event.by.known_principal().unwrap_or_default();
            tracing::info!(event = event.name, request_id = event.request_id, by, "a verification");
        })
        .tools()
}

/// Gives a definition its body.
type Body = Box<dyn FnOnce(ToolBuilder) -> ToolBuilder>;

fn built_in(toolkit: Toolkit, root: &Arc<Root>) -> Vec<(ToolDef, Body)> {
    match toolkit {
        Toolkit::Time => {
            let now = typed(|call, args: time::NowArgs, _| time::now(&args, call.clock().now().wall));
            vec![(time::definition(), now)]
        }
        Toolkit::Fs => vec![
            (fs::list::definition(), below(root, fs::list)),
            (fs::read::definition(), below(root, fs::read)),
            (fs::search::definition(), below(root, fs::search)),
            (fs::write::definition(), below(root, fs::write)),
        ],
    }
}

/// A body that works below the root.
fn below<A: DeserializeOwned + 'static>(root: &Arc<Root>, body: fn(&Root, &A, Deadline<'_>) -> ToolResult) -> Body {
    let root = Arc::clone(root);
    typed(move |_, args: A, deadline| body(&root, &args, deadline))
}

fn typed<A, F>(body: F) -> Body
where
    A: DeserializeOwned + 'static,
    F: Fn(&ToolCall<'_>, A, Deadline<'_>) -> ToolResult + Send + Sync + 'static,
{
    Box::new(move |builder| builder.typed(move |call, args: A| run(call, |deadline| body(call, args, deadline))))
}

/// Runs a body of the toolkit until the deadline of its call, and turns its answer into what the gate takes.
pub(super) fn run(call: &ToolCall<'_>, body: impl FnOnce(Deadline<'_>) -> ToolResult) -> Result<Reply, Failure> {
    let cancelled = || call.is_cancelled();
    let deadline = Deadline::at(call.clock(), call.deadline()).or_when(&cancelled);
    body(deadline).map(Reply::new).map_err(failure)
}

fn failure(error: ToolError) -> Failure {
    let ToolError { fault, message, detail } = error;
    let failure = match fault {
        toolkit::Fault::Refused => Failure::invalid(message).public().without_effect(),
        toolkit::Fault::Missing => Failure::not_found(message).public().without_effect(),
        toolkit::Fault::Failed => Failure::new(message).public(),
        toolkit::Fault::TimedOut => Failure::timed_out(),
        toolkit::Fault::Cancelled => Failure::cancelled(),
    };
    match detail {
        Some(detail) => failure.with_detail(&detail),
        None => failure,
    }
}

/// The tool; `None` when it is left out.
fn define(def: &ToolDef, body: Body, adjustment: Option<&ToolAdjustment>) -> Result<Option<Tool>, Vec<Fault>> {
    if adjustment.is_some_and(|adjustment| adjustment.disabled) {
        return Ok(None);
    }
    let own = own_rules(def);
    let scopes = def.scopes.join(" ");
    let spec = ToolSpec {
        fields: &own,
        scopes: callgate_core::context::Scopes::new(&scopes),
        mutating: def.mutating,
        confirm: if def.confirm_by_caller { ConfirmBy::Caller } else { ConfirmBy::Nobody },
        ..ToolSpec::new(&def.name, &def.description)
    };
    let mut builder = Tool::builder(def.name.as_str())
        .description(def.description.as_str())
        .json_schema(def.input_schema.as_str())
        .version(env!("CARGO_PKG_VERSION"))
        .timeout(std::time::Duration::from_millis(def.timeout_ms))
        .max_output(MAX_OUTPUT);
    if def.mutating {
        builder = builder.mutating();
    }
    if def.read_only {
        builder = builder.read_only();
    }
    match adjustment {
        None => {
            builder = with_fields(builder.confirm(spec.confirm), own.iter().copied());
            if !def.scopes.is_empty() {
                builder = builder.scopes(&def.scopes);
            }
        }
        Some(adjustment) => {
            let adjusted = adjustment.apply(&spec)?;
            builder = with_rules(builder.confirm(adjusted.confirm), &adjusted.fields);
            let scopes = if adjustment.scopes.is_empty() { &def.scopes } else { &adjustment.scopes };
            if !scopes.is_empty() {
                builder = builder.scopes(scopes);
            }
            if let Some(timeout) = adjustment.timeout {
                builder = builder.timeout(timeout);
            }
            if let Some(cost) = adjustment.cost {
                builder = builder.cost(cost);
            }
        }
    }
    let entry = format!("tools.\"{}\"", def.name);
    body(builder).build().map(Some).map_err(|error| error.problems().iter().map(|p| fault(&entry, p)).collect())
}

fn own_rules(def: &ToolDef) -> Vec<FieldRule<'_>> {
    let clamps = def.clamps.iter().map(|clamp| {
        let (min, max) = (Some(Bound::Integer(clamp.min)), Some(Bound::Integer(clamp.max)));
        FieldRule::clamp(&clamp.pointer, Clamp { min, max, max_length: None })
    });
    clamps.chain(def.secrets.iter().map(|path| FieldRule::secret(path))).collect()
}

/// The tool with the clamps and secrets of a configuration.
pub(super) fn with_rules(builder: ToolBuilder, rules: &FieldRules) -> ToolBuilder {
    with_fields(builder, rules.iter())
}

fn with_fields<'f, I: Iterator<Item = FieldRule<'f>>>(builder: ToolBuilder, fields: I) -> ToolBuilder {
    fields.fold(builder, |builder, FieldRule { path, clamp, secret }| {
        let builder = match clamp {
            Some(clamp) => builder.clamp(path, clamp),
            None => builder,
        };
        if secret { builder.secret(path) } else { builder }
    })
}

/// What is wrong with a definition, at the entry of the file that says it.
pub(super) fn fault(entry: &str, problem: &Problem) -> Fault {
    let part = match problem {
        Problem::Name(_) => ".name",
        Problem::Text { part, .. } if *part == "description" => ".description",
        Problem::Schema { part, .. } if *part == "input" => ".schema",
        Problem::Field { .. } => ".clamps",
        Problem::Demand { part, .. } if *part == "scopes" => ".scopes",
        Problem::Demand { .. } => ".approver_scope",
        _ => "",
    };
    Fault { entry: format!("{entry}{part}"), message: format!("this tool can't be used: {problem}"), help: None }
}
