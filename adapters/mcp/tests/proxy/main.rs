//! Other servers behind a gate. They are scripts in this process that speak the protocol by hand, so that they can do what no
//! library would.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail loudly")]

mod calls;
mod hostile;
mod life;
mod pinned;
mod program;
mod script;
mod world;
