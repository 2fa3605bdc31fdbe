//! Calls whose tool goes on after the answer: accepted at once, recorded again when they are over.

use core::fmt;

use crate::code::Station;
use crate::context::CallContext;
use crate::request::Context;
use crate::tool::Tool;

use super::{Call, End, Ended, Executing};

/// Names the run of an accepted call: 128 bits, shown as 32 lower-case hexadecimal digits. It names and grants nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId([u8; 16]);

impl TaskId {
    /// The id of these bits, which the host draws at random.
    #[must_use]
    pub const fn new(bits: [u8; 16]) -> Self {
        Self(bits)
    }

    /// The id with this text; `None` for a text that is no id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bits = [0; 16];
        let mut digits = text.bytes().map(|digit| match digit {
            b'0'..=b'9' => Some(digit.wrapping_sub(b'0')),
            b'a'..=b'f' => Some(digit.wrapping_sub(b'a').wrapping_add(10)),
            _ => None,
        });
        for byte in &mut bits {
            let (high, low) = (digits.next()??, digits.next()??);
            *byte = (high << 4) | low;
        }
        digits.next().is_none().then_some(Self(bits))
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskId({self})")
    }
}

/// A context that gives its call a second, self-sufficient copy of itself, for the part that goes on in the background.
pub trait Detach: Context {
    /// The copy.
    type Detached: Context<Text = Self::Text>;

    /// Copies everything that the call carries, its clamps included. What the copy says must be what this says.
    fn detach(&self) -> Self::Detached;
}

impl<C: Detach, T: Tool + Clone> Executing<C, T> {
    /// Answers the caller now: the call ends as accepted, and its tool goes on under the copy. Both halves are recorded: the
    /// call by its terminal record, before the answer, and the run by a record of kind
    /// [`Completion`](crate::audit::Kind::Completion) once it is over. A permit is minted for the run only.
    ///
    /// # Errors
    /// The call ends as cancelled when a permit was taken already, so that its tool may have run (invariant G1), and as cancelled
    /// before it started when the copy is not the same call by the same caller (invariants K4, P3). Nothing goes on then.
    #[expect(clippy::type_complexity, reason = "the two halves of a call")]
    pub fn accept(self, task: TaskId) -> Result<(Ended<C, T>, Executing<C::Detached, T>), Ended<C, T>> {
        let Self { call, minted } = self;
        if minted {
            return Err(call.refuse(Station::Execute, End::Cancelled { started: true }));
        }
        let mut copy = call.ctx.detach();
        let same = copy.request().arguments == call.ctx.request().arguments
            && copy.request().tool == call.ctx.request().tool
            && copy.operation() == call.ctx.operation()
            && copy.edits() == call.ctx.edits()
            && is_same_caller(&copy.caller(), &call.ctx.caller());
        if !same {
            return Err(call.cancel());
        }
        *copy.facts_mut() = call.ctx.facts().copied();
        copy.facts_mut().task = Some(task);
        let run = Call { ctx: copy, tool: call.tool.clone(), stage: core::marker::PhantomData };
        Ok((call.end(Station::Execute, End::Accepted(task)), run.begin()))
    }
}

/// Whether two contexts say the same of a caller. What was granted to them is judged before a tool runs and not looked at afterwards.
fn is_same_caller(one: &CallContext<'_>, other: &CallContext<'_>) -> bool {
    // Taken apart by name, so that a field added later is not left out.
    let CallContext {
        tenant,
        principal,
        channel,
        scopes,
        request_id,
        session,
        parent,
        depth,
        ip,
        user_agent,
        mode,
        signature,
        grants: _,
    } = *one;
    tenant == other.tenant
        && principal == other.principal
        && channel == other.channel
        && scopes == other.scopes
        && request_id == other.request_id
        && session == other.session
        && parent == other.parent
        && depth == other.depth
        && ip == other.ip
        && user_agent == other.user_agent
        && mode == other.mode
        && signature == other.signature
}
