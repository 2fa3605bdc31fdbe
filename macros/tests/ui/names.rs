//! Names on the wire.
#![allow(unused, reason = "what does not compile is not used")]
use callgate_macros::{Arguments, tool, toolkit};

#[derive(Arguments)]
struct Twice {
    a: u8,
    #[param(rename = "a")]
    b: u8,
}

#[derive(Arguments)]
enum Variants {
    One,
    #[param(rename = "One")]
    Other,
}

#[derive(Arguments)]
struct Reserved {
    confirm_token: String,
    #[param(rename = "confirm_token")]
    token: String,
    #[param(rename = "")]
    nameless: String,
}

/// Pays
#[tool]
fn pay(confirm_token: &str) {}

/// Ignores
#[tool]
fn ignore(_what: &str) {}

struct Notes;

#[toolkit(prefix = "notes.")]
impl Notes {
    /// Lists
    #[tool]
    fn list(&self) {}

    /// Lists, too
    #[tool(name = "notes.list")]
    fn all(&self) {}
}

fn main() {}
