//! The reference model: what the papers say, done slowly and in the open, sharing nothing with the gates that it judges.
//!
//! It runs a call through the stages in their order, by the numbered invariants; where the papers leave something open it does
//! what `PROTOCOL.md` says. Models that are wrong on purpose are in [`crate::wrong`].

mod arguments;
mod budget;
mod policy;

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::event::{Call, Decide, Event, Fault, How, Kill, Mark, Mode, Outcome, Point, Seen, Verdict};
use crate::feature::Feature::{self, Admission, Display, Events, Inspect, Operations, OutputCap, Reasons};
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::{Body, Caller, Channel, Confirm, DEFAULT_APPROVER_SCOPE, Interceptor, Saying, Tool, World};

pub(crate) use arguments::{clamped, read};
pub(crate) use budget::{Budgets, account};
pub(crate) use policy::principal;
use policy::{allows, definition, named_well, needed};

/// How long an interceptor that hangs takes, in milliseconds: one more than it has.
const HUNG_MS: u64 = 1_001;

/// With these a call ends for what its caller sent or is, and with `APPROVAL_*` (invariant R3).
const REFUSALS: [&str; 4] = ["VALIDATION_ERROR", "TOOL_NOT_FOUND", "FORBIDDEN", "CONFIRMATION_INVALID"];

/// What is about words, and about what surrounds a gate, is not modelled.
const NOT_MODELLED: [Feature; 7] = [Events, OutputCap, Reasons, Display, Inspect, Admission, Operations];

static DECLARATION: LazyLock<Declaration> = LazyLock::new(|| Declaration::full("model").without(&NOT_MODELLED));

/// The model as a subject.
#[derive(Debug, Default)]
pub struct Model {
    pub(crate) world: World,
    /// Milliseconds since the world began.
    pub(crate) now: u64,
    seed: u64,
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) budgets: Budgets,
    faults: Vec<Fault>,
    kills: Vec<Kill>,
    seen: Seen,
}

/// What a token stands for.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) token: String,
    pub(crate) approval: String,
    pub(crate) tool: Tool,
    pub(crate) text: String,
    pub(crate) caller: Caller,
    pub(crate) by: Confirm,
    pub(crate) scope: String,
    pub(crate) expires: u64,
    pub(crate) state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Pending,
    Approved,
    Denied,
    /// Claimed, or presented for something else.
    Spent,
}

/// How a call ends.
struct End {
    code: Option<&'static str>,
    effect: &'static str,
    data: Value,
}

/// A call that ends before its body starts.
const fn no(code: &'static str) -> End {
    End { code: Some(code), effect: "none", data: Value::Null }
}

/// What is found out about a call on its way.
#[derive(Default)]
struct Way {
    args: Option<Value>,
    clamped: bool,
    secrets: Vec<String>,
    /// What was charged, and when.
    paid: Option<(u32, u64)>,
    confirmed_by: Option<&'static str>,
    asked: bool,
    answered: bool,
}

impl Model {
    /// The model.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Comes to a point and does what is done there. If something goes wrong there, the call ends with this code; if the gate is
    /// killed there, a fault that is planted waits for the one that is started again.
    fn at<R>(&mut self, mark: Mark, code: &'static str, done: impl FnOnce(&mut Self) -> R) -> Result<R, End> {
        let kill = self.kills.iter().position(|kill| kill.at == Some(mark.at)).map(|due| self.kills.remove(due));
        let due = self.faults.iter().position(|fault| fault.at == mark.at).filter(|_| kill.is_none());
        let how = due.map(|due| self.faults.remove(due).how);
        self.seen.marks.push(mark);
        self.seen.killed = kill.is_some();
        let is_done = kill.is_none_or(|kill| kill.done) && !matches!(how, Some(How::Error | How::Panic));
        let done = is_done.then(|| done(self));
        done.filter(|_| how.is_none() && kill.is_none()).ok_or_else(|| no(code))
    }

