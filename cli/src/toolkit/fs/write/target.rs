//! Where a file is written, and the draft that is put in its place.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::protect::Protected;
use crate::toolkit::error::ToolError;
use crate::toolkit::fs::root::Root;

/// How often a name for a draft is tried. A name is taken only by a draft that a crash left behind.
const DRAFT_NAMES: u32 = 64;

/// A name in a directory that is held open.
pub(super) struct Target {
    /// The directory.
    pub dir: Dir,
    /// The name.
    pub name: OsString,
}

impl Target {
    /// Opens `parent` below the root, step by step, and refuses where a step is protected.
    ///
    /// Symbolic links below the root are resolved first; the steps themselves follow none. A link that is swapped in between
    /// is an error.
    pub(super) fn find(
        root: &Root,
        parent: &str,
        name: &str,
        create_dirs: bool,
        protected: &Protected<'_>,
    ) -> Result<Self, ToolError> {
        let refused = |error: &io::Error| ToolError::refused_io("path", error);
        // Before a directory is made: a refusal leaves nothing behind.
        for step in Path::new(parent).iter().chain([OsStr::new(name)]) {
            protected.admits_anywhere(step)?;
        }
        let (present, missing) =
            split_missing(root.dir(), Path::new(parent), create_dirs).map_err(|error| refused(&error))?;
        let mut dir = root.dir().try_clone().map_err(|error| refused(&error))?;
        for step in present.components() {
            let Component::Normal(step) = step else {
                continue;
            };
            protected.admits_name(&dir, step)?;
            dir = dir.open_dir_nofollow(step).map_err(|error| refused(&error))?;
        }
        for step in missing.components() {
            protected.admits_name(&dir, step.as_os_str())?;
            match dir.create_dir(step) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(ToolError::failed_io("path", &error));
                }
                _ => {}
            }
            dir = dir.open_dir_nofollow(step).map_err(|error| ToolError::failed_io("path", &error))?;
        }
        let name = OsString::from(name);
        protected.admits_name(&dir, &name)?;
        Ok(Self { dir, name })
    }

    /// Makes the names in the directory durable, as far as the file system can.
    pub(super) fn sync(&self) {
        // The content is in place whether this succeeds or not, so its failure is not the write's.
        drop(self.dir.open(".").and_then(|dir| dir.sync_all()));
    }
}

/// `path` without symbolic links as far as it exists, and the rest of it, which is empty unless directories may be made.
fn split_missing(root: &Dir, path: &Path, create_dirs: bool) -> io::Result<(PathBuf, PathBuf)> {
    let mut present = path;
    loop {
        match root.canonicalize(present) {
            Ok(resolved) => {
                let missing = path.strip_prefix(present).map(Path::to_owned).unwrap_or_default();
                return Ok((resolved, missing));
            }
            Err(error) if create_dirs && error.kind() == io::ErrorKind::NotFound => {
                match present.parent() {
                    Some(parent) if !parent.as_os_str().is_empty() => present = parent,
                    // All of it is missing.
                    _ => return Ok((PathBuf::new(), path.to_owned())),
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// A complete file beside the one that is to be, under a name of its own; gone again unless it is published.
pub(super) struct Draft<'a> {
    target: &'a Target,
    name: String,
    content: &'a [u8],
}

impl<'a> Draft<'a> {
    /// Writes `content` durably, with the permission bits of `like`.
    pub(super) fn write(target: &'a Target, content: &'a [u8], like: Option<&Metadata>) -> Result<Self, ToolError> {
        let (name, file) =
            new_file(&target.dir, like.is_some()).map_err(|error| ToolError::failed_io("path", &error))?;
        let draft = Self { target, name, content };
        fill(file, content, like).map_err(|error| ToolError::failed_io("path", &error))?;
        Ok(draft)
    }

    /// The length of the file, in bytes.
    pub(super) fn size(&self) -> u64 {
        u64::try_from(self.content.len()).unwrap_or(u64::MAX)
    }

    /// Puts the draft in the target's place, whatever is there.
    pub(super) fn publish(self) -> io::Result<()> {
        let Target { dir, name } = self.target;
        dir.rename(&self.name, dir, name)?;
        self.target.sync();
        Ok(())
    }

    /// Puts the draft in the target's place unless something is there, which gives [`io::ErrorKind::AlreadyExists`].
    pub(super) fn publish_new(self) -> io::Result<()> {
        let Target { dir, name } = self.target;
        // A link is refused where a name is taken; a renaming is not.
        match dir.hard_link(&self.name, dir, name) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => self.publish_in_place()?,
        }
        drop(self.target.dir.remove_file(&self.name));
        self.target.sync();
        Ok(())
    }

    /// For a file system without hard links.
    fn publish_in_place(&self) -> io::Result<()> {
        let Target { dir, name } = self.target;
        let file = dir.open_with(name, OpenOptions::new().write(true).create_new(true))?;
        fill(file, self.content, None).inspect_err(|_| drop(dir.remove_file(name)))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // After a renaming there is no such name.
        drop(self.target.dir.remove_file(&self.name));
    }
}

fn fill(mut file: File, content: &[u8], like: Option<&Metadata>) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(like) = like {
        file.set_permissions(plain_permissions(like))?;
    }
    file.sync_all()
}

/// The permissions of `like` without set-uid, set-gid and sticky bits: new content has not earned them.
fn plain_permissions(like: &Metadata) -> cap_std::fs::Permissions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "bits are of Unix"))]
    let mut permissions = like.permissions();
    #[cfg(unix)]
    {
        use cap_std::fs::PermissionsExt;
        permissions.set_mode(permissions.mode() & 0o777);
    }
    permissions
}

/// A file that is not there yet; for its owner alone where its permissions are still to be set.
fn new_file(dir: &Dir, private: bool) -> io::Result<(String, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut result = Err(io::Error::from(io::ErrorKind::AlreadyExists));
    for _ in 0..DRAFT_NAMES {
        let name = format!(".callgate-{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if private {
            cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let opened = dir.open_with(&name, &options);
        match opened {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => result = Err(error),
            opened => return opened.map(|file| (name, file)),
        }
    }
    result
}
