//! The async front-end of callgate: the same gate on any executor.
//!
//! The stages and their order are core's, the tools, views and records those of `callgate-std`; this crate waits. A registry
//! that was built for the blocking gate serves this one. What waits is given in a wrapper that says how it is run: see
//! [`seam`].
#![forbid(unsafe_code)]

pub mod audit;
pub mod confirmations;
pub mod gate;
pub mod interceptors;
pub mod journal;
pub mod limiter;
pub mod policy;
pub mod runtime;
pub mod seam;

/// What the README shows in Rust, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
