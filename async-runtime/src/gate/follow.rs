//! A call as a stream: what its tool tells on its way, and its outcome.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_std::update::{PENDING_UPDATES, Update};
use futures_core::Stream;

use super::drive::{Driving, drive};
use super::{CallOptions, Gate, Outcome};

/// What a followed call yields.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever follows a call handles both")]
pub enum Followed {
    /// Something that its tool told.
    Update(Update),
    /// What became of it. Comes once, and last.
    Outcome(Box<Outcome>),
}

/// A call that is followed. Its tool waits while nobody polls this; dropping it cancels the call, as dropping the future of a call
/// does.
#[must_use = "streams do nothing unless they are polled"]
pub struct Following {
    call: Option<Driving>,
    updates: Pin<Box<async_channel::Receiver<Update>>>,
    outcome: Option<Box<Outcome>>,
}

impl Gate {
    /// Passes one call through the gate and gives what its tool tells on its way, and then its outcome. At most
    /// [`PENDING_UPDATES`] updates wait; then the tool does.
    pub fn follow(&self, caller: &CallContext<'_>, request: Request<'_>) -> Following {
        self.follow_with(caller, request, CallOptions::new())
    }

    /// The same with options. What the tool tells comes here, and to no other receiver that they name.
    pub fn follow_with(&self, caller: &CallContext<'_>, request: Request<'_>, options: CallOptions) -> Following {
        let (sender, receiver) = async_channel::bounded(PENDING_UPDATES);
        let call = drive(self.receive(caller, request, options.with_updates(sender)));
        Following { call: Some(call), updates: Box::pin(receiver), outcome: None }
    }
}

impl Stream for Following {
    type Item = Followed;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Followed>> {
        let this = &mut *self;
        loop {
            // What was told before the end comes before it.
            if let Ok(update) = this.updates.try_recv() {
                return Poll::Ready(Some(Followed::Update(update)));
            }
            let Some(call) = &mut this.call else {
                return Poll::Ready(this.outcome.take().map(Followed::Outcome));
            };
            if let Poll::Ready(outcome) = Pin::new(call).poll(cx) {
                (this.call, this.outcome) = (None, Some(Box::new(outcome)));
                continue;
            }
            // Listened to after the call was polled: whatever it told meanwhile is there, and what it tells later wakes.
            match this.updates.as_mut().poll_next(cx) {
                Poll::Ready(Some(update)) => return Poll::Ready(Some(Followed::Update(update))),
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following").field("over", &self.call.is_none()).finish_non_exhaustive()
    }
}
