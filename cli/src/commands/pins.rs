//! `callgate pins`: what the tools of MCP servers looked like, and what of it a person accepts.

use std::collections::BTreeMap;

use callgate_core::code::Code;
use callgate_core::time::{Clock as _, Timestamp};
use callgate_mcp::pins::{Book, Entry, PinFile, PinFileError, Side, changes, shown};
use callgate_std::clock::SystemClock;
use serde_json::{Value, json};

use super::Setting;
use crate::assemble::StateFiles;
use crate::command_line::{PinArgs, PinsCommand, PinsListArgs};
use crate::exit::Exit;
use crate::table::{Cell, Table};
use crate::terminal::{BAD, BOLD, DIM, GOOD, NAME, Terminal, WARN, visible};
use crate::trouble::Trouble;

pub(super) fn run(command: &PinsCommand, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let file = PinFile::open(StateFiles::of(&config).pins)?;
    match command {
        PinsCommand::List(args) => list(args, &file, terminal),
        PinsCommand::Show(args) => show(args, &file, terminal),
        PinsCommand::Accept(args) => change(args, &file, terminal, "accepted", |book, server, tool, now| {
            book.get(server, tool).is_some_and(|entry| entry.waiting.is_some()) && book.accept(server, tool, now)
        }),
        PinsCommand::Remove(args) => {
            change(args, &file, terminal, "forgotten", |book, server, tool, _| book.remove(server, tool))
        }
    }
}

impl From<PinFileError> for Trouble {
    fn from(error: PinFileError) -> Self {
        Self::refused(Code::StoreUnavailable, error.to_string())
    }
}

fn list(args: &PinsListArgs, file: &PinFile, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let book = file.read()?;
    let entries =
        || book.servers().flat_map(|(server, tools)| tools.iter().map(move |(tool, entry)| (server, tool, entry)));
    let listed: Vec<_> = entries().filter(|(_, _, entry)| !args.waiting || entry.waiting.is_some()).collect();
    if args.json {
        terminal
            .out
            .line(Value::Array(listed.iter().map(|(server, tool, entry)| json_of(server, tool, entry)).collect()));
        return Ok(Exit::Success);
    }
    if listed.is_empty() {
        terminal.err.line(if args.waiting {
            "nothing waits to be accepted"
        } else {
            "no tool of any server was seen yet"
        });
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["TOOL", "SINCE", "STATE"]);
    for (server, tool, entry) in &listed {
        let (since, state) = match (&entry.pinned, &entry.waiting) {
            (_, Some(waiting)) => {
                (waiting.since, Cell::painted(WARN, visible(&format!("withheld: it {}", waiting.reason))))
            }
            (Some(pinned), None) => (pinned.since, Cell::painted(GOOD, "pinned")),
            (None, None) => (Timestamp::from_unix_millis(0), Cell::painted(DIM, "-")),
        };
        table.row([Cell::painted(NAME, visible(&format!("{server}.{tool}"))), since.to_string().into(), state]);
    }
    let text = table.render(terminal.out.width(), terminal.out.brush());
    terminal.out.print(&text);
    if let Some((server, tool, _)) = listed.iter().find(|(_, _, entry)| entry.waiting.is_some()) {
        let name = crate::caller::shell_word(&format!("{server}.{tool}"));
        terminal.err.line(format_args!(
            "`callgate pins show {name}` shows the difference, `callgate pins accept {name}` accepts it"
        ));
    }
    Ok(Exit::Success)
}

fn show(args: &PinArgs, file: &PinFile, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let book = file.read()?;
    let named = named(args, &book)?;
    let brush = terminal.out.brush();
    for (server, tool) in named {
        let Some(entry) = book.get(&server, &tool) else { continue };
        terminal.out.line(brush.paint(BOLD, visible(&format!("{server}.{tool}"))));
        match (&entry.pinned, &entry.waiting) {
            (Some(pinned), Some(waiting)) => {
                terminal.out.line(brush.paint(WARN, visible(&format!("withheld: it {}", waiting.reason))));
                for line in changes(&pinned.definition, &waiting.definition) {
                    let text = visible(&line.text);
                    terminal.out.line(match line.side {
                        Side::Old => brush.paint(BAD, format!("- {text}")).to_string(),
                        Side::New => brush.paint(GOOD, format!("+ {text}")).to_string(),
                        Side::Both => format!("  {text}"),
                    });
                }
            }
            (None, Some(waiting)) => {
                terminal.out.line(brush.paint(WARN, visible(&format!("withheld: it {}", waiting.reason))));
                print(&waiting.definition, terminal);
            }
            (Some(pinned), None) => print(&pinned.definition, terminal),
            (None, None) => {}
        }
    }
    Ok(Exit::Success)
}

/// What a server says of a tool: its words, so whatever is not seen, or moves other letters, is written as what it is.
fn print(definition: &Value, terminal: &mut Terminal) {
    for line in shown(definition).lines() {
        terminal.out.line(format_args!("  {}", visible(line)));
    }
}

fn change(
    args: &PinArgs,
    file: &PinFile,
    terminal: &mut Terminal,
    done: &str,
    change: fn(&mut Book, &str, &str, Timestamp) -> bool,
) -> Result<Exit, Trouble> {
    let now = SystemClock::default().now().wall;
    let changed = file.update(|book| {
        let named = named(args, book)?;
        Ok::<_, Trouble>(named.into_iter().filter(|(server, tool)| change(book, server, tool, now)).collect::<Vec<_>>())
    });
    let changed = changed.map_err(Trouble::from)??;
    if changed.is_empty() {
        terminal.err.line("nothing to change: what was named does not wait");
    }
    let brush = terminal.out.brush();
    for (server, tool) in &changed {
        terminal.out.line(format_args!("{} {}", brush.paint(GOOD, done), visible(&format!("{server}.{tool}"))));
    }
    Ok(Exit::Success)
}

/// The tools that the command line names: each as `SERVER.TOOL`, or all of a server as `SERVER`.
fn named(args: &PinArgs, book: &Book) -> Result<Vec<(String, String)>, Trouble> {
    let mut named = Vec::new();
    for name in &args.names {
        let servers: BTreeMap<_, _> = book.servers().collect();
        let found: Vec<_> = match (servers.get(name.as_str()), name.split_once('.')) {
            (Some(tools), _) => tools.keys().map(|tool| (name.clone(), tool.clone())).collect(),
            (None, Some((server, tool))) if book.get(server, tool).is_some() => {
                vec![(server.to_owned(), tool.to_owned())]
            }
            (None, _) => Vec::new(),
        };
        if found.is_empty() {
            let trouble = Trouble::failed(format!("no tool or server {} was seen", visible(name)));
            return Err(trouble.with_help("`callgate pins list` lists them; a tool is called SERVER.TOOL"));
        }
        named.extend(found);
    }
    Ok(named)
}

fn json_of(server: &str, tool: &str, entry: &Entry) -> Value {
    json!({
        "server": server,
        "tool": tool,
        "pinned": entry.pinned.as_ref().map(|pinned| json!({
            "digest": pinned.digest.to_string(), "since": pinned.since.to_string(), "definition": pinned.definition,
        })),
        "waiting": entry.waiting.as_ref().map(|waiting| json!({
            "digest": waiting.digest.to_string(), "since": waiting.since.to_string(), "definition": waiting.definition,
            "reason": waiting.reason.to_string(),
        })),
    })
}
