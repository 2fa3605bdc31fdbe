//! What else a call can be given.

use std::fmt;
use std::ops::ControlFlow;

use super::drive::Follower;
use crate::cancellation::Cancellation;
use crate::update::Update;

/// Takes what a tool tells on its way.
pub(super) type Follow<'f> = dyn FnMut(Update) -> ControlFlow<()> + Send + 'f;

/// What else a call can be given, as the options of the async gate are: the outcome borrows the operation's id, and not what follows
/// the call.
#[derive(Default)]
pub struct CallOptions<'a, 'f> {
    pub(super) operation: Option<&'a str>,
    cancellation: Option<&'f Cancellation>,
    follow: Option<Box<Follow<'f>>>,
}

impl<'a, 'f> CallOptions<'a, 'f> {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, cancelled by this: before its tool starts the call ends without effect, and afterwards with an unknown one, as far as its
    /// tool lets itself be stopped.
    #[must_use]
    pub const fn cancelled_by(mut self, cancellation: &'f Cancellation) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// The same, for a call of this operation: see [`Gate::call_operation`](super::Gate::call_operation).
    #[must_use]
    pub const fn of_operation(mut self, operation: &'a str) -> Self {
        self.operation = Some(operation);
        self
    }

    /// The same, with `follow` given what the tool tells on its way: see [`Gate::call_following`](super::Gate::call_following).
    #[must_use]
    pub fn followed_by(mut self, follow: impl FnMut(Update) -> ControlFlow<()> + Send + 'f) -> Self {
        self.follow = Some(Box::new(follow));
        self
    }

    /// Who waits for the call, if it can be followed or cancelled by itself.
    pub(super) fn follower(&mut self) -> Option<Follower<'f>> {
        let (follow, cancellation) = (self.follow.take(), self.cancellation);
        (follow.is_some() || cancellation.is_some()).then(|| Follower::new(follow, cancellation))
    }
}

impl fmt::Debug for CallOptions<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("operation", &self.operation)
            .field("cancellation", &self.cancellation)
            .field("followed", &self.follow.is_some())
            .finish()
    }
}
