//! The reference model: what the papers say, done slowly and in the open, sharing nothing with the gates that it judges.
//!
//! It runs a call through the stages in their order, by the numbered invariants; where the papers leave something open it does
//! what `PROTOCOL.md` says. [`Twist`]s make it wrong on purpose.

mod arguments;
mod budget;
mod policy;
mod record;
mod twist;

use serde_json::{Map, Value, json};

use crate::event::{Call, Decide, Event, Fault, How, Kill, Mark, Mode, Outcome, Point, Seen, Verdict};
use crate::feature::Feature;
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::{Body, Caller, Channel, Confirm, Interceptor, Saying, Tool, World};

use budget::{Budgets, unit};
use policy::{allows, definition, named_well, needed, principal, same_caller};
use record::{record, shown};
pub use twist::Twist;

/// How long an interceptor that hangs takes, in milliseconds: one more than it has.
const HUNG_MS: u64 = 1_001;

/// What is about words, and about what surrounds a gate, is not modelled.
const NOT_MODELLED: [Feature; 6] =
    [Feature::Events, Feature::OutputCap, Feature::Reasons, Feature::Display, Feature::Inspect, Feature::Admission];

/// The model as a subject.
#[derive(Debug)]
pub struct Model {
    declaration: Declaration,
    twist: Option<Twist>,
    world: World,
    /// Milliseconds since the world began.
    now: u64,
    seed: u64,
    tickets: Vec<Ticket>,
    budgets: Budgets,
    faults: Vec<Fault>,
    kills: Vec<Kill>,
    /// It is killed as soon as what is done at this point is done.
    dying: bool,
    /// What a gate that was killed left. Whatever this one goes on to do is not done.
    left: Option<Box<Left>>,
    seen: Seen,
}

#[derive(Clone, Debug)]
struct Left {
    now: u64,
    tickets: Vec<Ticket>,
    budgets: Budgets,
    faults: Vec<Fault>,
    seen: Seen,
}

#[derive(Clone, Debug)]
struct Ticket {
    token: String,
    approval: String,
    tool: Tool,
    text: String,
    caller: Caller,
    by: Confirm,
    scope: String,
    expires: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Pending,
    Approved,
    Denied,
    Cancelled,
    Claimed,
}

/// How a call ends.
struct End {
    code: Option<&'static str>,
    effect: &'static str,
    kind: Option<&'static str>,
    data: Value,
    /// Whether the caller is to blame, which costs an attempt (invariant R3).
    refusal: bool,
    started: bool,
}

impl End {
    fn failed(code: &'static str) -> Self {
        let kind = if code == "VETOED" { "blocked" } else { "error" };
        Self { code: Some(code), effect: "none", kind: Some(kind), data: Value::Null, refusal: false, started: false }
    }

    fn refused(code: &'static str) -> Self {
        Self { refusal: true, ..Self::failed(code) }
    }

    fn ran(code: &'static str, effect: &'static str) -> Self {
        Self { effect, started: true, ..Self::failed(code) }
    }

    const fn success(data: Value) -> Self {
        Self { code: None, effect: "none", kind: None, data, refusal: false, started: false }
    }
}

/// What is found out about a call on its way.
#[derive(Default)]
struct Way {
    args: Option<Value>,
    secrets: Vec<String>,
    /// What was charged, and when.
    paid: Option<(u32, u64)>,
    confirmed_by: Option<&'static str>,
    told: Option<String>,
}

impl Model {
    /// The model.
    #[must_use]
    pub fn new() -> Self {
        Self::make(None)
    }

    /// The model, wrong in one thing.
    #[must_use]
    pub fn twisted(twist: Twist) -> Self {
        Self::make(Some(twist))
    }

    fn make(twist: Option<Twist>) -> Self {
        let name = twist.map_or_else(|| "model".to_owned(), |twist| format!("model, {}", twist.as_str()));
        let mut declaration = Declaration::full(&name);
        declaration.supports.retain(|feature| !NOT_MODELLED.contains(feature));
        Self {
            declaration,
            twist,
            world: World::default(),
            now: 0,
            seed: 0,
            tickets: Vec::new(),
            budgets: Budgets::default(),
            faults: Vec::new(),
            kills: Vec::new(),
            dying: false,
            left: None,
            seen: Seen::default(),
        }
    }

    fn is(&self, twist: Twist) -> bool {
        self.twist == Some(twist)
    }

