//! Arguments are seen only once they were read, checked and clamped (P4).

use world::*;

pub fn drive(call: At<Resolved>) {
    let _seen = call.args().is_empty(); //~ E0599
}
