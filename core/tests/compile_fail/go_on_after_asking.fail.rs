//! A call that asked has ended; the yes comes with another call (A3).

use world::*;

pub fn drive(asking: Asking<Carried, Held>, issued: Result<Issued, IssueFault>) {
    let call = asking.asked(issued);
    drop(call.intercept(Interception::Continue)); //~ E0599
}
