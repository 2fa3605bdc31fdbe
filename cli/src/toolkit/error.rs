//! Why a tool did not do what it was asked.

use std::{fmt, io};

/// What a tool's body gives: a JSON value, or why there is none.
pub type ToolResult = Result<serde_json::Value, ToolError>;

/// How far a call had come when it failed. Decides what the outcome may say about its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It was not tried: the arguments ask for what the tool does not do, or what it needs is not there. The effect is `none`.
    Refused,
    /// It was not tried: what the arguments name does not exist. The effect is `none`.
    Missing,
    /// It was tried and failed. Unless the tool changes nothing, the effect is `unknown`.
    Failed,
    /// The deadline passed, perhaps after the work had begun (invariant X2: the effect is `unknown`).
    TimedOut,
    /// The caller went away, perhaps after the work had begun (the effect is `unknown`).
    Cancelled,
}

/// Why a tool did not do what it was asked.
///
/// The text is in two parts with two audiences, so that no caller of this type has to decide what is safe: `message` is
/// written by the tool, holds no value of an argument and no path of the host, and may be shown to whoever called (invariant
/// L4); `detail` is whatever the operating system or a program said, and goes to the audit record and the log only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolError {
    /// How far the call had come.
    pub fault: Fault,
    /// What went wrong, as `field: reason` where one field is to blame. Safe to show.
    pub message: String,
    /// What else is known. Not safe to show.
    pub detail: Option<String>,
}

impl ToolError {
    /// The arguments are at fault; nothing was begun.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { fault: Fault::Refused, message: message.into(), detail: None }
    }

    /// It was tried and failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { fault: Fault::Failed, message: message.into(), detail: None }
    }

    /// The same failure with what else is known, for the record.
    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// What the operating system said when it was asked for the file that `field` names, before anything was changed.
    pub(crate) fn refused_io(field: &str, error: &io::Error) -> Self {
        let fault = if error.kind() == io::ErrorKind::NotFound { Fault::Missing } else { Fault::Refused };
        Self { fault, ..Self::refused(format!("{field}: {}", phrase(error))) }.with_detail(error.to_string())
    }

    /// What the operating system said in the middle of the work on the file that `field` names.
    pub(crate) fn failed_io(field: &str, error: &io::Error) -> Self {
        Self::failed(format!("{field}: {}", phrase(error))).with_detail(error.to_string())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}

/// A fixed sentence for an I/O error. The error's own text can hold a path of the host, so it is never shown.
fn phrase(error: &io::Error) -> &'static str {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return "it is, or goes through, a symbolic link that cannot be followed here";
    }
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or directory",
        io::ErrorKind::PermissionDenied => "this is not permitted, or the path leads out of the root",
        io::ErrorKind::AlreadyExists => "it exists already",
        io::ErrorKind::NotADirectory => "a part of the path is not a directory",
        io::ErrorKind::IsADirectory => "it is a directory",
        io::ErrorKind::InvalidFilename => "a part of the path is too long",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "there is no space left",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        _ => "the operating system refused",
    }
}
