//! Blocking front-end of callgate.
#![forbid(unsafe_code)]

pub mod audit;
pub mod budget;
pub mod clock;
pub mod confirmations;
pub mod entropy;
pub mod failure;
pub mod interceptors;
pub mod limiter;
pub mod listing;
mod lock;
pub mod observer;
pub mod output;
pub mod registry;
pub mod tool;
mod value_text;
pub mod view;
