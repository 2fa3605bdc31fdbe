//! What somebody decides about a pending call, for the record.

use core::fmt;

use crate::code::Code;
use crate::context::CallContext;
use crate::digest::Digest;
use crate::redact::Redaction;
use crate::time::Now;

/// What is decided about a pending call: the content of a record of kind [`Decision`](super::Kind::Decision).
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "whoever decides must not leave out anything")]
pub struct Decision<'a> {
    /// When, by the gate's clock.
    pub at: Now,
    /// Who decides, as a transport has authenticated it; the request id is that of the decision.
    pub by: CallContext<'a>,
    /// The tool of the call that it is about; empty where that is not known.
    pub tool: &'a str,
    /// The digest of the arguments that were shown, where they were.
    pub arguments: Option<Digest>,
    /// The digest of policy and configuration in force, where the host has one.
    pub policy: Option<Digest>,
    /// The ticket; `None` for a consent that names none.
    pub ticket: Option<Digest>,
    /// The id of the operation that it is about, for a decision about one.
    pub operation: Option<&'a str>,
    /// What is decided, in a word: `approve`, `deny`, `cancel`, `resolve`, `consent`.
    pub what: &'static str,
    /// Why it does not count; `None` before it is known whether it does.
    pub refused: Option<(Code, &'static str)>,
    /// What whoever decides says about it; goes through redaction.
    pub note: Option<&'a str>,
    /// The rules of redaction.
    pub redaction: Redaction<'a>,
}

/// Shows no note (invariant L1).
impl fmt::Debug for Decision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("what", &self.what)
            .field("ticket", &self.ticket)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}
