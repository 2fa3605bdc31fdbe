//! `callgate audit`.

mod tail;
mod verify;

pub(super) use tail::tail;
pub(crate) use verify::parse_head;
pub(super) use verify::verify;

use std::path::{Path, PathBuf};

use super::Setting;
use crate::trouble::Trouble;

/// The log that is named, else that of the configuration.
fn log_file(named: Option<&Path>, setting: &Setting) -> Result<PathBuf, Trouble> {
    match named {
        Some(file) => Ok(file.to_owned()),
        None => Ok(setting.config()?.audit_file),
    }
}
