//! How the blocking gate runs bodies: many at once, in the background, followed, bounded, and to their end when it goes down.
#![cfg(test)]

#[path = "../drive/mod.rs"]
mod drive;

mod background;
mod batch;
mod debug;
mod load;
mod options;
mod shutdown;
mod updates;
mod waiting;
mod world;
