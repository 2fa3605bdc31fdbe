//! Nothing is announced that an interceptor may still veto (G5).

use world::*;

pub fn drive(call: At<Confirmed>, verdict: Verdict) -> Result<At<Announced>, End> {
    call.intercept(verdict)?.announce(Ok(()))
}
