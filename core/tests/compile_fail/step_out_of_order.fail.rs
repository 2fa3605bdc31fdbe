//! A step holds only the stage that it is about (G5).

use world::*;

pub fn drive(call: At<Confirmed>) -> Step<Carried, Held> {
    Step::Execute(call) //~ E0308
}
