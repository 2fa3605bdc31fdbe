//! What no tool may write (invariant P6).

use std::ffi::{OsStr, OsString};
use std::path::Path;

use cap_std::fs::{Dir, Metadata};

use crate::toolkit::error::ToolError;
use crate::toolkit::fs::identity::{Identity, identity, identity_at};
use crate::toolkit::fs::root::Root;

/// The protected paths of a root as they are at this moment. Compared by what they are, not by how they are spelled.
pub(super) struct Protected<'r> {
    /// Names in any directory.
    everywhere: &'r [OsString],
    things: Vec<Identity>,
    /// A name in a directory, whether there is such a file or not.
    names: Vec<(Identity, OsString)>,
}

impl<'r> Protected<'r> {
    pub(super) fn of(root: &'r Root) -> Self {
        let mut protected = Self { everywhere: root.protected_names(), things: Vec::new(), names: Vec::new() };
        for path in root.protected() {
            if let Some(thing) = identity_at(path) {
                protected.things.push(thing);
            }
            let parent = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            if let (Some(parent), Some(name)) = (identity_at(parent), path.file_name()) {
                protected.names.push((parent, name.to_owned()));
            }
        }
        protected
    }

    /// Refuses a file or directory that is protected itself.
    pub(super) fn admits(&self, metadata: &Metadata) -> Result<(), ToolError> {
        if self.matches(&self.things, identity(metadata)) { refused() } else { Ok(()) }
    }

    /// Refuses a directory in or below which nothing may be written, and `name` in it if that is protected.
    pub(super) fn admits_name(&self, dir: &Dir, name: &OsStr) -> Result<(), ToolError> {
        self.admits_anywhere(name)?;
        let dir = dir.dir_metadata().map_err(|error| ToolError::refused_io("path", &error))?;
        self.admits(&dir)?;
        // Some file systems take capital and small letters for the same.
        let same_name =
            self.names.iter().filter(|(_, protected)| protected.eq_ignore_ascii_case(name)).map(|(parent, _)| *parent);
        let parents: Vec<Identity> = same_name.collect();
        if self.matches(&parents, identity(&dir)) { refused() } else { Ok(()) }
    }

    /// Refuses `name` if it is protected in any directory.
    pub(super) fn admits_anywhere(&self, name: &OsStr) -> Result<(), ToolError> {
        if self.everywhere.iter().any(|protected| protected.eq_ignore_ascii_case(name)) { refused() } else { Ok(()) }
    }

    /// Fails closed: what cannot be told apart is the same.
    fn matches(&self, protected: &[Identity], seen: Identity) -> bool {
        protected.iter().any(|thing| thing.is_none() || seen.is_none() || *thing == seen)
    }
}

fn refused() -> Result<(), ToolError> {
    Err(ToolError::refused("path: the gate's own files are not for tools to write"))
}

/// How many names a file has; 1 where the system does not say.
#[cfg(unix)]
pub(super) fn links(metadata: &Metadata) -> u64 {
    cap_fs_ext::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
pub(super) fn links(_: &Metadata) -> u64 {
    1
}
