//! Stores of the gate in one SQLite file, which several processes may share: confirmations, operations and
//! their results, the nonces of signed consent, and the audit log.
//!
//! What is answered is on the disk: the file is in WAL mode with `synchronous=FULL`, every step is one transaction that begins with
//! `BEGIN IMMEDIATE`, and a step that fails answers a fault, never a guess (invariants F1, J3). SQLite is compiled in.
//!
//! ```
//! use std::sync::Arc;
//! use callgate_sqlite::{Database, SqliteAudit, SqliteConfirmations};
//! use callgate_std::gate::Gate;
//! use callgate_std::registry::Registry;
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("gate.db");
//! let database = Arc::new(Database::open(path)?);
//! let gate = Gate::builder(Registry::builder().build()?)
//!     .confirmations(Arc::new(SqliteConfirmations::on(Arc::clone(&database))))
//!     .audit(Arc::new(SqliteAudit::on(database)?))
//!     .build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod audit;
#[cfg(test)]
#[path = "../../../std-runtime/tests/confirmations/bench.rs"]
#[expect(dead_code, reason = "the suite of every store uses the rest")]
mod bench;
mod confirmations;
mod database;
#[cfg(test)]
#[path = "../../../std-runtime/tests/calls/driven.rs"]
#[expect(dead_code, reason = "the tests of sinks use the rest")]
mod driven;
#[cfg(test)]
mod end_tests;
mod error;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod faults;
mod grant;
mod journal;
#[cfg(test)]
mod journal_tests;
mod limiter;
mod lines;
mod nonces;
mod schema;
#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod step_tests;
mod ticket;
mod turn;

pub use audit::SqliteAudit;
pub use confirmations::SqliteConfirmations;
pub use database::Database;
pub use error::DatabaseError;
pub use journal::SqliteJournal;
pub use limiter::SqliteLimiter;
pub use lines::Lines;
pub use nonces::SqliteNonces;
