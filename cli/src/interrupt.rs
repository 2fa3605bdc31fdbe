//! Ctrl-C and the like: the running call is told, ends as cancelled and gets its record; a second signal ends the process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// Whether a signal asked to stop.
pub(crate) fn happened() -> bool {
    signal().is_some()
}

/// The signal that asked to stop.
pub(crate) fn signal() -> Option<u8> {
    let signal = SIGNAL.get()?.load(Ordering::SeqCst);
    u8::try_from(signal).ok().filter(|signal| *signal != 0)
}

/// From now on a signal only asks to stop. What can't be set up leaves the system's own way, which ends the process.
#[cfg(unix)]
pub(crate) fn listen() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use std::sync::atomic::AtomicBool;

    SIGNAL.get_or_init(|| {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            let again = Arc::new(AtomicBool::new(false));
            let status = 128_i32.saturating_add(number);
            // In this order: the first signal finds the switch off and turns it on, the second one finds it on.
            let registered = signal_hook::flag::register_conditional_shutdown(number, status, Arc::clone(&again))
                .and_then(|_| signal_hook::flag::register(number, again))
                .and_then(|_| {
                    let value = usize::try_from(number).unwrap_or(usize::MAX);
                    signal_hook::flag::register_usize(number, Arc::clone(&signal), value)
                });
            if let Err(error) = registered {
                tracing::warn!(number, %error, "a signal will end the process at once");
            }
        }
        signal
    });
}

/// Elsewhere the system's own way holds, which ends the process.
#[cfg(not(unix))]
pub(crate) fn listen() {}

/// Waits until a signal asks to stop. [`listen`] has been called before.
#[cfg(feature = "mcp")]
pub(crate) async fn signalled() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        let streams = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        if let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = streams {
            if happened() {
                return;
            }
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            return;
        }
        tracing::warn!("a signal will not end the server gracefully");
    }
    std::future::pending::<()>().await;
}
