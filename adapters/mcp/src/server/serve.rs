//! Serving one client over lines, to the end.

use std::pin::pin;

use rmcp::serve_server;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Lines, McpServer};

/// Why a client was not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// What it began with is no beginning of the protocol.
    #[error("the client did not begin as the protocol has it: {0}")]
    Beginning(Box<ServerInitializeError>),
    /// The task that served it panicked.
    #[error("serving the client failed: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl McpServer {
    /// Serves the client at the other end of these streams until it closes its end, or until `stop`. Calls that are in flight then are
    /// answered if they end within some seconds, and cancelled otherwise; [`Gate::shutdown`](callgate_async::gate::Gate::shutdown)
    /// waits for their records.
    ///
    /// # Errors
    /// The client speaks something else.
    pub async fn serve_lines<R, W>(self, read: R, write: W, stop: impl Future<Output = ()>) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let mut stop = pin!(stop);
        let begun = tokio::select! {
            begun = serve_server(self, Lines::new(read, write)) => begun,
            () = &mut stop => return Ok(()),
        };
        let running = match begun {
            Ok(running) => running,
            // It was asked what is here, or nothing at all, and went away.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Beginning(Box::new(error))),
        };
        let token = running.cancellation_token();
        let mut waiting = pin!(running.waiting());
        tokio::select! {
            ended = &mut waiting => drop(ended?),
            () = &mut stop => {
                token.cancel();
                drop(waiting.await?);
            }
        }
        Ok(())
    }
}
