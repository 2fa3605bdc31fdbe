//! A journal with its clock, and operations to keep in it.

use std::fmt::Debug;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use callgate_core::confirm::principal_digest;
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_std::clock::ManualClock;
use callgate_std::journal::{FinishOperation, Journal, KeptReply, OperationRequest, PresentedOperation, operation_key};
use tempfile::TempDir;

/// How long a call of the suite may take, in milliseconds.
pub(crate) const LEASE: u64 = 30_000;
/// What no journal may show anywhere but in a result.
pub(crate) const CANARY: &str = "CANARY-7f3a";

pub(crate) const ALICE: CallContext<'static> = CallContext::new("web", "r1").with_principal("alice");
pub(crate) const BOB: CallContext<'static> = CallContext::new("web", "r2").with_principal("bob");
/// Who settles what is in doubt.
pub(crate) const HOST: CallContext<'static> =
    CallContext::new("cli", "r3").with_principal("host").with_scopes(Scopes::new("reconcile"));

pub(crate) struct Bench {
    pub(crate) journal: Box<dyn Journal>,
    /// What `Debug` shows of the journal.
    pub(crate) debug: Box<dyn Fn() -> String + Send + Sync>,
    pub(crate) clock: ManualClock,
    /// Opens the journal anew, as after a crash; none where a crash leaves nothing.
    pub(crate) reopen: Option<Box<dyn Fn() -> Box<dyn Journal>>>,
    /// How many scripts of chance it is worth.
    pub(crate) cases: u32,
    /// The directory of a journal that has one; lives as long as the journal.
    pub(crate) _keep: Option<TempDir>,
}

impl Bench {
    pub(crate) fn new<J: Journal + Debug + 'static>(journal: J, clock: ManualClock) -> Self {
        let journal = Arc::new(journal);
        let shown = Arc::clone(&journal);
        let debug = Box::new(move || format!("{shown:?}"));
        Self { journal: Box::new(journal), debug, clock, reopen: None, cases: 256, _keep: None }
    }

    /// Time passes, in milliseconds.
    pub(crate) fn pass(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }
}

/// A call of an operation with arguments of this number.
pub(crate) fn request<'a>(caller: CallContext<'a>, operation: &'a str, arguments: u8) -> OperationRequest<'a> {
    OperationRequest {
        presented: PresentedOperation {
            key: operation_key(&caller, operation).expect("a known principal"),
            principal: principal_digest(&caller),
            tool: Digest::from_bytes([1; 32]),
            arguments: Digest::from_bytes([arguments; 32]),
            lease_ms: LEASE,
        },
        operation,
        tool: "notes.add",
        caller,
    }
}

pub(crate) fn attempt(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("attempts count from 1")
}

/// The end of an attempt of that call.
pub(crate) fn end(request: &OperationRequest<'_>, number: u32, effect: callgate_core::code::Effect) -> FinishOperation {
    FinishOperation { key: request.presented.key, attempt: attempt(number), effect }
}

pub(crate) fn result(text: &str) -> KeptReply {
    KeptReply {
        data: format!("{text:?}"),
        message: Some("added".to_owned()),
        meta: Some(r#"{"source":"disk"}"#.to_owned()),
        meta_dropped: true,
        cut: Some((70_000, Digest::from_bytes([6; 32]))),
    }
}
