//! Interceptors that may wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
pub use callgate_core::intercept::Interception;
use callgate_core::intercept::Interceptor as BlockingInterceptor;
use callgate_core::policy::Subject;
use callgate_std::interceptors::DEFAULT_TIME_LIMIT_MS;
use callgate_std::output::Reply;

use crate::seam::{Seam, seams};

/// An interceptor. See [`callgate_core::intercept`] for what one may say.
#[async_trait]
pub trait Interceptor: Send + Sync {
    /// Judges a call that passed everything before.
    async fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, Arc<str>>;
}

/// How the gate reaches an interceptor.
pub type InterceptorSeam = Seam<dyn Interceptor, dyn BlockingInterceptor<Reply, Arc<str>> + Send + Sync>;
seams!(InterceptorSeam, Interceptor, BlockingInterceptor<Reply, Arc<str>>);

/// Interceptors in the order in which they are asked: by priority, the highest first, then as they were added.
///
/// The first that answers or vetoes ends the round. One that fails, panics or takes longer than the limit vetoes (invariant
/// E3). One that waits is stopped when its time is up.
#[derive(Debug)]
pub struct Interceptors {
    pub(crate) chain: Vec<Link>,
    pub(crate) limit: Duration,
}

pub(crate) struct Link {
    pub(crate) name: Arc<str>,
    priority: i32,
    pub(crate) seam: InterceptorSeam,
}

impl Interceptors {
    /// Nobody, with one second for each.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(Duration::from_millis(DEFAULT_TIME_LIMIT_MS))
    }

    /// Nobody, with this limit for each.
    #[must_use]
    pub const fn with_limit(limit: Duration) -> Self {
        Self { chain: Vec::new(), limit }
    }

    /// The same, and `interceptor`. Records call it `name` when it fails.
    #[must_use]
    pub fn and(self, name: &str, interceptor: impl Into<InterceptorSeam>) -> Self {
        self.and_with_priority(name, 0, interceptor)
    }

    /// The same with a priority other than 0. A higher one is asked earlier.
    #[must_use]
    pub fn and_with_priority(mut self, name: &str, priority: i32, interceptor: impl Into<InterceptorSeam>) -> Self {
        let at = self.chain.partition_point(|other| other.priority >= priority);
        self.chain.insert(at, Link { name: name.into(), priority, seam: interceptor.into() });
        self
    }

    /// Whether nobody is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }
}

impl Default for Interceptors {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("name", &self.name).field("priority", &self.priority).finish_non_exhaustive()
    }
}
