//! The lines of the protocol: one JSON object each, a request to the subject and an answer in turn.

use serde::{Deserialize, Serialize};

use crate::event::{Event, Seen};
use crate::subject::Declaration;
use crate::world::World;

/// The longest line that is taken, in bytes.
pub const MAX_LINE: usize = 16 << 20;

/// What the runner says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::exhaustive_enums, reason = "a version of the protocol has exactly these")]
pub enum Request {
    /// The first line: asks for a [`Answer::Declare`].
    Hello(Hello),
    /// A world begins, with nothing of the one before it: asks for [`Answer::Ready`], [`Answer::Unsupported`] or [`Answer::Refused`].
    World(Box<Begin>),
    /// Something happens in it: asks for [`Answer::Seen`].
    Event(Box<Event>),
    /// The last line; the subject ends.
    Bye {},
}

/// The first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of the protocol that the runner speaks.
    pub protocol: u32,
}

/// The beginning of a world.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begin {
    /// Where randomness comes from, for subjects that can be told.
    pub seed: u64,
    /// The world.
    pub world: World,
}

/// What a subject answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::exhaustive_enums, reason = "a version of the protocol has exactly these")]
pub enum Answer {
    /// What it can do.
    Declare(Box<Declaration>),
    /// The world is there.
    Ready {},
    /// It can't be put into this world, or have such a thing happen in it; the text says why.
    Unsupported(String),
    /// The gate refuses to guard this world; the text says why.
    Refused(String),
    /// What was seen.
    Seen(Box<Seen>),
    /// The adapter is at its end; the text says why. A fault of the harness, and no verdict on the gate.
    Error(String),
}
