//! A script at a subject: names of calls become the tokens and approvals that the subject gave out.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::event::{Batch, Call, Decide, Event, Inspect, Outcome, Seen, Show, Verdict};
use crate::vector::{Act, BatchedStep, CallStep, DEFAULT_CALLER, RedeemStep, Vector};
use crate::world::Caller;

/// Follows a script: which callers hold what by now, and what the calls before came to.
#[derive(Clone, Debug)]
pub struct Play {
    callers: BTreeMap<String, Caller>,
    calls: HashMap<String, Made>,
}

#[derive(Clone, Debug)]
struct Made {
    call: Call,
    caller: String,
    outcome: Outcome,
}

/// Why a step cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CannotGoOn {
    /// The vector names a caller that it does not describe.
    #[error("there is no caller `{0}` in this vector")]
    NoCaller(String),
    /// The vector names a call that was not made before.
    #[error("there is no call `{0}` before this step")]
    NoCall(String),
    /// The call was given no token or no approval to speak of.
    #[error("the outcome of call `{call}` has no `data.{member}`, so the script cannot go on")]
    NotGiven {
        /// The call that should have asked.
        call: String,
        /// What is missing.
        member: &'static str,
    },
}

impl CannotGoOn {
    /// Whether the subject is at fault, and not the vector.
    #[must_use]
    pub const fn is_of_the_subject(&self) -> bool {
        matches!(self, Self::NotGiven { .. })
    }
}

impl Play {
    /// The beginning of a script.
    #[must_use]
    pub fn new(vector: &Vector) -> Self {
        Self { callers: vector.callers.clone(), calls: HashMap::new() }
    }

    fn caller(&self, name: &str) -> Result<Caller, CannotGoOn> {
        self.callers.get(name).cloned().ok_or_else(|| CannotGoOn::NoCaller(name.to_owned()))
    }

    fn made(&self, name: &str) -> Result<&Made, CannotGoOn> {
        self.calls.get(name).ok_or_else(|| CannotGoOn::NoCall(name.to_owned()))
    }

    fn given(&self, ask: &str, member: &'static str) -> Result<String, CannotGoOn> {
        let given = self.made(ask)?.outcome.data_text(member).map(str::to_owned);
        given.ok_or_else(|| CannotGoOn::NotGiven { call: ask.to_owned(), member })
    }

    /// What the step at `index` (from 0) tells the subject; `None` where it only changes who calls from here on.
    ///
    /// # Errors
    /// The vector is wrong, or the subject did not give what the step needs.
    pub fn next(&mut self, index: usize, act: &Act) -> Result<Option<Event>, CannotGoOn> {
        let name = format!("step-{index}");
        Ok(Some(match act {
            Act::Call(step) => Event::Call(self.call(name, step)?),
            Act::Redeem(step) => Event::Call(self.redeem(name, step)?),
            Act::Batch(step) => {
                let calls = step.calls.iter().enumerate().map(|(at, one)| {
                    let name = format!("{name}-{at}");
                    match one {
                        BatchedStep::Call(step) => self.call(name, step),
                        BatchedStep::Redeem(step) => self.redeem(name, step),
                    }
                });
                Event::Batch(Batch { calls: calls.collect::<Result<_, _>>()?, at_once: step.at_once })
            }
            Act::Approve(step) | Act::Deny(step) => Event::Decide(Decide {
                approval: self.given(&step.ask, "approval_id")?,
                verdict: if matches!(act, Act::Approve(_)) { Verdict::Approve } else { Verdict::Deny },
                approver: self.caller(&step.by)?,
            }),
            Act::Show(step) => {
                Event::Show(Show { approval: self.given(&step.ask, "approval_id")?, approver: self.caller(&step.by)? })
            }
            Act::Inspect(step) => Event::Inspect(Inspect {
                tool: step.tool.clone(),
                caller: self.caller(step.caller.as_deref().unwrap_or(DEFAULT_CALLER))?,
                mode: step.mode.unwrap_or_default(),
            }),
            Act::Revoke(step) => {
                let no_caller = || CannotGoOn::NoCaller(step.caller.clone());
                let caller = self.callers.get_mut(&step.caller).ok_or_else(no_caller)?;
                caller.scopes.retain(|scope| !step.scopes.contains(scope));
                return Ok(None);
            }
            Act::Advance(ms) => Event::Advance(*ms),
            Act::Rewind(ms) => Event::Rewind(*ms),
            Act::Rule(rule) => Event::Rule(rule.clone()),
            Act::Define(tool) => Event::Define(tool.clone()),
            Act::Fault(fault) => Event::Fault(*fault),
            Act::Kill(kill) => Event::Kill(*kill),
        }))
    }

    fn call(&mut self, name: String, step: &CallStep) -> Result<Call, CannotGoOn> {
        let caller = step.caller.as_deref().unwrap_or(DEFAULT_CALLER);
        let call = Call {
            id: step.id.clone().unwrap_or(name),
            tool: step.tool.clone(),
            arguments: text(step),
            caller: self.caller(caller)?,
            mode: step.mode.unwrap_or_default(),
            token: step.token.clone(),
            operation: step.operation.clone(),
        };
        Ok(self.begin(caller.to_owned(), call))
    }

    fn redeem(&mut self, name: String, step: &RedeemStep) -> Result<Call, CannotGoOn> {
        let token = self.given(&step.ask, "confirm_token")?;
        let asked = self.made(&step.ask)?;
        let caller = step.caller.clone().unwrap_or_else(|| asked.caller.clone());
        let call = Call {
            id: step.id.clone().unwrap_or(name),
            tool: step.tool.clone().unwrap_or_else(|| asked.call.tool.clone()),
            arguments: step.arguments.as_ref().map_or_else(|| asked.call.arguments.clone(), Value::to_string),
            caller: self.caller(&caller)?,
            mode: step.mode.unwrap_or(asked.call.mode),
            token: Some(step.altered.map_or(token.clone(), |altered| altered.of(&token))),
            operation: asked.call.operation.clone(),
        };
        Ok(self.begin(caller, call))
    }

    fn begin(&mut self, caller: String, call: Call) -> Call {
        let made = Made { call: call.clone(), caller, outcome: Outcome::default() };
        self.calls.insert(call.id.clone(), made);
        call
    }

    /// Keeps what calls came to.
    pub fn came_to(&mut self, event: &Event, seen: &Seen) {
        let (calls, outcomes) = match event {
            Event::Call(call) => (std::slice::from_ref(call), seen.outcome.as_slice()),
            Event::Batch(batch) => (batch.calls.as_slice(), seen.outcomes.as_slice()),
            _ => return,
        };
        for (call, outcome) in calls.iter().zip(outcomes) {
            if let Some(made) = self.calls.get_mut(&call.id) {
                made.outcome = outcome.clone();
            }
        }
    }
}

fn text(step: &CallStep) -> String {
    let mut text = match (&step.arguments_text, &step.arguments) {
        (Some(text), _) => text.clone(),
        (None, Some(value)) => value.to_string(),
        (None, None) => "{}".to_owned(),
    };
    let missing = (step.pad_to.unwrap_or(0) as usize).saturating_sub(text.len());
    text.push_str(&" ".repeat(missing));
    text
}
