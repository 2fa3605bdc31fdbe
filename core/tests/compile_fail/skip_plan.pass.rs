//! A call that may be a plan asks nobody (G5, R4).

use world::*;

pub fn drive(call: At<Admitted>) -> Result<Confirm<Carried, Held>, End> {
    call.unless_planning()?.confirm()
}
