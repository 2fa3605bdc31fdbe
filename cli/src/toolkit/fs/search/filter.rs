//! Which files a search looks into.

use std::io::Read;
use std::path::{Path, PathBuf};

use cap_fs_ext::FollowSymlinks;
use cap_std::fs::Dir;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::toolkit::error::ToolError;
use crate::toolkit::fs::path::RelPath;
use crate::toolkit::fs::root::open_regular;
use crate::toolkit::fs::walk::Entry;

/// The most that is read of a `.gitignore`, in bytes; what is beyond ignores nothing.
const MAX_IGNORE_BYTES: u64 = 65_536;
/// The most lines of a `.gitignore` that are read.
const MAX_IGNORE_LINES: usize = 2_000;

/// A glob: on the name of a file, or on its path from the root when it holds a `/`.
pub(super) struct NameFilter {
    glob: GlobSet,
    by_path: bool,
}

impl NameFilter {
    pub(super) fn new(glob: &str) -> Result<Self, ToolError> {
        let refused = || ToolError::refused("glob: not a pattern such as `*.rs` or `src/**/*.rs`");
        let by_path = glob.contains('/');
        let glob = glob.strip_prefix("./").or_else(|| glob.strip_prefix('/')).unwrap_or(glob);
        let glob =
            GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build().map_err(|_| refused())?;
        let glob = GlobSetBuilder::new().add(glob).build().map_err(|_| refused())?;
        Ok(Self { glob, by_path })
    }

    pub(super) fn admits(&self, entry: &Entry) -> bool {
        if self.by_path { self.glob.is_match(&entry.real_path) } else { self.glob.is_match(&entry.name) }
    }
}

/// The `.gitignore` files that hold for where a walk is, from the root down.
///
/// They are read through the handles of the walk. What git keeps elsewhere (`.git/info/exclude`, a user's own file) is not looked at:
/// it would make the answer depend on more than the files below the root.
pub(super) struct Ignores {
    files: Vec<(PathBuf, Gitignore)>,
}

impl Ignores {
    /// Those of the root, of `path`, and of each directory between.
    pub(super) fn above(root: &Dir, path: &RelPath) -> Self {
        let mut ignores = Self { files: Vec::new() };
        ignores.enter(root, Path::new("."), PathBuf::new());
        if !path.is_root() {
            let mut directory = PathBuf::new();
            for part in path.as_str().split('/') {
                directory.push(part);
                ignores.enter(root, &directory.clone(), directory.clone());
            }
        }
        ignores
    }

    /// Adds the file of the directory at `below` in `dir`, which lies at `real_path` from the root.
    pub(super) fn enter(&mut self, dir: &Dir, below: &Path, real_path: PathBuf) {
        if let Some(file) = read(dir, &below.join(".gitignore")) {
            self.files.push((real_path, file));
        }
    }

    /// Whether `entry` is ignored. The walk is now where `entry` is.
    pub(super) fn covers(&mut self, entry: &Entry, is_directory: bool) -> bool {
        if entry.name == ".git" {
            return true;
        }
        while self.files.pop_if(|(directory, _)| !entry.real_path.starts_with(directory)).is_some() {}
        // The file nearest to the entry that has anything to say decides (gitignore(5)).
        let verdict = self.files.iter().rev().find_map(|(directory, file)| {
            let below = entry.real_path.strip_prefix(directory).ok()?;
            let verdict = file.matched(below, is_directory);
            (!verdict.is_none()).then(|| verdict.is_ignore())
        });
        verdict.unwrap_or(false)
    }
}

/// Lines that are no pattern ignore nothing, as in git.
fn read(dir: &Dir, path: &Path) -> Option<Gitignore> {
    let (file, _) = open_regular("path", dir, path, FollowSymlinks::No).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_IGNORE_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(".");
    for line in text.trim_start_matches('\u{feff}').lines().take(MAX_IGNORE_LINES) {
        // A line that is no pattern changes nothing.
        drop(builder.add_line(None, line).map(|_| ()));
    }
    builder.build().ok().filter(|file| !file.is_empty())
}
