//! Stages 2 and 3: the arguments are read, checked against the schema and brought into their bounds.

use core::ops::ControlFlow;

use crate::args::Args;
use crate::clamp;
use crate::code::Station;
use crate::json::Limits;
use crate::policy::Subject;
use crate::request::{Context, Parts};
use crate::tool::Tool;

use super::{Call, End, Ended, Resolved, checked_args};

/// The arguments fit the schema, before and after clamping.
#[derive(Debug)]
pub struct Validated(());

impl<C: Context, T: Tool> Call<C, T, Resolved> {
    /// Reads the arguments with the strict reader, checks them, clamps them, and checks the result again (invariants S1, K1).
    ///
    /// # Errors
    /// The call ends when the arguments are malformed, do not fit, or would need more clamps than there is room for.
    #[expect(clippy::result_large_err, reason = "an ended call is a value of the pipeline, moved once")]
    pub fn validate(mut self) -> Result<Call<C, T, Validated>, Ended<C, T>> {
        let Parts { request, edits, keys, .. } = self.ctx.parts();
        edits.clear();
        let read = Args::read(request.arguments, keys, &Limits::DEFAULT);
        let args = match read {
            Ok(args) => args,
            Err(error) => return Err(self.end(Station::Validate, End::Malformed(error))),
        };
        if violates(&self.tool, args) {
            self.facts.was_read = true;
            return Err(self.end(Station::Validate, End::Invalid));
        }
        let clamped = match clamp::apply(args, self.tool.spec().fields, edits) {
            Ok(()) => !edits.as_slice().is_empty(),
            Err(error) => {
                edits.clear();
                self.facts.was_read = true;
                return Err(self.end(Station::Clamp, End::Unclampable(error)));
            }
        };
        self.facts.was_read = true;
        self.facts.clamped = clamped;
        if clamped && violates(&self.tool, checked_args(&self.ctx)) {
            return Err(self.end(Station::Clamp, End::Invalid));
        }
        if Subject::wants_arguments_digest(&self.ctx.caller())
            && let Err(error) = self.digest_arguments()
        {
            return Err(self.end(Station::Clamp, End::NoRoom(error)));
        }
        Ok(self.advance())
    }
}

/// Whether the tool finds anything wrong with the arguments.
fn violates<T: Tool>(tool: &T, args: Args<'_>) -> bool {
    let mut verdict = ControlFlow::Continue(());
    tool.validate(args, &mut |_| verdict = ControlFlow::Break(()));
    verdict.is_break()
}
