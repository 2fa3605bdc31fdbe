//! The limiter in memory: never more than the quota, whoever comes between (invariant R2).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use callgate_core::context::CallContext;
use callgate_core::limit::Bucket;
use callgate_core::time::Instant;
use callgate_std::clock::{ManualClock, SharedClock};
use callgate_std::limiter::{
    Allowance, Charge, ChargeMode, LimitKey, MemoryLimiter, Quota, RateLimiter, Receipt, Refund,
};

use crate::explore::Orders::{All, Interrupted};
use crate::explore::{self, Answers, Orders, World};
use crate::faulty_limiter::{Fault, FaultyLimiter};
use crate::still::{START, clock};

const BURST: u32 = 2;
/// Two units in a minute, both at once if need be: one is paid back in [`UNIT`].
pub(crate) const QUOTA: Quota = match Quota::per_window(BURST, 60_000) {
    Ok(quota) => quota,
    Err(_) => Quota::DEFAULT,
};
const UNIT: Duration = Duration::from_secs(30);

/// Whose budget: of the calls of a tool, or the attempts of their caller.
type Whose = Option<&'static str>;

const A: Whose = Some("a");
const B: Whose = Some("b");
const C: Whose = Some("c");
const ATTEMPTS: Whose = None;

fn key(whose: Whose) -> LimitKey<'static> {
    let caller = CallContext::new("web", "r").with_principal("p");
    whose.map_or_else(|| LimitKey::of_attempts(&caller), |tool| LimitKey::of_call(&caller, tool))
}

/// What a thread does with a limiter.
#[derive(Clone, Copy)]
enum Act {
    /// Charges so many units.
    Take(Whose, u32),
    /// Asks whether so many units could be charged.
    Probe(Whose, u32),
    /// Gives so many units of the thread's latest charge back.
    Refund(u32),
    /// Counts a call that was refused.
    Attempt,
    /// Gives a fresh budget.
    Reset(Whose),
    /// So many units are paid back.
    Pass(u32),
}
use Act::{Attempt, Pass, Probe, Refund as GiveBack, Reset, Take};

type Threads = explore::Threads<Act>;

/// A limiter, and its clock where that moves.
struct Bench<L> {
    limiter: L,
    clock: Option<ManualClock>,
}

impl<L> Bench<L> {
    fn new(threads: Threads, make: impl Fn(SharedClock) -> L) -> Self {
        let moves = threads.iter().any(|acts| acts.iter().any(|act| matches!(act, Pass(_))));
        let (shared, clock) = clock(moves);
        Self { limiter: make(shared), clock }
    }
}

fn memory(max_keys: usize) -> impl Fn(SharedClock) -> MemoryLimiter {
    move |clock| MemoryLimiter::with(|_| QUOTA, clock, max_keys)
}

