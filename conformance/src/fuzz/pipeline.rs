//! Calls through `Step`, with a host that replies at random.

use std::sync::Arc;
use std::time::Duration;

use callgate_core::args::Args;
use callgate_core::audit::chain::Head;
use callgate_core::audit::{AuditFault, Record};
use callgate_core::call::{Closed, Finished, Lookup, Ran, StoreFault, TurnAway};
use callgate_core::clamp::Clamp;
use callgate_core::code::{Code, Effect};
use callgate_core::confirm::Verdict;
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::intercept::Interception;
use callgate_core::json::{Number, Value};
use callgate_core::limit::{Allowance, Bucket, Quota};
use callgate_core::outcome::Outcome;
use callgate_core::policy::{ChannelTable, PolicyGate};
use callgate_core::request::{Context, Request};
use callgate_core::step::Step;
use callgate_core::time::Clock;
use callgate_core::tool::{ConfirmBy, FieldRule, Tool, ToolSpec, Violation};
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{Capacity, ConfirmationStore, MemoryConfirmations, PendingRequest};
use callgate_std::entropy::SeededEntropy;
use callgate_std::envelope::OwnedEnvelope;
use callgate_std::policy::fault;
use callgate_std::settings::GateSettings;

use super::choices::Choices;

/// How many bytes choose; what follows is texts of arguments.
const CHOICES: usize = 96;
const CALLS: usize = 5;
const CANARY: &str = "C4N4RY-f00d";
const TTL_MS: u64 = 60_000;

type Carried = Box<OwnedEnvelope>;
type Done = Finished<&'static str, &'static str, Arc<str>>;

/// Invariants A2, A5, A9, A10, F1, F4, G5, G7, J1, J2, K1, L2, N4, R4: whatever a host replies, in whatever world, a call comes to its
/// stations in order and ends; it leaves one record, and one intent before its tool can change anything; its tool runs at most once,
/// and only if nobody said no, on the arguments that were confirmed; a ticket runs once, and only if its approver approved; the
/// outcome says whether the tool ran; a secret argument is in neither. The first bytes are the replies, the rest are texts of
/// arguments, split at line breaks.
pub fn step(data: &[u8]) {
    let (choices, texts) = data.split_at_checked(CHOICES).unwrap_or((data, b""));
    let mut world = World::new(Choices::new(choices), texts);
    for nth in 0..CALLS {
        world.between();
        world.call(nth);
    }
}

struct Any(ToolSpec<'static>);

const FIELDS: &[FieldRule<'_>] = &[FieldRule::clamp("/n", Clamp::range(0, 10))];

impl Any {
    fn new(choices: &mut Choices<'_>) -> Self {
        let mut spec = ToolSpec::new("any", "Takes anything");
        spec.mutating = choices.one_in(2);
        spec.fields = FIELDS;
        spec.confirm = match choices.below(3) {
            1 => ConfirmBy::Caller,
            2 => ConfirmBy::Approver { scope: "approve" },
            _ => ConfirmBy::Nobody,
        };
        Self(spec)
    }
}

impl Tool for Any {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.0
    }

    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        if args.get("bad").is_some() {
            report(Violation { field: &"bad", reason: &"must not be there" });
        }
    }
}

/// The principal and the channel of a call.
type Caller = (Option<&'static str>, &'static str);

/// A ticket that was issued.
struct Held {
    token: String,
    ticket: Digest,
    arguments: Vec<u8>,
    caller: Caller,
    approver: bool,
    verdict: Option<Verdict>,
    ran: bool,
}

struct World<'d> {
    choices: Choices<'d>,
    texts: Vec<Vec<u8>>,
    tool: Any,
    store: MemoryConfirmations,
    clock: ManualClock,
    settings: Arc<GateSettings>,
    held: Vec<Held>,
    head: Head,
}

/// What one call came to.
#[derive(Default)]
struct Trace {
    rank: u8,
    refused: bool,
    intents: u32,
    terminals: u32,
    ran: u32,
    caller: Caller,
    /// The ticket that it brings, by its place.
    brings: Option<usize>,
}

