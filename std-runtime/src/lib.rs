//! Blocking front-end of callgate.

pub mod clock;
pub mod entropy;
mod lock;
