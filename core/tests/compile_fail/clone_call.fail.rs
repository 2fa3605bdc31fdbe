//! A call has no copy that could go another way (G5).

use world::*;

pub fn drive(call: At<Authorized>) {
    copies(call); //~ E0277
}
