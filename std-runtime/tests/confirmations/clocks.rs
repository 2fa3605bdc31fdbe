//! Clocks that do what clocks do: set back and forward, asleep, another one after a restart (invariants A10, C1, C2, C4, J4). Each function
//! takes what opens a store; one that does not outlive its process is opened once.

use std::time::Duration;

use callgate_core::confirm::MAX_SKEW_MS;
use callgate_core::digest::Digest;
use callgate_core::time::{Instant, Now, Timestamp};
use callgate_std::clock::{Clock as _, ManualClock};
use callgate_std::confirmations::{Capacity, Effect, Finish, Refusal, TicketState, Verdict};

use crate::bench::{BOB, Bench, LEASE, TTL, approval, presented, request};

type Make<'a> = &'a dyn Fn(Capacity) -> Bench;

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;
const YEAR: i64 = 365 * 24 * HOUR;
/// What the papers name, a leap second that is smeared, and what lies around what is taken for a disturbance.
const STEPS: [i64; 12] = [
    -10 * YEAR,
    -HOUR,
    -(MAX_SKEW_MS.cast_signed()) - 1,
    -(MAX_SKEW_MS.cast_signed()),
    -SECOND,
    -1,
    0,
    1,
    SECOND,
    HOUR,
    YEAR,
    10 * YEAR,
];

fn issued(bench: &Bench) -> Digest {
    bench.store.issue(&request(1), TTL).expect("room").token.hash()
}

fn is_good(bench: &Bench, ticket: Digest) -> bool {
    bench.store.load(ticket).expect("answers").is_some_and(|found| found.usable.is_ok())
}

fn claims(bench: &Bench, ticket: Digest) -> bool {
    bench.store.claim(ticket, &presented(1)).expect("answers").is_ok()
}

/// A10, C2: a ticket whose time is over by either clock is over, at the tick, whoever saw it pass, and whatever steps. Where the clock is
/// set forward, that time has passed.
pub(crate) fn a10_no_step_of_the_clock_lengthens_a_life(make: Make<'_>) {
    for step in STEPS {
        for seen in [false, true] {
            for before in [0, TTL / 2, TTL - 1] {
                for (rest, over) in [(TTL - before - 1, false), (TTL - before, true)] {
                    let what = format!("{step} ms after {before} ms, then {rest} ms, seen: {seen}");
                    let bench = make(Capacity::DEFAULT);
                    let ticket = issued(&bench);
                    bench.pass(before);
                    if seen {
                        assert!(is_good(&bench, ticket), "{what}");
                    }
                    bench.clock.step_wall(step);
                    if seen {
                        let _ = is_good(&bench, ticket);
                    }
                    bench.pass(rest);
                    let ahead = u64::try_from(step).unwrap_or_default();
                    let good = claims(&bench, ticket);
                    if over || before + rest + ahead >= TTL {
                        assert!(!good, "{what}: it is over");
                    } else if step >= -(MAX_SKEW_MS.cast_signed()) {
                        assert!(good, "{what}: its time is not over");
                    }
                    // Whatever the clock did, the store works on.
                    let next = issued(&bench);
                    bench.pass(TTL - 1);
                    assert!(claims(&bench, next), "{what}: the next one");
                    let last = issued(&bench);
                    bench.pass(TTL);
                    assert!(!claims(&bench, last), "{what}: the last one");
                }
            }
        }
    }
}

/// C2, F3: nobody decides what is over, whatever the clock did meanwhile.
pub(crate) fn f3_no_step_of_the_clock_lets_anybody_decide_late(make: Make<'_>) {
    for step in STEPS {
        let bench = make(Capacity::DEFAULT);
        let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
        bench.pass(TTL);
        bench.clock.step_wall(step);
        assert_eq!(bench.store.pending(&BOB, 10).expect("answers"), [], "{step}");
        let decided = bench.store.decide(ticket, Verdict::Approve, &BOB);
        assert!(decided.is_err(), "{step}: {decided:?}");
        assert!(!claims(&bench, ticket), "{step}");
    }
}

