//! The async gate with every stage on, where nothing waits: what is left is what the gate itself costs on an executor.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use callgate_async::gate::Gate;
use callgate_async::interceptors::Interceptors;
use callgate_async::runtime::{BoxFuture, Runtime};
use callgate_async::seam::Immediate;
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_core::time::{Clock, Instant, Now};
use callgate_std::clock::SystemClock;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;

use crate::call::{ARGUMENTS, Null, Pass, Terms, body, limiter, policy, schema};

/// An executor of calls that never wait: the system's clocks, and nothing that could run anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverWaits;

impl Runtime for NeverWaits {
    fn now(&self) -> Now {
        SystemClock::default().now()
    }

    fn monotonic_within(&self, slack: u64) -> Instant {
        SystemClock::default().monotonic_within(slack)
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, _future: BoxFuture<'static, ()>) {}

    fn spawn_blocking(&self, _work: Box<dyn FnOnce() + Send>) {}
}

/// A gate over the measured tool with a body that could wait, on `runtime`.
#[must_use]
pub fn gate(runtime: impl Runtime) -> Gate {
    let tool = Tool::builder("find")
        .description("Finds")
        .const_schema(schema())
        .clamp("/max", 1..=1000)
        .async_typed(|_call, terms: Terms| async move { Reply::of(&body(&terms)) });
    Gate::builder(Registry::builder().add(tool).build().expect("a good tool"), runtime)
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

/// Polls a future that never waits: what an executor costs is not the question here.
pub fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a call of these tools does not wait"),
    }
}
