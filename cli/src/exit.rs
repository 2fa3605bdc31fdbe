//! How the command ends, for whoever started it.

use std::process::ExitCode;

/// What the status of the process says. The numbers are part of the interface: `callgate --help` and the README list them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Exit {
    /// The call succeeded, or there was nothing to find fault with.
    Success,
    /// The tool was started and did not succeed; or what was checked is broken.
    Failed,
    /// The command line or the configuration can't be used. Nothing ran.
    Usage,
    /// The gate refused the call; its code is on standard error. Nothing ran.
    Refused,
    /// The call waits to be confirmed. Nothing has run yet.
    Asked,
    /// A signal ended it; the number of the signal.
    Interrupted(u8),
}

impl Exit {
    /// The status.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Asked => 4,
            // What a shell reports of a process that a signal killed.
            Self::Interrupted(signal) => 128_u8.saturating_add(signal),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
