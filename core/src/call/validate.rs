//! Stages 2 and 3: the arguments are read, checked against the schema and brought into their bounds.

use crate::code::Station;
use crate::policy::Subject;
use crate::request::{Context, Parts, with_caller};
use crate::tool::Tool;

use super::look::{self, Refused};
use super::{Call, End, Ended, Resolved, checked_args};

/// The arguments fit the schema, before and after clamping.
#[derive(Debug)]
pub struct Validated(());

impl<C: Context, T: Tool> Call<C, T, Resolved> {
    /// Reads the arguments with the strict reader, checks them, clamps them, and checks the result again (invariants S1, K1).
    ///
    /// # Errors
    /// The call ends when the arguments are malformed, do not fit, or would need more clamps than there is room for.
    pub fn validate(mut self) -> Result<Call<C, T, Validated>, Ended<C, T>> {
        let Parts { request, text, edits, keys, .. } = self.ctx.parts();
        let text = look::Text { sent: request.arguments, utf8: text };
        let read = look::read(&self.tool, text, keys, edits);
        let clamped = !edits.is_empty();
        let facts = self.ctx.facts_mut();
        facts.was_read = !matches!(read, Err(Refused::Malformed(_)));
        facts.clamped = clamped;
        match read {
            Ok(()) => {}
            Err(Refused::Malformed(error)) => return Err(self.refuse(Station::Validate, End::Malformed(error))),
            Err(Refused::Invalid) => return Err(self.refuse(Station::Validate, End::Invalid)),
            Err(Refused::Unclampable(error)) => return Err(self.refuse(Station::Clamp, End::Unclampable(error))),
        }
        if clamped && look::violates(&self.tool, checked_args(&self.ctx)) {
            return Err(self.refuse(Station::Clamp, End::Invalid));
        }
        if with_caller(&self.ctx, Subject::wants_arguments_digest)
            && let Err(error) = self.digest_arguments()
        {
            return Err(self.refuse(Station::Clamp, End::NoRoom(error)));
        }
        Ok(self.advance())
    }
}
