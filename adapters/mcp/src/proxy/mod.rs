//! Many servers behind one gate: their tools beside the host's own, each as it was pinned.

mod fleet;
mod offer;

pub use fleet::{Fleet, Member, Watch};
pub use offer::{Adjust, Event, Offer};
