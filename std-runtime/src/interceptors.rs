//! Interceptors: the last word before a tool runs. See [`callgate_core::intercept`] for what one may say.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

pub use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::policy::Subject;

use crate::clock::{SharedClock, SystemClock};
use crate::contain::contain;

/// How long one interceptor may take where a host says nothing else, in milliseconds.
pub const DEFAULT_TIME_LIMIT_MS: u64 = 1_000;
/// A limit is held to within a hundredth of it, so that two readings of a clock need not cost more than an interceptor.
pub const LIMIT_TO_SLACK: u64 = 100;

/// Interceptors in the order in which they are asked: by priority, the highest first, then as they were added.
///
/// The first that answers or vetoes ends the round. One that fails, panics or takes longer than the limit vetoes (invariant
/// E3): what it would have said is not known. It is not interrupted; a host that cannot trust an interceptor to return
/// gives it a deadline of its own.
///
/// `O` is what tools return, `X` how the host keeps texts.
pub struct Interceptors<O, X = Arc<str>> {
    chain: Vec<Link<O, X>>,
    clock: SharedClock,
    limit_ns: u64,
}

struct Link<O, X> {
    name: String,
    priority: i32,
    interceptor: Box<dyn Interceptor<O, X> + Send + Sync>,
}

impl<O, X> Interceptors<O, X> {
    /// Nobody, with the system's clock and [`DEFAULT_TIME_LIMIT_MS`].
    #[must_use]
    pub fn new() -> Self {
        Self::with(SystemClock::shared(), DEFAULT_TIME_LIMIT_MS)
    }

    /// Nobody, with this clock and this limit in milliseconds for each interceptor.
    #[must_use]
    pub const fn with(clock: SharedClock, limit_ms: u64) -> Self {
        Self { chain: Vec::new(), clock, limit_ns: limit_ms.saturating_mul(1_000_000) }
    }

    /// The same, and `interceptor`. Records call it `name` when it fails.
    #[must_use]
    pub fn and(self, name: &str, interceptor: impl Interceptor<O, X> + Send + Sync + 'static) -> Self {
        self.and_with_priority(name, 0, interceptor)
    }

    /// The same with a priority other than 0. A higher one is asked earlier.
    #[must_use]
    pub fn and_with_priority(
        mut self,
        name: &str,
        priority: i32,
        interceptor: impl Interceptor<O, X> + Send + Sync + 'static,
    ) -> Self {
        let at = self.chain.partition_point(|other| other.priority >= priority);
        self.chain.insert(at, Link { name: name.to_owned(), priority, interceptor: Box::new(interceptor) });
        self
    }

    /// Whether nobody is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }
}

impl<O, X: From<String> + AsRef<str>> Interceptors<O, X> {
    /// Asks one after the other about a call.
    #[must_use]
    pub fn judge(&self, subject: &Subject<'_>) -> Interception<O, X> {
        let slack = self.limit_ns / LIMIT_TO_SLACK;
        for Link { name, interceptor, .. } in &self.chain {
            let judged = contain(|| {
                let started = self.clock.monotonic_within(slack);
                let word = interceptor.judge(subject);
                (word, self.clock.monotonic_within(slack).nanos_since(started))
            });
            let (judged, took) = match judged {
                Ok((word, took)) => (Ok(word), took),
                Err(text) => (Err(text), 0),
            };
            if let ControlFlow::Break(verdict) = weigh(name, judged, took, self.limit_ns) {
                return verdict;
            }
        }
        Interception::Continue
    }
}

/// What one interceptor's word means for the round: it goes on, or ends with a verdict. `judged` holds the text of a panic.
pub fn weigh<O, X: From<String> + AsRef<str>>(
    name: &str,
    judged: Result<Interception<O, X>, Arc<str>>,
    took_ns: u64,
    limit_ns: u64,
) -> ControlFlow<Interception<O, X>> {
    ControlFlow::Break(match judged {
        Err(text) => Interception::Failed(X::from(format!("interceptor {name} panicked: {text}"))),
        Ok(Interception::Failed(text)) => {
            Interception::Failed(X::from(format!("interceptor {name} failed: {}", text.as_ref())))
        }
        Ok(veto @ Interception::Veto(_)) => veto,
        Ok(Interception::Continue | Interception::Answer(_)) if took_ns > limit_ns => {
            let limit = limit_ns / 1_000_000;
            Interception::Failed(X::from(format!("interceptor {name} took more than the {limit} ms that it has")))
        }
        Ok(answer @ Interception::Answer(_)) => answer,
        Ok(Interception::Continue) => return ControlFlow::Continue(()),
    })
}

impl<O, X> Default for Interceptors<O, X> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O, X> fmt::Debug for Interceptors<O, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.chain.iter().map(|link| (&link.name, link.priority))).finish()
    }
}
