//! `callgate audit reap`: closes what was not heard of.

use serde_json::{Value, json};

use super::super::{Setting, warn_of_log};
use crate::assemble::{Found, Plan};
use crate::command_line::ReapArgs;
use crate::exit::Exit;
use crate::terminal::{BAD, Terminal, visible};
use crate::trouble::Trouble;

pub(in crate::commands) fn reap(args: &ReapArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let open = Plan::of(&config)?.open(setting.log.clone())?;
    let found = open.stores.upkeep.run();
    warn_of_log(open.close(), terminal);
    if args.json {
        terminal.out.line(json_of(&found));
    } else if found.lost.is_empty() && found.in_doubt.is_empty() && found.operations.is_empty() {
        terminal.err.line("nothing was left open longer than its lease");
    } else {
        for told in (Found { troubles: Vec::new(), ..found.clone() }).told() {
            terminal.out.line(visible(&told));
        }
    }
    let error = terminal.err.brush().paint(BAD, "error");
    for trouble in &found.troubles {
        terminal.err.line(format_args!("{error}: {}", visible(trouble)));
    }
    Ok(if found.troubles.is_empty() { Exit::Success } else { Exit::Failed })
}

fn json_of(found: &Found) -> Value {
    let lost = found
        .lost
        .iter()
        .map(|call| json!({ "request_id": call.request_id, "tool": call.tool, "line": call.line }))
        .collect::<Value>();
    let in_doubt = found
        .in_doubt
        .iter()
        .map(|ticket| {
            json!({
                "approval_id": ticket.ticket.to_string(),
                "tool": ticket.tool,
                "request_id": ticket.request_id,
            })
        })
        .collect::<Value>();
    let operations = found
        .operations
        .iter()
        .map(|view| json!({ "operation": view.operation, "tool": view.tool, "request_id": view.request_id }))
        .collect::<Value>();
    json!({ "lost": lost, "in_doubt": in_doubt, "operations": operations, "troubles": found.troubles })
}
