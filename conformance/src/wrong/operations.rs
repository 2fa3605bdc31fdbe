//! What is wrong with operations: done to the blocking gate, because the model knows none. Its journal is wrong, or what it is told and
//! what it shows.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use callgate_core::code::Effect;
use callgate_core::confirm::ReconcileError;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_std::confirmations::Resolution;
use callgate_std::journal::{
    FinishOperation, Journal, JournalAnswer, KeptReply, OperationRefusal, OperationRequest, OperationView,
    PresentedOperation, Recalled, SettleError, StoreFault,
};
use serde_json::json;

use super::Twist;
use crate::event::{Call, Event, Point, Seen};
use crate::subject::{Subject, SubjectFault};
use crate::subjects::Blocking;

/// The blocking gate, wrong in this.
#[derive(Debug)]
pub(super) struct Operations {
    twist: Twist,
    pub(super) gate: Blocking,
    /// With which scopes an operation took effect: by whoever made it, and its id.
    done: HashMap<String, Vec<String>>,
}

impl Operations {
    pub(super) fn new(twist: Twist, name: &str) -> Self {
        Self { twist, gate: Blocking::wrong(name, WrongJournal(twist)), done: HashMap::new() }
    }

    /// Has something happen to it.
    pub(super) fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        let Event::Call(call) = event else { return self.gate.event(event) };
        let Some(operation) = &call.operation else { return self.gate.event(event) };
        let whose = format!("{:?} {:?} {operation}", call.caller.tenant, call.caller.principal);
        let mut told: Call = call.clone();
        if self.twist == Twist::ReplayUnauthorized
            && let Some(scopes) = self.done.get(&whose)
        {
            told.caller.scopes.clone_from(scopes);
        }
        let mut seen = self.gate.event(&Event::Call(told))?;
        if seen.effects > 0 && seen.outcome.as_ref().is_some_and(|outcome| outcome.success) {
            self.done.insert(whose, call.caller.scopes.clone());
        }
        if self.twist == Twist::ReplayUnaudited {
            let all = seen.records.len();
            seen.records.retain(|record| record.get("end") != Some(&json!("replayed")));
            if seen.records.len() < all {
                seen.marks.retain(|mark| mark.at != Point::Record);
            }
        }
        Ok(seen)
    }
}

/// A journal that is wrong in this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongJournal(Twist);

impl WrongJournal {
    /// This journal, made wrong.
    pub(crate) fn around(self, journal: Arc<dyn Journal>) -> Arc<dyn Journal> {
        Arc::new(Around { twist: self.0, journal, first: Mutex::default() })
    }
}

struct Around {
    twist: Twist,
    journal: Arc<dyn Journal>,
    /// Under which name an id was kept first.
    first: Mutex<HashMap<String, Digest>>,
}

impl Around {
    fn presented(&self, presented: &PresentedOperation) -> PresentedOperation {
        let any = Digest::of_bytes(b"whatever it is");
        let mut presented = *presented;
        match self.twist {
            Twist::OperationArgumentsUnbound => presented.arguments = any,
            Twist::OperationToolUnbound => presented.tool = any,
            _ => {}
        }
        presented
    }

    /// What is in doubt may be tried again.
    fn answer(&self, answer: JournalAnswer) -> JournalAnswer {
        match answer {
            Ok(Err(OperationRefusal::InDoubt)) if self.twist == Twist::OperationInDoubtRuns => {
                Ok(Ok(Recalled::Free(NonZeroU32::MAX)))
            }
            answer => answer,
        }
    }
}

impl Journal for Around {
    fn recall(&self, presented: &PresentedOperation) -> JournalAnswer {
        self.answer(self.journal.recall(&self.presented(presented)))
    }

    fn claim(&self, request: &OperationRequest<'_>) -> JournalAnswer {
        let mut presented = self.presented(&request.presented);
        if self.twist == Twist::OperationOfEverybody {
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            presented.key = *first.entry(request.operation.to_owned()).or_insert(presented.key);
        }
        self.answer(self.journal.claim(&OperationRequest { presented, ..*request }))
    }

    fn finish(
        &self,
        finish: &FinishOperation,
        result: Option<&KeptReply>,
    ) -> Result<Result<(), SettleError>, StoreFault> {
        if self.twist == Twist::ReplayRuns && finish.effect == Effect::Done {
            return self.journal.finish(&FinishOperation { effect: Effect::None, ..*finish }, None);
        }
        self.journal.finish(finish, result)
    }

    fn reap(&self, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.journal.reap(max)
    }

    fn reconcile(
        &self,
        key: Digest,
        resolution: &Resolution<'_>,
    ) -> Result<Result<OperationView, ReconcileError>, StoreFault> {
        self.journal.reconcile(key, resolution)
    }

    fn operations(&self, viewer: &CallContext<'_>, max: usize) -> Result<Vec<OperationView>, StoreFault> {
        self.journal.operations(viewer, max)
    }
}
