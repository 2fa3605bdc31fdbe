//! What a file or directory is, whatever path led to it.

use std::path::Path;

use cap_std::fs::Metadata;

/// Device and number. `None` where the system has no such thing.
pub(super) type Identity = Option<(u64, u64)>;

/// The identity of what a handle leads to.
#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> Identity {
    use cap_fs_ext::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(super) fn identity(_: &Metadata) -> Identity {
    None
}

/// The identity of what is at `path` of the host, links followed; `None` when there is nothing.
pub(super) fn identity_at(path: &Path) -> Option<Identity> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(identity(&Metadata::from_just_metadata(metadata)))
}
