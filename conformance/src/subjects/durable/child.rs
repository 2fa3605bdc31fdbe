//! The end that is killed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use callgate_core::time::{Instant, Now, Timestamp};
use callgate_std::audit::JsonlAudit;
use callgate_std::confirmations::{FILE_CAPACITY, FileConfirmations};
use callgate_std::entropy::SeededEntropy;
use callgate_std::limiter::{DEFAULT_KEYS, FileLimiter};
use serde::{Deserialize, Serialize};

use super::super::blocking::Blocking;
use super::super::surroundings::{Stores, Surroundings, gave_up, no_world, quotas};
use super::super::time::Time;
use super::super::watched::{Planted, Watch};
use super::LOG;
use crate::event::{Event, Seen};
use crate::feature::Feature;
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::wire::Answer;
use crate::world::World;

/// What is between two lives of a seed, so that no two draw the same tokens.
const ANOTHER_LIFE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The blocking gate, with stores and a log in the files of a directory. Meant to be killed.
#[derive(Debug)]
pub struct Child {
    gate: Blocking,
    directory: PathBuf,
    lives: u64,
}

/// What the harness itself has to know again after a kill: the time, what is planted, and the world as it has become.
#[derive(Serialize, Deserialize)]
struct Notes {
    lives: u64,
    monotonic_ns: u64,
    wall_ms: u64,
    planted: Planted,
    world: World,
}

impl Child {
    /// The gate in this directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { gate: Blocking::called(Self::declaration_of()), directory: directory.into(), lives: 0 }
    }

    /// What it says of itself.
    pub(super) fn declaration_of() -> Declaration {
        // Files of text keep no operations.
        Declaration::full("callgate-std, blocking, with files, killed").without(&[Feature::Operations])
    }

    fn notes(&self) -> PathBuf {
        self.directory.join("notes.json")
    }
}

fn note(path: &Path, lives: u64, time: &Time, planted: Planted, world: &World) -> io::Result<()> {
    let now = time.now();
    let notes = Notes {
        lives,
        monotonic_ns: now.monotonic.as_nanos(),
        wall_ms: now.wall.as_unix_millis(),
        planted,
        world: world.clone(),
    };
    fs::write(path, serde_json::to_vec(&notes)?)
}

/// Says the last words, and then stands still until the other end has killed this process.
fn die(seen: Seen) -> ! {
    let answer = Answer::Seen(Box::new(seen));
    let told = serde_json::to_string(&answer).map_err(io::Error::from).and_then(|line| {
        let mut output = io::stdout().lock();
        writeln!(output, "{line}")?;
        output.flush()
    });
    // Without them the other end finds out by itself, when it has waited long enough.
    drop(told);
    loop {
        thread::park();
    }
}

impl Subject for Child {
    fn declaration(&self) -> &Declaration {
        self.gate.declaration()
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        let before = match fs::read(self.notes()) {
            Ok(notes) => Some(serde_json::from_slice::<Notes>(&notes).map_err(gave_up)?),
            Err(_) => None,
        };
        let (watch, time) = (Watch::default(), Time::new());
        let mut world = world.clone();
        self.lives = 0;
        if let Some(notes) = before {
            let wall = Timestamp::from_unix_millis(notes.wall_ms);
            time.set(Now { monotonic: Instant::from_nanos(notes.monotonic_ns), wall });
            watch.plant_again(notes.planted);
            world = notes.world;
            self.lives = notes.lives.saturating_add(1);
        }
        let entropy = SeededEntropy::shared(seed.wrapping_add(self.lives.wrapping_mul(ANOTHER_LIFE)));
        let file = |name: &str| self.directory.join(name);
        let confirmations =
            FileConfirmations::open_with(file("confirmations.json"), FILE_CAPACITY, time.shared(), entropy.clone());
        let confirmations = confirmations.map_err(gave_up)?;
        confirmations.attach_approvers(world.approvers);
        let quotas = match quotas(&world) {
            Ok(quotas) => quotas,
            Err(why) => return Ok(Begun::Refused(why)),
        };
        let limiter =
            FileLimiter::open_with(file("limits.json"), move |key| quotas.of(key), time.shared(), DEFAULT_KEYS);
        let stores = Stores {
            confirmations: Arc::new(confirmations),
            limiter: Arc::new(limiter.map_err(gave_up)?),
            log: Some(Arc::new(JsonlAudit::open(file(LOG)).map_err(gave_up)?)),
            journal: None,
        };
        let (notes, lives, at_death, world_then) = (self.notes(), self.lives, time.clone(), world.clone());
        watch.when_killed(move |seen, planted| {
            // What happened to the world before this call was noted after it; in a call it changes no more.
            let noted = fs::read(&notes).ok().and_then(|notes| serde_json::from_slice::<Notes>(&notes).ok());
            let world = noted.map_or_else(|| world_then.clone(), |notes| notes.world);
            drop(note(&notes, lives, &at_death, planted, &world));
            die(seen)
        });
        let around = match Surroundings::with_stores(&world, watch, time, entropy, stores) {
            Ok(around) => around,
            Err(why) => return Ok(Begun::Refused(why)),
        };
        self.gate.settle_in(around)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        let seen = self.gate.event(event)?;
        let around = self.gate.around().ok_or_else(no_world)?;
        note(&self.notes(), self.lives, &around.time, around.watch.planted(), &around.world).map_err(gave_up)?;
        Ok(seen)
    }
}
