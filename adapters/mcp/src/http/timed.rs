//! A connection that is cut when its other end takes nothing for too long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Fails to write once the other end has taken nothing for `patience`.
#[derive(Debug)]
pub(super) struct Timed<S> {
    stream: S,
    patience: Duration,
    /// Runs while there is something to write that is not taken.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Timed<S> {
    pub(super) const fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, stalled: None }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| {
            let now = Instant::now();
            Box::pin(sleep_until(now.checked_add(patience).unwrap_or(now)))
        });
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.watch(cx, polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn x6_a_client_that_takes_nothing_is_cut() {
        let (client, mut other) = duplex(8);
        let mut client = Timed::new(client, Duration::from_secs(30));
        client.write_all(&[0; 8]).await.unwrap();
        let cut = client.write_all(&[0; 8]).await.unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::TimedOut);
        // One that takes a little now and then is not.
        let mut room = [0; 8];
        other.read_exact(&mut room).await.unwrap();
        let slowly = async {
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                other.read_exact(&mut room).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(client.write_all(&[0; 64]), slowly);
        written.unwrap();
    }
}
