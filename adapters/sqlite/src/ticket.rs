//! A ticket as a row.

use std::sync::Arc;

use callgate_core::code::Effect;
use callgate_core::confirm::{Asked, Binding, By, Decided, Ticket, TicketState, Verdict};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use callgate_std::confirmations::{DecideFault, Loaded, PendingApproval, PendingRequest, StandingGrant, TicketView};
use rusqlite::{Params, Row, params};

use crate::database::Link;
use crate::error::DatabaseError;

/// What is read of each ticket.
const COLUMNS: &str = "ticket, state, confirmed_by, issued_ms, expires_ms, tool_digest, args_digest, caller_digest, \
                                  principal_digest, tenant, scope, needs, held_by, held_until_ms, took_effect";

/// What is told of each ticket beyond that.
const TOLD: &str = "tool, principal, channel, request_id, summary, proof, grant_id";
/// Where these begin.
const TOLD_AT: usize = 15;

/// What a rule looks at.
pub(crate) struct Kept {
    pub(crate) id: Digest,
    pub(crate) ticket: Ticket,
    pub(crate) tenant: Option<String>,
    pub(crate) scope: Option<String>,
    /// Empty where nobody has to approve.
    approved_by: Vec<String>,
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
    needs: u8,
    held_by: Option<[u8; 32]>,
    held_until_ms: Option<i64>,
    took_effect: Option<bool>,
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
            needs: row.get(11)?,
            held_by: row.get(12)?,
            held_until_ms: row.get(13)?,
            took_effect: row.get(14)?,
        })
    }

    /// The ticket, or what is wrong with it.
    fn kept(self) -> Result<Kept, &'static str> {
        let state = match (self.state.as_str(), self.held_by, self.held_until_ms, self.took_effect) {
            ("pending", ..) => TicketState::Pending,
            ("approved", ..) => TicketState::Approved,
            ("denied", ..) => TicketState::Denied,
            ("cancelled", ..) => TicketState::Cancelled,
            ("reserved", Some(call), Some(until_ms), _) => {
                TicketState::Reserved { call: Digest::from_bytes(call), until: from_millis(until_ms)? }
            }
            ("in_doubt", ..) => TicketState::InDoubt,
            ("done", _, _, Some(true)) => TicketState::Done(Effect::Done),
            ("done", _, _, Some(false)) => TicketState::Done(Effect::None),
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
            needs: self.needs,
            issued_at: from_millis(self.issued_ms)?,
            expires_at: from_millis(self.expires_ms)?,
            state,
        };
        let (tenant, scope) = (self.tenant, self.scope);
        Ok(Kept { id: Digest::from_bytes(self.id), ticket, tenant, scope, approved_by: Vec::new() })
    }
}

/// The rows of a query of [`COLUMNS`] and [`TOLD`].
fn views(
    link: &Link<'_>,
    sql: &str,
    parameters: impl Params,
    now: Timestamp,
    mut wanted: impl FnMut(&mut Kept) -> bool,
    max: usize,
) -> Result<Vec<TicketView>, DatabaseError> {
    let mut rows = Vec::new();
    let mut damage = None;
    link.each(sql, parameters, |row| {
        match Raw::read(row)?.kept() {
            Ok(kept) => rows.push((kept, Told::read(row)?)),
            Err(reason) => damage = Some(reason),
        }
        Ok(damage.is_none())
    })?;
    if let Some(reason) = damage {
        return Err(link.damaged(reason));
    }
    let mut found = Vec::new();
    for (mut kept, told) in rows {
        if found.len() >= max {
            break;
        }
        kept.read_approvals(link)?;
        if wanted(&mut kept) {
            found.push(told.view(kept, now));
        }
    }
    Ok(found)
}

/// What is told of a ticket and plays no part in the rules.
struct Told {
    tool: String,
    principal: Option<String>,
    channel: String,
    request_id: String,
    summary: String,
    proof: Option<String>,
    grant: Option<[u8; 32]>,
}