    /// What the caller gets, unless the gate is killed on the way.
    fn call(&mut self, call: &Call) -> Option<Outcome> {
        let mut way = Way::default();
        let end = Some(self.stages(call, &mut way).unwrap_or_else(|end| end)).filter(|_| !self.seen.killed)?;
        let code = self.settle(call, &way, &end).or(end.code);
        let kind = code.map(|code| if code == "VETOED" { "blocked" } else { "error" });
        let kind = kind.or(way.asked.then_some("confirmation"));
        // Exactly one terminal record (invariant J1).
        let record = record("terminal", call, end.code, end.effect, &way);
        let recorded = self.at(Mark::at(Point::Record), "", |model| model.seen.records.push(record)).is_ok();
        let meta = json!({
            "tool": call.tool, "took_ms": 0, "request_id": call.id, "channel": call.caller.channel, "effect": end.effect,
            "principal": principal(&call.caller), "code": code, "type": kind, "confirmed_by": way.confirmed_by,
            "clamped": way.clamped.then_some(true),
            "blocked_by_rule": (kind == Some("blocked")).then_some(true), "cache_served": way.answered.then_some(true),
            "requires_confirmation": way.asked.then_some(true), "audit_pending": (!recorded).then_some(true),
        });
        let error = code.map(|code| format!("the call ended as {code}"));
        let meta = meta.as_object().cloned().unwrap_or_default();
        let outcome = Outcome { success: code.is_none(), data: end.data, message: None, error, meta };
        Some(outcome).filter(|_| !self.seen.killed)
    }

    /// The stages, in their order. An error is a call that does not come to its end (invariants G5, G6, G7).
    fn stages(&mut self, call: &Call, way: &mut Way) -> Result<End, End> {
        // 1 resolve
        named_well(call).then_some(()).ok_or(no("VALIDATION_ERROR"))?;
        let tool = self.world.tools.iter().find(|tool| tool.name == call.tool).cloned();
        let tool = tool.ok_or(no("TOOL_NOT_FOUND"))?;
        way.secrets.clone_from(&tool.secrets);
        let ticket = call.token.as_ref().map(|token| self.load(token, call, &tool)).transpose()?;
        let text = ticket.and_then(|at| self.tickets.get(at)).map_or(&call.arguments, |ticket| &ticket.text).clone();
        // 2 validate, 3 clamp
        let fits = |args: &Value| arguments::fits(tool.schema.as_ref(), args);
        let sent = read(&text).filter(&fits).ok_or(no("VALIDATION_ERROR"))?;
        // What everybody from here on sees (invariant K4).
        let args = Some(clamped(&tool.clamps, &sent)).filter(fits).ok_or(no("VALIDATION_ERROR"))?;
        (way.args, way.clamped) = (Some(args.clone()), args != sent);
        // 4 authorize
        let channel = self.world.channels.iter().find(|channel| channel.name == call.caller.channel).cloned();
        let allowed = self.at(Mark::with(Point::Authorize, args.clone()), "FORBIDDEN", |model| {
            allows(&model.world.rules, &call.caller, &tool, &args, channel.as_ref())
        })?;
        allowed.then_some(()).ok_or(no("FORBIDDEN"))?;
        // 5 rate_limit: one action, one charge (invariant R7)
        if ticket.is_none() {
            self.charge(call, &tool, way)?;
        }
        // 6 plan_mode
        let by = needed(&tool, &channel.unwrap_or_else(Channel::unknown));
        if call.mode == Mode::Plan {
            let plan = json!({"tool": tool.name, "mutating": tool.mutating, "scopes_required": tool.scopes,
                "args": arguments::shown(&args, &tool.secrets), "requires_confirmation": by != Confirm::Nobody,
                "timeout": tool.timeout_ms() as f64 / 1_000.0});
            return Ok(End { code: None, effect: "none", data: json!({ "plan": plan }) });
        }
        // 7 confirm
        match ticket {
            Some(at) => self.redeem(at, by, way)?,
            None if by != Confirm::Nobody => return self.ask(call, tool, text, by, way),
            None => {}
        }
        // 8 emit_executing
        if let Some(answer) = self.intercept(&tool, &args)? {
            way.answered = true;
            return Ok(End { code: None, effect: "none", data: answer });
        }
        if tool.mutating {
            let record = record("intent", call, None, "unknown", way);
            self.at(Mark::at(Point::Intent), "AUDIT_UNAVAILABLE", |model| model.seen.records.push(record))?;
        }
        // 9 execute, 10 contain_exception
        self.execute(&tool, args)
    }

