//! Tools that share a state.

use std::sync::Arc;

use super::ToolBuilder;

/// Something with tools that work on it together: a store of notes, a connection. `#[toolkit]` on an `impl` block makes it of
/// the methods that have `#[tool]`.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use callgate_macros::toolkit;
/// use callgate_std::registry::Registry;
///
/// #[derive(Default)]
/// struct Counter(AtomicU64);
///
/// #[toolkit(prefix = "counter.")]
/// impl Counter {
///     /// Adds to the counter and tells what it was
///     #[tool(mutating)]
///     fn add(&self, #[param(clamp(0..=10))] by: u64) -> u64 {
///         self.0.fetch_add(by, Ordering::Relaxed)
///     }
/// }
///
/// let counter = Arc::new(Counter::default());
/// let registry = Registry::builder().toolkit(&counter).build()?;
/// assert!(registry.has("counter.add"));
/// # Ok::<(), callgate_std::registry::RegistryError>(())
/// ```
pub trait Toolkit: Send + Sync + 'static {
    /// The definitions of its tools, each of which shares the state.
    fn tools(self: &Arc<Self>) -> Vec<ToolBuilder>;
}