    fn mark(&mut self, mark: Mark) {
        self.die_if(self.dying);
        let due = self.kills.iter().position(|kill| kill.at == Some(mark.at) && self.left.is_none());
        self.seen.marks.push(mark);
        if let Some(due) = due {
            self.dying = true;
            let kill = self.kills.remove(due);
            self.die_if(!kill.done);
        }
    }

    fn die_if(&mut self, so: bool) {
        if so && self.left.is_none() {
            let (tickets, budgets) = (self.tickets.clone(), self.budgets.clone());
            let (now, faults, seen) = (self.now, self.faults.clone(), self.seen.clone());
            self.left = Some(Box::new(Left { now, tickets, budgets, faults, seen }));
        }
    }

    /// What is seen of a call; of one in which the gate was killed, what was left when it was.
    fn ended(&mut self, outcome: Outcome) {
        self.die_if(self.dying);
        self.dying = false;
        match self.left.take() {
            None => self.seen.outcome = Some(outcome),
            Some(left) => {
                let Left { now, tickets, budgets, faults, seen } = *left;
                let seen = Seen { killed: true, ..seen };
                (self.now, self.tickets, self.budgets, self.faults, self.seen) = (now, tickets, budgets, faults, seen);
            }
        }
    }

    /// Comes to a point, and says whether something goes wrong there.
    fn come_to(&mut self, mark: Mark) -> Option<How> {
        let at = self.faults.iter().position(|fault| fault.at == mark.at);
        self.mark(mark);
        // What is planted for a gate that is killed here waits for the one that is started again.
        at.filter(|_| !self.dying).map(|at| self.faults.remove(at).how)
    }

    fn call(&mut self, call: &Call) -> Outcome {
        let mut way = Way::default();
        let end = self.stages(call, &mut way).unwrap_or_else(|end| end);
        let told = self.settle(call, &way, &end);
        let mut meta = json!({"tool": call.tool, "took_ms": 0, "request_id": call.id, "channel": call.caller.channel,
            "principal": principal(&call.caller), "effect": end.effect});
        let mut set = |name: &str, value: Value| {
            if let (Some(meta), false) = (meta.as_object_mut(), value.is_null()) {
                meta.insert(name.to_owned(), value);
            }
        };
        let code = told.or(end.code);
        set("code", code.into());
        set("type", if told.is_some() { "error".into() } else { end.kind.into() });
        set("blocked_by_rule", (end.kind == Some("blocked")).then_some(true).into());
        set("requires_confirmation", (end.kind == Some("confirmation")).then_some(true).into());
        set("confirmed_by", way.confirmed_by.into());
        if !self.record(call, &way, &end) {
            set("audit_pending", true.into());
        }
        let error = code.map(|code| way.told.unwrap_or_else(|| format!("the call ended as {code}")));
        let meta = meta.as_object().cloned().unwrap_or_default();
        Outcome { success: code.is_none(), data: end.data, message: None, error, meta }
    }

