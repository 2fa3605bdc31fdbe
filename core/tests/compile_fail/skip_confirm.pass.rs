//! Between the plan and the interceptors stands the confirmation (E5).

use world::*;

pub fn drive(call: At<Live>, verdict: Verdict) -> Result<(), End> {
    drop((call.confirm()?, verdict));
    Ok(())
}
