//! `callgate tools`.

use callgate_core::code::Code;
use callgate_core::context::CallContext;
use callgate_core::nearest::nearest;
use callgate_core::tool::ConfirmBy;
use callgate_std::budget::Contexts;
use callgate_std::gate::Gate;
use callgate_std::listing::{Listing, write_summary};
use callgate_std::tool::Tool;

use super::Setting;
use crate::assemble::Plan;
use crate::caller;
use crate::command_line::ToolsArgs;
use crate::exit::Exit;
use crate::table::{Cell, Table};
use crate::terminal::{DIM, NAME, Terminal, WARN, visible};
use crate::trouble::Trouble;

pub(super) fn run(args: &ToolsArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let gate = Plan::of(&config)?.closed_gate()?;
    let context = caller::context(&args.caller, "tools", false);
    let mut tools = seen(&gate, &context.borrow()).with_prefix(&args.prefix).into_tools();
    if let Some(model) = &args.budget {
        let brush = terminal.err.brush();
        let budget = Contexts::default().budget(model);
        let selection = budget.select::<&str>(&tools, &[]);
        let (used, share) = (selection.used(), budget.tokens());
        let line =
            format!("about {used} of the {share} tokens that tools may take of the context of {}", visible(model));
        terminal.err.line(brush.paint(DIM, line));
        if let Some(warning) = selection.warning() {
            terminal.err.line(format_args!("{}: {}", brush.paint(WARN, "note"), visible(&warning)));
        }
        tools = selection.selected().to_vec();
    }
    if args.json {
        let mut text = String::from("[");
        for (at, tool) in tools.iter().enumerate() {
            text.push_str(if at > 0 { "," } else { "" });
            write_summary(tool, &mut text).map_err(|_| Trouble::failed("the list can't be written"))?;
        }
        text.push_str("]\n");
        terminal.out.print(&text);
        return Ok(Exit::Success);
    }
    if tools.is_empty() {
        terminal.err.line("there is no such tool that this caller may see");
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["NAME", "CHANGES", "CONFIRM", "SCOPES", "COST", "DESCRIPTION"]);
    for tool in &tools {
        table.row(row(tool));
    }
    let text = table.render(terminal.out.width(), terminal.out.brush());
    terminal.out.print(&text);
    Ok(Exit::Success)
}

fn row(tool: &Tool) -> [Cell; 6] {
    let spec = tool.spec();
    let confirm = match spec.confirm {
        ConfirmBy::Nobody => Cell::painted(DIM, "-"),
        ConfirmBy::Caller => Cell::painted(WARN, "caller"),
        _ => Cell::painted(WARN, "approver"),
    };
    let scopes = if spec.scopes.is_empty() { Cell::painted(DIM, "-") } else { spec.scopes.to_string().into() };
    // The first sentence says what it is; the rest is for a model.
    let description = spec.description.split_inclusive(". ").next().unwrap_or(spec.description).trim_end();
    [
        Cell::painted(NAME, spec.name),
        if spec.mutating { Cell::painted(WARN, "yes") } else { Cell::painted(DIM, "no") },
        confirm,
        scopes,
        spec.cost().to_string().into(),
        visible(description).into(),
    ]
}

/// The tools that a caller may know of.
fn seen(gate: &Gate, caller: &CallContext<'_>) -> Listing {
    let listing = Listing::of(gate.tools(), caller);
    match gate.policy().gate() {
        Some(policy) => listing.permitted(&policy, caller),
        None => listing,
    }
}

/// That there is no such tool, and which one was meant, among those that the caller may know of.
pub(super) fn not_found(gate: &Gate, name: &str, caller: &CallContext<'_>) -> Trouble {
    let trouble = Trouble::refused(Code::ToolNotFound, format!("Tool not found: {}", visible(name)));
    trouble.with_help(suggestion(gate, name, caller))
}

/// What to try instead of a tool that isn't there.
pub(super) fn suggestion(gate: &Gate, name: &str, caller: &CallContext<'_>) -> String {
    let listing = seen(gate, caller);
    match nearest(name.chars(), listing.tools().iter().map(|tool| tool.name())) {
        Some(near) => format!("did you mean {near}?"),
        None => "`callgate tools` lists the tools that there are".to_owned(),
    }
}
