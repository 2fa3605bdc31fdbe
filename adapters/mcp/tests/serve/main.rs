//! A gate behind MCP: what clients see of it, and what is recorded.
#![cfg(test)]

mod confirming;
mod hostile;
mod http;
mod jwt;
mod lines;
mod world;
