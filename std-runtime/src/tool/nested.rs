//! Calls that a running tool makes.

use callgate_core::code::{Code, Effect};
use callgate_core::context::{CallContext, Scopes};
use callgate_core::outcome::Outcome;
use callgate_core::request::Context;
use callgate_core::tool::Tool as Described;

use crate::failure::Failure;
use crate::output::Reply;

/// A gate, as a running tool reaches it. Hosts implement it and lend it to bodies with [`super::Host::with_nested`].
pub trait NestedCalls: Sync {
    /// Takes a call through the whole gate.
    ///
    /// `caller` is made from the running call: parent and depth are set, and what was approved for the parent is not in
    /// it. Its `request_id` is the parent's, and the gate gives the call one of its own. A call that asks for a
    /// confirmation ends as asked: nobody can answer from within a run.
    fn call(&self, caller: CallContext<'_>, tool: &str, arguments: &[u8]) -> NestedOutcome;
}

/// How a nested call ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NestedOutcome {
    /// Why it did not succeed; `None` for a success.
    pub code: Option<Code>,
    /// What it did.
    pub effect: Effect,
    /// The result, when there is one. A call that was only asked about succeeded without one.
    pub reply: Option<Reply>,
    /// What a caller may read of the error.
    pub error: Option<String>,
}

impl NestedOutcome {
    /// A call that ended with this result.
    #[must_use]
    pub const fn done(reply: Reply) -> Self {
        Self { code: None, effect: Effect::Done, reply: Some(reply), error: None }
    }

    /// How this call ended.
    pub fn of<C, T>(outcome: Outcome<C, T>) -> Self
    where
        C: Context,
        T: Described<Output = Reply, Failure = Failure>,
    {
        let (code, effect) = (outcome.code(), outcome.effect());
        let error = outcome.error().map(|error| error.to_string());
        match outcome.into_output() {
            Some(reply) => Self::done(reply),
            None => Self::ended(code, effect, error),
        }
    }

    /// A call that ended without one.
    #[must_use]
    pub const fn ended(code: Option<Code>, effect: Effect, error: Option<String>) -> Self {
        Self { code, effect, reply: None, error }
    }
}

/// The context of a nested call.
pub(super) fn child<'a>(parent: &CallContext<'a>, scopes: Scopes<'a>) -> Result<CallContext<'a>, Failure> {
    // The gate gives the call a request id of its own.
    parent.child(parent.request_id, scopes).map_err(|more| {
        let text = format!("a nested call may not have the scope {more}, which this call does not have");
        Failure::new(text).without_effect()
    })
}

pub(super) fn not_served() -> Failure {
    Failure::new("this host serves no nested calls").without_effect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate_core::context::{Mode, SignedConsent};
    use callgate_core::digest::Digest;
    use std::sync::Mutex;

    fn call(
        gate: &Gate,
        parent: &CallContext<'_>,
        scopes: Scopes<'_>,
        tool: &str,
        arguments: &[u8],
    ) -> Result<NestedOutcome, Failure> {
        Ok(gate.call(child(parent, scopes)?, tool, arguments))
    }

    /// Keeps what it was asked.
    #[derive(Default)]
    struct Gate(Mutex<Vec<String>>);

    impl NestedCalls for Gate {
        fn call(&self, caller: CallContext<'_>, tool: &str, _: &[u8]) -> NestedOutcome {
            assert_eq!((caller.signature, caller.grants.len(), caller.mode), (None, 0, Mode::Execute));
            let CallContext { principal, channel, scopes, parent, depth, tenant, session, .. } = caller;
            self.0.lock().unwrap().push(format!(
                "{tool} by {principal:?} of {tenant:?} in {session:?} on {channel} with {scopes} under {parent:?} at {depth}"
            ));
            NestedOutcome::done(Reply::empty())
        }
    }

    // G8: the same caller, no more authority, no approval taken along.
    #[test]
    fn g8_a_nested_call_inherits_the_caller_and_no_approval() {
        let mut parent = CallContext::web("r1", Some("ada"), Scopes::new("read write"));
        parent.tenant = Some("t");
        parent.session = Some("s");
        parent.depth = 2;
        parent.parent = Some("r0");
        parent.signature = Some(SignedConsent { signer: "k", tool: "a", arguments: Digest::of_bytes(b"") });
        let gate = Gate::default();
        for scopes in ["read write", "read", ""] {
            assert!(call(&gate, &parent, Scopes::new(scopes), "b", b"{}").is_ok());
        }
        let asked = gate.0.into_inner().unwrap();
        assert_eq!(
            asked,
            ["read, write", "read", "(none)"].map(|scopes| {
                format!(r#"b by Some("ada") of Some("t") in Some("s") on web with {scopes} under Some("r1") at 3"#)
            })
        );
    }

    #[test]
    fn g8_authority_is_a_subset_of_the_parents() {
        let gate = Gate::default();
        let try_scopes = |held, asked| {
            let parent = CallContext::web("r1", Some("ada"), Scopes::new(held));
            call(&gate, &parent, Scopes::new(asked), "b", b"{}").is_ok()
        };
        assert!(!try_scopes("read", "read write"));
        assert!(!try_scopes("read", "*"));
        assert!(!try_scopes("", "read"));
        assert!(try_scopes("*", "read *"));
        assert!(try_scopes("read", "read read"));
        let deep = CallContext { depth: u8::MAX, ..CallContext::cli("r") };
        assert!(call(&gate, &deep, Scopes::ALL, "b", b"").is_ok(), "the gate refuses what is too deep");
        assert!(gate.0.into_inner().unwrap().last().unwrap().ends_with("at 255"));
    }
}
