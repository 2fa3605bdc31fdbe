//! A stage is used up by its transition (G5).

use world::*;

pub fn drive(call: At<Validated>, decision: Judgement) {
    drop(call.authorize(decision));
    drop(call.cancel()); //~ E0382
}
