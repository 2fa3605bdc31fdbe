//! Decisions, and what becomes of requests.

use std::future::Future;

use callgate_core::confirm::{Decided, Verdict};
use callgate_core::digest::Digest;

use super::{AT_ONCE, Desk, Finding, Ruling, found_out};
use crate::captured::CapturedContext;
use crate::confirmations::{DecideFault, GrantError, NewGrant, Revoked, StandingGrant, StoreFault, TicketView};
use crate::gate::{DecisionFault, GrantFault};
use crate::render::approver;

/// The most requests that the one which is decided is looked for among, to name its tool in the record.
const MOST: usize = 10_000;

/// The requests that `viewer` may be told of, once what was lost is found to be in doubt.
pub async fn tickets(desk: &impl Desk, viewer: &CapturedContext, max: usize) -> Result<Vec<TicketView>, StoreFault> {
    drop(reap(desk).await?);
    desk.tickets(viewer, max).await
}

/// Withdraws a request for its requester.
pub async fn cancel(desk: &impl Desk, ticket: Digest, requester: &CapturedContext) -> Result<(), DecisionFault> {
    let ruling = Ruling { ticket: Some(ticket), ..Ruling::new(desk.common(), requester, "cancel") };
    recorded(desk, ruling, async {
        let cancelled = desk.cancel(ticket, requester).await.map_err(DecideFault::from)?;
        cancelled.map_err(DecisionFault::Cancel)
    })
    .await
}

/// Settles a request in doubt.
pub async fn resolve(desk: &impl Desk, ticket: Digest, finding: &Finding) -> Result<TicketView, DecisionFault> {
    let ruling = Ruling { ticket: Some(ticket), ..finding.ruling(desk.common()) };
    recorded(desk, ruling, async {
        drop(reap(desk).await.map_err(DecideFault::from)?);
        let settled = desk.reconcile(ticket, finding).await.map_err(DecideFault::from)?;
        settled.map_err(DecisionFault::Resolve)
    })
    .await
}

/// Takes an approver's decision.
pub async fn decide(
    desk: &impl Desk,
    ticket: Digest,
    verdict: Verdict,
    approver: &CapturedContext,
) -> Result<Decided, DecisionFault> {
    let asked = desk.pending(approver, MOST).await.map_err(DecideFault::from)?;
    let asked = asked.into_iter().find(|asked| asked.ticket == ticket);
    let what = match verdict {
        Verdict::Approve => "approve",
        Verdict::Deny => "deny",
    };
    let arguments = asked.as_ref().and_then(|asked| approver::digest_of(&asked.summary));
    let tool = asked.map(|asked| asked.tool).unwrap_or_default();
    let ruling = Ruling { ticket: Some(ticket), tool, arguments, ..Ruling::new(desk.common(), approver, what) };
    recorded(desk, ruling, async { Ok(desk.decide(ticket, verdict, approver).await?) }).await
}

/// Leaves in doubt what calls hold that have not been heard of within their lease.
pub async fn reap(desk: &impl Desk) -> Result<Vec<TicketView>, StoreFault> {
    let mut lost = Vec::new();
    loop {
        let reaped = desk.reap(AT_ONCE).await?;
        for view in &reaped {
            let note = format!("asked by {}: its call was not heard of within its lease", view.request_id);
            let found = found_out(desk.common(), note);
            let ruling = Ruling { ticket: Some(view.ticket), tool: view.tool.clone(), ..found };
            // It is in doubt whether or not this can be recorded.
            if desk.record(&ruling).await.is_err() {
                tracing::error!(ticket = %view.ticket, "that a ticket was left in doubt could not be recorded");
            }
        }
        let all = reaped.len() < AT_ONCE;
        lost.extend(reaped);
        if all {
            return Ok(lost);
        }
    }
}

/// Gives a standing grant.
pub async fn grant(desk: &impl Desk, grant: NewGrant, by: &CapturedContext) -> Result<StandingGrant, GrantFault> {
    let note = format!(
        "for {}: {} calls within {} ms, {:?}",
        grant.principal, grant.max_uses, grant.lasts_ms, grant.arguments
    );
    let ruling = Ruling {
        ticket: Some(grant.definition),
        tool: grant.tool.clone(),
        note: Some(note),
        ..Ruling::new(desk.common(), by, "grant")
    };
    granting(desk, ruling, async { desk.grant(grant, by).await }).await
}

/// Takes a standing grant back.
pub async fn revoke(desk: &impl Desk, grant: Digest, by: &CapturedContext) -> Result<Revoked, GrantFault> {
    let ruling = Ruling { ticket: Some(grant), ..Ruling::new(desk.common(), by, "revoke") };
    granting(desk, ruling, async { desk.revoke(grant, by).await }).await
}

async fn granting<R: Send>(
    desk: &impl Desk,
    mut ruling: Ruling,
    step: impl Future<Output = Result<R, GrantError>> + Send,
) -> Result<R, GrantFault> {
    desk.record(&ruling).await.map_err(|_| GrantFault::Unrecorded)?;
    let done = step.await.map_err(GrantFault::from);
    if let Err(fault) = &done {
        ruling.refused = Some((fault.code(), "grant"));
        let _ = desk.record(&ruling).await;
    }
    done
}

/// Records a ruling, then has it take effect, and records once more when it does not.
pub(super) async fn recorded<R: Send>(
    desk: &impl Desk,
    mut ruling: Ruling,
    step: impl Future<Output = Result<R, DecisionFault>> + Send,
) -> Result<R, DecisionFault> {
    desk.record(&ruling).await.map_err(|_| DecisionFault::Unrecorded)?;
    let done = step.await;
    if let Err(fault) = &done {
        ruling.refused = Some((fault.code(), fault.as_str()));
        // That it was tried is recorded already; that it does not count is the safe side.
        let _ = desk.record(&ruling).await;
    }
    done
}