    /// Finds the ticket of a token; nothing is claimed (invariants A4, A6).
    fn load(&mut self, token: &str, call: &Call, tool: &Tool) -> Result<usize, End> {
        let found = self.tickets.iter_mut().enumerate().find(|(_, ticket)| ticket.token == token);
        let (at, ticket) = found.ok_or(no("CONFIRMATION_INVALID"))?;
        let open = matches!(ticket.state, State::Pending | State::Approved);
        let caller = |caller: &Caller| (account(caller, None), caller.session.clone());
        if caller(&ticket.caller) != caller(&call.caller) || definition(&ticket.tool) != definition(tool) {
            // Presented for something else: burnt, unless this is only a plan (invariant R4).
            if call.mode == Mode::Execute && open {
                ticket.state = State::Spent;
            }
            return Err(no("CONFIRMATION_INVALID"));
        }
        match ticket.state {
            State::Denied => Err(no("APPROVAL_DENIED")),
            _ if !open || self.now >= ticket.expires => Err(no("CONFIRMATION_INVALID")),
            State::Pending if ticket.by == Confirm::Approver => Err(no("APPROVAL_PENDING")),
            _ => Ok(at),
        }
    }

    fn charge(&mut self, call: &Call, tool: &Tool, way: &mut Way) -> Result<(), End> {
        let Some(quota) = self.world.quota else { return Ok(()) };
        let (now, cost, whose) = (self.now, if tool.mutating { 5 } else { 1 }, account(&call.caller, Some(&tool.name)));
        let spent = if call.mode == Mode::Plan {
            self.budgets.spend(now, quota, whose, cost, false)
        } else {
            let mark = Mark { cost: Some(cost), ..Mark::at(Point::Charge) };
            let spent =
                self.at(mark, "STORE_UNAVAILABLE", |model| model.budgets.spend(now, quota, whose, cost, true))?;
            way.paid = spent.then_some((cost, now));
            spent
        };
        spent.then_some(()).ok_or(no("RATE_LIMITED"))
    }

    fn ask(&mut self, call: &Call, tool: Tool, text: String, by: Confirm, way: &mut Way) -> Result<End, End> {
        let number = self.tickets.len();
        // No token is another one that was altered in one place.
        let (token, approval) = (format!("token-{}-{number}-x", self.seed), format!("approval-{}-{number}", self.seed));
        let scope = if tool.confirm == Confirm::Approver { tool.approver_scope() } else { DEFAULT_APPROVER_SCOPE };
        let (caller, scope, state) = (call.caller.clone(), scope.to_owned(), State::Pending);
        let expires = self.now.saturating_add(self.world.ttl_ms());
        let data = json!({"requires_confirmation": true, "confirm_token": token, "expires_at": expires.to_string(),
            "approval_id": (by == Confirm::Approver).then_some(&approval)});
        let issued = self.at(Mark::at(Point::Issue), "STORE_UNAVAILABLE", |model| {
            let reached = by != Confirm::Approver || model.world.approvers;
            if reached {
                model.tickets.push(Ticket { token, approval, tool, text, caller, by, scope, expires, state });
            }
            reached
        })?;
        way.asked = issued;
        if issued { Ok(End { code: None, effect: "none", data }) } else { Err(no("NO_APPROVER")) }
    }

    /// Claims a ticket: once, whatever becomes of the call (invariant A5).
    fn redeem(&mut self, at: usize, by: Confirm, way: &mut Way) -> Result<(), End> {
        let claimed = self.at(Mark::at(Point::Redeem), "STORE_UNAVAILABLE", |model| {
            let ticket = model.tickets.get_mut(at)?;
            ticket.state = State::Spent;
            Some(ticket.by)
        })?;
        // Where an approver is needed by now, the caller's own yes is not enough.
        let enough = claimed.filter(|own| *own >= by).ok_or(no("CONFIRMATION_INVALID"))?;
        way.confirmed_by = Some(if enough == Confirm::Approver { "approver" } else { "self" });
        Ok(())
    }

    fn decide(&mut self, decide: &Decide) -> bool {
        let (now, approver) = (self.now, &decide.approver);
        let asked = self.tickets.iter_mut().find(|ticket| ticket.approval == decide.approval);
        asked.is_some_and(|ticket| {
            let counts = ticket.by == Confirm::Approver
                && ticket.caller.tenant == approver.tenant
                && principal(approver).is_some_and(|approver| principal(&ticket.caller) != Some(approver))
                && approver.holds(&ticket.scope)
                && ticket.state == State::Pending
                && now < ticket.expires;
            if counts {
                ticket.state = if decide.verdict == Verdict::Approve { State::Approved } else { State::Denied };
            }
            counts
        })
    }

