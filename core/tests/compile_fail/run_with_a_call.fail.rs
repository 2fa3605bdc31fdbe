//! A call is no permit, however far it has come (G1).

use world::*;

pub fn drive(call: At<Announced>) -> Option<Run> {
    let mut executing = call.begin();
    Some(executing.call()).map(body) //~ E0631
}
