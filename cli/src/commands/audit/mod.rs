//! `callgate audit`.

mod checkpoint;
mod explain;
mod export;
mod reap;
mod rotate;
mod source;
mod tail;
mod verify;

pub(super) use checkpoint::checkpoint;
pub(super) use explain::explain;
pub(super) use export::export;
pub(super) use reap::reap;
pub(super) use rotate::rotate;
pub(super) use tail::tail;
pub(crate) use verify::parse_head;
pub(super) use verify::verify;
