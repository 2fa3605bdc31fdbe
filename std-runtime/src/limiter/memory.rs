//! Buckets in memory, in shards that threads take one at a time.

use std::fmt;
use std::hash::BuildHasher;

use callgate_core::call::{Charge, ChargeMode, Refund, StoreFault};
use callgate_core::limit::{Allowance, Bucket, LimitKey, Purpose, Quota};
use callgate_core::time::Instant;
use hashbrown::HashTable;

use super::RateLimiter;
use super::quotas::Quotas;
use crate::clock::{SharedClock, SystemClock};
use crate::lock::{AtomicUsize, Mutex, MutexGuard, Ordering, lock};

/// How many buckets a limiter keeps where a host says nothing else.
pub const DEFAULT_KEYS: usize = 100_000;

const SHARDS: usize = 32;
/// The least time between two searches of a full limiter for buckets that can be dropped, in nanoseconds: whoever brings ever
/// new keys must not make every call search.
const SEARCH_PAUSE: u64 = 100_000_000;

/// Keyed at random, so that nobody can choose names that fall into one shard.
#[cfg(not(callgate_model))]
type KeyHasher = foldhash::quality::RandomState;
/// A model runs again and again, and has to find each key in the same shard.
#[cfg(callgate_model)]
type KeyHasher = foldhash::quality::FixedState;

/// A limiter in memory.
///
/// It keeps one bucket for each tenant, principal, channel and tool, and one for each caller's attempts; a bucket that is
/// paid back is the same as none, and is dropped when its place is needed. When every place is taken by a bucket that still counts,
/// a call with a new key is refused (invariant F5): forgetting a bucket would give its owner a fresh budget.
///
/// Its time is the monotonic side of its clock alone (invariant C1).
pub struct MemoryLimiter {
    clock: SharedClock,
    quotas: Box<dyn Fn(&LimitKey<'_>) -> Quota + Send + Sync>,
    hasher: KeyHasher,
    max_keys: usize,
    /// How many buckets are kept, or about to be.
    kept: AtomicUsize,
    /// When a full limiter is searched again, and not before.
    search_at: Mutex<Instant>,
    shards: Box<[Shard]>,
}

/// A shard on cache lines of its own, so that two threads in two shards do not wait for each other's memory.
#[repr(align(128))]
#[derive(Default)]
struct Shard(Mutex<Buckets>);

#[derive(Default)]
struct Buckets {
    table: HashTable<Entry>,
    /// The latest time that this shard was asked at.
    time: Instant,
}

impl Buckets {
    /// The time to go by for a thread that read `now`, maybe long before it came here. A bucket that was paid back at a later time
    /// may have been dropped: in the earlier one its owner would find a fresh budget (invariant R2).
    fn at(&mut self, now: Instant) -> Instant {
        self.time = self.time.max(now);
        self.time
    }
}

struct Entry {
    key: OwnedKey,
    /// Looked up once: quotas do not change while a limiter lives.
    quota: Quota,
    bucket: Bucket,
}

impl Entry {
    fn spend(&mut self, cost: u32, mode: ChargeMode, now: Instant) -> Allowance {
        match mode {
            ChargeMode::Probe => self.quota.peek(self.bucket, cost, now),
            ChargeMode::Take => {
                let allowance = self.quota.charge(self.bucket, cost, now);
                if let Allowance::Granted { bucket, .. } = &allowance {
                    self.bucket = *bucket;
                }
                allowance
            }
        }
    }
}

impl MemoryLimiter {
    /// A limiter with these quotas, the system's clock and room for [`DEFAULT_KEYS`] buckets.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        Self::with(move |key| quotas.of(key), SystemClock::shared(), DEFAULT_KEYS)
    }

