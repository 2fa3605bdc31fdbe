//! What a gate keeps, in memory of a fixed size: for hosts without a heap.
//!
//! Each of these takes its capacity as a constant and lies in the host's own memory, in a `static` or on a stack. None has a rule of
//! its own: [`Confirmations`] applies [`crate::confirm`], [`Limiter`] counts by [`crate::limit`], [`AuditRing`] links lines by
//! [`crate::audit::chain`]. The clock and the source of randomness are arguments (invariant N3), and a `&mut self` makes each
//! method one atomic step; a host that shares a store between interrupts puts it behind its own lock.
//!
//! Whatever is full says so, and nothing that still counts is given up for what comes next (invariants C3, F5, X6):
//!
//! | | when it is full |
//! |---|---|
//! | [`Confirmations`] | [`IssueFault::Full`](crate::call::IssueFault::Full): the call ends as `STORE_UNAVAILABLE`, nothing was issued |
//! | [`Limiter`] | a caller that has no bucket yet is refused until one of the others is paid back |
//! | [`CallBudget`] | a session that has no place yet is turned away: `OVERLOADED` |
//! | [`AuditRing`] | the oldest lines are overwritten and counted; a line longer than half the ring is an [`AuditFault`](crate::audit::AuditFault) |
//! | [`Buffer`] | the text that does not fit is an error; [`write_outcome`] tells what is left out |

mod answer;
mod budget;
mod buffer;
mod confirmations;
mod limiter;
mod ring;
mod tools;

pub use answer::{OutcomeTooLong, write_outcome};
pub use budget::CallBudget;
pub use buffer::Buffer;
pub use confirmations::{Confirmations, DecideFault, Pending, Question, Seen};
pub use limiter::Limiter;
pub use ring::AuditRing;
pub use tools::{Tools, ToolsError};

/// Copies all of `from` to the start of `to` and gives what is behind it, or does nothing.
fn put<'t>(from: &[u8], to: &'t mut [u8]) -> Option<&'t mut [u8]> {
    let (room, behind) = to.split_at_mut_checked(from.len())?;
    room.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    Some(behind)
}
