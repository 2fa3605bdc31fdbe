//! What a host without a driver answers: each question of core, asked of what surrounds it, contained.

use std::sync::Arc;

use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::call::{
    Asking, Charge, Closed, Finished, IssueFault, Issued, Loaded, Lookup, Permit, Ran, Redeeming, StoreFault,
};
use callgate_core::confirm::{By, Refusal};
use callgate_core::context::CallContext;
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::limit::Allowance;
use callgate_core::policy::{Decision, Subject};
use callgate_core::request::Request;
use callgate_core::time::Now;
use callgate_std::confirmations::{ConfirmationStore, PendingRequest, Snapshot};
use callgate_std::contain::contain;
use callgate_std::envelope::OwnedEnvelope;
use callgate_std::failure::Failure;
use callgate_std::limiter::RateLimiter;
use callgate_std::output::Reply;
use callgate_std::policy::{Policy, fault};
use callgate_std::registry::ToolSource;
use callgate_std::settings::GateSettings;
use callgate_std::tool::Tool;

use super::judges::LIMIT_MS;
use super::surroundings::{DIGEST_KEY, Performed, Surroundings, context, perform};
use crate::event::Call;
use crate::feature::Feature;

/// What belongs to hosts that have drivers: listeners, caps of results, explanations, a journal.
pub(super) const LACKS: [Feature; 5] =
    [Feature::Listen, Feature::Events, Feature::OutputCap, Feature::Inspect, Feature::Operations];

/// What a call carries here.
pub(super) type Carried = Box<OwnedEnvelope>;

impl Surroundings {
    /// What the call carries, to begin with.
    pub(super) fn envelope(&self, call: &Call) -> Carried {
        let settings = Arc::new(GateSettings::new(DigestKey::new(DIGEST_KEY)));
        let scopes = call.caller.scopes.join(" ");
        let caller = context(&call.caller, &scopes, &call.id, call.mode);
        let request = Request { tool: &call.tool, arguments: call.arguments.as_bytes(), token: call.token.as_deref() };
        Box::new(OwnedEnvelope::new(&caller, request, settings, false))
    }

    pub(super) fn now(&self) -> Now {
        self.time.now()
    }

    pub(super) fn find(&self, tool: &str, caller: &CallContext<'_>) -> Lookup<Arc<Tool>> {
        self.tools.find(tool, caller)
    }

    pub(super) fn load(&self, ticket: Option<Digest>) -> Result<Option<Loaded<Snapshot>>, StoreFault> {
        ticket.map_or(Ok(None), |ticket| self.store.load(ticket))
    }

    pub(super) fn authorize(&self, subject: &Subject<'_>) -> Decision<Arc<str>> {
        contain(|| self.policy.decide(subject)).unwrap_or_else(|_| fault())
    }

    pub(super) fn charge(&self, charge: Option<Charge<'_>>) -> Result<Allowance, StoreFault> {
        match charge {
            Some(charge) => contain(|| self.limiter.charge(&charge)).unwrap_or(Err(StoreFault)),
            None => Ok(Allowance::Unlimited),
        }
    }

    pub(super) fn issue(&self, asking: &Asking<Carried, Arc<Tool>>) -> Result<Issued, IssueFault> {
        let issue = || self.store.issue(&PendingRequest::of(asking), self.world.ttl_ms());
        contain(issue).unwrap_or(Err(IssueFault::Store))
    }

    pub(super) fn claim(&self, redeeming: &Redeeming<Carried, Arc<Tool>>) -> Result<Result<By, Refusal>, StoreFault> {
        let claim = || self.store.claim(redeeming.ticket(), &redeeming.presented());
        contain(claim).unwrap_or(Err(StoreFault))
    }

    /// Asks the interceptors in their order.
    pub(super) fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        for judge in self.judges() {
            let began = self.now().monotonic;
            let said = contain(|| judge.judge(subject)).unwrap_or_else(Interception::Failed);
            if self.now().monotonic.nanos_since(began) > LIMIT_MS.saturating_mul(1_000_000) {
                return Interception::Failed("too late".into());
            }
            if !matches!(said, Interception::Continue) {
                return said;
            }
        }
        Interception::Continue
    }

    pub(super) fn write(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        contain(|| self.sink.record(record)).unwrap_or(Err(AuditFault))
    }

    pub(super) fn run(&self, permit: &Permit<'_, Carried, Arc<Tool>>) -> Finished<Reply, Failure, Arc<str>> {
        let began = self.now().monotonic;
        let script = self.world.tools.iter().find(|tool| tool.name == permit.spec().name);
        let ran = match script.map(|script| contain(|| perform(script, &self.watch, &self.time, permit.args()))) {
            Some(Ok(Performed::Done(reply))) => Ran::Done(reply),
            Some(Ok(Performed::Failed(failure))) => Ran::Failed(failure),
            Some(Ok(Performed::Late)) => Ran::TimedOut,
            Some(Err(text)) => Ran::Panicked(text),
            None => Ran::Cancelled,
        };
        ran.after(self.now().monotonic.nanos_since(began))
    }

    /// Settles budgets and tickets; gives what the limiter says of the caller's attempts.
    pub(super) fn settle(&self, closed: &Closed<Carried, Arc<Tool>>) -> Option<Result<Allowance, StoreFault>> {
        let settlement = closed.settlement();
        if let Some(refund) = settlement.refund {
            let _ = self.limiter.refund(&refund);
        }
        if let Some(finish) = settlement.finish {
            let _ = self.store.finish(&finish);
        }
        if let Some(ticket) = settlement.withdraw {
            let _ = self.store.withdraw(ticket);
        }
        settlement.attempt.map(|key| self.limiter.attempt(&key))
    }
}
