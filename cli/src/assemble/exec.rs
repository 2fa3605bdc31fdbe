//! The programs that a configuration declares as tools.

use std::sync::Arc;

use callgate_std::tool::Tool;

use crate::config::{Config, Fault};
use crate::toolkit::fs::Root;

/// The most bytes of an escaped byte of output in a JSON text: `\u001b`.
#[cfg(unix)]
const ESCAPED: usize = 6;
/// The most bytes of what stands around the output in a result.
#[cfg(unix)]
const AROUND: usize = 4 << 10;

/// The declared programs as tools. What is wrong with one is added to `faults`.
#[cfg(unix)]
pub(super) fn tools(config: &Config, root: &Arc<Root>, faults: &mut Vec<Fault>) -> Vec<Tool> {
    let tool = |(index, tool)| define(&format!("exec[{index}]"), tool, root);
    config
        .exec
        .iter()
        .enumerate()
        .map(tool)
        .filter_map(|tool| tool.map_err(|found| faults.extend(found)).ok())
        .collect()
}

/// Declared programs run on Unix only: elsewhere what they started can't be ended with them.
#[cfg(not(unix))]
pub(super) fn tools(config: &Config, _: &Arc<Root>, faults: &mut Vec<Fault>) -> Vec<Tool> {
    faults.extend((0..config.exec.len()).map(|index| Fault {
        entry: format!("exec[{index}]"),
        message: "declared programs run on Unix only".to_owned(),
        help: None,
    }));
    Vec::new()
}

#[cfg(unix)]
fn define(entry: &str, declared: &crate::config::ExecTool, root: &Arc<Root>) -> Result<Tool, Vec<Fault>> {
    use super::tools::{fault, run, with_rules};
    use crate::toolkit::exec::{Environment, Program};
    use serde_json::{Map, Value};

    let program = Program::prepare(&declared.into(), Environment::of_process()).map_err(|problems| {
        problems
            .into_iter()
            .map(|problem| Fault {
                entry: at(entry, declared, &problem.part),
                message: problem.message,
                help: Some(problem.help),
            })
            .collect::<Vec<_>>()
    })?;
    let max_output = usize::try_from(declared.max_output).unwrap_or(usize::MAX);
    let mut builder = Tool::builder(declared.name.as_str())
        .description(declared.description.as_str())
        .json_schema(declared.schema.clone())
        .confirm(declared.confirm.by())
        .timeout(declared.timeout)
        .max_output(max_output.saturating_mul(ESCAPED).saturating_add(AROUND));
    builder = if declared.mutating { builder.mutating() } else { builder.read_only() };
    if declared.idempotent {
        builder = builder.idempotent();
    }
    if !declared.scopes.is_empty() {
        builder = builder.scopes(&declared.scopes);
    }
    if let Some(cost) = declared.cost {
        builder = builder.cost(cost);
    }
    let root = Arc::clone(root);
    let tool = with_rules(builder, &declared.fields)
        .typed(move |call, args: Map<String, Value>| run(call, |deadline| program.run(&root, &args, deadline)));
    tool.build().map_err(|error| error.problems().iter().map(|problem| fault(entry, problem)).collect())
}

/// Where the part of a declaration stands: `exec[0].args[2]`, or a parameter by its name.
#[cfg(unix)]
fn at(entry: &str, declared: &crate::config::ExecTool, part: &str) -> String {
    let has = |name: &str| declared.schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
    if has(part) && !["program", "stdin", "cwd"].contains(&part) {
        format!("{entry}.parameters.{part}")
    } else {
        format!("{entry}.{part}")
    }
}
