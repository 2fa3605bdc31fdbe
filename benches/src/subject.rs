//! Whatever is counted turn by turn, by name.

use crate::call::{ARGUMENTS, CLAMPED, bare, call, gate, name};
use crate::part::part;
use crate::reader::{SIZES, check, keys_of, read, read_bare, text_of};
use crate::waiting;

/// One turn of some work.
pub type Turn = Box<dyn FnMut()>;

/// The names of all subjects, in the order in which they are shown.
pub const NAMES: [&str; 12] = [
    "bare",
    "call",
    "call, clamped",
    "call, digested",
    "call, refused by its schema",
    "call, no such tool",
    "read 100 B",
    "read 4 KiB",
    "read 256 KiB",
    "check 256 KiB",
    "serde_json 100 B",
    "serde_json 256 KiB",
];

/// The subject of this name, a part of a call ([`PARTS`](crate::part::PARTS)), or `call, async`, which is timed and whose allocations are
/// held, but not its instructions.
#[must_use]
pub fn subject(wanted: &str) -> Option<Turn> {
    let tool = name(0);
    let through = |digests, arguments: &'static [u8], tool: String| -> Turn {
        let gate = gate(10, digests);
        Box::new(move || call(&gate, &tool, arguments))
    };
    let size = |wanted: &str| SIZES.iter().find(|(name, _)| *name == wanted).map(|(_, bytes)| text_of(*bytes));
    Some(match wanted {
        "bare" => Box::new(bare),
        "call" => through(false, ARGUMENTS, tool),
        "call, clamped" => through(false, CLAMPED, tool),
        "call, digested" => through(true, ARGUMENTS, tool),
        "call, async" => {
            let gate = waiting::gate(waiting::NeverWaits);
            Box::new(move || waiting::call(&gate))
        }
        "call, refused by its schema" => through(false, br#"{"path":"src/main.rs"}"#, tool),
        "call, no such tool" => through(false, ARGUMENTS, "nobody".to_owned()),
        other if other.starts_with("part: ") => return part(other),
        other => {
            let (what, text) = other.split_once(' ').and_then(|(what, of)| Some((what, size(of)?)))?;
            let mut keys = keys_of(&text);
            match what {
                "read" => Box::new(move || read(&text, &mut keys)),
                "check" => Box::new(move || check(&text, &mut keys)),
                "serde_json" => Box::new(move || read_bare(&text)),
                _ => return None,
            }
        }
    })
}
