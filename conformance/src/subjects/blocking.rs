//! The blocking gate of `callgate-std`, in this process.

use std::ops::ControlFlow;

use callgate_core::request::Request;
use callgate_std::gate::{CallOptions, Gate, GateError};
use callgate_std::interceptors::Interceptors;
use callgate_std::output::Reply;

use super::judges::LIMIT_MS;
use super::listening::observers;
use super::surroundings::{DIGEST_KEY, Surroundings, batched, context, gave_up, no_world, scopes};
use crate::event::{Batch, Event, Kill, Seen};
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::World;
use crate::wrong::WrongJournal;

/// The blocking gate.
#[derive(Debug)]
pub struct Blocking {
    declaration: Declaration,
    journal: Option<WrongJournal>,
    place: Option<(Surroundings, Gate)>,
}

impl Blocking {
    /// The gate, in no world yet.
    #[must_use]
    pub fn new() -> Self {
        Self::called(Declaration::full("callgate-std, blocking"))
    }

    /// The gate under another declaration.
    pub(super) const fn called(declaration: Declaration) -> Self {
        Self { declaration, journal: None, place: None }
    }

    /// The gate under another name, with a journal that is wrong in something.
    pub(crate) fn wrong(name: &str, journal: WrongJournal) -> Self {
        Self { journal: Some(journal), ..Self::called(Declaration::full(name)) }
    }

    /// Puts the gate into a world that is there already.
    pub(super) fn settle_in(&mut self, around: Surroundings) -> Result<Begun, SubjectFault> {
        match gate(&around) {
            Ok(gate) => self.place = Some((around, gate)),
            Err(why) => return Ok(Begun::Refused(why.to_string())),
        }
        Ok(Begun::Ready)
    }

    /// What surrounds it.
    pub(super) fn around(&self) -> Option<&Surroundings> {
        self.place.as_ref().map(|(around, _)| around)
    }
}

impl Default for Blocking {
    fn default() -> Self {
        Self::new()
    }
}

/// A gate that explains itself: its policy can be looked into, and nothing is wired that the world does not ask for.
fn explained(around: &Surroundings) -> Result<Gate, GateError> {
    let mut builder = Gate::builder(std::sync::Arc::clone(&around.tools))
        .policy(around.policy.in_force())
        .confirmations(around.store.clone())
        .audit(around.sink.clone())
        .clock(around.time.shared())
        .digest_key(DIGEST_KEY);
    builder = match around.world.quota {
        Some(_) => builder.limiter(around.limiter.clone()),
        None => builder.unlimited(),
    };
    if !around.world.interceptors.is_empty() {
        builder = builder.interceptors(interceptors(around));
    }
    builder.build()
}

fn interceptors(around: &Surroundings) -> Interceptors<Reply> {
    let none = Interceptors::with(around.time.shared(), LIMIT_MS);
    around.judges().fold(none, |all, judge| {
        let name = judge.script.name.clone();
        all.and(&name, judge)
    })
}

fn gate(around: &Surroundings) -> Result<Gate, GateError> {
    let mut builder = Gate::builder(std::sync::Arc::clone(&around.tools))
        .policy(std::sync::Arc::clone(&around.policy))
        .limiter(around.limiter.clone())
        .confirmations(around.store.clone())
        .interceptors(interceptors(around))
        .audit(around.sink.clone())
        .clock(around.time.shared())
        .entropy(around.entropy.0.clone())
        .digest_key(DIGEST_KEY)
        .confirmation_ttl_ms(around.world.ttl_ms());
    if let Some(observers) = observers(around) {
        builder = builder.observers(observers);
    }
    if let Some(journal) = &around.journal {
        builder = builder.journal(journal.clone());
    }
    builder.build()
}

/// What the calls of a batch came to, in their order.
fn outcomes(gate: &Gate, batch: &Batch) -> Result<Vec<String>, SubjectFault> {
    let scopes = scopes(batch);
    let (calls, options) = batched(batch, &scopes);
    let mut outcomes = Vec::new();
    let begun = gate.batch(&calls, options, |_, outcome| {
        outcomes.push(outcome.to_json());
        ControlFlow::Continue(())
    });
    begun.map_err(gave_up)?;
    outcomes.into_iter().collect::<Result<_, _>>().map_err(gave_up)
}

impl Subject for Blocking {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        let around = match Surroundings::new(world, seed) {
            Ok(around) => around,
            Err(why) => return Ok(Begun::Refused(why)),
        };
        self.settle_in(match self.journal {
            Some(wrong) => around.with_journal(|journal| wrong.around(journal)),
            None => around,
        })
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        let (around, gate) = self.place.as_mut().ok_or_else(no_world)?;
        match event {
            Event::Call(call) => {
                let scopes = call.caller.scopes.join(" ");
                let caller = context(&call.caller, &scopes, &call.id, call.mode);
                let request =
                    Request { tool: &call.tool, arguments: call.arguments.as_bytes(), token: call.token.as_deref() };
                let mut options = CallOptions::new();
                if let Some(operation) = &call.operation {
                    options = options.of_operation(operation);
                }
                let outcome = gate.call_with(&caller, request, options).to_json();
                let seen = around.seen(Some(outcome.map_err(gave_up)?))?;
                if seen.killed {
                    *gate = self::gate(around).map_err(gave_up)?;
                }
                Ok(seen)
            }
            Event::Batch(batch) => around.seen_of_batch(&outcomes(gate, batch)?),
            Event::Show(show) => around.shown(show),
            Event::Inspect(inspect) => {
                let gate = explained(around).map_err(gave_up)?;
                let scopes = inspect.caller.scopes.join(" ");
                let caller = context(&inspect.caller, &scopes, "an-inspection", inspect.mode);
                let inspection = gate.inspect(&inspect.tool, &caller, |inspection| {
                    let mut text = String::new();
                    inspection.write_json(&mut text).ok().and_then(|()| serde_json::from_str(&text).ok())
                });
                Ok(Seen { inspection: inspection.flatten(), ..around.seen(None)? })
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
