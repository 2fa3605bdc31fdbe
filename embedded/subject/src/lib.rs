//! The gate without a heap and without an operating system, as a subject of the conformance suite (`conformance/PROTOCOL.md`).
//!
//! The same code runs in three places: in a process of the host (`bare-subject`), on a microcontroller behind its serial line
//! (`embedded/firmware`), and as a WebAssembly module (`embedded/wasm`). [`Subject::answer`] takes a line of the protocol and
//! writes the answer; the rest is what a host does: it gives the gate's stages what they ask for ([`callgate_core::step`]), from
//! the stores of [`callgate_core::fixed`]. There is no logic of the gate here.
//!
//! # What it can't do
//!
//! A world has to fit: [`WORLD`] bytes of JSON, [`MOST`] tools, channels, rules and interceptors each, [`PLACES`] questions at once. Its
//! schemas are objects of scalars and of arrays of scalars. Nothing can panic, because nothing could catch it. Listeners belong
//! to hosts that have drivers, and nothing outlives a restart. A world or an event beyond that is answered with `unsupported`, and a
//! vector that needs it does not apply.
#![no_std]
#![forbid(unsafe_code)]

mod book;
mod drive;
mod event;
mod policy;
mod schema;
mod tool;
mod words;
mod world;

use core::fmt::{self, Write};

use callgate_core::fixed::Buffer;
use callgate_core::json::{KeySlot, Limits, Number, Object, Value, scan};

use crate::drive::Host;
use crate::words::{Words, text};
use crate::world::World;

/// The most bytes of JSON that a world may have, with everything that was added to it.
pub const WORLD: usize = 2_048;
/// The most tools, channels, rules and interceptors, each.
pub const MOST: usize = 8;
/// The most questions that are kept at once.
pub const PLACES: usize = 8;
/// The longest line of the protocol that is taken.
pub const LINE: usize = 4_096;

/// The keys of the largest text.
type Keys = [KeySlot; 192];

