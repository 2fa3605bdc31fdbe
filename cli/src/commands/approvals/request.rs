//! A request as its approver is shown it, on a screen and as JSON.

use std::fmt::Write;

use callgate_core::confirm::TicketState;
use callgate_std::confirmations::{PendingApproval, TicketView};
use callgate_std::render::approver::{self, Strict};
use serde_json::{Value, json};

use crate::table::Cell;
use crate::terminal::{BAD, BOLD, Brush, DIM, NAME, WARN};

/// How many digits of an id are shown where it is only to be typed again.
pub(super) const SHORT: usize = 12;

/// The start of an id.
pub(super) fn short_id(request: &PendingApproval) -> String {
    let mut id = request.ticket.to_string();
    id.truncate(SHORT);
    id
}

/// What the gate says of a request: who, from where, until when, and who may answer.
pub(super) fn about(request: &PendingApproval) -> [(&'static str, String); 4] {
    let who = request.principal.as_deref().map_or_else(|| "nobody known".to_owned(), |who| Strict(who).to_string());
    [
        ("asked by", format!("{who} through {}, request {}", Strict(&request.channel), Strict(&request.request_id))),
        ("asked at", request.issued_at.to_string()),
        ("until", request.expires_at.to_string()),
        ("decided by", format!("another principal with the scope {}", Strict(&request.scope))),
    ]
}

/// The request: what would run, each line behind a bar, so that nothing in it looks like a line of the command. At most `lines` lines
/// of it; how many are left out is said.
pub(super) fn text(request: &PendingApproval, lines: usize, brush: Brush) -> String {
    let mut text = format!("{}\n", brush.paint(NAME, &request.ticket));
    for (name, value) in about(request) {
        // A string takes everything.
        let _ = writeln!(text, "  {} {value}", brush.paint(DIM, format!("{name:<10}")));
    }
    let all = request.summary.lines().count();
    for line in request.summary.lines().take(lines) {
        let style = if approver::is_whole(line) { BOLD } else { WARN };
        let _ = writeln!(text, "  | {}", brush.paint(style, line));
    }
    if all > lines {
        let left = all.saturating_sub(lines);
        let more = format!("{left} more lines: `callgate approvals show {}`", short_id(request));
        let _ = writeln!(text, "  {}", brush.paint(WARN, more));
    }
    text
}

pub(super) fn json(request: &PendingApproval) -> Value {
    json!({
        "approval_id": request.ticket.to_string(),
        "tool": request.tool,
        "shown": request.summary,
        "whole": approver::is_whole(&request.summary),
        "arguments_digest": approver::digest_of(&request.summary).map(|digest| digest.to_string()),
        "tenant": request.tenant,
        "principal": request.principal,
        "channel": request.channel,
        "request_id": request.request_id,
        "scope": request.scope,
        "issued_at": request.issued_at.to_string(),
        "expires_at": request.expires_at.to_string(),
    })
}

/// Where a request stands, in a word.
pub(super) fn state(ticket: &TicketView) -> String {
    match ticket.state {
        _ if ticket.expired => "expired".to_owned(),
        TicketState::Done(effect) => format!("done ({effect})"),
        TicketState::Pending if ticket.needs > 1 => {
            format!("pending ({} of {})", ticket.approved_by.len(), ticket.needs)
        }
        state => state.as_str().to_owned(),
    }
}

/// One line about a request.
pub(super) fn ticket_row(ticket: &TicketView) -> [Cell; 5] {
    let mut id = ticket.ticket.to_string();
    id.truncate(SHORT);
    let style = match ticket.state {
        TicketState::InDoubt => BAD,
        TicketState::Pending | TicketState::Approved | TicketState::Reserved { .. } if !ticket.expired => WARN,
        _ => DIM,
    };
    [
        Cell::painted(NAME, id),
        Cell::painted(style, state(ticket)),
        Strict(&ticket.tool).to_string().into(),
        ticket.principal.as_deref().map_or_else(|| "nobody known".to_owned(), |who| Strict(who).to_string()).into(),
        ticket.issued_at.to_string().into(),
    ]
}

/// A request, whatever became of it.
pub(super) fn ticket_text(ticket: &TicketView, brush: Brush) -> String {
    let mut text = format!("{}\n", brush.paint(NAME, &ticket.ticket));
    let who = ticket.principal.as_deref().map_or_else(|| "nobody known".to_owned(), |who| Strict(who).to_string());
    let approved: Vec<_> = ticket.approved_by.iter().map(|who| Strict(who).to_string()).collect();
    let mut about = vec![
        ("state", state(ticket)),
        ("tool", Strict(&ticket.tool).to_string()),
        ("asked by", format!("{who} through {}, request {}", Strict(&ticket.channel), Strict(&ticket.request_id))),
        ("asked at", ticket.issued_at.to_string()),
        ("until", ticket.expires_at.to_string()),
    ];
    if !approved.is_empty() {
        about.push(("approved by", approved.join(", ")));
    }
    if let Some(proof) = &ticket.proof {
        about.push(("known by", Strict(proof).to_string()));
    }
    for (name, value) in about {
        // A string takes everything.
        let _ = writeln!(text, "  {} {value}", brush.paint(DIM, format!("{name:<11}")));
    }
    for line in ticket.summary.lines() {
        let _ = writeln!(text, "  | {}", brush.paint(BOLD, line));
    }
    text
}

pub(super) fn ticket_json(ticket: &TicketView) -> Value {
    json!({
        "approval_id": ticket.ticket.to_string(),
        "state": ticket.state.as_str(),
        "effect": match ticket.state {
            TicketState::Done(effect) => Some(effect.as_str()),
            _ => None,
        },
        "expired": ticket.expired,
        "tool": ticket.tool,
        "shown": ticket.summary,
        "needs": ticket.needs,
        "approved_by": ticket.approved_by,
        "tenant": ticket.tenant,
        "principal": ticket.principal,
        "channel": ticket.channel,
        "request_id": ticket.request_id,
        "scope": ticket.scope,
        "issued_at": ticket.issued_at.to_string(),
        "expires_at": ticket.expires_at.to_string(),
        "proof": ticket.proof,
    })
}
