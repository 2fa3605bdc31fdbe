//! Audit: one terminal record per call on every path, and an intent before every effect (invariants J1, J2).
//!
//! A [`Record`] is a view of a call; nothing is formatted until a sink asks. What a sink writes has gone through
//! [`crate::redact`] already: there is no way to the raw arguments from here (invariant L1). [`chain`] links the lines of a
//! log so that an edit, a deletion or a swap shows.

pub mod chain;
mod decision;
mod record;

pub use decision::Decision;
pub use record::{Consented, Kind, Record};
pub(crate) use record::{Describe, write_clamped};

use core::fmt;

/// The record was not written, or the sink does not know whether it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuditFault;

impl fmt::Display for AuditFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the audit record could not be written")
    }
}

impl core::error::Error for AuditFault {}

/// A blocking audit sink.
pub trait Audit {
    /// Writes one record. One that [comes first](Kind::comes_first) must be durable when this returns `Ok`: nothing happens before.
    ///
    /// # Errors
    /// The record was not written, or that is unknown.
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault>;
}

impl<A: Audit + ?Sized> Audit for &A {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        (**self).record(record)
    }
}

#[cfg(feature = "alloc")]
impl<A: Audit + ?Sized> Audit for alloc::sync::Arc<A> {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        (**self).record(record)
    }
}
