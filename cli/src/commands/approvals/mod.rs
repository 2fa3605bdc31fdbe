//! `callgate approvals`: what waits for somebody else's yes, and the answers.

mod decide;
mod grants;
mod list;
mod request;
mod settle;
mod watch;
#[cfg(feature = "web")]
mod web;

use callgate_core::code::Code;
use callgate_core::confirm::{DecideError, Verdict};
use callgate_core::digest::Digest;
use callgate_std::confirmations::{DecideFault, PendingApproval, TicketView};
use callgate_std::context::{OwnedContext, random_request_id};
use callgate_std::entropy::OsEntropy;
use callgate_std::gate::DecisionFault;

use super::Setting;
use crate::assemble::{Open, Plan};
use crate::caller;
use crate::command_line::{ApprovalsCommand, CallerArgs, WatchArgs};
use crate::exit::Exit;
use crate::terminal::{Terminal, visible};
use crate::trouble::Trouble;

/// The most requests that are shown, and that the start of an id is looked for among.
const MOST: usize = 1_000;
/// The least digits of an id that name a request.
const LEAST_DIGITS: usize = 8;

pub(super) fn run(command: &ApprovalsCommand, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    match command {
        ApprovalsCommand::List(args) => list::list(args, setting, terminal),
        ApprovalsCommand::Show(args) => list::show(args, setting, terminal),
        ApprovalsCommand::Watch(args) if args.web => serve(args, setting, terminal),
        ApprovalsCommand::Watch(args) => watch::watch(args, setting),
        ApprovalsCommand::Approve(args) => decide::decide(Verdict::Approve, args, setting, terminal),
        ApprovalsCommand::Cancel(args) => settle::cancel(args, setting, terminal),
        ApprovalsCommand::Resolve(args) => settle::resolve(args, setting, terminal),
        ApprovalsCommand::Grants(args) => grants::grants(args, setting, terminal),
        ApprovalsCommand::Grant(args) => grants::grant(args, setting, terminal),
        ApprovalsCommand::Revoke(args) => grants::revoke(args, setting, terminal),
        ApprovalsCommand::Deny(args) => decide::decide(Verdict::Deny, &args.with_digest(None), setting, terminal),
    }
}

#[cfg(feature = "web")]
fn serve(args: &WatchArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    web::serve(args, setting, terminal)
}

#[cfg(not(feature = "web"))]
fn serve(_: &WatchArgs, _: &Setting, _: &mut Terminal) -> Result<Exit, Trouble> {
    Err(Trouble::usage("this program was built without the page; build it with the feature `web`"))
}

/// An approver at the gate.
struct Desk {
    open: Open,
    approver: OwnedContext,
}

impl Desk {
    /// Opens the gate for an approver.
    fn open(caller: &CallerArgs, setting: &Setting) -> Result<Self, Trouble> {
        let config = setting.config()?;
        let open = Plan::of(&config)?.open(setting.log.clone())?;
        let id = random_request_id(&OsEntropy::default())
            .map_err(|error| Trouble::refused(Code::StoreUnavailable, format!("no id for the record: {error}")))?;
        Ok(Self { open, approver: caller::context(caller, &id, false) })
    }

    /// What the approver could decide now.
    fn pending(&self) -> Result<Vec<PendingApproval>, Trouble> {
        let pending = self.open.gate.approvals().pending(&self.approver.borrow(), MOST);
        pending.map_err(|fault| self.refused(DecideFault::from(fault).into()))
    }

    /// What the approver may be told of, whatever became of it.
    fn tickets(&self) -> Result<Vec<TicketView>, Trouble> {
        let tickets = self.open.gate.approvals().tickets(&self.approver.borrow(), MOST);
        tickets.map_err(|fault| self.refused(DecideFault::from(fault).into()))
    }

    /// The request that an id, or the start of one, names, whatever became of it.
    fn find_any(&self, id: &str) -> Result<Option<TicketView>, Trouble> {
        check_id(id)?;
        one(self.tickets()?.into_iter().filter(|ticket| ticket.ticket.to_string().starts_with(id)))
    }

    /// The ticket that an id, or the start of one, names; and the request, where it waits for this approver.
    fn find(&self, id: &str) -> Result<(Digest, Option<PendingApproval>), Trouble> {
        check_id(id)?;
        let waiting = self.pending()?;
        match (one(waiting.into_iter().filter(|request| request.ticket.to_string().starts_with(id)))?, id.parse()) {
            (Some(request), _) => Ok((request.ticket, Some(request))),
            (None, Ok(ticket)) => Ok((ticket, None)),
            (None, Err(_)) => Err(self.refused(DecideFault::Unknown.into())),
        }
    }

    fn refused(&self, fault: DecisionFault) -> Trouble {
        let help = match fault {
            DecisionFault::Refused(DecideFault::Unknown) => {
                Some("`callgate approvals list` shows what this approver can decide".to_owned())
            }
            DecisionFault::Refused(DecideFault::Refused(DecideError::Unauthenticated)) => {
                Some("say who decides: --principal NAME".to_owned())
            }
            DecisionFault::Refused(DecideFault::Refused(DecideError::MissingScope)) => {
                Some("the request names the scope that it takes: --scope SCOPE".to_owned())
            }
            DecisionFault::Refused(DecideFault::Refused(DecideError::OwnRequest)) => {
                Some("somebody else has to decide: --principal NAME --scope SCOPE".to_owned())
            }
            DecisionFault::Refused(DecideFault::Refused(_)) => None,
            _ => self.open.last_errors().into_iter().next(),
        };
        let trouble = Trouble::refused(fault.code(), fault.to_string());
        match help {
            Some(help) => trouble.with_help(help),
            None => trouble,
        }
    }
}

/// Whether it is an id of a request, or the start of one.
fn check_id(id: &str) -> Result<(), Trouble> {
    if id.len() >= LEAST_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(Trouble::usage(format!("{} is no id of a request", visible(id)))
        .with_help(format!("an id has 64 hexadecimal digits; its first {LEAST_DIGITS} or more will do")))
}

/// The only one of these, if there is one.
fn one<T>(mut named: impl Iterator<Item = T>) -> Result<Option<T>, Trouble> {
    match (named.next(), named.next()) {
        (Some(_), Some(_)) => {
            Err(Trouble::usage("more than one request has an id that starts so").with_help("give more of it"))
        }
        (first, _) => Ok(first),
    }
}
