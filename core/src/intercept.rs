//! Interception: the last word before a tool runs. An interceptor sees the call read-only and lets it pass, answers it (a
//! cache) or vetoes it (design 4.8).

use crate::policy::Subject;

/// What an interceptor says.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a fourth answer would have to be decided by every host")]
pub enum Interception<O, X> {
    /// Nothing against it.
    Continue,
    /// The answer is known already; the tool does not run. It must pass the tool's output schema (invariant E2).
    Answer(O),
    /// The call may not run, for this reason.
    Veto(X),
    /// The interceptor failed, panicked or took too long, which vetoes (invariant E3). The text goes to the record only.
    Failed(X),
}

/// A blocking interceptor.
///
/// The argument is shared: nothing that an interceptor does can change what runs (invariants K4, E1).
pub trait Interceptor<O, X> {
    /// Judges one call. Must not block for long: the call waits.
    fn judge(&self, subject: &Subject<'_>) -> Interception<O, X>;
}
