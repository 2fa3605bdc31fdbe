//! What of a connection has to be known beside its messages: which requests were sent, and how many of the server's own wait.

use std::collections::HashSet;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// How many requests of its own a server may have open. One more ends the connection (invariant X6).
pub(super) const MAX_ASKS: usize = 64;

/// The requests that the transport has begun to send. What is not among them never left.
#[derive(Clone, Default)]
pub(super) struct Sent(Arc<Mutex<HashSet<RequestId>>>);

impl Sent {
    fn begin(&self, id: RequestId) {
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// Takes note that a request is over, and says whether the transport had begun to send it.
    pub(super) fn end(&self, id: &RequestId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}

/// A transport that is watched.
pub(super) struct Watched<T> {
    inner: T,
    sent: Sent,
    /// The server's own requests whose answers were not sent to the end: a server that does not read them piles them up here.
    asks: Arc<AtomicUsize>,
}

impl<T> Watched<T> {
    pub(super) fn new(inner: T, sent: Sent) -> Self {
        Self { inner, sent, asks: Arc::default() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (id, answer) = match &item {
            JsonRpcMessage::Request(request) => (Some(request.id.clone()), false),
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => (None, true),
            JsonRpcMessage::Notification(_) => (None, false),
        };
        let (sent, asks, send) = (self.sent.clone(), Arc::clone(&self.asks), self.inner.send(item));
        async move {
            // Not before it is polled: a task that was dropped before that sent nothing.
            if let Some(id) = id {
                sent.begin(id);
            }
            let result = send.await;
            if answer {
                let one_less = |open: usize| Some(open.saturating_sub(1));
                let _ = asks.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
            }
            result
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        if is_request && self.asks.fetch_add(1, Ordering::AcqRel) >= MAX_ASKS {
            tracing::debug!("an upstream has too many requests open");
            return None;
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
