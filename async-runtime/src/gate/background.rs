//! Runs that go on in the background.

use std::sync::Arc;

use callgate_core::call::{Announced, Call, TaskId};
use callgate_core::code::{Code, Effect};
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_std::contain::contain;
use callgate_std::context::random_request_id;
use callgate_std::future::BoxFuture;
use callgate_std::task::{Collected, Completion};
use callgate_std::tool::{AsyncNestedCalls, NestedOutcome, Tool};
use callgate_std::update::PENDING_UPDATES;
use futures_lite::future::or;

use super::execute::Execution;
use super::parked::{Carried, GiveUp as _, Over, Parked, Passage, Started};
use super::{Gate, Outcome, Parts};

/// Answers a call at once and lets its tool go on.
pub(super) async fn accept(mut call: Parked<Call<Carried, Arc<Tool>, Announced>>) -> Outcome {
    let gate = call.passage().gate.clone();
    let common = &gate.0.common;
    let Ok(task) = common.task_id() else { return call.end(Call::cancel).finish(None).await };
    let at = common.term(call.stage().spec()).started;
    let passage = call.passage_mut().for_background();
    let mut run = None;
    let over: Over = call.end(|call| match call.begin().accept(task) {
        Ok((ended, executing)) => {
            run = Some(executing);
            ended
        }
        Err(ended) => ended,
    });
    let mut over = over;
    // Listed before the answer, so that whoever has the id can use it.
    over.then = run.map(|run| {
        let listed = Listed::new(&gate, task, &passage);
        Box::new(Accepted { listed, run: Parked::new(Started { run, at }, passage) })
    });
    over.finish(None).await
}

/// A run whose call is about to be answered. Dropped, it is given up, and says so.
pub(super) struct Accepted {
    listed: Listed,
    run: Parked<Started>,
}

impl Accepted {
    /// Lets it go on.
    pub(super) fn go_on(self) {
        let runtime = Arc::clone(&self.run.passage().gate.0.runtime);
        runtime.spawn(Box::pin(go_on(self.listed, self.run)));
    }
}

async fn go_on(listed: Listed, mut run: Parked<Started>) {
    let task = listed.task;
    let gate = run.passage().gate.clone();
    let common = &gate.0.common;
    let (sender, receiver) = async_channel::bounded(PENDING_UPDATES);
    run.passage_mut().updates = Some(sender);
    // The time that it took to record the answer is not the tool's.
    run.stage_mut().at = common.term(run.stage().run.call().spec()).started;
    let mut collected = Collected::default();
    let over = if run.passage().cancellation.is_cancelled() {
        let now = common.now();
        run.end(|run| run.give_up(now))
    } else {
        let (over, _) = or(Execution::new(run), async {
            while let Ok(update) = receiver.recv().await {
                collected.push(update);
            }
            std::future::pending().await
        })
        .await;
        over
    };
    while let Ok(update) = receiver.try_recv() {
        collected.push(update);
    }
    drop(listed);
    let completion = Completion::new(task, over.finish(None).await, collected);
    if let Some(told) = &common.on_completion
        && contain(|| told(completion)).is_err()
    {
        tracing::error!(task = %task, "whoever is told of completions panicked; the run is not concerned");
    }
}

/// A run that is listed until it is over, or dropped.
struct Listed {
    gate: Gate,
    task: TaskId,
}

impl Listed {
    fn new(gate: &Gate, task: TaskId, passage: &Passage) -> Self {
        gate.0.common.tasks.insert(task, passage.cancellation.clone());
        Self { gate: gate.clone(), task }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.gate.0.common.tasks.remove(self.task);
    }
}

/// Calls that a running tool makes go through the same gate, under a request id of their own.
impl AsyncNestedCalls for Parts {
    fn call(
        self: Arc<Self>,
        caller: CallContext<'_>,
        tool: &str,
        arguments: &[u8],
    ) -> BoxFuture<'static, NestedOutcome> {
        let Ok(request_id) = random_request_id(&*self.common.entropy) else {
            let ended = NestedOutcome::ended(Some(Code::StoreUnavailable), Effect::None, None);
            return Box::pin(std::future::ready(ended));
        };
        let caller = CallContext { request_id: &request_id, ..caller };
        let call = Gate(self).call(&caller, Request { tool, arguments, token: None });
        Box::pin(async move { NestedOutcome::of(call.await) })
    }
}
