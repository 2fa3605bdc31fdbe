//! `callgate init`.

mod client;
mod from;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::command_line::InitArgs;
use crate::config::{FILE_NAME, TEMPLATE};
use crate::exit::Exit;
use crate::terminal::{Terminal, visible};
use crate::trouble::Trouble;

/// Whoever may read the directory may read the file; only its owner writes it, or the gate would refuse it.
#[cfg(unix)]
const MODE: u32 = 0o644;

pub(super) fn run(args: &InitArgs, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    if args.is_too_long() {
        return Err(Trouble::usage("only one directory gets a callgate.toml"));
    }
    if let Some(client) = args.from {
        return from::run(client, args.place(), args.second(), args.write, terminal);
    }
    let file = args.place().join(FILE_NAME);
    let shown = visible(&file.display().to_string());
    write(args.place(), &file, args.force).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Trouble::failed(format!("{shown} exists already")).with_help("look at it first; --force replaces it")
        }
        _ => Trouble::failed(format!("{shown} can't be written: {error}")),
    })?;
    terminal.out.line(format_args!("wrote {shown}, which says what holds anyway and how to change it"));
    terminal.err.line("next: edit it, then run `callgate config check`");
    Ok(Exit::Success)
}

fn write(dir: &Path, file: &Path, force: bool) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    if force {
        // In one step: a command that starts meanwhile reads the old file or the new one.
        let mut builder = tempfile::Builder::new();
        builder.prefix(".callgate-");
        #[cfg(unix)]
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(MODE);
        #[cfg(unix)]
        builder.permissions(permissions);
        let mut draft = builder.tempfile_in(dir)?;
        draft.write_all(TEMPLATE.as_bytes())?;
        draft.as_file().sync_all()?;
        return draft.persist(file).map(|_| ()).map_err(|error| error.error);
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, MODE);
    let mut written = options.open(file)?;
    written.write_all(TEMPLATE.as_bytes())?;
    written.sync_all()
}
