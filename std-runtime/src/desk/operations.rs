//! Operations, and how those in doubt are settled.

use callgate_core::digest::Digest;

use super::approvals::recorded;
use super::{AT_ONCE, Desk, Finding, Ruling, found_out};
use crate::captured::CapturedContext;
use crate::confirmations::{DecideFault, StoreFault};
use crate::gate::DecisionFault;
use crate::journal::OperationView;

/// The most operations that the one which is settled is looked for among, to name it in the record.
const MOST: usize = 100_000;

/// The operations that `viewer` may be told of, once what was lost is found to be in doubt.
pub async fn operations(
    desk: &impl Desk,
    viewer: &CapturedContext,
    max: usize,
) -> Result<Vec<OperationView>, StoreFault> {
    drop(reap_operations(desk).await?);
    desk.operations(viewer, max).await
}

/// Settles an operation in doubt.
pub async fn resolve_operation(
    desk: &impl Desk,
    key: Digest,
    finding: &Finding,
) -> Result<OperationView, DecisionFault> {
    if !desk.has_journal() {
        return Err(DecideFault::Store.into());
    }
    let known = operations(desk, finding.by(), MOST).await.map_err(DecideFault::from)?;
    let known = known.into_iter().find(|view| view.key == key);
    let (tool, operation) = known.map(|view| (view.tool, view.operation)).unzip();
    let ruling = Ruling { tool: tool.unwrap_or_default(), operation, ..finding.ruling(desk.common()) };
    recorded(desk, ruling, async {
        let settled = desk.reconcile_operation(key, finding).await.map_err(DecideFault::from)?;
        settled.map_err(DecisionFault::Resolve)
    })
    .await
}

/// Leaves in doubt what calls are at that have not been heard of within their lease.
pub async fn reap_operations(desk: &impl Desk) -> Result<Vec<OperationView>, StoreFault> {
    let mut lost = Vec::new();
    loop {
        let reaped = desk.reap_operations(AT_ONCE).await?;
        for view in &reaped {
            let note = format!("made by {}: the call was not heard of within its lease", view.request_id);
            let found = found_out(desk.common(), note);
            let ruling = Ruling { tool: view.tool.clone(), operation: Some(view.operation.clone()), ..found };
            // It is in doubt whether or not this can be recorded.
            if desk.record(&ruling).await.is_err() {
                tracing::error!(operation = %view.key, "that an operation was left in doubt could not be recorded");
            }
        }
        let all = reaped.len() < AT_ONCE;
        lost.extend(reaped);
        if all {
            return Ok(lost);
        }
    }
}
