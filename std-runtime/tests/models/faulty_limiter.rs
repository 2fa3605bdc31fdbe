//! A limiter of few keys, in which faults can be planted that only an order of steps shows.

use std::collections::BTreeMap;

use callgate_core::digest::Digest;
use callgate_core::limit::Bucket;
use callgate_core::time::Instant;
use callgate_std::clock::SharedClock;
use callgate_std::limiter::{Allowance, Charge, ChargeMode, LimitKey, RateLimiter, Refund, StoreFault};
use loom::sync::Mutex;

use crate::limiter::{Owner, QUOTA};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A charge is computed on a copy of the bucket, which is written back later.
    ChargesACopy,
    /// A bucket that is opened takes the place of one that was opened meanwhile.
    OpensTwice,
    /// A refund is computed on a copy of the bucket, which is written back later.
    RefundsFromACopy,
    /// Drops what is paid back, and lets a thread that read the clock before open it again in the past.
    ForgetsTheTime,
}

pub(crate) struct FaultyLimiter {
    fault: Fault,
    drops: bool,
    clock: SharedClock,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    buckets: BTreeMap<[u8; 32], Bucket>,
    /// By when a bucket was dropped that was paid back.
    dropped_at: Instant,
}

impl Kept {
    fn get(&self, id: Digest) -> Option<Bucket> {
        self.buckets.get(id.as_bytes()).copied()
    }

    fn put(&mut self, id: Digest, allowance: Allowance) -> Allowance {
        if let Allowance::Granted { bucket, .. } = &allowance {
            self.buckets.insert(*id.as_bytes(), *bucket);
        }
        allowance
    }
}

impl FaultyLimiter {
    /// Keeps every bucket.
    pub(crate) fn new(fault: Fault, clock: SharedClock) -> Self {
        Self { fault, drops: false, clock, kept: Mutex::default() }
    }

    /// Drops what is paid back whenever it is asked.
    pub(crate) fn dropping(fault: Fault, clock: SharedClock) -> Self {
        Self { drops: true, ..Self::new(fault, clock) }
    }

    fn take(&self, key: &LimitKey<'_>, cost: u32) -> Allowance {
        let mut now = self.clock.monotonic();
        let id = key.digest();
        let mut kept = self.kept.lock().expect("no panic");
        if self.drops {
            kept.buckets.retain(|_, bucket| !bucket.is_idle(now));
            if self.fault != Fault::ForgetsTheTime {
                kept.dropped_at = kept.dropped_at.max(now);
                now = kept.dropped_at;
            }
        }
        let found = kept.get(id);
        if self.fault == Fault::ChargesACopy || self.fault == Fault::OpensTwice && found.is_none() {
            drop(kept);
            kept = self.kept.lock().expect("no panic");
        }
        kept.put(id, QUOTA.charge(found.unwrap_or_default(), cost, now))
    }
}

impl RateLimiter for FaultyLimiter {
    fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        assert_eq!(charge.mode, ChargeMode::Take, "no fault of this limiter needs a probe");
        Ok(self.take(&charge.key, charge.cost))
    }

    fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault> {
        let now = self.clock.monotonic();
        let id = refund.key.digest();
        let mut kept = self.kept.lock().expect("no panic");
        let Some(found) = kept.get(id) else { return Ok(()) };
        if self.fault == Fault::RefundsFromACopy {
            drop(kept);
            kept = self.kept.lock().expect("no panic");
        }
        kept.buckets.insert(*id.as_bytes(), QUOTA.refund(found, refund.receipt, refund.units, now));
        Ok(())
    }

    fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        Ok(self.take(key, 1))
    }
}

impl Owner for FaultyLimiter {
    fn reset(&self, key: &LimitKey<'_>) {
        self.kept.lock().expect("no panic").buckets.remove(key.digest().as_bytes());
    }

    fn usage(&self, key: &LimitKey<'_>) -> u32 {
        let bucket = self.kept.lock().expect("no panic").get(key.digest()).unwrap_or_default();
        QUOTA.burst() - QUOTA.remaining(bucket, self.clock.monotonic())
    }

    fn len(&self) -> usize {
        self.kept.lock().expect("no panic").buckets.len()
    }
}
