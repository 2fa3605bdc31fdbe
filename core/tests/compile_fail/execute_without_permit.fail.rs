//! A body that takes a permit is not reached without one (G1).

use world::*;

pub fn drive(call: At<Announced>) -> End {
    call.execute(|_| body(())) //~ E0308
}
