//! `callgate approvals list` and `show`.

use callgate_std::confirmations::DecideFault;
use serde_json::Value;

use super::super::Setting;
use super::{Desk, request};
use crate::caller;
use crate::command_line::{ShowArgs, WaitingArgs};
use crate::exit::Exit;
use crate::terminal::Terminal;
use crate::trouble::Trouble;

/// How many lines of one request a list shows; `show` shows all.
const LINES: usize = 12;

pub(super) fn list(args: &WaitingArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let desk = Desk::open(&args.caller, setting)?;
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
    let (_, asked) = desk.find(&args.id)?;
    let asked = asked.ok_or_else(|| desk.refused(DecideFault::Unknown.into()))?;
    if args.json {
        terminal.out.line(request::json(&asked));
    } else {
        terminal.out.print(&request::text(&asked, usize::MAX, terminal.out.brush()));
    }
    Ok(Exit::Success)
}