impl<'d> World<'d> {
    fn new(mut choices: Choices<'d>, texts: &[u8]) -> Self {
        let tool = Any::new(&mut choices);
        let clock = ManualClock::new();
        let store = MemoryConfirmations::with(Capacity::DEFAULT, clock.shared(), SeededEntropy::shared(5));
        store.attach_approvers(choices.one_in(2));
        let mut all = vec![b"{}".to_vec(), format!("{{\"password\":\"{CANARY}\",\"n\":50}}").into_bytes()];
        all.extend(texts.split(|byte| *byte == b'\n').take(6).map(with_secret));
        let settings = Arc::new(GateSettings::new(DigestKey::new([5; 32])));
        Self { choices, texts: all, tool, store, clock, settings, held: Vec::new(), head: Head::EMPTY }
    }

    /// Time passes, and an approver decides or the caller withdraws.
    fn between(&mut self) {
        if self.choices.one_in(4) {
            self.clock.advance(Duration::from_millis(u64::from(self.choices.byte()) * 500));
        }
        let at = self.choices.below(self.held.len());
        let verdict = match self.choices.below(4) {
            1 => Verdict::Approve,
            2 => Verdict::Deny,
            _ => return,
        };
        let approver = CallContext::web("a", Some("boss"), Scopes::new("approve"));
        if let Some(held) = self.held.get_mut(at) {
            // A2: nobody approves what it asked for itself.
            let own = CallContext::web("a", held.caller.0, Scopes::new("approve"));
            let by_itself = self.store.decide(held.ticket, Verdict::Approve, &own);
            assert!(by_itself.is_err(), "its own");
            if self.store.decide(held.ticket, verdict, &approver).is_ok() {
                assert!(held.approver && held.verdict.is_none() && !held.ran, "decided twice, or for nobody");
                held.verdict = Some(verdict);
            }
        }
    }

    fn call(&mut self, nth: usize) {
        let id = format!("r-{nth}");
        let mut trace = Trace::default();
        let arguments = self.texts.get(self.choices.below(self.texts.len())).cloned().unwrap_or_default();
        let token = match self.choices.below(4) {
            0 => None,
            1 => Some("0123456789abcdef0123456789abcdef".to_owned()),
            _ => {
                let at = self.choices.below(self.held.len());
                trace.brings = (at < self.held.len()).then_some(at);
                self.held.get(at).map(|held| held.token.clone())
            }
        };
        let principal = self.choices.pick(&[Some("u1"), Some("u1"), Some("u1"), Some("u2"), None]).flatten();
        let mut caller = CallContext::web(&id, principal, Scopes::new("read"));
        let channel = self.choices.pick(&["web", "web", "web", "mcp", "zz", "not a name"]).unwrap_or("web");
        caller.channel = channel;
        trace.caller = (principal, channel);
        caller.mode = if self.choices.one_in(8) { Mode::Plan } else { Mode::Execute };
        let planned = caller.mode == Mode::Plan;
        let request = Request { tool: "any", arguments: &arguments, token: token.as_deref() };
        let envelope = OwnedEnvelope::new(&caller, request, Arc::clone(&self.settings), false);
        let mut step: Step<Carried, Any> = Step::start(Box::new(envelope), self.clock.now());
        loop {
            let rank = rank(&step);
            assert!(rank > trace.rank, "{step:?} after a step of rank {}", trace.rank);
            trace.rank = rank;
            step = match step {
                Step::Done(outcome) => return self.done(&outcome, &trace, planned),
                other => self.reply(other, &mut trace),
            };
        }
    }

