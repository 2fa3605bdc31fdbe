//! The commands, one file each.

mod approvals;
mod audit;
mod call;
mod completions;
mod config;
mod conformance;
mod consent;
mod demo;
mod init;
mod inspect;
mod operations;
#[cfg(feature = "mcp")]
mod pins;
#[cfg(feature = "mcp")]
mod proxy;
#[cfg(feature = "mcp")]
mod serve;
mod sign;
mod tools;

pub(crate) use audit::parse_head;

use std::process::ExitCode;

use anstream::ColorChoice;
use callgate_std::audit::SharedAudit;
use callgate_std::contain::quiet_contained_panics;
use clap::Parser;

use crate::command_line::{AuditCommand, Command, CommandLine, ConfigCommand, ConformanceCommand, Global};
use crate::exit::Exit;
use crate::logging;
use crate::terminal::{BAD, Terminal};
use crate::trouble::Trouble;

/// Runs the command that this process was started for.
#[must_use]
pub fn main() -> ExitCode {
    quiet_contained_panics();
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => {
            // Nobody reads: there is nobody to tell.
            drop(error.print());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code()));
        }
    };
    let mut terminal = Terminal::of_process(match line.global.color {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    });
    let exit = match run(line, &mut terminal) {
        Ok(exit) => exit,
        Err(trouble) => {
            let text = trouble.render(terminal.err.brush());
            terminal.err.print(&text);
            trouble.exit()
        }
    };
    match terminal.out.fault().map(ToString::to_string) {
        Some(fault) => {
            let error = terminal.err.brush().paint(BAD, "error");
            terminal.err.line(format_args!("{error}: the output could not be written: {fault}"));
            if exit == Exit::Success { Exit::Failed.into() } else { exit.into() }
        }
        None => exit.into(),
    }
}

fn run(line: CommandLine, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let setting = Setting { log: logging::start(line.global.verbose)?, global: line.global };
    match line.command {
        Command::Call(args) => call::run(&args, &setting, terminal),
        Command::Tools(args) => tools::run(&args, &setting, terminal),
        #[cfg(feature = "mcp")]
        Command::Serve(args) => serve::run(&args, &setting, terminal),
        #[cfg(feature = "mcp")]
        Command::Proxy(args) => proxy::run(&args, &setting, terminal),
        #[cfg(feature = "mcp")]
        Command::Pins(command) => pins::run(&command, &setting, terminal),
        Command::Inspect(args) => inspect::run(&args, &setting, terminal),
        Command::Approvals(command) => approvals::run(&command, &setting, terminal),
        Command::Operations(command) => operations::run(&command, &setting, terminal),
        Command::Sign(args) => sign::run(&args, &setting, terminal),
        Command::Demo => demo::run(terminal),
        Command::Audit(AuditCommand::Tail(args)) => audit::tail(&args, &setting, terminal),
        Command::Audit(AuditCommand::Verify(args)) => audit::verify(&args, &setting, terminal),
        Command::Audit(AuditCommand::Explain(args)) => audit::explain(&args, &setting, terminal),
        Command::Audit(AuditCommand::Checkpoint(args)) => audit::checkpoint(&args, &setting, terminal),
        Command::Audit(AuditCommand::Rotate(args)) => audit::rotate(&args, &setting, terminal),
        Command::Audit(AuditCommand::Reap(args)) => audit::reap(&args, &setting, terminal),
        Command::Audit(AuditCommand::Export(args)) => audit::export(&args, &setting, terminal),
        Command::Init(args) => init::run(&args, terminal),
        Command::Config(ConfigCommand::Check(args)) => config::check(&args, &setting, terminal),
        Command::Config(ConfigCommand::Show(args)) => config::show(&args, &setting, terminal),
        Command::Conformance(ConformanceCommand::Run(args)) => conformance::run(&args, terminal),
        Command::Conformance(ConformanceCommand::Subject(args)) => conformance::subject(&args),
        Command::Completions(args) => {
            completions::run(&args, terminal);
            Ok(Exit::Success)
        }
    }
}

/// What every command is given.
struct Setting {
    global: Global,
    /// Where records are shown as they are made.
    log: Option<SharedAudit>,
}

impl Setting {
    /// The configuration in force.
    fn config(&self) -> Result<crate::config::Config, Trouble> {
        Ok(crate::assemble::load(self.global.config.as_deref())?)
    }
}

/// Looks after the stores before a gate is used, and tells what was found.
fn look_after(upkeep: &crate::assemble::Upkeep, terminal: &mut Terminal) {
    for told in upkeep.run().told() {
        let warning = terminal.err.brush().paint(crate::terminal::WARN, "warning");
        terminal.err.line(format_args!("{warning}: {}", crate::terminal::visible(&told)));
    }
}

/// Warns of what could not be written to the log when it was closed.
fn warn_of_log(error: Option<String>, terminal: &mut Terminal) {
    if let Some(error) = error {
        let warning = terminal.err.brush().paint(crate::terminal::WARN, "warning");
        terminal.err.line(format_args!("{warning}: the audit log: {}", crate::terminal::visible(&error)));
    }
}

/// The command, with the options that have to be there again.
fn command(setting: &Setting) -> String {
    match &setting.global.config {
        Some(file) => format!("callgate --config {}", crate::caller::shell_word(&file.display().to_string())),
        None => "callgate".to_owned(),
    }
}
