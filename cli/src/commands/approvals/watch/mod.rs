//! `callgate approvals watch`: what waits, on a screen that keeps up, and keys to decide.

mod screen;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use callgate_core::confirm::Decided;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

use super::super::Setting;
use super::Desk;
use crate::command_line::WatchArgs;
use crate::exit::Exit;
use crate::interrupt;
use crate::trouble::Trouble;
use screen::{Act, Screen};

/// How often the store is looked at.
const REFRESH: Duration = Duration::from_secs(1);
/// The number of the signal that Ctrl-C stands for.
const INTERRUPT: u8 = 2;
/// How long a key is waited for before a signal is looked for.
const TICK: Duration = Duration::from_millis(100);

pub(super) fn watch(args: &WatchArgs, setting: &Setting) -> Result<Exit, Trouble> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Trouble::usage("a screen needs a terminal")
            .with_help("`callgate approvals list` prints what waits, and `watch --web` serves it to a browser"));
    }
    let desk = Desk::open(&args.caller, setting)?;
    // Before the screen is taken: who may decide nothing is told so in words.
    let first = desk.pending()?;
    // A signal only asks to stop, so that the screen is given back.
    interrupt::listen();
    let unusable = |error: io::Error| Trouble::failed(format!("the terminal can't be used: {error}"));
    let mut screen = Screen::default();
    screen.update(first);
    // Gives the terminal back on a panic, too.
    let mut terminal = ratatui::try_init().map_err(unusable)?;
    let left = run(&desk, &mut screen, &mut terminal);
    let restored = ratatui::try_restore().map_err(unusable);
    let exit = left.map_err(unusable)?;
    restored?;
    Ok(exit)
}

fn run(desk: &Desk, screen: &mut Screen, terminal: &mut DefaultTerminal) -> io::Result<Exit> {
    let mut looked = Instant::now();
    loop {
        terminal.draw(|frame| screen.draw(frame))?;
        if let Some(signal) = interrupt::signal() {
            return Ok(Exit::Interrupted(signal));
        }
        let mut look = looked.elapsed() >= REFRESH;
        if event::poll(TICK)?
            && let Event::Key(key) = event::read()?
        {
            match screen.press(key) {
                Act::Nothing => {}
                Act::Leave => return Ok(Exit::Success),
                Act::Interrupt => return Ok(Exit::Interrupted(INTERRUPT)),
                Act::Refresh => look = true,
                Act::Decide(ticket, verdict) => {
                    look = true;
                    match desk.open.gate.approvals().decide(ticket, verdict, &desk.approver.borrow()) {
                        Ok(Decided::Approved) => screen.say("approved: it can run now, once", true),
                        Ok(Decided::Counted { missing }) => {
                            screen.say(format!("approved: it waits for {missing} more"), true);
                        }
                        Ok(Decided::Denied) => screen.say("denied: it will not run", true),
                        Err(fault) => screen.say(format!("{}: {fault}", fault.code()), false),
                    }
                }
            }
        }
        if look {
            looked = Instant::now();
            match desk.pending() {
                Ok(waiting) => screen.update(waiting),
                Err(_) => {
                    screen.update(Vec::new());
                    screen.say("the store does not answer", false);
                }
            }
        }
    }
}
