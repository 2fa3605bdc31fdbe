//! Statements of the invariants, checked on what a subject shows: no other subject has a say.
//!
//! | rule | what is checked of every event | where |
//! |---|---|---|
//! | A1 | a token that runs something was given out before | [`Book::of_token`] |
//! | A2, F3 | what an approver is asked about runs only after a yes that was taken | [`Book::of_token`] |
//! | A3 | a call without a token does not run a tool that asks | [`Book::of_call`] |
//! | A5 | a token runs something once at most | [`Book::of_token`] |
//! | A6 | a token runs nothing for another caller or another tool | [`Book::of_token`] |
//! | A9 | one decision is taken for each question, and after a no nothing runs | [`Book::of_decision`], [`Book::of_token`] |
//! | A10 | nothing runs when the time of its token is over | [`Book::of_token`] |
//! | E1, E2 | what is vetoed or answered does not run | [`of_outcome`], [`Book::of_call`] |
//! | E3 | where an interceptor fails, breaks or is late, nothing runs | [`Book::of_call`] |
//! | E5 | nobody is asked to intercept before the policy, the limiter and the store were | [`of_order`] |
//! | F1 | where something went wrong before the body, the body does not start | [`Book::of_faults`] |
//! | F4 | what a call did is told as its code says | [`of_outcome`] |
//! | G1 | so many bodies are started as starts are seen | [`of_order`] |
//! | G5 | the points come in their order, none twice but interceptors | [`of_order`] |
//! | G7 | after a refusal there is nothing but the record | [`of_outcome`] |
//! | J1 | one terminal record, the last point of all | [`of_records`] |
//! | J2 | the intent of a mutating call stands before its start | [`of_records`] |
//! | R1 | a batch has so many outcomes as calls | [`Book::broken`] |
//! | R2 | what was let through fits into the budget and what came back to it | [`Book::of_budget`] |
//! | R4 | a plan does nothing | [`of_outcome`] |
//! | R7 | a redemption is not charged | [`of_outcome`] |

use std::collections::HashMap;

use callgate_conformance::event::{Call, Decide, Event, Fault, Mode, Outcome, Point, Seen, Verdict};
use callgate_conformance::world::{Caller, Channel, Confirm, Interceptor, Saying, Tool, World};

