//! The command `callgate` as a subject: each world is a `callgate.toml` with programs for tools, each call a process of its own, and
//! what it shows is what the command prints, what its log holds, and what the programs saw.

mod body;
mod config;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::surroundings::{gave_up, no_world};
use crate::event::{Call, Decide, Event, Kill, Mark, Mode, Outcome, Point, Seen, Verdict};
use crate::feature::Feature;
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::{Body, Caller, World};

/// The number of `SIGKILL`.
const KILLED: i32 = 9;

/// What the log says of an argument that a program can't be given.
const NOT_NAMED: &str = "the tool has no such argument";

/// In what the command keeps its state and its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the two that the command knows")]
pub enum Store {
    /// Files of text.
    Files,
    /// A database.
    Database,
}

/// The command as a process.
#[derive(Debug)]
pub struct Command {
    declaration: Declaration,
    program: PathBuf,
    store: Store,
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    directory: TempDir,
    world: World,
    /// How many lines of the log were shown.
    logged: usize,
}

impl Command {
    /// The command at this path, in no world yet.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, store: Store) -> Self {
        let mut declaration = Declaration::full(match store {
            Store::Files => "callgate, the command, with files",
            Store::Database => "callgate, the command, with a database",
        });
        for lacking in [
            // Its clock is the system's; it has no interceptors and no listeners; programs declare nothing of their output; and
            // nobody can plant a fault in it.
            Feature::Clock,
            Feature::Intercept,
            Feature::Listen,
            Feature::OutputSchema,
            Feature::Faults,
            Feature::Batch,
            Feature::Events,
            Feature::WallClock,
            // What it shows of these is for people, and of the bytes of an output, not of JSON.
            Feature::Display,
            Feature::Inspect,
            Feature::OutputCap,
            // A file that it refuses may be one that the world can't be written as.
            Feature::Admission,
        ] {
            declaration.supports.remove(&lacking);
        }
        if store == Store::Files {
            // Files of text keep no operations.
            declaration.supports.remove(&Feature::Operations);
        }
        // The rest of its way can't be seen from outside.
        declaration.compares.transcript = [Point::Execute].into();
        Self { declaration, program: program.into(), store, place: None }
    }
}

impl Subject for Command {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn begin(&mut self, world: &World, _seed: u64) -> Result<Begun, SubjectFault> {
        let directory = tempfile::tempdir().map_err(gave_up)?;
        let place = Place { directory, world: world.clone(), logged: 0 };
        let begun = self.prepare(&place)?;
        self.place = Some(place);
        Ok(begun)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        let mut place = self.place.take().ok_or_else(no_world)?;
        let seen = self.happen(&mut place, event);
        self.place = Some(place);
        seen
    }
}

impl Command {
    /// Writes the configuration and the programs of a world, and has the command check them.
    fn prepare(&self, place: &Place) -> Result<Begun, SubjectFault> {
        let config = match config::of(&place.world, self.store) {
            Ok(config) => config,
            Err(why) => return Ok(Begun::Unsupported(why)),
        };
        let directory = place.directory.path();
        fs::write(directory.join("callgate.toml"), config).map_err(gave_up)?;
        fs::create_dir_all(directory.join(body::RUNS)).map_err(gave_up)?;
        for (index, tool) in place.world.tools.iter().enumerate() {
            body::write(directory, index, tool).map_err(gave_up)?;
        }
        let checked = self.run(directory, ["config", "check"], b"")?;
        if checked.status.success() {
            Ok(Begun::Ready)
        } else {
            let told = first_line(&checked);
            let where_and_what = told.rsplit_once("callgate.toml:").map_or(told.as_str(), |(_, rest)| rest);
            Ok(Begun::Unsupported(format!("no such configuration: {where_and_what}")))
        }
    }

    fn happen(&self, place: &mut Place, event: &Event) -> Result<Seen, SubjectFault> {
        match event {
            Event::Call(call) => return self.call(place, call),
            Event::Decide(decide) => {
                let decided = Some(self.decide(place, decide)?);
                return Ok(Seen { decided, ..Seen::default() });
            }
            Event::Rule(rule) => place.world.rules.push(rule.clone()),
            Event::Define(tool) => {
                for old in place.world.tools.iter_mut().filter(|old| old.name == tool.name) {
                    old.clone_from(tool);
                }
            }
            // Between two calls there is nothing that could be killed.
            Event::Kill(Kill { at: None, .. }) => {}
            Event::Kill(Kill { at: Some(Point::Execute), done: true, .. }) => {
                fs::write(place.directory.path().join(body::KILL), b"").map_err(gave_up)?;
            }
            Event::Kill(_) => return Err(unsupported("the command can be killed by what it runs, and nowhere else")),
            _ => return Err(unsupported("the command can't do that")),
        }
        match self.prepare(place)? {
            Begun::Ready => Ok(Seen::default()),
            Begun::Unsupported(why) | Begun::Refused(why) => Err(SubjectFault::Unsupported(why)),
        }
    }

