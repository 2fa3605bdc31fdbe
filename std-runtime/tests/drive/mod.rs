//! A driver of the core's stages, as small as one can be: no store, no limiter, no record.
#![allow(dead_code, reason = "what is unused differs from program to program")]

use std::sync::Arc;

use callgate_core::call::{Call, Confirm, Ended, Load, Ran};
use callgate_core::context::CallContext;
use callgate_core::digest::DigestKey;
use callgate_core::intercept::Interception;
use callgate_core::json::{KeySlot, Limits, key_capacity, scan};
use callgate_core::limit::Allowance;
use callgate_core::policy::{ChannelTable, PolicyGate};
use callgate_core::request::{Envelope, Request, Settings};
use callgate_core::time::{Clock, Now};
use callgate_std::registry::ToolSource;
use callgate_std::tool::{Host, Tool, run};
use serde_json::Value;

/// A clock that stands.
pub(crate) struct Standing;

impl Clock for Standing {
    fn now(&self) -> Now {
        Now::default()
    }
}

/// What happens around a call.
pub(crate) struct Around<'a> {
    pub(crate) caller: CallContext<'a>,
    /// Between resolution and the rest.
    pub(crate) resolved: &'a dyn Fn(),
    /// In the place of the tool.
    pub(crate) interception: Option<callgate_std::output::Reply>,
}

impl Default for Around<'_> {
    fn default() -> Self {
        Self { caller: CallContext::cli("r1"), resolved: &|| {}, interception: None }
    }
}

/// Takes a call through the gate and gives the outcome as JSON.
pub(crate) fn call(source: &dyn ToolSource, name: &str, arguments: &str) -> Value {
    call_around(source, name, arguments, Around::default())
}

pub(crate) fn call_as(source: &dyn ToolSource, caller: CallContext<'_>, name: &str, arguments: &str) -> Value {
    call_around(source, name, arguments, Around { caller, ..Around::default() })
}

pub(crate) fn call_around(source: &dyn ToolSource, name: &str, arguments: &str, around: Around<'_>) -> Value {
    let key = DigestKey::new([7; 32]);
    let mut keys = vec![KeySlot::default(); key_capacity(arguments.as_bytes())];
    let request = Request { tool: name, arguments: arguments.as_bytes(), token: None };
    let envelope = Envelope::new(around.caller, request, Settings::new(&key), &mut keys);
    let (Ok(ended) | Err(ended)) = drive(source, envelope, around);
    let outcome = ended.close(Now::default()).audited(Ok(()));
    let mut text = String::new();
    outcome.write_json(&mut text).unwrap();
    value(&text)
}

type End<'a> = Ended<Envelope<'a>, Arc<Tool>>;

#[expect(clippy::result_large_err, reason = "an ended call is moved once")]
fn drive<'a>(source: &dyn ToolSource, envelope: Envelope<'a>, around: Around<'_>) -> Result<End<'a>, End<'a>> {
    let call = Call::request(envelope, Now::default());
    let found = source.find(call.asked().tool, &call.caller());
    let call = match call.resolve(found)? {
        Load::Fresh(call) => call,
        Load::Stored(loading) => loading.unknown()?,
    };
    (around.resolved)();
    let call = call.validate()?;
    let decision = PolicyGate::new(ChannelTable::DEFAULTS).decide(&call.subject());
    let call = call.authorize(decision)?.admit(Ok(Allowance::Unlimited))?.unless_planning()?;
    let call = match call.confirm()? {
        Confirm::NotNeeded(call) => call,
        Confirm::Ask(asking) => return Err(asking.no_approver()),
        Confirm::Redeem(redeeming) => redeeming.unknown()?,
    };
    let call = call.intercept(around.interception.map_or(Interception::Continue, Interception::Answer))?;
    let call = call.announce(Ok(()))?;
    Ok(call.execute(|permit| {
        let ran = match run(permit, Host::new(&Standing, Now::default().monotonic)) {
            Ok(reply) => Ran::Done(reply),
            Err(failure) => Ran::Failed(failure),
        };
        ran.after(0)
    }))
}

/// Reads JSON strictly.
pub(crate) fn value(text: &str) -> Value {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap().value().parse().unwrap()
}
