//! A ticket as a row.

use std::sync::Arc;

use callgate_core::confirm::{Binding, By, Ticket, TicketState, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use callgate_std::confirmations::{DecideFault, Loaded, PendingApproval, PendingRequest};
use rusqlite::{Row, params};

use crate::database::Link;
use crate::error::DatabaseError;

/// What is read of each ticket.
const COLUMNS: &str = "ticket, state, confirmed_by, issued_ms, expires_ms, tool_digest, args_digest, caller_digest, \
                                  principal_digest, tenant, scope";

/// What a rule looks at.
pub(crate) struct Kept {
    pub(crate) id: Digest,
    pub(crate) ticket: Ticket,
    pub(crate) tenant: Option<String>,
    pub(crate) scope: Option<String>,
}

/// The columns, before anything is believed of them.
struct Raw {
    id: [u8; 32],
    state: String,
    by: String,
    issued_ms: i64,
    expires_ms: i64,
    tool: [u8; 32],
    arguments: [u8; 32],
    caller: [u8; 32],
    principal: [u8; 32],
    tenant: Option<String>,
    scope: Option<String>,
}

impl Raw {
    /// Reads the first columns of a row, which are [`COLUMNS`].
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            state: row.get(1)?,
            by: row.get(2)?,
            issued_ms: row.get(3)?,
            expires_ms: row.get(4)?,
            tool: row.get(5)?,
            arguments: row.get(6)?,
            caller: row.get(7)?,
            principal: row.get(8)?,
            tenant: row.get(9)?,
            scope: row.get(10)?,
        })
    }

    /// The ticket, or what is wrong with it.
    fn kept(self) -> Result<Kept, &'static str> {
        let state = match self.state.as_str() {
            "pending" => TicketState::Pending,
            "approved" => TicketState::Approved,
            "denied" => TicketState::Denied,
            "cancelled" => TicketState::Cancelled,
            "claimed" => TicketState::Claimed,
            _ => return Err("a ticket is in a state that there is not"),
        };
        let by = match self.by.as_str() {
            "caller" => By::Caller,
            "approver" => By::Approver,
            _ => return Err("a ticket waits for nobody that there is"),
        };
        let ticket = Ticket {
            binding: Binding {
                tool: Digest::from_bytes(self.tool),
                arguments: Digest::from_bytes(self.arguments),
                caller: Digest::from_bytes(self.caller),
                principal: Digest::from_bytes(self.principal),
            },
            by,
            issued_at: from_millis(self.issued_ms)?,
            expires_at: from_millis(self.expires_ms)?,
            state,
        };
        Ok(Kept { id: Digest::from_bytes(self.id), ticket, tenant: self.tenant, scope: self.scope })
    }
}

impl Kept {
    /// The ticket of this name.
    pub(crate) fn find(link: &Link<'_>, id: Digest) -> Result<Option<Self>, DatabaseError> {
        let mut found = None;
        link.each(&format!("SELECT {COLUMNS} FROM tickets WHERE ticket = ?1"), [id.as_bytes()], |row| {
            found = Some(Raw::read(row)?);
            Ok(false)
        })?;
        found.map(|raw| raw.kept().map_err(|reason| link.damaged(reason))).transpose()
    }

    pub(crate) fn loaded(&self, link: &Link<'_>, now: Timestamp) -> Result<Loaded, DatabaseError> {
        let sql = "SELECT arguments FROM tickets WHERE ticket = ?1";
        let arguments: Vec<u8> = link.one(sql, [self.id.as_bytes()], |row| row.get(0))?;
        Ok(Loaded { binding: self.ticket.binding, usable: self.ticket.usable(now), arguments: Arc::from(arguments) })
    }

    pub(crate) fn decide(
        &mut self,
        verdict: Verdict,
        approver: &CallContext<'_>,
        now: Timestamp,
    ) -> Result<(), DecideFault> {
        let scope = self.scope.as_deref().unwrap_or_default();
        Ok(self.ticket.decide(verdict, approver, self.tenant.as_deref(), scope, now)?)
    }

