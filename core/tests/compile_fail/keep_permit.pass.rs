//! A permit does not outlive the run it is for (G1).

use world::*;

pub fn drive(call: At<Announced>) {
    let mut kept = None;
    let ended = call.execute(|permit| {
        kept = Some(permit.spec().timeout_ms);
        Ran::Done("done").after(0)
    });
    drop((kept, ended));
}
