//! A standing grant as a row.

use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use callgate_std::confirmations::{GrantArguments, GrantError, MAX_GRANTS, Revoked, StandingGrant};
use rusqlite::{Params, Row, params};

use crate::database::Link;
use crate::error::DatabaseError;
use crate::ticket::{from_millis, to_millis};

const COLUMNS: &str = "grant_id, tool, tool_digest, tenant, principal, args_digest, args_including, args_fitting, given_by, \
                       given_ms, expires_ms, max_uses, used, revoked";

/// The columns, before anything is believed of them.
fn read(row: &Row<'_>) -> rusqlite::Result<Result<StandingGrant, &'static str>> {
    let exactly: Option<[u8; 32]> = row.get(5)?;
    let (including, fitting): (Option<String>, Option<String>) = (row.get(6)?, row.get(7)?);
    let arguments = match (exactly, including, fitting) {
        (Some(digest), None, None) => GrantArguments::Exactly(Digest::from_bytes(digest)),
        (None, Some(text), None) => GrantArguments::Including(text),
        (None, None, Some(text)) => GrantArguments::Fitting(text),
        _ => return Ok(Err("a grant does not say for which arguments")),
    };
    let (given_ms, expires_ms): (i64, i64) = (row.get(9)?, row.get(10)?);
    let (given_at, expires_at) = match (from_millis(given_ms), from_millis(expires_ms)) {
        (Ok(given_at), Ok(expires_at)) => (given_at, expires_at),
        (Err(reason), _) | (_, Err(reason)) => return Ok(Err(reason)),
    };
    Ok(Ok(StandingGrant {
        id: Digest::from_bytes(row.get(0)?),
        tool: row.get(1)?,
        definition: Digest::from_bytes(row.get(2)?),
        tenant: row.get(3)?,
        principal: row.get(4)?,
        arguments,
        given_by: row.get(8)?,
        given_at,
        expires_at,
        max_uses: row.get(11)?,
        used: row.get(12)?,
        revoked: row.get(13)?,
    }))
}

fn query(link: &Link<'_>, rest: &str, parameters: impl Params) -> Result<Vec<StandingGrant>, DatabaseError> {
    let mut found = Vec::new();
    link.each(&format!("SELECT {COLUMNS} FROM grants {rest}"), parameters, |row| {
        found.push(read(row)?);
        Ok(true)
    })?;
    found.into_iter().map(|grant| grant.map_err(|reason| link.damaged(reason))).collect()
}

/// The grant of this name.
pub(crate) fn find(link: &Link<'_>, id: Digest) -> Result<Option<StandingGrant>, DatabaseError> {
    Ok(query(link, "WHERE grant_id = ?1", [id.as_bytes()])?.pop())
}

/// Those that could cover calls of this caller.
pub(crate) fn of_caller(
    link: &Link<'_>,
    caller: &CallContext<'_>,
    definition: Digest,
    now: Timestamp,
) -> Result<Vec<StandingGrant>, DatabaseError> {
    let Some(principal) = caller.known_principal() else { return Ok(Vec::new()) };
    let rest = "WHERE tool_digest = ?1 AND principal = ?2 AND tenant IS ?3 AND revoked = 0 ORDER BY given_ms, grant_id";
    let mut grants = query(link, rest, params![definition.as_bytes(), principal, caller.tenant])?;
    grants.retain(|grant| grant.is_open(now));
    Ok(grants)
}

/// Those that `viewer` may be told of, the oldest first, at most `max`.
pub(crate) fn visible(
    link: &Link<'_>,
    viewer: &CallContext<'_>,
    max: usize,
) -> Result<Vec<StandingGrant>, DatabaseError> {
    let mut grants = query(link, "WHERE tenant IS ?1 ORDER BY given_ms, grant_id", [viewer.tenant])?;
    grants.retain(|grant| grant.is_visible_to(viewer));
    grants.truncate(max);
    Ok(grants)
}

/// Keeps a new grant, if there is or can be made room for it.
pub(crate) fn add(
    link: &Link<'_>,
    grant: &StandingGrant,
    now: Timestamp,
) -> Result<Result<(), GrantError>, DatabaseError> {
    let most = i64::try_from(MAX_GRANTS).unwrap_or(i64::MAX);
    let count = || link.one("SELECT count(*) FROM grants", [], |row| row.get::<_, i64>(0));
    if count()? >= most {
        let over = "DELETE FROM grants WHERE revoked = 1 OR used >= max_uses OR expires_ms <= ?1";
        link.execute(over, [to_millis(now)])?;
    }
    if count()? >= most {
        return Ok(Err(GrantError::Full));
    }
    let (exactly, including, fitting) = match &grant.arguments {
        GrantArguments::Exactly(digest) => (Some(digest.as_bytes()), None, None),
        GrantArguments::Including(text) => (None, Some(text), None),
        GrantArguments::Fitting(text) => (None, None, Some(text)),
        // A kind that this program does not know is not kept as another.
        _ => return Ok(Err(GrantError::Arguments)),
    };
    let sql =
        format!("INSERT INTO grants ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)");
    let parameters = params![
        grant.id.as_bytes(),
        grant.tool,
        grant.definition.as_bytes(),
        grant.tenant,
        grant.principal,
        exactly,
        including,
        fitting,
        grant.given_by,
        to_millis(grant.given_at),
        to_millis(grant.expires_at),
        grant.max_uses,
        grant.used,
        grant.revoked,
    ];
    link.execute(&sql, parameters)?;
    Ok(Ok(()))
}

/// Keeps what a rule made of a grant.
pub(crate) fn keep(link: &Link<'_>, grant: &StandingGrant) -> Result<(), DatabaseError> {
    let sql = "UPDATE grants SET used = ?2, revoked = ?3 WHERE grant_id = ?1";
    match link.execute(sql, params![grant.id.as_bytes(), grant.used, grant.revoked])? {
        1 => Ok(()),
        _ => Err(link.damaged("a grant is gone while it is looked at")),
    }
}

/// What there is to tell of a grant that was taken back.
pub(crate) fn revoked(link: &Link<'_>, grant: &StandingGrant) -> Result<Revoked, DatabaseError> {
    let sql = "SELECT count(*) FROM tickets WHERE grant_id = ?1 AND state = 'reserved'";
    let under_way: u32 = link.one(sql, [grant.id.as_bytes()], |row| row.get(0))?;
    Ok(Revoked { used: grant.used, under_way })
}
