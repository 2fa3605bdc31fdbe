//! Models that are wrong on purpose, each in one thing. What is wrong is done around the model, which stays as it is: to the world
//! that it is put into, to what happens in it, to what it keeps between two events, and to what it shows. Where it is about operations, of
//! which the model knows none, the same is done to the blocking gate.

mod after;
mod before;
mod operations;
mod twist;

use std::collections::{HashMap, HashSet};

use crate::event::{Call, Decide, Event, Fault, How, Point, Seen};
use crate::model::{Budgets, Model, State, Ticket};
use crate::subject::{Begun, Declaration, Subject, SubjectFault};
use crate::world::{Rule, RuleEffect, World};

use operations::Operations;
pub(crate) use operations::WrongJournal;
pub use twist::Twist;

/// A subject that is wrong in one thing.
#[derive(Debug)]
pub struct Wrong {
    twist: Twist,
    declaration: Declaration,
    model: Model,
    /// The world as it was to be.
    world: World,
    /// The rules and the caller's scopes when a question was asked, by its token.
    asked: HashMap<String, (Vec<Rule>, Vec<String>)>,
    /// The tokens that were claimed.
    claimed: HashSet<String>,
    /// The gate that it is in place of the model.
    operations: Option<Operations>,
}

impl Wrong {
    /// A subject that is wrong in this.
    #[must_use]
    pub fn new(twist: Twist) -> Self {
        let model = Model::new();
        let base = if twist.is_of_operations() { "gate" } else { "model" };
        let name = format!("{base}, {}", twist.as_str());
        let operations = twist.is_of_operations().then(|| Operations::new(twist, &name));
        let declaration = match &operations {
            Some(operations) => operations.gate.declaration().clone(),
            None => Declaration { name, ..model.declaration().clone() },
        };
        Self {
            twist,
            declaration,
            model,
            world: World::default(),
            asked: HashMap::new(),
            claimed: HashSet::new(),
            operations,
        }
    }

    fn is(&self, twist: Twist) -> bool {
        self.twist == twist
    }

    fn ticket(&mut self, call: &Call) -> Option<&mut Ticket> {
        let token = call.token.as_ref()?;
        self.model.tickets.iter_mut().find(|ticket| ticket.token == *token)
    }

    fn call(&mut self, call: &Call) -> Result<Seen, SubjectFault> {
        let mut told = call.clone();
        let state = self.ticket(call).map(|ticket| ticket.state);
        let (rules, tools) = (self.model.world.rules.clone(), self.model.world.tools.clone());
        self.before(&mut told);
        let mut seen = self.model.event(&Event::Call(told))?;
        if self.is(Twist::StalePolicy) || self.is(Twist::ApprovedInArguments) {
            (self.model.world.rules, self.model.world.tools) = (rules, tools);
        }
        self.after(call, state, &mut seen);
        if seen.killed {
            self.restart();
        }
        Ok(seen)
    }

    fn restart(&mut self) {
        match self.twist {
            Twist::RestartForgets => {
                let names = self.model.tickets.iter_mut().flat_map(|ticket| [&mut ticket.token, &mut ticket.approval]);
                names.for_each(|name| "forgotten".clone_into(name));
            }
            Twist::RestartRefills => self.model.budgets = Budgets::default(),
            _ => {}
        }
    }

    fn decide(&mut self, decide: &Decide) -> Result<Seen, SubjectFault> {
        let (mut told, twist) = (decide.clone(), self.twist);
        let asked = |ticket: &&mut Ticket| ticket.approval == decide.approval;
        let mut before = None;
        if let Some(ticket) = self.model.tickets.iter_mut().find(asked) {
            before = Some((ticket.caller.clone(), ticket.state));
            match twist {
                Twist::OwnApproval => ticket.caller.principal = Some("somebody else".to_owned()),
                Twist::AnybodyApproves => told.approver.scopes.push(ticket.scope.clone()),
                Twist::TenantsMixed => told.approver.tenant.clone_from(&ticket.caller.tenant),
                Twist::LastDecision if matches!(ticket.state, State::Approved | State::Denied) => {
                    ticket.state = State::Pending;
                }
                _ => {}
            }
        }
        let seen = self.model.event(&Event::Decide(told))?;
        if let (Some(ticket), Some((caller, state))) = (self.model.tickets.iter_mut().find(asked), before) {
            ticket.caller = caller;
            if seen.decided == Some(false) {
                ticket.state = state;
            }
        }
        Ok(seen)
    }

    /// Whether this does not happen to the model.
    fn swallows(&self, event: &Event) -> bool {
        match (self.twist, event) {
            (Twist::PolicyFaultAllows, Event::Fault(Fault { at: Point::Authorize, .. }))
            | (Twist::LimiterFaultOpens, Event::Fault(Fault { at: Point::Charge, .. }))
            | (Twist::LostClaimRuns, Event::Fault(Fault { at: Point::Redeem, how: How::Lost }))
            | (Twist::NoIntent, Event::Fault(Fault { at: Point::Intent, .. })) => true,
            (Twist::AllowWins, Event::Rule(rule)) => {
                let allows = self.model.world.rules.iter().any(|rule| rule.effect == RuleEffect::Allow);
                allows && rule.effect == RuleEffect::Deny
            }
            _ => false,
        }
    }
}

impl Subject for Wrong {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        *self = Self { world: world.clone(), ..Self::new(self.twist) };
        if let Some(operations) = &mut self.operations {
            return operations.gate.begin(world, seed);
        }
        let world = self.twisted();
        self.model.begin(&world, seed)
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        if let Some(operations) = &mut self.operations {
            return operations.event(event);
        }
        match (event, self.twist) {
            (Event::Call(call), _) => return self.call(call),
            (Event::Decide(decide), _) => return self.decide(decide),
            (Event::Batch(batch), _) => {
                let mut all = Seen::default();
                for call in &batch.calls {
                    let one = self.call(call)?;
                    let failed = one.outcome.as_ref().is_some_and(|outcome| !outcome.success);
                    all.outcomes.extend(one.outcome);
                    all.marks.extend(one.marks);
                    all.records.extend(one.records);
                    all.effects = all.effects.saturating_add(one.effects);
                    if failed && self.is(Twist::BatchStops) {
                        break;
                    }
                }
                return Ok(all);
            }
            (Event::Kill(kill), _) if kill.at.is_none() => self.restart(),
            (Event::Define(tool), Twist::ClampLate) => {
                self.world.tools.insert(0, (**tool).clone());
                let tool = before::unclamped(tool);
                return self.model.event(&Event::Define(Box::new(tool)));
            }
            (Event::Rewind(ms), Twist::ClockBackRevives) => self.model.now = self.model.now.saturating_sub(*ms),
            (event, _) if self.swallows(event) => return Ok(Seen::default()),
            _ => {}
        }
        self.model.event(event)
    }
}
