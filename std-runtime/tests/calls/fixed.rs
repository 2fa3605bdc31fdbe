//! What a device keeps, beside what this crate keeps: the same log as long as there is room, and the same budgets.

use std::cell::RefCell;
use std::time::Duration;

use callgate_core::audit::chain::{ChainError, Head};
use callgate_core::call::{Charge, ChargeMode, Refund};
use callgate_core::context::CallContext;
use callgate_core::fixed::{AuditRing, Buffer, Limiter, OutcomeTooLong, write_outcome};
use callgate_core::limit::{Allowance, Bucket, LimitKey, Quota, Receipt};
use callgate_core::outcome::Outcome;
use callgate_core::request::Envelope;
use callgate_core::time::Instant;
use callgate_std::audit::{Against, MemoryAudit, ProblemKind, Report, verify_after};
use callgate_std::clock::{Clock, ManualClock};
use callgate_std::limiter::{MemoryLimiter, Quotas, RateLimiter};
use proptest::prelude::*;
use serde_json::Value;

use crate::driven::{ARGUMENTS, CASES, Case, Ears, TestTool, drive, drive_with};

fn dumped<const BYTES: usize>(ring: &AuditRing<BYTES>) -> Vec<u8> {
    let mut bytes = Vec::new();
    ring.dump(|piece| bytes.extend_from_slice(piece));
    bytes
}

fn check(log: &[u8], after: Head, head: Head) -> Report {
    verify_after(&mut &*log, after, Against::Head(head)).expect("memory can be read")
}

/// N1, J6: a ring holds the end of what any other log holds, byte for byte, whatever its size.
#[test]
fn n1_j6_a_ring_holds_the_latest_lines_of_the_same_log() {
    let ring = RefCell::new(AuditRing::<4_096>::new());
    let small = RefCell::new(AuditRing::<2_000>::new());
    let whole = MemoryAudit::new();
    for (i, case) in CASES.iter().cycle().take(3 * CASES.len()).enumerate() {
        let id = format!("r{i}");
        for_each_sink(*case, &id, &whole, &ring, &small);
        let lines: Vec<_> = whole.lines().iter().map(|line| line.clone() + "\n").collect();
        for (bytes, kept, overwritten, head) in [facts(&ring.borrow()), facts(&small.borrow())] {
            assert_eq!(head, whole.head());
            assert_eq!(overwritten + kept, lines.len() as u64);
            let expected = lines[overwritten as usize..].concat();
            assert_eq!(String::from_utf8(bytes).expect("text"), expected, "after {case:?}");
        }
        let ring = ring.borrow();
        assert!(check(&dumped(&ring), ring.before(), ring.head()).is_intact());
    }
    assert!(small.borrow().overwritten() > ring.borrow().overwritten() && ring.borrow().overwritten() > 10);
}

fn for_each_sink(
    case: Case,
    id: &str,
    whole: &MemoryAudit,
    ring: &RefCell<AuditRing<4_096>>,
    small: &RefCell<AuditRing<2_000>>,
) {
    let ends = [drive(case, id, whole).is_ok(), drive(case, id, ring).is_ok(), drive(case, id, small).is_ok()];
    assert!(ends == [true; 3] || ends == [false; 3], "{case:?} {ends:?}");
}

fn facts<const BYTES: usize>(ring: &AuditRing<BYTES>) -> (Vec<u8>, u64, u64, Head) {
    (dumped(ring), ring.lines(), ring.overwritten(), ring.head())
}