impl Told {
    /// Reads the columns after [`COLUMNS`], which are [`TOLD`].
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            tool: row.get(TOLD_AT)?,
            principal: row.get(TOLD_AT + 1)?,
            channel: row.get(TOLD_AT + 2)?,
            request_id: row.get(TOLD_AT + 3)?,
            summary: row.get(TOLD_AT + 4)?,
            proof: row.get(TOLD_AT + 5)?,
            grant: row.get(TOLD_AT + 6)?,
        })
    }

    fn view(self, kept: Kept, now: Timestamp) -> TicketView {
        let Self { tool, principal, channel, request_id, summary, proof, grant } = self;
        let Kept { id, ticket, tenant, scope, approved_by } = kept;
        TicketView {
            ticket: id,
            state: ticket.state,
            expired: ticket.is_expired(now),
            by: ticket.by,
            needs: ticket.needs,
            approved_by,
            tool,
            tenant,
            principal,
            channel,
            request_id,
            scope: scope.unwrap_or_default(),
            summary,
            issued_at: ticket.issued_at,
            expires_at: ticket.expires_at,
            proof,
            grant: grant.map(Digest::from_bytes),
        }
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
        let Some(raw) = found else { return Ok(None) };
        let mut kept = raw.kept().map_err(|reason| link.damaged(reason))?;
        kept.read_approvals(link)?;
        Ok(Some(kept))
    }

    fn read_approvals(&mut self, link: &Link<'_>) -> Result<(), DatabaseError> {
        if self.ticket.by == By::Caller {
            return Ok(());
        }
        let sql = "SELECT principal FROM approvals WHERE ticket = ?1 ORDER BY place";
        link.each(sql, [self.id.as_bytes()], |row| {
            self.approved_by.push(row.get(0)?);
            Ok(true)
        })
    }

    fn asked(&self) -> Asked<'_, impl Iterator<Item = &str> + Clone> {
        let Self { tenant, scope, approved_by, .. } = self;
        let approved_by = approved_by.iter().map(String::as_str);
        Asked { tenant: tenant.as_deref(), scope: scope.as_deref().unwrap_or_default(), approved_by }
    }

    /// What is told of this ticket.
    pub(crate) fn view(&self, link: &Link<'_>, now: Timestamp) -> Result<TicketView, DatabaseError> {
        let sql = format!("SELECT {COLUMNS}, {TOLD} FROM tickets WHERE ticket = ?1");
        let mut found = views(link, &sql, [self.id.as_bytes()], now, |_| true, 1)?;
        found.pop().ok_or_else(|| link.damaged("a ticket is gone while it is looked at"))
    }

    pub(crate) fn loaded(&self, link: &Link<'_>, now: Timestamp) -> Result<Loaded, DatabaseError> {
        let sql = "SELECT arguments FROM tickets WHERE ticket = ?1";
        let arguments: Vec<u8> = link.one(sql, [self.id.as_bytes()], |row| row.get(0))?;
        Ok(Loaded { binding: self.ticket.binding, usable: self.ticket.usable(now), arguments: Arc::from(arguments) })
    }

    /// Takes a decision, and keeps who said yes.
    pub(crate) fn decide(
        &mut self,
        link: &Link<'_>,
        verdict: Verdict,
        approver: &CallContext<'_>,
        now: Timestamp,
    ) -> Result<Result<Decided, DecideFault>, DatabaseError> {
        let mut ticket = self.ticket;
        let decided = ticket.decide(verdict, approver, &self.asked(), now);
        self.ticket = ticket;
        if let (Ok(Decided::Approved | Decided::Counted { .. }), Some(principal)) =
            (decided, approver.known_principal())
        {
            let place = i64::try_from(self.approved_by.len()).unwrap_or(i64::MAX).saturating_add(1);
            let sql = "INSERT INTO approvals (ticket, place, principal) VALUES (?1, ?2, ?3)";
            link.execute(sql, params![self.id.as_bytes(), place, principal])?;
        }
        Ok(decided.map_err(DecideFault::from))
    }

    /// Keeps how it is known what became of a call.
    pub(crate) fn keep_proof(&self, link: &Link<'_>, proof: &str) -> Result<(), DatabaseError> {
        let sql = "UPDATE tickets SET proof = ?2, bytes = bytes + octet_length(?2) WHERE ticket = ?1";
        link.execute(sql, params![self.id.as_bytes(), proof]).map(drop)
    }

    /// Keeps the state that a rule left, and lets go of what a settled ticket no longer needs.
    pub(crate) fn keep_state(&self, link: &Link<'_>) -> Result<(), DatabaseError> {
        let state = self.ticket.state;
        let mut sql = "UPDATE tickets SET state = ?2, held_by = ?3, held_until_ms = ?4, took_effect = ?5".to_owned();
        if !state.is_open() {
            sql.push_str(
                ", bytes = bytes - length(arguments) - octet_length(summary), arguments = zeroblob(0), summary = ''",
            );
        }
        sql.push_str(" WHERE ticket = ?1");
        let held = match &state {
            TicketState::Reserved { call, until } => Some((call.as_bytes(), to_millis(*until))),
            _ => None,
        };
        let took_effect = match state {
            TicketState::Done(effect) => Some(effect != Effect::None),
            _ => None,
        };
        let (held_by, held_until) = (held.map(|held| held.0), held.map(|held| held.1));
        match link.execute(&sql, params![self.id.as_bytes(), state.as_str(), held_by, held_until, took_effect])? {
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
               caller_digest, principal_digest, tool, tenant, principal, channel, request_id, scope, summary, arguments, bytes, needs) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
    let by = match ticket.by {
        By::Caller => "caller",
        By::Approver => "approver",
    };
    let Binding { tool, arguments, caller, principal } = &ticket.binding;
    let parameters = params![
        id.as_bytes(),
        TicketState::Pending.as_str(),
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
        ticket.needs,
    ];
    link.execute(sql, parameters).map(drop)
}

