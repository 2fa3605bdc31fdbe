//! What the `callgate` command is made of, as a library so that it can be tested without starting a process.
#![forbid(unsafe_code)]

pub mod config;
pub mod demo;
pub mod toolkit;