/// J10: what is missing at either end of a dump shows, given the two heads.
#[test]
fn j10_a_dump_that_was_cut_shows() {
    let ring = RefCell::new(AuditRing::<4_096>::new());
    for i in 0..20 {
        drive(CASES[CASES.len() - 1], &format!("r{i}"), &ring).expect("there is room");
    }
    let ring = ring.into_inner();
    let (before, head, log) = (ring.before(), ring.head(), dumped(&ring));
    assert!(ring.overwritten() > 0 && check(&log, before, head).is_intact());
    // Without the head from which it goes on, the first line is out of its place.
    let kinds = |log: &[u8], after, head| {
        check(log, after, head).problems.iter().map(|problem| problem.kind).collect::<Vec<_>>()
    };
    assert!(matches!(kinds(&log, Head::EMPTY, head)[0], ProblemKind::Chain(ChainError::OutOfSequence { expected: 1 })));
    let second = log.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    assert!(matches!(kinds(&log[second..], before, head)[0], ProblemKind::Chain(ChainError::OutOfSequence { .. })));
    let forged = Head { seq: before.seq, hash: head.hash };
    assert!(matches!(kinds(&log, forged, head)[0], ProblemKind::Chain(ChainError::BrokenLink)));
    let last = log[..log.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
    assert_eq!(kinds(&log[..last], before, head), [ProblemKind::Truncated { anchored: head.seq }]);
    // Heads older than the first line that is there.
    assert_eq!(kinds(&log, before, Head { seq: before.seq, hash: head.hash }), [ProblemKind::Forked]);
    let report = check(&log, before, before);
    assert!(report.is_intact() && report.beyond_anchor == ring.lines());
    let older = Head { seq: before.seq - 1, hash: head.hash };
    assert_eq!(kinds(&log, before, older), [ProblemKind::Overwritten { anchored: older.seq }]);
}

/// F5, X6: a line that would take most of the ring is refused, and the log goes on behind it.
#[test]
fn f5_a_ring_refuses_a_line_that_is_too_long() {
    let tiny = RefCell::new(AuditRing::<900>::new());
    let done = Case { end: "done", mutating: false };
    assert!(drive(done, "r1", &tiny).is_err());
    assert_eq!((tiny.borrow().lines(), tiny.borrow().head()), (0, Head::EMPTY));
    let ring = RefCell::new(AuditRing::<2_000>::new());
    drive(done, "r1", &ring).expect("there is room");
    let head = ring.borrow().head();
    assert!(drive(done, &"i".repeat(250), &RefCell::new(AuditRing::<1_500>::new())).is_err());
    drive(done, "r2", &ring).expect("there is room");
    assert_eq!(ring.borrow().head().seq, head.seq + 1);
    // Asked while it writes.
    let busy = ring.borrow_mut();
    assert!(drive(done, "r3", &ring).is_err());
    drop(busy);
}

const QUOTA: Quota = match Quota::new(6, 6_000, 4) {
    Ok(quota) => quota,
    Err(_) => Quota::DEFAULT,
};

/// An answer, in which a bucket that is paid back is the same as none.
fn told(allowance: Allowance, now: Instant) -> Allowance {
    match allowance {
        Allowance::Granted { bucket, receipt, remaining } if bucket.is_idle(now) => {
            Allowance::Granted { bucket: Bucket::FRESH, receipt, remaining }
        }
        other => other,
    }
}

#[derive(Clone, Debug)]
enum Act {
    Charge { key: usize, cost: u32, probe: bool },
    Attempt(usize),
    Refund(usize),
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..4_usize, 0..6_u32, prop::bool::weighted(0.2))
            .prop_map(|(key, cost, probe)| Act::Charge { key, cost, probe }),
        2 => (0..2_usize).prop_map(Act::Attempt),
        2 => (0..8_usize).prop_map(Act::Refund),
        3 => (0..5_000_u64).prop_map(Act::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// N2, R2, R3, R4: with a place for every key, the limiter of a device answers as the one in memory; with fewer, it refuses
    /// more only while it is full.
    #[test]
    fn n2_the_limiter_of_a_device_answers_as_the_one_in_memory(acts in prop::collection::vec(act(), 1..80)) {
        let clock = ManualClock::new();
        let [quotas, quotas_again] = [0, 1].map(|_| Quotas::new(QUOTA).with_attempts(QUOTA));
        let memory = MemoryLimiter::with(move |key| quotas.of(key), clock.shared(), 100);
        let mut roomy = Limiter::<6>::new(Some(QUOTA), Some(QUOTA));
        let mut narrow = Limiter::<2>::new(Some(QUOTA), Some(QUOTA));
        // Charged with what the narrow one admits.
        let shadow = MemoryLimiter::with(move |key| quotas_again.of(key), clock.shared(), 100);
        let callers = ["p", "q"].map(|principal| CallContext::new("web", "r").with_principal(principal));
        let keys = [0, 1, 2, 3].map(|i| LimitKey::of_call(&callers[i % 2], ["t", "u"][i / 2]));
        let mut paid: Vec<(usize, Receipt)> = Vec::new();
        for act in acts {
            let now = clock.now().monotonic;
            match act {
                Act::Pass(ms) => clock.advance(Duration::from_millis(ms)),
                Act::Charge { key, cost, probe } => {
                    let mode = if probe { ChargeMode::Probe } else { ChargeMode::Take };
                    let charge = Charge { key: keys[key], cost, mode };
                    let expected = memory.charge(&charge).expect("memory answers");
                    prop_assert_eq!(told(roomy.charge(&charge, now), now), told(expected, now));
                    let narrowly = narrow.charge(&charge, now);
                    let admitted = narrowly.is_admitted();
                    if admitted {
                        let shadowed = shadow.charge(&charge).expect("memory answers");
                        prop_assert_eq!(told(narrowly, now), told(shadowed, now));
                    } else {
                        let probe = Charge { mode: ChargeMode::Probe, ..charge };
                        let would = shadow.charge(&probe).expect("memory answers").is_admitted();
                        prop_assert!(!would || narrow.in_use(now) == 2, "refused without need");
                    }
                    if let (Allowance::Granted { receipt, .. }, false) = (expected, probe) {
                        paid.push((key, receipt));
                    }
                }
                Act::Attempt(who) => {
                    let key = LimitKey::of_attempts(&callers[who]);
                    let expected = memory.attempt(&key).expect("memory answers");
                    prop_assert_eq!(told(roomy.attempt(&key, now), now), told(expected, now));
                }
                Act::Refund(which) => {
                    let Some(which) = which.checked_rem(paid.len()) else { continue };
                    let (key, receipt) = paid.remove(which);
                    let refund = Refund { key: keys[key], receipt, units: receipt.cost().saturating_sub(1) };
                    memory.refund(&refund).expect("memory answers");
                    roomy.refund(&refund, now);
                }
            }
        }
    }
}

/// O2: whatever the room, what stands in it is a whole outcome that says what the call did to the world, or nothing.
#[test]
fn o2_an_outcome_is_whole_or_short_and_always_says_its_effect() {
    let audit = MemoryAudit::new();
    for case in CASES {
        let ears = Ears { outcome: Some(&|outcome| short_or_whole(*case, outcome)), ..Ears::default() };
        let _ = drive_with(*case, "r1", ARGUMENTS, &audit, &ears);
    }
}

fn short_or_whole(case: Case, outcome: &Outcome<Envelope<'_>, &TestTool>) {
    let whole = outcome.to_json().expect("no tool fails to write");
    let value: Value = serde_json::from_str(&whole).expect("JSON");
    let mut roomy = Buffer::<4_096>::new();
    assert_eq!(write_outcome(outcome, &mut roomy), Ok(true));
    assert_eq!(roomy.as_str(), whole);
    let mut narrow = Buffer::<300>::new();
    let fits = write_outcome(outcome, &mut narrow).expect("the short form fits");
    assert_eq!(fits, whole.len() <= 300);
    let short: Value = serde_json::from_str(narrow.as_str()).expect("JSON");
    for member in ["effect", "code", "type", "tool", "request_id", "audit_pending", "retry_after_seconds"] {
        assert_eq!(short["meta"].get(member), value["meta"].get(member), "{member} of {case:?}");
    }
    assert_eq!(short["success"], value["success"]);
    if !fits {
        assert_eq!((&short["meta"]["cut"], &short["data"]), (&Value::Bool(true), &Value::Null));
        assert_eq!(short["meta"]["bytes"], whole.len());
    }
    let mut none = Buffer::<64>::new();
    assert_eq!(write_outcome(outcome, &mut none), Err(OutcomeTooLong { bytes: whole.len() }));
    assert!(none.is_empty());
}
