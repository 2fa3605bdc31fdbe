//! Typed tools: what a type or a function says of itself is what is advertised, what is checked, and what the body gets.
#![cfg(test)]

#[path = "../drive/mod.rs"]
mod drive;

mod arguments;
mod functions;
mod toolkits;
