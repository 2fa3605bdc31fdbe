//! What the limiter admits.
#![cfg(test)]

use callgate_core::context::{CallContext, Scopes};
use callgate_core::limit::{
    Allowance, Bucket, LimitExceeded, LimitKey, Purpose, Quota, QuotaError, Receipt, refund_for, retry_after_seconds,
};
use callgate_core::time::Instant;
use proptest::prelude::*;
use std::collections::HashSet;

const SECOND: u64 = 1_000_000_000;
const NANOS_PER_MILLI: u64 = 1_000_000;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// Charges and keeps the new state; gives the receipt and what remains, or how long to wait.
fn spend(quota: &Quota, bucket: &mut Bucket, cost: u32, now: u64) -> Result<(Receipt, u32), Option<u64>> {
    match quota.charge(*bucket, cost, at(now)) {
        Allowance::Granted { bucket: charged, receipt, remaining } => {
            *bucket = charged;
            Ok((receipt, remaining))
        }
        Allowance::Unlimited => panic!("a quota limits"),
        Allowance::Refused { retry_after_ns } => Err(retry_after_ns),
    }
}

#[test]
fn the_default_quota_is_a_hundred_a_minute_at_once() {
    assert_eq!(Quota::new(100, 60_000, 100), Ok(Quota::DEFAULT));
    for (cost, calls) in [(5, 20), (1, 100)] {
        let mut bucket = Bucket::FRESH;
        for call in 0..calls {
            assert!(spend(&Quota::DEFAULT, &mut bucket, cost, 7).is_ok(), "call {call} of cost {cost}");
        }
        let refused = spend(&Quota::DEFAULT, &mut bucket, cost, 7).unwrap_err();
        assert_eq!(refused, Some(600_000_000 * u64::from(cost)));
    }
}

#[test]
fn remaining_units_count_down_and_come_back() {
    let mut bucket = Bucket::FRESH;
    assert_eq!(spend(&Quota::DEFAULT, &mut bucket, 1, 0).unwrap().1, 99);
    assert_eq!(spend(&Quota::DEFAULT, &mut bucket, 49, 0).unwrap().1, 50);
    assert_eq!(spend(&Quota::DEFAULT, &mut bucket, 50, 0).unwrap().1, 0);
    assert!(spend(&Quota::DEFAULT, &mut bucket, 1, 0).is_err());
    assert_eq!(Quota::DEFAULT.remaining(bucket, at(30 * SECOND)), 50);
    assert_eq!(Quota::DEFAULT.remaining(bucket, at(600 * SECOND)), 100);
    assert!(bucket.is_idle(at(60 * SECOND)) && !bucket.is_idle(at(60 * SECOND - 1)));
}

#[test]
fn a_cost_above_the_burst_never_passes_and_no_cost_always_does() {
    let never = Quota::DEFAULT.charge(Bucket::FRESH, 101, at(0));
    assert_eq!(never, Allowance::Refused { retry_after_ns: None });
    let full = Bucket::from_nanos(u64::MAX);
    assert!(Quota::DEFAULT.charge(full, 0, at(0)).is_admitted());
    // F5: at the end of the clock nothing is admitted any more.
    assert!(!Quota::DEFAULT.charge(Bucket::FRESH, 1, at(u64::MAX)).is_admitted());
}

#[test]
fn seconds_are_rounded_up() {
    assert_eq!([0, 1, SECOND, SECOND + 1].map(retry_after_seconds), [0, 1, 1, 2]);
}

#[test]
fn f7_a_quota_that_cannot_work_is_refused_with_its_reason() {
    assert_eq!(Quota::new(0, 1, 1), Err(QuotaError::NoLimit));
    assert_eq!(Quota::new(1, 0, 1), Err(QuotaError::NoWindow));
    assert_eq!(Quota::new(1, 1, 0), Err(QuotaError::NoBurst));
    assert_eq!(Quota::new(1, u64::MAX, 1), Err(QuotaError::TooLong));
    assert_eq!(Quota::new(1, 1_000_000_000, u32::MAX), Err(QuotaError::TooLong));
    assert!(QuotaError::NoLimit.to_string().contains("at least 1"));
}

