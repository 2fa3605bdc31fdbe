//! Finding a program, once.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use callgate_core::nearest::nearest;

use super::Problem;
use crate::toolkit::error::ToolError;

/// The most names in the directories of `PATH` that are looked at for a suggestion.
const MAX_SUGGESTED_FROM: usize = 20_000;

/// A program's file: where it is, and which file it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pinned {
    path: PathBuf,
    device: u64,
    number: u64,
}

impl Pinned {
    /// Finds `program`: an absolute path, or a plain name in the directories that `search` lists.
    ///
    /// A directory in the list that is not absolute (an empty one means the current directory to a shell) is passed over: what it
    /// means depends on where the gate was started.
    pub(super) fn find(program: &str, search: &OsStr) -> Result<Self, Problem> {
        let problem = |message: &str, help: &str| Err(Problem::new("program", message, help));
        if program.contains('\0') || program.is_empty() {
            return problem("no program has such a name", "write its full path, or its name");
        }
        if Path::new(program).is_absolute() {
            return match std::fs::metadata(program) {
                Ok(metadata) if is_program(&metadata) => Ok(Self::new(program.into(), &metadata)),
                Ok(_) => problem("this is no file that can be run", "write the path of a program"),
                Err(_) => problem("there is no such file", "write the path of a program"),
            };
        }
        if program.contains('/') {
            return problem("this is neither a full path nor a plain name", "write the full path");
        }
        let directories: Vec<PathBuf> =
            std::env::split_paths(search).filter(|directory| directory.is_absolute()).collect();
        let found = directories.iter().map(|directory| directory.join(program)).find_map(|path| {
            let metadata = std::fs::metadata(&path).ok()?;
            is_program(&metadata).then(|| Self::new(path, &metadata))
        });
        found.ok_or_else(|| {
            let near = suggestion(program, &directories).map(|near| format!("did you mean `{near}`?"));
            let help = near.unwrap_or_else(|| "install it, or write its full path".to_owned());
            Problem::new("program", "it is not in any directory of PATH", help)
        })
    }

    fn new(path: PathBuf, metadata: &Metadata) -> Self {
        Self { path, device: metadata.dev(), number: metadata.ino() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses when another file has taken the program's place.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        let same = std::fs::metadata(&self.path).is_ok_and(|metadata| {
            is_program(&metadata) && (metadata.dev(), metadata.ino()) == (self.device, self.number)
        });
        if same {
            Ok(())
        } else {
            Err(ToolError::refused("the program was replaced or removed since the gate was started"))
        }
    }
}

fn is_program(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

fn suggestion(program: &str, directories: &[PathBuf]) -> Option<String> {
    let entries = directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
    let names: Vec<String> =
        entries.take(MAX_SUGGESTED_FROM).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    nearest(program.chars(), names.iter().map(String::as_str)).map(str::to_owned)
}
