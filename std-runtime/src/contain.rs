//! Containment: a panic in a tool or a plug-in becomes a value, and the gate goes on (invariants X3, F1).

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Poll};

thread_local! {
    static CONTAINED: Cell<u32> = const { Cell::new(0) };
}

/// Runs `body`; a panic comes back as its text.
///
/// The gate's own state is never held across this, so nothing is left half done: what a plug-in shares with others is its
/// own to protect.
///
/// # Errors
/// The text of the panic. It may hold anything: redact it before it goes anywhere.
pub fn contain<R>(body: impl FnOnce() -> R) -> Result<R, Arc<str>> {
    CONTAINED.set(CONTAINED.get().saturating_add(1));
    let result = catch_unwind(AssertUnwindSafe(body));
    CONTAINED.set(CONTAINED.get().saturating_sub(1));
    result.map_err(|payload| {
        let text = panic_text(payload.as_ref());
        // A payload whose destructor panics must not undo the containment.
        if catch_unwind(AssertUnwindSafe(|| drop(payload))).is_err() {
            tracing::error!("the payload of a contained panic panicked when it was dropped");
        }
        text
    })
}

/// A future whose panics come back as their texts. It is dropped as soon as it is over, and its destructor is contained too.
#[must_use = "futures do nothing unless they are polled"]
pub struct Contained<F: Future + Unpin>(Option<F>);

/// Contains `future`: see [`Contained`].
pub const fn contained<F: Future + Unpin>(future: F) -> Contained<F> {
    Contained(Some(future))
}

impl<F: Future + Unpin> Future for Contained<F> {
    type Output = Result<F::Output, Arc<str>>;

    /// After the end it stays pending.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let result = match contain(|| Pin::new(future).poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(text) => Err(text),
        };
        self.end();
        Poll::Ready(result)
    }
}

impl<F: Future + Unpin> Contained<F> {
    fn end(&mut self) {
        let future = self.0.take();
        if contain(|| drop(future)).is_err() {
            tracing::error!("a contained future panicked when it was dropped");
        }
    }
}

impl<F: Future + Unpin> Drop for Contained<F> {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.end();
        }
    }
}

impl<F: Future + Unpin> std::fmt::Debug for Contained<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Contained")
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> Arc<str> {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        Arc::from(*text)
    } else if let Some(text) = payload.downcast_ref::<String>() {
        Arc::from(text.as_str())
    } else {
        Arc::from("a panic without a text")
    }
}

/// Keeps the texts of contained panics off standard error, where the standard panic hook would print them: they can hold
/// secrets (invariant L2). The place of the panic is still reported through `tracing`. Other panics are printed as before.
///
/// Programs call it once at their start; a library must not, because the hook belongs to the program.
pub fn quiet_contained_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if CONTAINED.get() > 0 {
                let place = info.location().map_or_else(|| "unknown place".to_owned(), ToString::to_string);
                tracing::error!(place, "a tool or plug-in panicked; the gate contained it");
            } else {
                previous(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x3_a_panic_becomes_its_text() {
        assert_eq!(contain(|| 7), Ok(7));
        assert_eq!(contain(|| panic!("plain")).err().as_deref(), Some("plain"));
        let formatted: Result<(), _> = contain(|| panic!("with {}", 1));
        assert_eq!(formatted.err().as_deref(), Some("with 1"));
        let odd: Result<(), _> = contain(|| std::panic::panic_any(7_u8));
        assert!(odd.is_err());
    }

    #[test]
    fn x3_a_payload_that_panics_again_is_contained_too() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                if !std::thread::panicking() {
                    panic!("again");
                }
            }
        }
        let result: Result<(), _> = contain(|| std::panic::panic_any(Bomb));
        assert!(result.is_err());
    }
}
