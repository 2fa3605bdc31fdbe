//! A log of text is put aside as a segment, in steps after each of which it is whole.
//!
//! The log gets its second name among the segments, then the next one takes its place, then the anchor follows. There is a log under
//! its name at every moment, and whoever is killed leaves one of three things behind: the second name alone, which the next rotation takes
//! for its own; the file of the next log, which it replaces; or an anchor that is behind, and the first line of the log says that it
//! follows it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use callgate_core::audit::chain::Head;

use super::anchor::Anchor;
use super::disk::Disk;
use super::error::JsonlError;
use super::jsonl::{JsonlAudit, Log, Unlock};
use super::line;
use super::segment::{self, Segments};
use crate::private_file::{self, Open};

/// What became of it.
pub(super) enum Rotated {
    /// The log was put aside up to here; `None` where it held nothing.
    To(Option<Head>),
    /// Somebody else put it aside first.
    Moved,
}

/// Does it. Whatever happens, the log has to be opened anew afterwards.
pub(super) fn rotate(audit: &JsonlAudit, disk: &Disk, log: &mut Log) -> Result<Rotated, JsonlError> {
    let path = &audit.path;
    let io = |doing| JsonlError::io(path, doing);
    private_file::lock(&disk.log, path, audit.options.wait)?;
    let _unlocked_at_the_end = Unlock(&disk.log);
    if !disk.is_at(path) {
        return Ok(Rotated::Moved);
    }
    audit.find_end(disk, log)?;
    let end = log.at.head;
    let Some(begin) = segment::begins_after(&disk.log).map_err(io("read"))? else {
        return Err(JsonlError::NoAnchor { path: path.clone() });
    };
    // One that holds nothing but its own beginning is new.
    let least = if begin.seq == 0 { 0 } else { 1 };
    if end.seq.saturating_sub(begin.seq) <= least {
        return Ok(Rotated::To(None));
    }
    disk.sync().map_err(io("write to"))?;
    let segments = Segments::of(path);
    segments.prepare()?;
    let segment = segments.path_of(begin.seq.saturating_add(1));
    disk.attempt(|| give_name(path, &segment)).map_err(io("give a second name to"))?;
    disk.attempt(|| private_file::sync_directory(&segment).map_err(io::Error::other)).map_err(io("put aside"))?;
    segment::passed("segment_named");

    let mut text = String::new();
    let now = audit.options.clock.now().wall;
    let head = line::append(&end, &segment::begins(now, &end)?, &mut text)?;
    let next = path.with_added_extension("next");
    let file = disk.attempt(|| make(&next, &text)).map_err(io("make the next segment of"))?;
    // Before it is the log: nobody writes to it until the anchor says where it is.
    private_file::lock(&file, &next, audit.options.wait)?;
    let _unlocked_too = Unlock(&file);
    segment::passed("next_made");
    disk.attempt(|| fs::rename(&next, path)).map_err(io("replace"))?;
    disk.attempt(|| private_file::sync_directory(path).map_err(io::Error::other)).map_err(io("replace"))?;
    segment::passed("log_replaced");
    let anchor = Anchor { head, bytes: text.len() as u64 };
    // The log was rotated, whatever becomes of its anchor.
    let anchored = disk.anchor(&anchor, log.slot).and_then(|slot| disk.sync_anchor().map(|()| slot));
    log.at = anchor;
    match anchored {
        Ok(slot) => (log.anchored, log.slot) = (anchor, slot),
        Err(error) => tracing::error!(%error, path = %path.display(), "the anchor of the audit log was not written"),
    }
    Ok(Rotated::To(Some(end)))
}

/// Gives the log a second name, unless it has it from a rotation that did not come to its end.
fn give_name(log: &Path, segment: &Path) -> io::Result<()> {
    match fs::hard_link(log, segment) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let same = private_file::look_at(log).ok() == private_file::look_at(segment).ok();
            if same { Ok(()) } else { Err(error) }
        }
        result => result,
    }
}

/// Makes the file of the next log, instead of what a rotation has left that did not come to its end.
fn make(next: &Path, text: &str) -> io::Result<File> {
    match fs::remove_file(next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private_file::open(next, Open::New).map_err(io::Error::other)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(file)
}
