//! `callgate audit export`: the record as JSON Lines.

use std::io::BufRead;

use super::super::Setting;
use super::source::{log_file, unreadable, with_lines};
use crate::command_line::ExportArgs;
use crate::exit::Exit;
use crate::terminal::Terminal;
use crate::trouble::Trouble;

pub(in crate::commands) fn export(
    args: &ExportArgs,
    setting: &Setting,
    terminal: &mut Terminal,
) -> Result<Exit, Trouble> {
    let file = log_file(args.file.as_deref(), setting)?;
    with_lines(&file, |lines, head| {
        copy(lines, terminal).map_err(|error| unreadable(&file, &error))?;
        if let Some(head) = head {
            terminal.err.line(format_args!("head {}:{}", head.seq, head.hash));
        }
        Ok(Exit::Success)
    })
}

/// Writes the lines; what is no text is written as what can be read of it.
fn copy(lines: &mut dyn BufRead, terminal: &mut Terminal) -> std::io::Result<()> {
    let mut line = Vec::new();
    while !terminal.out.is_broken() && lines.read_until(b'\n', &mut line)? > 0 {
        terminal.out.print(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}
