//! What the tools of servers looked like when they were seen first.
//!
//! A server can say one thing while it is looked at and another afterwards. So the definition of each tool is pinned by its digest on
//! first sight, in a file of the gate's, and a tool that does not look so any more is withheld until a person has looked at the
//! difference and accepted it. So is one that comes under the name of another server's tool, and one that is a copy of a tool under
//! another name: a model would take the one for the other.

mod book;
mod definition;
mod diff;
mod file;

pub use book::{Book, Entry, MAX_TOOLS, Pinned, Reason, Verdict, Waiting};
pub(crate) use definition::definition_digest;
pub use diff::{Line, Side, changes, shown};
pub use file::{MAX_FILE, PinFile, PinFileError, Stamp};