    fn reply(&mut self, step: Step<Carried, Any>, trace: &mut Trace) -> Step<Carried, Any> {
        let fault = self.choices.one_in(16);
        // Whatever somebody said no to, or did not answer, must not run.
        if !matches!(step, Step::Execute(_) | Step::Close(_) | Step::Settle(_) | Step::Record(_)) {
            trace.refused |= fault;
        }
        match step {
            Step::Find(call) if fault => match self.choices.below(3) {
                0 => call.found(Lookup::Unknown),
                1 => call.found(Lookup::Hidden),
                _ => call.turned_away(TurnAway::Overloaded),
            },
            Step::Find(call) => call.found(Lookup::Found(Any(self.tool.0))),
            Step::Load(loading) if fault => loading.answer(Err(StoreFault)),
            Step::Load(loading) => {
                let found = loading.ticket().map_or(Ok(None), |ticket| self.store.load(ticket));
                loading.answer(found)
            }
            Step::Authorize(call) if fault => call.answer(self::fault()),
            Step::Authorize(call) => {
                // K1: what is judged is clamped.
                let judged = call.args().get("n").and_then(Value::as_number).and_then(Number::as_i64);
                assert!(judged.is_none_or(|n| (0..=10).contains(&n)), "{judged:?}");
                let decision = PolicyGate::new(ChannelTable::DEFAULTS).decide(&call.subject());
                trace.refused |= !decision.is_allowed();
                call.answer(decision)
            }
            Step::Charge(call) if fault => call.answer(Err(StoreFault)),
            Step::Charge(call) => {
                let allowance = match self.choices.below(8) {
                    0 => Allowance::Refused { retry_after_ns: Some(1) },
                    1 => Quota::DEFAULT.charge(Bucket::FRESH, 1, self.clock.now().monotonic),
                    _ => Allowance::Unlimited,
                };
                trace.refused |= !allowance.is_admitted();
                call.answer(Ok(allowance))
            }
            Step::Recall(operating) => Step::Close(operating.unsupported()),
            Step::Claim(operating) => Step::Close(operating.unsupported()),
            Step::Issue(asking) => {
                trace.refused = true;
                let issued =
                    if fault { Err(StoreFault.into()) } else { self.store.issue(&PendingRequest::of(&asking), TTL_MS) };
                if let Ok(issued) = &issued {
                    self.held.push(Held {
                        token: issued.token.to_string(),
                        ticket: issued.token.hash(),
                        arguments: asking.snapshot().to_vec(),
                        caller: trace.caller,
                        approver: asking.approver_scope().is_some(),
                        verdict: None,
                        ran: false,
                    });
                }
                asking.answer(issued)
            }
            Step::Redeem(redeeming) if fault => redeeming.answer(Err(StoreFault)),
            Step::Redeem(redeeming) => {
                let claimed = self.store.claim(redeeming.ticket(), &redeeming.presented());
                trace.refused |= !matches!(claimed, Ok(Ok(_)));
                redeeming.answer(claimed)
            }
            Step::Intercept(call) if fault => call.answer(match self.choices.below(3) {
                0 => Interception::Veto("no".into()),
                1 => Interception::Failed("broke".into()),
                _ => Interception::Answer("cached"),
            }),
            Step::Intercept(call) => call.answer(Interception::Continue),
            Step::Intent(mut call) => {
                let intent = call.intent();
                trace.intents += u32::from(intent.is_some());
                if let Some(intent) = intent {
                    self.record(&intent);
                }
                call.answer(if fault { Err(AuditFault) } else { Ok(()) })
            }
            Step::Execute(call) => self.execute(call, trace),
            Step::Close(ended) => ended.answer(self.clock.now()),
            Step::Settle(closed) => self.settle(closed, fault),
            Step::Record(closed) => {
                trace.terminals += 1;
                self.record(&closed.record());
                closed.recorded(if fault { Err(AuditFault) } else { Ok(()) })
            }
            done @ Step::Done(_) => done,
        }
    }

    fn execute(
        &mut self,
        call: callgate_core::call::Call<Carried, Any, callgate_core::call::Announced>,
        trace: &mut Trace,
    ) -> Step<Carried, Any> {
        assert!(!trace.refused, "somebody said no");
        assert!(!self.tool.0.mutating || trace.intents == 1, "no intent before the effect");
        let asked = self.tool.0.confirm != ConfirmBy::Nobody;
        let ticket = trace.brings.and_then(|at| self.held.get_mut(at));
        assert!(!asked || ticket.is_some(), "nobody confirmed it");
        if let Some(held) = ticket {
            assert!(!held.ran, "a ticket ran twice");
            held.ran = true;
            assert_eq!(trace.caller, held.caller, "somebody else than it was issued to");
            assert_eq!(call.args().sent().trim(), text_of(&held.arguments).trim(), "other arguments than confirmed");
            assert!(!held.approver || held.verdict == Some(Verdict::Approve), "no approver approved");
        }
        let how = self.choices.below(5);
        call.answer(|permit| {
            trace.ran += 1;
            assert!(permit.args().get("bad").is_none(), "what does not fit ran");
            let done: Done = match how {
                0 => Ran::Failed("it broke"),
                1 => Ran::TimedOut,
                2 => Ran::Panicked("it panicked".into()),
                3 => Ran::Cancelled,
                _ => Ran::Done("done"),
            }
            .after(1);
            done
        })
    }

