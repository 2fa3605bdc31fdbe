//! The server over lines: standard input and output, or any pair of byte streams.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, JsonRpcError, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::frame::{self, FrameError, MAX_FRAME};

/// How many messages wait to be written before whoever has the next one waits as well.
const PENDING: usize = 64;

/// Messages as lines, one each, as the protocol's stdio transport has them.
///
/// Each line is read by the gate's reader first (see [`Arguments`](super::Arguments)). One that is too long, no JSON or no message is
/// answered with an error and skipped; the connection goes on. A request whose id is that of another one in flight is refused
/// without the id, because an answer under it would pass for that of the other (invariant T4).
#[derive(Debug)]
pub struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// The rest of a line that is too long is being skipped.
    skipping: bool,
    ended: bool,
    in_flight: Arc<Mutex<HashSet<RequestId>>>,
    out: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
}

/// The other end takes nothing more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the client takes no more messages")]
pub struct Closed;

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads from `read` and writes to `write`. Needs a running tokio.
    pub fn new(read: R, write: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (out, messages) = mpsc::channel(PENDING);
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            skipping: false,
            ended: false,
            in_flight: Arc::default(),
            out: Some(out),
            writer: Some(tokio::spawn(write_all(write, messages))),
        }
    }

    /// The next line, without its end. `None` at the end of the stream. Loses nothing when it is dropped between two polls: what was
    /// read stays in `line`.
    async fn next_line(&mut self) -> io::Result<Option<Result<(), FrameError>>> {
        loop {
            if self.ended {
                return Ok(None);
            }
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                self.ended = true;
                // The last line may lack its end.
                return Ok((!self.line.is_empty()).then_some(Ok(())));
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            let fits = self.line.len().saturating_add(part.len()) <= MAX_FRAME;
            if fits && !self.skipping {
                self.line.extend_from_slice(part);
            }
            let taken = end.map_or(available.len(), |end| end.saturating_add(1));
            self.read.consume(taken);
            let skipped = self.skipping;
            self.skipping = (skipped || !fits) && end.is_none();
            if !fits && !skipped {
                self.line.clear();
                return Ok(Some(Err(FrameError::too_long())));
            }
            if end.is_some() && !skipped {
                return Ok(Some(Ok(())));
            }
        }
    }

    /// Answers with an error, unless so many answers wait already that the client reads none.
    fn complain(&self, error: FrameError) {
        let message = error.into_message();
        if let (Some(out), Some(line)) = (&self.out, line_of(&message)) {
            drop(out.try_send(line));
        }
    }

    /// Notes a message that came. False for a request that can't be told from another one.
    fn enter(&self, message: &ClientJsonRpcMessage) -> bool {
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            JsonRpcMessage::Request(request) => in_flight.insert(request.id.clone()),
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // It gets no answer.
                    in_flight.remove(id);
                }
                true
            }
            _ => true,
        }
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for Lines<R> {
    type Error = Closed;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        }
        let sending = self.out.clone().zip(line_of(&message));
        async move {
            let (out, line) = sending.ok_or(Closed)?;
            out.send(line).await.map_err(|_| Closed)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.next_line().await {
                Ok(Some(Ok(()))) => {}
                Ok(Some(Err(error))) => {
                    self.complain(error);
                    continue;
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "the client can't be read from any more");
                    return None;
                }
            }
            let text = self.line.trim_ascii();
            let read = (!text.is_empty()).then(|| frame::read(text));
            self.line.clear();
            match read {
                None => {}
                Some(Err(error)) => self.complain(error),
                Some(Ok(message)) if self.enter(&message) => return Some(message),
                Some(Ok(_)) => self.complain(FrameError {
                    error: ErrorData::invalid_request("a request with this id is in flight already", None),
                    id: None,
                }),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.out.take());
        if let Some(writer) = self.writer.take() {
            // What was sent before is written; a client that reads nothing is left by whoever ends the process.
            drop(writer.await);
        }
        Ok(())
    }
}

fn line_of(message: &ServerJsonRpcMessage) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(message)
        .inspect_err(|error| tracing::error!(%error, "an answer can't be written as JSON"))
        .or_else(|_| {
            let id = match message {
                JsonRpcMessage::Response(response) => Some(response.id.clone()),
                _ => None,
            };
            let error = ErrorData::internal_error("the answer can't be written as JSON", None);
            serde_json::to_vec(&ServerJsonRpcMessage::Error(JsonRpcError::new(id, error)))
        })
        .ok()?;
    line.push(b'\n');
    Some(line)
}

async fn write_all(mut write: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        let written = async {
            write.write_all(&message).await?;
            write.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "the client takes no more messages");
            return;
        }
    }
}
