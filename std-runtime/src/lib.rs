//! Blocking front-end of callgate.

pub mod audit;
pub mod clock;
pub mod confirmations;
pub mod entropy;
pub mod interceptors;
pub mod limiter;
mod lock;
pub mod observer;
