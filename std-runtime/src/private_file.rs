//! Files that belong to one user alone: how they are made, checked, locked and replaced.
//!
//! On Unix they have mode 0600 and no symbolic link leads to them. On other systems the access rights are those of the
//! directory, and only locking and replacing are as described here.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is wrong with a file of the gate's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Others could have a hand in it.
    #[error("{} is not used: {why}", path.display())]
    NotPrivate {
        /// The file.
        path: PathBuf,
        /// Why not, and what to do about it.
        why: &'static str,
    },
    /// Another process holds it.
    #[error("another process has held {} for {waited_ms} ms; try again, or find out who does", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// How long was waited, in milliseconds.
        waited_ms: u64,
    },
}

impl FileError {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), doing, source }
    }
}

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    /// To read; it must exist.
    Read,
    /// To read and write; made if it does not exist.
    ReadWrite,
    /// To read and append; made if it does not exist.
    Append,
    /// To write; it must not exist.
    New,
}

/// Opens the file, or says why it is not to be trusted.
pub(crate) fn open(path: &Path, how: Open) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    match how {
        Open::Read => options.read(true),
        Open::ReadWrite => options.read(true).write(true).create(true),
        Open::Append => options.read(true).append(true).create(true),
        Open::New => options.write(true).create_new(true),
    };
    access::private(&mut options);
    let file = options.open(path).map_err(|error| access::explain(path, error))?;
    access::check(&file, path)?;
    Ok(file)
}

/// Which file a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

/// Makes an empty file for its owner alone where there is none, for a library that opens it itself afterwards, and makes its name
/// outlive a loss of power.
///
/// Not beside a thread that opens the same file: a process loses its POSIX locks on a file when any of its descriptors of
/// that file is closed.
///
/// # Errors
/// The system refused.
pub fn make(path: &Path) -> Result<(), FileError> {
    match open(path, Open::New) {
        Ok(_) => sync_directory(path),
        Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Finds out which file `path` leads to, and whether others could have a hand in it, without opening it, so that no lock is
/// lost.
///
/// # Errors
/// The file is not there, or not to be trusted.
pub fn look_at(path: &Path) -> Result<Identity, FileError> {
    access::look_at(path)
}

/// Makes the directory of `path` if there is none (mode 0700), and checks that not everybody may replace files in it.
///
/// Whoever owns the directory can take the file away. That is trusted here: it is the operator's directory.
///
/// # Errors
/// The system refused, or everybody may replace files there.
pub fn prepare_directory(path: &Path) -> Result<(), FileError> {
    let directory = directory_of(path);
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    access::private_directory(&mut builder);
    builder.create(directory).map_err(FileError::io(directory, "make the directory"))?;
    access::check_directory(directory)
}

/// Reads the file whole; `None` when there is none.
///
/// # Errors
/// The file is not to be trusted, is longer than `max` bytes, or the system refused.
pub fn read(path: &Path, max: u64) -> Result<Option<Vec<u8>>, FileError> {
    let file = match open(path, Open::Read) {
        Ok(file) => file,
        Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    let read = file.take(max.saturating_add(1)).read_to_end(&mut content).map_err(FileError::io(path, "read"))?;
    if u64::try_from(read).unwrap_or(u64::MAX) > max {
        return Err(FileError::io(path, "read")(io::Error::from(io::ErrorKind::FileTooLarge)));
    }
    Ok(Some(content))
}

/// Changes the file in one step, alone among all processes that change it so: `change` gets what the file holds, and gives an
/// answer and what it is to hold instead, if anything. A lock stands beside the file, under its name with `.lock`; it is waited
/// for at most `wait`.
///
/// # Errors
/// The file is not to be trusted, is longer than `max` bytes, is held by another process, or the system refused; and what `change`
/// says. Nothing is changed then.
pub fn update<R, E: From<FileError>>(
    path: &Path,
    max: u64,
    wait: Duration,
    change: impl FnOnce(Option<&[u8]>) -> Result<(R, Option<Vec<u8>>), E>,
) -> Result<R, E> {
    let lock_path = path.with_added_extension("lock");
    let lock_file = open(&lock_path, Open::ReadWrite)?;
    lock(&lock_file, &lock_path, wait)?;
    let content = read(path, max)?;
    let (answer, new) = change(content.as_deref())?;
    if let Some(new) = new {
        replace(path, &new)?;
    }
    Ok(answer)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Takes the file's lock for this process alone; it ends when the file is closed, be it by the end of the process. Waits at
/// most `wait`.
pub(crate) fn lock(file: &File, path: &Path, wait: Duration) -> Result<(), FileError> {
    wait_for(|| file.try_lock(), path, wait)
}

/// The same beside others who only read.
pub(crate) fn lock_shared(file: &File, path: &Path, wait: Duration) -> Result<(), FileError> {
    wait_for(|| file.try_lock_shared(), path, wait)
}

fn wait_for(attempt: impl Fn() -> Result<(), TryLockError>, path: &Path, wait: Duration) -> Result<(), FileError> {
    let started = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(FileError::io(path, "lock")(error)),
            Err(TryLockError::WouldBlock) if started.elapsed() >= wait => {
                return Err(FileError::Busy { path: path.to_owned(), waited_ms: wait.as_millis() as u64 });
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause.min(wait));
                pause = (pause * 2).min(Duration::from_millis(20));
            }
        }
    }
}

/// Replaces the file's content at once and for good: whoever reads it, and whatever happens to the machine, there is the old
/// content or the new one. The caller holds a lock that keeps other writers out.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let new = path.with_added_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(FileError::io(&new, "remove what a killed process left of")(error));
        }
        _ => {}
    }
    let mut file = open(&new, Open::New)?;
    file.write_all(content).map_err(FileError::io(&new, "write"))?;
    file.sync_all().map_err(FileError::io(&new, "write"))?;
    fs::rename(&new, path).map_err(FileError::io(path, "replace"))?;
    sync_directory(path)
}

