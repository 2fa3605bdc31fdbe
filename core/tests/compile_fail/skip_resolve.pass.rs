//! Only a call whose tool is known is validated (G5).

use world::*;

pub fn drive(call: Received, found: Lookup<Held>) {
    drop(call.resolve(found));
}
