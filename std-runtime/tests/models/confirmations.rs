//! The store of confirmations in memory: what threads get is what they could have got one after the other (invariant N2).

use std::cell::RefCell;
use std::time::Duration;

use callgate_core::confirm::{Presented, Ticket, call_digest, caller_digest, principal_digest};
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use callgate_std::clock::{ManualClock, SharedClock};
use callgate_std::confirmations::{
    Binding, By, Capacity, ConfirmationStore, DecideFault, IssueFault, MemoryConfirmations, PendingRequest, Refusal,
    Verdict,
};
use callgate_std::entropy::SeededEntropy;

use crate::explore::{self, Answers, Difference, Orders, World};
use crate::faulty_confirmations::{ASKED, Fault, FaultyConfirmations};
use crate::still::{START, clock};

const TTL: u64 = 1_000;
const ALICE: CallContext<'static> = CallContext::new("web", "r1").with_principal("alice");
const BOB: CallContext<'static> =
    CallContext::new("web", "r2").with_principal("bob").with_scopes(Scopes::new("approve"));

/// What a thread does with the one ticket of a model.
#[derive(Clone, Copy)]
enum Act {
    Load,
    Claim,
    /// Claims for other arguments.
    Misuse,
    Withdraw,
    Approve,
    Deny,
    /// Asks what could be decided.
    Look,
    /// Asks for another ticket, for which there is room only when the first one is forgotten.
    Issue,
    /// The ticket's time passes.
    Pass,
}
use Act::{Approve, Claim, Deny, Issue, Load, Look, Misuse, Pass, Withdraw};

type Threads = explore::Threads<Act>;

fn binding(number: u8) -> Binding {
    let tool = Digest::of_bytes(b"tool");
    let (caller, principal) = (caller_digest(&ALICE), principal_digest(&ALICE));
    Binding { tool, arguments: Digest::of_bytes(&[number]), caller, principal }
}

fn presented(number: u8) -> Presented {
    Presented { binding: binding(number), call: call_digest("r1"), lease_ms: TTL }
}

fn request(by: By) -> PendingRequest<'static> {
    PendingRequest {
        binding: binding(1),
        by,
        approvals: 1,
        approver_scope: (by == By::Approver).then_some("approve"),
        caller: ALICE,
        tool: "fs.write",
        arguments: b"{}",
        summary: String::new(),
    }
}

/// A store, its clock where that moves, and the ticket that it was given.
struct Bench {
    store: Box<dyn ConfirmationStore>,
    clock: Option<ManualClock>,
    by: By,
    ticket: Digest,
}

type Make = fn(SharedClock, By) -> (Box<dyn ConfirmationStore>, Digest);

fn memory(clock: SharedClock, by: By) -> (Box<dyn ConfirmationStore>, Digest) {
    let capacity = Capacity { entries: 1, ..Capacity::DEFAULT };
    let store = MemoryConfirmations::with(capacity, clock, SeededEntropy::shared(7));
    store.attach_approvers(true);
    let ticket = store.issue(&request(by), TTL).expect("there is room").token.hash();
    (Box::new(store), ticket)
}

fn faulty(clock: SharedClock, by: By, fault: Fault) -> (Box<dyn ConfirmationStore>, Digest) {
    let ticket = Ticket::issue(binding(1), by, START.wall, TTL);
    (Box::new(FaultyConfirmations::new(fault, ticket, clock)), FaultyConfirmations::id())
}

impl Bench {
    fn new(by: By, threads: Threads, make: Make) -> Self {
        let moves = threads.iter().any(|acts| acts.iter().any(|act| matches!(act, Pass)));
        let (shared, clock) = clock(moves);
        let (store, ticket) = make(shared, by);
        Self { store, clock, by, ticket }
    }
}

impl World for Bench {
    type Act = Act;
    type Hand = ();

