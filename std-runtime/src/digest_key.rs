//! The key of argument digests, kept in a file: so that the digests of several processes can be compared, and a
//! confirmation that one process asked for can be redeemed in another.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_core::entropy::{Entropy, EntropyError};

use crate::private_file::{self, FileError, Open};

/// How long to wait for another process that is making the key.
const WAIT: Duration = Duration::from_secs(5);
/// 64 hexadecimal digits and a line break.
const LENGTH: usize = 65;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DigestKeyError {
    /// The file can't be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file holds something else.
    #[error(
        "{} holds no key: 64 hexadecimal digits are expected; remove it to have another one made: calls that wait for a \
         confirmation have to be asked again, and digests of older records can't be compared with new ones",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The source of randomness failed.
    #[error("no random key for the argument digests: {0}")]
    Entropy(#[from] EntropyError),
}

/// The key in the file at `path`; made if there is none yet. The file has mode 0600: whoever knows the key can guess short
/// secrets from their digests (invariant L3).
///
/// # Errors
/// The file can't be used, others could have a hand in it, or it holds no key. It is never replaced.
pub fn load_or_make(path: &Path, entropy: &(impl Entropy + ?Sized)) -> Result<[u8; 32], DigestKeyError> {
    private_file::prepare_directory(path)?;
    if let Some(key) = load(path)? {
        return Ok(key);
    }
    let lock_path = path.with_added_extension("lock");
    let lock = private_file::open(&lock_path, Open::ReadWrite)?;
    private_file::lock(&lock, &lock_path, WAIT)?;
    // Another process may have made it meanwhile. There is only ever one.
    if let Some(key) = load(path)? {
        return Ok(key);
    }
    let mut key = [0; 32];
    entropy.fill(&mut key)?;
    let mut text = String::with_capacity(LENGTH);
    for byte in key {
        // A string takes everything.
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    private_file::replace(path, text.as_bytes())?;
    Ok(key)
}

fn load(path: &Path) -> Result<Option<[u8; 32]>, DigestKeyError> {
    let file = match private_file::open(path, Open::Read) {
        Ok(file) => file,
        Err(FileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut text = Vec::new();
    let most = (LENGTH + 1) as u64;
    file.take(most).read_to_end(&mut text).map_err(|source| FileError::Io {
        path: path.to_owned(),
        doing: "read",
        source,
    })?;
    parse(&text).map(Some).ok_or_else(|| DigestKeyError::Damaged { path: path.to_owned() })
}

fn parse(text: &[u8]) -> Option<[u8; 32]> {
    let digits = text.strip_suffix(b"\n")?;
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()).collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::entropy::{OsEntropy, SeededEntropy};

    #[test]
    fn a_key_is_made_once_and_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state/digest.key");
        let key = load_or_make(&path, &SeededEntropy::new(1)).expect("it is made");
        assert_eq!(load_or_make(&path, &SeededEntropy::new(2)).expect("it is read"), key);
        assert_eq!(fs::read(&path).expect("it is there").len(), LENGTH);
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            assert_eq!(fs::metadata(&path).expect("it is there").mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn many_that_make_it_at_once_agree() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("digest.key");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| load_or_make(&path, &OsEntropy).expect("a key"))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(keys.iter().all(|key| Some(key) == keys.first()));
    }

    // F1: a key that is none is an error, never a new key.
    #[test]
    fn f1_a_damaged_key_is_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("digest.key");
        let good = "0".repeat(64);
        for text in [
            "",
            "\n",
            &good,
            &format!("{good}\n\n"),
            &format!("{}\n", "G".repeat(64)),
            &format!("{}\n", "A".repeat(64)),
        ] {
            fs::write(&path, text).expect("written");
            let error = load_or_make(&path, &OsEntropy).expect_err("it holds no key");
            assert!(matches!(error, DigestKeyError::Damaged { .. }), "{text:?}");
            assert_eq!(fs::read(&path).expect("it is there"), text.as_bytes());
        }
    }
}
