//! `fs.search`: lines of text that hold something, in the files below a directory.

mod filter;
mod pattern;

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use cap_fs_ext::FollowSymlinks;
use cap_std::fs::Dir;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::filter::{Ignores, NameFilter};
use self::pattern::{Found, Pattern};
use super::conceal::Concealed;
use super::items::{Full, Items};
use super::path::RelPath;
use super::root::{Root, open_regular};
use super::walk::{Entry, Walk, WalkOptions};
use crate::toolkit::deadline::Deadline;
use crate::toolkit::definition::ToolDef;
use crate::toolkit::error::{ToolError, ToolResult};

/// The most matches of one answer.
pub const MAX_MATCHES: u32 = 1_000;
/// A longer file is skipped, in bytes.
pub const MAX_FILE_BYTES: u64 = 8 << 20;
/// The most files that one call looks into.
pub const MAX_FILES: u64 = 50_000;
/// The most bytes that one call reads from files.
pub const MAX_TOTAL_BYTES: u64 = 1 << 30;
/// The most files and directories that one call comes by.
pub const MAX_ENTRIES: usize = 200_000;

/// What `fs.search` says of itself.
#[must_use]
pub fn definition() -> ToolDef {
    ToolDef::reading(
        "fs.search",
        "Finds lines of text in the files below a directory. Looks for the pattern as it stands, or as a regular expression when asked. \
         Files come in the order of their paths; binary files, files over 8 MiB, symbolic links and names that begin with a dot are left out.",
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,"required":["pattern"],"properties":{
"pattern":{"type":"string","minLength":1,"maxLength":1024,"description":"what to look for in each line"},
"regex":{"type":"boolean","default":false,"description":"the pattern is a regular expression (no look-around, no back-references)"},
"case_insensitive":{"type":"boolean","default":false,"description":"capital and small letters are the same"},
"path":{"type":"string","minLength":1,"maxLength":4095,"default":".","description":"the directory or file to search, relative to the root"},
"glob":{"type":"string","minLength":1,"maxLength":256,"description":"only files like this: *.rs by name, src/**/*.rs by path from the root"},
"gitignore":{"type":"boolean","default":false,"description":"leave out what .gitignore files name"},
"hidden":{"type":"boolean","default":false,"description":"look into names that begin with a dot too"},
"max":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991,"default":100,"description":"the most matches, from 1 to 1000"}}}"#,
    )
    .with_clamp("/max", 1, i64::from(MAX_MATCHES))
}

/// Arguments of `fs.search`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    /// What to look for in each line.
    pub pattern: String,
    /// Whether the pattern is a regular expression, in the syntax of the `regex` crate.
    #[serde(default)]
    pub regex: bool,
    /// Whether capital and small letters are the same.
    #[serde(default)]
    pub case_insensitive: bool,
    /// The directory or file to search, relative to the root.
    #[serde(default = "default_path")]
    pub path: String,
    /// Which files to look into: by name, or by path from the root when it holds a `/`.
    #[serde(default)]
    pub glob: Option<String>,
    /// Whether to leave out what `.gitignore` files name.
    #[serde(default)]
    pub gitignore: bool,
    /// Whether to look into names that begin with a dot.
    #[serde(default)]
    pub hidden: bool,
    /// The most matches, from 1 to [`MAX_MATCHES`].
    #[serde(default = "default_max")]
    pub max: u32,
}

fn default_path() -> String {
    ".".to_owned()
}

const fn default_max() -> u32 {
    100
}

/// Searches, and answers `{"path", "matches", "files_searched", "skipped", "truncated"}`.
///
/// - `matches`: `{"path", "line", "column", "text"}`, one for each line that holds the pattern. `line` and `column` count from
///   1, the column in characters. At most 400 characters of the line are in `text`, around the match, with `"cut": true` when the line is longer.
///   Bytes that are not UTF-8 are replaced. A path that had to be escaped has `"escaped": true`.
/// - `skipped`: `{"binary", "too_large", "unreadable"}`, how many files were left out because they hold a NUL, are longer than
///   [`MAX_FILE_BYTES`], or could not be read (directories among them).
/// - `truncated`: whether there is, or may be, more; then `truncated_by` says which bound was met: `max`, `files`,
///   `bytes`, `entries`, `size` (512 KiB of matches) or `line_length` (see below).
///
/// Of a line longer than 32 KiB, a regular expression sees the first 32 KiB only.
///
/// # Errors
///
/// Refuses a path that leads out of the root or cannot be read, and a pattern or glob that is none; stops at the deadline.
pub fn search(root: &Root, args: &SearchArgs, deadline: Deadline<'_>) -> ToolResult {
    deadline.check()?;
    let path = RelPath::parse("path", &args.path)?;
    let pattern = Pattern::new(&args.pattern, args.regex, args.case_insensitive)?;
    let names = args.glob.as_deref().map(NameFilter::new).transpose()?;
    let max = usize::try_from(args.max.clamp(1, MAX_MATCHES)).unwrap_or(1);
    let concealed = Concealed::of(root);
    concealed.admits(root, &path)?;
    let mut search = Search {
        concealed,
        pattern,
        deadline,
        matches: Items::new(max),
        files: 0,
        bytes: 0,
        skipped: Skipped::default(),
        truncated_by: None,
        buffer: Vec::new(),
    };
    let is_directory = root.dir().metadata(&path).map_err(|error| ToolError::refused_io("path", &error))?.is_dir();
    if is_directory {
        search.tree(root, &path, args, names.as_ref())?;
    } else {
        open_regular("path", root.dir(), path.as_ref(), FollowSymlinks::Yes)?;
        let _one_file_is_all = search.file(root.dir(), path.as_ref(), FollowSymlinks::Yes, path.as_str(), false)?;
    }
    Ok(search.answer(&path))
}

