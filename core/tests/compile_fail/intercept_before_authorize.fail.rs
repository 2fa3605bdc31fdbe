//! Nothing is intercepted before it is authorized (E5).

use world::*;

pub fn drive(call: At<Validated>, decision: Judgement, verdict: Verdict) -> Result<(), End> {
    drop((call.intercept(verdict)?, decision)); //~ E0599
    Ok(())
}