    fn settle(&self, closed: Closed<Carried, Any>, fault: bool) -> Step<Carried, Any> {
        let settlement = closed.settlement();
        if let Some(ticket) = settlement.withdraw {
            let _ = self.store.withdraw(ticket);
        }
        if let Some(finish) = settlement.finish {
            let _ = self.store.finish(&finish);
        }
        let attempts = settlement.attempt.map(|_| match fault {
            true => Err(StoreFault),
            false => Ok(Allowance::Unlimited),
        });
        closed.settled(attempts)
    }

    /// J9, L2: a record is one line of JSON that follows the one before, and holds neither a secret nor a token.
    fn record(&mut self, record: &Record<'_>) {
        let mut line = String::new();
        let head = self.head.append(record, &mut line).expect("a string takes all");
        assert_eq!(self.head.verify(&line), Ok(head));
        self.head = head;
        assert!(!line.contains('\n'));
        let read: serde_json::Value = serde_json::from_str(&line).expect("a record is JSON");
        assert_eq!(read.get("kind").and_then(serde_json::Value::as_str), Some(record.kind.as_str()));
        assert!(!line.contains(CANARY), "{line}");
        assert!(self.held.iter().all(|held| !line.contains(&held.token)), "{line}");
    }

    fn done(&self, outcome: &Outcome<Carried, Any>, trace: &Trace, planned: bool) {
        let json = outcome.to_json().expect("it can be written");
        let read: serde_json::Value = serde_json::from_str(&json).expect("an outcome is JSON");
        assert!(!json.contains(CANARY), "{json}");
        assert_eq!(trace.terminals, 1, "{json}");
        assert!(trace.ran <= 1);
        assert!(!planned || trace.ran + trace.intents == 0, "a plan ran");
        assert_eq!(trace.ran == 0, outcome.effect() == Effect::None, "{json}");
        assert_eq!(read.get("success").and_then(serde_json::Value::as_bool), Some(outcome.success()));
        let code = read.pointer("/meta/code").and_then(serde_json::Value::as_str);
        assert_eq!(code, outcome.code().map(Code::as_str), "{json}");
        assert_eq!(code.is_none(), outcome.success());
    }
}

/// The text with a secret as its first member, if it is an object.
fn with_secret(text: &[u8]) -> Vec<u8> {
    let Some(rest) = text.trim_ascii_start().strip_prefix(b"{") else { return text.to_vec() };
    let comma: &[u8] = if rest.trim_ascii_start().starts_with(b"}") { b"" } else { b"," };
    [format!("{{\"password\":\"{CANARY}\"").as_bytes(), comma, rest].concat()
}

/// The text that stands for some bytes of arguments: blank ones stand for `{}`.
fn text_of(arguments: &[u8]) -> &str {
    match str::from_utf8(arguments).map(str::trim) {
        Ok("") | Err(_) => "{}",
        Ok(text) => text,
    }
}

/// Where a step stands in the order of the gate (invariant G5).
const fn rank<C: Context, T: Tool>(step: &Step<C, T>) -> u8 {
    match step {
        Step::Find(_) => 1,
        Step::Load(_) => 2,
        Step::Authorize(_) => 3,
        Step::Charge(_) => 4,
        Step::Recall(_) | Step::Issue(_) | Step::Redeem(_) => 5,
        Step::Intercept(_) => 6,
        Step::Claim(_) | Step::Intent(_) => 7,
        Step::Execute(_) => 8,
        Step::Close(_) => 9,
        Step::Settle(_) => 10,
        Step::Record(_) => 11,
        Step::Done(_) => 12,
    }
}
