//! A call that was stopped has no further stage (G7).

use world::*;

pub fn drive(call: At<Validated>, decision: Judgement) {
    if let Err(stopped) = call.authorize(decision) {
        drop(stopped.close(Now::default()));
    }
}