    /// The stages, in their order. An error is a call that does not come to its end (invariants G5, G6, G7).
    fn stages(&mut self, call: &Call, way: &mut Way) -> Result<End, End> {
        // 1 resolve
        if !named_well(call) {
            return Err(End::refused("VALIDATION_ERROR"));
        }
        let tool = self.world.tools.iter().find(|tool| tool.name == call.tool).cloned();
        let tool = tool.ok_or_else(|| End::refused("TOOL_NOT_FOUND"))?;
        way.secrets.clone_from(&tool.secrets);
        let ticket = match &call.token {
            Some(token) => Some(self.load(token, call, &tool)?),
            None => None,
        };
        let snapshot = ticket.and_then(|at| self.tickets.get(at)).map(|ticket| ticket.text.clone());
        let text = snapshot.filter(|_| !self.is(Twist::SecondArguments)).unwrap_or_else(|| call.arguments.clone());
        // 2 validate, 3 clamp
        let raw = arguments::read(&text).ok_or_else(|| End::refused("VALIDATION_ERROR"))?;
        let mut clamped = raw.clone();
        let fits = |args: &Map<String, Value>| {
            tool.schema.as_ref().is_none_or(|schema| arguments::fits(schema, &Value::Object(args.clone())))
        };
        if !fits(&raw) {
            return Err(End::refused("VALIDATION_ERROR"));
        }
        arguments::clamp(&tool.clamps, &mut clamped);
        if !fits(&clamped) {
            return Err(End::refused("VALIDATION_ERROR"));
        }
        let clamped = Value::Object(clamped);
        // What everybody from here on sees (invariant K4).
        let args = if self.is(Twist::ClampLate) { Value::Object(raw) } else { clamped.clone() };
        way.args = Some(args.clone());
        if self.is(Twist::InterceptFirst)
            && let Some(end) = self.intercept(&tool, &args)?
        {
            return Ok(end);
        }
        // 4 authorize
        let channel = self.world.channels.iter().find(|channel| channel.name == call.caller.channel).cloned();
        if !(ticket.is_some() && self.is(Twist::StalePolicy)) {
            let faulty = self.come_to(Mark::with(Point::Authorize, args.clone())).is_some();
            let fault_denies = faulty && !self.is(Twist::PolicyFaultAllows);
            if fault_denies || !faulty && !allows(&self.world.rules, &call.caller, &tool, &args, channel.as_ref()) {
                return Err(End::refused("FORBIDDEN"));
            }
        }
        let channel = channel.unwrap_or_else(Channel::unknown);
        // 5 rate_limit: one action, one charge (invariant R7)
        if ticket.is_none() || self.is(Twist::ChargedTwice) {
            way.paid = self.charge(call, &tool)?;
        }
        // 6 plan_mode
        if call.mode == Mode::Plan {
            if self.is(Twist::PlanExecutes) {
                return Ok(self.execute(&tool, clamped, way));
            }
            let args = shown(&args, &tool.secrets);
            return Ok(End::success(json!({"plan": {"tool": tool.name, "mutating": tool.mutating, "args": args}})));
        }
        // 7 confirm
        let by = needed(&tool, &channel);
        match ticket {
            Some(at) => self.redeem(at, by, way)?,
            None if by != Confirm::Nobody => return self.ask(call, tool, &text, by),
            None => {}
        }
        // 8 emit_executing
        if !self.is(Twist::InterceptFirst)
            && let Some(end) = self.intercept(&tool, &args)?
        {
            return Ok(end);
        }
        if tool.mutating && !self.is(Twist::NoIntent) {
            let fault = self.come_to(Mark::at(Point::Intent));
            if matches!(fault, None | Some(How::Lost)) {
                let record = record("intent", call, None, "unknown", way);
                self.seen.records.push(record);
            }
            if fault.is_some() {
                return Err(End::failed("AUDIT_UNAVAILABLE"));
            }
        }
        // 9 execute, 10 contain_exception
        Ok(self.execute(&tool, clamped, way))
    }

    /// Finds the ticket of a token; nothing is claimed (invariants A4, A6).
    fn load(&mut self, token: &str, call: &Call, tool: &Tool) -> Result<usize, End> {
        let invalid = || End::refused("CONFIRMATION_INVALID");
        let at = self.tickets.iter().position(|ticket| ticket.token == token).ok_or_else(invalid)?;
        let (unbound, any_definition) = (self.is(Twist::TokenUnbound), self.is(Twist::DefinitionUnbound));
        let Some(ticket) = self.tickets.get_mut(at) else { return Err(invalid()) };
        let same_tool = definition(&ticket.tool) == definition(tool) || any_definition && ticket.tool.name == tool.name;
        if !(unbound || same_caller(&ticket.caller, &call.caller)) || !same_tool {
            // Presented for something else: burnt, unless this is only a plan (invariant R4).
            if call.mode == Mode::Execute && matches!(ticket.state, State::Pending | State::Approved) {
                ticket.state = State::Cancelled;
            }
            return Err(invalid());
        }
        self.usable(at).map(|()| at)
    }

    fn usable(&self, at: usize) -> Result<(), End> {
        let Some(ticket) = self.tickets.get(at) else { return Err(End::refused("CONFIRMATION_INVALID")) };
        let grace = u64::from(self.is(Twist::ExpiryLate));
        match ticket.state {
            State::Denied => Err(End::refused("APPROVAL_DENIED")),
            State::Claimed if self.is(Twist::TokenReusable) => Ok(()),
            State::Claimed | State::Cancelled => Err(End::refused("CONFIRMATION_INVALID")),
            _ if self.now >= ticket.expires.saturating_add(grace) => Err(End::refused("CONFIRMATION_INVALID")),
            State::Pending if ticket.by == Confirm::Approver => Err(End::refused("APPROVAL_PENDING")),
            State::Pending | State::Approved => Ok(()),
        }
    }

