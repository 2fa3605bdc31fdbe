//! The two files of a log, and every operation on them that can fail.

use std::fs::{self, File, Metadata};
use std::io;
#[cfg(not(test))]
use std::io::Write as _;
use std::path::Path;

use super::anchor::{self, Anchor, Slot};
use crate::private_file::{self, FileError, Open};

pub(super) struct Disk {
    pub(super) log: File,
    pub(super) anchor: File,
    #[cfg(test)]
    pub(super) faults: std::sync::Arc<faults::Faults>,
}

impl Disk {
    /// Opens the log and its anchor file; makes them where there are none, the anchor first, so that no log ever is without
    /// one unless somebody took it away.
    pub(super) fn open(
        path: &Path,
        anchor_path: &Path,
        #[cfg(test)] faults: &std::sync::Arc<faults::Faults>,
    ) -> Result<Self, FileError> {
        let anchor = private_file::open(anchor_path, Open::ReadWrite)?;
        let log = private_file::open(path, Open::Append)?;
        private_file::sync_directory(path)?;
        Ok(Self {
            log,
            anchor,
            #[cfg(test)]
            faults: std::sync::Arc::clone(faults),
        })
    }

    /// The length of the log.
    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(self.log.metadata()?.len())
    }

    /// Writes at the end of the log.
    pub(super) fn append(&self, text: &str) -> io::Result<()> {
        #[cfg(test)]
        return self.faults.append(&self.log, text);
        #[cfg(not(test))]
        (&self.log).write_all(text.as_bytes())
    }

    /// Waits until the log is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.attempt(|| self.log.sync_data())
    }

    /// Cuts the log off.
    pub(super) fn cut(&self, bytes: u64) -> io::Result<()> {
        self.attempt(|| self.log.set_len(bytes))
    }

    /// Writes the anchor and gives the slot for the next one.
    pub(super) fn anchor(&self, anchor: &Anchor, slot: Slot) -> io::Result<Slot> {
        self.attempt(|| anchor::write(&self.anchor, anchor, slot))
    }

    /// Waits until the anchor is on the disk.
    pub(super) fn sync_anchor(&self) -> io::Result<()> {
        self.attempt(|| self.anchor.sync_data())
    }

    /// One operation that can fail.
    pub(super) fn attempt<R>(&self, operation: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        #[cfg(test)]
        return self.faults.attempt(operation);
        #[cfg(not(test))]
        operation()
    }

    /// Whether `path` still leads to this log.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        is_same(&self.log, fs::symlink_metadata(path))
    }
}

/// Whether the log is the file that was found somewhere.
#[cfg(unix)]
pub(super) fn is_same(log: &File, found: io::Result<Metadata>) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    matches!((log.metadata(), found), (Ok(own), Ok(found)) if id(&own) == id(&found))
}

/// Whether the log is the file that was found somewhere: an open file cannot be replaced here.
#[cfg(not(unix))]
pub(super) fn is_same(_: &File, _: io::Result<Metadata>) -> bool {
    true
}

/// Faults of the disk, planted by tests: the n-th operation fails, before or after it took effect, or half way.
#[cfg(test)]
pub(super) mod faults {
    use std::fs::File;
    use std::io::{self, Write};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(in crate::audit) enum Mode {
        Before,
        HalfWay,
        After,
    }

    #[derive(Default)]
    pub(in crate::audit) struct Faults {
        /// How many operations there were.
        pub(in crate::audit) count: AtomicUsize,
        /// Which one fails, from 1; 0 for none.
        pub(in crate::audit) fails: AtomicUsize,
        /// And how many after it.
        pub(in crate::audit) more: AtomicUsize,
        pub(in crate::audit) mode: std::sync::Mutex<Option<Mode>>,
    }

    impl Faults {
        fn due(&self) -> Option<Mode> {
            let now = self.count.fetch_add(1, Ordering::Relaxed) + 1;
            let first = self.fails.load(Ordering::Relaxed);
            let last = first + self.more.load(Ordering::Relaxed);
            if first > 0 && (first..=last).contains(&now) { *self.mode.lock().ok()? } else { None }
        }

        pub(super) fn attempt<R>(&self, operation: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
            let planted = || io::Error::other("planted");
            match self.due() {
                None => operation(),
                Some(Mode::Before | Mode::HalfWay) => Err(planted()),
                Some(Mode::After) => operation().and(Err(planted())),
            }
        }

        pub(super) fn append(&self, mut log: &File, text: &str) -> io::Result<()> {
            match self.due() {
                None => log.write_all(text.as_bytes()),
                Some(mode) => {
                    let written = match mode {
                        Mode::Before => 0,
                        Mode::HalfWay => text.len() / 2,
                        Mode::After => text.len(),
                    };
                    log.write_all(text.as_bytes().get(..written).unwrap_or_default())?;
                    Err(io::Error::other("planted"))
                }
            }
        }
    }
}
