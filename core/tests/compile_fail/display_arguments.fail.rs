//! Arguments have no text of their own that a log could take (L1).

use world::*;

pub fn drive(args: Args<'_>) -> String {
    format!("{args}") //~ E0277
}
