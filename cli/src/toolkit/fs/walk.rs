//! Going through a directory and what is below it, in one order on every machine.

use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, Metadata};

use super::path::{MAX_DEPTH, join, shown};
use crate::toolkit::deadline::Deadline;
use crate::toolkit::error::ToolError;

/// How many names of a directory are read between two looks at the deadline.
const NAMES_PER_CHECK: usize = 256;

/// One thing that a walk came by.
pub(super) struct Entry {
    /// The directory it lies in; what follows is only as true as that handle.
    pub dir: Rc<Dir>,
    /// Its name in that directory.
    pub name: OsString,
    /// Its name as a caller sees it, and whether it had to be escaped.
    pub shown_name: (String, bool),
    /// Its path from the root, as a caller sees it.
    pub path: String,
    /// Its path from the root.
    pub real_path: PathBuf,
    /// What it was when the walk came by. Of the name itself, where it is a symbolic link.
    pub metadata: Metadata,
}

/// What a walk leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WalkOptions {
    /// Goes into directories.
    pub recursive: bool,
    /// Shows names that begin with a dot, and goes into them.
    pub hidden: bool,
    /// The most entries that the walk comes by.
    pub max_entries: usize,
}

/// A walk: each directory before what is in it, names in the order of their bytes, symbolic links never followed.
///
/// Each directory is opened from the handle of the one above it and not through a symbolic link, so the walk cannot leave the
/// tree it began in, whatever is renamed meanwhile. It holds one handle for each level, of at most [`MAX_DEPTH`], and
/// at most `max_entries` names.
pub(super) struct Walk<'a> {
    options: WalkOptions,
    deadline: Deadline<'a>,
    levels: Vec<Level>,
    /// The directory that was handed out last, to be gone into before anything else.
    descend: Option<Entry>,
    left: usize,
    /// Directories that could not be read.
    pub unreadable: u64,
    /// Whether something was left out because of a bound.
    pub cut: bool,
}

struct Level {
    dir: Rc<Dir>,
    path: String,
    real_path: PathBuf,
    /// In reverse, so that the next one is the last.
    names: Vec<OsString>,
}

impl<'a> Walk<'a> {
    /// A walk through `dir`, which lies at `path` below the root.
    pub(super) fn new(dir: Dir, path: &str, options: WalkOptions, deadline: Deadline<'a>) -> Result<Self, ToolError> {
        let mut walk = Self {
            options,
            deadline,
            levels: Vec::new(),
            descend: None,
            left: options.max_entries,
            unreadable: 0,
            cut: false,
        };
        let real_path = if path == "." { PathBuf::new() } else { PathBuf::from(path) };
        walk.enter(Rc::new(dir), path.to_owned(), real_path)?;
        if walk.levels.is_empty() {
            return Err(ToolError::refused("path: the directory could not be read"));
        }
        Ok(walk)
    }

    /// The next entry, or `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, ToolError> {
        if let Some(directory) = self.descend.take() {
            self.descend_into(directory)?;
        }
        loop {
            let Some(level) = self.levels.last_mut() else {
                return Ok(None);
            };
            let Some(name) = level.names.pop() else {
                self.levels.pop();
                continue;
            };
            self.deadline.check()?;
            let Some(left) = self.left.checked_sub(1) else {
                self.cut = true;
                return Ok(None);
            };
            // Gone since its directory was read: as if it had never been there.
            let Ok(metadata) = level.dir.symlink_metadata(&name) else {
                continue;
            };
            self.left = left;
            let shown_name = shown(&name);
            let entry = Entry {
                dir: Rc::clone(&level.dir),
                path: join(&level.path, &shown_name.0),
                real_path: level.real_path.join(&name),
                shown_name,
                name,
                metadata,
            };
            return Ok(Some(entry));
        }
    }

    /// Goes into `directory`, which [`Walk::next`] handed out last, when it is asked for the next entry.
    pub(super) fn go_into(&mut self, directory: Entry) {
        if self.options.recursive {
            self.descend = Some(directory);
        }
    }

    fn descend_into(&mut self, directory: Entry) -> Result<(), ToolError> {
        if self.levels.len() >= MAX_DEPTH {
            self.cut = true;
            return Ok(());
        }
        match directory.dir.open_dir_nofollow(&directory.name) {
            Ok(dir) => self.enter(Rc::new(dir), directory.path, directory.real_path),
            Err(_) => {
                self.unreadable = self.unreadable.saturating_add(1);
                Ok(())
            }
        }
    }

    fn enter(&mut self, dir: Rc<Dir>, path: String, real_path: PathBuf) -> Result<(), ToolError> {
        match self.names(&dir)? {
            Some(names) => self.levels.push(Level { dir, path, real_path, names }),
            None => self.unreadable = self.unreadable.saturating_add(1),
        }
        Ok(())
    }

    /// The first names in `dir`, as many as the walk may still come by and one more to tell that there are; in reverse.
    /// `None` when the directory cannot be read.
    fn names(&self, dir: &Dir) -> Result<Option<Vec<OsString>>, ToolError> {
        let Ok(entries) = dir.entries() else {
            return Ok(None);
        };
        let keep = self.left.saturating_add(1);
        let mut first = BinaryHeap::new();
        for (seen, entry) in entries.enumerate() {
            if seen % NAMES_PER_CHECK == 0 {
                self.deadline.check()?;
            }
            let Ok(entry) = entry else { return Ok(None) };
            let name = entry.file_name();
            if !self.options.hidden && name.as_encoded_bytes().first() == Some(&b'.') {
                continue;
            }
            first.push(name);
            if first.len() > keep {
                first.pop();
            }
        }
        let mut names = first.into_sorted_vec();
        names.reverse();
        Ok(Some(names))
    }
}
