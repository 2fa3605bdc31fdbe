//! `callgate audit rotate`: the log is put aside, and goes on with a new segment.

use serde_json::json;

use super::super::{Setting, warn_of_log};
use crate::assemble::Plan;
use crate::command_line::RotateArgs;
use crate::exit::Exit;
use crate::terminal::{Terminal, shown_path};
use crate::trouble::Trouble;

pub(in crate::commands) fn rotate(
    args: &RotateArgs,
    setting: &Setting,
    terminal: &mut Terminal,
) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let open = Plan::of(&config)?.open(setting.log.clone())?;
    let upkeep = &open.stores.upkeep;
    let rotated = upkeep.rotate().map_err(Trouble::from)?;
    let removed = upkeep.retain().map_err(Trouble::from)?;
    let segments = upkeep.segments();
    warn_of_log(open.close(), terminal);
    let head = |head: callgate_core::audit::chain::Head| json!({ "seq": head.seq, "hash": head.hash.to_string() });
    if args.json {
        terminal.out.line(json!({
            "rotated": rotated.map(head),
            "removed": removed.map(head),
            "segments": segments.directory().display().to_string(),
        }));
        return Ok(Exit::Success);
    }
    match rotated {
        Some(end) => terminal.out.line(format_args!(
            "put aside in {}: the log up to {}:{}",
            shown_path(segments.directory()),
            end.seq,
            end.hash
        )),
        None => terminal.err.line("there is nothing to put aside"),
    }
    if let Some(end) = removed {
        terminal.out.line(format_args!("removed, and recorded: segments up to {}:{}", end.seq, end.hash));
    }
    Ok(Exit::Success)
}
