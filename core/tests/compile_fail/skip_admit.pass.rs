//! A call is neither planned nor run before its budget was asked (G5).

use world::*;

pub fn drive(call: At<Authorized>) -> Result<At<Live>, End> {
    call.admit(Ok(Allowance::Unlimited))?.unless_planning()
}
