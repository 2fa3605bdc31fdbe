//! An outcome needs the answer of the audit sink (J1).

use world::*;

pub fn drive(closed: Over, written: Result<(), AuditFault>) -> Answer {
    Outcome::new(closed, written.is_err()) //~ E0624
}
