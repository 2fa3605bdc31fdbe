//! What a policy judges.

use super::consent::ConsentGrant;
use crate::args::Args;
use crate::context::CallContext;
use crate::digest::Digest;
use crate::time::Timestamp;
use crate::tool::ToolSpec;

/// Everything a policy may look at, and nothing earlier than it (invariant P4): there is no way from here to arguments that
/// were not validated and clamped.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Who asks, as the transport authenticated them.
    pub caller: CallContext<'a>,
    /// The tool, as it was when its name was resolved.
    pub spec: &'a ToolSpec<'a>,
    /// The digest of the tool's definition (invariant G4).
    pub definition: Digest,
    /// The clamped arguments.
    pub args: Args<'a>,
    /// The digest of the clamped arguments, where the host has it. A signature, and a grant for exactly one call, count only
    /// when it is there: see [`Subject::wants_arguments_digest`].
    pub arguments: Option<Digest>,
    /// Now, for what expires.
    pub now: Timestamp,
}

impl Subject<'_> {
    /// Whether the digest of the arguments can make a difference to the decision, so that a host need not compute it for
    /// callers who bring neither a signature nor a grant.
    #[must_use]
    pub fn wants_arguments_digest(caller: &CallContext<'_>) -> bool {
        caller.signature.is_some() || caller.grants.iter().any(ConsentGrant::names_exact_arguments)
    }
}
