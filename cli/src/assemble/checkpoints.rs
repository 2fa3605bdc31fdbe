//! Signed checkpoints of the log: made by hand, and by themselves.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_core::audit::chain::Head;
use callgate_core::time::Timestamp;
use callgate_signed::{AllowedSigners, Checkpoint, SecretKey, VerifyingKey};

use crate::config::{Checkpoints, Config};
use crate::terminal::shown_path;

/// How the file of a checkpoint ends where each has its own.
const ENDING: &str = ".checkpoint";
/// The most bytes of a file with a key or a checkpoint.
const MAX_BYTES: u64 = 64 << 10;

/// The name of the log in checkpoints: that of the configuration, else of the host, else of the file.
pub(crate) fn name_of(config: &Config, file: &Path) -> String {
    let said = config.audit.checkpoint.as_ref().and_then(|checkpoint| checkpoint.log.clone());
    let named = said.or_else(|| config.signed.host.clone());
    named.unwrap_or_else(|| file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
}

/// Reads a private key.
///
/// # Errors
/// Says why it can't be used.
pub(crate) fn key(file: &Path) -> Result<SecretKey, String> {
    let text = read(file).map_err(|error| format!("the key {} can't be read: {error}", shown_path(file)))?;
    SecretKey::parse(&text).map_err(|error| format!("the key {}: {error}", shown_path(file)))
}

/// Reads the last of the checkpoints at `at`, a file or a directory of them, and says who signed it. A file that is none is no reason to
/// take an older one.
///
/// # Errors
/// Says why there is none to go by.
pub(crate) fn last(at: &Path, signers: &AllowedSigners) -> Result<Option<(Checkpoint, String)>, String> {
    let files = match fs::read_dir(at) {
        Ok(entries) => {
            let names = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
            let mut names = names.map_err(|error| format!("{} can't be read: {error}", shown_path(at)))?;
            names.retain(|path| path.to_string_lossy().ends_with(ENDING));
            names
        }
        Err(_) => vec![at.to_owned()],
    };
    let mut last: Option<(Checkpoint, String)> = None;
    for file in files {
        let text = match read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text.map_err(|error| format!("{} can't be read: {error}", shown_path(&file)))?,
        };
        let found =
            Checkpoint::read_signed(&text, signers).map_err(|error| format!("{}: {error}", shown_path(&file)))?;
        if last.as_ref().is_none_or(|(last, _)| found.0.head().seq >= last.head().seq) {
            last = Some((found.0, found.1.to_owned()));
        }
    }
    Ok(last)
}

/// Makes a checkpoint where one is due, and says where it went.
///
/// # Errors
/// It can't be made, or the log ends before its last one: nothing is written then.
pub(super) fn make_if_due(
    settings: &Checkpoints,
    log: &str,
    head: Head,
    now: Timestamp,
) -> Result<Option<PathBuf>, String> {
    let key = key(&settings.key)?;
    let public = key.public().and_then(|public| VerifyingKey::parse(&public)).map_err(|error| error.to_string())?;
    if let Some((last, _)) = last(&settings.to, &AllowedSigners::one("", public))? {
        let (line, lasts) = (last.head().seq, settings.every_records.map_or(u64::MAX, u64::from));
        if line > head.seq || (line == head.seq && last.head() != head) {
            return Err(format!(
                "the log ends at line {} and its last checkpoint is of line {line}: it was cut off or written anew",
                head.seq
            ));
        }
        let age = now.as_unix_millis().saturating_sub(last.at().as_unix_millis());
        let is_due = head.seq.saturating_sub(line) >= lasts || Duration::from_millis(age) >= settings.every;
        if line == head.seq || !is_due {
            return Ok(None);
        }
    } else if head.seq == 0 {
        return Ok(None);
    }
    let text = signed(log, head, now, &key)?;
    let file = if settings.keeps_all {
        settings.to.join(format!("{log}-{:012}{ENDING}", head.seq))
    } else {
        settings.to.clone()
    };
    replace(&file, &text).map_err(|error| format!("{} can't be written: {error}", shown_path(&file)))?;
    Ok(Some(file))
}

/// The text of a checkpoint.
///
/// # Errors
/// The name of the log is none, or the key can't sign.
pub(crate) fn signed(log: &str, head: Head, now: Timestamp, key: &SecretKey) -> Result<String, String> {
    let checkpoint = Checkpoint::new(log, head, now).map_err(|error| error.to_string())?;
    checkpoint.sign(key).map_err(|error| error.to_string())
}

fn read(file: &Path) -> io::Result<String> {
    use io::Read as _;
    let mut text = String::new();
    fs::File::open(file)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

/// Writes the file whole: whoever reads it finds the last checkpoint or the one before.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let directory = file.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    Ok(())
}