#[test]
fn r4_a_plan_is_told_the_answer_and_charges_nothing() {
    let mut bucket = Bucket::FRESH;
    spend(&Quota::DEFAULT, &mut bucket, 98, 0).unwrap();
    let told = Allowance::Granted { bucket, receipt: Receipt::NONE, remaining: 0 };
    assert_eq!(Quota::DEFAULT.peek(bucket, 2, at(0)), told);
    assert_eq!(Quota::DEFAULT.peek(bucket, 3, at(0)), Quota::DEFAULT.charge(bucket, 3, at(0)));
}

/// O6: three confirmations that were refused leave room for an honest call.
#[test]
fn r3_a_call_that_did_not_run_keeps_at_most_one_unit() {
    assert_eq!((refund_for(5, false), refund_for(5, true)), (4, 0));
    assert_eq!((refund_for(1, false), refund_for(0, false)), (0, 0));
    let quota = Quota::per_window(9, 60_000).unwrap();
    let mut bucket = Bucket::FRESH;
    for _ in 0..3 {
        let (receipt, _) = spend(&quota, &mut bucket, 5, 0).unwrap();
        bucket = quota.refund(bucket, receipt, refund_for(receipt.cost(), false), at(0));
    }
    assert_eq!(quota.remaining(bucket, at(0)), 6);
    assert!(spend(&quota, &mut bucket, 5, 0).is_ok());
}

#[test]
fn r2_a_late_refund_does_not_add_a_second_burst() {
    let quota = Quota::DEFAULT;
    let mut bucket = Bucket::FRESH;
    let early = spend(&quota, &mut bucket, 100, 0).unwrap().0;
    // The bucket has refilled by itself; the early call is settled only now.
    spend(&quota, &mut bucket, 100, 60 * SECOND).unwrap();
    bucket = quota.refund(bucket, early, 99, at(60 * SECOND));
    assert_eq!(quota.remaining(bucket, at(60 * SECOND)), 0);
}

#[test]
fn r2_a_refund_moves_later_charges_forward() {
    // One unit a second, ten at once.
    let quota = Quota::new(10, 10_000, 10).unwrap();
    let mut bucket = Bucket::FRESH;
    let (first, _) = spend(&quota, &mut bucket, 5, 0).unwrap();
    let (second, _) = spend(&quota, &mut bucket, 5, 0).unwrap();
    bucket = quota.refund(bucket, first, 5, at(0));
    // Without the first, the second is paid back after five seconds: nothing of it is left to give back.
    spend(&quota, &mut bucket, 10, 5 * SECOND).unwrap();
    bucket = quota.refund(bucket, second, 5, at(5 * SECOND));
    assert_eq!(quota.remaining(bucket, at(5 * SECOND)), 0);
}

#[test]
fn no_more_than_the_charge_is_given_back() {
    let mut bucket = Bucket::FRESH;
    spend(&Quota::DEFAULT, &mut bucket, 50, 9 * SECOND).unwrap();
    let before = bucket;
    let (receipt, _) = spend(&Quota::DEFAULT, &mut bucket, 5, 9 * SECOND).unwrap();
    // Not even when the clock went back behind the charge.
    for now in [0, 9 * SECOND] {
        assert_eq!(Quota::DEFAULT.refund(bucket, receipt, u32::MAX, at(now)), before);
    }
    assert_eq!(Quota::DEFAULT.refund(before, Receipt::NONE, u32::MAX, at(0)), before);
}

fn encoded(key: &LimitKey<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode(&mut |piece| bytes.extend_from_slice(piece));
    bytes
}