/// Makes of a ticket that was just added one that a call holds under a grant. Nobody presents it, so it needs no arguments.
pub(crate) fn keep_grant(
    link: &Link<'_>,
    id: Digest,
    ticket: &Ticket,
    grant: &StandingGrant,
) -> Result<(), DatabaseError> {
    let Some(mut kept) = Kept::find(link, id)? else { return Err(link.damaged("a ticket is gone while it is added")) };
    kept.ticket = *ticket;
    kept.keep_state(link)?;
    link.execute("UPDATE tickets SET grant_id = ?2 WHERE ticket = ?1", params![id.as_bytes(), grant.id.as_bytes()])?;
    let sql = "INSERT INTO approvals (ticket, place, principal) VALUES (?1, 1, ?2)";
    link.execute(sql, params![id.as_bytes(), grant.given_by]).map(drop)
}

/// What `approver` could decide at `now`, the oldest first, at most `max`. The rule itself says what that is.
pub(crate) fn pending(
    link: &Link<'_>,
    approver: &CallContext<'_>,
    max: usize,
    now: Timestamp,
) -> Result<Vec<PendingApproval>, DatabaseError> {
    let sql = format!(
        "SELECT {COLUMNS}, {TOLD} FROM tickets \
         WHERE state = 'pending' AND confirmed_by = 'approver' AND tenant IS ?1 ORDER BY issued_ms, ticket"
    );
    let could_decide = |kept: &mut Kept| {
        let mut trial = kept.ticket;
        trial.decide(Verdict::Approve, approver, &kept.asked(), now).is_ok()
    };
    let found = views(link, &sql, [approver.tenant], now, could_decide, max)?;
    let pending = |view: TicketView| PendingApproval {
        ticket: view.ticket,
        tool: view.tool,
        tenant: view.tenant,
        principal: view.principal,
        channel: view.channel,
        request_id: view.request_id,
        scope: view.scope,
        summary: view.summary,
        issued_at: view.issued_at,
        expires_at: view.expires_at,
    };
    Ok(found.into_iter().map(pending).collect())
}

/// The ticket of this name, if `viewer` may be told of it.
pub(crate) fn visible_one(
    link: &Link<'_>,
    id: Digest,
    viewer: &CallContext<'_>,
    now: Timestamp,
) -> Result<Option<TicketView>, DatabaseError> {
    let sql = format!("SELECT {COLUMNS}, {TOLD} FROM tickets WHERE ticket = ?1");
    let may_see = |kept: &mut Kept| kept.ticket.is_visible_to(viewer, &kept.asked());
    Ok(views(link, &sql, [id.as_bytes()], now, may_see, 1)?.pop())
}

/// What `viewer` may be told of, the oldest first, at most `max`.
pub(crate) fn visible(
    link: &Link<'_>,
    viewer: &CallContext<'_>,
    max: usize,
    now: Timestamp,
) -> Result<Vec<TicketView>, DatabaseError> {
    let sql = format!("SELECT {COLUMNS}, {TOLD} FROM tickets WHERE tenant IS ?1 ORDER BY issued_ms, ticket");
    let may_see = |kept: &mut Kept| kept.ticket.is_visible_to(viewer, &kept.asked());
    views(link, &sql, [viewer.tenant], now, may_see, max)
}

/// Leaves in doubt what is lost at `now`, at most `max` tickets, and tells which.
pub(crate) fn reap(link: &Link<'_>, max: usize, now: Timestamp) -> Result<Vec<TicketView>, DatabaseError> {
    let sql = "SELECT ticket FROM tickets WHERE state = 'reserved' AND held_until_ms <= ?1 \
               ORDER BY issued_ms, ticket LIMIT ?2";
    let mut lost = Vec::new();
    link.each(sql, params![to_millis(now), i64::try_from(max).unwrap_or(i64::MAX)], |row| {
        lost.push(Digest::from_bytes(row.get(0)?));
        Ok(true)
    })?;
    let mut reaped = Vec::new();
    for id in lost {
        let Some(mut kept) = Kept::find(link, id)? else { continue };
        if kept.ticket.reap(now) {
            kept.keep_state(link)?;
            reaped.push(kept.view(link, now)?);
        }
    }
    Ok(reaped)
}

/// SQLite's integers are signed: what lies beyond 292 million years ends there.
pub(crate) fn to_millis(time: Timestamp) -> i64 {
    i64::try_from(time.as_unix_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn from_millis(ms: i64) -> Result<Timestamp, &'static str> {
    u64::try_from(ms).map(Timestamp::from_unix_millis).map_err(|_| "a time is before 1970")
}
