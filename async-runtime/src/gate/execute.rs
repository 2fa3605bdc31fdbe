//! The tool's run: stopped at its deadline, and when its caller is gone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use callgate_core::call::{Announced, Call, Finished, Ran};
use callgate_core::time::Now;
use callgate_std::cancellation::Cancelled;
use callgate_std::common::Term;
use callgate_std::contain::{contain, contained};
use callgate_std::failure::Failure;
use callgate_std::future::BoxFuture;
use callgate_std::output::Reply;
use callgate_std::tool::{self, AsyncNestedCalls, OwnedHost, Run, Tool};

use super::parked::{Carried, GiveUp, Over, Parked, Started};

/// What came of a body: its result, or the text of its panic.
type Contained = Result<Result<Reply, Failure>, Arc<str>>;

/// Starts the tool's time.
pub(super) fn start(call: Parked<Call<Carried, Arc<Tool>, Announced>>) -> Parked<Started> {
    let at = call.passage().gate.0.common.term(call.stage().spec()).started;
    call.map(|call| Started { run: call.begin(), at })
}

/// A running tool. A body that waits is dropped where it waits when its time is up or its caller is gone; one that blocks is told,
/// and left behind. Gives the ended call, and when its run was over.
pub(super) struct Execution {
    call: Option<Parked<Started>>,
    run: BoxFuture<'static, Contained>,
    /// Both are made when the run waits for the first time: most runs never do.
    gone: Option<Cancelled>,
    late: Option<BoxFuture<'static, ()>>,
}

impl Execution {
    pub(super) fn new(mut call: Parked<Started>) -> Self {
        let passage = call.passage_mut();
        let (gate, cancellation, updates) =
            (passage.gate.clone(), passage.cancellation.clone(), passage.updates.take());
        let common = &gate.0.common;
        let mut host = OwnedHost::new(common.clock.clone(), call.stage().at)
            .with_cancellation(cancellation)
            .with_nested(Arc::clone(&gate.0) as Arc<dyn AsyncNestedCalls>);
        if let Some(updates) = updates {
            host = host.with_updates(updates);
        }
        let host = call.stage().run.call().context().lend(host);
        let run = match call.stage_mut().run.permit().map(|permit| tool::start(permit, host)) {
            Some(Run::Waiting(run)) => Box::pin(contained(run)) as BoxFuture<'static, Contained>,
            Some(Run::Blocking(run)) => {
                let passage = call.passage_mut();
                let places = Arc::new(std::mem::take(&mut passage.places));
                passage.shared = Some(Arc::clone(&places));
                let (sender, receiver) = async_channel::bounded(1);
                gate.0.runtime.spawn_blocking(Box::new(move || {
                    let result = contain(|| run.run());
                    // The places are taken until the body is through, whoever still waits for it.
                    drop(places);
                    drop(sender.try_send(result));
                }));
                Box::pin(async move {
                    let never = "the executor went down before the tool started";
                    receiver.recv().await.unwrap_or_else(|_| Ok(Err(Failure::new(never).without_effect())))
                })
            }
            // A call that was started has its permit; without one nothing runs.
            None => Box::pin(std::future::ready(Ok(Err(Failure::new("there is no permit").without_effect())))),
        };
        Self { call: Some(call), run, gone: None, late: None }
    }
}

fn term(call: &Parked<Started>) -> Term {
    Term::new(call.stage().at, call.stage().run.call().spec())
}

impl Future for Execution {
    type Output = (Over, Now);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(call) = &this.call else { return Poll::Pending };
        let gate = &call.passage().gate;
        let common = &gate.0.common;
        let term = term(call);
        let gone = || call.passage().cancellation.cancelled();
        let late = || {
            let left = term.deadline.nanos_since(common.clock.monotonic());
            gate.0.runtime.sleep(Duration::from_nanos(left))
        };
        let stopped = |ran: Ran<Reply, Failure, Arc<str>>| {
            let now = common.now();
            (ran.after(now.monotonic.nanos_since(term.started)), now)
        };
        let (finished, at): (Finished<Reply, Failure, Arc<str>>, Now) =
            if let Poll::Ready(result) = this.run.as_mut().poll(cx) {
                common.ran(result, term, call.passage().cancellation.is_cancelled())
            } else if Pin::new(this.gone.get_or_insert_with(gone)).poll(cx).is_ready() {
                stopped(Ran::Cancelled)
            } else if this.late.get_or_insert_with(late).as_mut().poll(cx).is_ready() {
                stopped(Ran::TimedOut)
            } else {
                return Poll::Pending;
            };
        // Whatever of the body is left somewhere else is told, and what waits is dropped before anybody hears of the end.
        call.passage().cancellation.cancel();
        this.run = Box::pin(std::future::pending());
        let Some(call) = this.call.take() else { return Poll::Pending };
        Poll::Ready((call.end(|started| started.run.finished(finished)), at))
    }
}

/// A call that is dropped while its tool runs: the body goes first.
impl Drop for Execution {
    fn drop(&mut self) {
        self.run = Box::pin(std::future::pending());
        drop(self.call.take());
    }
}

/// Whether the tool took effect is unknown.
impl GiveUp for Started {
    fn give_up(self, now: Now) -> super::parked::Ended {
        let spent = now.monotonic.nanos_since(self.at);
        self.run.finished(Ran::Cancelled.after(spent))
    }
}