/// Why a line can't be answered as it asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// The world, or the event, is beyond what this subject can do.
    Unsupported(&'static str),
    /// The line is not in the protocol, or the subject is at its end.
    Error(&'static str),
}

use Trouble::{Error, Unsupported};

/// What a subject remembers from one line to the next.
pub struct Subject {
    /// The world as it was told, and each rule and tool that came later, a line each.
    world: Buffer<WORLD>,
    host: Host,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}

impl Default for Subject {
    fn default() -> Self {
        Self::new()
    }
}

/// What was asked for, when it is over.
enum Answered {
    /// The answer is written.
    Written,
    /// The runner says goodbye.
    Bye,
}

impl Subject {
    /// A subject in no world.
    #[must_use]
    pub const fn new() -> Self {
        Self { world: Buffer::new(), host: Host::new(0) }
    }

    /// Takes one line of the protocol and writes the answer, without a line break. False when the runner says goodbye, which has no
    /// answer.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn answer(&mut self, line: &[u8], out: &mut dyn Write) -> Result<bool, fmt::Error> {
        match self.line(line, out)? {
            Ok(Answered::Written) => Ok(true),
            Ok(Answered::Bye) => Ok(false),
            Err(trouble) => {
                let (name, why) = match trouble {
                    Unsupported(why) => ("unsupported", why),
                    Error(why) => ("error", why),
                };
                let mut object = Object::begin(out)?;
                object.text(name, why)?;
                object.end().map(|()| true)
            }
        }
    }

    fn line(&mut self, line: &[u8], out: &mut dyn Write) -> Result<Result<Answered, Trouble>, fmt::Error> {
        let mut keys: Keys = [KeySlot::default(); 192];
        let Ok(scanned) = scan(line, &mut keys, &Limits::DEFAULT) else {
            return Ok(Err(Error("the line is no JSON, or has more keys than there is room for")));
        };
        let mut members = scanned.value().members();
        let (Some((name, value)), None) = (members.next(), members.next()) else {
            return Ok(Err(Error("the line is no object of one member")));
        };
        let name = name.as_plain().unwrap_or_default();
        Ok(match name {
            "hello" => {
                if value.get("protocol").and_then(Value::as_number).and_then(Number::as_u64) == Some(1) {
                    declare(out)?;
                    Ok(Answered::Written)
                } else {
                    Err(Error("this is version 1 of the protocol"))
                }
            }
            "world" => {
                let begun = self.begin(value);
                if begun.is_ok() {
                    out.write_str(r#"{"ready":{}}"#)?;
                }
                begun.map(|()| Answered::Written)
            }
            "event" => self.event(value, out)?.map(|()| Answered::Written),
            "bye" => Ok(Answered::Bye),
            _ => Err(Error("the line is not in the protocol")),
        })
    }

    fn begin(&mut self, begin: Value<'_>) -> Result<(), Trouble> {
        let words = Words::of(begin, &["seed", "world"])?;
        let seed = words.number("seed")?.and_then(Number::as_u64).unwrap_or_default();
        let world = words.get("world").ok_or(Error("there is no world"))?;
        self.world.clear();
        world.write_json(&mut self.world).map_err(|_| Unsupported("the world is too large"))?;
        self.host = Host::new(seed);
        let began = self.look();
        if began.is_err() {
            self.world.clear();
        }
        began
    }

    /// Looks at the whole world once, so that what can't be is told at its beginning.
    fn look(&mut self) -> Result<(), Trouble> {
        let mut keys: Keys = [KeySlot::default(); 192];
        let world = World::read(self.world.as_str(), &mut keys)?;
        for tool in world.tools() {
            tool::Script::read(tool)?.check()?;
        }
        policy::with(&world, |_| ())?;
        drive::check_interceptors(&world)?;
        self.host.settle(&world)
    }

    fn event(&mut self, event: Value<'_>, out: &mut dyn Write) -> Result<Result<(), Trouble>, fmt::Error> {
        let mut members = event.members();
        let (Some((name, value)), None) = (members.next(), members.next()) else {
            return Ok(Err(Error("an event has one name")));
        };
        let name = name.as_plain().unwrap_or_default();
        let added = match name {
            "rule" | "define" => self.add(name, value),
            _ => Ok(()),
        };
        if let Err(trouble) = added {
            return Ok(Err(trouble));
        }
        let mut keys: Keys = [KeySlot::default(); 192];
        let world = match World::read(self.world.as_str(), &mut keys) {
            Ok(world) => world,
            Err(trouble) => return Ok(Err(trouble)),
        };
        self.host.happen(&world, name, value, out)
    }

    /// Adds a rule or a tool to the world, if it can be.
    fn add(&mut self, name: &str, value: Value<'_>) -> Result<(), Trouble> {
        let before = self.world.len();
        let mut write = || {
            writeln!(self.world)?;
            let mut object = Object::begin(&mut self.world)?;
            object.raw(name, |out| value.write_json(out))?;
            object.end()
        };
        let added = write().map_err(|_| Unsupported("the world grew too large")).and_then(|()| match name {
            "define" => tool::Script::read(value)?.check(),
            _ => Ok(()),
        });
        let added = added.and_then(|()| {
            let mut keys: Keys = [KeySlot::default(); 192];
            policy::with(&World::read(self.world.as_str(), &mut keys)?, |_| ())
        });
        if added.is_err() {
            self.world.truncate(before);
        }
        added
    }
}

/// What this subject says of itself.
fn declare(out: &mut dyn Write) -> fmt::Result {
    const SUPPORTS: [&str; 18] = [
        "schema",
        "clamp",
        "channels",
        "rules",
        "rule_change",
        "quota",
        "attempts",
        "plan",
        "confirm",
        "approvals",
        "intercept",
        "output_schema",
        "clock",
        "define",
        "tenants",
        "sessions",
        "secrets",
        "faults",
    ];
    const POINTS: [&str; 8] = ["authorize", "charge", "issue", "redeem", "intercept", "intent", "execute", "record"];
    let mut object = Object::begin(out)?;
    object.raw("declare", |out| {
        let mut declare = Object::begin(out)?;
        declare.number("protocol", 1)?;
        declare.text("name", "callgate-core, without heap")?;
        declare.text("version", env!("CARGO_PKG_VERSION"))?;
        declare.strings("supports", SUPPORTS)?;
        declare.raw("compares", |out| {
            let mut compares = Object::begin(out)?;
            compares.boolean("codes", true)?;
            compares.boolean("effect", true)?;
            compares.strings("transcript", POINTS)?;
            compares.text("records", "full")?;
            compares.end()
        })?;
        declare.end()
    })?;
    object.end()
}

/// A plain text of the world's, or that there is a reason why it is none.
fn plain<'w>(value: Value<'w>) -> Result<&'w str, Trouble> {
    text(value).ok_or(Unsupported("a text of the world has escapes"))
}
