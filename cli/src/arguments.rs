//! The arguments of a call, as bytes that nobody has looked at yet.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use callgate_core::json::Limits;

use crate::terminal::visible;
use crate::trouble::Trouble;

/// What the command line says: nothing, the text itself, a file, or standard input.
///
/// One byte more is read than the gate takes, so that it is the gate that says that there is too much.
///
/// # Errors
/// They can't be read.
pub(crate) fn read(arguments: Option<&OsStr>, file: Option<&Path>) -> Result<Vec<u8>, Trouble> {
    match (arguments, file) {
        (Some(text), _) if text == OsStr::new("-") => from_stdin(),
        (Some(text), _) => Ok(text.as_encoded_bytes().to_vec()),
        (None, Some(file)) if file == Path::new("-") => from_stdin(),
        (None, Some(file)) => {
            let shown = visible(&file.display().to_string());
            let unreadable =
                |error: io::Error| Trouble::usage(format!("the arguments in {shown} can't be read: {error}"));
            let handle = File::open(file).map_err(unreadable)?;
            bounded(handle).map_err(unreadable)
        }
        (None, None) => Ok(Vec::new()),
    }
}

fn from_stdin() -> Result<Vec<u8>, Trouble> {
    bounded(io::stdin().lock())
        .map_err(|error| Trouble::usage(format!("the arguments can't be read from standard input: {error}")))
}

fn bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(u64::from(Limits::DEFAULT.bytes).saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
