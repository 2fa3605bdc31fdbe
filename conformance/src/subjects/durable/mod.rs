//! The blocking gate in a process that is killed for good: its stores and its log are files, and whoever starts it again finds what
//! they hold. The killing is done by this end, with `SIGKILL`; the other end stands still where it is to be killed, and says so.

mod child;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::surroundings::{gave_up, no_world};
use crate::event::{Event, Kill, Seen};
use crate::process::{DEFAULT_PATIENCE, Process};
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::World;

pub use child::Child;

/// The log of a world.
const LOG: &str = "audit.jsonl";

/// The blocking gate with files, in a process of its own.
#[derive(Debug)]
pub struct Durable {
    declaration: Declaration,
    program: OsString,
    arguments: Vec<OsString>,
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    directory: TempDir,
    world: World,
    seed: u64,
    process: Process,
    /// How many lines of the log were shown.
    logged: usize,
}

impl Durable {
    /// The program that is a [`Child`] when it is given these arguments and, as the last one, a directory.
    pub fn new(program: impl Into<OsString>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            declaration: Child::declaration_of(),
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            place: None,
        }
    }
}

impl Subject for Durable {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        // The one before it goes first, and its files with it.
        self.place = None;
        let directory = tempfile::tempdir().map_err(gave_up)?;
        let arguments = self.arguments.iter().cloned().chain([directory.path().as_os_str().to_owned()]);
        let mut process = Process::start(self.program.clone(), arguments, DEFAULT_PATIENCE)?;
        let begun = process.begin(world, seed)?;
        self.place = Some(Place { directory, world: world.clone(), seed, process, logged: 0 });
        Ok(begun)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        let Place { directory, world, seed, process, logged } = self.place.as_mut().ok_or_else(no_world)?;
        let killed = matches!(event, Event::Kill(Kill { at: None, .. }));
        let seen = if killed { Seen::default() } else { process.event(event)? };
        if killed || seen.killed {
            process.kill();
            if process.begin(world, *seed)? != Begun::Ready {
                return Err(gave_up("the gate did not come up again"));
            }
        }
        // What the log holds, whatever anybody says.
        let records = records(directory.path(), *logged)?;
        *logged = logged.saturating_add(records.len());
        let kinds = ["intent", "terminal"].map(Value::from);
        let records = records.into_iter().filter(|record| record.get("kind").is_some_and(|kind| kinds.contains(kind)));
        Ok(Seen { records: records.collect(), ..seen })
    }
}

/// The lines of the log after the first `skipped`.
fn records(directory: &Path, skipped: usize) -> Result<Vec<Value>, SubjectFault> {
    let log = directory.join(LOG);
    if !log.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(log).map_err(gave_up)?;
    text.lines().skip(skipped).map(|line| serde_json::from_str(line).map_err(gave_up)).collect()
}