    fn act(&self, (): &mut (), act: Act) -> String {
        let Self { store, clock, by, ticket } = self;
        match act {
            Load => format!("{:?}", store.load(*ticket).expect("memory answers").map(|loaded| loaded.usable)),
            Claim => format!("{:?}", store.claim(*ticket, &presented(1)).expect("memory answers")),
            Misuse => format!("{:?}", store.claim(*ticket, &presented(2)).expect("memory answers")),
            Withdraw => format!("{:?}", store.withdraw(*ticket)),
            Approve => format!("{:?}", store.decide(*ticket, Verdict::Approve, &BOB)),
            Deny => format!("{:?}", store.decide(*ticket, Verdict::Deny, &BOB)),
            Look => format!("{}", store.pending(&BOB, 9).expect("memory answers").len()),
            Issue => format!("{:?}", store.issue(&request(*by), TTL).map(|_| ())),
            Pass => {
                clock.as_ref().expect("it moves").advance(Duration::from_millis(TTL));
                String::new()
            }
        }
    }

    fn end(&self) -> String {
        self.act(&mut (), Load)
    }
}

/// The same by core's rules alone, one act after the other.
struct Rules(RefCell<Shelf>);

struct Shelf {
    ticket: Option<Ticket>,
    /// Whether there is a second ticket in the place of the first.
    full: bool,
    now: Timestamp,
}

impl Rules {
    fn new(by: By) -> Self {
        let ticket = Some(Ticket::issue(binding(1), by, START.wall, TTL));
        Self(RefCell::new(Shelf { ticket, full: true, now: START.wall }))
    }
}

impl World for Rules {
    type Act = Act;
    type Hand = ();

    fn act(&self, (): &mut (), act: Act) -> String {
        let Shelf { ticket, full, now } = &mut *self.0.borrow_mut();
        let by = ticket.map_or(By::Caller, |ticket| ticket.by);
        let mut claim = |number| {
            let claimed =
                ticket.as_mut().map_or(Err(Refusal::Unknown), |ticket| ticket.claim(&presented(number), *now));
            format!("{:?}", claimed.map(|()| by))
        };
        match act {
            Claim => claim(1),
            Misuse => claim(2),
            Load => format!("{:?}", ticket.map(|ticket| ticket.usable(*now))),
            Withdraw => {
                if let Some(ticket) = ticket {
                    ticket.cancel();
                }
                "Ok(())".to_owned()
            }
            Approve | Deny => {
                let verdict = if matches!(act, Approve) { Verdict::Approve } else { Verdict::Deny };
                let decided = ticket.as_mut().map_or(Err(DecideFault::Unknown), |ticket| {
                    ticket.decide(verdict, &BOB, &ASKED, *now).map_err(DecideFault::from)
                });
                format!("{decided:?}")
            }
            Look => {
                let open = |mut ticket: Ticket| ticket.decide(Verdict::Deny, &BOB, &ASKED, *now).is_ok();
                format!("{}", usize::from(ticket.is_some_and(open)))
            }
            Issue => {
                // What was claimed is kept until it is known what became of it (invariant J5).
                let forgettable = ticket.is_some_and(|ticket| ticket.is_forgettable(*now));
                if forgettable {
                    (*ticket, *full) = (None, true);
                }
                let issued = if forgettable || !*full { Ok(()) } else { Err(IssueFault::Full) };
                format!("{issued:?}")
            }
            Pass => {
                *now = now.saturating_add_millis(TTL);
                String::new()
            }
        }
    }
    fn end(&self) -> String {
        self.act(&mut (), Load)
    }
}

fn compare(by: By, threads: Threads, make: Make) -> Difference {
    explore::compare(Orders::All, threads, || Rules::new(by), move || Bench::new(by, threads, make))
}

/// The store in memory follows the rules, in whatever order the threads come.
fn holds(by: By, threads: Threads) {
    compare(by, threads, memory).none();
}

/// A store with this fault is found out, by answers that `break_the_rule`; without it the same store passes.
fn notices(by: By, threads: Threads, make: Make, break_the_rule: fn(&Answers) -> bool) {
    compare(by, threads, |clock, by| faulty(clock, by, Fault::None)).none();
    compare(by, threads, make).shows(break_the_rule);
}

