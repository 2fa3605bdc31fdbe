//! One record to several sinks.

use std::fmt;

use callgate_core::audit::{Audit, AuditFault, Record};

use crate::contain::contain;
use crate::lock::{AtomicU64, Ordering};

use super::SharedAudit;

/// Gives each record to all of its sinks, whatever becomes of it at the others.
///
/// The record counts as written when every required sink has written it; that one sink out of several did not is the
/// same as if none had. What an optional sink loses is counted and reported through `tracing`. Without a required sink nothing
/// vouches for the records, so there must be one: [`Fanout::new`] takes the first.
pub struct Fanout {
    sinks: Vec<Sink>,
}

struct Sink {
    name: String,
    required: bool,
    audit: SharedAudit,
    faults: AtomicU64,
}

impl Fanout {
    /// To this required sink.
    #[must_use]
    pub fn new(name: &str, audit: SharedAudit) -> Self {
        Self { sinks: Vec::new() }.and(name, audit, true)
    }

    /// And to this required one.
    #[must_use]
    pub fn and_required(self, name: &str, audit: SharedAudit) -> Self {
        self.and(name, audit, true)
    }

    /// And to this one, whose failures change nothing.
    #[must_use]
    pub fn and_optional(self, name: &str, audit: SharedAudit) -> Self {
        self.and(name, audit, false)
    }

    fn and(mut self, name: &str, audit: SharedAudit, required: bool) -> Self {
        self.sinks.push(Sink { name: name.to_owned(), required, audit, faults: AtomicU64::new(0) });
        self
    }

    /// Each sink's name, and how many records it failed to write.
    pub fn faults(&self) -> impl Iterator<Item = (&str, u64)> {
        self.sinks.iter().map(|sink| (sink.name.as_str(), sink.faults.load(Ordering::Relaxed)))
    }
}

impl Audit for Fanout {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let mut answer = Ok(());
        for Sink { name, required, audit, faults } in &self.sinks {
            // A sink that panics has not written the record, or nobody knows (invariant F1).
            let written = contain(|| audit.record(record)).unwrap_or(Err(AuditFault));
            if written.is_err() {
                faults.fetch_add(1, Ordering::Relaxed);
                let request_id = record.caller.request_id;
                ::tracing::error!(sink = name, required, request_id, "an audit sink did not write a record");
                if *required {
                    answer = Err(AuditFault);
                }
            }
        }
        answer
    }
}

impl fmt::Debug for Fanout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sinks.iter().map(|sink| (&sink.name, sink.required))).finish()
    }
}
