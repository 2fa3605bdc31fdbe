//! A call is neither planned nor run before its budget was asked (G5).

use world::*;

pub fn drive(call: At<Authorized>) -> Result<At<Live>, End> {
    call.unless_planning() //~ E0599
}
