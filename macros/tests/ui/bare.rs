//! Tools that need a heap, where there is none.
#![allow(unused, reason = "what does not compile is not used")]
use callgate_macros::{tool, toolkit};

/// Does something
#[tool(no_std, max_output = 10)]
fn capped() {}

/// Does something
#[tool(no_std)]
async fn waits() {}

/// Does something
#[tool(no_std)]
fn lends(a: &[u8], call: &ToolCall<'_>) {}

/// Does something
#[tool(no_std)]
fn replies() -> Reply {}

/// Does something
#[tool(no_std)]
fn half() -> std::io::Result<u8> {
    Ok(1)
}

struct Notes;

#[toolkit]
impl Notes {
    /// Lists
    #[tool(no_std)]
    fn list(&self) {}
}

fn main() {}
