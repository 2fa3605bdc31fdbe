//! An ended call becomes an outcome only as a closed one (J1).

use world::*;

pub fn drive(ended: End, written: Result<(), AuditFault>) -> Answer {
    ended.audited(written) //~ E0599
}
