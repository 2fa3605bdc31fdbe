//! The gate that every tool call of an AI agent passes, as a value.
//!
//! This crate holds every decision of callgate and no effect: it does no I/O, reads no clock, draws no randomness, spawns
//! nothing, needs no heap and contains no `unsafe`. Time, identifiers and the answers of stores are inputs; what has to
//! happen next is an output. Hosts that wait, block or sleep are built around it (`callgate-std` blocks).
//!
//! # Architecture
//!
//! - [`json`]: the one strict reader of arguments; [`args`]: read arguments with their clamps; [`digest`]: what binds an
//!   approval to exactly one call.
//! - [`tool`], [`schema`], [`clamp`], [`fields`]: what a tool says of itself, and what is checked of its arguments.
//! - [`typed`]: Rust types that say themselves what they are on the wire.
//! - [`context`]: who asks, through which channel, in which mode.
//! - [`policy`], [`limit`], [`confirm`], [`intercept`]: the decisions, as pure functions over values.
//! - [`journal`]: what runs at most once under an id of its caller's.
//! - [`fixed`]: stores, a log and a registry in memory of a fixed size, for hosts without a heap.
//! - [`redact`], [`audit`]: what may be written down, and the record itself.
//! - [`call`]: the typed stages; [`step`]: the same stages as an enum for hosts that park calls.
//! - [`outcome`]: what the caller gets; [`inspect`]: the pipeline explained for one tool, running nothing.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod args;
pub mod audit;
pub mod call;
pub mod clamp;
pub mod code;
pub mod confirm;
pub mod context;
pub mod digest;
pub mod entropy;
pub mod fields;
pub mod fixed;
pub mod inspect;
pub mod intercept;
pub mod journal;
pub mod json;
pub mod limit;
pub mod name;
pub mod nearest;
pub mod outcome;
pub mod policy;
pub mod redact;
pub mod request;
pub mod schema;
pub mod step;
pub mod time;
pub mod tool;
pub mod typed;
