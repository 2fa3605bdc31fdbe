//! A permit is used up by the run (G1).

use world::*;

pub fn drive(call: At<Announced>) -> End {
    call.execute(|permit| {
        let run = body(permit);
        drop(());
        run
    })
}
