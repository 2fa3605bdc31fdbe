//! The marks of the stages cannot be made (G5).

use world::*;

pub fn drive() -> Option<Authorized> {
    Some(Authorized(())) //~ E0423
}
