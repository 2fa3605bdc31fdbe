//! What a call carries can be read on its way, not changed (K4).

use world::*;

pub fn drive(call: &At<Authorized>) {
    let _parts = call.context().parts(); //~ E0596
}
