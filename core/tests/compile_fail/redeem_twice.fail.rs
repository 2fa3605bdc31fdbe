//! A claim is answered once (A5).

use world::*;

pub fn drive(redeeming: Redeeming<Carried, Held>) {
    let claimed = redeeming.redeemed(Ok(Ok(By::Caller)));
    drop((claimed, redeeming.redeemed(Ok(Ok(By::Caller))))); //~ E0382
}
