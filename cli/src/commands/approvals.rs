//! `callgate approvals`: what waits for somebody else's yes, and the answers.

use std::fmt::Write;

use callgate_core::code::Code;
use callgate_core::confirm::{DecideError, Verdict};
use callgate_core::digest::Digest;
use callgate_std::confirmations::{ConfirmationStore, DecideFault, PendingApproval};
use callgate_std::context::OwnedContext;
use serde_json::{Value, json};

use super::Setting;
use crate::assemble::{Open, Plan};
use crate::caller;
use crate::command_line::{AnswerArgs, ApprovalsCommand, WaitingArgs};
use crate::exit::Exit;
use crate::terminal::{BOLD, Brush, DIM, GOOD, NAME, Terminal, WARN, visible};
use crate::trouble::Trouble;

/// The most requests that are shown, and that the start of an id is looked for among.
const MOST: usize = 1_000;
/// The least digits of an id that name a request.
const LEAST_DIGITS: usize = 8;

pub(super) fn run(command: &ApprovalsCommand, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    match command {
        ApprovalsCommand::List(args) => list(args, setting, terminal),
        ApprovalsCommand::Approve(args) => answer(Verdict::Approve, args, setting, terminal),
        ApprovalsCommand::Deny(args) => answer(Verdict::Deny, args, setting, terminal),
    }
}

fn list(args: &WaitingArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let open = Plan::of(&config)?.open(None)?;
    let waiting = pending(&open, &caller::context(&args.caller, "approvals", false))?;
    if args.json {
        terminal.out.line(Value::Array(waiting.iter().map(json_of).collect()));
    } else if waiting.is_empty() {
        terminal.err.line("nothing waits that this approver could decide");
    } else {
        let options = caller::options(&args.caller);
        for request in &waiting {
            terminal.out.print(&text_of(request, &super::command(setting), &options, terminal.out.brush()));
        }
    }
    Ok(Exit::Success)
}

fn answer(verdict: Verdict, args: &AnswerArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let open = Plan::of(&config)?.open(None)?;
    let context = caller::context(&args.caller, "approvals", false);
    let ticket = find(&args.id, &open, &context)?;
    open.gate.decide(ticket, verdict, &context.borrow()).map_err(|fault| refused(fault, &open))?;
    let brush = terminal.out.brush();
    let done = match verdict {
        Verdict::Approve => brush.paint(GOOD, "approved: whoever asked can run it now, once"),
        Verdict::Deny => brush.paint(WARN, "denied: it will not run"),
    };
    terminal.out.line(done);
    Ok(Exit::Success)
}

fn pending(open: &Open, context: &OwnedContext) -> Result<Vec<PendingApproval>, Trouble> {
    let pending = open.stores.waiting.store().pending(&context.borrow(), MOST);
    pending.map_err(|_| refused(DecideFault::Store, open))
}

/// The request that an id, or the start of one, names.
fn find(id: &str, open: &Open, context: &OwnedContext) -> Result<Digest, Trouble> {
    if let Ok(ticket) = id.parse() {
        return Ok(ticket);
    }
    let digits = id.len() >= LEAST_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits {
        return Err(Trouble::usage(format!("{} is no id of a request", visible(id)))
            .with_help(format!("an id has 64 hexadecimal digits; its first {LEAST_DIGITS} or more will do")));
    }
    let waiting = pending(open, context)?;
    let mut named = waiting.iter().filter(|request| request.ticket.to_string().starts_with(id));
    match (named.next(), named.next()) {
        (Some(request), None) => Ok(request.ticket),
        (Some(_), Some(_)) => {
            Err(Trouble::usage("more than one request has an id that starts so").with_help("give more of it"))
        }
        (None, _) => Err(refused(DecideFault::Unknown, open)),
    }
}

fn refused(fault: DecideFault, open: &Open) -> Trouble {
    let (code, help) = match fault {
        DecideFault::Unknown => {
            (Code::NotFound, Some("`callgate approvals list` shows what this approver can decide".to_owned()))
        }
        DecideFault::Refused(DecideError::Unauthenticated) => {
            (Code::Unauthorized, Some("say who decides: --principal NAME".to_owned()))
        }
        DecideFault::Refused(DecideError::MissingScope) => {
            (Code::Forbidden, Some("the request names the scope that it takes: --scope SCOPE".to_owned()))
        }
        DecideFault::Refused(DecideError::OwnRequest) => {
            (Code::Forbidden, Some("somebody else has to decide: --principal NAME --scope SCOPE".to_owned()))
        }
        DecideFault::Refused(_) => (Code::Forbidden, None),
        DecideFault::Store => (Code::StoreUnavailable, open.stores.waiting.last_error()),
    };
    let trouble = Trouble::refused(code, fault.to_string());
    match help {
        Some(help) => trouble.with_help(help),
        None => trouble,
    }
}

fn text_of(request: &PendingApproval, command: &str, options: &str, brush: Brush) -> String {
    let who = request.principal.as_deref().map_or_else(|| "nobody known".to_owned(), visible);
    let mut text =
        format!("{}\n  {}\n", brush.paint(NAME, &request.ticket), brush.paint(BOLD, visible(&request.summary)));
    let about = format!(
        "asked by {who} through {} at {}, until {}; takes the scope {}",
        visible(&request.channel),
        request.issued_at,
        request.expires_at,
        visible(&request.scope)
    );
    let short = request.ticket.to_string();
    let short = short.get(..12).unwrap_or(&short);
    // A string takes everything.
    let _ = writeln!(text, "  {}", brush.paint(DIM, about));
    let _ = writeln!(text, "  {command} approvals approve {short}{options}");
    text
}

fn json_of(request: &PendingApproval) -> Value {
    json!({
        "approval_id": request.ticket.to_string(),
        "tool": request.tool,
        "summary": request.summary,
        "tenant": request.tenant,
        "principal": request.principal,
        "channel": request.channel,
        "request_id": request.request_id,
        "scope": request.scope,
        "issued_at": request.issued_at.to_string(),
        "expires_at": request.expires_at.to_string(),
    })
}
