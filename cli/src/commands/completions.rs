//! `callgate completions`.

use clap::CommandFactory;

use crate::command_line::{CommandLine, CompletionsArgs};
use crate::terminal::Terminal;

pub(super) fn run(args: &CompletionsArgs, terminal: &mut Terminal) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), "callgate", &mut script);
    terminal.out.print(&String::from_utf8_lossy(&script));
}
