//! `callgate sign`: the text to sign for one call, and the signature where a key is given.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use callgate_core::time::Clock as _;
use callgate_signed::Operation;
use callgate_std::clock::SystemClock;
use callgate_std::context::random_request_id;
use callgate_std::entropy::OsEntropy;

use super::Setting;
use crate::arguments;
use crate::assemble::checkpoints;
use crate::command_line::SignArgs;
use crate::exit::Exit;
use crate::terminal::{Terminal, shown_path};
use crate::trouble::Trouble;

pub(super) fn run(args: &SignArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let host = match &args.host {
        Some(host) => host.clone(),
        None => setting.config()?.signed.host.ok_or_else(|| {
            Trouble::usage("a signature names the host on which the call is to run")
                .with_help("name it with --host NAME, or in the configuration: [signed] host = \"...\"")
        })?,
    };
    let arguments = arguments::read(args.arguments.as_deref(), args.args_file.as_deref())?;
    let arguments = match std::str::from_utf8(&arguments) {
        Ok(text) if text.trim().is_empty() => "{}",
        Ok(text) => text,
        Err(_) => return Err(Trouble::usage("the arguments are not UTF-8")),
    };
    let nonce = random_request_id(&OsEntropy::default())
        .map_err(|error| Trouble::failed(format!("there is no nonce: {error}")))?;
    let now = SystemClock::default().now().wall;
    let operation = Operation::new(&args.tool, arguments, &host, now, &nonce)
        .map_err(|error| Trouble::usage(format!("this call can't be signed: {error}")))?;
    let payload = operation.canonical();
    let signature = args.key.as_deref().map(|key| sign(key, &payload)).transpose()?;
    match &args.out {
        None => terminal.out.line(&payload),
        Some(out) => {
            write_new(out, &payload)?;
            let named = signature_file(out);
            if let Some(signature) = &signature {
                write_new(&named, signature)?;
                terminal.err.line(format_args!("wrote {} and {}", shown_path(out), shown_path(&named)));
            } else {
                terminal.err.line(format_args!("wrote {}", shown_path(out)));
            }
        }
    }
    if signature.is_none() {
        terminal.err.line("to sign it: ssh-keygen -Y sign -n callgate -f KEY FILE");
    }
    Ok(Exit::Success)
}

/// Where a signature of a file is looked for: `ssh-keygen -Y sign` writes it there.
pub(super) fn signature_file(file: &Path) -> PathBuf {
    file.with_added_extension("sig")
}

fn sign(key: &Path, payload: &str) -> Result<String, Trouble> {
    let key = checkpoints::key(key).map_err(Trouble::usage)?;
    key.sign(payload.as_bytes()).map_err(|error| Trouble::failed(error.to_string()))
}

/// Writes a file that is not there yet: what somebody has signed is not replaced.
pub(super) fn write_new(path: &Path, text: &str) -> Result<(), Trouble> {
    let written = OpenOptions::new().write(true).create_new(true).open(path);
    written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Trouble::failed(format!("{} exists already", shown_path(path))),
        _ => Trouble::failed(format!("{} can't be written: {error}", shown_path(path))),
    })
}