/// A rule that does not hold, and how.
pub(crate) type Broken = (&'static str, String);

/// What a token was given out for.
#[derive(Debug)]
struct Asked {
    caller: Caller,
    tool: String,
    approval: Option<String>,
    at_least: u64,
    runs: u32,
}

/// What happened in a script so far.
#[derive(Debug)]
pub(crate) struct Book {
    world: World,
    /// No more time has passed than `at_most`, and no less than `at_least`, in milliseconds.
    at_least: u64,
    at_most: u64,
    asked: HashMap<String, Asked>,
    taken: HashMap<String, Verdict>,
    faults: Vec<Fault>,
    /// By tenant, principal, channel and tool.
    spent: HashMap<String, u64>,
}

impl Book {
    pub(crate) fn new(world: &World) -> Self {
        let (asked, taken, spent) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { world: world.clone(), at_least: 0, at_most: 0, asked, taken, faults: Vec::new(), spent }
    }

    /// The rules that this event breaks.
    pub(crate) fn broken(&mut self, event: &Event, seen: &Seen) -> Vec<Broken> {
        let mut found = Vec::new();
        match event {
            Event::Call(call) => self.of_call(call, seen, &mut found),
            Event::Batch(batch) => {
                if batch.calls.len() != seen.outcomes.len() {
                    found.push(("R1", format!("{} outcomes of {} calls", seen.outcomes.len(), batch.calls.len())));
                }
                for (call, outcome) in batch.calls.iter().zip(&seen.outcomes) {
                    let ran = u32::from(outcome.meta_text("effect") != Some("none"));
                    self.of_token(call, outcome, ran, &mut found);
                    self.of_budget(call, ran, &mut found);
                    self.at_most += 2_000;
                    self.keeps(call, outcome);
                }
                let records = seen.marks.iter().filter(|mark| mark.at == Point::Record).count();
                if records != batch.calls.len() {
                    found.push(("J1", format!("{records} records of {} calls", batch.calls.len())));
                }
                self.of_faults(seen, &mut found);
            }
            Event::Decide(decide) => self.of_decision(decide, seen, &mut found),
            Event::Advance(ms) => (self.at_least, self.at_most) = (self.at_least + ms, self.at_most + ms),
            Event::Fault(fault) => self.faults.push(*fault),
            Event::Define(tool) => {
                self.world.tools.retain(|old| old.name != tool.name);
                self.world.tools.push((**tool).clone());
            }
            _ => {}
        }
        found
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        self.world.tools.iter().find(|tool| tool.name == name)
    }

    fn of_call(&mut self, call: &Call, seen: &Seen, found: &mut Vec<Broken>) {
        let mutating = self.tool(&call.tool).is_some_and(|tool| tool.mutating);
        of_order(seen, found);
        of_records(mutating, seen, found);
        self.of_faults(seen, found);
        if let Some(outcome) = &seen.outcome {
            of_outcome(call, outcome, seen, found);
            self.of_token(call, outcome, seen.effects, found);
            self.keeps(call, outcome);
        }
        self.of_budget(call, seen.effects, found);
        let channel = self.world.channels.iter().find(|channel| channel.name == call.caller.channel).cloned();
        let channel = channel.unwrap_or_else(Channel::unknown);
        let asks = self
            .tool(&call.tool)
            .is_some_and(|tool| tool.confirm != Confirm::Nobody || channel.confirm_mutating && tool.mutating);
        let speaks = |one: &&Interceptor| {
            one.says != Saying::Continue && one.tool.as_ref().is_none_or(|about| *about == call.tool)
        };
        if let (Some(one), true) = (self.world.interceptors.iter().find(speaks), seen.effects > 0) {
            let rule = if matches!(one.says, Saying::Veto | Saying::Answer(_)) { "E1" } else { "E3" };
            found.push((rule, format!("{} said {:?}, and {} ran", one.name, one.says, call.id)));
        }
        if asks && call.token.is_none() && seen.effects > 0 {
            found.push(("A3", format!("{} ran without a token", call.id)));
        }
        self.at_most += 2_000;
    }

    /// Keeps what a call was given.
    fn keeps(&mut self, call: &Call, outcome: &Outcome) {
        if let Some(token) = outcome.data_text("confirm_token") {
            let approval = outcome.data_text("approval_id").map(str::to_owned);
            let (caller, tool, at_least) = (call.caller.clone(), call.tool.clone(), self.at_least);
            self.asked.insert(token.to_owned(), Asked { caller, tool, approval, at_least, runs: 0 });
        }
    }

    fn of_token(&mut self, call: &Call, outcome: &Outcome, ran: u32, found: &mut Vec<Broken>) {
        let (Some(token), true) = (&call.token, ran > 0) else { return };
        let id = &call.id;
        let Some(asked) = self.asked.get_mut(token) else {
            found.push(("A1", format!("{id} ran by a token that nobody was given: {outcome:?}")));
            return;
        };
        asked.runs += ran;
        if asked.runs > 1 {
            found.push(("A5", format!("{id} is run {} of one token", asked.runs)));
        }
        let same = |one: &Caller, other: &Caller| {
            (&one.tenant, &one.principal, &one.channel, &one.session)
                == (&other.tenant, &other.principal, &other.channel, &other.session)
        };
        if !same(&asked.caller, &call.caller) || asked.tool != call.tool {
            found.push(("A6", format!("{id} ran by a token that was given for something else")));
        }
        if self.at_least - asked.at_least >= self.world.ttl_ms() {
            found.push(("A10", format!("{id} ran when the time of its token was over")));
        }
        match asked.approval.as_ref().map(|approval| self.taken.get(approval)) {
            None | Some(Some(Verdict::Approve)) => {}
            Some(Some(Verdict::Deny)) => found.push(("A9", format!("{id} ran after a no"))),
            Some(None) => found.push(("A2", format!("{id} ran, and nobody had said yes"))),
        }
    }

    fn of_decision(&mut self, decide: &Decide, seen: &Seen, found: &mut Vec<Broken>) {
        if seen.decided == Some(true) && self.taken.insert(decide.approval.clone(), decide.verdict).is_some() {
            found.push(("A9", format!("{} was decided twice", decide.approval)));
        }
        let asked = self.asked.values().find(|asked| asked.approval.as_ref() == Some(&decide.approval));
        let own = asked.is_some_and(|asked| asked.caller.principal == decide.approver.principal);
        if seen.decided == Some(true) && own {
            found.push(("A2", format!("{} was decided by whoever asked", decide.approval)));
        }
    }

    fn of_faults(&mut self, seen: &Seen, found: &mut Vec<Broken>) {
        // A gate that is killed at a point leaves what is planted there to the next one.
        let last = seen.marks.len().saturating_sub(usize::from(seen.killed));
        for mark in seen.marks.iter().take(last) {
            let Some(due) = self.faults.iter().position(|fault| fault.at == mark.at) else { continue };
            self.faults.remove(due);
            if mark.at != Point::Record && seen.effects > 0 && seen.outcomes.is_empty() {
                found.push(("F1", format!("something went wrong at {}, and the body started", mark.at)));
            }
        }
    }

    fn of_budget(&mut self, call: &Call, ran: u32, found: &mut Vec<Broken>) {
        let Some(quota) = self.world.quota.filter(|_| call.token.is_none() && ran > 0) else { return };
        let cost = if self.tool(&call.tool).is_some_and(|tool| tool.mutating) { 5 } else { 1 };
        let Caller { tenant, principal, channel, .. } = &call.caller;
        let spent = self.spent.entry(format!("{tenant:?} {principal:?} {channel:?} {}", call.tool)).or_default();
        *spent += cost;
        let back = self.at_most.div_ceil(quota.window_ms / u64::from(quota.limit));
        if *spent > u64::from(quota.limit) + back {
            found.push(("R2", format!("{spent} were spent of {} and {back} that came back", quota.limit)));
        }
    }
}

const ORDER: [Point; 8] = [
    Point::Authorize,
    Point::Charge,
    Point::Issue,
    Point::Redeem,
    Point::Intercept,
    Point::Intent,
    Point::Execute,
    Point::Record,
];

fn of_order(seen: &Seen, found: &mut Vec<Broken>) {
    let points: Vec<Point> = seen.marks.iter().map(|mark| mark.at).collect();
    let place = |point: &Point| ORDER.iter().position(|one| one == point).unwrap();
    let told = || points.iter().map(ToString::to_string).collect::<Vec<_>>().join(" > ");
    if points.windows(2).any(|two| place(&two[0]) > place(&two[1]) || two[0] == two[1] && two[0] != Point::Intercept) {
        let first = points.iter().position(|point| *point == Point::Intercept).unwrap_or(points.len());
        let early = points.iter().skip(first).any(|point| place(point) < place(&Point::Intercept));
        found.push((if early { "E5" } else { "G5" }, told()));
    }
    let starts = points.iter().filter(|point| **point == Point::Execute).count();
    // A body before which the gate was killed was not started.
    if starts != seen.effects as usize && !seen.killed {
        found.push(("G1", format!("{} bodies in {}", seen.effects, told())));
    }
}

fn of_outcome(call: &Call, outcome: &Outcome, seen: &Seen, found: &mut Vec<Broken>) {
    let code = outcome.meta_text("code");
    let effect = outcome.meta_text("effect");
    let passes = |points: &[Point]| seen.marks.iter().all(|mark| points.contains(&mark.at));
    let answered = outcome.meta.get("cache_served").is_some_and(|served| !served.is_null());
    if (code == Some("VETOED") || answered) && seen.effects > 0 {
        found.push(("E1", format!("{code:?}, and {} bodies started", seen.effects)));
    }
    let ends = match code {
        Some("TIMEOUT" | "INTERNAL_ERROR") => effect == Some("unknown") && seen.effects == 1,
        // `OUTPUT_INVALID` is that of a result, or that of an interceptor's answer.
        None | Some("OUTPUT_INVALID") => effect == Some(if seen.effects > 0 { "done" } else { "none" }),
        Some(_) => effect == Some("none") && seen.effects == 0,
    };
    if !ends {
        found.push(("F4", format!("{code:?} with effect {effect:?} and {} bodies", seen.effects)));
    }
    let refused = matches!(code, Some("FORBIDDEN")) && !passes(&[Point::Authorize, Point::Record]);
    if refused || matches!(code, Some("VALIDATION_ERROR" | "TOOL_NOT_FOUND")) && !passes(&[Point::Record]) {
        found.push(("G7", format!("{code:?}, and then {:?}", seen.marks)));
    }
    if call.mode == Mode::Plan && (!passes(&[Point::Authorize, Point::Record]) || seen.effects > 0) {
        found.push(("R4", format!("a plan that comes to {:?}", seen.marks)));
    }
    if call.token.is_some() && seen.marks.iter().any(|mark| mark.at == Point::Charge) {
        found.push(("R7", format!("a redemption that is charged: {:?}", seen.marks)));
    }
}

fn of_records(mutating: bool, seen: &Seen, found: &mut Vec<Broken>) {
    let kind = |kind: &str| seen.records.iter().filter(|record| record["kind"] == kind).count();
    let (intents, terminals) = (kind("intent"), kind("terminal"));
    let ends = seen.marks.iter().filter(|mark| mark.at == Point::Record).count();
    let pending = seen.outcome.as_ref().and_then(|outcome| outcome.meta.get("audit_pending"));
    let pending = pending.is_some_and(|pending| *pending == true);
    if seen.killed {
        if terminals > 1 {
            found.push(("J1", format!("{terminals} terminal records")));
        }
        return;
    }
    if ends != 1 || seen.marks.last().map(|mark| mark.at) != Some(Point::Record) {
        found.push(("J1", format!("{ends} ends in {:?}", seen.marks)));
    }
    if !pending && terminals != 1 || terminals > 1 {
        found.push(("J1", format!("{terminals} terminal records, pending: {pending}")));
    }
    let starts = seen.marks.iter().position(|mark| mark.at == Point::Execute);
    let announced = seen.marks.iter().position(|mark| mark.at == Point::Intent);
    if let (Some(starts), true) = (starts, mutating)
        && (announced.is_none_or(|announced| announced > starts) || intents != 1)
    {
        found.push(("J2", format!("{intents} intents in {:?}", seen.marks)));
    }
}
