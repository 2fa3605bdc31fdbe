//! `fs.list`: what is in a directory.

use cap_std::time::SystemTime;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::items::Items;
use super::path::RelPath;
use super::root::{Root, kind};
use super::walk::{Entry, Walk, WalkOptions};
use crate::toolkit::deadline::Deadline;
use crate::toolkit::definition::ToolDef;
use crate::toolkit::error::ToolResult;

/// The most entries of one answer.
pub const MAX_ENTRIES: u32 = 1_000;

/// What `fs.list` says of itself.
#[must_use]
pub fn definition() -> ToolDef {
    ToolDef::reading(
        "fs.list",
        "Lists a directory: names, kinds, sizes and times of change, sorted by name. Symbolic links are listed, not followed.",
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,"properties":{
"path":{"type":"string","minLength":1,"maxLength":4095,"default":".","description":"the directory, relative to the root"},
"recursive":{"type":"boolean","default":false,"description":"list what is in its directories too"},
"hidden":{"type":"boolean","default":false,"description":"list names that begin with a dot too"},
"max":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991,"default":200,"description":"the most entries, from 1 to 1000"}}}"#,
    )
    .with_clamp("/max", 1, i64::from(MAX_ENTRIES))
}

/// Arguments of `fs.list`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListArgs {
    /// The directory, relative to the root.
    pub path: String,
    /// Whether to list what is in its directories too.
    pub recursive: bool,
    /// Whether to list names that begin with a dot.
    pub hidden: bool,
    /// The most entries, from 1 to [`MAX_ENTRIES`].
    pub max: u32,
}

impl Default for ListArgs {
    fn default() -> Self {
        Self { path: ".".to_owned(), recursive: false, hidden: false, max: 200 }
    }
}

/// Lists a directory as `{"path", "entries": [{"path", "name", "kind", "size", "modified"}], "truncated", "unreadable"}`.
///
/// `kind` is `file`, `directory`, `symlink` or `other`; only a file has a `size`, in bytes. A name that is not UTF-8 is shown with
/// `\xNN` for each byte that is not, and marked `"escaped": true`. `truncated` says that there is more than the entries here: more than was
/// asked for, deeper than a walk goes, or more than 512 KiB of them. `unreadable` counts directories that could not be read.
///
/// # Errors
///
/// Refuses a path that leads out of the root or is no directory that can be read; stops at the deadline.
pub fn list(root: &Root, args: &ListArgs, deadline: Deadline<'_>) -> ToolResult {
    deadline.check()?;
    let path = RelPath::parse("path", &args.path)?;
    let dir = root.open_dir("path", &path)?;
    let max_entries = usize::try_from(args.max.clamp(1, MAX_ENTRIES)).unwrap_or(1);
    let options = WalkOptions { recursive: args.recursive, hidden: args.hidden, max_entries };
    let mut walk = Walk::new(dir, path.as_str(), options, deadline)?;
    let mut entries = Items::new(max_entries);
    while let Some(entry) = walk.next()? {
        if entries.push(describe(&entry)).is_err() {
            walk.cut = true;
            break;
        }
        if entry.metadata.is_dir() {
            walk.go_into(entry);
        }
    }
    Ok(json!({
        "path": path.as_str(),
        "entries": entries.into_value(),
        "truncated": walk.cut,
        "unreadable": walk.unreadable,
    }))
}

fn describe(entry: &Entry) -> Value {
    let mut shown = Map::new();
    let (name, escaped) = &entry.shown_name;
    shown.insert("path".to_owned(), json!(entry.path));
    shown.insert("name".to_owned(), json!(name));
    shown.insert("kind".to_owned(), json!(kind(entry.metadata.file_type())));
    if entry.metadata.is_file() {
        shown.insert("size".to_owned(), json!(entry.metadata.len()));
    }
    if let Some(modified) = entry.metadata.modified().ok().and_then(rfc3339) {
        shown.insert("modified".to_owned(), json!(modified));
    }
    if *escaped {
        shown.insert("escaped".to_owned(), json!(true));
    }
    Value::Object(shown)
}

/// In UTC, to the second. `None` for a time beyond the calendar, which a file system can hold.
fn rfc3339(time: SystemTime) -> Option<String> {
    let moment = jiff::Timestamp::try_from(time.into_std()).ok()?;
    Some(format!("{moment:.0}"))
}
