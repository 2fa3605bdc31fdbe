//! The command `callgate` as its users run it: the real binary, in directories of its own, with nothing of the environment
//! that the tests themselves run in.
#![cfg(unix)]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "tests fail loudly"
)]

mod approvals;
mod audit;
#[cfg(feature = "mcp")]
mod behind;
mod checkpoints;
mod configured;
mod confirming;
mod conformance;
mod demo;
mod exits;
mod explain;
mod grants;
mod init_from;
mod interrupted;
mod main_job;
mod operations;
mod output;
mod readme;
mod rotation;
mod serve;
mod signing;
mod state;
mod upkeep;
mod verifying;
mod web;
mod world;
