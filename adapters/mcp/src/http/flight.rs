//! Requests of a conversation that are not answered yet.

use std::collections::HashSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::BoxBody;
use rmcp::model::RequestId;

type Key = (String, RequestId);

/// The ids that are in flight in each conversation. A second request under one of them could get the answer of the first, and is not
/// taken (invariant T4).
#[derive(Clone, Debug, Default)]
pub(super) struct Flights(Arc<Mutex<HashSet<Key>>>);

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct Flight {
    all: Flights,
    key: Key,
}

impl Flights {
    /// Lets a request fly. `None` when one under this id does.
    pub(super) fn take(&self, session: &str, id: &RequestId) -> Option<Flight> {
        let key = (session.to_owned(), id.clone());
        let entered = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        entered.then(|| Flight { all: self.clone(), key })
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// An answer that ends a flight when it is over, or nobody reads it any more.
pub(super) struct Landing {
    pub(super) body: BoxBody<Bytes, Infallible>,
    pub(super) flight: Option<Flight>,
}

impl Body for Landing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(None) = polled {
            drop(self.flight.take());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
