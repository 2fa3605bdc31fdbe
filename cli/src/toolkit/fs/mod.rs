//! The file tools, confined to a declared root.
//!
//! A path of a caller is never handed to the operating system as it stands. [`RelPath`] refuses what is absolute, climbs or
//! holds a NUL; what is left is resolved by the kernel below the handle of the [`Root`], in a way that refuses every symbolic
//! link that leads out of it; and whatever a tool asks about a file it asks of the handle that it then uses (invariant S7).
//! Between two of those steps somebody else may swap directories and links as fast as they like.

mod conceal;
mod identity;
mod items;
pub mod list;
pub mod path;
pub mod read;
pub mod root;
pub mod search;
mod walk;
pub mod write;

pub use list::{ListArgs, list};
pub use path::RelPath;
pub use read::{Encoding, ReadArgs, read};
pub use root::Root;
pub use search::{SearchArgs, search};
pub use write::{WriteArgs, WriteMode, write};
