//! Why a configuration can't be put to use.

use callgate_core::code::Code;
use callgate_sqlite::DatabaseError;
use callgate_std::audit::JsonlError;
use callgate_std::confirmations::ConfirmationFileError;
use callgate_std::digest_key::DigestKeyError;
use callgate_std::gate::GateError;
use callgate_std::limiter::LimitFileError;
use callgate_std::policy::PolicyError;
use callgate_std::registry::RegistryError;

use crate::config::ConfigError;
use crate::exit::Exit;

/// Why there is no gate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssembleError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The root can't be opened.
    #[error("the root {path} can't be opened: {source}")]
    Root { path: String, source: std::io::Error },
    /// The tools can't stand beside each other.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The tools with which agents ask people can't be built.
    #[error("`verification` can't be used: {0}")]
    Verification(#[from] callgate_std::tool::ToolError),
    /// The policy can't be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The gate can't be built.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// What `[serve]` says can't be used.
    #[cfg(feature = "mcp")]
    #[error("`serve` can't be used: {0}")]
    Serve(String),
    /// The log can't be written to.
    #[error("the audit log can't be used, so nothing runs: {0}")]
    Audit(#[from] JsonlError),
    /// The log can't be written to.
    #[error("the audit log can't be used, so nothing runs: {0}")]
    AuditDatabase(#[source] DatabaseError),
    /// Confirmations can't be kept.
    #[error("confirmations can't be kept, so nothing runs: {0}")]
    Confirmations(#[from] ConfirmationFileError),
    /// Confirmations can't be kept.
    #[error("confirmations can't be kept, so nothing runs: {0}")]
    ConfirmationDatabase(#[source] DatabaseError),
    /// Rate limits can't be kept.
    #[error("rate limits can't be kept, so nothing runs: {0}")]
    Limits(#[from] LimitFileError),
    /// Rate limits can't be kept.
    #[error("rate limits can't be kept, so nothing runs: {0}")]
    LimitDatabase(#[source] DatabaseError),
    /// There is no key for digests.
    #[error("arguments can't be digested, so nothing runs: {0}")]
    DigestKey(#[from] DigestKeyError),
}

impl AssembleError {
    /// The gate's code for it, where it is the gate's own files that fail and not what somebody wrote.
    pub(crate) const fn code(&self) -> Option<Code> {
        match self {
            Self::Audit(_) | Self::AuditDatabase(_) => Some(Code::AuditUnavailable),
            Self::Confirmations(_)
            | Self::ConfirmationDatabase(_)
            | Self::Limits(_)
            | Self::LimitDatabase(_)
            | Self::DigestKey(_) => Some(Code::StoreUnavailable),
            _ => None,
        }
    }

    /// How the command ends.
    pub(crate) const fn exit(&self) -> Exit {
        if self.code().is_some() { Exit::Refused } else { Exit::Usage }
    }
}
