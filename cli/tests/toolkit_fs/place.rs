//! A root to work in, and clocks.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use callgate::toolkit::Deadline;
use callgate::toolkit::fs::Root;
use callgate_core::time::{Clock, Instant, Now};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// A clock that stands still.
pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> Now {
        Now::default()
    }
}

/// A clock that goes on by a second whenever it is read.
pub(crate) struct Counting(pub(crate) Cell<u64>);

impl Clock for Counting {
    fn now(&self) -> Now {
        self.0.set(self.0.get() + 1_000_000_000);
        Now { monotonic: Instant::from_nanos(self.0.get()), ..Now::default() }
    }
}

pub(crate) fn never() -> Deadline<'static> {
    Deadline::never(&Still)
}

/// A root in a directory of its own, beside a directory `outside` that nothing may reach.
pub(crate) struct Place {
    pub(crate) all: TempDir,
    pub(crate) root: Root,
}

impl Place {
    pub(crate) fn new() -> Self {
        let all = tempfile::tempdir().unwrap();
        fs::create_dir(all.path().join("inside")).unwrap();
        fs::create_dir(all.path().join("outside")).unwrap();
        fs::write(all.path().join("outside/secret"), "CANARY").unwrap();
        let root = Root::open(&all.path().join("inside")).unwrap();
        Self { all, root }
    }

    pub(crate) fn inside(&self) -> PathBuf {
        self.all.path().join("inside")
    }

    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.inside().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn link(&self, to: impl AsRef<Path>, at: &str) {
        symlink(to, self.inside().join(at)).unwrap();
    }

    pub(crate) fn fifo(&self, at: &str) {
        mknodat(CWD, self.inside().join(at), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }
}
