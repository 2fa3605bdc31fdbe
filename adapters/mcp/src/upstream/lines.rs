//! Messages as lines over a stream, with a bound on everything that the other side decides.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::reach::{Reader, Writer};

/// How many lines that are no message a connection may bring: what a program prints by mistake. One more ends it.
pub(super) const MAX_JUNK: usize = 100;
/// How long a server may leave a message unread.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// A transport of lines. The SDK has one as well; that one throws away an answer that is too long, so that its call waits in
/// vain, and answers what is no message. Here the connection ends, and whoever waits is told.
pub(super) struct Lines {
    read: BufReader<Box<dyn Reader>>,
    write: Arc<Mutex<Option<Box<dyn Writer>>>>,
    line: Vec<u8>,
    max_line: usize,
    junk: usize,
}

impl Lines {
    /// Over this stream; a line may have `max_line` bytes.
    pub(super) fn new(read: Box<dyn Reader>, write: Box<dyn Writer>, max_line: usize) -> Self {
        Self {
            read: BufReader::new(read),
            write: Arc::new(Mutex::new(Some(write))),
            line: Vec::new(),
            max_line,
            junk: 0,
        }
    }

    /// Reads the rest of a line into `line`. Whoever stops waiting loses nothing: what was read stays there.
    async fn fill(&mut self) -> io::Result<()> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let take = end.map_or(available.len(), |at| at.saturating_add(1));
            if self.line.len().saturating_add(take) > self.max_line {
                return Err(io::Error::other("a message is too long"));
            }
            self.line.extend_from_slice(available.get(..take).unwrap_or_default());
            self.read.consume(take);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

impl Transport<RoleClient> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move {
            let mut text = serde_json::to_vec(&item)?;
            text.push(b'\n');
            let mut write = write.lock().await;
            let Some(open) = write.as_mut() else { return Err(io::ErrorKind::NotConnected.into()) };
            let sent = tokio::time::timeout(WRITE_LIMIT, async {
                open.write_all(&text).await?;
                open.flush().await
            });
            let sent = sent.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            if sent.is_err() {
                // Half a message may have been written, and nothing that follows it would be understood.
                drop(write.take());
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Err(error) = self.fill().await {
                tracing::debug!(%error, "an upstream's stream ended");
                return None;
            }
            let parsed = serde_json::from_slice(&self.line);
            let blank = self.line.iter().all(u8::is_ascii_whitespace);
            self.line.clear();
            match parsed {
                Ok(message) => return Some(message),
                Err(_) if blank => {}
                Err(_) if self.junk < MAX_JUNK => self.junk = self.junk.saturating_add(1),
                Err(_) => {
                    tracing::debug!("an upstream sends what is no message");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.write.lock().await.take());
        Ok(())
    }
}
