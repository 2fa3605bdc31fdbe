//! `callgate approvals cancel` and `resolve`.

use callgate_core::code::Effect;
use callgate_std::confirmations::{DecideFault, Resolution};

use super::super::Setting;
use super::{Desk, request};
use crate::command_line::{AnswerArgs, Outcome, ResolveArgs};
use crate::exit::Exit;
use crate::terminal::{GOOD, Terminal};
use crate::trouble::Trouble;

pub(super) fn cancel(args: &AnswerArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let desk = Desk::open(&args.caller, setting)?;
    let ticket = ticket(&args.id, &desk)?;
    desk.open.gate.approvals().cancel(ticket, &desk.approver.borrow()).map_err(|fault| desk.refused(fault))?;
    terminal.out.line(terminal.out.brush().paint(GOOD, "cancelled: it will not run"));
    Ok(Exit::Success)
}

pub(super) fn resolve(args: &ResolveArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let desk = Desk::open(&args.answer.caller, setting)?;
    let ticket = ticket(&args.answer.id, &desk)?;
    let effect = match args.outcome {
        Outcome::Done => Effect::Done,
        Outcome::None => Effect::None,
    };
    let resolution = Resolution { effect, proof: &args.proof, by: desk.approver.borrow() };
    let settled = desk.open.gate.approvals().resolve(ticket, &resolution).map_err(|fault| desk.refused(fault))?;
    terminal.out.print(&request::ticket_text(&settled, terminal.out.brush()));
    Ok(Exit::Success)
}

/// The ticket that an id names. A whole id is taken as it is: the store says whether there is such a request for this caller.
fn ticket(id: &str, desk: &Desk) -> Result<callgate_core::digest::Digest, Trouble> {
    match (desk.find_any(id)?, id.parse()) {
        (Some(ticket), _) => Ok(ticket.ticket),
        (None, Ok(ticket)) => Ok(ticket),
        (None, Err(_)) => Err(desk.refused(DecideFault::Unknown.into())),
    }
}