    /// A limiter with this clock and room for `max_keys` buckets. `quotas` is asked when a bucket is opened, and must
    /// always say the same of a key.
    #[must_use]
    pub fn with(
        quotas: impl Fn(&LimitKey<'_>) -> Quota + Send + Sync + 'static,
        clock: SharedClock,
        max_keys: usize,
    ) -> Self {
        Self {
            clock,
            quotas: Box::new(quotas),
            hasher: KeyHasher::default(),
            max_keys,
            kept: AtomicUsize::new(0),
            search_at: Mutex::default(),
            shards: std::iter::repeat_with(Shard::default).take(SHARDS).collect(),
        }
    }

    /// How many units of its budget `key` has spent and not yet got back; 0 for a key that was never charged.
    #[must_use]
    pub fn usage(&self, key: &LimitKey<'_>) -> u32 {
        let now = self.clock.monotonic();
        let hash = self.hasher.hash_one(key);
        self.shard(hash).map_or(0, |mut shard| {
            let now = shard.at(now);
            let entry = shard.table.find(hash, |entry| entry.key.is(key));
            entry.map_or(0, |Entry { quota, bucket, .. }| quota.burst().saturating_sub(quota.remaining(*bucket, now)))
        })
    }

    /// Gives `key` a fresh budget.
    pub fn reset(&self, key: &LimitKey<'_>) {
        let hash = self.hasher.hash_one(key);
        if let Some(mut shard) = self.shard(hash)
            && let Ok(entry) = shard.table.find_entry(hash, |entry| entry.key.is(key))
        {
            entry.remove();
            self.give_back(1);
        }
    }

    /// How many buckets are kept, those that are paid back and were not dropped yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Whether no bucket is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, hash: u64) -> Option<MutexGuard<'_, Buckets>> {
        // The table takes its place from the low bits and its tags from the top seven; these are neither.
        self.shards.get((hash >> 48) as usize % SHARDS).map(|shard| lock(&shard.0))
    }

    fn spend(&self, key: &LimitKey<'_>, cost: u32, mode: ChargeMode) -> Result<Allowance, StoreFault> {
        let now = self.clock.monotonic();
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash).ok_or(StoreFault)?;
        let at = shard.at(now);
        if let Some(entry) = shard.table.find_mut(hash, |entry| entry.key.is(key)) {
            return Ok(entry.spend(cost, mode, at));
        }
        drop(shard);
        // Neither the host's quotas nor the search for room may hold the shard.
        let quota = (self.quotas)(key);
        if let Err(wait) = self.take_place(now) {
            return Ok(Allowance::Refused { retry_after_ns: Some(wait) });
        }
        let mut fresh = Entry { key: OwnedKey::of(key), quota, bucket: Bucket::FRESH };
        let mut shard = self.shard(hash).ok_or(StoreFault)?;
        let at = shard.at(now);
        if let Some(entry) = shard.table.find_mut(hash, |entry| entry.key.is(key)) {
            // Another thread opened the same bucket meanwhile.
            self.give_back(1);
            return Ok(entry.spend(cost, mode, at));
        }
        let allowance = fresh.spend(cost, mode, at);
        if fresh.bucket == Bucket::FRESH {
            self.give_back(1);
        } else {
            shard.table.insert_unique(hash, fresh, |entry| self.hasher.hash_one(entry.key.as_key()));
        }
        Ok(allowance)
    }

    /// Takes a place for one more bucket, or says after how many nanoseconds to try again.
    fn take_place(&self, now: Instant) -> Result<(), u64> {
        loop {
            let taken = self.kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kept| {
                (kept < self.max_keys).then(|| kept.saturating_add(1))
            });
            if taken.is_ok() {
                return Ok(());
            }
            let mut search_at = lock(&self.search_at);
            if now < *search_at {
                return Err(search_at.nanos_since(now));
            }
            *search_at = now.saturating_add_nanos(SEARCH_PAUSE);
            let mut dropped = 0_usize;
            for shard in &self.shards {
                let mut shard = lock(&shard.0);
                let at = shard.at(now);
                let before = shard.table.len();
                shard.table.retain(|entry| !entry.bucket.is_idle(at));
                dropped = dropped.saturating_add(before.saturating_sub(shard.table.len()));
            }
            self.give_back(dropped);
        }
    }

    fn give_back(&self, places: usize) {
        self.kept.fetch_sub(places, Ordering::Relaxed);
    }
}

