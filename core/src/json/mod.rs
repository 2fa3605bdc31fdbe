//! JSON: the one strict reader of arguments, and a writer.
//!
//! A second parser is a second opinion, and so a way around the gate. [`scan`] checks a whole text once, everywhere, and
//! what reads arguments afterwards ([`Events`], [`Value`], the serde deserializer, the digest) reads text that passed it.
//!
//! # Small devices
//!
//! A gate that is compiled with `--cfg callgate_small` is for a device whose memory is counted in kilobytes. It answers a call as every
//! other gate does, or refuses it and says so (invariants N5, F5):
//!
//! - it takes integers alone: a number with a point or an exponent is refused as one that can't be kept (`number_inexact`), and a schema
//!   or a clamp with such a bound as one that can't be used;
//! - arguments nest up to 8 deep (`max_depth`) and schemas up to 4;
//! - a tool has up to 8 rules for fields, with paths of up to 4 segments, and up to 4 values of a call can be clamped;
//! - a name of more than 48 letters counts as that of a secret.
//!
//! It is a setting of the whole program and no feature: features add up, and one crate would change what another one's gate admits. Why
//! is in `docs/decisions/0050-a-small-gate-is-a-setting-of-the-program.md`.

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
pub(crate) use limits::SMALL;
pub use limits::{Limits, MAX_DEPTH};
pub use number::Number;
pub use object::Object;
pub(crate) use scan::{Nobody, Seen, Watch, scan_text, scan_watched};
pub use scan::{Scanned, scan};
pub(crate) use text::Piece;
pub use text::{Bytes, Chars, Text};
pub use value::{Items, Kind, Members, Value};
