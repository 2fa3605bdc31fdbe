//! How approvers and hosts reach the parts of an async gate.

use std::sync::Arc;

use callgate_core::audit::AuditFault;
use callgate_core::confirm::{CancelError, Decided, ReconcileError, Verdict};
use callgate_core::digest::Digest;
use callgate_std::captured::CapturedContext;
use callgate_std::common::Common;
use callgate_std::confirmations::{
    DecideFault, GrantError, NewGrant, PendingApproval, Revoked, StandingGrant, StoreFault, TicketView,
};
use callgate_std::contain::contain;
use callgate_std::desk::{Desk, Finding, Ruling};
use callgate_std::journal::OperationView;

use super::Gate;
use super::drive::within;
use crate::audit::Entry;
use crate::seam::Seam;

/// A gate, with its own methods out of the way.
#[derive(Clone)]
pub(super) struct Front(pub(super) Gate);

/// Puts a question to whoever a seam leads to, in the way that the seam asks for, and gives the answer: `None` when it panicked, took too
/// long or got lost. What the question needs is named, to be taken along where it goes to another thread.
macro_rules! put {
    ($gate:expr, $seam:expr, |$asked:ident $(, $kept:ident)*| $question:expr) => {
        match $seam {
            Seam::Immediate($asked) => contain(|| $question).ok(),
            Seam::Waiting($asked) => within(&$gate, Box::pin(async { $question.await })).await,
            Seam::Blocking($asked) => {
                let $asked = Arc::clone($asked);
                $(let $kept = $kept.clone();)*
                $gate.offload(move || $question).await
            }
        }
    };
}
pub(super) use put;

impl Desk for Front {
    fn common(&self) -> &Common {
        &self.0.0.common
    }

    async fn record(&self, ruling: &Ruling) -> Result<(), AuditFault> {
        let recorded = match &self.0.0.audit {
            None => Some(Ok(())),
            Some(Seam::Immediate(sink)) => contain(|| ruling.with_record(|record| sink.record(record))).ok(),
            Some(Seam::Waiting(sink)) => {
                let entry = ruling.with_record(Entry::of)?;
                within(&self.0, sink.record(entry)).await
            }
            Some(Seam::Blocking(sink)) => {
                let (sink, ruling) = (Arc::clone(sink), ruling.clone());
                self.0.offload(move || ruling.with_record(|record| sink.record(record))).await
            }
        };
        recorded.unwrap_or(Err(AuditFault))
    }

    async fn decide(
        &self,
        ticket: Digest,
        verdict: Verdict,
        approver: &CapturedContext,
    ) -> Result<Decided, DecideFault> {
        let store = &self.0.0.confirmations;
        let decided = put!(self.0, store, |store, approver| store.decide(ticket, verdict, &approver.borrow()));
        decided.unwrap_or(Err(DecideFault::Store))
    }

    async fn pending(&self, approver: &CapturedContext, max: usize) -> Result<Vec<PendingApproval>, StoreFault> {
        let store = &self.0.0.confirmations;
        put!(self.0, store, |store, approver| store.pending(&approver.borrow(), max)).unwrap_or(Err(StoreFault))
    }

    async fn tickets(&self, viewer: &CapturedContext, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        let store = &self.0.0.confirmations;
        put!(self.0, store, |store, viewer| store.tickets(&viewer.borrow(), max)).unwrap_or(Err(StoreFault))
    }

    async fn cancel(&self, ticket: Digest, requester: &CapturedContext) -> Result<Result<(), CancelError>, StoreFault> {
        let store = &self.0.0.confirmations;
        put!(self.0, store, |store, requester| store.cancel(ticket, &requester.borrow())).unwrap_or(Err(StoreFault))
    }

    async fn reap(&self, max: usize) -> Result<Vec<TicketView>, StoreFault> {
        put!(self.0, &self.0.0.confirmations, |store| store.reap(max)).unwrap_or(Err(StoreFault))
    }

    async fn reconcile(
        &self,
        ticket: Digest,
        finding: &Finding,
    ) -> Result<Result<TicketView, ReconcileError>, StoreFault> {
        let store = &self.0.0.confirmations;
        put!(self.0, store, |store, finding| store.reconcile(ticket, &finding.borrow())).unwrap_or(Err(StoreFault))
    }

    async fn grant(&self, grant: NewGrant, by: &CapturedContext) -> Result<StandingGrant, GrantError> {
        let store = &self.0.0.confirmations;
        let granted = put!(self.0, store, |store, grant, by| store.grant(grant.clone(), &by.borrow()));
        granted.unwrap_or(Err(GrantError::Store))
    }

    async fn grants(&self, viewer: &CapturedContext, max: usize) -> Result<Vec<StandingGrant>, StoreFault> {
        let store = &self.0.0.confirmations;
        put!(self.0, store, |store, viewer| store.grants(&viewer.borrow(), max)).unwrap_or(Err(StoreFault))
    }

    async fn revoke(&self, grant: Digest, by: &CapturedContext) -> Result<Revoked, GrantError> {
        let store = &self.0.0.confirmations;
        put!(self.0, store, |store, by| store.revoke(grant, &by.borrow())).unwrap_or(Err(GrantError::Store))
    }

    fn has_journal(&self) -> bool {
        self.0.0.journal.is_some()
    }

    async fn operations(&self, viewer: &CapturedContext, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        let journal = self.0.0.journal.as_ref().ok_or(StoreFault)?;
        put!(self.0, journal, |journal, viewer| journal.operations(&viewer.borrow(), max)).unwrap_or(Err(StoreFault))
    }

    async fn reap_operations(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        let journal = self.0.0.journal.as_ref().ok_or(StoreFault)?;
        put!(self.0, journal, |journal| journal.reap(max)).unwrap_or(Err(StoreFault))
    }

    async fn reconcile_operation(
        &self,
        key: Digest,
        finding: &Finding,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        let journal = self.0.0.journal.as_ref().ok_or(StoreFault)?;
        let settled = put!(self.0, journal, |journal, finding| journal.reconcile(key, &finding.borrow()));
        settled.unwrap_or(Err(StoreFault))
    }
}
