//! Typed tools: what a type or a function says of itself is what is advertised, what is checked, and what the body gets.
#![cfg(test)]
#![allow(dead_code, reason = "helpers that other programs use")]

#[path = "../drive/mod.rs"]
mod drive;
#[path = "../../../core/tests/generate/mod.rs"]
mod generate;

mod arguments;
mod bare;
mod functions;
mod same_as_schemars;
mod toolkits;