/// J4, J5: what a call holds is held for its lease, is in doubt within its lease by either clock, and is never forgotten.
pub(crate) fn j4_no_step_of_the_clock_frees_or_keeps_what_is_held(make: Make<'_>) {
    for step in STEPS {
        for seen in [false, true] {
            let what = format!("{step}, seen: {seen}");
            let bench = make(Capacity::DEFAULT);
            let ticket = issued(&bench);
            assert!(claims(&bench, ticket), "{what}");
            bench.clock.step_wall(step);
            if seen {
                assert!(!claims(&bench, ticket), "{what}: A5");
            }
            bench.pass(LEASE - 1);
            let early = bench.store.reap(10).expect("answers");
            assert_eq!(early.len(), usize::from(step > 0), "{what}: within its lease");
            bench.pass(1);
            let late = bench.store.reap(10).expect("answers");
            assert_eq!(early.len() + late.len(), 1, "{what}: when its lease is over");
            let state = early.iter().chain(&late).next().map(|view| view.state);
            assert_eq!(state, Some(TicketState::InDoubt), "{what}");
            let finish = Finish { ticket, call: presented(1).call, effect: Effect::Done };
            assert!(bench.store.finish(&finish).expect("answers").is_err(), "{what}: too late");
            assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Used)), "{what}: A5");
        }
    }
}

/// C1: a machine that slept wakes with what expired, though its monotonic clock stood still; and a clock that is slewed by a leap second
/// over a day changes nothing.
pub(crate) fn c2_sleep_counts_and_a_smeared_second_does_not(make: Make<'_>) {
    for slept in [TTL, TTL + 1, u64::try_from(YEAR).expect("positive")] {
        let bench = make(Capacity::DEFAULT);
        let ticket = issued(&bench);
        bench.clock.step_wall(slept.cast_signed());
        assert!(!claims(&bench, ticket), "{slept}");
    }
    let bench = make(Capacity::DEFAULT);
    for hour in 0..24 {
        let ticket = issued(&bench);
        bench.pass(TTL - 100);
        bench.clock.step_wall(-42);
        assert!(claims(&bench, ticket), "hour {hour}");
    }
}

/// C1: at the beginning of time, where 32 bits end, and where dates have five digits.
pub(crate) fn c1_no_moment_is_special(make: Make<'_>) {
    for wall in [0, 1, 2_147_483_647_999, 4_294_967_295_999, 253_402_300_799_999] {
        let bench = make(Capacity::DEFAULT);
        let monotonic = bench.clock.now().monotonic;
        bench.clock.set(Now { monotonic, wall: Timestamp::from_unix_millis(wall) });
        let ticket = issued(&bench);
        bench.pass(TTL - 1);
        assert!(is_good(&bench, ticket), "{wall}");
        assert!(claims(&bench, ticket), "{wall}");
        let late = issued(&bench);
        bench.pass(TTL);
        assert!(!claims(&bench, late), "{wall}");
    }
}

/// The store at this path, by this clock, with tokens of this seed.
type Open<'a> = crate::reopened::Open<'a>;