#[test]
fn r6_a_separator_inside_a_name_moves_no_border() {
    let context = CallContext::mcp("r", Some("c"), Scopes::NONE);
    let key = |channel, tool| LimitKey { channel, ..LimitKey::of_call(&context, tool) };
    let (a, b) = (key("a:b", "t"), LimitKey { principal: Some("b:c"), ..key("a", "t") });
    assert_eq!(a.to_string(), b.to_string(), "what people read is not the key");
    assert_ne!(encoded(&a), encoded(&b));
    assert_ne!(encoded(&LimitKey { principal: None, ..a }), encoded(&LimitKey { principal: Some(""), ..a }));
    assert_ne!(encoded(&LimitKey::of_call(&context, "t")), encoded(&LimitKey::of_attempts(&context)));
}

#[test]
fn r6_every_key_has_its_own_encoding() {
    let parts =
        [None, Some(""), Some("\0"), Some("\u{1}"), Some("\0\0"), Some("\u{1}\0"), Some("\u{1}\u{1}"), Some("a")];
    let mut seen = HashSet::new();
    for index in 0..parts.len().pow(4) {
        let part = |place: u32| parts[index / parts.len().pow(place) % parts.len()];
        let Some(channel) = part(2) else { continue };
        for purpose in [Purpose::Calls, Purpose::Attempts] {
            let key = LimitKey { tenant: part(0), principal: part(1), channel, tool: part(3), purpose };
            assert!(seen.insert(encoded(&key)), "{key:?}");
            assert!(seen.insert(key.digest().as_bytes().to_vec()), "{key:?}");
        }
    }
}

#[test]
fn a_refusal_names_key_and_quota() {
    let context = CallContext::web("r", Some("u1"), Scopes::NONE);
    let text = LimitExceeded { key: LimitKey::of_call(&context, "t"), quota: Quota::DEFAULT }.to_string();
    assert_eq!(text, "Rate limit exceeded for 'web:u1:t': max 100 tokens per 60s.");
}

prop_compose! {
    fn quotas()(limit in 1u32..200, window_ms in 1u64..100_000, burst in 1u32..200) -> Quota {
        Quota::new(limit, window_ms, burst).unwrap()
    }
}

/// One thing that happens at a limiter: time passes, then a charge, or an earlier charge is settled.
#[derive(Clone, Debug)]
enum Happens {
    Charge { after: u64, cost: u32 },
    Settle { after: u64, which: prop::sample::Index },
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let after = prop_oneof![Just(0u64), 0..SECOND, 0..120 * SECOND];
    let one = prop_oneof![
        3 => (after.clone(), 0u32..60).prop_map(|(after, cost)| Happens::Charge { after, cost }),
        1 => (after, any::<prop::sample::Index>()).prop_map(|(after, which)| Happens::Settle { after, which }),
    ];
    prop::collection::vec(one, 1..120)
}

