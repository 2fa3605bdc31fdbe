//! A permit does not come out of nothing (G1).

use world::*;

pub fn drive(executing: &mut Executing<Carried, Held>) -> Option<Pass<'_>> {
    Some(Permit::default()) //~ E0599
}
