//! The call that is measured: a typed tool behind a gate with every stage on, and the bare work of the same tool.

use std::hint::black_box;
use std::sync::Arc;

use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::context::CallContext;
use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::policy::{Effect, Subject};
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_std::gate::Gate;
use callgate_std::interceptors::Interceptors;
use callgate_std::limiter::{MemoryLimiter, Quota};
use callgate_std::output::Reply;
use callgate_std::policy::{ChannelPolicies, OwnedRule};
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use serde::{Deserialize, Serialize};

/// What the tool takes.
#[derive(Deserialize)]
pub struct Terms {
    path: String,
    max: i64,
}

/// What the tool gives.
#[derive(Serialize)]
pub struct Found {
    hits: i64,
}

/// The tool's own work: next to nothing, so that what is around it shows.
#[must_use]
pub fn body(terms: &Terms) -> Found {
    Found { hits: terms.max + terms.path.len() as i64 }
}

/// Arguments of a small call.
pub const ARGUMENTS: &[u8] = br#"{"path":"src/main.rs","max":40}"#;
/// The same, with a number to be clamped.
pub const CLAMPED: &[u8] = br#"{"path":"src/main.rs","max":4000}"#;

/// The schema of what the tool takes.
#[must_use]
pub const fn schema() -> Schema<'static> {
    const PROPERTIES: &[Property<'static>] =
        &[Property::required("path", Schema::string()), Property::required("max", Schema::integer())];
    Schema::object(PROPERTIES)
}

/// The tool under this name.
#[must_use]
pub fn tool(name: &str) -> Tool {
    Tool::builder(name)
        .description("Finds")
        .const_schema(schema())
        .clamp("/max", 1..=1000)
        .typed(|_call, terms: Terms| Reply::of(&body(&terms)))
        .build()
        .expect("a good tool")
}

/// An interceptor that objects to nothing.
pub struct Pass;

impl Interceptor<Reply, Arc<str>> for Pass {
    fn judge(&self, _: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        Interception::Continue
    }
}

/// A sink that drops everything.
pub struct Null;

impl Audit for Null {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        black_box(record);
        Ok(())
    }
}

/// The name of the `at`th tool of a gate.
#[must_use]
pub fn name(at: usize) -> String {
    format!("tool-{at}.x")
}

/// A gate over so many tools with every stage on: limiter, one rule, one interceptor, audit to a sink that drops everything.
/// Arguments are digested for every record where `digests` says so, and otherwise where something needs the digest.
#[must_use]
pub fn gate(tools: usize, digests: bool) -> Gate {
    let registry = Registry::builder().add_all((0..tools).map(|at| tool(&name(at)))).build();
    let gate = Gate::builder(registry.expect("good tools"))
        .policy(policy())
        .limiter(Arc::new(limiter()))
        .interceptors(Interceptors::new().and("pass", Pass))
        .audit(Arc::new(Null));
    if digests { gate } else { gate.digest_when_needed() }.build().expect("a gate")
}

/// A policy with one rule, which is about another channel.
#[must_use]
pub fn policy() -> ChannelPolicies {
    let rule = OwnedRule { channel: Some(Arc::from("web")), ..OwnedRule::new(1, Effect::Deny, Vec::new()) };
    ChannelPolicies::builder().rules([rule]).build().expect("a policy")
}

/// A limiter that never refuses what is measured here.
#[must_use]
pub fn limiter() -> MemoryLimiter {
    let quota = Quota::new(u32::MAX, 1, u32::MAX).expect("a quota");
    MemoryLimiter::with(move |_| quota, callgate_std::clock::SystemClock::shared(), 1_000)
}

/// One call through the gate, to the text of its data.
pub fn call(gate: &Gate, name: &str, arguments: &[u8]) {
    let request = Request { tool: name, arguments: black_box(arguments), token: None };
    let outcome = gate.call(&CallContext::cli("request-1"), request);
    let mut text = String::with_capacity(256);
    outcome.write_data(&mut text).expect("a string takes all");
    black_box(text);
}

/// The same work without a gate: `serde_json` into the same struct, the same body, `serde_json` out of the result.
pub fn bare() {
    bare_with(ARGUMENTS);
}

/// The same of other arguments.
pub fn bare_with(arguments: &[u8]) {
    let terms: Terms = serde_json::from_slice(black_box(arguments)).expect("good arguments");
    let text = serde_json::to_string(&body(&terms)).expect("it can be written");
    black_box(text);
}
