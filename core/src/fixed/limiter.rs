//! Budgets of callers, in as many places as the host gives.

use core::fmt;

use crate::call::{Charge, ChargeMode, Refund};
use crate::digest::Digest;
use crate::limit::{Allowance, Bucket, LimitKey, Purpose, Quota};
use crate::time::Instant;

/// A rate limiter with `KEYS` buckets: one for each tenant, principal, channel and tool, and one for each caller's attempts.
///
/// A bucket that is paid back is the same as none, and its place is free. While every place is taken by a bucket that still
/// counts, a call with another key is refused, and told when the first place will be free: forgetting a bucket would give its owner a fresh
/// budget (invariants F5, R2). A caller can hold as many places as it has tools to call, so give each caller that many.
pub struct Limiter<const KEYS: usize> {
    calls: Option<Quota>,
    attempts: Option<Quota>,
    /// The latest time that the limiter was asked at. A bucket that was paid back then is gone; in an earlier time its owner would
    /// find a fresh budget.
    time: Instant,
    places: [Option<Place>; KEYS],
}

/// Keys are kept as digests: one length for all of them, and none is taken for another (invariant R6).
#[derive(Clone, Copy)]
struct Place {
    key: Digest,
    bucket: Bucket,
}

impl<const KEYS: usize> Limiter<KEYS> {
    /// A limiter with these budgets for calls and for refused calls (invariant R3); nothing is limited without one.
    #[must_use]
    pub const fn new(calls: Option<Quota>, attempts: Option<Quota>) -> Self {
        Self { calls, attempts, time: Instant::from_nanos(0), places: [None; KEYS] }
    }

    /// Answers [`Call::charge`](crate::call::Call): takes what is asked for, or says when to come back.
    pub fn charge(&mut self, charge: &Charge<'_>, now: Instant) -> Allowance {
        self.spend(&charge.key, charge.cost, charge.mode, now)
    }

    /// Charges one refused call to its caller's attempts: [`Settlement::attempt`](crate::call::Settlement).
    pub fn attempt(&mut self, key: &LimitKey<'_>, now: Instant) -> Allowance {
        self.spend(key, 1, ChargeMode::Take, now)
    }

    /// Gives back what a call that did not run had paid: [`Settlement::refund`](crate::call::Settlement).
    pub fn refund(&mut self, refund: &Refund<'_>, now: Instant) {
        let now = self.at(now);
        let Some(quota) = self.quota(&refund.key) else { return };
        let key = refund.key.digest();
        // A bucket that is gone was paid back.
        if let Some(place) = self.places.iter_mut().flatten().find(|place| place.key == key) {
            place.bucket = quota.refund(place.bucket, refund.receipt, refund.units, now);
        }
    }

    /// How many buckets count at `now`.
    #[must_use]
    pub fn in_use(&self, now: Instant) -> usize {
        let now = self.time.max(now);
        self.places.iter().flatten().filter(|place| !place.bucket.is_idle(now)).count()
    }

    const fn quota(&self, key: &LimitKey<'_>) -> Option<Quota> {
        match key.purpose {
            Purpose::Calls => self.calls,
            Purpose::Attempts => self.attempts,
        }
    }

    fn at(&mut self, now: Instant) -> Instant {
        self.time = self.time.max(now);
        self.time
    }

    fn spend(&mut self, key: &LimitKey<'_>, cost: u32, mode: ChargeMode, now: Instant) -> Allowance {
        let Some(quota) = self.quota(key) else { return Allowance::Unlimited };
        let now = self.at(now);
        let key = key.digest();
        let known = self.places.iter().position(|place| matches!(place, Some(place) if place.key == key));
        let Some(place) = known.or_else(|| self.free(now)).and_then(|at| self.places.get_mut(at)) else {
            return Allowance::Refused { retry_after_ns: self.first_free(now) };
        };
        let bucket = if known.is_some() { place.map_or(Bucket::FRESH, |place| place.bucket) } else { Bucket::FRESH };
        match mode {
            ChargeMode::Probe => quota.peek(bucket, cost, now),
            ChargeMode::Take => {
                let allowance = quota.charge(bucket, cost, now);
                if let Allowance::Granted { bucket, .. } = allowance
                    && !bucket.is_idle(now)
                {
                    *place = Some(Place { key, bucket });
                }
                allowance
            }
        }
    }

    /// A place that nobody needs.
    fn free(&self, now: Instant) -> Option<usize> {
        self.places.iter().position(|place| place.is_none_or(|place| place.bucket.is_idle(now)))
    }

    /// In how many nanoseconds the first place is free; never, where there is none.
    fn first_free(&self, now: Instant) -> Option<u64> {
        let ends = self.places.iter().flatten().map(|place| Instant::from_nanos(place.bucket.as_nanos()));
        ends.min().map(|end| end.nanos_since(now))
    }
}