proptest! {
    /// R2, over every pair of points in time, with calls that are settled late or never.
    #[test]
    fn r2_no_window_admits_more_than_limit_and_burst(quota in quotas(), schedule in happenings()) {
        let mut now = SECOND;
        let mut bucket = Bucket::FRESH;
        // What each admitted call has paid in the end, and when it was admitted.
        let mut admitted: Vec<(u64, u32, Receipt)> = Vec::new();
        for event in schedule {
            match event {
                Happens::Charge { after, cost } => {
                    now += after;
                    if let Ok((receipt, _)) = spend(&quota, &mut bucket, cost, now) {
                        admitted.push((now, cost, receipt));
                    }
                }
                Happens::Settle { after, which } => {
                    now += after;
                    if !admitted.is_empty() {
                        let (_, kept, receipt) = which.get(&admitted);
                        let amount = refund_for(*kept, false);
                        bucket = quota.refund(bucket, *receipt, amount, at(now));
                        let index = which.index(admitted.len());
                        admitted[index].1 = *kept - amount;
                    }
                }
            }
            prop_assert!(quota.remaining(bucket, at(now)) <= quota.burst());
        }
        for (first, &(start, ..)) in admitted.iter().enumerate() {
            let mut sum = 0u64;
            for &(time, kept, _) in &admitted[first..] {
                sum += u64::from(kept);
                let nanos = u128::from(quota.window_ms()) * u128::from(NANOS_PER_MILLI);
                let refilled = u128::from(time - start) * u128::from(quota.limit()) / nanos;
                prop_assert!(u128::from(sum) <= u128::from(quota.burst()) + refilled);
            }
        }
    }

    #[test]
    fn a_retry_passes_at_the_promised_nanosecond_and_not_before(
        quota in quotas(), owed in 0u64..200 * SECOND, cost in 1u32..200, now in 0u64..100 * SECOND,
    ) {
        let bucket = Bucket::from_nanos(owed);
        if let Allowance::Refused { retry_after_ns: Some(wait) } = quota.charge(bucket, cost, at(now)) {
            prop_assert!(wait > 0);
            prop_assert!(quota.charge(bucket, cost, at(now + wait)).is_admitted());
            prop_assert!(!quota.charge(bucket, cost, at(now + wait - 1)).is_admitted());
        }
    }

    #[test]
    fn c5_a_clock_that_jumps_gives_no_more_than_a_burst(
        quota in quotas(), owed in any::<u64>(), now in any::<u64>(), back in any::<u64>(), ahead in any::<u64>(),
    ) {
        let bucket = Bucket::from_nanos(owed);
        let here = quota.remaining(bucket, at(now));
        prop_assert!(quota.remaining(bucket, at(now.saturating_sub(back))) <= here);
        prop_assert!(quota.remaining(bucket, at(now.saturating_add(ahead))) <= quota.burst());
        prop_assert!(!quota.charge(bucket, quota.burst().saturating_add(1), at(now)).is_admitted());
    }

    /// R2: rounding never lets the limit come back in less than a window.
    #[test]
    fn the_limit_takes_a_whole_window_to_come_back(limit in 1u32..1_000, window_ms in 1u64..100_000) {
        let quota = Quota::per_window(limit, window_ms).unwrap();
        let mut bucket = Bucket::FRESH;
        spend(&quota, &mut bucket, limit, 0).unwrap();
        let window = window_ms * NANOS_PER_MILLI;
        prop_assert!(quota.remaining(bucket, at(window - 1)) < limit);
        // One unit's worth of rounding, at most, is lost to the caller.
        prop_assert_eq!(quota.remaining(bucket, at(window + u64::from(limit))), limit);
    }

    #[test]
    fn dropping_an_idle_bucket_changes_no_answer(
        quota in quotas(), owed in 0u64..100 * SECOND, cost in 0u32..200, now in 0u64..200 * SECOND,
    ) {
        let bucket = Bucket::from_nanos(owed);
        if bucket.is_idle(at(now)) && cost > 0 {
            prop_assert_eq!(quota.charge(bucket, cost, at(now)), quota.charge(Bucket::FRESH, cost, at(now)));
        }
    }

    /// Nothing overflows, whatever a store hands back.
    #[test]
    fn f5_no_number_makes_the_arithmetic_wrap(
        limit in any::<u32>(), window in any::<u64>(), burst in any::<u32>(),
        owed in any::<u64>(), cost in any::<u32>(), now in any::<u64>(), then in any::<u64>(),
    ) {
        if let Ok(quota) = Quota::new(limit, window, burst) {
            let bucket = Bucket::from_nanos(owed);
            if let Allowance::Granted { bucket: charged, receipt, .. } = quota.charge(bucket, cost, at(now)) {
                prop_assert!(charged.as_nanos() >= bucket.as_nanos());
                let back = quota.refund(charged, receipt, u32::MAX, at(then));
                prop_assert!(back.as_nanos() <= charged.as_nanos());
            }
        }
    }
}
