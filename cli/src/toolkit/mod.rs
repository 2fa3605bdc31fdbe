//! The tools that the command brings with it: the time, files below a declared root, and programs that a configuration
//! declares.
//!
//! Nothing here knows the gate. A tool is a [`ToolDef`], which says what the gate needs to know of it, and a plain function
//! from typed arguments to a [`ToolResult`]. Whoever registers them joins the two, and hands each call the [`Deadline`] it
//! got from the gate:
//!
//! | tool | description | body |
//! |---|---|---|
//! | `time.now` | [`time::definition`] | [`time::now`] |
//! | `fs.list` | [`fs::list::definition`] | [`fs::list()`] |
//! | `fs.read` | [`fs::read::definition`] | [`fs::read()`] |
//! | `fs.search` | [`fs::search::definition`] | [`fs::search()`] |
//! | `fs.write` | [`fs::write::definition`] | [`fs::write()`] |
//!
//! A declared program is an [`exec::Program`], made at the start, whose body is [`exec::Program::run`].
//!
//! Arguments arrive checked against the schema and clamped, but a body trusts neither: it bounds again what could cost
//! memory or time (invariant X6), so that a mistake in a registration is no hole.

pub mod deadline;
pub mod definition;
pub mod error;
#[cfg(unix)]
pub mod exec;
pub mod fs;
pub mod time;

pub use deadline::Deadline;
pub use definition::{ClampRange, ToolDef};
pub use error::{Fault, ToolError, ToolResult};

/// The built-in tools that need no configuration, sorted by name.
#[must_use]
pub fn definitions() -> Vec<ToolDef> {
    vec![
        fs::list::definition(),
        fs::read::definition(),
        fs::search::definition(),
        fs::write::definition(),
        time::definition(),
    ]
}