impl<const KEYS: usize> fmt::Debug for Limiter<KEYS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("in_use", &self.in_use(self.time)).field("keys", &KEYS).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::CallContext;

    const QUOTA: Quota = match Quota::per_window(10, 10_000) {
        Ok(quota) => quota,
        Err(_) => Quota::DEFAULT,
    };

    fn key(principal: &str) -> LimitKey<'_> {
        LimitKey::of_call(&CallContext::new("web", "r").with_principal(principal), "t")
    }

    fn seconds(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn take<const KEYS: usize>(limiter: &mut Limiter<KEYS>, principal: &str, cost: u32, at: u64) -> Allowance {
        limiter.charge(&Charge { key: key(principal), cost, mode: ChargeMode::Take }, seconds(at))
    }

    #[test]
    fn f5_a_full_limiter_refuses_new_keys_until_the_first_place_is_paid_back() {
        let mut limiter = Limiter::<2>::new(Some(QUOTA), None);
        assert!(take(&mut limiter, "a", 4, 0).is_admitted() && take(&mut limiter, "b", 9, 0).is_admitted());
        assert_eq!(take(&mut limiter, "c", 1, 1), Allowance::Refused { retry_after_ns: Some(3_000_000_000) });
        assert!(take(&mut limiter, "b", 1, 1).is_admitted(), "whoever has a bucket is not concerned");
        assert_eq!(limiter.in_use(seconds(1)), 2);
        assert!(take(&mut limiter, "c", 10, 4).is_admitted());
        // The place of `a` was given away, and `a` finds what it would have had.
        assert!(!take(&mut limiter, "a", 1, 4).is_admitted());
        assert!(take(&mut limiter, "a", 10, 20).is_admitted());
        assert_eq!(
            take(&mut Limiter::<0>::new(Some(QUOTA), None), "a", 1, 0),
            Allowance::Refused { retry_after_ns: None }
        );
    }

    #[test]
    fn r4_a_probe_takes_neither_units_nor_a_place() {
        let mut limiter = Limiter::<1>::new(Some(QUOTA), None);
        let probe = Charge { key: key("a"), cost: 10, mode: ChargeMode::Probe };
        assert!(limiter.charge(&probe, seconds(0)).is_admitted());
        assert_eq!(limiter.in_use(seconds(0)), 0);
        assert!(take(&mut limiter, "a", 10, 0).is_admitted() && !limiter.charge(&probe, seconds(9)).is_admitted());
    }

    #[test]
    fn c5_a_clock_that_goes_back_gives_no_fresh_budget() {
        let mut limiter = Limiter::<1>::new(Some(QUOTA), None);
        assert!(take(&mut limiter, "a", 10, 0).is_admitted());
        assert!(take(&mut limiter, "b", 10, 100).is_admitted(), "a is paid back, and its place is free");
        assert!(!take(&mut limiter, "a", 1, 0).is_admitted());
        assert!(!take(&mut limiter, "b", 1, 0).is_admitted());
    }

    /// R7: what a call that did not run had paid is its own again, and nobody else's.
    #[test]
    fn r7_a_refund_goes_to_whom_it_belongs() {
        let mut limiter = Limiter::<3>::new(Some(QUOTA), None);
        let Allowance::Granted { receipt, .. } = take(&mut limiter, "a", 5, 0) else { panic!("there is a budget") };
        assert!(take(&mut limiter, "b", 10, 0).is_admitted() && take(&mut limiter, "a", 5, 0).is_admitted());
        assert!(!take(&mut limiter, "a", 1, 0).is_admitted());
        limiter.refund(&Refund { key: key("c"), receipt, units: 4 }, seconds(0));
        assert!(!take(&mut limiter, "a", 1, 0).is_admitted() && !take(&mut limiter, "b", 1, 0).is_admitted());
        limiter.refund(&Refund { key: key("a"), receipt, units: 4 }, seconds(0));
        assert!(!take(&mut limiter, "a", 5, 0).is_admitted() && take(&mut limiter, "a", 4, 0).is_admitted());
        assert!(!take(&mut limiter, "b", 1, 0).is_admitted());
    }

    #[test]
    fn r3_attempts_are_counted_apart_and_nothing_is_limited_without_a_quota() {
        let caller = CallContext::new("web", "r").with_principal("a");
        let attempts = LimitKey::of_attempts(&caller);
        let mut limiter = Limiter::<2>::new(None, Some(QUOTA));
        assert!((0..10).all(|_| limiter.attempt(&attempts, seconds(0)).is_admitted()));
        assert!(!limiter.attempt(&attempts, seconds(0)).is_admitted());
        assert_eq!(take(&mut limiter, "a", 1_000, 0), Allowance::Unlimited);
    }
}
