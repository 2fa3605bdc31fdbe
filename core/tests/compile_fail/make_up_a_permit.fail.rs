//! A permit is made by the gate alone: its fields are private (G1).

use world::*;

pub fn drive(executing: &mut Executing<Carried, Held>) -> Option<Pass<'_>> {
    Some(Permit { call: executing.call() }) //~ E0451
}