/// What of a limiter is no step of a call.
pub(crate) trait Owner: RateLimiter + 'static {
    fn reset(&self, key: &LimitKey<'_>);
    fn usage(&self, key: &LimitKey<'_>) -> u32;
    fn len(&self) -> usize;
}

impl Owner for MemoryLimiter {
    fn reset(&self, key: &LimitKey<'_>) {
        Self::reset(self, key);
    }

    fn usage(&self, key: &LimitKey<'_>) -> u32 {
        Self::usage(self, key)
    }

    fn len(&self) -> usize {
        Self::len(self)
    }
}

impl<L: Owner> World for Bench<L> {
    type Act = Act;
    type Hand = Option<(Whose, Receipt)>;

    fn act(&self, hand: &mut Self::Hand, act: Act) -> String {
        let charge = |whose, cost, mode| self.limiter.charge(&Charge { key: key(whose), cost, mode });
        match act {
            Take(whose, cost) => {
                let allowance = charge(whose, cost, ChargeMode::Take).expect("memory answers");
                if let Allowance::Granted { receipt, .. } = &allowance {
                    *hand = Some((whose, *receipt));
                }
                format!("{allowance:?}")
            }
            Probe(whose, cost) => format!("{:?}", charge(whose, cost, ChargeMode::Probe).expect("memory answers")),
            Attempt => format!("{:?}", self.limiter.attempt(&key(ATTEMPTS)).expect("memory answers")),
            GiveBack(units) => {
                if let Some((whose, receipt)) = hand.take() {
                    self.limiter.refund(&Refund { key: key(whose), receipt, units }).expect("memory answers");
                }
                String::new()
            }
            Reset(whose) => {
                self.limiter.reset(&key(whose));
                String::new()
            }
            Pass(units) => {
                self.clock.as_ref().expect("it moves").advance(UNIT * units);
                String::new()
            }
        }
    }

    fn end(&self) -> String {
        let usage = [A, B, C, ATTEMPTS].map(|whose| self.limiter.usage(&key(whose)));
        format!("{} kept, {usage:?} spent", self.limiter.len())
    }
}

/// The same by core's rules alone, with room for every key.
#[derive(Default)]
struct Rules {
    buckets: RefCell<BTreeMap<Whose, Bucket>>,
    passed: Cell<u32>,
}

impl Rules {
    fn now(&self) -> Instant {
        let passed = UNIT * self.passed.get();
        START.monotonic.saturating_add_nanos(u64::try_from(passed.as_nanos()).expect("a model is short"))
    }

    fn take(&self, whose: Whose, cost: u32) -> Allowance {
        let mut buckets = self.buckets.borrow_mut();
        let allowance = QUOTA.charge(buckets.get(&whose).copied().unwrap_or_default(), cost, self.now());
        if let Allowance::Granted { bucket, .. } = &allowance {
            buckets.insert(whose, *bucket);
        }
        allowance
    }
}

impl World for Rules {
    type Act = Act;
    type Hand = Option<(Whose, Receipt)>;

    fn act(&self, hand: &mut Self::Hand, act: Act) -> String {
        match act {
            Take(whose, cost) => {
                let allowance = self.take(whose, cost);
                if let Allowance::Granted { receipt, .. } = &allowance {
                    *hand = Some((whose, *receipt));
                }
                format!("{allowance:?}")
            }
            Probe(whose, cost) => {
                let bucket = self.buckets.borrow().get(&whose).copied().unwrap_or_default();
                format!("{:?}", QUOTA.peek(bucket, cost, self.now()))
            }
            Attempt => format!("{:?}", self.take(ATTEMPTS, 1)),
            GiveBack(units) => {
                if let Some((whose, receipt)) = hand.take()
                    && let Some(bucket) = self.buckets.borrow_mut().get_mut(&whose)
                {
                    *bucket = QUOTA.refund(*bucket, receipt, units, self.now());
                }
                String::new()
            }
            Reset(whose) => {
                self.buckets.borrow_mut().remove(&whose);
                String::new()
            }
            Pass(units) => {
                self.passed.set(self.passed.get() + units);
                String::new()
            }
        }
    }

    fn end(&self) -> String {
        let buckets = self.buckets.borrow();
        let usage = [A, B, C, ATTEMPTS].map(|whose| {
            let bucket = buckets.get(&whose).copied().unwrap_or_default();
            BURST - QUOTA.remaining(bucket, self.now())
        });
        format!("{} kept, {usage:?} spent", buckets.len())
    }
}

fn compare<L: Owner>(
    orders: Orders,
    threads: Threads,
    make: impl Fn(SharedClock) -> L + Send + Sync + 'static,
) -> explore::Difference {
    explore::compare(orders, threads, Rules::default, move || Bench::new(threads, &make))
}

/// The limiter in memory follows the rules, in whatever order the threads come.
fn holds(orders: Orders, threads: Threads) {
    compare(orders, threads, memory(9)).none();
}

/// A limiter with this fault is found out; without it the same limiter passes.
fn notices(threads: Threads, make: fn(SharedClock) -> FaultyLimiter, break_the_rule: fn(&Answers) -> bool) {
    compare(All, threads, |clock| FaultyLimiter::new(Fault::None, clock)).none();
    compare(All, threads, make).shows(break_the_rule);
}

/// How many units of this budget were granted in all.
fn granted(threads: Threads, answers: &Answers, of: Whose) -> u32 {
    let acts = threads.iter().zip(answers).flat_map(|(acts, answers)| acts.iter().zip(answers));
    acts.map(|(act, answer)| match act {
        Take(whose, cost) if *whose == of && answer.starts_with("Granted") => *cost,
        _ => 0,
    })
    .sum()
}

/// How much may be granted at most: a burst, and what is paid back from the first to the last moment.
fn most(threads: Threads) -> u32 {
    let passes = threads.iter().flat_map(|acts| acts.iter()).map(|act| if let Pass(units) = act { *units } else { 0 });
    BURST + passes.sum::<u32>()
}

/// What these orders end with.
fn ends<L: Owner>(
    orders: Orders,
    threads: Threads,
    make: impl Fn(SharedClock) -> L + Send + Sync + 'static,
) -> BTreeSet<Answers> {
    let seen = explore::explore(orders, move || explore::run(Bench::new(threads, &make), threads));
    println!("{} runs", seen.runs);
    seen.ends
}

const OPENING: Threads = &[&[Take(A, 1)], &[Take(A, 1)], &[Take(A, 1)]];
/// The first thread can read the clock, and come when the second has had two units paid back, and its bucket dropped.
const LATE: Threads = &[&[Take(A, 2)], &[Take(A, 2), Take(B, 1), Pass(2), Take(C, 1), Take(A, 2)]];

#[test]
fn r2_threads_open_one_budget() {
    holds(All, &[&[Take(A, 2)], &[Take(A, 1), Take(A, 1)]]);
    holds(All, &[&[Take(A, 2)], &[Take(A, 1), Take(B, 1)]]);
    holds(Interrupted(3), OPENING);
}

#[test]
fn r2_a_charge_that_looks_and_then_writes_is_noticed() {
    let threads: Threads = &[&[Take(A, 2)], &[Take(A, 2)]];
    notices(
        threads,
        |clock| FaultyLimiter::new(Fault::ChargesACopy, clock),
        |answers| answers.iter().flatten().filter(|answer| answer.starts_with("Granted")).count() > 1,
    );
}

#[test]
fn r2_a_budget_that_is_opened_twice_is_noticed() {
    let over = |answers: &Answers| granted(OPENING, answers, A) > BURST;
    notices(OPENING, |clock| FaultyLimiter::new(Fault::OpensTwice, clock), over);
}

#[test]
fn r2_a_refund_between_charges_gives_back_what_it_says() {
    holds(All, &[&[Take(A, 2), GiveBack(1)], &[Take(A, 1)]]);
    holds(All, &[&[Take(A, 1), GiveBack(1)], &[Take(A, 2), GiveBack(2)]]);
    holds(Interrupted(2), &[&[Take(A, 1), GiveBack(1)], &[Take(A, 1), GiveBack(1)], &[Take(A, 2)]]);
}

#[test]
fn r2_a_refund_that_undoes_a_charge_is_noticed() {
    let threads: Threads = &[&[Take(A, 1), GiveBack(1)], &[Take(A, 1)]];
    let free = |answers: &Answers| answers[1][0].starts_with("Granted") && answers[2][0].contains("[0, 0, 0, 0]");
    notices(threads, |clock| FaultyLimiter::new(Fault::RefundsFromACopy, clock), free);
}

#[test]
fn r3_attempts_and_calls_have_budgets_of_their_own() {
    holds(All, &[&[Attempt, Take(A, 1)], &[Attempt, Attempt]]);
}

#[test]
fn r4_a_probe_leaves_nothing() {
    holds(All, &[&[Probe(A, 2), Probe(A, 1)], &[Take(A, 2)]]);
    holds(Interrupted(2), &[&[Probe(A, 2)], &[Take(A, 2)], &[Probe(A, 1)]]);
}

#[test]
fn a_reset_comes_before_a_charge_or_after_it() {
    holds(All, &[&[Take(A, 2), Take(A, 1)], &[Reset(A)]]);
}

/// F5: where there is room for one key, one is kept, and who finds no room is refused; it may be refused although its own key
/// was just about to get the place.
#[test]
fn f5_no_order_keeps_more_keys_than_there_is_room_for() {
    let cases: [(Orders, Threads); 4] = [
        (All, &[&[Take(A, 1)], &[Take(B, 1)]]),
        (All, &[&[Take(A, 1)], &[Take(A, 1)]]),
        (All, &[&[Take(A, 1), Reset(A)], &[Take(B, 1)]]),
        (Interrupted(2), OPENING),
    ];
    for (orders, threads) in cases {
        let resets = threads.iter().any(|acts| acts.iter().any(|act| matches!(act, Reset(_))));
        for end in ends(orders, threads, memory(1)) {
            let kept = end[threads.len()][0].split(' ').next();
            assert!(kept == Some("1") || kept == Some("0") && resets, "{end:?}");
            assert!([A, B].iter().all(|whose| granted(threads, &end, *whose) <= BURST), "{end:?}");
        }
    }
}

/// R2: a thread that comes late with its refund gives nothing back that time has paid back.
#[test]
fn r2_a_late_refund_gives_nothing_back() {
    let threads: Threads = &[&[Take(A, 2), GiveBack(2)], &[Pass(2), Take(A, 2), Take(A, 2)]];
    for end in ends(All, threads, memory(9)) {
        assert!(end[1][1..].iter().any(|answer| answer.starts_with("Refused")), "two bursts at one moment: {end:?}");
    }
}

/// R2: a bucket is dropped when it is paid back, and a thread that read the clock long before comes late: it must not find a
/// fresh budget in a time that is over.
#[test]
fn r2_a_late_thread_finds_no_fresh_budget_in_the_past() {
    for end in ends(Interrupted(2), LATE, memory(2)) {
        assert!(granted(LATE, &end, A) <= most(LATE), "{end:?}");
    }
}

#[test]
fn r2_a_limiter_that_drops_and_forgets_the_time_is_noticed() {
    let over = |answers: &Answers| granted(LATE, answers, A) > most(LATE);
    let make = |fault| move |clock| FaultyLimiter::dropping(fault, clock);
    assert!(!ends(All, LATE, make(Fault::None)).iter().any(over));
    assert!(ends(All, LATE, make(Fault::ForgetsTheTime)).iter().any(over));
}
