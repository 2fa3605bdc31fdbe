//! `callgate approvals approve` and `deny`.

use callgate_core::confirm::{Decided, Verdict};
use callgate_std::render::approver;

use super::super::Setting;
use super::{Desk, request};
use crate::command_line::ApproveArgs;
use crate::exit::Exit;
use crate::terminal::{GOOD, Terminal, WARN};
use crate::trouble::Trouble;

pub(super) fn decide(
    verdict: Verdict,
    args: &ApproveArgs,
    setting: &Setting,
    terminal: &mut Terminal,
) -> Result<Exit, Trouble> {
    let desk = Desk::open(&args.answer.caller, setting)?;
    let (ticket, asked) = desk.find(&args.answer.id)?;
    let brush = terminal.out.brush();
    if let Some(asked) = &asked {
        let shown = approver::digest_of(&asked.summary);
        if args.digest.is_some() && args.digest != shown {
            return Err(Trouble::usage("the request has other arguments than those of this digest")
                .with_help("`callgate approvals show` names the digest of the arguments that would run"));
        }
        // D2: what can't be read here is approved by whoever has read it elsewhere.
        if verdict == Verdict::Approve && !approver::is_whole(&asked.summary) && args.digest.is_none() {
            return Err(Trouble::usage("not all of this request can be shown, so it is not approved by its id alone")
                .with_help("look at it by the lengths and SHA-256 that `approvals show` names, then give --digest"));
        }
        terminal.out.print(&request::text(asked, usize::MAX, brush));
    }
    let decided = desk.open.gate.approvals().decide(ticket, verdict, &desk.approver.borrow());
    let done = match decided.map_err(|fault| desk.refused(fault))? {
        Decided::Approved => brush.paint(GOOD, "approved: whoever asked can run it now, once"),
        Decided::Counted { missing } => {
            terminal.out.line(format_args!("approved: it waits for {missing} more"));
            return Ok(Exit::Success);
        }
        Decided::Denied => brush.paint(WARN, "denied: it will not run"),
    };
    terminal.out.line(done);
    Ok(Exit::Success)
}
