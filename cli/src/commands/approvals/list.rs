//! `callgate approvals list` and `show`.

use callgate_std::confirmations::DecideFault;
use serde_json::Value;

use super::super::Setting;
use super::{Desk, request};
use crate::caller;
use crate::command_line::{ShowArgs, WaitingArgs};
use crate::exit::Exit;
use crate::table::Table;
use crate::terminal::Terminal;
use crate::trouble::Trouble;

/// How many lines of one request a list shows; `show` shows all.
const LINES: usize = 12;

pub(super) fn list(args: &WaitingArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let desk = Desk::open(&args.caller, setting)?;
    if args.all {
        return list_all(args, &desk, terminal);
    }
    let waiting = desk.pending()?;
    if args.json {
        terminal.out.line(Value::Array(waiting.iter().map(request::json).collect()));
    } else if waiting.is_empty() {
        terminal.err.line("nothing waits that this approver could decide");
    } else {
        let (command, options) = (super::super::command(setting), caller::options(&args.caller));
        for asked in &waiting {
            terminal.out.print(&request::text(asked, LINES, terminal.out.brush()));
            terminal.out.line(format_args!("  {command} approvals approve {}{options}", request::short_id(asked)));
        }
    }
    Ok(Exit::Success)
}

pub(super) fn show(args: &ShowArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let desk = Desk::open(&args.caller, setting)?;
    let asked = match desk.find(&args.id) {
        Ok((_, asked)) => asked,
        // It may have been decided meanwhile.
        Err(trouble) if trouble.exit() == Exit::Refused => None,
        Err(trouble) => return Err(trouble),
    };
    let Some(asked) = asked else {
        let ticket = desk.find_any(&args.id)?.ok_or_else(|| desk.refused(DecideFault::Unknown.into()))?;
        if args.json {
            terminal.out.line(request::ticket_json(&ticket));
        } else {
            terminal.out.print(&request::ticket_text(&ticket, terminal.out.brush()));
        }
        return Ok(Exit::Success);
    };
    if args.json {
        terminal.out.line(request::json(&asked));
    } else {
        terminal.out.print(&request::text(&asked, usize::MAX, terminal.out.brush()));
    }
    Ok(Exit::Success)
}

/// What became of everything that is kept.
fn list_all(args: &WaitingArgs, desk: &Desk, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let tickets = desk.tickets()?;
    if args.json {
        terminal.out.line(Value::Array(tickets.iter().map(request::ticket_json).collect()));
    } else if tickets.is_empty() {
        terminal.err.line("no request is kept that this caller may be told of");
    } else {
        let mut table = Table::new(["ID", "STATE", "TOOL", "ASKED BY", "ASKED AT"]);
        for ticket in &tickets {
            table.row(request::ticket_row(ticket));
        }
        let text = table.render(terminal.out.view_width(), terminal.out.brush());
        terminal.out.print(&text);
    }
    Ok(Exit::Success)
}
