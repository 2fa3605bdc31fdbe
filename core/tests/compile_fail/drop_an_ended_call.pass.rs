//! An ended call that nobody closes does not go unnoticed (G6, J1).

use world::*;

#[deny(unused_must_use)]
pub fn drive(call: At<Resolved>) {
    drop(call.cancel());
}
