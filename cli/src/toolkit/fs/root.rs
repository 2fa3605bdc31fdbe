//! The one directory that the file tools can see.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileType, Metadata, OpenOptions};

use super::path::RelPath;
use crate::toolkit::error::ToolError;

/// A directory, held open from the start of the program to its end. What the file tools reach lies below it.
///
/// Renaming the directory or putting another in its place does not move what the tools see.
#[derive(Debug)]
pub struct Root {
    dir: Dir,
    path: PathBuf,
    protected: Vec<PathBuf>,
    protected_names: Vec<OsString>,
    concealed: Vec<PathBuf>,
}

impl Root {
    /// Opens the directory at `path`, which may be relative to the directory that the program runs in.
    ///
    /// # Errors
    ///
    /// What the operating system says when there is no such directory, or it may not be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self { dir, path, protected: Vec::new(), protected_names: Vec::new(), concealed: Vec::new() })
    }

    /// The same root, in which no tool changes `path`: a file, or a directory and all below it.
    ///
    /// No tool may write what the gate itself goes by (invariant P6), so whoever sets up a root names here the
    /// configuration, the state file and the audit file.
    #[must_use]
    pub fn protect(mut self, path: impl Into<PathBuf>) -> Self {
        self.protected.push(path.into());
        self
    }

    /// The same root, in which no tool changes or makes anything called `name` in any directory, capital and small letters being the same.
    ///
    /// For the name of a configuration that is looked for from the working directory upwards: one that a tool had put
    /// somewhere would be taken for the user's own by a later start there.
    #[must_use]
    pub fn protect_name(mut self, name: impl Into<OsString>) -> Self {
        self.protected_names.push(name.into());
        self
    }

    /// The same root, in which no tool reads `path`: a file, or a directory and all below it.
    ///
    /// The gate's own files hold what other callers sent, and the key of its digests (invariants L2, L3).
    #[must_use]
    pub fn conceal(mut self, path: impl Into<PathBuf>) -> Self {
        self.concealed.push(path.into());
        self
    }

    /// Where the root was when it was opened. For the operator, and as the directory that programs run in; never shown to a
    /// caller.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The handle below which everything is resolved.
    pub(super) const fn dir(&self) -> &Dir {
        &self.dir
    }

    /// What [`Root::protect`] was told.
    pub(super) fn protected(&self) -> &[PathBuf] {
        &self.protected
    }

    /// What [`Root::protect_name`] was told.
    pub(super) fn protected_names(&self) -> &[OsString] {
        &self.protected_names
    }

    /// What [`Root::conceal`] was told.
    pub(super) fn concealed(&self) -> &[PathBuf] {
        &self.concealed
    }

    /// Opens the directory at `path` to look into it.
    pub(super) fn open_dir(&self, field: &str, path: &RelPath) -> Result<Dir, ToolError> {
        self.dir.open_dir(path).map_err(|error| ToolError::refused_io(field, &error))
    }

    /// The directory at `path`, or the root itself, for a program to run in.
    #[cfg(unix)]
    pub(in crate::toolkit) fn working_directory(
        &self,
        field: &str,
        path: Option<&RelPath>,
    ) -> Result<crate::toolkit::exec::WorkingDirectory, ToolError> {
        let refused = |error: io::Error| ToolError::refused_io(field, &error);
        let (dir, path) = match path {
            None => (self.dir.try_clone().map_err(refused)?, self.path.clone()),
            Some(path) => (self.open_dir(field, path)?, self.path.join(path)),
        };
        Ok(crate::toolkit::exec::WorkingDirectory::new(dir, path))
    }
}

/// What kind of thing a name stands for, as callers see it.
pub(super) fn kind(file_type: FileType) -> &'static str {
    if file_type.is_file() {
        "file"
    } else if file_type.is_dir() {
        "directory"
    } else if file_type.is_symlink() {
        "symlink"
    } else {
        "other"
    }
}

/// Opens the regular file at `path` below `dir` for reading.
///
/// A device, pipe or socket is refused before it is opened, because opening one can block or have an effect. Should one be put
/// in the file's place right then, the opening does not block, and the handle is refused.
pub(super) fn open_regular(
    field: &str,
    dir: &Dir,
    path: &Path,
    follow: FollowSymlinks,
) -> Result<(File, Metadata), ToolError> {
    let refused_io = |error: io::Error| ToolError::refused_io(field, &error);
    let regular = |metadata: &Metadata| {
        if metadata.is_file() {
            return Ok(());
        }
        Err(ToolError::refused(match kind(metadata.file_type()) {
            "directory" => format!("{field}: it is a directory"),
            "symlink" => format!("{field}: it is a symbolic link"),
            _ => format!("{field}: it is neither a file nor a directory"),
        }))
    };
    let seen = match follow {
        FollowSymlinks::Yes => dir.metadata(path),
        FollowSymlinks::No => dir.symlink_metadata(path),
    };
    regular(&seen.map_err(refused_io)?)?;
    let mut options = OpenOptions::new();
    options.read(true).follow(follow).nonblock(true);
    let file = dir.open_with(path, &options).map_err(refused_io)?;
    let metadata = file.metadata().map_err(refused_io)?;
    regular(&metadata)?;
    Ok((file, metadata))
}
