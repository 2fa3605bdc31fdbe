//! An interceptor sees the call and changes nothing (E1, K4).

use world::*;

pub struct Meddler;

impl Interceptor<&'static str, &'static str> for Meddler {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let _seen = subject.args;
        Interception::Continue
    }
}