    fn charge(&mut self, call: &Call, tool: &Tool) -> Result<Option<(u32, u64)>, End> {
        let Some(quota) = self.world.quota else { return Ok(None) };
        let cost = if tool.mutating { 5 } else { 1 };
        if call.mode == Mode::Plan {
            let free = self.budgets.spend(self.now, quota, &call.caller, Some(&tool.name), cost, false);
            return if free { Ok(None) } else { Err(End::failed("RATE_LIMITED")) };
        }
        let fault = self.come_to(Mark { cost: Some(cost), ..Mark::at(Point::Charge) });
        if matches!(fault, None | Some(How::Lost)) {
            let free = self.budgets.spend(self.now, quota, &call.caller, Some(&tool.name), cost, true);
            if fault.is_none() && !free {
                return Err(End::failed("RATE_LIMITED"));
            }
        }
        if fault.is_some() { Err(End::failed("STORE_UNAVAILABLE")) } else { Ok(Some((cost, self.now))) }
    }

    fn ask(&mut self, call: &Call, tool: Tool, text: &str, by: Confirm) -> Result<End, End> {
        let fault = self.come_to(Mark::at(Point::Issue));
        if matches!(fault, Some(How::Error | How::Panic)) {
            return Err(End::failed("STORE_UNAVAILABLE"));
        }
        if by == Confirm::Approver && !self.world.approvers && fault.is_none() {
            return Err(End::failed("NO_APPROVER"));
        }
        let number = self.tickets.len();
        let (token, approval) = (format!("token-{}-{number}", self.seed), format!("approval-{}-{number}", self.seed));
        let named = tool.confirm == Confirm::Approver;
        let scope = if named { tool.approver_scope() } else { crate::world::DEFAULT_APPROVER_SCOPE }.to_owned();
        let mut data =
            json!({"requires_confirmation": true, "confirm_token": token, "expires_at": self.now.to_string()});
        if by == Confirm::Approver
            && let Some(data) = data.as_object_mut()
        {
            data.insert("approval_id".to_owned(), approval.as_str().into());
        }
        let (caller, expires) = (call.caller.clone(), self.now.saturating_add(self.world.ttl_ms()));
        let text = text.to_owned();
        self.tickets.push(Ticket { token, approval, tool, text, caller, by, scope, expires, state: State::Pending });
        match fault {
            Some(_) => Err(End::failed("STORE_UNAVAILABLE")),
            None => Ok(End { kind: Some("confirmation"), ..End::success(data) }),
        }
    }

    /// Claims a ticket: once, whatever becomes of the call (invariant A5).
    fn redeem(&mut self, at: usize, by: Confirm, way: &mut Way) -> Result<(), End> {
        let fault = self.come_to(Mark::at(Point::Redeem));
        if matches!(fault, Some(How::Error | How::Panic)) {
            return Err(End::failed("STORE_UNAVAILABLE"));
        }
        self.usable(at)?;
        let Some(ticket) = self.tickets.get_mut(at) else { return Err(End::refused("CONFIRMATION_INVALID")) };
        ticket.state = State::Claimed;
        if fault.is_some() {
            return Err(End::failed("STORE_UNAVAILABLE"));
        }
        if by == Confirm::Approver && ticket.by == Confirm::Caller {
            return Err(End::refused("CONFIRMATION_INVALID"));
        }
        way.confirmed_by = Some(if ticket.by == Confirm::Approver { "approver" } else { "self" });
        Ok(())
    }

    fn decide(&mut self, decide: &Decide) -> bool {
        let (own, last) = (self.is(Twist::OwnApproval), self.is(Twist::LastDecision));
        let (now, approver) = (self.now, &decide.approver);
        let Some(ticket) = self.tickets.iter_mut().find(|ticket| ticket.approval == decide.approval) else {
            return false;
        };
        let same = principal(&ticket.caller) == principal(approver);
        let open = ticket.state == State::Pending || last && matches!(ticket.state, State::Approved | State::Denied);
        let counts = ticket.by == Confirm::Approver
            && ticket.caller.tenant == approver.tenant
            && principal(approver).is_some()
            && (!same || own)
            && approver.holds(&ticket.scope)
            && open
            && now < ticket.expires;
        if counts {
            ticket.state = if decide.verdict == Verdict::Approve { State::Approved } else { State::Denied };
        }
        counts
    }

    fn intercept(&mut self, tool: &Tool, args: &Value) -> Result<Option<End>, End> {
        for Interceptor { name, tool: about, says } in self.world.interceptors.clone() {
            self.mark(Mark { by: Some(name), ..Mark::with(Point::Intercept, args.clone()) });
            if about.is_some_and(|about| about != tool.name) {
                continue;
            }
            match says {
                Saying::Continue => {}
                Saying::Veto if self.is(Twist::VetoIgnored) => {}
                Saying::Fail | Saying::Panic | Saying::Hang if self.is(Twist::FailureOpens) => {}
                Saying::Veto | Saying::Fail | Saying::Panic => return Err(End::failed("VETOED")),
                Saying::Hang => {
                    self.now = self.now.saturating_add(HUNG_MS);
                    return Err(End::failed("VETOED"));
                }
                Saying::Answer(answer) => {
                    let fits = tool.output_schema.as_ref().is_none_or(|schema| arguments::fits(schema, &answer));
                    return if fits { Ok(Some(End::success(answer))) } else { Err(End::failed("OUTPUT_INVALID")) };
                }
            }
        }
        Ok(None)
    }

