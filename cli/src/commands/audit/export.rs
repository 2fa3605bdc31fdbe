//! `callgate audit export`: the record as JSON Lines.

use std::fs::File;
use std::io::{BufRead, BufReader};

use callgate_sqlite::Lines;

use super::super::Setting;
use super::source::{Source, log_file, missing, unreadable};
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
    match Source::of(&file)? {
        Source::Nothing => Err(missing(&file)),
        Source::Text => {
            let log = File::open(&file).map_err(|error| unreadable(&file, &error))?;
            copy(BufReader::new(log), terminal).map_err(|error| unreadable(&file, &error))?;
            Ok(Exit::Success)
        }
        Source::Database(database) => {
            let lines = Lines::all(&database).map_err(|error| unreadable(&file, &error))?;
            let head = lines.head();
            copy(lines, terminal).map_err(|error| unreadable(&file, &error))?;
            terminal.err.line(format_args!("head {}:{}", head.seq, head.hash));
            Ok(Exit::Success)
        }
    }
}

/// Writes the lines; what is no text is written as what can be read of it.
fn copy(mut lines: impl BufRead, terminal: &mut Terminal) -> std::io::Result<()> {
    let mut line = Vec::new();
    while !terminal.out.is_broken() && lines.read_until(b'\n', &mut line)? > 0 {
        terminal.out.print(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}
