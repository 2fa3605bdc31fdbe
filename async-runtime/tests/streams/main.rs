//! Calls as streams: updates and outcomes, batches, and what becomes of what nobody waits for.
#![cfg(test)]

mod batch;
mod follow;
mod world;