    fn execute(&mut self, tool: &Tool, args: Value, way: &mut Way) -> End {
        self.mark(Mark::with(Point::Execute, args.clone()));
        self.seen.effects += 1;
        self.die_if(self.dying);
        let data = match &tool.body {
            Body::Echo => args,
            Body::Return(value) => value.clone(),
            Body::Fail(text) | Body::Panic(text) => {
                way.told = self.is(Twist::FailureTold).then(|| text.clone());
                return End::ran("INTERNAL_ERROR", "unknown");
            }
            Body::Hang(ms) => {
                self.now = self.now.saturating_add(*ms.min(&tool.timeout_ms()));
                if *ms >= tool.timeout_ms() && !self.is(Twist::TimeoutSucceeds) {
                    return End::ran("TIMEOUT", "unknown");
                }
                args
            }
        };
        if tool.output_schema.as_ref().is_some_and(|schema| !arguments::fits(schema, &data)) {
            return End::ran("OUTPUT_INVALID", "done");
        }
        End { effect: "done", started: true, ..End::success(data) }
    }

    /// A call that ends unexecuted keeps at most 1; a refused one costs an attempt. Gives what the caller is told instead when its
    /// attempts are used up (invariants R3, R4).
    fn settle(&mut self, call: &Call, way: &Way, end: &End) -> Option<&'static str> {
        self.die_if(self.dying);
        if call.mode == Mode::Plan {
            return None;
        }
        if let (Some((cost, at)), Some(quota), false) = (way.paid, self.world.quota, end.started)
            && end.kind != Some("confirmation")
        {
            let outstanding = unit(quota).saturating_mul(cost.into()).saturating_sub(self.now.saturating_sub(at));
            self.budgets.refund(quota, &call.caller, &call.tool, cost.saturating_sub(1), outstanding);
        }
        let attempts = self.world.attempts.filter(|_| end.refusal)?;
        (!self.budgets.spend(self.now, attempts, &call.caller, None, 1, true)).then_some("RATE_LIMITED")
    }

    /// Exactly one terminal record (invariant J1). Says whether it is known to be there.
    fn record(&mut self, call: &Call, way: &Way, end: &End) -> bool {
        if self.is(Twist::DenialUnaudited) && end.code == Some("FORBIDDEN") {
            return true;
        }
        let twice = self.is(Twist::DoubleAudit) && end.started;
        for _ in 0..=u8::from(twice) {
            let fault = self.come_to(Mark::at(Point::Record));
            if matches!(fault, None | Some(How::Lost)) {
                let record = record("terminal", call, end.code, end.effect, way);
                self.seen.records.push(record);
            }
            if fault.is_some() {
                return false;
            }
        }
        true
    }
}

impl Default for Model {
    fn default() -> Self {
        Self::new()
    }
}

impl Subject for Model {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        *self = Self { world: world.clone(), seed, ..Self::make(self.twist) };
        Ok(Begun::Ready)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        self.seen = Seen::default();
        match event {
            Event::Call(call) => {
                let outcome = self.call(call);
                self.ended(outcome);
            }
            Event::Batch(batch) => self.seen.outcomes = batch.calls.iter().map(|call| self.call(call)).collect(),
            Event::Decide(decide) => self.seen.decided = Some(self.decide(decide)),
            Event::Advance(ms) => self.now = self.now.saturating_add(*ms),
            Event::Rule(rule) => self.world.rules.push(rule.clone()),
            Event::Define(tool) => {
                self.world.tools.retain(|old| old.name != tool.name);
                self.world.tools.push((**tool).clone());
            }
            Event::Fault(fault) => self.faults.push(*fault),
            // Tickets, budgets and records are in stores, and nothing else outlives a call. Time only passes (invariant C2).
            Event::Kill(kill) => self.kills.extend(kill.at.is_some().then_some(*kill)),
            Event::Rewind(_) => {}
            Event::Show(_) | Event::Inspect(_) => {
                return Err(SubjectFault::GaveUp("the model shows nothing".to_owned()));
            }
        }
        Ok(std::mem::take(&mut self.seen))
    }
}
