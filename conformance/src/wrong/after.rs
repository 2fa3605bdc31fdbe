//! What is shown in place of what the model shows.

use serde_json::{Value, json};

use super::{Twist, Wrong};
use crate::event::{Call, Mark, Mode, Outcome, Point, Seen};
use crate::model::{State, account, clamped};
use crate::world::{Body, Saying, Tool};

impl Wrong {
    /// Makes what is seen of a call wrong; `state` is that of its ticket before.
    pub(super) fn after(&mut self, call: &Call, state: Option<State>, seen: &mut Seen) {
        let tool = self.world.tools.iter().find(|tool| tool.name == call.tool).cloned().unwrap_or_default();
        let now = self.model.now;
        let expired = self.ticket(call).is_some_and(|ticket| now >= ticket.expires);
        let code = seen.outcome.as_ref().and_then(|outcome| outcome.meta_text("code")).map(str::to_owned);
        let code = code.as_deref();
        self.of_what_it_keeps(call, &tool, state, code, seen);
        self.of_order(&tool, seen);
        let args = seen.marks.iter().find(|mark| mark.at == Point::Authorize).and_then(|mark| mark.args.clone());
        let records = &mut seen.records;
        let Some(outcome) = &mut seen.outcome else { return };
        match self.twist {
            Twist::ExpiryTold if code == Some("CONFIRMATION_INVALID") && expired => {
                tell(outcome, "code", json!("CONFIRMATION_EXPIRED"));
            }
            Twist::ClampSilent => {
                outcome.meta.remove("clamped");
                records.iter_mut().filter_map(Value::as_object_mut).for_each(|record| drop(record.remove("clamped")));
            }
            Twist::Retries if code == Some("INTERNAL_ERROR") && tool.mutating => {
                let again = seen.marks.iter().find(|mark| mark.at == Point::Execute).cloned();
                let at = seen.marks.iter().position(|mark| mark.at == Point::Execute).unwrap_or_default();
                again.into_iter().for_each(|mark| seen.marks.insert(at, mark));
                seen.effects = seen.effects.saturating_add(1);
            }
            Twist::TimeoutSucceeds if code == Some("TIMEOUT") => {
                (outcome.success, outcome.error) = (true, None);
                for (name, value) in [("code", Value::Null), ("type", Value::Null), ("effect", json!("done"))] {
                    tell(outcome, name, value);
                }
            }
            Twist::TimeoutDidNothing if code == Some("TIMEOUT") => tell(outcome, "effect", json!("none")),
            Twist::FailureTold => {
                if let (Body::Fail(text) | Body::Panic(text), Some("INTERNAL_ERROR")) = (&tool.body, code) {
                    outcome.error = Some(text.clone());
                }
            }
            Twist::LogFaultFails if outcome.success && outcome.meta.get("audit_pending") == Some(&json!(true)) => {
                (outcome.success, outcome.error) = (false, Some("the log is down".to_owned()));
                tell(outcome, "code", json!("AUDIT_UNAVAILABLE"));
            }
            Twist::SecretsInPlans => {
                let plan = outcome.data.get_mut("plan").and_then(|plan| plan.get_mut("args"));
                plan.into_iter().for_each(|plan| *plan = args.clone().unwrap_or_default());
            }
            Twist::SecretsInVetoes if code == Some("VETOED") => {
                let shown = records.iter_mut().filter_map(|record| record.get_mut("args"));
                shown.for_each(|shown| *shown = args.clone().unwrap_or_default());
            }
            Twist::ClampLate => {
                let late = |args: &mut Value| *args = clamped(&tool.clamps, args);
                let started = seen.marks.iter_mut().filter(|mark| mark.at == Point::Execute);
                started.filter_map(|mark| mark.args.as_mut()).for_each(late);
                if matches!(tool.body, Body::Echo | Body::Hang(_)) && outcome.data.is_object() && seen.effects > 0 {
                    late(&mut outcome.data);
                }
                if args.is_some_and(|args| clamped(&tool.clamps, &args) != args) {
                    tell(outcome, "clamped", json!(true));
                    let records = records.iter_mut().filter_map(Value::as_object_mut);
                    records.for_each(|record| drop(record.insert("clamped".to_owned(), json!(true))));
                }
            }
            _ => {}
        }
    }

