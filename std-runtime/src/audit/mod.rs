//! Audit sinks: where the records of calls go. See [`callgate_core::audit`] for what a record is and what has gone through
//! redaction before any of these sees it.

mod anchor;
mod disk;
mod error;
mod fanout;
#[cfg(test)]
mod fault_tests;
mod jsonl;
pub mod line;
mod lost;
mod memory;
pub mod reaper;
mod report;
mod rotate;
pub mod segment;
pub(crate) mod shown;
mod spool;
mod tail;
mod tracing;
mod verify;

pub use anchor::Anchor;
pub use error::JsonlError;
pub use fanout::Fanout;
pub use jsonl::{Durability, JsonlAudit, JsonlOptions};
pub use memory::MemoryAudit;
pub use reaper::LostCall;
pub use report::{OpenIntent, Problem, ProblemKind, Report};
pub use segment::{Retention, Segments};
pub use spool::Spool;
pub use tracing::TracingAudit;
pub use verify::{Against, Expected, verify, verify_after, verify_file, verify_file_after, verify_log, verify_parts};

pub use callgate_core::audit::{Audit, AuditFault, Kind, Record};

use std::sync::Arc;

/// A sink that several parts of a gate share.
pub type SharedAudit = Arc<dyn Audit + Send + Sync>;
