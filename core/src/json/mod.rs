//! JSON: the one strict reader of arguments, and a writer.
//!
//! A second parser is a second opinion, and so a way around the gate. [`scan`] checks a whole text once, everywhere, and
//! what reads arguments afterwards ([`Events`], [`Value`], the serde deserializer, the digest) reads text that passed it.

mod canonical;
mod de;
mod decimal;
mod edit;
mod error;
mod event;
mod keys;
mod lex;
mod limits;
mod number;
mod object;
mod scan;
mod text;
mod token;
mod value;
pub mod write;

pub use canonical::KeysFull;
pub(crate) use canonical::{Item, visit as visit_canonical};
pub use de::{DeError, DeErrorKind};
pub use edit::{Edit, Edits, Full, MAX_CLAMPS, Replacement};
pub use error::{ReadError, ReadErrorKind};
pub use event::{Event, Events};
pub use keys::{KeySlot, key_capacity};
pub use limits::{Limits, MAX_DEPTH};
pub use number::Number;
pub use object::Object;
pub(crate) use scan::{Nobody, Watch, scan_text, scan_watched};
pub use scan::{Scanned, scan};
pub(crate) use text::Piece;
pub use text::{Bytes, Chars, Text};
pub use value::{Items, Kind, Members, Value};
