//! A model has to know what a tool does.
use callgate_macros::{tool, toolkit};

#[tool]
fn silent() {}

/// # Errors
/// Only a programmer reads this.
#[tool]
fn silent_to_models() {}

#[tool(description = " ")]
fn blank() {}

struct Notes;

#[toolkit]
impl Notes {
    #[tool(read_only)]
    fn list(&self) {}
}

fn main() {}
