//! What a policy judges was validated and clamped (G5, P4).

use world::*;

pub fn drive(call: At<Resolved>, decision: Judgement) -> Result<At<Authorized>, End> {
    call.validate()?.authorize(decision)
}
