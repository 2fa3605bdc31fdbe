//! What the `callgate` command is made of, as a library so that it can be tested without starting a process.
#![forbid(unsafe_code)]

mod arguments;
mod assemble;
mod caller;
mod command_line;
pub mod commands;
pub mod config;
pub mod demo;
mod exit;
mod interrupt;
mod logging;
mod report;
mod table;
mod terminal;
pub mod toolkit;
mod trouble;
mod view;
