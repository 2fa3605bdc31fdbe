//! Runs that go on in the background after their call was answered.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

pub use callgate_core::call::TaskId;

use crate::cancellation::Cancellation;
use crate::envelope::OwnedEnvelope;
use crate::lock::{Mutex, lock};
use crate::tool::Tool;
use crate::update::Update;

/// How many updates of one run are kept for its completion; what comes after them is counted only.
pub const MAX_COLLECTED: usize = 1_000;

/// The outcome of a run in the background.
pub type TaskOutcome = callgate_core::outcome::Outcome<Box<OwnedEnvelope>, Arc<Tool>>;

/// A run in the background that is over, and recorded.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completion {
    /// The run, by the id that its caller was given.
    pub task: TaskId,
    /// What became of it. It names the call by its request id.
    pub outcome: TaskOutcome,
    /// What it told on its way, in order: the first [`MAX_COLLECTED`] updates.
    pub updates: Vec<Update>,
    /// How many updates more there were.
    pub missed: u64,
}

impl Completion {
    /// A run that is over.
    #[must_use]
    pub fn new(task: TaskId, outcome: TaskOutcome, collected: Collected) -> Self {
        Self { task, outcome, updates: collected.updates, missed: collected.missed }
    }
}

/// The updates of a run, as far as they are kept (invariant X6).
#[derive(Debug, Default)]
pub struct Collected {
    updates: Vec<Update>,
    missed: u64,
}

impl Collected {
    /// Keeps one more, or counts it.
    pub fn push(&mut self, update: Update) {
        if self.updates.len() < MAX_COLLECTED {
            self.updates.push(update);
        } else {
            self.missed = self.missed.saturating_add(1);
        }
    }
}

/// The runs that go on.
#[derive(Default)]
pub struct Tasks(Mutex<HashMap<TaskId, Cancellation>>);

impl Tasks {
    /// Notes a run that can be cancelled by this.
    pub fn insert(&self, task: TaskId, cancellation: Cancellation) {
        drop(lock(&self.0).insert(task, cancellation));
    }

    /// Forgets a run that is over.
    pub fn remove(&self, task: TaskId) {
        drop(lock(&self.0).remove(&task));
    }

    /// Cancels a run. Says whether it was running.
    pub fn cancel(&self, task: TaskId) -> bool {
        let found = lock(&self.0).get(&task).cloned();
        found.inspect(Cancellation::cancel).is_some()
    }

    /// The runs that go on, in no order.
    pub fn running(&self) -> Vec<TaskId> {
        lock(&self.0).keys().copied().collect()
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tasks").field(&self.running().len()).finish()
    }
}
