//! The file tools on real directories.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "in helpers of tests; a failure is a failed test")]

mod confined;
mod list;
mod place;
mod race;
mod read;
mod search;
mod write;