    fn call(&self, place: &mut Place, call: &Call) -> Result<Seen, SubjectFault> {
        known(&place.world, &call.caller)?;
        let mut line = vec![OsString::from("call"), "--json".into(), "--request-id".into(), call.id.as_str().into()];
        if call.mode == Mode::Plan {
            line.push("--plan".into());
        }
        if let Some(operation) = &call.operation {
            if place.world.journal.is_none() {
                return Err(unsupported("the command keeps operations wherever it keeps a database"));
            }
            line.push(format!("--operation={operation}").into());
        }
        if let Some(token) = &call.token {
            line.extend(["--confirm".into(), token.as_str().into()]);
        }
        line.extend(options(&call.caller));
        line.extend(["--".into(), call.tool.as_str().into(), "-".into()]);
        let directory = place.directory.path().to_owned();
        let ran = self.run(&directory, &line, call.arguments.as_bytes())?;
        let records = self.records(place)?;
        if records.iter().any(|record| record.get("detail") == Some(&NOT_NAMED.into())) {
            return Err(unsupported("programs take no arguments that their schemas do not name"));
        }
        let runs = body::runs(&directory).map_err(gave_up)?;
        let args = records.iter().rev().find_map(|record| record.get("args")).cloned().unwrap_or_default();
        let tool = place.world.tools.iter().find(|tool| tool.name == call.tool);
        let marks = runs.iter().map(|run| Mark::with(Point::Execute, body::seen(tool, run, args.clone())));
        let mut seen = Seen { effects: u32::try_from(runs.len()).unwrap_or(u32::MAX), records, ..Seen::default() };
        seen.marks.extend(marks);
        if ran.status.signal() == Some(KILLED) {
            return Ok(Seen { killed: true, ..seen });
        }
        let Ok(mut outcome) = serde_json::from_slice::<Outcome>(&ran.stdout) else {
            // It did not come as far as the gate.
            let told = first_line(&ran);
            return Err(if ran.status.code() == Some(2) { unsupported(&told) } else { gave_up(told) });
        };
        // What a program printed, now or when the operation took effect.
        let replayed = outcome.meta.get("replayed") == Some(&true.into());
        let printed = outcome.success && (!runs.is_empty() || replayed);
        let output = outcome.data.get("output").filter(|_| printed).cloned();
        if let (Some(output), Some(tool)) = (output, tool) {
            let echo = seen.marks.first().and_then(|mark| mark.args.clone()).or_else(|| replayed.then_some(args));
            outcome.data = if tool.body == Body::Echo { echo.unwrap_or_default() } else { output };
        }
        Ok(Seen { outcome: Some(outcome), ..seen })
    }

    fn decide(&self, place: &Place, decide: &Decide) -> Result<bool, SubjectFault> {
        let verb = if decide.verdict == Verdict::Approve { "approve" } else { "deny" };
        let mut line = vec![OsString::from("approvals"), verb.into()];
        line.extend(options(&decide.approver));
        line.extend(["--".into(), decide.approval.as_str().into()]);
        let ran = self.run(place.directory.path(), &line, b"")?;
        match ran.status.code() {
            Some(0) => Ok(true),
            Some(3) => Ok(false),
            _ => Err(gave_up(first_line(&ran))),
        }
    }

    fn run<A: AsRef<OsStr>>(
        &self,
        directory: &Path,
        line: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Result<Output, SubjectFault> {
        let run = || -> io::Result<Output> {
            let mut child = process::Command::new(&self.program)
                .args(line)
                .current_dir(directory)
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap_or_default())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                // It may end before it has read everything.
                drop(stdin.write_all(input));
            }
            child.wait_with_output()
        };
        run().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => unsupported("no command line holds such a name"),
            _ => SubjectFault::Start(error.to_string()),
        })
    }

    /// The records that were written since they were asked for last.
    fn records(&self, place: &mut Place) -> Result<Vec<Value>, SubjectFault> {
        let log = match self.store {
            Store::Files => fs::read(place.directory.path().join(config::LOG)).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(Vec::new()),
                _ => Err(gave_up(error)),
            })?,
            Store::Database => self.run(place.directory.path(), ["audit", "export"], b"")?.stdout,
        };
        let log = String::from_utf8(log).map_err(gave_up)?;
        let mut records = Vec::new();
        for line in log.lines().skip(place.logged) {
            records.push(serde_json::from_str::<Value>(line).map_err(gave_up)?);
        }
        place.logged = place.logged.saturating_add(records.len());
        // The log notes other things, too: when it was opened, what was decided.
        records.retain(|record| ["intent", "terminal"].iter().any(|kind| record.get("kind") == Some(&(*kind).into())));
        Ok(records)
    }
}

/// Channels that the command knows without being told are not those of the world.
fn known(world: &World, caller: &Caller) -> Result<(), SubjectFault> {
    let listed = world.channels.iter().any(|channel| channel.name == caller.channel);
    if !listed && ["cli", "tui", "mcp", "web", "telegram"].contains(&caller.channel.as_str()) {
        return Err(unsupported("the command has a channel of this name, which the world has not"));
    }
    Ok(())
}

/// The caller, as options.
fn options(caller: &Caller) -> Vec<OsString> {
    let mut options = vec![format!("--channel={}", caller.channel)];
    let principal = caller.principal.iter().filter(|principal| !principal.is_empty());
    options.extend(principal.map(|principal| format!("--principal={principal}")));
    options.extend(caller.scopes.iter().map(|scope| format!("--scope={scope}")));
    options.extend(caller.tenant.iter().map(|tenant| format!("--tenant={tenant}")));
    options.extend(caller.session.iter().map(|session| format!("--session={session}")));
    options.into_iter().map(Into::into).collect()
}

fn unsupported(why: &str) -> SubjectFault {
    SubjectFault::Unsupported(why.to_owned())
}

fn first_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
}
