//! What ended as a plan cannot be executed (R4).

use world::*;

pub fn drive(call: At<Admitted>) {
    if let Err(planned) = call.unless_planning() {
        drop(planned.execute(body)); //~ E0599
    }
}
