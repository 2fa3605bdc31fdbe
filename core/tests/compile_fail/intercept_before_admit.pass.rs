//! Nothing is intercepted before it is within its budget (E5).

use world::*;

pub fn drive(call: At<Authorized>, verdict: Verdict) -> Result<(), End> {
    drop((call.admit(Ok(Allowance::Unlimited))?, verdict));
    Ok(())
}
