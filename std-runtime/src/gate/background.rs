//! Runs that go on in the background, each on a thread of its own.

use std::sync::Arc;
use std::thread;

use callgate_core::call::{Executing, Ran};

use super::Gate;
use crate::cancellation::Cancellation;
use crate::contain::contain;
use crate::envelope::OwnedEnvelope;
use crate::failure::Failure;
use crate::future::block_on_until;
use crate::lock::{Mutex, lock};
use crate::slots::Slot;
use crate::task::{Collected, Completion, TaskId};
use crate::tool::{self, OwnedHost, Run, Tool};
use crate::update::PENDING_UPDATES;

type Running = Executing<Box<OwnedEnvelope>, Arc<Tool>>;

impl Gate {
    /// Lets an accepted run go on. It keeps the places of its call until it is over.
    pub(super) fn go_on(&self, task: TaskId, run: Running, places: [Option<Slot>; 3]) {
        let gate = self.clone();
        // Before the answer, so that whoever has the id can use it.
        let cancellation = self.0.common.stop.child();
        self.0.common.tasks.insert(task, cancellation.clone());
        // Kept where this thread finds it again if there is no other one.
        let shared = Arc::new(Mutex::new(Some(run)));
        let taken = Arc::clone(&shared);
        let spawned = thread::Builder::new().name(format!("task {task}")).spawn(move || {
            let run = lock(&taken).take();
            if let Some(run) = run {
                gate.run_to_its_end(task, run, &cancellation);
            }
            drop(places);
        });
        let left = lock(&shared).take_if(|_| spawned.is_err());
        if let Some(run) = left {
            let failure = Failure::new("there is no thread for the run").without_effect();
            self.0.common.tasks.remove(task);
            self.complete(task, run.finished(Ran::Failed(failure).after(0)), Collected::default());
        }
    }

    fn run_to_its_end(&self, task: TaskId, mut run: Running, cancellation: &Cancellation) {
        let common = &self.0.common;
        if cancellation.is_cancelled() {
            common.tasks.remove(task);
            return self.complete(task, run.finished(Ran::Cancelled.after(0)), Collected::default());
        }
        let Some(permit) = run.permit() else { return };
        let term = common.term(permit.spec());
        let (sender, receiver) = async_channel::bounded(PENDING_UPDATES);
        let host = OwnedHost::new(common.clock.clone(), term.started)
            .with_nested(Arc::clone(&self.0) as Arc<dyn tool::AsyncNestedCalls>)
            .with_cancellation(cancellation.clone())
            .with_updates(sender);
        let collected = Arc::new(Mutex::new(Collected::default()));
        let result = match tool::start(permit, host) {
            Run::Waiting(run) => contain(|| {
                let give_up = || {
                    while let Ok(update) = receiver.try_recv() {
                        lock(&collected).push(update);
                    }
                    if cancellation.is_cancelled() {
                        return Some(Failure::cancelled());
                    }
                    (common.clock.monotonic() >= term.deadline).then(Failure::timed_out)
                };
                block_on_until(run, give_up).unwrap_or_else(Err)
            }),
            Run::Blocking(run) => thread::scope(|scope| {
                // The run waits while nobody takes its updates.
                let collector = scope.spawn(|| {
                    while let Ok(update) = receiver.recv_blocking() {
                        lock(&collected).push(update);
                    }
                });
                let result = contain(|| run.run());
                drop(collector.join());
                result
            }),
        };
        while let Ok(update) = receiver.try_recv() {
            lock(&collected).push(update);
        }
        let (finished, _) = common.ran(result, term, cancellation.is_cancelled());
        cancellation.cancel();
        common.tasks.remove(task);
        let collected = std::mem::take(&mut *lock(&collected));
        self.complete(task, run.finished(finished), collected);
    }

    fn complete(
        &self,
        task: TaskId,
        ended: callgate_core::call::Ended<Box<OwnedEnvelope>, Arc<Tool>>,
        collected: Collected,
    ) {
        let completion = Completion::new(task, self.finish(ended, None), collected);
        if let Some(told) = &self.0.common.on_completion
            && contain(|| told(completion)).is_err()
        {
            tracing::error!(task = %task, "whoever is told of completions panicked; the run is not concerned");
        }
    }
}
