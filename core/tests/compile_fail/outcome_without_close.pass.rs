//! An ended call becomes an outcome only as a closed one (J1).

use world::*;

pub fn drive(ended: End, written: Result<(), AuditFault>) -> Answer {
    ended.close(Now::default()).audited(written)
}
