//! The blocking gate of `callgate-std`, in this process.

use callgate_core::request::Request;
use callgate_std::gate::{Gate, GateError};
use callgate_std::interceptors::Interceptors;
use callgate_std::observer::{Event as Happening, Observers};

use super::judges::LIMIT_MS;
use super::surroundings::{DIGEST_KEY, Surroundings, context, gave_up, no_world};
use super::watched::panics;
use crate::event::{Event, Kill, Seen};
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::{Listener, World};

/// The blocking gate.
#[derive(Debug)]
pub struct Blocking {
    declaration: Declaration,
    place: Option<(Surroundings, Gate)>,
}

impl Blocking {
    /// The gate, in no world yet.
    #[must_use]
    pub fn new() -> Self {
        Self { declaration: Declaration::full("callgate-std, blocking"), place: None }
    }
}

impl Default for Blocking {
    fn default() -> Self {
        Self::new()
    }
}

fn gate(around: &Surroundings) -> Result<Gate, GateError> {
    let none = Interceptors::with(around.time.shared(), LIMIT_MS);
    let interceptors = around.judges().fold(none, |all, judge| {
        let name = judge.script.name.clone();
        all.and(&name, judge)
    });
    let mut builder = Gate::builder(std::sync::Arc::clone(&around.tools))
        .policy(std::sync::Arc::clone(&around.policy))
        .limiter(around.limiter.clone())
        .confirmations(around.store.clone())
        .interceptors(interceptors)
        .audit(around.sink.clone())
        .clock(around.time.shared())
        .entropy(around.entropy.0.clone())
        .digest_key(DIGEST_KEY)
        .confirmation_ttl_ms(around.world.ttl_ms());
    if around.world.listener == Some(Listener::Panic) {
        let listens = Observers::new().on("tool.*", |_: &Happening<'_>| panics("a listener"));
        builder = builder.observers(listens.unwrap_or_default());
    }
    builder.build()
}

impl Subject for Blocking {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        let around = Surroundings::new(world, seed)?;
        let gate = gate(&around).map_err(gave_up)?;
        self.place = Some((around, gate));
        Ok(Begun::Ready)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        let (around, gate) = self.place.as_mut().ok_or_else(no_world)?;
        match event {
            Event::Call(call) => {
                let scopes = call.caller.scopes.join(" ");
                let caller = context(&call.caller, &scopes, &call.id, call.mode);
                let request =
                    Request { tool: &call.tool, arguments: call.arguments.as_bytes(), token: call.token.as_deref() };
                let outcome = gate.call(&caller, request).to_json();
                let seen = around.seen(Some(outcome.map_err(gave_up)?))?;
                if seen.killed {
                    *gate = self::gate(around).map_err(gave_up)?;
                }
                Ok(seen)
            }
            Event::Decide(decide) => {
                let taken = Surroundings::decided(decide, |ticket, verdict, by| gate.decide(ticket, verdict, by));
                Ok(Seen { decided: Some(taken), ..around.seen(None)? })
            }
            other => {
                around.happen(other)?;
                if matches!(other, Event::Kill(Kill { at: None, .. })) {
                    *gate = self::gate(around).map_err(gave_up)?;
                }
                around.seen(None)
            }
        }
    }
}
