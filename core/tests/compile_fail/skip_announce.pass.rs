//! No effect without the answer of the audit sink (J2).

use world::*;

pub fn drive(call: At<Cleared>, written: Result<(), AuditFault>) -> Result<End, End> {
    Ok(call.announce(written)?.execute(body))
}
