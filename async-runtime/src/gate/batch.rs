//! Batches, as streams of outcomes.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use callgate_core::request::Request;
use callgate_std::batch::{BatchCall, BatchError, BatchOptions, Deliveries, check};
use callgate_std::cancellation::Cancellation;
use callgate_std::captured::CapturedContext;
use callgate_std::future::BoxFuture;
use futures_core::Stream;
use futures_util::stream::FuturesUnordered;

use super::drive::{drive, never_started};
use super::parked::{Parked, Received};
use super::{CallOptions, Gate, Outcome};

/// A call that was not started yet.
struct Waiting {
    at: usize,
    caller: CapturedContext,
    tool: Box<str>,
    arguments: Box<[u8]>,
    token: Option<Box<str>>,
    operation: Option<Arc<str>>,
}

/// Calls of one batch, under way. Yields each one's outcome under the id that the call has in the batch.
///
/// Nothing goes on while nobody polls. Dropped, it cancels what is under way; that and what was not started is recorded.
#[must_use = "streams do nothing unless they are polled"]
pub struct Batch {
    gate: Gate,
    ids: Vec<Arc<str>>,
    waiting: VecDeque<Waiting>,
    running: FuturesUnordered<BoxFuture<'static, (usize, Outcome)>>,
    at_once: usize,
    deliveries: Deliveries<Outcome>,
    due: VecDeque<(usize, Outcome)>,
    cancellation: Cancellation,
}

impl Gate {
    /// Passes many calls through the gate, some of them at the same time, and gives each one's outcome.
    ///
    /// Each is a call of its own: it passes every stage, ends in one outcome and has its own records, and what becomes of it
    /// touches none of the others (invariant R1). Calls are started in order. What they carry is copied.
    ///
    /// # Errors
    /// Says why the batch was not begun.
    pub fn batch(&self, batch: &[BatchCall<'_>], options: BatchOptions) -> Result<Batch, BatchError> {
        check(batch, &options)?;
        let waiting = batch.iter().enumerate().map(|(at, call)| Waiting {
            at,
            caller: CapturedContext::from(&call.caller),
            tool: call.request.tool.into(),
            arguments: call.request.arguments.into(),
            token: call.request.token.map(Box::from),
            operation: call.operation.map(Arc::from),
        });
        Ok(Batch {
            gate: self.clone(),
            ids: batch.iter().map(|call| Arc::from(call.id)).collect(),
            waiting: waiting.collect(),
            running: FuturesUnordered::new(),
            at_once: options.at_once,
            deliveries: Deliveries::new(options.delivery, batch.len()),
            due: VecDeque::new(),
            cancellation: Cancellation::new(),
        })
    }
}

impl Batch {
    /// Cancels what is under way and what was not started. All of it still ends in an outcome, which is delivered.
    pub fn cancel(&self) {
        self.cancellation.cancel();
    }

    /// The same as something to hand on.
    #[must_use]
    pub const fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    fn receive(&self, waiting: &Waiting) -> Parked<Received> {
        let Waiting { caller, tool, arguments, token, operation, .. } = waiting;
        let mut options = CallOptions::new().cancelled_by(self.cancellation.clone());
        options.operation.clone_from(operation);
        self.gate.receive(&caller.borrow(), Request { tool, arguments, token: token.as_deref() }, options)
    }

    fn start(&self, waiting: &Waiting) -> BoxFuture<'static, (usize, Outcome)> {
        let at = waiting.at;
        let call = self.receive(waiting);
        let call = if self.cancellation.is_cancelled() { never_started(call) } else { drive(call) };
        Box::pin(async move { (at, call.await) })
    }
}

impl Stream for Batch {
    type Item = (Arc<str>, Outcome);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some((at, outcome)) = this.due.pop_front() {
                let Some(id) = this.ids.get(at) else { continue };
                return Poll::Ready(Some((Arc::clone(id), outcome)));
            }
            while this.running.len() < this.at_once
                && let Some(waiting) = this.waiting.pop_front()
            {
                let call = this.start(&waiting);
                this.running.push(call);
            }
            match Pin::new(&mut this.running).poll_next(cx) {
                Poll::Ready(Some((at, outcome))) => {
                    let due = &mut this.due;
                    let _ = this.deliveries.over(at, outcome, |at, outcome| {
                        due.push_back((at, outcome));
                        ControlFlow::Continue(())
                    });
                }
                Poll::Ready(None) if this.waiting.is_empty() => return Poll::Ready(None),
                Poll::Ready(None) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Everything that was handed in is recorded (invariant R1).
impl Drop for Batch {
    fn drop(&mut self) {
        self.cancellation.cancel();
        self.running.clear();
        while let Some(waiting) = self.waiting.pop_front() {
            drop(self.receive(&waiting));
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("calls", &self.ids.len())
            .field("waiting", &self.waiting.len())
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}