    /// Keeps the state that a rule left, and lets go of what a settled ticket no longer needs.
    pub(crate) fn keep_state(&self, link: &Link<'_>) -> Result<(), DatabaseError> {
        let sql = match self.ticket.state {
            TicketState::Pending | TicketState::Approved => "UPDATE tickets SET state = ?2 WHERE ticket = ?1",
            TicketState::Denied | TicketState::Cancelled | TicketState::Claimed => {
                "UPDATE tickets SET state = ?2, bytes = bytes - length(arguments) - octet_length(summary), \
                 arguments = zeroblob(0), summary = '' WHERE ticket = ?1"
            }
        };
        match link.execute(sql, params![self.id.as_bytes(), state_name(self.ticket.state)])? {
            1 => Ok(()),
            _ => Err(link.damaged("a ticket is gone while it is looked at")),
        }
    }
}

/// Adds a ticket for `request`.
pub(crate) fn add(
    link: &Link<'_>,
    id: Digest,
    ticket: &Ticket,
    request: &PendingRequest<'_>,
) -> Result<(), DatabaseError> {
    let sql = "INSERT INTO tickets (ticket, state, confirmed_by, issued_ms, expires_ms, tool_digest, args_digest, \
               caller_digest, principal_digest, tool, tenant, principal, channel, request_id, scope, summary, arguments, bytes) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    let by = match ticket.by {
        By::Caller => "caller",
        By::Approver => "approver",
    };
    let Binding { tool, arguments, caller, principal } = &ticket.binding;
    let parameters = params![
        id.as_bytes(),
        state_name(ticket.state),
        by,
        to_millis(ticket.issued_at),
        to_millis(ticket.expires_at),
        tool.as_bytes(),
        arguments.as_bytes(),
        caller.as_bytes(),
        principal.as_bytes(),
        request.tool,
        request.caller.tenant,
        request.caller.known_principal(),
        request.caller.channel,
        request.caller.request_id,
        request.approver_scope,
        request.summary,
        request.arguments,
        i64::try_from(request.bytes()).unwrap_or(i64::MAX),
    ];
    link.execute(sql, parameters).map(drop)
}

/// What `approver` could decide at `now`, the oldest first, at most `max`. The rule itself says what that is.
pub(crate) fn pending(
    link: &Link<'_>,
    approver: &CallContext<'_>,
    max: usize,
    now: Timestamp,
) -> Result<Vec<PendingApproval>, DatabaseError> {
    let sql = format!(
        "SELECT {COLUMNS}, tool, principal, channel, request_id, summary FROM tickets \
         WHERE state = 'pending' AND confirmed_by = 'approver' AND tenant IS ?1 ORDER BY issued_ms, ticket"
    );
    let mut found = Vec::new();
    let mut damage = None;
    link.each(&sql, [approver.tenant], |row| {
        if found.len() >= max {
            return Ok(false);
        }
        let mut trial = match Raw::read(row)?.kept() {
            Ok(kept) => kept,
            Err(reason) => {
                damage = Some(reason);
                return Ok(false);
            }
        };
        if trial.decide(Verdict::Deny, approver, now).is_ok() {
            found.push(PendingApproval {
                ticket: trial.id,
                tool: row.get(11)?,
                tenant: trial.tenant,
                principal: row.get(12)?,
                channel: row.get(13)?,
                request_id: row.get(14)?,
                scope: trial.scope.unwrap_or_default(),
                summary: row.get(15)?,
                issued_at: trial.ticket.issued_at,
                expires_at: trial.ticket.expires_at,
            });
        }
        Ok(true)
    })?;
    damage.map_or(Ok(found), |reason| Err(link.damaged(reason)))
}

const fn state_name(state: TicketState) -> &'static str {
    match state {
        TicketState::Pending => "pending",
        TicketState::Approved => "approved",
        TicketState::Denied => "denied",
        TicketState::Cancelled => "cancelled",
        TicketState::Claimed => "claimed",
    }
}

/// SQLite's integers are signed: what lies beyond 292 million years ends there.
pub(crate) fn to_millis(time: Timestamp) -> i64 {
    i64::try_from(time.as_unix_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn from_millis(ms: i64) -> Result<Timestamp, &'static str> {
    u64::try_from(ms).map(Timestamp::from_unix_millis).map_err(|_| "a time is before 1970")
}
