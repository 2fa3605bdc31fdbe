//! A log to read, whatever it is kept as.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use callgate_core::audit::chain::Head;
use callgate_sqlite::{Database, Lines};
use callgate_std::audit::Segments;
use callgate_std::audit::segment::{SegmentLines, begins_after};

use super::super::Setting;
use crate::assemble::Plan;
use crate::config::Keeper;
use crate::terminal::shown_path;
use crate::trouble::Trouble;

/// What every SQLite database begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A log to read.
pub(super) enum Source {
    /// Lines of JSON.
    Text,
    /// A database.
    Database(Box<Database>),
    /// There is none.
    Nothing,
}

impl Source {
    /// Looks what there is. Unlike a gate that opens its log, this makes nothing.
    ///
    /// # Errors
    /// What is there can't be read.
    pub(super) fn of(file: &Path) -> Result<Self, Trouble> {
        let mut start = [0; MAGIC.len()];
        let read = match File::open(file) {
            Ok(handle) => handle.take(MAGIC.len() as u64).read(&mut start),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => Err(error),
        };
        match read {
            Ok(_) if start == *MAGIC || Keeper::of(file) == Keeper::Database => Database::open(file)
                .map(|database| Self::Database(Box::new(database)))
                .map_err(|error| unreadable(file, &error)),
            Ok(_) => Ok(Self::Text),
            Err(error) => Err(unreadable(file, &error)),
        }
    }
}

/// The lines of a log, those of its segments first, and the head that was recorded for it where it is a database.
///
/// # Errors
/// There is none, or it can't be read.
pub(super) fn with_lines<R>(
    file: &Path,
    read: impl FnOnce(&mut dyn BufRead, Option<Head>) -> Result<R, Trouble>,
) -> Result<R, Trouble> {
    let unreadable = |error: io::Error| unreadable(file, &error);
    match Source::of(file)? {
        Source::Nothing => Err(missing(file)),
        Source::Text => {
            let mut log = File::open(file).map_err(unreadable)?;
            let begin = begins_after(&log).map_err(unreadable)?.unwrap_or(Head::EMPTY);
            log.rewind().map_err(unreadable)?;
            let segments = Segments::of(file).before(begin.seq.saturating_add(1)).map_err(unreadable)?;
            read(&mut SegmentLines::of(segments).chain(BufReader::new(log)), None)
        }
        Source::Database(database) => {
            let mut lines = Lines::all(&database).map_err(unreadable)?;
            let head = lines.head();
            read(&mut lines, Some(head))
        }
    }
}

/// The log that is named, else that of the configuration.
pub(super) fn log_file(named: Option<&Path>, setting: &Setting) -> Result<PathBuf, Trouble> {
    match named {
        Some(file) => Ok(file.to_owned()),
        None => Ok(Plan::of(&setting.config()?)?.files().audit.clone()),
    }
}

pub(super) fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> Trouble {
    Trouble::failed(format!("the log {} can't be read: {error}", shown_path(file)))
}

/// There is no log where one is asked for.
pub(super) fn missing(file: &Path) -> Trouble {
    Trouble::failed(format!("there is no log at {}", shown_path(file)))
        .with_help("a log is made by the first call; if there were calls, somebody took it away")
}