fn claims(answers: &Answers) -> usize {
    answers.iter().flatten().filter(|answer| *answer == "Ok(Caller)" || *answer == "Ok(Approver)").count()
}

const SWEEP: Threads = &[&[Claim, Claim], &[Issue]];
const TIME: Threads = &[&[Claim], &[Pass, Load]];

#[test]
fn a5_at_most_one_claim() {
    holds(By::Caller, &[&[Claim], &[Claim], &[Claim]]);
    holds(By::Caller, &[&[Claim, Load], &[Load, Claim]]);
}

#[test]
fn a5_a_claim_that_looks_and_then_acts_is_noticed() {
    let twice = |answers: &Answers| claims(answers) > 1;
    notices(By::Caller, &[&[Claim], &[Claim]], |clock, by| faulty(clock, by, Fault::ChecksThenClaims), twice);
}

#[test]
fn a6_a_mismatch_burns_before_or_after_a_claim() {
    holds(By::Caller, &[&[Misuse], &[Claim], &[Claim]]);
}

#[test]
fn a5_withdrawing_comes_before_a_claim_or_not_at_all() {
    holds(By::Caller, &[&[Claim], &[Withdraw, Claim], &[Load]]);
    holds(By::Approver, &[&[Approve, Claim], &[Withdraw], &[Load]]);
}

#[test]
fn a5_a_withdrawal_that_writes_what_it_read_is_noticed() {
    let undone = |answers: &Answers| answers[0] == ["Ok(Caller)", "Some(Err(Cancelled))"];
    let threads: Threads = &[&[Claim, Load], &[Withdraw]];
    notices(By::Caller, threads, |clock, by| faulty(clock, by, Fault::WithdrawsFromACopy), undone);
}

#[test]
fn a9_the_first_decision_wins() {
    holds(By::Approver, &[&[Approve], &[Deny], &[Claim, Claim]]);
    holds(By::Approver, &[&[Approve], &[Deny], &[Look, Claim]]);
}

#[test]
fn a9_a_decision_that_reads_and_then_writes_is_noticed() {
    let both = |answers: &Answers| answers[0] == ["Ok(Approved)"] && answers[1] == ["Ok(Denied)"];
    notices(By::Approver, &[&[Approve], &[Deny]], |clock, by| faulty(clock, by, Fault::DecidesOnACopy), both);
    let executed = |answers: &Answers| answers[1] == ["Ok(Denied)"] && claims(answers) > 0;
    let threads: Threads = &[&[Approve], &[Deny], &[Claim]];
    notices(By::Approver, threads, |clock, by| faulty(clock, by, Fault::DecidesOnACopy), executed);
}

#[test]
fn c3_room_is_never_made_of_what_is_alive() {
    holds(By::Caller, SWEEP);
    holds(By::Caller, &[&[Claim, Claim], &[Pass, Issue]]);
    holds(By::Caller, &[&[Claim], &[Pass], &[Issue]]);
}

#[test]
fn c3_a_store_that_forgets_what_is_claimed_is_noticed() {
    let forgotten = |answers: &Answers| answers[0] == ["Ok(Caller)", "Err(Unknown)"];
    notices(By::Caller, SWEEP, |clock, by| faulty(clock, by, Fault::ForgetsWhatIsClaimed), forgotten);
}

#[test]
fn c2_what_was_seen_to_expire_is_not_claimed_by_a_thread_that_read_the_clock_before() {
    holds(By::Caller, TIME);
    holds(By::Approver, &[&[Approve, Claim], &[Pass, Deny]]);
}

#[test]
fn c2_a_store_that_believes_a_late_thread_is_noticed() {
    let revived = |answers: &Answers| answers[0] == ["Ok(Caller)"] && answers[1][1] == "Some(Err(Expired))";
    notices(By::Caller, TIME, |clock, by| faulty(clock, by, Fault::BelievesALateThread), revived);
}
