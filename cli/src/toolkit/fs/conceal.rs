//! What no tool may read: the gate's own files, which hold the arguments of other callers and the key of digests.

use std::path::{Path, PathBuf};

use cap_std::fs::Metadata;

use super::identity::{Identity, identity, identity_at};
use super::path::RelPath;
use super::root::Root;
use crate::toolkit::error::ToolError;

/// The concealed paths of a root as they are at this moment. Compared by what they are, not by how they are spelled; on a system
/// that does not tell what a file is, nothing is concealed.
pub(super) struct Concealed(Vec<Identity>);

impl Concealed {
    pub(super) fn of(root: &Root) -> Self {
        Self(root.concealed().iter().filter_map(|path| identity_at(path)).filter(Option::is_some).collect())
    }

    /// Whether this is one of them.
    pub(super) fn covers(&self, metadata: &Metadata) -> bool {
        self.0.contains(&identity(metadata))
    }

    /// Refuses a path that goes through a concealed directory, or ends at one. A directory stays the same while the files in it are
    /// replaced, so this holds whatever is written meanwhile.
    pub(super) fn admits(&self, root: &Root, path: &RelPath) -> Result<(), ToolError> {
        let mut so_far = PathBuf::new();
        for part in AsRef::<Path>::as_ref(path) {
            so_far.push(part);
            let covered = root.dir().metadata(&so_far).is_ok_and(|metadata| self.covers(&metadata));
            if covered {
                return Err(refused());
            }
        }
        Ok(())
    }

    /// Refuses a file that was opened. Looks twice: at what was concealed before, and at what is concealed now.
    pub(super) fn admits_file(&self, root: &Root, metadata: &Metadata) -> Result<(), ToolError> {
        if self.covers(metadata) || Self::of(root).covers(metadata) { Err(refused()) } else { Ok(()) }
    }
}

fn refused() -> ToolError {
    ToolError::refused("path: the gate's own files are not for tools to read")
}
