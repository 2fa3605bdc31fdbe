//! A store with its clock, and requests to keep in it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use callgate_core::confirm::{call_digest, caller_digest, principal_digest};
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{Binding, By, ConfirmationStore, PendingRequest, Presented};
use tempfile::TempDir;

/// How long the suite's tickets live, in milliseconds.
pub(crate) const TTL: u64 = 60_000;
/// How long a call may hold what it claimed, in milliseconds: longer than tickets live.
pub(crate) const LEASE: u64 = 90_000;
/// What no store may show anywhere.
pub(crate) const CANARY: &str = "CANARY-7f3a";

pub(crate) struct Bench {
    pub(crate) store: Box<dyn ConfirmationStore>,
    /// Says whether approvers can be reached.
    pub(crate) attach: Box<dyn Fn(bool) + Send + Sync>,
    /// What `Debug` shows of the store.
    pub(crate) debug: Box<dyn Fn() -> String + Send + Sync>,
    pub(crate) clock: ManualClock,
    /// The directory of a store that has one; lives as long as the store.
    pub(crate) _keep: Option<TempDir>,
}

impl Bench {
    pub(crate) fn new<S: ConfirmationStore + Debug + 'static>(
        store: S,
        clock: ManualClock,
        attach: fn(&S, bool),
    ) -> Self {
        let store = Arc::new(store);
        let (shown, attached) = (Arc::clone(&store), Arc::clone(&store));
        attach(&store, true);
        Self {
            store: Box::new(store),
            attach: Box::new(move |on| attach(&attached, on)),
            debug: Box::new(move || format!("{shown:?}")),
            clock,
            _keep: None,
        }
    }

    /// Time passes, in milliseconds.
    pub(crate) fn pass(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }
}

pub(crate) const ALICE: CallContext<'static> = CallContext::new("web", "r1").with_principal("alice");
pub(crate) const BOB: CallContext<'static> =
    CallContext::new("web", "r2").with_principal("bob").with_scopes(Scopes::new("approve"));

/// Who gives standing grants.
pub(crate) const GRANTER: CallContext<'static> =
    CallContext::new("web", "r4").with_principal("granter").with_scopes(Scopes::new("grant"));

/// Who settles what is in doubt.
pub(crate) const STEWARD: CallContext<'static> =
    CallContext::new("web", "r3").with_principal("steward").with_scopes(Scopes::new("reconcile"));

fn digest(number: u64) -> Digest {
    Digest::of_bytes(&number.to_be_bytes())
}

pub(crate) fn binding(number: u64) -> Binding {
    Binding {
        tool: digest(number),
        arguments: digest(number.wrapping_add(1)),
        caller: caller_digest(&ALICE),
        principal: principal_digest(&ALICE),
    }
}

/// A ticket as that call presents it.
pub(crate) fn presented(number: u64) -> Presented {
    Presented { binding: binding(number), call: call_digest("r1"), lease_ms: LEASE }
}

/// A call of Alice's that she confirms herself.
pub(crate) fn request(number: u64) -> PendingRequest<'static> {
    PendingRequest {
        binding: binding(number),
        by: By::Caller,
        approver_scope: None,
        approvals: 1,
        caller: ALICE,
        tool: "fs.write",
        arguments: br#"{"path":"CANARY-7f3a"}"#,
        summary: r#"fs.write({"path":"notes.txt"})"#.to_owned(),
    }
}

/// A call of Alice's that somebody else has to approve.
pub(crate) fn approval(number: u64) -> PendingRequest<'static> {
    PendingRequest { by: By::Approver, approver_scope: Some("approve"), ..request(number) }
}
