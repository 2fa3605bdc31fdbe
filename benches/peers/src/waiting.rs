//! The async gate, with every stage on and an async body.

use std::hint::black_box;

use callgate_async::gate::Gate;
use callgate_async::interceptors::Interceptors;
use callgate_async::runtime::Tokio;
use callgate_async::seam::Immediate;
use callgate_benches::call::{ARGUMENTS, Null, Pass, limiter, policy};
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;

use crate::{Terms, body, ready};

const PROPERTIES: &[Property<'static>] =
    &[Property::required("path", Schema::string()), Property::required("max", Schema::integer())];

/// The gate, on the runtime that this is called in.
pub fn gate() -> Gate {
    let tool = Tool::builder("find")
        .description("Finds")
        .const_schema(Schema::object(PROPERTIES))
        .clamp("/max", 1..=1000)
        .async_typed(|_call, terms: Terms| async move { Reply::of(&body(&terms)) });
    Gate::builder(Registry::builder().add(tool).build().expect("a good tool"), Tokio::current().expect("a runtime"))
        .policy(Immediate(policy()))
        .limiter(Immediate(limiter()))
        .interceptors(Interceptors::new().and("pass", Immediate(Pass)))
        .audit(Immediate(Null))
        .digest_when_needed()
        .build()
        .expect("a gate")
}

/// One call, to the text of its data. Nothing in it waits.
pub fn call(gate: &Gate) {
    let request = Request { tool: "find", arguments: black_box(ARGUMENTS), token: None };
    let outcome = ready(gate.call(&CallContext::cli("request-1"), request));
    let mut text = String::with_capacity(256);
    outcome.write_data(&mut text).expect("a string takes all");
    black_box(text);
}