/// The work of one call.
struct Search<'a> {
    concealed: Concealed,
    pattern: Pattern,
    deadline: Deadline<'a>,
    matches: Items,
    files: u64,
    bytes: u64,
    skipped: Skipped,
    truncated_by: Option<&'static str>,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
struct Skipped {
    binary: u64,
    too_large: u64,
    unreadable: u64,
}

impl Search<'_> {
    fn tree(
        &mut self,
        root: &Root,
        path: &RelPath,
        args: &SearchArgs,
        names: Option<&NameFilter>,
    ) -> Result<(), ToolError> {
        let options = WalkOptions { recursive: true, hidden: args.hidden, max_entries: MAX_ENTRIES };
        let mut ignores = args.gitignore.then(|| Ignores::above(root.dir(), path));
        let mut walk = Walk::new(root.open_dir("path", path)?, path.as_str(), options, self.deadline)?;
        while let Some(entry) = walk.next()? {
            let is_directory = entry.metadata.is_dir();
            if ignores.as_mut().is_some_and(|ignores| ignores.covers(&entry, is_directory)) {
                continue;
            }
            if self.concealed.covers(&entry.metadata) {
                continue;
            }
            if is_directory {
                if let Some(ignores) = ignores.as_mut() {
                    ignores.enter(&entry.dir, Path::new(&entry.name), entry.real_path.clone());
                }
                walk.go_into(entry);
            } else if entry.metadata.is_file()
                && names.is_none_or(|names| names.admits(&entry))
                && self.entry(&entry)?.is_break()
            {
                break;
            }
        }
        self.skipped.unreadable = self.skipped.unreadable.saturating_add(walk.unreadable);
        if walk.cut {
            self.truncated_by = self.truncated_by.or(Some("entries"));
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) -> Result<ControlFlow<()>, ToolError> {
        self.file(&entry.dir, Path::new(&entry.name), FollowSymlinks::No, &entry.path, entry.shown_name.1)
    }

    /// Searches the file `name` in `dir`. Breaks when the call has all that it may give.
    fn file(
        &mut self,
        dir: &Dir,
        name: &Path,
        follow: FollowSymlinks,
        path: &str,
        escaped: bool,
    ) -> Result<ControlFlow<()>, ToolError> {
        self.deadline.check()?;
        if self.files >= MAX_FILES || self.bytes >= MAX_TOTAL_BYTES {
            self.truncated_by = Some(if self.files >= MAX_FILES { "files" } else { "bytes" });
            return Ok(ControlFlow::Break(()));
        }
        let Ok((file, metadata)) = open_regular("path", dir, name, follow) else {
            self.skipped.unreadable = self.skipped.unreadable.saturating_add(1);
            return Ok(ControlFlow::Continue(()));
        };
        // By a link, say, from elsewhere.
        if self.concealed.covers(&metadata) {
            self.skipped.unreadable = self.skipped.unreadable.saturating_add(1);
            return Ok(ControlFlow::Continue(()));
        }
        self.buffer.clear();
        // A size is only what the file system says. The bytes read are counted as well.
        let read = if metadata.len() > MAX_FILE_BYTES {
            Ok(0)
        } else {
            file.take(MAX_FILE_BYTES.saturating_add(1)).read_to_end(&mut self.buffer)
        };
        let length = u64::try_from(self.buffer.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(length);
        let skipped = match read {
            Err(_) => Some(&mut self.skipped.unreadable),
            Ok(_) if metadata.len().max(length) > MAX_FILE_BYTES => Some(&mut self.skipped.too_large),
            Ok(_) if self.buffer.contains(&0) => Some(&mut self.skipped.binary),
            Ok(_) => None,
        };
        if let Some(count) = skipped {
            *count = count.saturating_add(1);
            return Ok(ControlFlow::Continue(()));
        }
        self.files = self.files.saturating_add(1);
        let matches = &mut self.matches;
        let mut full = None;
        // The first match that is not taken tells that there is more.
        let (flow, long_line) = self.pattern.search(&self.buffer, self.deadline, |found| {
            match matches.push(describe(path, escaped, &found)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(why) => {
                    full = Some(why);
                    ControlFlow::Break(())
                }
            }
        })?;
        match full {
            Some(Full::Number) => self.truncated_by = Some("max"),
            Some(Full::Size) => self.truncated_by = Some("size"),
            None if long_line => self.truncated_by = self.truncated_by.or(Some("line_length")),
            None => {}
        }
        Ok(flow)
    }

    fn answer(self, path: &RelPath) -> Value {
        let Skipped { binary, too_large, unreadable } = self.skipped;
        let mut answer = json!({
            "path": path.as_str(),
            "matches": self.matches.into_value(),
            "files_searched": self.files,
            "skipped": {"binary": binary, "too_large": too_large, "unreadable": unreadable},
            "truncated": self.truncated_by.is_some(),
        });
        if let (Some(bound), Some(answer)) = (self.truncated_by, answer.as_object_mut()) {
            answer.insert("truncated_by".to_owned(), json!(bound));
        }
        answer
    }
}

fn describe(path: &str, escaped: bool, found: &Found) -> Value {
    let mut shown = Map::new();
    shown.insert("path".to_owned(), json!(path));
    shown.insert("line".to_owned(), json!(found.line));
    shown.insert("column".to_owned(), json!(found.column));
    shown.insert("text".to_owned(), json!(found.text));
    if found.cut {
        shown.insert("cut".to_owned(), json!(true));
    }
    if escaped {
        shown.insert("escaped".to_owned(), json!(true));
    }
    Value::Object(shown)
}
