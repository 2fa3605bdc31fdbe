//! `fs.write`: puts text into a file.

mod protect;
mod target;

use std::io::{self, Write};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Metadata, OpenOptions};
use serde::Deserialize;
use serde_json::json;

use self::protect::Protected;
use self::target::{Draft, Target};
use super::path::RelPath;
use super::root::{Root, kind};
use crate::toolkit::deadline::Deadline;
use crate::toolkit::definition::ToolDef;
use crate::toolkit::error::{ToolError, ToolResult};

/// The most bytes that one call writes.
pub const MAX_WRITE_BYTES: usize = 1 << 20;

/// What `fs.write` says of itself.
#[must_use]
pub fn definition() -> ToolDef {
    ToolDef {
        mutating: true,
        read_only: false,
        confirm_by_caller: true,
        ..ToolDef::reading(
            "fs.write",
            "Writes text into a file: a new one, in the place of one, or at the end of one. A file is replaced as a whole or not at all.",
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,"required":["path","content"],"properties":{
"path":{"type":"string","minLength":1,"maxLength":4095,"description":"the file, relative to the root"},
"content":{"type":"string","maxLength":1048576,"description":"the text, at most 1 MiB in UTF-8"},
"mode":{"type":"string","maxLength":9,"enum":["create","overwrite","append"],"default":"create","description":"create refuses a file that exists, overwrite replaces it, append adds to its end"},
"create_dirs":{"type":"boolean","default":false,"description":"make the directories of the path that are missing"}}}"#,
        )
    }
}

/// What to do with a file that exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteMode {
    /// Refuse it.
    #[default]
    Create,
    /// Replace its content; its permission bits stay.
    Overwrite,
    /// Add to its end.
    Append,
}

/// Arguments of `fs.write`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteArgs {
    /// The file, relative to the root.
    pub path: String,
    /// The text, at most [`MAX_WRITE_BYTES`] in UTF-8.
    pub content: String,
    /// What to do with a file that exists.
    #[serde(default)]
    pub mode: WriteMode,
    /// Whether to make the directories of the path that are missing.
    #[serde(default)]
    pub create_dirs: bool,
}

/// Writes, and answers `{"path", "bytes_written", "created", "size"}`: `created` says whether the file is new, `size` how long it
/// is now.
///
/// `create` and `overwrite` write beside the file, and put the result in its place in one step: whoever reads meanwhile
/// sees the old content or the new, and a crash leaves one of the two (and perhaps a file `.callgate-*.tmp`). An overwritten
/// file keeps its permission bits without set-uid and set-gid, but not its owner, extended attributes or other hard links.
/// Where the file system knows no hard links, a created file can be seen before it is complete. `append` adds in place; a crash can leave
/// a part of the text.
///
/// # Errors
///
/// Refuses a path that leads out of the root; whatever exists and is not a regular file, symbolic links among them; a
/// read-only file; what [`Root::protect`] names (invariant P6); and appending to a file with a second hard link, which may lie outside
/// of the root.
pub fn write(root: &Root, args: &WriteArgs, deadline: Deadline<'_>) -> ToolResult {
    deadline.check()?;
    let path = RelPath::parse("path", &args.path)?;
    let Some((parent, name)) = path.split() else {
        return Err(ToolError::refused("path: it is a directory"));
    };
    if args.content.len() > MAX_WRITE_BYTES {
        return Err(ToolError::refused("content: is longer than 1 MiB"));
    }
    let protected = Protected::of(root);
    let target = Target::find(root, parent, name, args.create_dirs, &protected)?;
    let existing = existing(&target, &protected)?;
    let content = args.content.as_bytes();
    let size = match (args.mode, &existing) {
        (WriteMode::Create, Some(_)) => {
            return Err(ToolError::refused("path: it exists already; mode overwrite replaces it"));
        }
        (WriteMode::Create, None) => create(&target, content, deadline)?,
        (WriteMode::Overwrite, existing) => overwrite(&target, content, existing.as_ref(), deadline)?,
        (WriteMode::Append, _) => append(&target, content, &protected)?,
    };
    Ok(json!({
        "path": path.as_str(),
        "bytes_written": content.len(),
        "created": existing.is_none(),
        "size": size,
    }))
}

fn failed(error: &io::Error) -> ToolError {
    ToolError::failed_io("path", error)
}

/// What is in the file's place; refused unless it is a regular file that may be written.
fn existing(target: &Target, protected: &Protected<'_>) -> Result<Option<Metadata>, ToolError> {
    let metadata = match target.dir.symlink_metadata(&target.name) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ToolError::refused_io("path", &error)),
    };
    writable(&metadata)?;
    protected.admits(&metadata)?;
    Ok(Some(metadata))
}

fn writable(metadata: &Metadata) -> Result<(), ToolError> {
    let reason = match kind(metadata.file_type()) {
        "file" if metadata.permissions().readonly() => "it is read-only",
        "file" => return Ok(()),
        "directory" => "it is a directory",
        "symlink" => "it is a symbolic link; name the file that it leads to",
        _ => "it is neither a file nor a directory",
    };
    Err(ToolError::refused(format!("path: {reason}")))
}

fn create(target: &Target, content: &[u8], deadline: Deadline<'_>) -> Result<u64, ToolError> {
    let draft = Draft::write(target, content, None)?;
    deadline.check()?;
    let size = draft.size();
    match draft.publish_new() {
        Ok(()) => Ok(size),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(ToolError::refused_io("path", &error)),
        Err(error) => Err(failed(&error)),
    }
}

fn overwrite(
    target: &Target,
    content: &[u8],
    existing: Option<&Metadata>,
    deadline: Deadline<'_>,
) -> Result<u64, ToolError> {
    let draft = Draft::write(target, content, existing)?;
    deadline.check()?;
    let size = draft.size();
    draft.publish().map_err(|error| failed(&error))?;
    Ok(size)
}

fn append(target: &Target, content: &[u8], protected: &Protected<'_>) -> Result<u64, ToolError> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).follow(FollowSymlinks::No).nonblock(true);
    let mut file =
        target.dir.open_with(&target.name, &options).map_err(|error| ToolError::refused_io("path", &error))?;
    // What was looked at before may have been swapped since. This is the handle that is written to.
    let metadata = file.metadata().map_err(|error| ToolError::refused_io("path", &error))?;
    writable(&metadata)?;
    protected.admits(&metadata)?;
    if protect::links(&metadata) > 1 {
        return Err(ToolError::refused("path: the file has a second hard link; mode overwrite replaces this one"));
    }
    file.write_all(content).and_then(|()| file.sync_all()).map_err(|error| failed(&error))?;
    target.sync();
    file.metadata().map(|metadata| metadata.len()).map_err(|error| failed(&error))
}