/// C2, C4: a process starts with another clock than the one before it had. What had expired stays so, and what waits is refused rather than
/// given a longer life; what was held is in doubt in time.
pub(crate) fn c4_a_restart_with_another_clock_revives_nothing(open: Open<'_>) {
    let directory = tempfile::tempdir().expect("a directory");
    for (at, step) in STEPS.into_iter().enumerate() {
        let path = directory.path().join(format!("confirmations-{at}"));
        let clock = ManualClock::new();
        let start = clock.now();
        let first = open(&path, &clock, 1);
        let over = first.issue(&request(1), 10).expect("room").token.hash();
        clock.advance(Duration::from_millis(10));
        assert_eq!(first.claim(over, &presented(1)), Ok(Err(Refusal::Expired)), "{step}");
        let waits = first.issue(&request(1), TTL).expect("room").token.hash();
        let held = first.issue(&request(1), TTL).expect("room").token.hash();
        assert!(first.claim(held, &presented(1)).expect("answers").is_ok(), "{step}");
        drop(first);
        // The monotonic clock of another start of the machine says nothing about this one's.
        clock.set(Now { monotonic: Instant::from_nanos(1), wall: start.wall });
        clock.step_wall(10 + step);
        let second = open(&path, &clock, 2);
        let told = second.claim(over, &presented(1)).expect("answers");
        assert!(matches!(told, Err(Refusal::Expired | Refusal::Unknown)), "{step}: {told:?}");
        let waits = second.claim(waits, &presented(1)).expect("answers");
        let is_over = step >= TTL.cast_signed() || step < -(MAX_SKEW_MS.cast_signed());
        assert_eq!(waits.is_err(), is_over, "{step}: {waits:?}");
        assert_eq!(second.claim(held, &presented(1)), Ok(Err(Refusal::Used)), "{step}: A5");
        clock.advance(Duration::from_millis(LEASE));
        assert!(second.reap(10).expect("answers").iter().any(|view| view.ticket == held), "{step}: J4");
    }
}

/// C2, C4: processes whose clocks are apart. On one machine none are, but nothing may come of it than refusals, and a life that is longer by
/// the difference where that is taken for a disturbance.
pub(crate) fn c4_clocks_that_differ_revive_nothing(open: Open<'_>) {
    for apart in [-300 * SECOND, -SECOND, SECOND, 300 * SECOND] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("confirmations");
        let (one, other) = (ManualClock::new(), ManualClock::new());
        other.step_wall(apart);
        let (first, second) = (open(&path, &one, 1), open(&path, &other, 2));
        for stores in [[&first, &second], [&second, &first]] {
            for rest in [TTL - 1, TTL + SECOND.unsigned_abs()] {
                let ticket = stores[0].issue(&request(1), TTL).expect("room").token.hash();
                for clock in [&one, &other] {
                    clock.advance(Duration::from_millis(rest));
                }
                let claimed = stores[1].claim(ticket, &presented(1)).expect("answers");
                assert!(rest < TTL || claimed.is_err(), "{apart}: {claimed:?}");
                assert!(stores[0].claim(ticket, &presented(1)).expect("answers").is_err(), "{apart}: A5");
            }
        }
    }
}

/// Makes a test of each function of this suite: `name: function that makes a fresh store`, and for one that outlives its process
/// `, function that opens it`.
macro_rules! every_clock {
    ($name:ident: $make:ident) => { $crate::clocks::every_clock!(@ $name $make {
        a10_no_step_of_the_clock_lengthens_a_life
        c1_no_moment_is_special
        c2_sleep_counts_and_a_smeared_second_does_not
        f3_no_step_of_the_clock_lets_anybody_decide_late
        j4_no_step_of_the_clock_frees_or_keeps_what_is_held
    } {}); };
    ($name:ident: $make:ident, $open:ident) => { $crate::clocks::every_clock!(@ $name $make {
        a10_no_step_of_the_clock_lengthens_a_life
        c1_no_moment_is_special
        c2_sleep_counts_and_a_smeared_second_does_not
        f3_no_step_of_the_clock_lets_anybody_decide_late
        j4_no_step_of_the_clock_frees_or_keeps_what_is_held
    } {
        c4_a_restart_with_another_clock_revives_nothing $open
        c4_clocks_that_differ_revive_nothing $open
    }); };
    (@ $name:ident $make:ident { $($test:ident)+ } { $($shared:ident $open:ident)* }) => {
        mod $name {
            $(#[test] fn $test() { crate::clocks::$test(&crate::$make); })+
            $(#[test] fn $shared() { crate::clocks::$shared(&crate::$open); })*
        }
    };
}
pub(crate) use every_clock;