impl RateLimiter for MemoryLimiter {
    fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        self.spend(&charge.key, charge.cost, charge.mode)
    }

    fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault> {
        let now = self.clock.monotonic();
        let hash = self.hasher.hash_one(refund.key);
        let mut shard = self.shard(hash).ok_or(StoreFault)?;
        let now = shard.at(now);
        // A bucket that is gone was paid back.
        if let Some(entry) = shard.table.find_mut(hash, |entry| entry.key.is(&refund.key)) {
            entry.bucket = entry.quota.refund(entry.bucket, refund.receipt, refund.units, now);
        }
        Ok(())
    }

    fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        self.spend(key, 1, ChargeMode::Take)
    }
}

impl Default for MemoryLimiter {
    fn default() -> Self {
        Self::new(Quotas::default())
    }
}

impl fmt::Debug for MemoryLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLimiter").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A [`LimitKey`] that owns its names.
struct OwnedKey {
    tenant: Option<Box<str>>,
    principal: Option<Box<str>>,
    channel: Box<str>,
    tool: Option<Box<str>>,
    purpose: Purpose,
}

impl OwnedKey {
    fn of(key: &LimitKey<'_>) -> Self {
        Self {
            tenant: key.tenant.map(Box::from),
            principal: key.principal.map(Box::from),
            channel: Box::from(key.channel),
            tool: key.tool.map(Box::from),
            purpose: key.purpose,
        }
    }

