//! Calls as streams: updates and outcomes, batches, and what becomes of what nobody waits for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod batch;
mod follow;
mod world;
