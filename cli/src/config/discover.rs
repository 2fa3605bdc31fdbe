//! Finding the configuration file, and reading it once through one handle.

use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::problem::{ConfigError, Problem, shown_path};
use super::source::Source;

/// What the file is called when it is looked for.
pub const FILE_NAME: &str = "callgate.toml";
/// The environment variable that may name the file.
pub const ENVIRONMENT_VARIABLE: &str = "CALLGATE_CONFIG";
/// How large the file may be, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// What the search came to.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// Somebody named this file.
    Named(PathBuf),
    /// This file stands in the directory or above it.
    Above(PathBuf),
    /// There is none.
    Nothing,
}

pub(super) fn find(start: &Path, named: Option<&Path>, environment: Option<&OsStr>) -> Result<Found, ConfigError> {
    if let Some(file) = named {
        return Ok(Found::Named(file.to_owned()));
    }
    if let Some(file) = environment {
        if file.is_empty() {
            return Err(ConfigError::of_file(
                Path::new(ENVIRONMENT_VARIABLE),
                "the environment variable is set and empty",
                Some("let it name a file, or unset it".into()),
            ));
        }
        return Ok(Found::Named(file.into()));
    }
    for dir in start.ancestors() {
        let file = dir.join(FILE_NAME);
        // Whatever has the name counts, also a link that leads nowhere: it was meant to be the configuration.
        match std::fs::symlink_metadata(&file) {
            Ok(_) => return Ok(Found::Above(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(ConfigError::of_file(
                    &file,
                    format!("it can't be told whether this file exists: {error}"),
                    Some("name the file to be used: --config FILE".into()),
                ));
            }
        }
    }
    Ok(Found::Nothing)
}

/// Reads the file. What is checked is the handle that is read, not the name (invariant S7). `own`: the file has to belong to
/// whoever runs the program, or to root.
pub(super) fn read(file: &Path, own: bool) -> Result<String, ConfigError> {
    let refuse = |message: String, help: Option<&str>| ConfigError::of_file(file, message, help.map(str::to_owned));
    let mut handle = open(file).map_err(|error| {
        let help = match error.kind() {
            io::ErrorKind::NotFound if file.is_symlink() => Some("it is a link that leads nowhere"),
            io::ErrorKind::NotFound => Some("`callgate init` writes one to start from"),
            _ => None,
        };
        refuse(format!("can't be read: {error}"), help)
    })?;
    let metadata = handle.metadata().map_err(|error| refuse(format!("can't be read: {error}"), None))?;
    if metadata.is_dir() {
        return Err(refuse("is a directory".into(), Some("name the file in it")));
    }
    if !metadata.is_file() {
        return Err(refuse("is not a regular file".into(), None));
    }
    check_owner(&metadata, own).map_err(|(message, help)| refuse(message.into(), Some(help)))?;
    let mut bytes = Vec::new();
    handle
        .by_ref()
        .take(MAX_FILE_BYTES.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| refuse(format!("can't be read: {error}"), None))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
        return Err(refuse("is larger than 1 MiB".into(), None));
    }
    String::from_utf8(bytes).map_err(|error| {
        let sound = error.utf8_error().valid_up_to();
        let lossy = String::from_utf8_lossy(error.as_bytes());
        let problem = Problem::at(
            &Source::new(file, &lossy),
            &(sound..sound),
            "",
            "this byte is not UTF-8",
            Some(format!("a configuration is UTF-8 text; save {} in that encoding", shown_path(file))),
        );
        ConfigError::new(file, vec![problem])
    })
}

/// A FIFO must not make the program wait for a writer, so the file is opened without waiting; a regular file doesn't care.
#[cfg(unix)]
fn open(file: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(file)
}

#[cfg(not(unix))]
fn open(file: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(file)
}

type Refusal = (&'static str, &'static str);

/// A gate that everybody may reconfigure is none (invariant P6).
#[cfg(unix)]
fn check_owner(metadata: &Metadata, own: bool) -> Result<(), Refusal> {
    use std::os::unix::fs::MetadataExt;
    const OTHERS_WRITE: u32 = 0o002;
    if metadata.mode() & OTHERS_WRITE != 0 {
        return Err(("may be changed by everybody", "take the permission away: chmod o-w"));
    }
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if own && owner != user && owner != 0 {
        return Err((
            "was found on the way up, and belongs to somebody else",
            "it can declare programs to run; if it is to be trusted, name it: --config FILE",
        ));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_owner(_: &Metadata, _: bool) -> Result<(), Refusal> {
    Ok(())
}
