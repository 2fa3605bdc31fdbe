//! Stage 8: interceptors have the last word.

use crate::code::Station;
use crate::intercept::Interception;
use crate::request::Context;
use crate::tool::Tool;

use super::{Call, Confirmed, End, Ended};

/// No interceptor objects.
#[derive(Debug)]
pub struct Cleared(());

impl<C: Context, T: Tool> Call<C, T, Confirmed> {
    /// Takes the interceptors' verdict about [`Call::subject`].
    ///
    /// # Errors
    /// The call ends with an answer, a veto, or because an interceptor failed (invariant E3). A ticket that it claimed
    /// stays spent.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn intercept(self, verdict: Interception<T::Output, C::Text>) -> Result<Call<C, T, Cleared>, Ended<C, T>> {
        let end = match verdict {
            Interception::Continue => return Ok(self.advance()),
            Interception::Answer(output) => {
                let mut valid = true;
                self.tool.validate_output(&output, &mut |_| valid = false);
                if valid { End::Answered(output) } else { End::AnswerInvalid(output) }
            }
            Interception::Veto(reason) => End::Vetoed(reason),
            Interception::Failed(reason) => End::InterceptorFailed(reason),
        };
        Err(self.refuse(Station::EmitExecuting, end))
    }
}
