//! What was found out about a call on its way.

use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};

use crate::digest::Digest;
use crate::limit::Receipt;
use crate::policy::By;
use crate::time::Now;

use super::TaskId;

/// What the gate has found out about a call. Opaque: a host gives it room in its [`Context`](crate::request::Context), starting
/// with [`Facts::NONE`], and the stages read and write it there. It stays in its place while the call goes from stage to stage.
pub struct Facts {
    pub(crate) started: Now,
    pub(crate) arguments: Option<Digest>,
    pub(crate) ticket: Option<Digest>,
    /// Says nothing unless `has_rule` does: an `Option` of it would take twice the room.
    pub(super) rule: i64,
    pub(crate) receipt: Receipt,
    /// Nanoseconds that the tool's body took, and one more, so that it needs no room to be absent.
    pub(super) spent: Option<NonZeroU64>,
    pub(crate) confirm: Option<By>,
    pub(crate) task: Option<TaskId>,
    pub(crate) was_read: bool,
    pub(crate) unknown_channel: bool,
    pub(crate) held: Held,
    pub(crate) clamped: bool,
    pub(super) has_rule: bool,
    /// The journal was asked for the call's operation, and has none that stands in its way.
    pub(super) recalled: bool,
    /// The journal does not know how the call ended.
    pub(crate) unkept: bool,
    /// The attempt of its operation that the call is.
    pub(crate) attempt: Option<NonZeroU32>,
}

/// What a call holds of a confirmation, in one byte.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Nothing,
    /// The ticket may have been claimed for this call, and does not confirm it.
    Claimed,
    /// The ticket that it brought.
    Ticket,
    /// A use of a standing grant.
    Grant,
}

impl Held {
    /// Whether it confirms the call.
    pub(crate) const fn confirms(self) -> bool {
        matches!(self, Self::Ticket | Self::Grant)
    }
}

impl Facts {
    /// Nothing is known yet.
    pub const NONE: Self = Self {
        started: Now::ZERO,
        arguments: None,
        ticket: None,
        rule: 0,
        receipt: Receipt::NONE,
        spent: None,
        confirm: None,
        task: None,
        was_read: false,
        unknown_channel: false,
        held: Held::Nothing,
        clamped: false,
        has_rule: false,
        recalled: false,
        unkept: false,
        attempt: None,
    };

    /// The rule that allowed the call.
    pub(crate) fn rule(&self) -> Option<i64> {
        self.has_rule.then_some(self.rule)
    }

    pub(super) fn set_rule(&mut self, rule: Option<i64>) {
        (self.rule, self.has_rule) = (rule.unwrap_or_default(), rule.is_some());
    }

    /// How long the tool's body took, in nanoseconds, if it ran.
    pub(crate) fn spent_ns(&self) -> Option<u64> {
        self.spent.map(|spent| spent.get().saturating_sub(1))
    }

    /// The same facts for a copy of the call: for the stages alone, because facts that anybody could copy could be given to
    /// another call.
    pub(super) const fn copied(&self) -> Self {
        // Taken apart by name, so that a field added later is copied, too.
        let Self {
            started,
            arguments,
            ticket,
            rule,
            receipt,
            spent,
            confirm,
            task,
            was_read,
            unknown_channel,
            held,
            clamped,
            has_rule,
            recalled,
            unkept,
            attempt,
        } = *self;
        Self {
            started,
            arguments,
            ticket,
            rule,
            receipt,
            spent,
            confirm,
            task,
            was_read,
            unknown_channel,
            held,
            clamped,
            has_rule,
            recalled,
            unkept,
            attempt,
        }
    }
}

impl Default for Facts {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Facts(..)")
    }
}