    fn as_key(&self) -> LimitKey<'_> {
        LimitKey {
            tenant: self.tenant.as_deref(),
            principal: self.principal.as_deref(),
            channel: &self.channel,
            tool: self.tool.as_deref(),
            purpose: self.purpose,
        }
    }

    /// Part by part, so that no two keys are ever taken for one (invariant R6).
    fn is(&self, key: &LimitKey<'_>) -> bool {
        self.as_key() == *key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use callgate_core::context::CallContext;
    use callgate_core::limit::Receipt;
    use proptest::prelude::*;
    use std::thread;
    use std::time::Duration;

    const QUOTA: Quota = match Quota::new(60, 60_000, 10) {
        Ok(quota) => quota,
        Err(_) => Quota::DEFAULT,
    };

    fn limiter(max_keys: usize) -> (MemoryLimiter, ManualClock) {
        let clock = ManualClock::new();
        (MemoryLimiter::with(|_| QUOTA, clock.shared(), max_keys), clock)
    }

    fn key<'a>(principal: &'a str, tool: &'a str) -> LimitKey<'a> {
        LimitKey::of_call(&CallContext::new("web", "r").with_principal(principal), tool)
    }

    fn take(limiter: &MemoryLimiter, key: &LimitKey<'_>, cost: u32) -> Option<Receipt> {
        let charge = Charge { key: *key, cost, mode: ChargeMode::Take };
        match limiter.charge(&charge).expect("memory answers") {
            Allowance::Granted { receipt, .. } => Some(receipt),
            _ => None,
        }
    }

    #[test]
    fn o6_a_hundred_threads_are_not_over_admitted() {
        let (limiter, _clock) = limiter(DEFAULT_KEYS);
        let admitted: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..100)
                .map(|_| scope.spawn(|| (0..10).filter(|_| take(&limiter, &key("p", "t"), 1).is_some()).count()))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("it ends")).sum()
        });
        assert_eq!(admitted, 10);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// R2: in every window, over all threads, what was admitted and not given back is at most limit + burst.
        #[test]
        fn r2_no_window_admits_more_than_limit_and_burst(
            rounds in prop::collection::vec((0_u64..20_000, prop::collection::vec((1_u32..6, any::<bool>()), 0..12)), 1..20),
        ) {
            let (limiter, clock) = limiter(DEFAULT_KEYS);
            let mut admitted = Vec::new();
            let mut now = 0;
            for (pass, calls) in rounds {
                clock.advance(Duration::from_millis(pass));
                now += pass;
                let (one, two) = calls.split_at(calls.len() / 2);
                let run = |calls: &[(u32, bool)]| {
                    let mut spent = 0;
                    for (cost, back) in calls {
                        let Some(receipt) = take(&limiter, &key("p", "t"), *cost) else { continue };
                        spent += u64::from(*cost);
                        if *back {
                            limiter.refund(&Refund { key: key("p", "t"), receipt, units: cost - 1 }).expect("memory answers");
                            spent -= u64::from(cost - 1);
                        }
                    }
                    spent
                };
                let spent: u64 = thread::scope(|scope| {
                    let threads = [scope.spawn(|| run(one)), scope.spawn(|| run(two))];
                    threads.into_iter().map(|thread| thread.join().expect("it ends")).sum()
                });
                admitted.push((now, spent));
            }
            for (start, _) in &admitted {
                let window = admitted.iter().filter(|(at, _)| (*start..start + 60_000).contains(at));
                prop_assert!(window.map(|(_, spent)| spent).sum::<u64>() <= 60 + 10);
            }
        }
    }

    #[test]
    fn c5_the_wall_clock_does_not_count_and_a_long_sleep_pays_one_burst_back() {
        let (limiter, clock) = limiter(DEFAULT_KEYS);
        let spend_all = || (0..100).filter(|_| take(&limiter, &key("p", "t"), 1).is_some()).count();
        assert_eq!(spend_all(), 10);
        for step in [-3_600_000, 7_200_000] {
            clock.step_wall(step);
            assert_eq!(spend_all(), 0);
        }
        clock.advance_monotonic(Duration::from_secs(10 * 365 * 86_400));
        assert_eq!(spend_all(), 10);
        let now = crate::clock::Clock::now(&clock);
        clock.set(callgate_core::time::Now { monotonic: Instant::from_nanos(0), ..now });
        assert_eq!(spend_all(), 0, "a monotonic clock that goes back is broken, and gives nothing");
    }

    #[test]
    fn r6_keys_that_read_alike_have_buckets_of_their_own() {
        let (limiter, _clock) = limiter(DEFAULT_KEYS);
        let tenant = |tenant, principal| LimitKey { tenant, principal, ..key("", "t") };
        let keys = [
            key("a:b", "c"),
            key("a", "b:c"),
            LimitKey { tool: None, ..key("a", "") },
            key("a", ""),
            tenant(Some("a"), Some("b")),
            tenant(Some("b"), Some("a")),
            tenant(None, Some("b")),
            tenant(Some("b"), None),
            LimitKey { purpose: Purpose::Attempts, ..key("a", "b:c") },
        ];
        for key in &keys {
            assert!(take(&limiter, key, 10).is_some(), "{key:?}");
        }
        assert_eq!(limiter.len(), keys.len());
    }

    #[test]
    fn r4_a_probe_leaves_nothing_and_r5_says_what_a_charge_would() {
        let (limiter, _clock) = limiter(1);
        let probe = |key: LimitKey<'_>, cost| {
            let charge = Charge { key, cost, mode: ChargeMode::Probe };
            limiter.charge(&charge).expect("memory answers").is_admitted()
        };
        assert!(probe(key("p", "t"), 10) && !probe(key("p", "t"), 11));
        assert!(limiter.is_empty());
        take(&limiter, &key("p", "t"), 6).expect("a fresh budget");
        assert!(probe(key("p", "t"), 4) && !probe(key("p", "t"), 5));
        assert_eq!(limiter.usage(&key("p", "t")), 6);
        assert!(!probe(key("q", "t"), 1), "there is no room for another key");
    }

    #[test]
    fn f5_a_full_limiter_refuses_new_keys_and_drops_what_is_paid_back() {
        let (limiter, clock) = limiter(64);
        let names: Vec<_> = (0..65).map(|i| format!("p{i}")).collect();
        for name in &names[..64] {
            take(&limiter, &key(name, "t"), 1).expect("there is room");
        }
        assert_eq!(take(&limiter, &key(&names[64], "t"), 1), None);
        assert!(take(&limiter, &key(&names[0], "t"), 1).is_some(), "whoever has a bucket is not concerned");
        assert_eq!(limiter.len(), 64);
        // One second pays one unit back; the first one spent two.
        clock.advance(Duration::from_secs(1));
        assert!(take(&limiter, &key(&names[64], "t"), 1).is_some());
        assert_eq!(limiter.len(), 2, "all that were paid back are gone");
        assert_eq!(limiter.usage(&key(&names[0], "t")), 1, "and what still counts is not");
    }

    /// R2: a thread that read the clock and comes when its bucket was paid back and dropped finds no budget of the past, and
    /// gives back nothing that time has paid back.
    #[test]
    fn r2_a_late_thread_is_served_by_the_time_of_those_before_it() {
        let (limiter, clock) = limiter(2);
        let late = crate::clock::Clock::now(&clock);
        let receipt = take(&limiter, &key("p", "t"), 10).expect("a fresh budget");
        take(&limiter, &key("q", "t"), 1).expect("a fresh budget");
        clock.advance(Duration::from_secs(10));
        let now = crate::clock::Clock::now(&clock);
        take(&limiter, &key("r", "t"), 1).expect("there is room again");
        clock.set(late);
        take(&limiter, &key("p", "t"), 10).expect("a fresh budget");
        clock.set(now);
        assert_eq!(take(&limiter, &key("p", "t"), 1), None);
        clock.set(late);
        limiter.refund(&Refund { key: key("p", "t"), receipt, units: 10 }).expect("memory answers");
        clock.set(now);
        assert_eq!(take(&limiter, &key("p", "t"), 1), None);
    }

    #[test]
    fn what_is_given_back_can_be_spent_again_and_a_reset_forgets() {
        let (limiter, _clock) = limiter(DEFAULT_KEYS);
        let receipt = take(&limiter, &key("p", "t"), 10).expect("a fresh budget");
        assert_eq!(take(&limiter, &key("p", "t"), 1), None);
        limiter.refund(&Refund { key: key("p", "t"), receipt, units: 9 }).expect("memory answers");
        assert_eq!(limiter.usage(&key("p", "t")), 1);
        assert!(take(&limiter, &key("p", "t"), 9).is_some());
        limiter.reset(&key("p", "t"));
        assert_eq!((limiter.usage(&key("p", "t")), limiter.len()), (0, 0));
        limiter.refund(&Refund { key: key("p", "t"), receipt, units: 9 }).expect("nothing to do");
        assert_eq!(limiter.usage(&key("p", "t")), 0);
    }

    #[test]
    fn r3_attempts_have_a_budget_of_their_own() {
        let clock = ManualClock::new();
        let quotas = Quotas::new(QUOTA).with_attempts(Quota::per_window(3, 60_000).expect("usable"));
        let limiter = MemoryLimiter::with(move |key| quotas.of(key), clock.shared(), DEFAULT_KEYS);
        let attempts = LimitKey::of_attempts(&CallContext::new("web", "r").with_principal("p"));
        let admitted = (0..9).filter(|_| limiter.attempt(&attempts).expect("memory answers").is_admitted()).count();
        assert_eq!(admitted, 3);
        assert!(take(&limiter, &key("p", "t"), 10).is_some(), "the honest calls are not concerned");
    }

    /// X3: a host's quota function that panics leaves the limiter usable.
    #[test]
    fn x3_a_panic_in_the_quotas_leaves_the_limiter_usable() {
        let clock = ManualClock::new();
        let quotas = |key: &LimitKey<'_>| if key.principal == Some("bad") { panic!("planted") } else { QUOTA };
        let limiter = MemoryLimiter::with(quotas, clock.shared(), 1);
        let charge = || take(&limiter, &key("bad", "t"), 1);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(charge)).is_err());
        assert!(take(&limiter, &key("p", "t"), 1).is_some());
    }
}
