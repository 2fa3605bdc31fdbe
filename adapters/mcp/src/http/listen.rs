//! Connections.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Endpoint;
use super::timed::Timed;

/// What connections may cost.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The most connections at once. One more waits until another is over.
    pub connections: usize,
    /// How long the headers of a request may take to come, and how long a connection may stay without a request.
    pub header_time: Duration,
    /// The most headers.
    pub headers: usize,
    /// The most bytes of all headers together; 8 KiB at least.
    pub header_bytes: usize,
    /// How long a client may take nothing of what is sent to it.
    pub write_time: Duration,
    /// How long connections have to end when the server does.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            header_time: Duration::from_secs(10),
            headers: 64,
            header_bytes: 16 << 10,
            write_time: Duration::from_secs(30),
            farewell: Duration::from_secs(5),
        }
    }
}

/// Serves who connects until `stop`; then ends what is open, and waits for it as long as [`Limits::farewell`] says.
pub async fn serve(endpoint: Endpoint, listener: TcpListener, limits: Limits, stop: impl Future<Output = ()>) {
    let endpoint = Arc::new(endpoint);
    let slots = Arc::new(Semaphore::new(limits.connections));
    let (graceful, mut connections) = (GracefulShutdown::new(), JoinSet::new());
    let mut stop = pin!(stop);
    loop {
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|(stream, peer)| (slot, stream, peer))
        };
        let (slot, stream, peer) = tokio::select! {
            next = next => match next {
                Ok(next) => next,
                Err(error) => {
                    // Out of files, as a rule: somebody has to go first.
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        let connection = connection(stream, Arc::clone(&endpoint), peer.ip(), limits, graceful.watcher());
        drop(connections.spawn(async move {
            let _slot = slot;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke off");
            }
        }));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    endpoint.stop();
    if tokio::time::timeout(limits.farewell, graceful.shutdown()).await.is_err() {
        connections.shutdown().await;
    }
}

/// Answers what one client asks, until it goes away or is cut.
async fn connection(
    stream: TcpStream,
    endpoint: Arc<Endpoint>,
    ip: IpAddr,
    limits: Limits,
    watcher: Watcher,
) -> hyper::Result<()> {
    // Small messages that are not to wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection may be slow");
    }
    let service = service_fn(move |request| {
        let endpoint = Arc::clone(&endpoint);
        async move { Ok::<_, Infallible>(endpoint.answer(request, Some(ip)).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_headers(limits.headers)
        .max_buf_size(limits.header_bytes)
        .serve_connection(TokioIo::new(Timed::new(stream, limits.write_time)), service);
    watcher.watch(connection).await
}
