//! The redacted parts of a record, to be displayed when somebody asks.

use std::fmt;

use callgate_core::audit::Record;

/// The arguments of a record, redacted, as JSON; nothing where they were never read.
pub(crate) struct ArgsOf<'r>(pub(crate) &'r Record<'r>);

impl fmt::Display for ArgsOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.redacted_args().map_or(Ok(()), |args| write!(f, "{args}"))
    }
}

/// The reason of a record, redacted; nothing where there is none.
pub(crate) struct DetailOf<'r>(pub(crate) &'r Record<'r>);

impl fmt::Display for DetailOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.redacted_detail().map_or(Ok(()), |detail| write!(f, "{detail}"))
    }
}
