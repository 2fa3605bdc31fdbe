//! What is told to the model in place of what was to be.

use serde_json::{Map, Value, json};

use super::{Twist, Wrong};
use crate::event::{Call, Mode};
use crate::model::{State, read};
use crate::world::{Channel, Confirm, Listener, RuleEffect, Saying, Tool, World};

impl Wrong {
    /// The world that the model is put into.
    pub(super) fn twisted(&self) -> World {
        let mut world = self.world.clone();
        let silenced = |world: &mut World, says: &[Saying]| {
            let of_them = world.interceptors.iter_mut().filter(|one| says.contains(&one.says));
            of_them.for_each(|one| one.says = Saying::Continue);
        };
        match self.twist {
            Twist::VetoIgnored => silenced(&mut world, &[Saying::Veto]),
            Twist::FailureOpens => silenced(&mut world, &[Saying::Fail, Saying::Panic, Saying::Hang]),
            Twist::ListenerOpens if world.listener == Some(Listener::Panic) => {
                world.rules.clear();
                world.tools.iter_mut().for_each(|tool| (tool.scopes, tool.confirm) = (Vec::new(), Confirm::Nobody));
            }
            Twist::ExpiryLate => world.ttl_ms = Some(world.ttl_ms().saturating_add(1)),
            Twist::AllowWins if world.rules.iter().any(|rule| rule.effect == RuleEffect::Allow) => {
                world.rules.retain(|rule| rule.effect == RuleEffect::Allow);
            }
            Twist::ClampLate => world.tools.iter_mut().for_each(|tool| *tool = unclamped(tool)),
            Twist::AttemptsFree => world.attempts = None,
            Twist::OutputUnchecked => world.tools.iter_mut().for_each(|tool| tool.output_schema = None),
            _ => {}
        }
        world
    }

    /// Makes a call wrong, or the place into which it comes.
    pub(super) fn before(&mut self, call: &mut Call) {
        self.of_its_ticket(call);
        let tool = self.model.world.tools.iter_mut().find(|tool| tool.name == call.tool);
        match self.twist {
            Twist::PlanExecutes => call.mode = Mode::Execute,
            Twist::NamesFolded => call.tool = call.tool.trim().to_lowercase(),
            // Reading it once with a parser that knows no better is all that it takes.
            Twist::LastKeyWins if read(&call.arguments).is_none() => rewrite(call, Value::Object),
            Twist::Rounds if read(&call.arguments).is_some() => {
                rewrite(call, |args| rounded(Value::Object(args)));
            }
            Twist::Coerces if read(&call.arguments).is_some() => {
                let properties = tool.and_then(|tool| tool.schema.as_ref()).and_then(|schema| schema.get("properties"));
                if let Some(properties) = properties.cloned() {
                    let coerced = |(name, value)| {
                        let is_number = is_number(properties.get(&name));
                        (name, if is_number { coerced(value) } else { value })
                    };
                    rewrite(call, |args| args.into_iter().map(coerced).collect());
                }
            }
            Twist::UnknownDropped if read(&call.arguments).is_some() => {
                let schema = tool.and_then(|tool| tool.schema.as_ref());
                let closed = schema.filter(|schema| schema.get("additionalProperties") == Some(&Value::Bool(false)));
                if let Some(known) = closed.and_then(|schema| schema.get("properties")) {
                    let is_known = |name: &String| known.get(name).is_some();
                    rewrite(call, |args| args.into_iter().filter(|(name, _)| is_known(name)).collect());
                }
            }
            Twist::ApprovedInArguments => {
                let args = serde_json::from_str::<Value>(&call.arguments).unwrap_or_default();
                if let (Some(tool), Some(true)) = (tool, args.get("approved").and_then(Value::as_bool)) {
                    tool.confirm = Confirm::Nobody;
                }
            }
            Twist::UnknownChannelTrusted => {
                let channels = &mut self.model.world.channels;
                if channels.iter().all(|channel| channel.name != call.caller.channel) {
                    channels.push(Channel::new(&call.caller.channel));
                }
            }
            Twist::StalePolicy => {
                let asked = call.token.as_ref().and_then(|token| self.asked.get(token));
                if let Some((rules, scopes)) = asked {
                    self.model.world.rules.clone_from(rules);
                    call.caller.scopes.clone_from(scopes);
                }
            }
            _ => {}
        }
    }

    /// Makes the ticket of a call fit where it does not.
    fn of_its_ticket(&mut self, call: &Call) {
        let (twist, now) = (self.twist, self.model.now);
        let tool = self.model.world.tools.iter().find(|tool| tool.name == call.tool).cloned();
        let claimed = call.token.as_ref().is_some_and(|token| self.claimed.contains(token));
        let Some(ticket) = self.ticket(call) else { return };
        let same_name = tool.as_ref().is_some_and(|tool| tool.name == ticket.tool.name);
        match (twist, tool) {
            (Twist::TokenReusable, _) if claimed => {
                ticket.state = if ticket.by == Confirm::Approver { State::Approved } else { State::Pending };
            }
            (Twist::TokenUnbound, _) => ticket.caller = call.caller.clone(),
            (Twist::SessionUnbound, _) => ticket.caller.session.clone_from(&call.caller.session),
            (Twist::ToolUnbound, Some(tool)) if !same_name => ticket.tool = tool,
            (Twist::DefinitionUnbound, Some(tool)) if same_name => ticket.tool = tool,
            (Twist::SecondArguments, _) => ticket.text.clone_from(&call.arguments),
            (Twist::TimeoutApproves, _) if ticket.state == State::Pending && now >= ticket.expires => {
                let approved = if ticket.by == Confirm::Approver { State::Approved } else { State::Pending };
                ticket.state = approved;
                ticket.expires = if ticket.by == Confirm::Approver { u64::MAX } else { ticket.expires };
            }
            _ => {}
        }
    }
}

/// A tool without its clamps, which are still a part of its definition.
pub(super) fn unclamped(tool: &Tool) -> Tool {
    let version = format!("{:?} {:?}", tool.version, tool.clamps);
    Tool { clamps: Vec::new(), version: Some(version), ..tool.clone() }
}

/// Changes arguments that are no longer than they may be.
fn rewrite(call: &mut Call, change: impl FnOnce(Map<String, Value>) -> Value) {
    if call.arguments.len() > 1 << 20 {
        return;
    }
    if let Ok(Value::Object(args)) = serde_json::from_str(&call.arguments) {
        call.arguments = change(args).to_string();
    }
}

/// Whole numbers as a floating-point number keeps them.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "that is what is wrong with it")]
fn rounded(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, rounded(value))).collect(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => json!(number as f64 as i64),
            (None, Some(number)) => json!(number as f64 as u64),
            (None, None) => Value::Number(number),
        },
        other => other,
    }
}

fn is_number(schema: Option<&Value>) -> bool {
    let kind = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
    matches!(kind, Some("number" | "integer"))
}

fn coerced(value: Value) -> Value {
    match value.as_str().map(str::parse) {
        Some(Ok(number)) => Value::Number(number),
        _ => value,
    }
}
