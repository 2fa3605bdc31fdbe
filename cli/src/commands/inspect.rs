//! `callgate inspect`.

use std::fmt::Write;

use callgate_core::inspect::{Inspection, Presence};
use callgate_std::tool::Tool;

use super::Setting;
use super::tools::not_found;
use crate::assemble::Plan;
use crate::caller;
use crate::command_line::InspectArgs;
use crate::exit::Exit;
use crate::table::{Cell, Table};
use crate::terminal::{BOLD, DIM, GOOD, NAME, Stream, Terminal, WARN, visible};
use crate::trouble::Trouble;

pub(super) fn run(args: &InspectArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let gate = Plan::of(&config)?.closed_gate()?;
    let context = caller::context(&args.caller, "inspect", args.plan);
    let caller = context.borrow();
    let out = &terminal.out;
    let shown =
        gate.inspect(
            &args.tool,
            &caller,
            |inspection| {
                if args.json { json(inspection) } else { Some(table(inspection, out)) }
            },
        );
    match shown {
        Some(Some(text)) => {
            terminal.out.print(&text);
            Ok(Exit::Success)
        }
        Some(None) => Err(Trouble::failed("the inspection can't be written")),
        None => Err(not_found(&gate, &args.tool, &caller)),
    }
}

fn json(inspection: &Inspection<'_, Tool>) -> Option<String> {
    let mut text = String::new();
    inspection.write_json(&mut text).ok()?;
    text.push('\n');
    Some(text)
}

fn table(inspection: &Inspection<'_, Tool>, out: &Stream) -> String {
    let (spec, caller, brush) = (inspection.tool.spec(), &inspection.caller, out.brush());
    let who = match caller.known_principal() {
        Some(principal) => format!("principal {}", visible(principal)),
        None => "no principal".to_owned(),
    };
    let changes = if spec.mutating { "changes something" } else { "changes nothing" };
    let mut text = format!(
        "{}, which {changes}\n{}\n\n",
        brush.paint(BOLD, spec.name),
        brush.paint(
            DIM,
            format!("as {who}, channel {}, scopes {}, mode {}", caller.channel, caller.scopes, caller.mode)
        ),
    );
    let mut table = Table::new(["STEP", "ROLE", "PRESENCE", "SOURCE"]);
    for step in inspection.steps() {
        let style = match step.presence {
            Presence::Active => GOOD,
            Presence::Conditional => WARN,
            _ => DIM,
        };
        table.row([
            Cell::painted(NAME, step.station.as_str()),
            step.role.as_str().into(),
            Cell::painted(style, step.presence.as_str()),
            visible(&step.source().to_string()).into(),
        ]);
    }
    text.push_str(&table.render(out.width(), brush));
    if let Some(refusal) = inspection.refusal() {
        let refusal = visible(&refusal.to_string());
        let assumption = brush.paint(WARN, "assumption");
        // A string takes everything.
        let _ = writeln!(text, "\n{assumption}: a call by this caller would be refused at authorize: {refusal}");
    }
    text
}
