//! Audit sinks that may wait.

use std::fmt;

use async_trait::async_trait;
use callgate_core::audit::Audit as BlockingAudit;
pub use callgate_core::audit::{AuditFault, Kind, Record};
use callgate_core::code::{Code, Effect};

use crate::seam::{Seam, seams};

/// One record, as a sink that waits takes it along: redacted, written out, and without any reference to its call.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Which of a call's records it is.
    pub kind: Kind,
    /// The call.
    pub request_id: String,
    /// The name that was asked for.
    pub tool: String,
    /// How the call ended, in a word.
    pub end: &'static str,
    /// Why it did not succeed.
    pub code: Option<Code>,
    /// What it did.
    pub effect: Effect,
    /// The whole record as one line of JSON, the same bytes as on every front-end (invariant N1).
    pub json: String,
}

impl Entry {
    /// Writes a record out.
    ///
    /// # Errors
    /// A text of it could not be written.
    pub fn of(record: &Record<'_>) -> Result<Self, AuditFault> {
        let mut json = String::new();
        record.write_json(&mut json).map_err(|_| AuditFault)?;
        Ok(Self {
            kind: record.kind,
            request_id: record.caller.request_id.to_owned(),
            tool: record.tool.to_owned(),
            end: record.end,
            code: record.code,
            effect: record.effect,
            json,
        })
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("kind", &self.kind)
            .field("request_id", &self.request_id)
            .field("tool", &self.tool)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// An audit sink.
///
/// A record is given to it once. The future of [`record`](Self::record) may be dropped where it waits, by an executor that goes
/// down or when the stage's time is up, and the record is not given again: write it or hand it over before the first wait, as a
/// channel does, and wait for the answer only (invariant J1).
#[async_trait]
pub trait Audit: Send + Sync {
    /// Writes one record. For [`Kind::Intent`] it must be durable when this returns `Ok`: nothing runs before.
    ///
    /// # Errors
    /// The record was not written, or that is unknown.
    async fn record(&self, entry: Entry) -> Result<(), AuditFault>;

    /// Takes a record without waiting, to write it as soon as possible: that of a call that ends while its executor goes down.
    ///
    /// # Errors
    /// The record was not taken.
    fn record_now(&self, entry: Entry) -> Result<(), AuditFault>;
}

/// How the gate reaches its audit sink.
pub type AuditSeam = Seam<dyn Audit, dyn BlockingAudit + Send + Sync>;
seams!(AuditSeam, Audit, BlockingAudit);
