//! Futures without an executor: a name for those behind a pointer, and waiting for one on a plain thread.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// A future behind a pointer, which may change threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// How long a thread sleeps at most before it looks again whether it is to give up: clocks other than the system's, and flags,
/// wake nobody.
const GLANCE: Duration = Duration::from_millis(20);

/// Waits for `future` on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// Waits for `future` on this thread until `give_up` says why not to wait any longer. It is asked after each poll that left the
/// future pending, and some fifty times a second; what it does in between, such as draining a channel that the future fills, is
/// up to it.
pub(crate) fn block_on_until<F: Future, G>(future: F, mut give_up: impl FnMut() -> Option<G>) -> Result<F::Output, G> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Ok(output);
        }
        if let Some(reason) = give_up() {
            return Err(reason);
        }
        thread::park_timeout(GLANCE);
        if let Some(reason) = give_up() {
            return Err(reason);
        }
    }
}
