//! The gates of this workspace as subjects.
//!
//! They share what surrounds a gate (tools, policy, stores, a log: `surroundings`), which watches what the gate asks and plants
//! the faults; the gates themselves are as they are.

mod answers;
mod blocking;
#[cfg(unix)]
mod command;
mod durable;
#[cfg(feature = "executors")]
mod executors;
mod judges;
mod linear;
mod listening;
mod steps;
mod surroundings;
mod time;
mod watched;

pub use blocking::Blocking;
#[cfg(unix)]
pub use command::{Command, Store};
pub use durable::{Child, Durable};
#[cfg(feature = "executors")]
pub use executors::{Smol, Tokio};
pub use linear::Linear;
pub use steps::Steps;

use crate::model::Model;
use crate::subject::Subject;
use crate::wrong::{Twist, Wrong};

/// The subjects that can be named, beside the wrong ones: see [`named`].
pub const NAMES: &[&str] = &[
    "blocking",
    "steps",
    "linear",
    #[cfg(feature = "executors")]
    "tokio",
    #[cfg(feature = "executors")]
    "smol",
    "model",
];

/// The subject of this name: one of [`NAMES`], or `wrong:` and the name of a [`Twist`].
#[must_use]
pub fn named(name: &str) -> Option<Box<dyn Subject>> {
    Some(match name {
        "blocking" => Box::new(Blocking::new()),
        "steps" => Box::new(Steps::new()),
        "linear" => Box::new(Linear::new()),
        #[cfg(feature = "executors")]
        "tokio" => Box::new(Tokio::new().ok()?),
        #[cfg(feature = "executors")]
        "smol" => Box::new(Smol::new()),
        "model" => Box::new(Model::new()),
        _ => Box::new(Wrong::new(Twist::parse(name.strip_prefix("wrong:")?)?)),
    })
}
