//! `callgate audit`.

mod export;
mod source;
mod tail;
mod verify;

pub(super) use export::export;
pub(super) use tail::tail;
pub(crate) use verify::parse_head;
pub(super) use verify::verify;
