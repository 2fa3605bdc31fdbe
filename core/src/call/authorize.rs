//! Stage 4: policy.

use crate::code::Station;
use crate::policy::{ChannelPolicy, Decision, confirmation_required};
use crate::request::Context;
use crate::tool::Tool;

use super::{Call, End, Ended, Validated};

/// Policy allowed the call.
#[derive(Debug)]
pub struct Authorized(());

impl<C: Context, T: Tool> Call<C, T, Validated> {
    /// Takes the policy's decision about [`Call::subject`].
    ///
    /// # Errors
    /// The call ends when policy denies it.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn authorize(mut self, decision: Decision<C::Text>) -> Result<Call<C, T, Authorized>, Ended<C, T>> {
        match decision {
            Decision::Allow(permission) => {
                // A policy of the host's own may ask for more than the tool does, and never for less.
                let floor =
                    confirmation_required(self.tool.spec(), &ChannelPolicy::new(""), permission.consent.is_some());
                let facts = self.ctx.facts_mut();
                facts.set_rule(permission.rule());
                facts.unknown_channel = permission.unknown_channel;
                facts.confirm = permission.confirm.max(floor);
                Ok(self.advance())
            }
            Decision::Deny(denial) => {
                self.ctx.facts_mut().unknown_channel = denial.unknown_channel;
                Err(self.refuse(Station::Authorize, End::Denied(denial)))
            }
        }
    }
}
