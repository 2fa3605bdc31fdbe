//! `callgate demo`.

use crate::demo::{self, Scene};
use crate::exit::Exit;
use crate::table::{Cell, Table};
use crate::terminal::{BAD, BOLD, Brush, DIM, GOOD, Terminal, WARN, visible};
use crate::trouble::Trouble;

pub(super) fn run(terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let demo = demo::play().map_err(|error| Trouble::failed(error.to_string()))?;
    let (width, brush) = (terminal.out.width(), terminal.out.brush());
    terminal
        .out
        .line(brush.paint(DIM, "One call to every end of the gate. The tools are toys, the gate is the real one."));
    for (at, scene) in demo.scenes.iter().enumerate() {
        terminal.out.line("");
        terminal.out.line(format_args!("{:>2}  {}", at.saturating_add(1), brush.paint(BOLD, scene.title)));
        terminal.out.print(&told(scene, width, brush));
    }
    terminal.out.line("");
    if demo.verified {
        let (lines, calls) = (demo.lines, demo.scenes.len());
        terminal.out.line(brush.paint(GOOD, format!("The log has {lines} records, and its chain holds.")));
        let made_of = format!(
            "They are of these {calls} calls, of what was about to change, and of 19 calls that emptied a budget."
        );
        terminal.out.line(brush.paint(DIM, made_of));
        Ok(Exit::Success)
    } else {
        Err(Trouble::failed("the chain of the demo's log does not hold"))
    }
}

fn told(scene: &Scene, width: usize, brush: Brush) -> String {
    let style = match scene.outcome.split_once(": ").map_or("", |(kind, _)| kind) {
        "ok" => GOOD,
        "asks" => WARN,
        _ => BAD,
    };
    let ran = match scene.ran {
        0 => "nothing ran".to_owned(),
        1 => "the tool ran once".to_owned(),
        times => format!("tools ran {times} times"),
    };
    let mut table = Table::new(["", ""]).indented(4);
    table.row([Cell::painted(DIM, "call"), visible(&scene.call).into()]);
    table.row([Cell::painted(DIM, "outcome"), Cell::painted(style, visible(&scene.outcome))]);
    table.row([Cell::painted(DIM, "effect"), format!("{}: {ran}", scene.effect).into()]);
    table.row([Cell::painted(DIM, "record"), visible(&scene.record).into()]);
    table.render(width, brush)
}
