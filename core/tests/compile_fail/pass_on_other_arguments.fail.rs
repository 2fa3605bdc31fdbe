//! An interceptor has no answer that replaces the arguments (E1, K4).

use world::*;

pub fn drive(subject: &Subject<'_>) -> Verdict {
    let _arguments = subject.args;
    Interception::Replace(Args::EMPTY) //~ E0599
}
