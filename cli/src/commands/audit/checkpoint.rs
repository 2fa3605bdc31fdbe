//! `callgate audit checkpoint`: the head of the log, signed, to be kept elsewhere.

use callgate_core::audit::chain::Head;
use callgate_core::time::Timestamp;
use callgate_signed::{AllowedSigners, Checkpoint};
use callgate_std::audit::Expected;
use callgate_std::clock::SystemClock;

use super::super::{Setting, sign};
use super::source::log_file;
use super::verify::report_of;
use crate::assemble::checkpoints;
use crate::command_line::{CheckedArgs, CheckpointArgs};
use crate::exit::Exit;
use crate::terminal::{Terminal, shown_path, visible};
use crate::trouble::Trouble;

pub(in crate::commands) fn checkpoint(
    args: &CheckpointArgs,
    setting: &Setting,
    terminal: &mut Terminal,
) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let file = log_file(args.file.as_deref(), setting)?;
    let configured = config.audit.checkpoint.as_ref().map(|checkpoint| checkpoint.key.as_path());
    let key = args.key.as_deref().or(configured).ok_or_else(|| {
        Trouble::usage("a checkpoint is signed, and there is no key")
            .with_help("name a private key of OpenSSH: --key FILE, or [audit.checkpoint] key = \"...\"")
    })?;
    let key = checkpoints::key(key).map_err(Trouble::usage)?;
    let log = args.log.clone().unwrap_or_else(|| checkpoints::name_of(&config, &file));
    let report = report_of(&file, Head::EMPTY, Expected::default())?;
    if !report.is_intact() {
        return Err(Trouble::failed(format!("{} is broken, and is not vouched for", shown_path(&file)))
            .with_help("`callgate audit verify` says what is wrong with it"));
    }
    let now = SystemClock::shared().now().wall;
    let text = checkpoints::signed(&log, report.head, now, &key).map_err(|error| {
        Trouble::usage(format!("{}: {error}", visible(&log))).with_help("name the log with --log NAME")
    })?;
    match &args.out {
        None => terminal.out.print(&text),
        Some(out) => {
            sign::write_new(out, &text)?;
            let Head { seq, hash } = report.head;
            terminal.err.line(format_args!("wrote {}: {} at {seq}:{hash}", shown_path(out), visible(&log)));
        }
    }
    Ok(Exit::Success)
}

/// A checkpoint that a log is held against.
pub(super) struct Checked {
    pub(super) head: Head,
    pub(super) at: Timestamp,
    pub(super) signer: String,
}

/// The checkpoint that the command line names, which an allowed signer has signed.
pub(super) fn checked(
    args: &CheckedArgs,
    file: &std::path::Path,
    setting: &Setting,
) -> Result<Option<Checked>, Trouble> {
    let (Some(at), Some(allowed)) = (&args.checkpoint, &args.allowed_signers) else { return Ok(None) };
    let unusable = |error: &dyn std::fmt::Display| Trouble::usage(format!("{}: {error}", shown_path(allowed)));
    let text = std::fs::read_to_string(allowed).map_err(|error| unusable(&error))?;
    let signers = AllowedSigners::parse(&text).map_err(|error| unusable(&error))?;
    let found = checkpoints::last(at, &signers).map_err(Trouble::failed)?;
    let (checkpoint, signer): (Checkpoint, String) =
        found.ok_or_else(|| Trouble::failed(format!("there is no checkpoint at {}", shown_path(at))))?;
    let log = match &args.log {
        Some(log) => log.clone(),
        None => checkpoints::name_of(&setting.config()?, file),
    };
    if checkpoint.log() != log {
        let trouble = format!("this is the checkpoint of {}, not of {}", visible(checkpoint.log()), visible(&log));
        return Err(
            Trouble::failed(trouble).with_help("if the log has this name in its checkpoints, say so: --log NAME")
        );
    }
    Ok(Some(Checked { head: checkpoint.head(), at: checkpoint.at(), signer }))
}