/// Makes sure that the names in the file's directory outlive a loss of power.
pub(crate) fn sync_directory(path: &Path) -> Result<(), FileError> {
    access::sync_directory(directory_of(path))
}

#[cfg(unix)]
mod access {
    use super::{FileError, Identity};
    use rustix::fs::OFlags;
    use std::fs::{self, DirBuilder, File, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    const BY_OTHERS: u32 = 0o022;
    const BY_EVERYBODY: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    const SYMBOLIC_LINK: &str = "it is a symbolic link; name the file itself";

    pub(super) fn private(options: &mut OpenOptions) {
        // Non-blocking, so that a pipe in the file's place is refused instead of waited for.
        options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }

    pub(super) fn private_directory(builder: &mut DirBuilder) {
        builder.mode(0o700);
    }

    pub(super) fn explain(path: &Path, error: io::Error) -> FileError {
        if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            return FileError::NotPrivate { path: path.to_owned(), why: SYMBOLIC_LINK };
        }
        FileError::io(path, "open")(error)
    }

    pub(super) fn check(file: &File, path: &Path) -> Result<(), FileError> {
        judge(&file.metadata().map_err(FileError::io(path, "look at"))?, path)
    }

    pub(super) fn look_at(path: &Path) -> Result<Identity, FileError> {
        let found = fs::symlink_metadata(path).map_err(FileError::io(path, "look at"))?;
        if found.is_symlink() {
            return Err(FileError::NotPrivate { path: path.to_owned(), why: SYMBOLIC_LINK });
        }
        judge(&found, path)?;
        Ok(Identity { device: found.dev(), inode: found.ino() })
    }

    fn judge(found: &fs::Metadata, path: &Path) -> Result<(), FileError> {
        let refuse = |why| Err(FileError::NotPrivate { path: path.to_owned(), why });
        if !found.is_file() {
            return refuse("it is not a regular file; remove it, or name another");
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return refuse("it belongs to another user; run as its owner, or name another file");
        }
        if found.mode() & BY_OTHERS != 0 {
            return refuse("others may write to it; look at what is in it, then run chmod 600 on it or remove it");
        }
        Ok(())
    }

    pub(super) fn check_directory(directory: &Path) -> Result<(), FileError> {
        let found = fs::metadata(directory).map_err(FileError::io(directory, "look at"))?;
        if found.mode() & BY_EVERYBODY != 0 && found.mode() & STICKY == 0 {
            let why = "everybody may replace files in this directory; run chmod o-w on it, or name a file elsewhere";
            return Err(FileError::NotPrivate { path: directory.to_owned(), why });
        }
        Ok(())
    }

    pub(super) fn sync_directory(directory: &Path) -> Result<(), FileError> {
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(FileError::io(directory, "write the directory"))
    }
}

#[cfg(not(unix))]
mod access {
    use super::{FileError, Identity};
    use std::fs::{self, DirBuilder, File, OpenOptions};
    use std::io;
    use std::path::Path;

    pub(super) fn private(_: &mut OpenOptions) {}

    pub(super) fn private_directory(_: &mut DirBuilder) {}

    pub(super) fn explain(path: &Path, error: io::Error) -> FileError {
        FileError::io(path, "open")(error)
    }

    pub(super) fn check(_: &File, _: &Path) -> Result<(), FileError> {
        Ok(())
    }

    pub(super) fn look_at(path: &Path) -> Result<Identity, FileError> {
        fs::symlink_metadata(path).map_err(FileError::io(path, "look at"))?;
        Ok(Identity {})
    }