    fn intercept(&mut self, tool: &Tool, args: &Value) -> Result<Option<Value>, End> {
        for Interceptor { name, tool: about, says } in self.world.interceptors.clone() {
            self.at(Mark { by: Some(name), ..Mark::with(Point::Intercept, args.clone()) }, "VETOED", |_| ())?;
            match says {
                _ if about.is_some_and(|about| about != tool.name) => {}
                Saying::Continue => {}
                Saying::Answer(answer) => {
                    let fits = arguments::fits(tool.output_schema.as_ref(), &answer);
                    return if fits { Ok(Some(answer)) } else { Err(no("OUTPUT_INVALID")) };
                }
                // A veto, or something of which nobody knows what it would have said (invariant E3).
                no_answer => {
                    self.now = self.now.saturating_add(if no_answer == Saying::Hang { HUNG_MS } else { 0 });
                    return Err(no("VETOED"));
                }
            }
        }
        Ok(None)
    }

    fn execute(&mut self, tool: &Tool, args: Value) -> Result<End, End> {
        let mark = Mark::with(Point::Execute, args.clone());
        let late = self.at(mark, "INTERNAL_ERROR", |model| {
            model.seen.effects += 1;
            let takes = if let Body::Hang(ms) = tool.body { ms.min(tool.timeout_ms()) } else { 0 };
            model.now = model.now.saturating_add(takes);
            takes == tool.timeout_ms()
        })?;
        let data = match &tool.body {
            Body::Fail(_) | Body::Panic(_) => return Err(End { effect: "unknown", ..no("INTERNAL_ERROR") }),
            Body::Refuse(_) => return Err(no("INTERNAL_ERROR")),
            Body::Hang(_) if late => return Err(End { effect: "unknown", ..no("TIMEOUT") }),
            Body::Echo | Body::Hang(_) => args,
            Body::Return(value) => value.clone(),
        };
        let code = (!arguments::fits(tool.output_schema.as_ref(), &data)).then_some("OUTPUT_INVALID");
        Ok(End { code, effect: "done", data: if code.is_none() { data } else { Value::Null } })
    }

    /// A call that ends unexecuted keeps at most 1; a refused one costs an attempt. Gives what the caller is told instead when its
    /// attempts are used up (invariants R3, R4).
    fn settle(&mut self, call: &Call, way: &Way, end: &End) -> Option<&'static str> {
        if let (Some((cost, then)), Some(quota), "none", false) = (way.paid, self.world.quota, end.effect, way.asked) {
            self.budgets.refund(self.now, quota, account(&call.caller, Some(&call.tool)), cost, then);
        }
        let refused = |code: &&str| code.starts_with("APPROVAL_") || REFUSALS.contains(code);
        end.code.filter(refused).filter(|_| call.mode == Mode::Execute)?;
        let spent = self.budgets.spend(self.now, self.world.attempts?, account(&call.caller, None), 1, true);
        (!spent).then_some("RATE_LIMITED")
    }
}

fn record(kind: &str, call: &Call, code: Option<&str>, effect: &str, way: &Way) -> Value {
    let args = way.args.as_ref().map(|args| arguments::shown(args, &way.secrets));
    let mut record = json!({"kind": kind, "request_id": call.id, "tool": call.tool, "channel": call.caller.channel,
        "principal": principal(&call.caller), "code": code, "effect": effect, "args": args,
        "confirmed_by": way.confirmed_by, "clamped": way.clamped.then_some(true)});
    if let Some(record) = record.as_object_mut() {
        record.retain(|_, value| !value.is_null());
    }
    record
}

impl Subject for Model {
    fn declaration(&self) -> &Declaration {
        &DECLARATION
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        *self = Self { world: world.clone(), seed, ..Self::default() };
        Ok(Begun::Ready)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        self.seen = Seen::default();
        match event {
            Event::Call(call) => self.seen.outcome = self.call(call),
            Event::Batch(batch) => self.seen.outcomes = batch.calls.iter().filter_map(|call| self.call(call)).collect(),
            Event::Decide(decide) => self.seen.decided = Some(self.decide(decide)),
            Event::Advance(ms) => self.now = self.now.saturating_add(*ms),
            Event::Rule(rule) => self.world.rules.push(rule.clone()),
            // The first of a name is the one that is found.
            Event::Define(tool) => self.world.tools.insert(0, (**tool).clone()),
            Event::Fault(fault) => self.faults.push(*fault),
            // Tickets, budgets and records are in stores, and nothing else outlives a call. Time only passes (invariant C2).
            Event::Kill(kill) => self.kills.extend(kill.at.is_some().then_some(*kill)),
            Event::Rewind(_) => {}
            Event::Show(_) | Event::Inspect(_) => return Err(SubjectFault::GaveUp("that is not modelled".to_owned())),
        }
        Ok(std::mem::take(&mut self.seen))
    }
}
