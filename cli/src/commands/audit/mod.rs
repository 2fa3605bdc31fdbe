//! `callgate audit`.

mod explain;
mod export;
mod reap;
mod source;
mod tail;
mod verify;

pub(super) use explain::explain;
pub(super) use export::export;
pub(super) use reap::reap;
pub(super) use tail::tail;
pub(crate) use verify::parse_head;
pub(super) use verify::verify;
