//! The subject under test: what it says of itself, and what it is asked to do.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Point, Seen};
use crate::feature::Feature;
use crate::world::World;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// What a subject says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it can do.
    pub supports: BTreeSet<Feature>,
    /// How strictly it can be compared.
    pub compares: Compares,
}

/// How strictly a subject can be compared. What it can't show is left out of the comparison; whether a call succeeded and how many
/// bodies were started is always compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compares {
    /// Its codes are those of the papers.
    pub codes: bool,
    /// Its outcomes say what the call did to the world.
    pub effect: bool,
    /// The points that it shows.
    pub transcript: BTreeSet<Point>,
    /// What it shows of its records.
    pub records: Records,
}

/// What a subject shows of its audit records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a version of the protocol has exactly these")]
pub enum Records {
    /// Nothing.
    None,
    /// How many there are.
    Count,
    /// What is in them.
    Full,
}

impl Declaration {
    /// The same, without these.
    #[must_use]
    pub fn without(mut self, features: &[Feature]) -> Self {
        self.supports.retain(|feature| !features.contains(feature));
        self
    }

    /// Everything, compared as strictly as can be.
    #[must_use]
    pub fn full(name: &str) -> Self {
        Self {
            protocol: PROTOCOL,
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            supports: Feature::ALL.iter().copied().collect(),
            compares: Compares {
                codes: true,
                effect: true,
                transcript: [
                    Point::Authorize,
                    Point::Charge,
                    Point::Issue,
                    Point::Redeem,
                    Point::Intercept,
                    Point::Intent,
                    Point::Execute,
                    Point::Record,
                ]
                .into(),
                records: Records::Full,
            },
        }
    }
}

/// Whether a subject can be put into a world.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a subject is ready or it is not")]
pub enum Begun {
    /// It is there.
    Ready,
    /// It can't be, for this reason; the vector does not apply to it.
    Unsupported(String),
    /// The gate refuses to guard it, for this reason.
    Refused(String),
}

/// Why a subject could not be judged: a fault of the harness or of the adapter, and no verdict on the gate.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubjectFault {
    /// It could not be started.
    #[error("the subject could not be started: {0}")]
    Start(String),
    /// It ended, or closed its output.
    #[error("the subject ended: {0}")]
    Ended(String),
    /// It did not answer in time.
    #[error("the subject did not answer within {0} ms")]
    TimedOut(u128),
    /// It said something that is not in the protocol.
    #[error("the subject does not keep to the protocol: {0}")]
    Protocol(String),
    /// It says itself that such a thing can't happen in its world; the vector does not apply to it.
    #[error("the subject can't be judged by this: {0}")]
    Unsupported(String),
    /// It was not waited for, because somebody asked to stop.
    #[error("stopped before the subject had answered")]
    Stopped,
    /// It says itself that it can't go on.
    #[error("the subject gave up: {0}")]
    GaveUp(String),
}

/// A subject under test. One world after the other; a world begins with nothing of the one before it.
pub trait Subject {
    /// What it says of itself.
    fn declaration(&self) -> &Declaration;

    /// Puts it into a world. `seed` is where its randomness comes from, where it can be told.
    ///
    /// # Errors
    /// It could not be judged.
    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault>;

    /// Has something happen in its world.
    ///
    /// # Errors
    /// It could not be judged, or by this event only: [`SubjectFault::Unsupported`].
    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault>;
}

impl<S: Subject + ?Sized> Subject for Box<S> {
    fn declaration(&self) -> &Declaration {
        (**self).declaration()
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        (**self).begin(world, seed)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        (**self).event(event)
    }
}