    pub(super) fn check_directory(_: &Path) -> Result<(), FileError> {
        Ok(())
    }

    pub(super) fn sync_directory(_: &Path) -> Result<(), FileError> {
        Ok(())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it exists").mode() & 0o7777
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    fn why(result: Result<File, FileError>) -> &'static str {
        match result {
            Err(FileError::NotPrivate { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_made_belongs_to_its_owner_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a/b/state");
        prepare_directory(&path).expect("it can be made");
        replace(&path, b"one").expect("it can be written");
        replace(&path, b"two").expect("it can be replaced");
        assert_eq!(fs::read(&path).expect("it is there"), b"two");
        assert_eq!((mode(&path), mode(&directory.path().join("a"))), (0o600, 0o700));
        let names: Vec<_> = fs::read_dir(directory.path().join("a/b")).expect("a directory").collect();
        assert_eq!(names.len(), 1, "nothing is left over");
    }

    #[test]
    fn what_others_have_a_hand_in_is_not_opened() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state");
        fs::write(&path, b"").expect("written");
        for (bits, good) in [(0o600, true), (0o644, true), (0o660, false), (0o602, false)] {
            chmod(&path, bits);
            assert_eq!(open(&path, Open::Read).is_ok(), good, "{bits:o}");
            assert_eq!(look_at(&path).is_ok(), good, "{bits:o}");
        }
        let link = directory.path().join("link");
        symlink(&path, &link).expect("a link");
        for how in [Open::Read, Open::ReadWrite, Open::Append] {
            assert!(why(open(&link, how)).contains("symbolic link"));
        }
        assert!(matches!(look_at(&link), Err(FileError::NotPrivate { why, .. }) if why.contains("symbolic link")));
        assert!(why(open(directory.path(), Open::Read)).contains("regular file"));
        if rustix::process::geteuid().is_root() {
            let other = directory.path().join("other");
            fs::write(&other, b"").expect("written");
            chmod(&other, 0o600);
            std::os::unix::fs::chown(&other, Some(12_345), None).expect("root may");
            assert!(why(open(&other, Open::ReadWrite)).contains("another user"));
        }
        chmod(directory.path(), 0o777);
        assert!(matches!(prepare_directory(&path), Err(FileError::NotPrivate { .. })));
        chmod(directory.path(), 0o1777);
        assert!(prepare_directory(&path).is_ok(), "as in /tmp, where nobody may touch another's files");
    }

    #[test]
    fn what_a_killed_process_left_is_written_over() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state");
        fs::write(directory.path().join("state.new"), b"half").expect("written");
        replace(&path, b"whole").expect("it can be written");
        assert_eq!(fs::read(&path).expect("it is there"), b"whole");
        let target = directory.path().join("target");
        symlink(&target, directory.path().join("state.new")).expect("a link");
        replace(&path, b"again").expect("the link is removed, not followed");
        assert!(!target.exists());
    }

    #[test]
    fn a_change_is_one_step_and_nothing_when_it_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state");
        let add = |text: &str| {
            update::<_, FileError>(&path, 100, Duration::ZERO, |content| {
                let before = content.unwrap_or_default();
                Ok((before.len(), Some([before, text.as_bytes()].concat())))
            })
        };
        assert_eq!(read(&path, 100).expect("no file is no fault"), None);
        assert_eq!((add("one").expect("changed"), add("two").expect("changed")), (0, 3));
        assert_eq!(read(&path, 6).expect("it fits").as_deref(), Some(&b"onetwo"[..]));
        assert!(read(&path, 5).is_err(), "it is too long");
        let refused = update::<(), FileError>(&path, 100, Duration::ZERO, |_| {
            Err(FileError::Busy { path: path.clone(), waited_ms: 0 })
        });
        assert!(refused.is_err());
        // While somebody changes it nobody else does.
        let nested = update::<_, FileError>(&path, 100, Duration::ZERO, |_| Ok((add("three").is_err(), None)));
        assert!(nested.expect("changed"));
        assert_eq!(read(&path, 100).expect("it is there").as_deref(), Some(&b"onetwo"[..]));
    }

    #[test]
    fn a_lock_is_waited_for_and_not_for_ever() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("lock");
        let (one, other) = (open(&path, Open::ReadWrite).expect("ours"), open(&path, Open::ReadWrite).expect("ours"));
        lock(&one, &path, Duration::ZERO).expect("free");
        assert!(matches!(
            lock_shared(&other, &path, Duration::from_millis(1)),
            Err(FileError::Busy { waited_ms: 1, .. })
        ));
        drop(one);
        lock(&other, &path, Duration::ZERO).expect("free again");
    }
}
