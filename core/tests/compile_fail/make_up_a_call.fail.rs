//! A call comes into being in one way: its fields are private (G1, G5).

use world::*;

pub fn drive(call: Received, ctx: Carried) -> Received {
    Call { ctx, ..call } //~ E0451
}
