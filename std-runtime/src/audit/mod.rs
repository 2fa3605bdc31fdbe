//! Audit sinks: where the records of calls go. See [`callgate_core::audit`] for what a record is and what has gone through
//! redaction before any of these sees it.

mod fanout;
mod memory;
mod tracing;

pub use fanout::Fanout;
pub use memory::MemoryAudit;
pub use tracing::TracingAudit;

pub use callgate_core::audit::{Audit, AuditFault, Kind, Record};

use std::sync::Arc;

/// A sink that several parts of a gate share.
pub type SharedAudit = Arc<dyn Audit + Send + Sync>;
