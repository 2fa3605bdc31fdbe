//! An interceptor sees the call and changes nothing (E1, K4).

use world::*;

pub struct Meddler;

impl Interceptor<&'static str, &'static str> for Meddler {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        subject.args = Args::EMPTY; //~ E0594
        Interception::Continue
    }
}