    fn of_what_it_keeps(
        &mut self,
        call: &Call,
        tool: &Tool,
        state: Option<State>,
        code: Option<&str>,
        seen: &mut Seen,
    ) {
        let authorized = seen.marks.iter().position(|mark| mark.at == Point::Authorize);
        let judged = authorized.filter(|_| code != Some("FORBIDDEN"));
        let cost: u32 = if tool.mutating { 5 } else { 1 };
        let again = match self.twist {
            Twist::PlanCharged if call.mode == Mode::Plan && code.is_none() => Some(cost),
            Twist::ChargedTwice if call.token.is_some() && call.mode == Mode::Execute => judged.map(|_| cost),
            Twist::VetoCharged if code == Some("VETOED") && call.token.is_none() => Some(cost.saturating_sub(1)),
            _ => None,
        };
        if let (Some(cost), Some(quota)) = (again, self.world.quota) {
            let now = self.model.now;
            let _ = self.model.budgets.spend(now, quota, account(&call.caller, Some(&call.tool)), cost, true);
            if let (Some(at), false) = (authorized, self.is(Twist::VetoCharged)) {
                let mark = Mark { cost: Some(cost), ..Mark::at(Point::Charge) };
                seen.marks.insert(at.saturating_add(1), mark);
            }
        }
        let claimed = seen.marks.iter().any(|mark| mark.at == Point::Redeem);
        self.claimed.extend(call.token.clone().filter(|_| claimed));
        if let (Twist::MismatchKeeps, Some(state), false) = (self.twist, state, claimed)
            && let Some(ticket) = self.ticket(call)
        {
            ticket.state = state;
        }
        let token = seen.outcome.as_ref().and_then(|outcome| outcome.data_text("confirm_token"));
        if let Some(token) = token {
            let policy = (self.model.world.rules.clone(), call.caller.scopes.clone());
            self.asked.insert(token.to_owned(), policy);
        }
    }

    fn of_order(&self, tool: &Tool, seen: &mut Seen) {
        let at = |seen: &Seen, point| seen.marks.iter().position(|mark| mark.at == point);
        let is_intent = |record: &Value| record.get("kind") == Some(&json!("intent"));
        match self.twist {
            Twist::InterceptFirst => {
                let Some(authorized) = at(seen, Point::Authorize) else { return };
                let args = seen.marks.get(authorized).and_then(|mark| mark.args.clone());
                seen.marks.retain(|mark| mark.at != Point::Intercept);
                let speaks = |one: &&crate::world::Interceptor| {
                    one.says != Saying::Continue && one.tool.as_ref().is_none_or(|about| *about == tool.name)
                };
                let last = self.world.interceptors.iter().position(|one| speaks(&one));
                let heard = last.map_or(self.world.interceptors.len(), |last| last.saturating_add(1));
                for one in self.world.interceptors.iter().take(heard).rev() {
                    let mark = Mark { by: Some(one.name.clone()), args: args.clone(), ..Mark::at(Point::Intercept) };
                    seen.marks.insert(0, mark);
                }
            }
            Twist::DenialUnaudited => {
                let is_denial = |record: &Value| record.get("code") == Some(&json!("FORBIDDEN"));
                if seen.records.iter().any(is_denial) {
                    seen.records.retain(|record| !is_denial(record));
                    seen.marks.retain(|mark| mark.at != Point::Record);
                }
            }
            Twist::DoubleAudit if seen.effects > 0 => {
                seen.records.extend(seen.records.last().filter(|record| !is_intent(record)).cloned());
                seen.marks.push(Mark::at(Point::Record));
            }
            Twist::NoIntent => {
                seen.records.retain(|record| !is_intent(record));
                seen.marks.retain(|mark| mark.at != Point::Intent);
            }
            Twist::IntentLate => {
                if let (Some(intent), Some(started)) = (at(seen, Point::Intent), at(seen, Point::Execute)) {
                    seen.marks.swap(intent, started);
                }
            }
            _ => {}
        }
    }
}

fn tell(outcome: &mut Outcome, name: &str, value: Value) {
    outcome.meta.insert(name.to_owned(), value);
}
